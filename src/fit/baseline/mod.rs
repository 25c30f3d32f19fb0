//! Black boxes fitted to the same trials beside the model: what does its structure buy?
//!
//! Each measure is fitted alone against one controlled value, the *load*, by curves that know nothing of the system ([`curve`]): a polynomial, and for throughputs
//! the Universal Scalability Law, from which the response time follows by Little's law. Model and black boxes are then asked the same questions ([`Baselines`]):
//!
//! - how far off are they on the trials that they were fitted to,
//! - on each trial when fitted to the others,
//! - on the trials of the highest load when fitted to the rest, and how many of those lie inside their bands of a new measurement?
//!
//! The last is what a model is for.
//!
//! | file | is |
//! |---|---|
//! | [`curve`] | the curves, their fits by the engine, their bands |
//! | `compare` | which fits are compared, on which trials |
//! | `questions` | the questions, and how they are to be asked |
//! | [`report`], `text` | the result, in JSON and in words |

mod compare;
pub mod curve;
mod questions;
pub mod report;
mod text;

pub use compare::{BaselineError, baselines, baselines_with};
pub use questions::BaselineOptions;
pub use report::Baselines;
