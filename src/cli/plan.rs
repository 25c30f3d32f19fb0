//! Arguments that say what is to be estimated, without saying how it is fitted.

use super::{Failure, estimates::all_estimated};
use crate::fit::Estimated;

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
        all_estimated(&self.estimate, &self.bounds, &self.prior, &self.log)
    }
}
