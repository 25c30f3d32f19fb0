//! Round trips: random models are run, their runs written as traces, models extracted from the traces, and those compared with
//! the ones that were run.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod agreement;
mod blind;
mod cores;
mod doubt;
mod draw;
mod forms;
mod others;
mod recording;
mod same;
mod spans;
mod structure;
mod times;

use std::collections::{BTreeMap, HashMap};

use layerfit::{
    cli::record::{TraceForm, TraceOptions, write_trace},
    model::{Bindings, Model},
    solve::simulate::record::{Event, Legend, RecordOptions, RecordedEvent, RequestKind, record},
    structure::Extraction,
};

use blind::Blind;
use draw::{Features, draw};
use structure::{Difference, Structure, compare, expected, found, observed};

/// Models of an ordinary test run, and of the long one.
pub const MODELS: u64 = 60;
pub const MANY_MODELS: u64 = 1000;

/// Chance that a whole run of tests fails though all is right.
const FALSE_ALARM: f64 = 0.01;

/// Upper bound of the means that one model compares, over which the chance of a false alarm is divided.
const MEANS_OF_A_MODEL: f64 = 200.0;

/// A model that was run.
pub struct Ran {
    pub model: Model,
    pub legend: Legend,
    pub events: Vec<RecordedEvent>,
}

impl Ran {
    /// Draws a model and runs `cycles` cycles of it.
    pub fn new(features: Features, seed: u64, cycles: u64) -> Self {
        let model = draw(features, seed);
        let defects = model.validate();
        assert!(defects.iter().all(|d| d.kind.severity() != layerfit::model::Severity::Error), "{}: {defects:?}", model.name);
        let options = RecordOptions { seed, cycles: Some(cycles), ..RecordOptions::default() };
        let (legend, events, recorded) = record(&model, &Bindings::default(), options).unwrap();
        assert!(recorded.is_complete, "{}: {recorded:?}", model.name);
        assert_eq!(recorded.cycles, cycles);
        Self { model, legend, events }
    }

    /// The run as a trace.
    pub fn trace(&self, form: TraceForm, options: &TraceOptions) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_trace(form, &self.legend, options, &self.events, &mut bytes).unwrap();
        bytes
    }

    /// Names of the reference tasks.
    pub fn customers(&self) -> Vec<&str> {
        self.model.tasks.iter().filter(|task| task.scheduling.is_reference()).map(|task| task.name.as_str()).collect()
    }

    /// Names of tasks as techniques have them that call a component by the server that it is on, to those of the model.
    pub fn names_on_servers(&self) -> HashMap<String, String> {
        self.model.tasks.iter().map(|task| (format!("{}::{}", task.processor, task.name), task.name.clone())).collect()
    }

    /// Cycles of each scenario, those only that send something if `messages_only`.
    pub fn cycles(&self, messages_only: bool) -> BTreeMap<String, f64> {
        let mut cycles: BTreeMap<u64, (String, bool)> = BTreeMap::new();
        for event in &self.events {
            let Event::Sent { kind, by, entry, cycle, .. } = event.event else { continue };
            match kind {
                RequestKind::Cycle => cycles.insert(cycle, (self.legend.task_of(entry).name.clone(), false)),
                RequestKind::Open => cycles.insert(cycle, (format!("open:{}", self.legend.entry(entry)), true)),
                _ => {
                    cycles.get_mut(&by.unwrap().request).into_iter().for_each(|c| c.1 = true);
                    None
                }
            };
        }
        let mut of_scenarios = BTreeMap::new();
        for (scenario, _) in cycles.into_values().filter(|(_, sends)| *sends || !messages_only) {
            *of_scenarios.entry(scenario).or_insert(0.0) += 1.0;
        }
        of_scenarios
    }
}

/// Bytes of a trace to what is extracted.
pub type Extract<'e> = dyn Fn(&[u8]) -> Extraction + 'e;

/// How a technique's round trip goes.
pub struct RoundTrip<'t> {
    pub features: Features,
    pub form: TraceForm,
    pub options: TraceOptions,
    /// Cycles that send nothing are not in the trace.
    pub messages_only: bool,
    pub blind: Blind,
    pub extract: &'t Extract<'t>,
}

impl RoundTrip<'_> {
    /// All differences of one model: first between what the run did and what was extracted, where there is no chance, then
    /// between the model and what was extracted. `n_models` are compared in all.
    pub fn differences(&self, seed: u64, cycles: u64, n_models: u64) -> Vec<Difference> {
        let ran = Ran::new(self.features, seed, cycles);
        let of_scenarios = ran.cycles(self.messages_only);
        let extraction = (self.extract)(&ran.trace(self.form, &self.options));
        let customers = if self.form == TraceForm::Same { Vec::new() } else { ran.customers() };
        let names = if self.form == TraceForm::CallPath { ran.names_on_servers() } else { HashMap::new() };
        let mut found = found(&extraction, &customers, &names).seen_by(self.blind);
        let n_cycles: f64 = of_scenarios.values().sum();
        found.client_by(n_cycles);
        let did = observed(&ran.legend, &ran.events, self.messages_only).seen_by(self.blind);
        let mut differences = compare(&did, &found, 0.0);
        differences.extend(unequal_counts(&did, &found));
        let shares = of_scenarios.into_iter().map(|(scenario, n)| (scenario, n / n_cycles)).collect();
        let said = expected(&ran.model, &shares, self.messages_only).seen_by(self.blind);
        assert!(said.n_arcs() as f64 <= MEANS_OF_A_MODEL, "{} means", said.n_arcs());
        let t = (2.0 * MEANS_OF_A_MODEL * n_models as f64 / FALSE_ALARM).ln();
        differences.extend(compare(&said, &found, t));
        differences
    }

    /// Checks models `seeds`, which are `n_models` in all.
    pub fn check(&self, seeds: std::ops::Range<u64>, cycles: u64) {
        let n_models = seeds.end - seeds.start;
        let mut failed = Vec::new();
        for seed in seeds {
            let differences = self.differences(seed, cycles, n_models);
            if !differences.is_empty() {
                let texts: Vec<String> = differences.iter().take(8).map(|d| format!("  {d}")).collect();
                failed.push(format!("model {seed}:\n{}", texts.join("\n")));
            }
        }
        let first = failed.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
        assert!(failed.is_empty(), "{} of {n_models} models differ\n{first}", failed.len());
    }
}

fn unequal_counts(did: &Structure, found: &Structure) -> Vec<Difference> {
    let differs = |node: &&structure::Node| found.entries.get(node).is_some_and(|f| (f.n - did.entries[node].n).abs() > 0.5);
    let arc = |node: &structure::Node| (structure::Kind::Sync, 0, node.clone());
    let is_client = |node: &structure::Node| *node == structure::Node::client();
    let nodes = did.entries.keys().filter(|node| !is_client(node)).filter(differs);
    nodes.map(|node| Difference::Mean(node.clone(), arc(node), [did.entries[node].n, found.entries[node].n, 0.0])).collect()
}
