//! Arguments that say what is to be estimated, without saying how it is fitted.

use super::{
    Failure,
    fit::{bounds, estimated, estimated_mut, parameter_name, prior},
};
use crate::fit::{Estimated, Transform};

/// Arguments of what is to be estimated.
#[derive(Debug, Default, clap::Args)]
pub(super) struct EstimateArguments {
    /// Parameter to estimate, with a start or without; may be repeated.
    #[arg(long, value_name = "NAME[=START]")]
    pub(super) estimate: Vec<String>,
    /// Bounds of an estimated parameter; either end may be left out.
    #[arg(long, value_name = "NAME=MIN..MAX", allow_hyphen_values = true)]
    bounds: Vec<String>,
    /// Known value of another parameter.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// What experts expect of an estimated parameter: least, most likely and most; may be repeated.
    #[arg(long, value_name = "NAME=LEAST,LIKELY,MOST", allow_hyphen_values = true)]
    prior: Vec<String>,
    /// Search an estimated parameter by its logarithm. May be repeated.
    #[arg(long, value_name = "NAME")]
    log: Vec<String>,
}

impl EstimateArguments {
    /// The parameters to be estimated.
    pub(super) fn estimated(&self) -> Result<Vec<Estimated>, Failure> {
        let mut estimate = self.estimate.iter().map(|text| estimated(text)).collect::<Result<Vec<_>, _>>()?;
        for text in &self.bounds {
            let (name, min, max) = bounds(text)?;
            let target = estimated_mut(&mut estimate, &name, &format!("--bounds {text}"))?;
            (target.min, target.max) = (min, max);
        }
        for text in &self.prior {
            let (name, prior) = prior(text)?;
            estimated_mut(&mut estimate, &name, &format!("--prior {text}"))?.prior = Some(prior);
        }
        for name in &self.log {
            let name = parameter_name(name).ok_or_else(|| Failure::input_text(format!("--log {name}: expected a parameter's name")))?;
            estimated_mut(&mut estimate, &name, &format!("--log {name}"))?.transform = Transform::Log;
        }
        Ok(estimate)
    }
}
