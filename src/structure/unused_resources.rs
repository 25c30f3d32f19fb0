//! What a resource database says that has no effect, whatever the technique.

use super::{
    Technique,
    entries::{Accepts, Merged},
    interactions::Hints,
    summary::Summary,
};
use crate::trace::diagnostics::Diagnostics;

/// Tells what `resources` say of tasks that it does not count for (`unused_resource`), and of tasks that are not in the trace
/// (`unknown_resource`), which execution graphs tell themselves.
pub(super) fn note_unused(
    resources: &Hints,
    technique: Option<Technique>,
    (summary, merged): (&Summary, &Merged),
    diagnostics: &mut Diagnostics,
) {
    for (process, said) in &resources.processes {
        let Some(number) = summary.units.processes.get(process) else {
            if technique != Some(Technique::ExecutionGraph) {
                let message = "the resource database speaks of tasks that are not in the trace";
                diagnostics.add("unknown_resource", message, || format!("task {process}"));
            }
            continue;
        };
        let units = summary.units.process_of.iter().zip(&summary.tasks.of_unit);
        let tasks: Vec<u32> = units.filter(|(of, _)| **of == number).map(|(_, task)| *task).collect();
        let entries = || merged.entries.iter().filter(|entry| tasks.contains(&entry.task));
        let starts = entries().any(|entry| entry.accepts == Accepts::Nothing);
        let serves = entries().any(|entry| entry.accepts != Accepts::Nothing);
        let only_starts = starts && !serves;
        let unused = [
            ("customers or a rate, but the task starts nothing", said.workload.is_some() && !starts),
            ("threads, but the task serves nothing", (said.threads.is_some() || said.infinite) && only_starts),
            ("scheduling, but the task serves nothing", said.scheduling.is_some() && only_starts),
            ("a number of threads beside scheduling inf", said.threads.is_some() && said.infinite && serves),
        ];
        for (what, _) in unused.iter().filter(|(_, is_unused)| *is_unused) {
            let message = "the resource database says of tasks what does not count for them";
            diagnostics.add("unused_resource", message, || format!("{process}: {what}"));
        }
    }
}
