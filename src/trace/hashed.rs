//! Maps and sets for what is looked up at every event of a trace.
//!
//! Their hashes (foldhash) are several times as quick on short keys as those of the standard library, and seeded anew in each
//! process, so that a trace cannot be made beforehand of names that collide. Nothing that is found depends on their order.

use foldhash::fast::RandomState;
use indexmap::Equivalent;

/// Whether two slices hold the same. Nothing is compared where they are empty: an empty box has no memory behind its address, and
/// comparing no bytes there takes some processors longer than comparing many.
pub fn alike<T: PartialEq>(a: &[T], b: &[T]) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

/// What is looked up where keys are slices in boxes, compared by [`alike`].
#[derive(Clone, Copy, Debug, Hash)]
pub struct Slice<'k, T>(pub &'k [T]);

impl<T: PartialEq> Equivalent<Box<[T]>> for Slice<'_, T> {
    fn equivalent(&self, key: &Box<[T]>) -> bool {
        alike(self.0, key)
    }
}

/// A map without order.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A set without order.
pub type HashSet<K> = std::collections::HashSet<K, RandomState>;
/// A map in order of insertion.
pub type IndexMap<K, V> = indexmap::IndexMap<K, V, RandomState>;
/// A set in order of insertion.
pub type IndexSet<K> = indexmap::IndexSet<K, RandomState>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_found_whether_they_hold_anything() {
        let keys: [&[u32]; 4] = [&[], &[1], &[1, 2], &[2, 1]];
        let map: IndexMap<Box<[u32]>, ()> = keys.iter().map(|key| ((*key).into(), ())).collect();
        for (place, key) in keys.into_iter().enumerate() {
            assert_eq!(map.get_index_of(&Slice(key)), Some(place));
            assert!(keys.iter().enumerate().all(|(other, one)| alike(key, one) == (place == other)));
        }
        assert_eq!(map.get_index_of(&Slice(&[3])), None);
    }
}
