//! Who begins what comes to a station, and so how many requests there can be at once.
//!
//! A thread that requests something works for who waits for it, and who waits has one request on its way: followed from caller
//! to caller, every request at a station is of another strand of a task that works for nobody who waits. These are the customers,
//! threads that go on after their reply or take requests that nobody waits for, and strands of forks. Counted by them, the requests at
//! a processor that all layers share are no more than the customers, however many threads the layers have.

use super::super::{exclusion::Pairs, net::Net};

/// By task, whether what the threads of `pools` request comes through it: not as its own requests at the same place, but of threads that it waits for.
pub(super) fn come_through<S>(net: &Net<S>, pairs: &Pairs, pools: &[usize]) -> Vec<bool> {
    let mut open = pools.to_vec();
    let mut through = vec![false; net.tasks.len()];
    while let Some(task) = open.pop() {
        for &caller in pairs.begun_by(net, task).unwrap_or_default() {
            if !std::mem::replace(&mut through[caller], true) {
                open.push(caller);
            }
        }
    }
    through
}

/// The tasks whose strands begin what the threads of `pools` request.
pub(super) fn origins<S>(net: &Net<S>, pairs: &Pairs, pools: &[usize]) -> Vec<usize> {
    let mut open = pools.to_vec();
    let mut is_met = vec![false; net.tasks.len()];
    let mut found = Vec::new();
    while let Some(task) = open.pop() {
        if std::mem::replace(&mut is_met[task], true) {
            continue;
        }
        match pairs.begun_by(net, task) {
            Some(callers) => open.extend_from_slice(callers),
            None => found.push(task),
        }
    }
    found.sort_unstable();
    found
}
