//! Strands that wait for one another for ever.

use super::{
    chain::Chain,
    network::{Lock, NONE, Network},
    state::{Doing, State},
};
use crate::{model::Model, solve::SolveError};

/// The error of a chain that can come to state `number`, where some strands wait for ever; `None` where all go on.
///
/// A strand goes on when it thinks or is at a processor, or waits for an instance or in a queue of a task that has a strand
/// which goes on. What waits for a lock counts as going on, unless nothing at all can happen (`is_dead`): who will come is not known.
pub(super) fn deadlock(model: &Model, network: &Network, chain: &Chain, number: usize, is_dead: bool) -> Option<SolveError> {
    let state = chain.state(network, number);
    let goes_on = if is_dead { vec![false; state.strands.len()] } else { going_on(network, &state) };
    let mut waits: Vec<String> = Vec::new();
    for request in state.servers.iter().flat_map(|s| &s.queue) {
        if request.caller == NONE || goes_on[request.caller as usize] {
            continue;
        }
        let caller = &model.tasks[state.task(network, request.caller)].name;
        let (task, entry) = entry_names(model, network, request.entry);
        let text = format!("task \"{caller}\" waits for entry \"{entry}\" of task \"{task}\"");
        if !waits.contains(&text) {
            waits.push(text);
        }
    }
    (!waits.is_empty()).then(|| SolveError::Deadlock { time: chain.time_to(number), waits })
}

/// Names of an entry's task and of the entry.
fn entry_names<'a>(model: &'a Model, network: &Network, entry: u32) -> (&'a str, &'a str) {
    let number = network.entries[entry as usize].task as usize;
    let place = (entry - network.tasks[number].entries.start) as usize;
    let task = &model.tasks[number];
    (&task.name, &task.entries[place].name)
}

fn going_on(network: &Network, state: &State) -> Vec<bool> {
    let mut goes_on: Vec<bool> = state.strands.iter().map(|s| s.doing != Doing::Blocked).collect();
    let mut tasks: Vec<bool> = network.tasks.iter().map(|t| t.lock != Lock::None).collect();
    loop {
        let before = goes_on.iter().filter(|g| **g).count();
        for (s, strand) in state.strands.iter().enumerate() {
            if goes_on[s] {
                let instance = &state.instances[strand.instance as usize];
                tasks[network.entries[instance.entry as usize].task as usize] = true;
                if instance.caller != NONE {
                    goes_on[instance.caller as usize] = true;
                }
            }
        }
        for (server, _) in state.servers.iter().zip(&tasks).filter(|(_, goes_on)| **goes_on) {
            server.queue.iter().filter(|r| r.caller != NONE).for_each(|r| goes_on[r.caller as usize] = true);
        }
        if goes_on.iter().filter(|g| **g).count() == before {
            return goes_on;
        }
    }
}
