//! What requests are like as a rule, learned from those whose spans all came, for those of which some are lost.
//!
//! Input: forests with corrected clocks and divided phases; output: by votes, who serves a request, who makes it, which
//! entries are roots, and in which phase an entry makes a call. From [`ENOUGH`] votes on a habit is known; of phases, where one
//! has more votes than the other.

use std::{collections::HashMap, hash::Hash};

use super::{
    catalog::{Catalog, Renumbered},
    forest::{Forest, Occ, Origin},
    timing::ENOUGH,
    tree::Tree,
};

/// An entry: task and name (numbers of [`Catalog::names`]).
pub type EntryName = (u32, u32);

/// A request as its client names it: the client's task, the task and the entry asked.
pub type Asked = (u32, u32, u32);

/// Most keys of one kind that are remembered.
const MAX_KEYS: usize = 100_000;
/// Most answers to one question that are told apart.
const MAX_ANSWERS: usize = 32;

/// Votes by key.
#[derive(Clone, Debug)]
struct Votes<K> {
    by_key: HashMap<K, Vec<(EntryName, u64)>>,
}

impl<K> Default for Votes<K> {
    fn default() -> Self {
        Self { by_key: HashMap::new() }
    }
}

impl<K: Eq + Hash + Copy> Votes<K> {
    fn add(&mut self, key: K, answer: EntryName, n: u64) {
        if self.by_key.len() >= MAX_KEYS && !self.by_key.contains_key(&key) {
            return;
        }
        let answers = self.by_key.entry(key).or_default();
        match answers.iter().position(|(known, _)| *known == answer) {
            Some(known) => answers[known].1 += n,
            None if answers.len() < MAX_ANSWERS => answers.push((answer, n)),
            None => {}
        }
    }

    /// All answers, where there are votes enough.
    fn known(&self, key: K) -> &[(EntryName, u64)] {
        let answers = self.by_key.get(&key).map_or(&[][..], Vec::as_slice);
        if answers.iter().map(|(_, votes)| votes).sum::<u64>() >= ENOUGH { answers } else { &[] }
    }

    fn absorb(&mut self, other: Self, key: impl Fn(K) -> K, names: &[u32]) {
        for (theirs, answers) in other.by_key {
            for ((task, name), votes) in answers {
                self.add(key(theirs), (names[task as usize], names[name as usize]), votes);
            }
        }
    }
}

/// What is known of requests.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    served: Votes<Asked>,
    makers: Votes<Asked>,
    callers: Votes<EntryName>,
    roots: Votes<EntryName>,
    /// Calls made in phases 1 and 2, by entry, entry called and whether asynchronous.
    phases: HashMap<(u32, u32, bool), [u64; 2]>,
}

fn entry_name(occ: &Occ) -> EntryName {
    (occ.task, occ.name)
}

/// What the client's span of a request asks for.
pub fn asked(tree: &Tree, catalog: &Catalog, piece: usize) -> Asked {
    let label = catalog.label(tree.pieces[piece].label);
    (label.task, label.peer.task, label.peer.name)
}

impl Habits {
    /// Learns from a forest; what of it is only known in part teaches nothing, nor does what the clock, which shows multiples of
    /// `resolution_ns`, leaves open.
    pub fn learn(&mut self, forest: &Forest, tree: &Tree, catalog: &Catalog, resolution_ns: i64) {
        for root in forest.roots.iter().filter(|root| !root.is_orphan) {
            let occ = &forest.occs[root.occ as usize];
            if occ.origin == Origin::Served {
                self.roots.add(entry_name(occ), entry_name(occ), 1);
            }
        }
        let mut is_orphan = vec![false; forest.occs.len()];
        forest.roots.iter().filter(|root| root.is_orphan).for_each(|root| is_orphan[root.occ as usize] = true);
        for call in &forest.calls {
            let (from, to) = (&forest.occs[call.from as usize], &forest.occs[call.to as usize]);
            if from.origin != Origin::Served || !call.has_client {
                continue;
            }
            let asked = asked(tree, catalog, call.piece as usize);
            self.makers.add(asked, entry_name(from), 1);
            if call.has_server && to.origin == Origin::Served {
                self.served.add(asked, entry_name(to), 1);
                self.callers.add(entry_name(to), entry_name(from), 1);
            }
            let key = (from.entry, to.entry, call.is_async);
            let is_told = !is_orphan[call.from as usize] && !from.is_partial && !call.is_at(from.reply_ns, resolution_ns);
            if is_told && (self.phases.len() < MAX_KEYS || self.phases.contains_key(&key)) {
                self.phases.entry(key).or_default()[usize::from((call.phase == 2) != call.is_moved)] += 1;
            }
        }
    }

    /// The entry that serves a request as a rule.
    pub fn server(&self, asked: Asked) -> Option<EntryName> {
        let answers = self.served.known(asked);
        let n: u64 = answers.iter().map(|(_, votes)| votes).sum();
        answers.iter().find(|(_, votes)| votes * 2 > n).map(|(entry, _)| *entry)
    }

    /// The entries that make a request; none if it is not known.
    pub fn makers(&self, asked: Asked) -> impl Iterator<Item = EntryName> {
        self.makers.known(asked).iter().map(|(entry, _)| *entry)
    }

    /// The entries that call an entry; none if it is not known.
    pub fn callers(&self, entry: EntryName) -> impl Iterator<Item = EntryName> {
        self.callers.known(entry).iter().map(|(caller, _)| *caller)
    }

    /// Whether an entry starts traces, and is called by no other.
    pub fn is_root(&self, entry: EntryName) -> bool {
        !self.roots.known(entry).is_empty() && !self.callers.by_key.contains_key(&entry)
    }

    /// The phase in which `caller` calls `called` (numbers of entries) as a rule.
    pub fn phase(&self, caller: u32, called: u32, is_async: bool) -> Option<u8> {
        let [first, second] = *self.phases.get(&(caller, called, is_async))?;
        (first != second).then_some(if first > second { 1 } else { 2 })
    }

    /// The same, where there are votes enough and hardly any for the other phase.
    pub fn nearly_always(&self, caller: u32, called: u32, is_async: bool) -> Option<u8> {
        let [first, second] = *self.phases.get(&(caller, called, is_async))?;
        let is_clear = first + second >= ENOUGH && first.min(second) * 10 <= first.max(second);
        is_clear.then_some(if first > second { 1 } else { 2 })
    }

    /// Takes over what `other` learned; `numbers` are those here of what it numbers.
    pub fn absorb(&mut self, other: Self, numbers: &Renumbered) {
        let names = &numbers.names;
        let name = |number: u32| names[number as usize];
        let asked = |(task, peer, entry): Asked| (name(task), name(peer), name(entry));
        let entry = |(task, entry): EntryName| (name(task), name(entry));
        self.served.absorb(other.served, asked, names);
        self.makers.absorb(other.makers, asked, names);
        self.callers.absorb(other.callers, entry, names);
        self.roots.absorb(other.roots, entry, names);
        for ((caller, called, is_async), theirs) in other.phases {
            let here = self.phases.entry((numbers.entry(caller), numbers.entry(called), is_async)).or_default();
            here.iter_mut().zip(theirs).for_each(|(here, there)| *here += there);
        }
    }
}
