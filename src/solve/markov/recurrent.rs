//! The recurrent classes of a chain: sets of states that, once entered, are never left and visited again and again.
//!
//! They are the strongly connected components without a way out (Tarjan 1972, with the recursion unrolled).

use super::chain::Rows;

/// A state not yet visited, or not on the stack.
const UNSEEN: usize = usize::MAX;

/// The recurrent classes, each with its states in ascending order.
pub(super) fn recurrent_classes(rates: &Rows) -> Vec<Vec<usize>> {
    let mut search = Search {
        rates,
        order: vec![UNSEEN; rates.len()],
        low: vec![0; rates.len()],
        component: vec![UNSEEN; rates.len()],
        stack: Vec::new(),
        n_seen: 0,
        n_components: 0,
    };
    (0..rates.len()).for_each(|s| search.visit(s));
    let mut is_closed = vec![true; search.n_components];
    for s in 0..rates.len() {
        if rates.row(s).any(|(to, _)| search.component[to] != search.component[s]) {
            is_closed[search.component[s]] = false;
        }
    }
    let mut classes = vec![Vec::new(); search.n_components];
    (0..rates.len()).filter(|&s| is_closed[search.component[s]]).for_each(|s| classes[search.component[s]].push(s));
    classes.into_iter().filter(|c| !c.is_empty()).collect()
}

struct Search<'a> {
    rates: &'a Rows,
    /// Order in which states were first seen.
    order: Vec<usize>,
    /// Least order known to be reachable.
    low: Vec<usize>,
    component: Vec<usize>,
    stack: Vec<usize>,
    n_seen: usize,
    n_components: usize,
}

impl Search<'_> {
    fn enter(&mut self, state: usize) -> (usize, Vec<usize>) {
        self.order[state] = self.n_seen;
        self.low[state] = self.n_seen;
        self.n_seen += 1;
        self.stack.push(state);
        (state, self.rates.row(state).map(|r| r.0).collect())
    }

    fn visit(&mut self, start: usize) {
        if self.order[start] != UNSEEN {
            return;
        }
        let mut path = vec![self.enter(start)];
        while let Some((state, next)) = path.last_mut() {
            let state = *state;
            if let Some(to) = next.pop() {
                if self.order[to] == UNSEEN {
                    path.push(self.enter(to));
                } else if self.component[to] == UNSEEN {
                    self.low[state] = self.low[state].min(self.order[to]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                self.low[*parent] = self.low[*parent].min(self.low[state]);
            }
            if self.low[state] == self.order[state] {
                self.close(state);
            }
        }
    }

    /// The states above `state` on the stack are a component.
    fn close(&mut self, state: usize) {
        while let Some(member) = self.stack.pop() {
            self.component[member] = self.n_components;
            if member == state {
                break;
            }
        }
        self.n_components += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(edges: &[&[usize]]) -> Vec<Vec<usize>> {
        let mut rates = Rows::default();
        edges.iter().for_each(|to| rates.push(to.iter().map(|&t| (t, 1.0))));
        let mut classes = recurrent_classes(&rates);
        classes.sort();
        classes
    }

    #[test]
    fn only_what_is_never_left_is_recurrent() {
        assert_eq!(classes(&[&[1], &[2], &[1]]), [vec![1, 2]]);
        assert_eq!(classes(&[&[1], &[2], &[0]]), [vec![0, 1, 2]]);
        assert_eq!(classes(&[&[1, 2], &[], &[3], &[2]]), [vec![1], vec![2, 3]]);
        assert_eq!(classes(&[&[1], &[0, 2], &[3], &[4], &[2, 3]]), [vec![2, 3, 4]]);
    }
}
