//! Names held once: tasks, operations and traces are numbered in order of first appearance.

use super::hashed::IndexSet;

/// A set of names, each with its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(IndexSet<Box<str>>);

impl Names {
    /// The number of `name`, a new one if it was not seen before.
    ///
    /// # Panics
    /// When there are more than `u32::MAX` names.
    pub fn intern(&mut self, name: &str) -> u32 {
        let index = match self.0.get_index_of(name) {
            Some(index) => index,
            None => self.0.insert_full(name.into()).0,
        };
        u32::try_from(index).expect("fewer than 2^32 distinct names")
    }

    /// The number of `name`, if it was seen.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.0.get_index_of(name).and_then(|i| u32::try_from(i).ok())
    }

    /// The name numbered `index`; the empty string for a number that was not given out.
    pub fn name(&self, index: u32) -> &str {
        self.0.get_index(index as usize).map_or("", |n| n)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }
}
