//! Merging entries by weighted averaging (section 6 of the paper).
//!
//! Input: entries with their invocation frequencies f, demands d of phases 1 and 2 and mean requests y(p, t) from phase p to
//! entry t, shape `(n_entries,)`, and the group of each; output: one entry for each group g,
//!
//! ```text
//! f(g) = Σ f     d(g, p) = Σ f d(p) / Σ f     y(g, p, h) = Σ f Σ_{t ∈ h} y(p, t) / Σ f     over the entries of g
//! ```
//!
//! Requests from one source to entries of one group add. The flow of requests Σ f y and of demand Σ f d between groups is
//! that between their entries, and so the ratios of requests between entries are kept. Entries that are never invoked
//! (Σ f = 0) are averaged alike.

use indexmap::IndexMap;

/// An entry to be merged, or merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightedEntry {
    /// Invocations, ≥ 0: of one run of the scenario, or of all runs.
    pub frequency: f64,
    /// Mean demand of an invocation in phases 1 and 2.
    pub demands: [f64; 2],
    /// (phase, entry) → mean number of requests of an invocation; entries are indices.
    pub requests: IndexMap<(u8, usize), f64>,
}

/// Merges the entries of each group; `group_of`, shape `(n_entries,)`, holds numbers from 0. Groups without entries are
/// entries that are never invoked; requests to entries that are not there are left out.
pub fn merge_entries(entries: &[WeightedEntry], group_of: &[usize]) -> Vec<WeightedEntry> {
    let n_groups = group_of.iter().take(entries.len()).max().map_or(0, |last| last + 1);
    let (mut merged, mut n_members) = (vec![WeightedEntry::default(); n_groups], vec![0.0; n_groups]);
    for (entry, group) in entries.iter().zip(group_of) {
        merged[*group].frequency += entry.frequency;
        n_members[*group] += 1.0;
    }
    for (entry, group) in entries.iter().zip(group_of) {
        let into = &mut merged[*group];
        let share = if into.frequency > 0.0 { entry.frequency / into.frequency } else { 1.0 / n_members[*group] };
        for (mean, demand) in into.demands.iter_mut().zip(entry.demands) {
            *mean += share * demand;
        }
        for ((phase, target), mean) in &entry.requests {
            if let Some(target) = group_of.get(*target) {
                *into.requests.entry((*phase, *target)).or_insert(0.0) += share * mean;
            }
        }
    }
    merged
}
