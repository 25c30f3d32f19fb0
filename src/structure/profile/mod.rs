//! Profiles: response times by the context in which operations are called (Rohr et al., SIPEW 2008).
//!
//! What goes in: executions as [`CallTree`]s, of any technique. What comes out: a [`Profile`] (sums that merge), its
//! [`ContextTree`] with what operation, caller, stack and trace each explain of the spread, and a [`TimingModel`] whose
//! leaves have distributions worth telling apart.
//!
//! | context | executions of one operation are alike if |
//! |---|---|
//! | caller | their callers have one name (`$` outside) |
//! | stack | their paths to the root are equal |
//! | trace | the whole trees of their traces are equal and they have one position in them |
//!
//! Trace-equivalence implies stack-equivalence, which implies caller-equivalence; each partitions the observations.
//!
//! | file | is |
//! |---|---|
//! | `call_tree`, `from_interactions` | executions as trees, and what makes them |
//! | `contexts`, `positions` | equal trees and paths held once; where an execution stands in its trace |
//! | `record` | the mergeable sums, within bounds |
//! | `sample` | moments and quantiles of one time |
//! | `context_tree`, `operators` | the calling-context tree; remove, merge, link |
//! | `calls` | stack-contexts as a tree of calls |
//! | `report`, `text`, `view` | what is said and shown of it |

mod call_tree;
mod calls;
mod context_tree;
mod contexts;
mod from_interactions;
mod operators;
mod options;
mod positions;
mod record;
mod report;
mod sample;
mod text;
mod view;

pub use call_tree::{AtDepth, CallForm, CallStack, CallTree, CallTreeError, Execution, Linked};
pub use calls::{CallBounds, Calls, draw_calls};
pub use context_tree::{CONTEXT_LEVELS, ContextNode, ContextTree, Level, LevelSpread, TraceContext};
pub use contexts::Digest;
pub use from_interactions::call_trees;
pub use operators::{Leaf, TimingModel};
pub use options::{OperatorOptions, ProfileOptions};
pub use positions::Siblings;
pub use record::{OTHER, Profile};
pub use report::{ContextReport, EntryStart, LeafProfile, OperationProfile, ProfileReport, SiblingCalls};
pub use sample::{LONGEST_S, Metric, Observed, RELATIVE_ERROR, SHORTEST_S, Sample, SampleSummary};
pub use text::{DrawOptions, OnlyChildren};
pub use view::{ProfileView, ViewOptions};
