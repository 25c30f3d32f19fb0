//! What a step of a flow is.

use crate::trace::hashed::IndexSet;

/// Most labels; beyond, no new loops over several calls are formed.
const MOST_LABELS: usize = 1 << 16;

/// How an external service is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) enum CallKind {
    Sync,
    Async,
}

/// A marked action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) enum SubKind {
    Internal,
    Branch,
    Loop,
    Iteration,
}

/// A step of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Label {
    /// A call of a service.
    Call { location: u32, kind: CallKind },
    /// A marked action of this method.
    Sub { kind: SubKind, location: u32 },
    /// Several steps, repeated.
    Block(Box<[u32]>),
}

/// The labels in use, numbered; a block has a higher number than its steps.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Labels {
    labels: IndexSet<Label>,
    /// How many counts there are of each label: its own, and those of its steps.
    n_slots: Vec<usize>,
    /// Numbers of calls by service, synchronous and asynchronous; `u32::MAX` where there is none.
    calls: Vec<[u32; 2]>,
}

impl Labels {
    /// The number of a label; `None` where a block would be one too many.
    pub(in super::super) fn intern(&mut self, label: Label) -> Option<u32> {
        let Label::Call { location, kind } = label else { return self.number(label) };
        let at = location as usize;
        if at >= self.calls.len() {
            self.calls.resize(at + 1, [u32::MAX; 2]);
        }
        if self.calls[at][kind as usize] == u32::MAX {
            self.calls[at][kind as usize] = self.number(label)?;
        }
        Some(self.calls[at][kind as usize])
    }

    fn number(&mut self, label: Label) -> Option<u32> {
        if let Some(number) = self.labels.get_index_of(&label) {
            return Some(number as u32);
        }
        let n_slots = match &label {
            Label::Block(steps) => 1 + steps.iter().map(|step| self.n_slots(*step)).sum::<usize>(),
            _ => 1,
        };
        if matches!(label, Label::Block(_)) && (self.labels.len() >= MOST_LABELS || n_slots > 1024) {
            return None;
        }
        self.n_slots.push(n_slots);
        Some(self.labels.insert_full(label).0 as u32)
    }

    pub(in super::super) fn get(&self, label: u32) -> Option<&Label> {
        self.labels.get_index(label as usize)
    }

    pub(in super::super) fn n_slots(&self, label: u32) -> usize {
        self.n_slots.get(label as usize).copied().unwrap_or(1)
    }

    pub(in super::super) fn iter(&self) -> impl Iterator<Item = &Label> {
        self.labels.iter()
    }
}
