//! Maps and sets for what is looked up at every event of a trace.
//!
//! Their hashes (foldhash) are several times as quick on short keys as those of the standard library, and seeded anew in each
//! process, so that a trace cannot be made beforehand of names that collide. Nothing that is found depends on their order.

use foldhash::fast::RandomState;

/// A map without order.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A set without order.
pub type HashSet<K> = std::collections::HashSet<K, RandomState>;
/// A map in order of insertion.
pub type IndexMap<K, V> = indexmap::IndexMap<K, V, RandomState>;
/// A set in order of insertion.
pub type IndexSet<K> = indexmap::IndexSet<K, RandomState>;
