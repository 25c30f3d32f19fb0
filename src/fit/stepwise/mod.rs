//! Stepwise structures: what the data ask to be added to a model, and what they do not ask for.
//!
//! **Forward.** Additions are made mechanically on the model ([`candidates`]): a pure delay for what was left out, one more queue, a second phase, one more
//! thread or server. Each is fitted from the current solution and tested against it; the probabilities are corrected for the number of candidates by S.
//! Holm (Scandinavian Journal of Statistics 6 (1979)):
//!
//! ```text
//! p'_(i) = max_{j ≤ i} min(1, (m - j + 1) p_(j)),   p_(1) ≤ … ≤ p_(m)
//! ```
//!
//! The addition with the smallest probability is taken if `p' < α`, and the next round starts from there. A thread or server more adds no real parameter:
//! its fall of `E` is compared with `E / (d - 1)` as if it had one, and AICc, which counts it as one, must fall as well.
//!
//! **Backward.** A parameter is surplus where its value is at a bound or its half-width is above its value (M. Woodside, SIPEW 2008, section 4): it is held at 0 and the model
//! fitted without it; of those that the F-test does not miss (`p ≥ α`), the one that it misses least is left out, and the next round starts from there.
//!
//! A new parameter has 0 as its bound, where the test rejects a true smaller structure less often than `α`. Selection by tests makes the reported intervals of the
//! chosen model narrower than their level: what the search found should be confirmed on other trials.
//!
//! | file | is |
//! |---|---|
//! | [`candidates`] | additions to a model |
//! | `search` | rounds of fits and tests |
//! | `text` | the result in words |

pub mod candidates;
mod search;
mod text;

pub use candidates::{Addition, AdditionKind, additions};
pub use search::{
    Attempt, Elimination, Round, Stepwise, StepwiseError, StepwiseOptions, StepwiseReport, proposed_model, stepwise, stepwise_with,
};
