//! The call paths of one request by their keys: most requests have one or a few.

use std::{
    hash::Hash,
    ops::{Index, IndexMut},
};

use indexmap::Equivalent;

use super::live::{OwnedKey, Transaction};
use crate::trace::hashed::IndexSet;

/// Call paths up to which they are looked through one by one.
const FEW: usize = 8;

/// Call paths in order of their first records.
#[derive(Clone, Debug, Default)]
pub(super) struct Transactions {
    all: Vec<(OwnedKey, Transaction)>,
    /// Their keys, where they are more than a few.
    keys: IndexSet<OwnedKey>,
}

impl Transactions {
    /// The place of the call path with this key.
    pub(super) fn get_index_of(&self, key: &(impl Equivalent<OwnedKey> + Hash)) -> Option<usize> {
        if self.all.len() > FEW {
            return self.keys.get_index_of(key);
        }
        self.all.iter().position(|(known, _)| key.equivalent(known))
    }

    /// The place of the call path with this key; of a new one without records, if there was none.
    pub(super) fn place<K: Equivalent<OwnedKey> + Hash + Into<OwnedKey>>(&mut self, key: K) -> usize {
        if let Some(known) = self.get_index_of(&key) {
            return known;
        }
        let key = key.into();
        match self.all.len() {
            0..FEW => {}
            FEW => self.keys = self.all.iter().map(|(known, _)| known.clone()).chain([key.clone()]).collect(),
            _ => _ = self.keys.insert(key.clone()),
        }
        self.all.push((key, Transaction::default()));
        self.all.len() - 1
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Transaction> {
        self.all.iter().map(|(_, transaction)| transaction)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Transaction> {
        self.all.iter_mut().map(|(_, transaction)| transaction)
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (OwnedKey, Transaction)> {
        self.all.into_iter()
    }
}

impl Index<usize> for Transactions {
    type Output = Transaction;

    fn index(&self, place: usize) -> &Transaction {
        &self.all[place].1
    }
}

impl IndexMut<usize> for Transactions {
    fn index_mut(&mut self, place: usize) -> &mut Transaction {
        &mut self.all[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::call_path::Key;

    #[test]
    fn few_and_many_are_found_by_their_keys() {
        let names: Vec<String> = (0..40).map(|n| format!("t{n}")).collect();
        let mut transactions = Transactions::default();
        for n in 0..40_usize {
            let key = |n: usize| if n.is_multiple_of(2) { Key::Number(n as i64) } else { Key::Text(&names[n]) };
            assert_eq!(transactions.get_index_of(&key(n)), None);
            assert_eq!(transactions.place(key(n)), n);
            for known in 0..=n {
                assert_eq!(transactions.place(OwnedKey::from(key(known))), known);
                assert_eq!(transactions.get_index_of(&key(known)), Some(known));
            }
        }
        assert_eq!((transactions.len(), transactions.values().count()), (40, 40));
    }
}
