//! Semaphores and read-write locks in the course of an event.
//!
//! A semaphore lends its tokens to `wait` requests and takes one back when the service of a `signal` ends; a signal is accepted
//! once there is a token whose `wait` has been served and that no other signal is for, and signals are served one at a time. A
//! read-write lock admits up to `m` readers or one writer; a waiting writer keeps new readers out. A reader's unlock lets in those
//! who wait in order of arrival, a writer's unlock the next writer, else all readers.

use super::{
    course::{Course, Order},
    network::Lock,
    state::Request,
};
use crate::solve::{bind::unusable, role::Role};

impl Course<'_> {
    fn role(&self, entry: u32) -> Role {
        self.network.entries[entry as usize].role
    }

    /// Requests of `role` that are being served at a task.
    fn n_served(&self, task: usize, role: Role) -> usize {
        let at_task = |entry: u32| self.network.entries[entry as usize].task as usize == task && self.role(entry) == role;
        self.state.instances.iter().filter(|i| i.n_strands > 0 && at_task(i.entry)).count()
    }

    /// Takes what a request of `role` needs from a lock, if that is free.
    fn admit(&mut self, task: usize, role: Role) -> bool {
        let (waits, signals) = (self.n_served(task, Role::Wait), self.n_served(task, Role::Signal));
        let is_writer_waiting = self.state.servers[task].queue.iter().any(|r| self.role(r.entry) == Role::WriteLock);
        let limit = self.network.tasks[task].threads;
        let server = &mut self.state.servers[task];
        let held = server.held as usize;
        match role {
            Role::Signal => signals == 0 && held > waits,
            Role::Wait if held < limit => {
                server.held += 1;
                true
            }
            Role::ReadLock if !server.is_written && !is_writer_waiting && held < limit => {
                server.held += 1;
                true
            }
            Role::WriteLock if !server.is_written && held == 0 => {
                server.is_written = true;
                true
            }
            Role::ReadUnlock | Role::WriteUnlock => true,
            _ => false,
        }
    }

    /// A request arrives at a lock.
    pub(super) fn deliver_to_lock(&mut self, task: usize, request: Request) {
        let role = self.role(request.entry);
        if self.admit(task, role) {
            return self.accept(&request, Order::Ready);
        }
        if role == Role::Signal && self.state.servers[task].held == 0 {
            return self.fail_unheld(request.entry);
        }
        self.state.servers[task].queue.push(request);
    }

    /// A request to unlock a read-write lock for reading has been accepted.
    pub(super) fn unlock_reader(&mut self, task: usize, entry: u32) {
        self.give_back(task, entry);
        let limit = self.network.tasks[task].threads;
        while let Some(&request) = self.state.servers[task].queue.first() {
            let is_reader = self.role(request.entry) == Role::ReadLock;
            let server = &mut self.state.servers[task];
            let most = if is_reader { limit } else { 1 };
            if server.is_written || server.held as usize >= most {
                return;
            }
            server.queue.remove(0);
            if is_reader {
                server.held += 1;
            } else {
                server.is_written = true;
            }
            self.accept(&request, Order::Ready);
        }
    }

    /// A request to unlock a read-write lock for writing has been accepted: the readers are let in at once, where no
    /// writer waits.
    pub(super) fn unlock_writer(&mut self, task: usize, instance: u32) {
        if self.state.servers[task].queue.iter().any(|r| self.role(r.entry) == Role::WriteLock) {
            self.state.instances[instance as usize].holds_lock = true;
            return;
        }
        self.give_back(task, self.state.instances[instance as usize].entry);
        self.serve_role(task, Role::ReadLock);
    }

    /// The service of a request to a lock is over.
    pub(super) fn end_lock_service(&mut self, task: usize, entry: u32, holds_lock: bool) {
        if self.role(entry) == Role::Signal || holds_lock {
            self.give_back(task, entry);
        }
        match self.network.tasks[task].lock {
            Lock::Semaphore => {
                self.serve_role(task, Role::Signal);
                self.serve_role(task, Role::Wait);
            }
            _ => self.serve_role(task, Role::WriteLock),
        }
    }

    /// Accepts the waiting requests of `role` while they can be.
    fn serve_role(&mut self, task: usize, role: Role) {
        while let Some(place) = self.state.servers[task].queue.iter().position(|r| self.role(r.entry) == role) {
            let request = self.state.servers[task].queue.remove(place);
            if !self.admit(task, role) {
                self.state.servers[task].queue.insert(place, request);
                return;
            }
            self.accept(&request, Order::Ready);
        }
    }

    /// A request to `entry` gives back a token or lock.
    fn give_back(&mut self, task: usize, entry: u32) {
        let server = &mut self.state.servers[task];
        let taker = match self.network.entries[entry as usize].role {
            Role::WriteUnlock => {
                let was_held = std::mem::replace(&mut server.is_written, false);
                was_held.then_some(Role::WriteLock)
            }
            role => {
                let was_held = server.held > 0;
                server.held -= u32::from(was_held);
                was_held.then_some(if role == Role::Signal { Role::Wait } else { Role::ReadLock })
            }
        };
        let Some(taker) = taker else { return self.fail_unheld(entry) };
        if let Some(entry) = self.network.taker(task, taker) {
            self.counts.push(self.layout.gives(entry));
        }
    }

    fn fail_unheld(&mut self, entry: u32) {
        let first = self.network.entries[entry as usize].first;
        let name = first.map_or("", |a| &self.network.activities[a as usize].name);
        self.fail(unusable(format!("activity \"{name}\""), "it gives back a lock that nobody may hold then"));
    }
}
