//! The order of tasks, callers first, and the bounds on how many threads can be busy.

use super::{
    super::{at_once::most_at_once, net::Source},
    Compiler, SolveError, unsupported,
};
use crate::model::Scalar;

impl<S: Scalar> Compiler<'_, S> {
    /// Orders tasks so that callers come before callees; where that cannot be, senders of asynchronous requests may come later.
    pub(super) fn order(&mut self) -> Result<(), SolveError> {
        if let Some(order) = self.sorted(|source| source.node()) {
            self.set_order(order);
            return Ok(());
        }
        match self.sorted(Source::held) {
            Some(order) => {
                self.net.circular = true;
                self.set_order(order);
                Ok(())
            }
            None => Err(unsupported("a circle of blocking calls between tasks", format!("model \"{}\"", self.model.name))),
        }
    }

    fn set_order(&mut self, order: Vec<usize>) {
        for (position, &task) in order.iter().enumerate() {
            self.net.tasks[task].position = position;
        }
        self.net.order = order;
    }

    /// Tasks in an order in which those that send over arcs of a `sender` come before the receivers; none if they form a circle.
    fn sorted(&self, sender: impl Fn(Source) -> Option<usize>) -> Option<Vec<usize>> {
        let n = self.net.tasks.len();
        let mut callees = vec![Vec::new(); n];
        let mut n_callers = vec![0usize; n];
        for arc in &self.net.arcs {
            if let (Some(node), Some(target)) = (sender(arc.source), arc.target) {
                let (from, to) = (self.net.nodes[node].task, self.net.entries[target].task);
                callees[from].push(to);
                n_callers[to] += 1;
            }
        }
        let mut order = Vec::with_capacity(n);
        let mut ready: Vec<usize> = (0..n).rev().filter(|&t| n_callers[t] == 0).collect();
        while let Some(task) = ready.pop() {
            order.push(task);
            for &callee in &callees[task] {
                n_callers[callee] -= 1;
                if n_callers[callee] == 0 {
                    ready.push(callee);
                }
            }
        }
        (order.len() == n).then_some(order)
    }

    /// Bounds how many threads of a task can be busy by how many callers can wait for it.
    pub(super) fn caps(&mut self) {
        let mut callers: Vec<Option<Vec<usize>>> = vec![None; self.net.tasks.len()];
        for position in 0..self.net.order.len() {
            let task = self.net.order[position];
            let Some(station) = self.net.tasks[task].station else { continue };
            let mut of_task: Vec<usize> = Vec::new();
            let mut unlimited = self.net.tasks[task].entries.iter().any(|&e| self.net.goes_on_after_reply(e));
            for &a in &self.net.stations[station].arcs {
                match self.net.arcs[a].source {
                    Source::Held(node) => of_task.push(self.net.nodes[node].task),
                    Source::Detached(_) | Source::Open => unlimited = true,
                }
            }
            if unlimited {
                continue;
            }
            of_task.sort_unstable();
            of_task.dedup();
            let tasks = &self.net.tasks;
            // Strands of a fork are as many however many wait for their thread.
            let begun_by = |task: usize| callers[task].as_deref().filter(|_| tasks[task].width <= 1.0);
            let strands = |at: usize| tasks[at].cap * if of_task.contains(&at) { self.net.width_at(at, station) } else { tasks[at].width };
            let most = most_at_once(&of_task, begun_by, strands);
            self.net.tasks[task].at_once = most;
            self.net.tasks[task].cap = self.net.tasks[task].threads.min(most);
            let bounded_by = |&caller: &usize| self.net.tasks[caller].bounded_by;
            if let Some(pool) = of_task.first().map(bounded_by).filter(|pool| of_task.iter().all(|caller| bounded_by(caller) == *pool)) {
                self.bound(task, pool);
            }
            callers[task] = Some(of_task);
        }
    }

    /// A pool that alone calls tasks of no fewer threads is itself at their stations, all its threads together.
    fn bound(&mut self, task: usize, pool: usize) {
        let (it, its) = (&self.net.tasks[task], &self.net.tasks[pool]);
        let is_bound = its.class.is_none() && its.cap > 1.0 && its.cap <= it.threads && its.width <= 1.0 && it.width <= 1.0;
        if is_bound {
            self.net.tasks[task].bounded_by = pool;
        }
    }
}
