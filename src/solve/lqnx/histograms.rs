//! The bins of the histograms that a model asks for.

use std::collections::HashMap;

use super::interval::Intervals;
use crate::{
    model::{Observed, lqnx::ResultBin},
    solve::{AskedTimes, Bin, Solution},
};

/// The histograms of a solution, by what they are of.
pub(super) fn histograms(solution: &Solution, intervals: Intervals) -> HashMap<Observed, Vec<Vec<ResultBin>>> {
    let mut found: HashMap<Observed, Vec<Vec<ResultBin>>> = HashMap::new();
    let mut keep = |of: Observed, asked: &AskedTimes| {
        if !asked.histogram.is_empty() {
            found.entry(of).or_default().push(asked.histogram.iter().map(|bin| result(bin, intervals)).collect());
        }
    };
    for (entry, result) in &solution.entries {
        for asked in &result.asked_times {
            keep(Observed::Phase { entry: entry.clone(), phase: asked.phase.unwrap_or(1) }, asked);
        }
    }
    for (task, activities) in &solution.activities {
        for (activity, result) in activities {
            result.asked_times.iter().for_each(|a| keep(Observed::Activity { task: task.clone(), activity: activity.clone() }, a));
        }
    }
    for (task, result) in &solution.tasks {
        result.asked_times.iter().for_each(|asked| keep(Observed::Task(task.clone()), asked));
    }
    for join in &solution.joins {
        let Some(first) = join.activities.first() else { continue };
        join.asked_times.iter().for_each(|a| keep(Observed::Join { task: join.task.clone(), activity: first.clone() }, a));
    }
    found
}

fn result(bin: &Bin, intervals: Intervals) -> ResultBin {
    let half_width = |factor: f64| bin.probability_half_width.map(|h| h * factor).filter(|h| h.is_finite());
    ResultBin {
        begin: bin.begin,
        end: bin.end.unwrap_or(f64::INFINITY),
        probability: bin.probability,
        half_width_95: half_width(intervals.to_95),
        half_width_99: half_width(intervals.to_99),
    }
}
