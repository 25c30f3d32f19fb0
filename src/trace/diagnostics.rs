//! Counted diagnostics: what in a trace was odd, how often, and the first examples.

use serde::{Deserialize, Serialize};

/// One kind of oddity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Stable code: `unpaired_send`, `zombie_on_pending`.
    pub code: String,
    /// What it means, for a person.
    pub message: String,
    /// How often it was met.
    pub count: u64,
    /// Where it was first met, a few times.
    pub examples: Vec<String>,
}
