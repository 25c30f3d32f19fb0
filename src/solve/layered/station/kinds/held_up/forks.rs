//! What executions that fork do where threads meet.
//!
//! A thread is at several stations at once, but longer by what is done there only as far as it waits for that strand:
//!
//! ```text
//! E x = f Σ_v β_v E x_v,     Cov(x, ℓ) = g Σ_v β_v² Cov_v        x any of ℓ, Z, w_k, v_k, of one execution of node v; β_v of the strands' ℓ_v
//! ```
//!
//! with `f` and `g` such that `ℓ` has the mean and the variance that joins of strands of such lengths have ([`super::super::super::super::completion`]): while a thread
//! waits for the last strand, it is where that is. What else its strands do at a station, the strands of `m` threads of each other's do (`(m-1)/m` of it is met) as what
//! others do there: chosen. The third cumulant is `g^(3/2) Σ_v β_v³ κ_v`: where one strand is the last nearly always, all are those of that strand.

use super::requests::{Search, Sums};
use crate::{
    model::Scalar,
    solve::layered::{completion::Moments, graph::Graph, turns::Strand},
};

impl<S: Scalar> Search<'_, S> {
    /// Of one execution, with what is known of the entries below.
    pub(super) fn of_graph(&self, graph: &Graph<S>, below: &[Option<Sums<S>>]) -> Sums<S> {
        let nodes = (0..graph.vertices.len()).flat_map(|v| graph.nodes_of(v));
        let of: std::collections::HashMap<usize, Sums<S>> =
            nodes.map(|node| (node, self.of_node(&self.solved.net.nodes[node], below))).collect();
        let strand = |node: usize| {
            let (whole, elapsed) = (of[&node].whole(), self.solved.flow.strands[node].time);
            let without_calls = if elapsed.mean > 0.0 { elapsed.scaled(whole.mean / elapsed.mean).without_calls } else { None };
            Strand { time: Moments { mean: whole.mean, variance: whole.variance, without_calls }, ..Strand::none() }
        };
        let times = graph.times(&strand);
        let mut all = Sums::none(self.met.len());
        for (node, delay) in graph.delays(&strand) {
            all.add_delaying(&of[&node], self.solved.net.nodes[node].weight, delay);
        }
        all.scale_to(times.first + times.late);
        all
    }
}
