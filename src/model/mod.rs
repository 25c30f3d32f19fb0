//! The model language: layered queueing networks as data.
//!
//! A [`Model`] holds every construct of the language, whether or not a solver takes it: processors, tasks, entries,
//! phases, activity graphs, and synchronous, asynchronous and forwarded calls. Any number in it may be a `$name`
//! ([`Number`]), bound when the model is solved. Times are in the model's own unit (seconds unless it says otherwise).
//!
//! | file | is |
//! |---|---|
//! | `lqnx` | the XML of the LQN tools, read and written |
//! | `lqn_text` | the text grammar of the LQN tools, read |
//! | `json` | the project's own JSON, read and written |
//! | `validate` | what makes a model unusable, named element by element |
//! | [`Measure`] | the text by which a result is asked for: `throughput(User)` |

mod expression;
pub mod format;
pub mod json;
pub mod lqn_text;
pub mod lqnx;
mod measure;
mod number;
mod types;
mod validate;

pub use expression::{Expression, ExpressionError};
pub use measure::{Measure, MeasureError};
pub use number::{Bindings, Number, Scalar, UnboundParameter};
pub use types::*;
pub use validate::{Defect, DefectKind, Severity};
