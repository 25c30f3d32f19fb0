//! Tandem repeats of a sequence to loops, shortest period first.
//!
//! A run of r ≥ 2 equal blocks of p steps becomes one step, a loop of that block with the count r, for p = 1, 2, …; blocks are
//! equal if their labels are, whatever the counts of the loops in them. The passes are repeated while something changes.

use super::labels::{Label, Labels};

/// Longest block that is looked for, steps.
const LONGEST_PERIOD: usize = 64;
/// Longest sequence, after repeats of single steps, that is looked at further.
const LONGEST_SEQUENCE: usize = 4096;
/// Most times that all periods are tried.
const MOST_PASSES: usize = 8;

/// Counts of a label at one place of a structure: (count, how often), and the time before each of its occurrences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Slot {
    pub(in super::super) counts: Vec<(u64, u64)>,
    pub(in super::super) gap_ns: i64,
    pub(in super::super) n_gaps: u64,
}

/// A step of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Item {
    pub(in super::super) label: u32,
    /// How often in a row.
    pub(in super::super) count: u64,
    /// Time before it, over all its occurrences.
    pub(in super::super) gap_ns: i64,
    pub(in super::super) n_gaps: u64,
    /// The counts of the steps of a block.
    pub(in super::super) inner: Vec<Slot>,
}

impl Item {
    /// One step, `gap_ns` after what was before.
    pub(in super::super) fn single(label: u32, gap_ns: i64) -> Self {
        Self { label, count: 1, gap_ns, n_gaps: 1, inner: Vec::new() }
    }

    fn slot(self) -> (Slot, Vec<Slot>) {
        (Slot { counts: vec![(self.count, 1)], gap_ns: self.gap_ns, n_gaps: self.n_gaps }, self.inner)
    }
}

/// Collapses a sequence in place. `false` if it is too long to say what its structure is.
pub(in super::super) fn collapse(items: &mut Vec<Item>, labels: &mut Labels) -> bool {
    for _ in 0..MOST_PASSES {
        collapse_singles(items);
        if items.len() > LONGEST_SEQUENCE {
            return false;
        }
        let n_before = items.len();
        for period in 2..=LONGEST_PERIOD.min(items.len() / 2) {
            if period > items.len() / 2 {
                break;
            }
            collapse_period(items, period, labels);
        }
        if items.len() == n_before {
            break;
        }
    }
    true
}

fn collapse_singles(items: &mut Vec<Item>) {
    items.dedup_by(|later, earlier| {
        let same = later.label == earlier.label;
        if same {
            earlier.count += later.count;
            earlier.gap_ns += later.gap_ns;
            earlier.n_gaps += later.n_gaps;
            add_slots(&mut earlier.inner, std::mem::take(&mut later.inner));
        }
        same
    });
}

/// Whether two equal blocks of `period` steps follow one another anywhere.
fn has_repeat(items: &[Item], period: usize) -> bool {
    let mut n_equal = 0;
    items.iter().zip(&items[period..]).any(|(item, later)| {
        n_equal = if item.label == later.label { n_equal + 1 } else { 0 };
        n_equal == period
    })
}

fn collapse_period(items: &mut Vec<Item>, period: usize, labels: &mut Labels) {
    if !has_repeat(items, period) {
        return;
    }
    let label = |items: &[Item], at: usize| items[at].label;
    let mut kept: Vec<Item> = Vec::new();
    let mut start = 0;
    while start < items.len() {
        let mut end = start + period;
        while end + period <= items.len() && (0..period).all(|i| label(items, start + i) == label(items, end + i)) {
            end += period;
        }
        let n_repeats = (end - start) / period;
        let block = (n_repeats >= 2 && end <= items.len())
            .then(|| items[start..start + period].iter().map(|item| item.label).collect::<Box<[u32]>>())
            .and_then(|steps| labels.intern(Label::Block(steps)));
        match block {
            Some(block) => {
                kept.push(loop_of(block, n_repeats, &mut items[start..end], period));
                start = end;
            }
            None => {
                kept.push(std::mem::replace(&mut items[start], Item::single(0, 0)));
                start += 1;
            }
        }
    }
    *items = kept;
}

fn loop_of(block: u32, n_repeats: usize, items: &mut [Item], period: usize) -> Item {
    let mut inner: Vec<Slot> = Vec::new();
    for step in 0..period {
        let mut slots: Vec<Slot> = Vec::new();
        for item in items.iter_mut().skip(step).step_by(period) {
            let (own, deeper) = std::mem::replace(item, Item::single(0, 0)).slot();
            add_slots(&mut slots, [own].into_iter().chain(deeper).collect());
        }
        inner.extend(slots);
    }
    Item { label: block, count: n_repeats as u64, gap_ns: 0, n_gaps: 0, inner }
}

/// Adds counts to those of the same places.
fn add_slots(to: &mut Vec<Slot>, from: Vec<Slot>) {
    if to.is_empty() {
        *to = from;
        return;
    }
    for (to, from) in to.iter_mut().zip(from) {
        to.gap_ns += from.gap_ns;
        to.n_gaps += from.n_gaps;
        for (count, times) in from.counts {
            match to.counts.iter_mut().find(|(known, _)| *known == count) {
                Some((_, known)) => *known += times,
                None => to.counts.push((count, times)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A collapsed sequence in short: letters, `(ab)3` a loop.
    fn check(sequence: &str, expected: &str) {
        let mut labels = Labels::default();
        let label = |location: u32| Label::Call { location, kind: super::super::CallKind::Sync };
        (0..26).for_each(|location| _ = labels.intern(label(location)));
        let mut items: Vec<Item> = sequence.bytes().map(|b| Item::single(u32::from(b - b'a'), 1)).collect();
        assert!(collapse(&mut items, &mut labels));
        let n_calls: u64 = items.iter().map(|item| item.n_gaps + item.inner.iter().map(|slot| slot.n_gaps).sum::<u64>()).sum();
        assert_eq!(n_calls, sequence.len() as u64, "every call keeps the time before it");
        let shown: Vec<String> = items.iter().map(|item| show(item, &labels)).collect();
        assert_eq!(shown.concat(), expected, "{sequence}");
    }

    fn show(item: &Item, labels: &Labels) -> String {
        let text = show_label(item.label, labels);
        if item.count == 1 { text } else { format!("{text}{}", item.count) }
    }

    fn show_label(label: u32, labels: &Labels) -> String {
        match labels.get(label) {
            Some(Label::Block(steps)) => format!("({})", steps.iter().map(|step| show_label(*step, labels)).collect::<String>()),
            _ => char::from(b'a' + label as u8).to_string(),
        }
    }

    #[test]
    fn repeats_become_loops_shortest_period_first() {
        check("", "");
        check("abc", "abc");
        check("abb", "ab2");
        check("ababab", "(ab)3");
        check("aabaab", "(ab)2");
        check("xabcabcabcy", "x(abc)3y");
        check("ababcababc", "((ab)c)2");
    }

    #[test]
    fn inner_counts_are_pooled() {
        let mut labels = Labels::default();
        (0..2).for_each(|location| _ = labels.intern(Label::Call { location, kind: super::super::CallKind::Sync }));
        let mut items: Vec<Item> = [0, 1, 1, 0, 1, 1, 1, 0, 1, 1].into_iter().map(|label| Item::single(label, 5)).collect();
        assert!(collapse(&mut items, &mut labels));
        assert_eq!((items.len(), items[0].count), (1, 3));
        assert_eq!(items[0].inner[0], Slot { counts: vec![(1, 3)], gap_ns: 15, n_gaps: 3 });
        assert_eq!(items[0].inner[1], Slot { counts: vec![(2, 2), (3, 1)], gap_ns: 35, n_gaps: 7 });
    }

    #[test]
    fn a_long_sequence_without_repeats_is_given_up() {
        let mut labels = Labels::default();
        let mut items: Vec<Item> = (0..5000).map(|i| Item::single(i, 0)).collect();
        assert!(!collapse(&mut items, &mut labels));
    }
}
