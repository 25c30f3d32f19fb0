//! Rewards of a replicated model put together per copy.

use super::{compile::index, network::Network, rewards::Layout};
use crate::solve::copies::Copies;

/// Rewards of the network of all copies as those of the network of single ones: the means over copies.
pub(super) fn per_copy(of: &Copies, all: &Network, single: &Network, means: &[f64]) -> Vec<f64> {
    let (from, to) = (Layout::new(all), Layout::new(single));
    let mut result = vec![0.0; to.width];
    let mut add = |source: std::ops::Range<usize>, target: std::ops::Range<usize>, copies: u32| {
        source.zip(target).for_each(|(s, t)| result[t] += means[s] / f64::from(copies));
    };
    let mut processor = 0;
    for (p, &copies) in of.processors.iter().enumerate() {
        for _ in 0..copies {
            add(processor..processor + 1, p..p + 1, copies);
            processor += 1;
        }
    }
    let (mut entry, mut activity, mut route) = (0, 0, 0);
    for (t, &copies) in of.tasks.iter().enumerate() {
        for _ in 0..copies {
            for e in single.tasks[t].entries.clone() {
                add(from.of_entry(entry), to.of_entry(e), copies);
                entry += 1;
            }
            for (a, _) in single.activities.iter().enumerate().filter(|a| a.1.task == index(t)) {
                add(from.of_activity(activity), to.of_activity(index(a)), copies);
                activity += 1;
            }
            for (r, spec) in single.routes.iter().enumerate().filter(|r| single.entries[r.1.from as usize].task == index(t)) {
                let called = single.entries[spec.to as usize].task as usize;
                for _ in 0..of.fan_out(t, called).min(of.tasks[called]) {
                    add(from.of_route(route), to.of_route(index(r)), copies);
                    route += 1;
                }
            }
        }
    }
    result
}
