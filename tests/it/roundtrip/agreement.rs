//! SAME, TLC and execution graphs on the same runs: what all three can see they must agree on, exactly, as no chance is between
//! them. TLC and execution graphs know neither times nor each other's events, SAME knows times alone.

use std::{
    collections::{BTreeMap, HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use layerfit::{
    cli::record::{TraceForm, TraceOptions},
    structure::{Accepts, EntryReport, ExtractOptions, Extraction, MergeKey, Timing, extract},
    trace::{BadRows, Format, Source},
};

use super::{Features, MANY_MODELS, Ran, compare, found, structure::Structure, unequal_counts};

/// Models of an ordinary test run, and cycles of each.
const MODELS: u64 = 24;
const CYCLES: u64 = 200;

/// What all three see.
const COMMON: Features = Features { and_forks: false, open_arrivals: false, after_forwarding: false, ..Features::ALL };

/// A way to write a run down and to make a model of it again.
#[derive(Clone, Copy)]
struct Road {
    name: &'static str,
    form: TraceForm,
    format: Format,
    ends_apart: bool,
}

const SAME: Road = Road { name: "SAME", form: TraceForm::Same, format: Format::Same, ends_apart: false };
const TLC: Road = Road { name: "TLC", form: TraceForm::Angio, format: Format::Angio, ends_apart: false };
const GRAPHS: Road = Road { name: "execution graphs", form: TraceForm::EventTrace, format: Format::EventTrace, ends_apart: false };

/// SAME in its two-point mode from a row for each end of a message.
const SAME_OF_ENDS: Road = Road { name: "SAME of ends", ends_apart: true, ..SAME };

impl Road {
    fn extracted(self, ran: &Ran, merge: MergeKey) -> Extraction {
        let options = ExtractOptions { merge, bad_rows: BadRows::Reject, timing: Timing::TwoPoint, ..ExtractOptions::default() };
        let bytes = ran.trace(self.form, &TraceOptions { ends_apart: self.ends_apart, ..TraceOptions::default() });
        extract(&[Source { name: "run", bytes: &bytes }], self.format, &options).unwrap()
    }

    /// What was found, with the calls of clients for each cycle, silent ones included.
    fn by_operation(self, ran: &Ran) -> Structure {
        let customers = if self.form == TraceForm::Same { Vec::new() } else { ran.customers() };
        let mut structure = found(&self.extracted(ran, MergeKey::Operation), &customers, &HashMap::new());
        structure.client_by(ran.cycles(false).into_values().sum());
        structure
    }

    /// Occurrences of each behaviour of servers: task, operation, acceptance, and the calls with the behaviours of what they call.
    fn by_behaviour(self, ran: &Ran) -> Behaviours {
        let (extraction, customers) = (self.extracted(ran, MergeKey::Behaviour), ran.customers());
        let entries: HashMap<&str, (&str, &EntryReport)> =
            extraction.tasks.iter().flat_map(|task| task.entries.iter().map(|e| (e.name.as_str(), (task.name.as_str(), e)))).collect();
        let mut hashes = HashMap::new();
        let mut behaviours = BTreeMap::new();
        for (name, (task, entry)) in &entries {
            if entry.accepts != Accepts::Nothing && !customers.contains(task) {
                let key = ((*task).to_owned(), entry.operation.clone().unwrap_or_default(), entry.accepts, behaviour(name, &entries, &mut hashes));
                *behaviours.entry(key).or_insert(0) += entry.occurrences;
            }
        }
        behaviours
    }
}

/// Occurrences by task, operation, acceptance, and hash of the behaviour.
type Behaviours = BTreeMap<(String, String, Accepts, u64), u64>;

/// A hash of what an entry does, all the way down.
fn behaviour<'e>(name: &'e str, entries: &HashMap<&'e str, (&'e str, &'e EntryReport)>, hashes: &mut HashMap<&'e str, u64>) -> u64 {
    if let Some(known) = hashes.get(name) {
        return *known;
    }
    let (task, entry) = entries[name];
    let mut calls: Vec<(String, u64, u64)> = Vec::new();
    for call in &entry.calls {
        assert!(call.mean.fract() == 0.0, "{name} → {}: {}", call.to, call.mean);
        calls.push((format!("{:?}{}", call.kind, call.phase), call.mean as u64, behaviour(&call.to, entries, hashes)));
    }
    calls.sort();
    let mut hasher = DefaultHasher::new();
    (task, &entry.operation, entry.accepts, calls).hash(&mut hasher);
    hashes.insert(name, hasher.finish());
    hasher.finish()
}

/// Everything in which two roads differ about a run.
fn differences(ran: &Ran, one: Road, other: Road) -> Vec<String> {
    let (a, b) = (one.by_operation(ran), other.by_operation(ran));
    let all = compare(&a, &b, 0.0).into_iter().chain(compare(&b, &a, 0.0)).chain(unequal_counts(&a, &b));
    let mut differences: Vec<String> = all.map(|difference| format!("  {}, {}: {difference}", one.name, other.name)).collect();
    assert!(a.n_arcs() > 0);
    let (a, b) = (one.by_behaviour(ran), other.by_behaviour(ran));
    let differs = |a: &Behaviours, b: &Behaviours| a.iter().filter(|(key, n)| b.get(key) != Some(n)).count();
    let n = differs(&a, &b).max(differs(&b, &a));
    if n > 0 {
        differences.push(format!("  {n} behaviours of {} differ between {} and {}", a.len(), one.name, other.name));
    }
    differences
}

fn check(features: Features, pairs: &[(Road, Road)], n_models: u64) {
    let mut failed = Vec::new();
    for seed in 0..n_models {
        let ran = Ran::new(features, seed, CYCLES);
        let mut differences: Vec<String> = pairs.iter().flat_map(|(one, other)| differences(&ran, *one, *other)).collect();
        if !differences.is_empty() {
            differences.truncate(8);
            failed.push(format!("model {seed}:\n{}", differences.join("\n")));
        }
    }
    let first = failed.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(failed.is_empty(), "of {n_models} models, techniques disagree on {}\n{first}", failed.len());
}

/// Agreement is transitive.
const TECHNIQUES: [(Road, Road); 2] = [(SAME, TLC), (SAME, GRAPHS)];

#[test]
fn same_tlc_and_execution_graphs_agree() {
    check(COMMON, &TECHNIQUES, MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn same_tlc_and_execution_graphs_agree_on_a_thousand_models() {
    check(COMMON, &TECHNIQUES, MANY_MODELS);
}

/// Whatever SAME makes of whole messages with both times, it makes of their ends.
#[test]
fn ends_of_messages_say_what_whole_messages_say() {
    check(Features::ALL, &[(SAME, SAME_OF_ENDS)], MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn ends_of_messages_say_what_whole_messages_say_in_a_thousand_models() {
    check(Features::ALL, &[(SAME, SAME_OF_ENDS)], MANY_MODELS);
}
