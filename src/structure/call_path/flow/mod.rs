//! Performance-relevant control flow: which external services an execution calls, in which constructs.
//!
//! Input: for each execution of a service the sequence of its external calls and marked actions; output: flow trees with
//! branch probabilities and the probability mass functions (PMFs) of loop counts (Brosig et al. 2011, sections II.A, II.B).
//!
//! The paper reads the constructs off paths in which every action is a method of its own (*markers*). Where there are none they
//! are inferred, and flagged:
//!
//! 1. tandem repeats become loops, shortest period first ([`collapse`]);
//! 2. the collapsed sequences are merged in a prefix trie;
//! 3. common suffixes of the alternatives of a branch are taken out of it;
//! 4. a node of the trie with two successors or more, the end among them, is a branch; a branch between one loop and nothing
//!    is that loop with a count of 0.
//!
//! Sequences with the same *structure* (the same labels, whatever the counts of their loops) are summed up in one
//! [`Structure`], so that memory is bounded by the number of structures, not by the number of executions.
//!
//! | symbol | is | here |
//! |---|---|---|
//! | S_x | sequences observed for service x | [`FlowStats::structures`], [`FlowStats::sequences`] |
//! | taken / reached | probability of a branch transition | [`FlowNode::Branch`] |
//! | PMF | iteration counts per execution that reaches the loop | [`Pmf`] |

mod collapse;
mod labels;
mod stats;
mod tree;

pub(super) use labels::{CallKind, Label, Labels, SubKind};
pub use stats::Pmf;
pub(super) use stats::{Flow, FlowKey, Flows};
pub use tree::{Alternative, FlowNode, LoopCount};
pub(super) use tree::{Naming, flow_tree};
