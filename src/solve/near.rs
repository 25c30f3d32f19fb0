//! A solution that another one, of the same model at parameters nearby, can start from.
//!
//! The fixed point that is found is the same within the tolerance; only the way there is shorter. Near saturation, where a stage may settle
//! from nearby that does not from no waits, it can be one that a cold start does not find.

use std::sync::Arc;

use super::layered;

/// What is kept of a layered solution: its unknowns, stage by stage. Two are equal when they are the same solution.
#[derive(Clone, Debug)]
pub struct Near(Arc<layered::Trace>);

impl Near {
    pub(super) fn trace(&self) -> &layered::Trace {
        &self.0
    }
}

impl From<layered::Trace> for Near {
    fn from(trace: layered::Trace) -> Self {
        Self(Arc::new(trace))
    }
}

impl PartialEq for Near {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
