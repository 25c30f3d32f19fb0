//! What is known of processes beside their interactions: where they run, and their demands.

use super::{demand::DemandEstimate, flow::Naming, places::Places, summary::Summary};
use crate::structure::interactions::{Hints, ProcessHints};

/// What is known of all processes.
pub(super) fn hints(summary: &Summary, places: &Places, demands: &[DemandEstimate]) -> Hints {
    let mut hints = Hints::default();
    let by_instance = summary.by_instance();
    for instance in 0..places.instances.len() as u32 {
        let process = places.process(instance);
        let mut known = ProcessHints {
            processor: places.server(instance),
            infinite: places.units.names.get(&process).is_some(),
            ..ProcessHints::default()
        };
        let own = by_instance.keys().filter(|(at, _)| *at == instance).map(|(_, location)| *location);
        for (component, method) in own.map(|location| places.service(location)) {
            let action = format!("{component}.{method}");
            let is_its = |estimate: &&DemandEstimate| estimate.action == action && estimate.processes.contains(&process);
            // Demands at other resources have no place in the host's.
            if let Some(estimate) = demands.iter().find(is_its) {
                known.demands.insert(method.to_owned(), [Some(estimate.demand_s), None]);
            }
        }
        hints.processes.insert(process, known);
    }
    hints
}
