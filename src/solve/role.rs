//! Roles of entries in semaphores and read-write locks.

use crate::model::{Entry, RwLockRole, SemaphoreRole};

/// Role of an entry in a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No lock.
    Plain,
    /// Takes a token.
    Wait,
    /// Gives a token back.
    Signal,
    /// Takes a read lock.
    ReadLock,
    /// Gives a read lock back.
    ReadUnlock,
    /// Takes the write lock.
    WriteLock,
    /// Gives the write lock back.
    WriteUnlock,
}

impl Role {
    /// That of an entry of the model.
    pub(super) fn of(entry: &Entry) -> Self {
        match (entry.semaphore, entry.rwlock) {
            (Some(SemaphoreRole::Wait), _) => Self::Wait,
            (Some(SemaphoreRole::Signal), _) => Self::Signal,
            (None, Some(RwLockRole::RLock)) => Self::ReadLock,
            (None, Some(RwLockRole::RUnlock)) => Self::ReadUnlock,
            (None, Some(RwLockRole::WLock)) => Self::WriteLock,
            (None, Some(RwLockRole::WUnlock)) => Self::WriteUnlock,
            (None, None) => Self::Plain,
        }
    }
}
