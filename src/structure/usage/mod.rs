//! Usage models: how sessions of users go from service to service, with what pauses, and how many there are at once
//! (van Hoorn et al., SIPEW 2008).
//!
//! ```text
//! requests ─▶ Sessions ─▶ UsageSummary ─▶ UsageModel ─▶ reference tasks of a layered model, hints, usage profile
//!             (cut by     (mergeable      (classes,     behaviours as CSV, a load generator's plan
//!              idle gap)   sums)           chains)
//! ```
//!
//! | file | is |
//! |---|---|
//! | `session` | requests to sessions |
//! | `summary`, `intensity` | what is kept of sessions; n(t) |
//! | `behaviour`, `csv_form`, `think` | Markov chains with think times, and their file |
//! | `classes`, `checks`, `model` | classes of behaviour, whether they are chains, the usage model |
//! | `lqn` | the usage model's part of a layered model |
//! | `generate`, `plan` | sessions drawn from a usage model; a plan for a load generator |
//! | `text` | the usage model for a reader |

mod behaviour;
mod checks;
mod classes;
mod csv_form;
mod generate;
mod intensity;
mod lqn;
mod model;
mod plan;
mod session;
mod summary;
mod text;
mod think;

pub use behaviour::{Behaviour, BehaviourError, ROW_TOLERANCE, START};
pub use checks::{GuardCandidate, OrderCheck};
pub use csv_form::{CsvError, parse_behaviour};
pub use generate::{Application, Generated, Passage, Rule, SpecError, UsageSpec};
pub use intensity::{Intensity, LATEST_S, MOST_WINDOWS, Window};
pub use lqn::{ClassCustomers, Cycle, LqnOptions, Thinking, Unmatched, UsageError, UsageWorkload};
pub use model::{BehaviourClass, ClassChoice, MOST_CLASSES, NoSessions, StepCount, TransitionThink, UsageModel, UsageOptions};
pub use plan::PlanOptions;
pub use session::{Request, Session, SessionOptions, SessionSink, Sessions, User, Visit};
pub use summary::{KeptSession, Step, SummaryOptions, UsageSummary};
pub use think::{BelowZero, ThinkLaw};
