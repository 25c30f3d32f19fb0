//! How many requests can be at one place at once.
//!
//! Every request is of a strand that somebody waits for, and who that is may wait for it as well, up to whoever began it ([`super::station`], `origins`). At each
//! task on its way it holds a thread. So requests that are at a place at the same time hold threads of their own all the way, and are no more than the largest flow from
//! those who begin them through tasks that let as many through as they have strands (L. R. Ford and D. R. Fulkerson, 1956): of a task that calls a database and another
//! task that calls it, too, no more than its own threads are at the database, however many the other has.

use petgraph::{algo::ford_fulkerson, graph::DiGraph};

/// Strands that count as without bound.
const UNBOUNDED: f64 = 1e15;

/// Most requests that `tasks` can have waiting at once. `callers` are those whose threads wait for a task, none of one that begins requests itself; `strands` how many it
/// can have.
pub(super) fn most_at_once<'a>(tasks: &[usize], callers: impl Fn(usize) -> Option<&'a [usize]>, strands: impl Fn(usize) -> f64) -> f64 {
    if let &[task] = tasks
        && strands(task).is_finite()
    {
        return strands(task);
    }
    let mut ways: DiGraph<(), f64> = DiGraph::new();
    let (begin, end) = (ways.add_node(()), ways.add_node(()));
    let mut places = std::collections::HashMap::new();
    let mut open: Vec<(usize, _)> = tasks.iter().map(|&task| (task, end)).collect();
    while let Some((task, to)) = open.pop() {
        if let Some(&leaves) = places.get(&task) {
            ways.add_edge(leaves, to, UNBOUNDED);
            continue;
        }
        let (comes, leaves) = (ways.add_node(()), ways.add_node(()));
        places.insert(task, leaves);
        ways.add_edge(comes, leaves, strands(task).min(UNBOUNDED));
        ways.add_edge(leaves, to, UNBOUNDED);
        match callers(task) {
            Some(callers) => open.extend(callers.iter().map(|&caller| (caller, comes))),
            None => {
                ways.add_edge(begin, comes, UNBOUNDED);
            }
        }
    }
    let (most, _) = ford_fulkerson(&ways, begin, end);
    if most < UNBOUNDED { most } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks by number: their callers, and their strands.
    fn most(tasks: &[usize], all: &[(Option<&[usize]>, f64)]) -> f64 {
        most_at_once(tasks, |task| all[task].0, |task| all[task].1)
    }

    #[test]
    fn requests_hold_threads_of_their_own() {
        let clients = (None, 4.0);
        // A task and one that it calls, both calling a third.
        assert_eq!(most(&[1, 2], &[clients, (Some(&[0]), 2.0), (Some(&[1]), 3.0)]), 2.0);
        // The second has less than the first, and both are of what the first has.
        assert_eq!(most(&[1, 2], &[clients, (Some(&[0]), 3.0), (Some(&[1]), 1.0)]), 3.0);
        // Two that the clients call, and two below one of few threads.
        assert_eq!(most(&[1, 2], &[clients, (Some(&[0]), 1.0), (Some(&[0]), 2.0)]), 3.0);
        assert_eq!(most(&[2, 3], &[clients, (Some(&[0]), 1.0), (Some(&[1]), 5.0), (Some(&[1]), 6.0)]), 1.0);
        // Another way round the narrow place.
        assert_eq!(most(&[2, 3], &[clients, (Some(&[0]), 1.0), (Some(&[1]), 5.0), (Some(&[0, 1]), 2.0)]), 3.0);
        assert_eq!(most(&[0], &[clients]), 4.0);
    }

    #[test]
    fn who_is_without_bound_bounds_nothing() {
        let endless = f64::INFINITY;
        assert_eq!(most(&[0, 1], &[(None, endless), (Some(&[0]), endless)]), endless);
        assert_eq!(most(&[1, 2], &[(None, endless), (Some(&[0]), 3.0), (Some(&[1]), endless)]), 3.0);
        assert_eq!(most(&[1, 2], &[(None, 2.0), (Some(&[]), 3.0), (Some(&[0]), endless)]), 2.0);
    }
}
