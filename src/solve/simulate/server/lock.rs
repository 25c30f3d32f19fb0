//! Semaphores and read-write locks: who gets what is given back.

use super::{Order, Request, State};
use crate::solve::{
    bind::unusable,
    role::Role,
    simulate::{network::Watched, queue::Queue, run::Run},
};

impl Run<'_> {
    /// A writer's unlock lets the readers in at once, where no writer waits.
    pub(in crate::solve::simulate) fn accept_write_unlock(&mut self, instance: u32, task: u32) {
        let State::RwLock { writes, .. } = &self.servers[task as usize].state else { return };
        if writes.len() > 0 {
            self.instances.items[instance as usize].holds_lock = true;
            return;
        }
        self.give_back(task, Role::WriteUnlock);
        self.serve_role(task, Role::ReadLock);
    }

    /// Accepts who waits for a read-write lock in order of arrival.
    pub(in crate::solve::simulate) fn serve_after_reader(&mut self, task: u32) {
        loop {
            let State::RwLock { limit, readers, writer, reads, writes } = &self.servers[task as usize].state else { return };
            let order = |queue: &Queue<Request>| queue.first().map_or(u64::MAX, |r| r.order);
            let reader_is_next = order(reads) < order(writes);
            let is_free = writer.is_none() && if reader_is_next { readers.len() < *limit } else { readers.is_empty() };
            let role = if reader_is_next { Role::ReadLock } else { Role::WriteLock };
            let Some(queue) = self.servers[task as usize].queue(role).filter(|_| is_free) else { return };
            let Some(request) = queue.pop(&mut self.streams[task as usize]) else { return };
            let State::RwLock { readers, writer, .. } = &mut self.servers[task as usize].state else { return };
            if reader_is_next {
                readers.push_back(self.now);
            } else {
                *writer = Some(self.now);
            }
            self.accept(&request, Order::Ready);
        }
    }

    /// A request of `role` gives back a token or lock.
    pub(in crate::solve::simulate) fn give_back(&mut self, task: u32, role: Role) {
        let returned = match (&mut self.servers[task as usize].state, role) {
            (State::Semaphore { free, lent, .. }, _) => {
                *free += usize::from(!lent.is_empty());
                lent.pop_front().map(|s| (Role::Wait, s))
            }
            (State::RwLock { readers, .. }, Role::ReadUnlock) => readers.pop_front().map(|s| (Role::ReadLock, s)),
            (State::RwLock { writer, .. }, _) => writer.take().map(|s| (Role::WriteLock, s)),
            _ => return,
        };
        let Some((role, since)) = returned else { return self.fail_unheld(task) };
        self.count_cycle(task);
        let entries = self.network.tasks[task as usize].entries.clone();
        if let Some(taker) = entries.map(|e| &self.network.entries[e as usize]).find(|e| e.role == role) {
            let place = self.statistics.layout.holding(taker.origin as usize);
            self.statistics.tally_with_square(place, self.now - since);
            let task = self.network.tasks[task as usize].origin as usize;
            self.statistics.watch(Watched::Holding { task }, self.now - since);
        }
    }

    pub(in crate::solve::simulate) fn fail_unheld(&mut self, task: u32) {
        let element = format!("task \"{}\"", self.network.task_name(task));
        self.fail(unusable(element, format!("at time {} it is given back a lock that nobody holds", self.now)));
    }
}
