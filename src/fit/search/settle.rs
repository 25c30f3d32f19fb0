//! Weights that are estimated with the parameters: by turns, until both settle.

use super::{
    reweigh::reweigh,
    run::{Effort, FitError, Search},
    weights::Weights,
};
use crate::fit::engine::least_squares::{Minimum, Start};

/// Relative change of weights at which they count as settled.
const SETTLED: f64 = 1e-10;

impl Search<'_> {
    /// Estimates what the weights hang on and minimises by turns; whether it settled.
    pub(super) fn settle(&mut self, weights: &mut Weights, minimum: &mut Minimum) -> Result<bool, FitError> {
        let method = &self.problem.method;
        let has_priors = self.problem.priors().next().is_some();
        if !weights.are_estimated() && method.loss.is_squared() && !(has_priors && weights.has_free_scale(self.problem)) {
            return Ok(true);
        }
        if has_priors && let Some(settled) = self.settle_by_data(weights, minimum)? {
            return Ok(settled);
        }
        self.settle_rounds(weights, minimum)
    }

    /// Settles the weights on the data alone, and minimises with the priors beside them; whether they settled, nothing where the model cannot be
    /// solved where the data lead. What errors of measurement are like, a prior does not say: one that holds a parameter away from the data makes
    /// misfit, which taken for their scatter leaves the data nothing to say against it.
    fn settle_by_data(&mut self, weights: &mut Weights, minimum: &mut Minimum) -> Result<Option<bool>, FitError> {
        let mut alone = Weights { prior_factor: 0.0, ..weights.clone() };
        let found = self.minimise_again(&alone, minimum).and_then(|mut by_data| {
            let settled = self.settle_rounds(&mut alone, &mut by_data)?;
            alone.prior_factor = weights.prior_factor;
            reweigh(self.problem, &mut alone, &by_data);
            let joint = self.minimise_again(&alone, minimum)?;
            Ok((settled, if self.whole.contains(&true) { self.minimise(&alone, &joint.x)? } else { joint }))
        });
        match found {
            Ok((settled, found)) => {
                (*weights, *minimum) = (alone, found);
                Ok(Some(settled))
            }
            Err(FitError::Cancelled) => Err(FitError::Cancelled),
            Err(_) => Ok(None),
        }
    }

    /// The rounds of [`Self::settle`].
    fn settle_rounds(&mut self, weights: &mut Weights, minimum: &mut Minimum) -> Result<bool, FitError> {
        while self.round < self.options.max_weighting_rounds {
            self.round += 1;
            let change = reweigh(self.problem, weights, minimum);
            *minimum = self.minimise_again(weights, minimum)?;
            if change <= SETTLED {
                let others = self.whole.contains(&true).then(|| self.minimise(weights, &minimum.x)).transpose()?;
                match others {
                    Some(found) if self.moved_whole(&found.x, &minimum.x) => *minimum = found,
                    _ => return Ok(true),
                }
            }
        }
        Ok(false)
    }

    /// Minimises under new weights from the last minimum, with its whole numbers.
    fn minimise_again(&mut self, weights: &Weights, last: &Minimum) -> Result<Minimum, FitError> {
        match self.whole.contains(&true) {
            true => self.minimise_with(weights, &Start { x: &last.x, jacobian: Some(&last.jacobian) }, Effort::Full),
            false => self.minimise(weights, &last.x),
        }
    }

    fn moved_whole(&self, a: &[f64], b: &[f64]) -> bool {
        (0..self.whole.len()).any(|j| self.whole[j] && a[j] != b[j])
    }
}
