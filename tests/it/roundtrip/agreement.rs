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

const TECHNIQUES: [(TraceForm, Format); 3] =
    [(TraceForm::Same, Format::Same), (TraceForm::Angio, Format::Angio), (TraceForm::EventTrace, Format::EventTrace)];

fn extracted(ran: &Ran, (form, format): (TraceForm, Format), merge: MergeKey) -> Extraction {
    let options = ExtractOptions { merge, bad_rows: BadRows::Reject, ..ExtractOptions::default() };
    let bytes = ran.trace(form, &TraceOptions::default());
    extract(&[Source { name: "run", bytes: &bytes }], format, &options).unwrap()
}

/// What was found, with the calls of clients for each cycle, silent ones included.
fn by_operation(ran: &Ran, technique: (TraceForm, Format)) -> Structure {
    let customers = if technique.0 == TraceForm::Same { Vec::new() } else { ran.customers() };
    let mut structure = found(&extracted(ran, technique, MergeKey::Operation), &customers, &HashMap::new());
    structure.client_by(ran.cycles(false).into_values().sum());
    structure
}

/// Occurrences of each behaviour of servers: task, operation, acceptance, and the calls with the behaviours of what they call.
fn by_behaviour(ran: &Ran, technique: (TraceForm, Format)) -> BTreeMap<(String, String, Accepts, u64), u64> {
    let (extraction, customers) = (extracted(ran, technique, MergeKey::Behaviour), ran.customers());
    let entries: HashMap<&str, (&str, &EntryReport)> =
        extraction.tasks.iter().flat_map(|task| task.entries.iter().map(|e| (e.name.as_str(), (task.name.as_str(), e)))).collect();
    let mut hashes = HashMap::new();
    let mut behaviours = BTreeMap::new();
    for (name, (task, entry)) in &entries {
        if entry.accepts != Accepts::Nothing && !customers.contains(task) {
            let key = ((*task).to_owned(), entry.operation.clone().unwrap(), entry.accepts, behaviour(name, &entries, &mut hashes));
            *behaviours.entry(key).or_insert(0) += entry.occurrences;
        }
    }
    behaviours
}

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

fn check(n_models: u64) {
    let mut failed = Vec::new();
    for seed in 0..n_models {
        let ran = Ran::new(COMMON, seed, CYCLES);
        let [same, tlc, graphs] = TECHNIQUES.map(|technique| by_operation(&ran, technique));
        let mut differences = Vec::new();
        for (pair, one, other) in
            [("SAME, TLC", &same, &tlc), ("SAME, execution graphs", &same, &graphs), ("TLC, execution graphs", &tlc, &graphs)]
        {
            let all = compare(one, other, 0.0).into_iter().chain(compare(other, one, 0.0)).chain(unequal_counts(one, other));
            differences.extend(all.map(|difference| format!("  {pair}: {difference}")));
        }
        let [same, tlc, graphs] = TECHNIQUES.map(|technique| by_behaviour(&ran, technique));
        for (name, others) in [("TLC", tlc), ("execution graphs", graphs)] {
            let differs = same.iter().filter(|(key, n)| others.get(key) != Some(n)).count()
                + others.keys().filter(|key| !same.contains_key(key)).count();
            if differs > 0 {
                differences.push(format!("  {differs} behaviours of {} differ between SAME and {name}", same.len()));
            }
        }
        if !differences.is_empty() {
            differences.truncate(8);
            failed.push(format!("model {seed}:\n{}", differences.join("\n")));
        }
    }
    let first = failed.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(failed.is_empty(), "of {n_models} models, techniques disagree on {}\n{first}", failed.len());
}

#[test]
fn same_tlc_and_execution_graphs_agree() {
    check(MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn same_tlc_and_execution_graphs_agree_on_a_thousand_models() {
    check(MANY_MODELS);
}

/// Whole messages with both times, against a row for each of their ends.
fn check_ends(n_models: u64) {
    for seed in 0..n_models {
        let ran = Ran::new(Features::ALL, seed, CYCLES);
        let [whole, ends] = [false, true].map(|ends_apart| {
            let bytes = ran.trace(TraceForm::Same, &TraceOptions { ends_apart, ..TraceOptions::default() });
            let options = ExtractOptions { bad_rows: BadRows::Reject, timing: Timing::TwoPoint, ..ExtractOptions::default() };
            extract(&[Source { name: "run", bytes: &bytes }], Format::Same, &options).unwrap()
        });
        assert_eq!(whole.interactions, ends.interactions, "model {seed}");
        for (one, other) in whole.tasks.iter().zip(&ends.tasks) {
            for (one, other) in one.entries.iter().zip(&other.entries) {
                assert_eq!(one, other, "model {seed}");
            }
        }
        assert_eq!(whole.tasks, ends.tasks, "model {seed}");
        assert_eq!(whole.model, ends.model, "model {seed}");
        assert!(whole.interactions.total() > 0);
    }
}

#[test]
fn ends_of_messages_say_what_whole_messages_say() {
    check_ends(MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn ends_of_messages_say_what_whole_messages_say_in_a_thousand_models() {
    check_ends(MANY_MODELS);
}
