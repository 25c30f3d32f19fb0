//! What is known of the units of a recording, by their numbers.
//!
//! The numbers are those of a log, of which a recording may show few: numbers that are not much greater than there are units are
//! looked up by their position, others by their hash, so that what is held does not grow with the units of the log.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

use smallvec::SmallVec;

use super::NodeId;
use crate::trace::Time;

/// Positions for each unit at the most, and those that are there for few units.
const POSITIONS_OF_UNIT: usize = 8;
const FEW_POSITIONS: usize = 64;

/// Operations that are kept with their unit; further ones are looked up by their hash.
const FEW_OPERATIONS: usize = 4;

/// A unit.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitState {
    pub(super) live: Option<NodeId>,
    /// Occurrences so far.
    pub(super) n_occurrences: u32,
    /// The occurrence that ended last, if nothing was accepted since, and when it sent its last message.
    pub(super) ended: Option<(usize, Option<Time>)>,
    /// The first operations by which it was requested.
    requested: SmallVec<[u32; FEW_OPERATIONS]>,
}

/// All units that did something.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitStates {
    states: Vec<UnitState>,
    /// The place of each unit in `states` and one more; 0 of those that are not there.
    by_position: Vec<u32>,
    by_hash: HashMap<u32, u32, Hashed>,
    /// Operations by which units were requested, but for the first ones.
    requested: HashSet<(u32, u32), Hashed>,
}

impl UnitStates {
    #[inline]
    pub(super) fn get(&self, unit: u32) -> Option<&UnitState> {
        self.place(unit).map(|place| &self.states[place])
    }

    /// The state of a unit, a new one if it was not seen before.
    #[inline]
    pub(super) fn at(&mut self, unit: u32) -> &mut UnitState {
        let place = self.place(unit).unwrap_or_else(|| self.add(unit));
        &mut self.states[place]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &UnitState> {
        self.states.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut UnitState> {
        self.states.iter_mut()
    }

    /// The unit was requested by this operation.
    #[inline]
    pub(super) fn request(&mut self, unit: u32, operation: u32) {
        let requested = &mut self.at(unit).requested;
        if requested.contains(&operation) {
            return;
        }
        if requested.len() < FEW_OPERATIONS {
            requested.push(operation);
        } else {
            self.requested.insert((unit, operation));
        }
    }

    #[inline]
    pub(super) fn was_requested(&self, unit: u32, operation: u32) -> bool {
        let Some(UnitState { requested, .. }) = self.get(unit) else { return false };
        requested.contains(&operation) || (requested.len() == FEW_OPERATIONS && self.requested.contains(&(unit, operation)))
    }

    #[inline]
    fn place(&self, unit: u32) -> Option<usize> {
        match self.by_position.get(unit as usize) {
            Some(place @ 1..) => Some(*place as usize - 1),
            _ => self.by_hash.get(&unit).map(|place| *place as usize),
        }
    }

    fn add(&mut self, unit: u32) -> usize {
        let place = self.states.len();
        self.states.push(UnitState::default());
        let position = unit as usize;
        if position < FEW_POSITIONS.max(POSITIONS_OF_UNIT * self.states.len()) {
            self.by_position.resize(self.by_position.len().max(position + 1), 0);
            self.by_position[position] = place as u32 + 1;
        } else {
            self.by_hash.insert(unit, place as u32);
        }
        place
    }
}

/// Hashes numbers of units, which no log can choose.
#[derive(Clone, Copy, Debug, Default)]
struct UnitHasher(u64);

impl Hasher for UnitHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

type Hashed = BuildHasherDefault<UnitHasher>;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the numbers of units and operations, and whatever order they come in.
        #[test]
        fn states_and_requests_are_those_of_their_unit(seen in prop::collection::vec((prop_oneof![0..40_u32, 0..2_000_u32, any::<u32>()], 0..9_u32), 0..300)) {
            let mut units = UnitStates::default();
            let (mut n_of, mut requested) = (HashMap::new(), HashSet::new());
            for (unit, operation) in seen {
                prop_assert_eq!(units.get(unit).map(|state| state.n_occurrences), n_of.get(&unit).copied());
                prop_assert_eq!(units.was_requested(unit, operation), requested.contains(&(unit, operation)));
                units.at(unit).n_occurrences += 1;
                *n_of.entry(unit).or_insert(0) += 1;
                units.request(unit, operation);
                requested.insert((unit, operation));
            }
            prop_assert!(n_of.iter().all(|(unit, n)| units.get(*unit).map(|state| state.n_occurrences) == Some(*n)));
            prop_assert!(requested.iter().all(|(unit, operation)| units.was_requested(*unit, *operation)));
            prop_assert_eq!(units.iter().count(), n_of.len());
            prop_assert!(units.by_position.len() <= FEW_POSITIONS.max(POSITIONS_OF_UNIT * n_of.len()));
        }
    }
}
