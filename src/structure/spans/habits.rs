//! What requests are like as a rule, learned from those whose spans all came, for those of which some are lost.
//!
//! Input: forests with corrected clocks and divided phases; output: by votes, who serves a request, who makes it, which
//! entries are roots, and in which phase an entry makes a call. From [`ENOUGH`] votes on a habit is known; of phases, where one
//! has more votes than the other.
//!
//! Traces of which all that was recorded hangs below one parent that was not are counted apart. Where requests for an entry often come
//! so ([`OFTEN`]), whoever makes them is not traced; that a request's both callers were lost is rare.

use std::{collections::hash_map::Entry, hash::Hash};

use super::{
    catalog::{Catalog, Renumbered},
    forest::{Forest, Occ, Origin},
    timing::ENOUGH,
    tree::{Role, Tree},
};
use crate::trace::hashed::HashMap;

/// An entry: task and name (numbers of [`Catalog::names`]).
pub type EntryName = (u32, u32);

/// A request as its client names it: the client's task, the task and the entry asked.
pub type Asked = (u32, u32, u32);

/// Share of the requests for an entry, one in so many, from which on losses are not what leaves them without their callers.
const OFTEN: u64 = 20;

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
        Self { by_key: HashMap::default() }
    }
}

impl<K: Eq + Hash + Copy> Votes<K> {
    fn add(&mut self, key: K, answer: EntryName, n: u64) {
        let has_room = self.by_key.len() < MAX_KEYS;
        let answers = match self.by_key.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) if has_room => new.insert(Vec::new()),
            Entry::Vacant(_) => return,
        };
        match answers.iter().position(|(known, _)| *known == answer) {
            Some(known) => answers[known].1 += n,
            None if answers.len() < MAX_ANSWERS => answers.push((answer, n)),
            None => {}
        }
    }

    /// All answers: none of them where votes are too few, `None` without any.
    fn known(&self, key: K) -> Option<&[(EntryName, u64)]> {
        let answers = self.by_key.get(&key)?;
        Some(if total(answers) >= ENOUGH { answers } else { &[] })
    }

    /// The only answer that there is, however few votes it has.
    fn only(&self, key: K) -> Option<EntryName> {
        match self.by_key.get(&key)?.as_slice() {
            [(only, _)] => Some(*only),
            _ => None,
        }
    }

    fn n_votes(&self, key: K) -> u64 {
        self.by_key.get(&key).map_or(0, |answers| total(answers))
    }

    fn absorb(&mut self, other: Self, key: impl Fn(K) -> K, names: &[u32]) {
        for (theirs, answers) in other.by_key {
            for ((task, name), votes) in answers {
                self.add(key(theirs), (names[task as usize], names[name as usize]), votes);
            }
        }
    }
}

fn total(answers: &[(EntryName, u64)]) -> u64 {
    answers.iter().map(|(_, votes)| votes).sum()
}

/// Calls made in phases 1 and 2.
#[derive(Clone, Copy, Debug, Default)]
struct InPhases {
    /// Where the clocks tell.
    clear: [u64; 2],
    /// Where they leave it open: by the likeliest difference.
    open: [u64; 2],
    /// Of those that are not waited for as they seem to be under way at the reply: how many end within the caller's span.
    within: u64,
}

impl InPhases {
    fn n(&self) -> u64 {
        self.clear.iter().chain(&self.open).sum()
    }
}

/// What is known of requests.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    served: Votes<Asked>,
    makers: Votes<Asked>,
    callers: Votes<EntryName>,
    roots: Votes<EntryName>,
    /// Of entries, and of requests: how often they are all that is below the one parent that a trace lacks.
    alone: (Votes<EntryName>, Votes<Asked>),
    /// Calls made by entry, entry called and whether asynchronous.
    phases: HashMap<(u32, u32, bool), InPhases>,
}

fn entries(answers: &[(EntryName, u64)]) -> Vec<EntryName> {
    answers.iter().map(|(entry, _)| *entry).collect()
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
    /// Learns from a forest that was made without habits; what of it is only known in part teaches nothing, nor does what the clock,
    /// which shows multiples of `resolution_ns`, leaves open.
    pub fn learn(&mut self, forest: &Forest, tree: &Tree, catalog: &Catalog, resolution_ns: i64) {
        for root in forest.roots.iter().filter(|root| !root.is_orphan) {
            let occ = &forest.occs[root.occ as usize];
            if occ.origin == Origin::Served {
                self.roots.add(entry_name(occ), entry_name(occ), 1);
            }
        }
        self.learn_alone(tree, catalog);
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
            if !is_told {
                continue;
            }
            let has_room = self.phases.len() < MAX_KEYS;
            let counted = match self.phases.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) if has_room => new.insert(InPhases::default()),
                Entry::Vacant(_) => continue,
            };
            let by_clocks = if call.is_open { &mut counted.open } else { &mut counted.clear };
            by_clocks[usize::from(call.phase == 2)] += 1;
            counted.within += u64::from(call.ends_within);
        }
    }

    fn learn_alone(&mut self, tree: &Tree, catalog: &Catalog) {
        let is_alone = tree.traces_of_one_orphan();
        for i in (0..tree.len()).filter(|i| tree.is_orphan[*i] && is_alone[tree.pieces[*i].trace as usize]) {
            let label = catalog.label(tree.pieces[i].label);
            let entry = (label.task, label.name);
            match tree.role[i] {
                Role::Entry => self.alone.0.add(entry, entry, 1),
                Role::Call => self.alone.1.add(asked(tree, catalog, i), entry, 1),
                _ => {}
            }
        }
    }

    /// The entry that serves a request as a rule.
    pub fn server(&self, asked: Asked) -> Option<EntryName> {
        let answers = self.served.known(asked)?;
        let n = total(answers);
        answers.iter().find(|(_, votes)| votes * 2 > n).map(|(entry, _)| *entry)
    }

    /// The entries that make a request: none if too few traces tell, `None` if no trace does.
    pub fn makers(&self, asked: Asked) -> Option<Vec<EntryName>> {
        self.makers.known(asked).map(entries)
    }

    /// The entries that call an entry: none if too few traces tell, `None` if no trace does.
    pub fn callers(&self, entry: EntryName) -> Option<Vec<EntryName>> {
        self.callers.known(entry).map(entries)
    }

    /// Whether an entry starts traces, and is called by no other.
    pub fn is_root(&self, entry: EntryName) -> bool {
        self.roots.n_votes(entry) >= ENOUGH && !self.callers.by_key.contains_key(&entry)
    }

    /// The only entry that makes a request, if it starts traces and is called by no other, however few traces tell.
    pub fn only_root(&self, asked: Asked) -> Option<EntryName> {
        let only = |entry: &EntryName| self.roots.n_votes(*entry) > 0 && !self.callers.by_key.contains_key(entry);
        self.makers.only(asked).filter(only)
    }

    /// Whether requests for an entry often come from callers that are not traced.
    pub fn is_requested_from_outside(&self, entry: EntryName) -> bool {
        let n_alone = self.alone.0.n_votes(entry);
        n_alone >= ENOUGH && n_alone * OFTEN >= self.callers.n_votes(entry)
    }

    /// Whether most who make a request are not traced.
    pub fn is_made_outside(&self, asked: Asked) -> bool {
        let n_alone = self.alone.1.n_votes(asked);
        n_alone >= ENOUGH && n_alone > self.makers.n_votes(asked)
    }

    /// The phase in which `caller` calls `called` (numbers of entries) as a rule.
    pub fn phase(&self, caller: u32, called: u32, is_async: bool) -> Option<u8> {
        let InPhases { clear, open, .. } = self.phases.get(&(caller, called, is_async))?;
        let [first, second] = [clear[0] + open[0], clear[1] + open[1]];
        (first != second).then_some(if first > second { 1 } else { 2 })
    }

    fn in_phases(&self, caller: u32, called: u32, is_async: bool) -> InPhases {
        self.phases.get(&(caller, called, is_async)).copied().unwrap_or_default()
    }

    /// Whether most calls of `called` by `caller` (numbers of entries) are waited for.
    pub fn is_waited_for(&self, caller: u32, called: u32) -> bool {
        let [waited_for, not] = [false, true].map(|is_async| self.in_phases(caller, called, is_async).n());
        waited_for > not
    }

    /// Whether one in ten of the calls of `called` by `caller` (numbers of entries), or more, are not waited for, or too few tell.
    pub fn may_be_async(&self, caller: u32, called: u32) -> bool {
        let [waited_for, not] = [false, true].map(|is_async| self.in_phases(caller, called, is_async).n());
        waited_for + not < ENOUGH || not * 10 >= waited_for + not
    }

    /// Whether calls of `called` by `caller` (numbers of entries) that seem to be under way at the reply are made after it, and waited for:
    /// hardly one in ten outlasts the caller's span, and most are after the reply, or seem to be under way then.
    pub fn is_second(&self, caller: u32, called: u32) -> bool {
        let [waited_for, not] = [false, true].map(|is_async| self.in_phases(caller, called, is_async));
        let [first, second] = [0, 1].map(|phase| waited_for.clear[phase] + waited_for.open[phase]);
        let after = second + not.within;
        after >= ENOUGH && (not.n() - not.within) * 10 <= after && first < after
    }

    /// Whether calls are hardly ever of `phase`, and where they are, clocks leave it open: then these are what puts them there.
    pub fn is_hardly_ever(&self, phase: u8, caller: u32, called: u32, is_async: bool) -> bool {
        let InPhases { clear, open, .. } = self.in_phases(caller, called, is_async);
        // Those under way at the reply are not of the first.
        let under_way = if is_async { 0 } else { self.in_phases(caller, called, true).within };
        let n = [clear[0] + open[0], clear[1] + open[1] + under_way];
        let (here, there) = if phase == 1 { (0, 1) } else { (1, 0) };
        n[here] + n[there] >= ENOUGH && n[here] * 10 <= n[there] && clear[here] * 10 <= open[here]
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
        self.alone.0.absorb(other.alone.0, entry, names);
        self.alone.1.absorb(other.alone.1, asked, names);
        for ((caller, called, is_async), theirs) in other.phases {
            let here = self.phases.entry((numbers.entry(caller), numbers.entry(called), is_async)).or_default();
            for (here, there) in [(&mut here.clear, theirs.clear), (&mut here.open, theirs.open)] {
                here.iter_mut().zip(there).for_each(|(here, there)| *here += there);
            }
            here.within += theirs.within;
        }
    }
}
