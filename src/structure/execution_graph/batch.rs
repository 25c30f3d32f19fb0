//! Operations put together for handing over.

use super::{
    ExecutionGraphOptions,
    graph::Keys,
    walk::{Exchange, Execution, Found},
    workload::ClassKind,
};
use crate::{
    structure::interactions::{Interaction, InteractionKind, Interactions, Occurrence, Recording, ScenariosBy},
    trace::Time,
};

/// A batch is handed over once it has this many occurrences.
const FULL_OCCURRENCES: usize = 1 << 12;

/// Recordings that wait for handing over.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    interactions: Interactions,
    /// (unit, operation) of keys, shape `(n_keys,)` or shorter.
    known: Vec<Option<(u32, u32)>>,
    /// Occurrences of each unit in the operation at hand, shape `(n_units,)` or shorter.
    n_of_unit: Vec<u32>,
}

impl Batch {
    pub(super) fn is_full(&self) -> bool {
        self.interactions.occurrences.len() >= FULL_OCCURRENCES
    }

    pub(super) fn take(&mut self) -> Interactions {
        std::mem::take(self).interactions
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.interactions.merge(other.interactions);
    }

    /// Adds operation `number`; the occurrences of each task are counted from 1.
    pub(super) fn add(&mut self, number: u64, found: &Found, keys: &Keys, options: &ExecutionGraphOptions) {
        let Some(first_execution) = found.occurrences.0.first() else { return };
        let all = &mut self.interactions;
        let (trace, first) = (u32::try_from(all.traces.len()).unwrap_or(u32::MAX), all.occurrences.len());
        let scenario = match options.scenarios {
            ScenariosBy::One => all.scenarios.intern(&options.scenario),
            ScenariosBy::Root => all.scenarios.intern(&keys.shown(first_execution.key)),
        };
        all.traces.push(Recording::new(number.to_string(), scenario));
        self.n_of_unit.fill(0);
        for execution in &found.occurrences.0 {
            let (unit, operation) = self.unit_and_operation(execution, keys);
            if unit as usize >= self.n_of_unit.len() {
                self.n_of_unit.resize(unit as usize + 1, 0);
            }
            let count = &mut self.n_of_unit[unit as usize];
            *count += 1;
            self.interactions.occurrences.push(Occurrence {
                unit,
                number: *count,
                trace,
                operation: Some(operation),
                originator: execution.originator,
                self_time_ticks: execution.cpu_ticks,
            });
        }
        self.interactions.interactions.extend(found.exchanges.iter().map(|exchange| interaction(exchange, first)));
    }

    fn unit_and_operation(&mut self, execution: &Execution, keys: &Keys) -> (u32, u32) {
        let key = execution.key as usize;
        if key >= self.known.len() {
            self.known.resize(key + 1, None);
        }
        *self.known[key].get_or_insert_with(|| {
            let (task, entry) = keys.names(execution.key);
            (self.interactions.units.intern(task, ""), self.interactions.operations.intern(entry))
        })
    }
}

/// `first` is the index of the operation's first occurrence.
fn interaction(exchange: &Exchange, first: usize) -> Interaction {
    let kind = match exchange.kind {
        ClassKind::Sync => InteractionKind::Sync,
        ClassKind::Forward => InteractionKind::Forward,
        ClassKind::Async | ClassKind::AsyncRpc | ClassKind::AsyncForward => InteractionKind::Async,
    };
    let last = exchange.chain.len() - 1;
    Interaction {
        kind,
        phase: exchange.phase,
        from: first + exchange.chain[0],
        via: exchange.chain[1..last].iter().map(|occurrence| first + occurrence).collect(),
        to: first + exchange.chain[last],
        branch: None,
        times: exchange.sent.iter().map(|index| Time::from_ticks(i64::try_from(*index).unwrap_or(i64::MAX))).collect(),
    }
}
