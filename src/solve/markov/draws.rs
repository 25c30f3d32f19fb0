//! Random choices at one instant, taken in every way there is, one way after the other.
//!
//! What happens at an instant is run from its start once for every sequence of choices: each run repeats the choices of the
//! one before up to the last that has another outcome left, takes that one, and then the first outcome of every choice that is
//! new. The product of the chosen probabilities is that of the run. This eliminates the states in which no time passes: the
//! rates out of a state go straight to the next states in which time does.

/// Runs whose probability falls below this are not followed further; what all of them together leave out is checked.
const NEGLIGIBLE: f64 = 1e-18;

/// The choices of one run.
#[derive(Debug, Default)]
pub(super) struct Draws {
    /// Outcome taken, and number of outcomes, of every choice.
    taken: Vec<(usize, usize)>,
    /// Choices so far in this run.
    at: usize,
    /// Probability of the choices so far.
    pub(super) probability: f64,
}

impl Draws {
    /// Before the first run.
    pub(super) fn new() -> Self {
        Self { taken: Vec::new(), at: 0, probability: 1.0 }
    }

    /// Prepares the next run; false when there is none.
    pub(super) fn next_run(&mut self) -> bool {
        self.taken.truncate(self.at);
        while let Some((outcome, n)) = self.taken.pop() {
            if outcome + 1 < n {
                self.taken.push((outcome + 1, n));
                self.at = 0;
                self.probability = 1.0;
                return true;
            }
        }
        false
    }

    /// Whether the run is too improbable to be followed.
    pub(super) fn is_negligible(&self) -> bool {
        self.probability < NEGLIGIBLE
    }

    /// An outcome of a choice with these probabilities.
    pub(super) fn choose(&mut self, probabilities: &[f64]) -> usize {
        let possible = || probabilities.iter().enumerate().filter(|p| *p.1 > 0.0);
        let n = possible().count();
        let outcome = if n <= 1 { 0 } else { self.outcome(n) };
        let chosen = possible().nth(outcome);
        self.probability *= chosen.map_or(1.0, |c| *c.1);
        chosen.map_or(0, |c| c.0)
    }

    /// One of `n` equally probable outcomes.
    pub(super) fn choose_evenly(&mut self, n: usize) -> usize {
        if n <= 1 {
            return 0;
        }
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let probability = 1.0 / n as f64;
        self.probability *= probability;
        self.outcome(n)
    }

    fn outcome(&mut self, n: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push((0, n));
        }
        self.at += 1;
        self.taken[self.at - 1].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_of_choices_is_run_once_with_its_probability() {
        let mut draws = Draws::new();
        let mut runs = Vec::new();
        loop {
            let first = draws.choose(&[0.2, 0.0, 0.8]);
            let second = if first == 2 { draws.choose_evenly(3) } else { draws.choose(&[1.0]) };
            runs.push((first, second, draws.probability));
            if !draws.next_run() {
                break;
            }
        }
        assert_eq!(runs.iter().map(|r| (r.0, r.1)).collect::<Vec<_>>(), [(0, 0), (2, 0), (2, 1), (2, 2)]);
        assert!((runs.iter().map(|r| r.2).sum::<f64>() - 1.0).abs() < 1e-15);
    }
}
