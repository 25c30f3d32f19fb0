//! The model language: layered queueing networks as data.
//!
//! A [`Model`] holds every construct of the language, whether or not a solver takes it: processors, tasks, entries,
//! phases, activity graphs, and synchronous, asynchronous and forwarded calls. Any number in it may be a `$name`
//! ([`Number`]), bound when the model is solved. Times are in the model's own unit (seconds unless it says otherwise).
//!
//! | file | is |
//! |---|---|
//! | `types`, `activity` | the elements |
//! | `number`, `parameter`, `expression` | numbers, `$names`, and what the model says of them |
//! | `lqnx` | the XML of the LQN tools, read and written |
//! | `lqn_text` | the text grammar of the LQN tools, read |
//! | `json` | the project's own JSON, read and written |
//! | `validate` | what makes a model unusable, named element by element |
//! | `places` | where these stand in the file |
//! | `observation`, `spex`, `order` | what a file holds beside the model, kept for the round trip |
//! | `bound` | a model with values in the place of its `$names` |
//! | `setting` | one number of a model, named in text, given another value |
//! | [`Measure`] | the text by which a result is asked for: `throughput(User)` |

mod activity;
mod bound;
mod expression;
pub mod format;
mod idle_phases;
pub mod json;
mod known;
mod lexer;
pub mod lqn_text;
pub mod lqnx;
mod measure;
mod number;
mod observation;
mod order;
mod parameter;
mod places;
mod setting;
mod spex;
mod tangent;
mod types;
mod validate;

pub(crate) mod objects;
pub(crate) mod unique;

pub use activity::*;
pub use expression::{Expression, ExpressionError};
pub use known::UnknownParameter;
pub use measure::{Measure, MeasureError};
pub use number::{Bindings, Number, Scalar, UnboundParameter};
pub use observation::{HalfWidth, Histogram, Observation, Observed};
pub use parameter::{BindingError, Parameter, ParameterValue};
pub use places::{Declared, Places};
pub use setting::SettingError;
pub use tangent::Tangent;
pub use types::*;
pub use validate::{Defect, DefectKind, Severity};
