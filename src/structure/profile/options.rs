//! What a profile can be asked for, with its bounds.

use serde::{Deserialize, Serialize};

use super::Siblings;

/// How a profile is built, and how much of it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileOptions {
    /// Seconds that a tick of the recordings lasts, > 0; anything else counts as 10⁻⁹.
    pub seconds_per_tick: f64,
    /// Whether neighbouring equal sub-trees are told apart.
    pub siblings: Siblings,
    /// Most operations: further ones are taken together as `(other)`.
    pub max_operations: usize,
    /// Most stack-contexts, and most caller-contexts without one. Beyond twice as many, those with the fewest observations
    /// are folded into the remainder of their caller-context until this many are left.
    pub max_stacks: usize,
    /// Most trace-contexts, folded into the remainder of their stack-context in the same way.
    pub max_contexts: usize,
    /// Most executions of one recording; those of a larger one are counted with their operation only.
    pub max_executions: usize,
    /// Most levels of nesting in one recording; those of a deeper one are counted with their operation only.
    pub max_depth: usize,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self {
            seconds_per_tick: 1e-9,
            siblings: Siblings::default(),
            max_operations: 4096,
            max_stacks: 16_384,
            max_contexts: 32_768,
            max_executions: 1 << 20,
            max_depth: 1024,
        }
    }
}

impl ProfileOptions {
    pub(super) fn tick_s(&self) -> f64 {
        if self.seconds_per_tick.is_finite() && self.seconds_per_tick > 0.0 { self.seconds_per_tick } else { 1e-9 }
    }
}

/// When contexts are told apart in a timing model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OperatorOptions {
    /// Fewest observations that describe a distribution: a leaf with fewer is linked to an ancestor with enough.
    pub enough: u64,
    /// Largest difference of the medians of similar leaves, as a part of their pooled median, ≥ 0.
    pub median_tolerance: f64,
    /// Largest ratio of the inter-quartile ranges of similar leaves, ≥ 1.
    pub iqr_ratio: f64,
    /// Most leaves of one operation, ≥ 1.
    pub max_leaves: usize,
}

impl Default for OperatorOptions {
    fn default() -> Self {
        Self { enough: 50, median_tolerance: 0.1, iqr_ratio: 1.25, max_leaves: 16 }
    }
}
