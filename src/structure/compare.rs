//! What changed between two extractions: entries and calls that appeared or vanished, numbers of calls that changed.
//!
//! Input: two extractions as JSON or as [`Side`]s, and a level α; output: [`Changes`].
//!
//! | matter | rule |
//! |---|---|
//! | number of calls | z = (ȳ₁ − ȳ₀) / √(s₀²/n₀ + s₁²/n₁) with mean ȳ, variance s² and n occurrences of the caller on each side; changed if p = erfc(|z|/√2), the two-sided probability of the standard normal, is below α/m |
//! | variance not known | that of a Poisson number: s² = ȳ |
//! | few occurrences | p is at least 2/C(n₀ + n₁, n₀), the share of the ways of dealing the occurrences to the two sides that keeps them as far apart: all that so few can tell, also where neither side varies (then one occurrence tells nothing) |
//! | appeared, vanished call | k of the n occurrences of the caller made it, none of the n′ on the other side: by chance alone with probability C(n, k)/C(n + n′, k), that all k of the n + n′ fall to the side that has n (Fisher's exact test); beyond chance if below α/m. k = n ȳ²/(s² + ȳ²), at most those that made it at all (Cauchy and Schwarz) |
//! | appeared, vanished entry | as a call, with the occurrences of its task for those of the caller and its own for k; all of a task that is not there at all are as the task, its occurrences among those of all tasks |
//! | m | number of calls and entries compared (Bonferroni): the probability of any false alarm is at most α |
//!
//! | symbol | field |
//! |---|---|
//! | ȳ, s², n | [`SideCall::mean`], [`SideCall::variance`], [`SideCall::occurrences`] |
//! | α | [`Changes::level`] |

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use statrs::function::{erf::erfc, factorial::ln_binomial};

use super::{CallReport, EntryReport, Extraction, TaskReport, entries::ArcKind};

/// A call as one extraction has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideCall {
    /// The entry called.
    pub to: String,
    /// `sync`, `async` or `forward`.
    pub kind: String,
    /// Phase of the caller.
    #[serde(default = "first_phase")]
    pub phase: u8,
    /// Mean number for each occurrence of the caller.
    pub mean: f64,
    /// Variance of the number; `None` where it is not known.
    #[serde(default)]
    pub variance: Option<f64>,
    /// Occurrences of the caller.
    #[serde(default)]
    pub occurrences: u64,
}

fn first_phase() -> u8 {
    1
}

/// An entry as one extraction has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideEntry {
    /// Its name.
    pub name: String,
    /// Number of its occurrences.
    #[serde(default)]
    pub occurrences: u64,
    /// Its calls.
    #[serde(default)]
    pub calls: Vec<SideCall>,
}

/// A task as one extraction has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideTask {
    /// Its name.
    pub name: String,
    /// Its entries.
    #[serde(default)]
    pub entries: Vec<SideEntry>,
}

/// What is compared of an extraction: read from its JSON, of which all else is passed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Its tasks.
    pub tasks: Vec<SideTask>,
}

impl From<&Extraction> for Side {
    fn from(extraction: &Extraction) -> Self {
        let call = |call: &CallReport, occurrences: u64| SideCall {
            to: call.to.clone(),
            kind: match call.kind {
                ArcKind::Sync => "sync",
                ArcKind::Async => "async",
                ArcKind::Forward => "forward",
            }
            .to_owned(),
            phase: call.phase,
            mean: call.mean,
            // Without a distribution the numbers of single invocations are not known.
            variance: (!call.distribution.is_empty()).then_some(call.variance),
            occurrences,
        };
        let entry = |entry: &EntryReport| SideEntry {
            name: entry.name.clone(),
            occurrences: entry.occurrences,
            calls: entry.calls.iter().map(|c| call(c, entry.occurrences)).collect(),
        };
        let task = |task: &TaskReport| SideTask { name: task.name.clone(), entries: task.entries.iter().map(entry).collect() };
        Self { tasks: extraction.tasks.iter().map(task).collect() }
    }
}

/// Whether something came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// It is in the new extraction only.
    Appeared,
    /// It is in the old extraction only.
    Vanished,
}

/// Something that is on one side only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneSided {
    /// Which side.
    pub turn: Turn,
    /// `task`, `entry` or `call`.
    pub what: String,
    /// Its name; of a call `FROM kind TO`.
    pub name: String,
    /// How often it was seen on its side.
    pub seen: f64,
    /// How often it would be expected on the other side.
    pub expected: f64,
    /// Probability that chance alone leaves it out there.
    pub p_value: f64,
    /// Whether that is below the level.
    pub beyond_chance: bool,
}

/// A call whose number differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallChange {
    /// `FROM kind TO`.
    pub name: String,
    /// Mean numbers, old and new.
    pub means: [f64; 2],
    /// Occurrences of the caller, old and new.
    pub occurrences: [u64; 2],
    /// Standard normal deviate of the difference; infinite where neither side varies.
    pub z: f64,
    /// Two-sided probability of such a difference by chance.
    pub p_value: f64,
    /// Whether that is below the level.
    pub beyond_chance: bool,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Probability of any false alarm, α.
    pub level: f64,
    /// Number of calls and entries compared, m.
    pub compared: usize,
    /// What is on one side only.
    pub one_sided: Vec<OneSided>,
    /// Calls on both sides whose means differ.
    pub calls: Vec<CallChange>,
}

/// Key of a call: caller, kind, phase, target.
type Key<'s> = (&'s str, &'s str, u8, &'s str);

struct Index<'s> {
    tasks: IndexMap<&'s str, u64>,
    entries: IndexMap<&'s str, (&'s str, u64)>,
    calls: IndexMap<Key<'s>, &'s SideCall>,
}

impl<'s> Index<'s> {
    fn of(side: &'s Side) -> Self {
        let mut index = Self { tasks: IndexMap::new(), entries: IndexMap::new(), calls: IndexMap::new() };
        for task in &side.tasks {
            *index.tasks.entry(&task.name).or_insert(0) += task.entries.iter().map(|e| e.occurrences).sum::<u64>();
            for entry in &task.entries {
                index.entries.insert(&entry.name, (&task.name, entry.occurrences));
                for call in &entry.calls {
                    index.calls.insert((&entry.name, &call.kind, call.phase, &call.to), call);
                }
            }
        }
        index
    }

    /// Occurrences of the caller of a call, as the call says or its entry.
    fn callers(&self, caller: &str, call: Option<&SideCall>) -> u64 {
        let said = call.map_or(0, |call| call.occurrences);
        if said > 0 { said } else { self.entries.get(caller).map_or(0, |(_, n)| *n) }
    }
}

fn call_name(key: &Key<'_>) -> String {
    let phase = if key.2 == 2 { "/2" } else { "" };
    format!("{} {}{phase} {}", key.0, key.1, key.3)
}

/// Compares an extraction with an earlier one; `level` is α, in (0, 1).
pub fn compare(old: &Side, new: &Side, level: f64) -> Changes {
    let sides = [Index::of(old), Index::of(new)];
    let n_entries = sides[0].entries.keys().chain(sides[1].entries.keys()).collect::<std::collections::HashSet<_>>().len();
    let n_calls = sides[0].calls.keys().chain(sides[1].calls.keys()).collect::<std::collections::HashSet<_>>().len();
    let compared = n_entries + n_calls;
    let threshold = level / compared.max(1) as f64;
    let mut changes = Changes { level, compared, one_sided: Vec::new(), calls: Vec::new() };
    for (turn, here, there) in [(Turn::Appeared, &sides[1], &sides[0]), (Turn::Vanished, &sides[0], &sides[1])] {
        one_sided(turn, here, there, threshold, &mut changes.one_sided);
    }
    for (key, call) in &sides[0].calls {
        let Some(later) = sides[1].calls.get(key) else { continue };
        let occurrences = [sides[0].callers(key.0, Some(call)), sides[1].callers(key.0, Some(later))];
        if let Some(change) = changed(key, [call, later], occurrences, threshold) {
            changes.calls.push(change);
        }
    }
    changes
}

fn one_sided(turn: Turn, here: &Index<'_>, there: &Index<'_>, threshold: f64, out: &mut Vec<OneSided>) {
    // `k` of `n` here had it, none of the second of `n`.
    let mut add = |what: &str, name: String, seen: f64, k: u64, n: [u64; 2]| {
        let p_value = all_on_one_side(k, n);
        let expected = seen * n[1] as f64 / n[0].max(1) as f64;
        out.push(OneSided { turn, what: what.to_owned(), name, seen, expected, p_value, beyond_chance: p_value < threshold });
    };
    let total = |index: &Index<'_>| index.tasks.values().sum::<u64>();
    for (task, n) in here.tasks.iter().filter(|(task, _)| !there.tasks.contains_key(*task)) {
        add("task", (*task).to_owned(), *n as f64, *n, [total(here), total(there)]);
    }
    for (entry, (task, n)) in here.entries.iter().filter(|(entry, _)| !there.entries.contains_key(*entry)) {
        let Some(n_there) = there.tasks.get(task) else { continue };
        add("entry", (*entry).to_owned(), *n as f64, *n, [here.tasks[task], *n_there]);
    }
    for (key, call) in here.calls.iter().filter(|(key, _)| !there.calls.contains_key(*key)) {
        if there.entries.contains_key(key.0) {
            let n = [here.callers(key.0, Some(call)), there.callers(key.0, None)];
            add("call", call_name(key), call.mean * n[0] as f64, makers(call, n[0]), n);
        }
    }
}

/// How many of `n` occurrences made a call at all, at the least.
fn makers(call: &SideCall, n: u64) -> u64 {
    let square = call.mean * call.mean;
    let share = square / (call.variance.unwrap_or(call.mean).max(0.0) + square);
    // What is not a number is 0 as an integer.
    ((share * n as f64).round() as u64).clamp(1, n.max(1))
}

/// Probability that `k` occurrences, of those of both sides, are all on the first.
fn all_on_one_side(k: u64, [here, there]: [u64; 2]) -> f64 {
    if k > here {
        return 1.0;
    }
    (ln_binomial(here, k) - ln_binomial(here.saturating_add(there), k)).exp().min(1.0)
}

fn changed(key: &Key<'_>, calls: [&SideCall; 2], occurrences: [u64; 2], threshold: f64) -> Option<CallChange> {
    let difference = calls[1].mean - calls[0].mean;
    if difference == 0.0 || !difference.is_finite() || occurrences.contains(&0) {
        return None;
    }
    let of_mean = |side: usize| calls[side].variance.unwrap_or(calls[side].mean).max(0.0) / occurrences[side] as f64;
    let deviation = (of_mean(0) + of_mean(1)).sqrt();
    let (z, p_value) = if deviation > 0.0 {
        let z = difference / deviation;
        (z, erfc(z.abs() / std::f64::consts::SQRT_2))
    } else {
        (f64::INFINITY.copysign(difference), if occurrences.contains(&1) { 1.0 } else { 0.0 })
    };
    let n_ways = ln_binomial(occurrences[0].saturating_add(occurrences[1]), occurrences[0]).exp();
    let p_value = f64::max(p_value, (2.0 / n_ways).min(1.0));
    let beyond_chance = p_value < threshold;
    Some(CallChange { name: call_name(key), means: [calls[0].mean, calls[1].mean], occurrences, z, p_value, beyond_chance })
}

impl Changes {
    /// Whether anything changed beyond chance.
    pub fn is_any_beyond_chance(&self) -> bool {
        self.one_sided.iter().any(|change| change.beyond_chance) || self.calls.iter().any(|change| change.beyond_chance)
    }

    /// The changes, one a line, those beyond chance first.
    pub fn text(&self) -> String {
        let mark = |beyond: bool| if beyond { "" } else { " (may be chance)" };
        let mut lines: Vec<(bool, String)> = Vec::new();
        for change in &self.one_sided {
            let turn = if change.turn == Turn::Appeared { "appeared" } else { "vanished" };
            lines.push((
                !change.beyond_chance,
                format!(
                    "{} {} {turn}: seen {:.0} times, {:.1} expected on the other side, p {:.2e}{}",
                    change.what,
                    change.name,
                    change.seen,
                    change.expected,
                    change.p_value,
                    mark(change.beyond_chance)
                ),
            ));
        }
        for change in &self.calls {
            let ([old, new], [n_old, n_new]) = (change.means, change.occurrences);
            lines.push((
                !change.beyond_chance,
                format!(
                    "{}: {old:.3} (n {n_old}) is now {new:.3} (n {n_new}), z {:.2}, p {:.2e}{}",
                    change.name,
                    change.z,
                    change.p_value,
                    mark(change.beyond_chance)
                ),
            ));
        }
        lines.sort();
        let head = format!(
            "{} calls and entries compared at level {} for all of them together; times and demands are not.\n",
            self.compared, self.level
        );
        let body: Vec<String> = lines.into_iter().map(|(_, line)| format!("{line}\n")).collect();
        if body.is_empty() { format!("{head}Nothing changed.\n") } else { head + &body.concat() }
    }
}
