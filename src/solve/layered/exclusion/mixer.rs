//! Hashing of places in lists.

use std::hash::{BuildHasherDefault, Hasher};

/// Hashes small integers by a multiplication each (Knuth 1973, section 6.4); they are places in lists, and nobody's choice.
#[derive(Clone, Default)]
pub(super) struct Mixer(u64);

pub(super) type Mixing = BuildHasherDefault<Mixer>;

/// 2⁶⁴ over the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }

    fn write_u32(&mut self, i: u32) {
        self.write_u64(u64::from(i));
    }

    fn write_u64(&mut self, i: u64) {
        self.0 = (self.0.rotate_left(32) ^ i).wrapping_mul(GOLDEN);
    }

    fn write_usize(&mut self, i: usize) {
        self.write_u64(i as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
