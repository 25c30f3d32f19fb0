//! Round trips through spans, as they are and with what they suffer on their way.
//!
//! | spans do not show | because |
//! |---|---|
//! | who was forwarded to, and who replied | a server below a server looks the same whether its reply is waited for or passed on |
//! | who sends arrivals from outside | a root is requested by the one client that stands for all |
//! | second phases of what nobody waits for | there is no reply that would end the first |
//! | second phases, where fewer than ten requests join two hosts | a server that ends after its client may as well have a clock that is ahead |
//! | the phase of a call so near a reply that the bounds of the clocks let it be on either side | nothing else tells when the reply was |
//! | the phase of a message sent within a tick of the clock from a reply | both have the same time |

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::atomic::{AtomicUsize, Ordering},
};

use layerfit::{
    cli::record::{Dirt, TraceForm, TraceOptions},
    solve::simulate::record::{Event, RecordedEvent},
    structure::{ExtractOptions, Extraction, extract, spans::quality::ClockQuality},
    trace::{BadRows, Format, Source},
};
use serde_json::Value;

use super::{
    FALSE_ALARM, Features, MANY_MODELS, MEANS_OF_A_MODEL, Ran,
    doubt::{Doubt, beyond, self_time_bounds},
    forms::otlp_spans,
    structure::{Node, Structure, compare, expected, found, observed},
    times,
};

/// Models of an ordinary run for each case.
const MODELS: u64 = 16;

/// Cycles of each model; of sampled ones ten times as many.
const CYCLES: u64 = 200;

/// Requests between two hosts up to which a second phase is not told from a clock that is ahead.
const FEW_REQUESTS: u64 = 9;

/// What spans show of a model.
const SHOWN: Features = Features { forwarding: false, after_forwarding: false, open_arrivals: false, ..Features::ALL };

/// A way from runs to spans.
#[derive(Clone, Debug)]
struct Case {
    form: TraceForm,
    features: Features,
    options: TraceOptions,
    /// Cycles of each model.
    cycles: u64,
}

impl Case {
    fn new(form: TraceForm, features: Features) -> Self {
        Self { form, features, options: TraceOptions::default(), cycles: CYCLES }
    }

    fn format(&self) -> Format {
        match self.form {
            TraceForm::Jaeger => Format::Jaeger,
            TraceForm::Zipkin => Format::Zipkin,
            _ => Format::Otlp,
        }
    }

    /// What the clock of the form shows multiples of, seconds.
    fn resolution_s(&self) -> f64 {
        if self.form == TraceForm::Otlp { 1e-9 } else { 1e-6 }
    }

    fn extract(&self, ran: &Ran) -> Extraction {
        let bytes = ran.trace(self.form, &self.options);
        let options = ExtractOptions { bad_rows: BadRows::Reject, ..ExtractOptions::default() };
        extract(&[Source { name: "run", bytes: &bytes }], self.format(), &options).unwrap()
    }

    /// All differences of one model of `n_models`.
    fn differences(&self, seed: u64, n_models: u64) -> Vec<String> {
        let ran = Ran::new(self.features, seed, self.cycles);
        let extraction = self.extract(&ran);
        let mut differences = self.differences_of(&ran, &extraction, n_models);
        differences.extend(self.wrong_clocks(&extraction));
        differences.extend(self.wrong_weights(&ran, &extraction, n_models));
        differences.extend(self.untold_losses(&ran, &extraction));
        differences
    }

    /// First between what the sampled part of the run did and what was extracted, where there is no chance and nothing is in doubt
    /// but what lost spans and the clock leave so; then between the model and what was extracted.
    fn differences_of(&self, ran: &Ran, extraction: &Extraction, n_models: u64) -> Vec<String> {
        let dirt = &self.options.dirt;
        let ran = &ran.sampled(dirt);
        let (legend, events) = (&ran.legend, ran.events.as_slice());
        let customers: Vec<&str> = customers(ran);
        let of_scenarios = ran.cycles(false);
        let n_cycles: f64 = of_scenarios.values().sum();
        let have = found(extraction, &customers, &HashMap::new());
        let did = observed(legend, events, false);
        let n_left_out = left_out(extraction);
        let mut doubt = Doubt::of_losses(legend, events, dirt, n_left_out)
            .and(Doubt::of_clock(legend, events, self.resolution_s()))
            .and(Doubt::of_few_requests(legend, events, FEW_REQUESTS));
        if dirt.skew_s > 0.0 {
            doubt = doubt.and(Doubt::of_clocks(legend, events, &|client, server| self.shifts_s(extraction, client, server)));
        }
        let (sure, have_in_all) = (doubt.but_phases(), have.without_phases());
        let texts = |want: &Structure, t: f64| {
            let in_all = sure.unexplained(compare(&want.without_phases(), &have_in_all, t), &have_in_all);
            let of_phases = doubt.unexplained(compare(want, &have, t), &have);
            in_all.iter().chain(&of_phases).map(ToString::to_string).collect::<Vec<_>>()
        };
        let mut differences = texts(&did, 0.0);
        differences.extend(doubt.unexplained_numbers(&did, &have));
        let mut times_found = times::extracted(extraction, &customers);
        let mut times_recorded = times::recorded(legend, events);
        times_found.retain(|key, _| !doubt.leaves_open(key));
        times_recorded.retain(|key, _| !doubt.leaves_open(key));
        let slack = |node: &Node| self.clock_slack_s(extraction, ran, &times_recorded, node);
        if dirt.lost > 0.0 {
            let bounds = self_time_bounds(legend, events, dirt, n_left_out);
            differences.extend(beyond(&bounds, &times_found, self.resolution_s(), &slack));
        } else {
            differences.extend(times::differences(&times_recorded, &times_found, self.resolution_s(), &slack));
        }
        let shares = of_scenarios.into_iter().map(|(scenario, n)| (scenario, n / n_cycles)).collect();
        let said = expected(&ran.model, &shares, false);
        let n_means = said.n_arcs() + times_found.len();
        assert!(n_means as f64 <= MEANS_OF_A_MODEL, "{n_means} means");
        let t = log_inverse_chance(n_models);
        differences.extend(texts(&said, t));
        if dirt.lost == 0.0 {
            differences.extend(times::differences_from_demands(&ran.model, &times_found, self.resolution_s(), t, &slack));
        }
        differences
    }

    /// Clocks: what was put in lies within the bounds told, and so does what was corrected.
    fn wrong_clocks(&self, extraction: &Extraction) -> Vec<String> {
        let clocks = &extraction.quality.as_ref().unwrap().clocks;
        let wrong = |clock: &&ClockQuality| {
            let [first, second] = [0, 1].map(|i| self.options.dirt.offset_s(&clock.hosts[i]));
            let [lower, upper] = clock.bounds_s;
            let slack = 2.0 * self.resolution_s();
            let is_within = |offset: f64| lower - slack <= offset && offset <= upper + slack;
            !is_within(second - first) || !(is_within(clock.offset_s) || clock.requests < 3)
        };
        let text = |clock: &ClockQuality| {
            let [first, second] = [0, 1].map(|i| self.options.dirt.offset_s(&clock.hosts[i]));
            format!("clocks {clock:?}, not {}", second - first)
        };
        clocks.iter().filter(wrong).map(text).collect()
    }

    /// By how much the reply to a client's request may seem earlier and later, where the corrected clocks are within the bounds told.
    fn shifts_s(&self, extraction: &Extraction, client: &str, server: &str) -> [f64; 2] {
        let dirt = &self.options.dirt;
        let clocks = extraction.quality.as_ref().unwrap().clocks.iter();
        let of_pair = clocks.filter(|clock| clock.hosts.iter().all(|host| host == client || host == server));
        of_pair.fold([0.0_f64; 2], |[earlier, later], clock| {
            let [first, second] = [0, 1].map(|i| dirt.offset_s(&clock.hosts[i]));
            let [lower, upper] = clock.bounds_s.map(|bound| bound - (second - first));
            let [lower, upper] = if clock.hosts[0] == client { [lower, upper] } else { [-upper, -lower] };
            [earlier.min(lower), later.max(upper)]
        })
    }

    /// By how much the reply of an entry with a second phase is open, as its client's clock is: by as much as the report says. Of one
    /// without, where it is requested too seldom to tell that it has none.
    fn clock_slack_s(&self, extraction: &Extraction, ran: &Ran, recorded: &times::SelfTimes, node: &Node) -> f64 {
        let has_second = recorded.get(&(node.clone(), 2)).is_some_and(|time| time.mean_s > 0.0);
        let is_seldom = recorded.get(&(node.clone(), 1)).is_some_and(|time| time.n <= FEW_REQUESTS as f64);
        if self.options.dirt.skew_s == 0.0 || !(has_second || is_seldom) {
            return 0.0;
        }
        let host = &ran.model.task(&node.task).unwrap().processor;
        let clocks = extraction.quality.as_ref().unwrap().clocks.iter().filter(|clock| clock.hosts.contains(host));
        clocks.map(|clock| clock.bounds_s[1] - clock.bounds_s[0]).fold(0.0, f64::max)
    }

    /// Losses that the quality report does not tell: spans whose parent did not arrive, and requests that nothing serves.
    fn untold_losses(&self, ran: &Ran, extraction: &Extraction) -> Vec<String> {
        if self.options.dirt.lost == 0.0 {
            return Vec::new();
        }
        let spans = otlp_spans(&ran.trace(self.form, &self.options));
        let id = |span: &Value, field: &str| span[field].as_str().map(str::to_owned);
        let arrived: HashSet<Option<String>> = spans.iter().map(|span| id(span, "spanId")).collect();
        let links = spans.iter().flat_map(|span| span["links"].as_array().into_iter().flatten());
        let answered: HashSet<Option<String>> =
            spans.iter().map(|span| id(span, "parentSpanId")).chain(links.map(|link| id(link, "spanId"))).collect();
        let is_request = |span: &&Value| [3, 4].contains(&span["kind"].as_u64().unwrap());
        let is_orphan = |span: &&Value| span["parentSpanId"].is_string() && !arrived.contains(&id(span, "parentSpanId"));
        let n_orphans = spans.iter().filter(is_orphan).count() as u64;
        let n_open = spans.iter().filter(is_request).filter(|span| !answered.contains(&id(span, "spanId"))).count() as u64;
        let told = &extraction.quality.as_ref().unwrap().spans;
        let remarks = |codes: &[&str]| codes.iter().filter_map(|code| told.remarks.get(*code)).map(|reason| reason.count).sum::<u64>();
        let (orphans, open) =
            (remarks(&["missing_parent"]), remarks(&["client_half_alone", "message_without_consumer", "missing_server_half"]));
        let n_left_out = left_out(extraction);
        let mut untold = Vec::new();
        if orphans != n_orphans {
            untold.push(format!("{orphans} missing parents, not {n_orphans}"));
        }
        if open > n_open || open + n_left_out < n_open {
            untold.push(format!("{open} open requests, not {n_open} less those among {n_left_out}"));
        }
        if told.read != spans.len() as u64 || told.used + n_left_out != told.read {
            untold.push(format!("{} read and {} used of {} spans", told.read, told.used, spans.len()));
        }
        untold
    }

    /// What recordings stand for: of the cycles, and of the executions of each entry, as many as there were without sampling,
    /// within the error of drawing each cycle with probability p (Bernstein: x executions in a cycle add x² (1 - p) / p to the
    /// variance, and are off by at most x / p).
    fn wrong_weights(&self, ran: &Ran, extraction: &Extraction, n_models: u64) -> Vec<String> {
        let (p, t) = (self.options.dirt.sampled, log_inverse_chance(n_models));
        let sampling = extraction.quality.as_ref().unwrap().sampling;
        if p >= 1.0 || self.options.dirt.lost > 0.0 {
            return Vec::new();
        }
        let mut counts: BTreeMap<Node, BTreeMap<u64, f64>> = BTreeMap::new();
        for event in &ran.events {
            if let Event::Sent { kind, cycle, entry, .. } = event.event {
                *counts.entry(Node::of(&ran.legend, kind, entry)).or_default().entry(cycle).or_default() += 1.0;
            }
        }
        let mut have = found(extraction, &customers(ran), &HashMap::new());
        have.entries.entry(Node::client()).or_default().n = sampling.stand_for * p;
        let wrong = |(node, of_cycles): (Node, BTreeMap<u64, f64>)| {
            let n: f64 = of_cycles.values().sum();
            let variance: f64 = of_cycles.values().map(|x| x * x * (1.0 - p) / p).sum();
            let most = of_cycles.values().fold(0.0_f64, |most, x| most.max(*x)) / p;
            let got = have.entries.get(&node).map_or(0.0, |calls| calls.n / p);
            let tolerance = (2.0 * variance * t).sqrt() + most * t / 3.0;
            ((got - n).abs() > tolerance).then(|| format!("{} stands for {got}, not {n} ± {tolerance}", node.entry))
        };
        let mut wrong: Vec<String> = counts.into_iter().filter_map(wrong).collect();
        if sampling.said != sampling.recordings {
            wrong.push(format!("{} of {} recordings say how they were sampled", sampling.said, sampling.recordings));
        }
        wrong
    }

    /// Checks the first `n_models` models by `differences`, or those of them that [`SEEDS`] names.
    fn check_by(&self, n_models: u64, differences: impl Fn(u64) -> Vec<String> + Sync) {
        let seeds: Vec<u64> = chosen_seeds().unwrap_or_else(|| (0..n_models).collect());
        let next = AtomicUsize::new(0);
        let take = || seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied();
        let work = || std::iter::from_fn(take).map(|seed| (seed, differences(seed))).collect::<Vec<_>>();
        let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut failed: Vec<(u64, Vec<String>)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).filter(|(_, differences)| !differences.is_empty()).collect()
        });
        failed.sort();
        let text = |(seed, differences): &(u64, Vec<String>)| {
            let texts: Vec<String> = differences.iter().take(8).map(|d| format!("  {d}")).collect();
            format!("model {seed}:\n{}", texts.join("\n"))
        };
        let first = failed.iter().take(10).map(text).collect::<Vec<_>>().join("\n");
        let all: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
        assert!(failed.is_empty(), "{} of {} models differ: {all:?}\n{first}", failed.len(), seeds.len());
    }

    /// Checks the models of these seeds as in a run of many.
    fn check_seeds(&self, seeds: &[u64]) {
        for seed in seeds {
            assert_eq!(self.differences(*seed, MANY_MODELS), Vec::<String>::new(), "model {seed}");
        }
    }

    fn check(&self, n_models: u64) {
        self.check_by(n_models, |seed| self.differences(seed, n_models));
    }
}

/// Variable of the environment with the numbers of the models to look at, `436,722`, in place of all of a run.
const SEEDS: &str = "ROUNDTRIP_MODELS";

fn chosen_seeds() -> Option<Vec<u64>> {
    let seeds = std::env::var(SEEDS).ok()?;
    Some(seeds.split(',').map(|seed| seed.trim().parse().unwrap()).collect())
}

/// t of the bounds in `structure` over all means of `n_models` models.
fn log_inverse_chance(n_models: u64) -> f64 {
    (2.0 * MEANS_OF_A_MODEL * n_models as f64 / FALSE_ALARM).ln()
}

/// Spans that the quality report says were left out as what they hang below is lost.
fn left_out(extraction: &Extraction) -> u64 {
    extraction.quality.as_ref().unwrap().spans.set_aside.get("unattached").map_or(0, |reason| reason.count)
}

/// Names of the reference tasks.
fn customers(ran: &Ran) -> Vec<&str> {
    ran.model.tasks.iter().filter(|task| task.scheduling.is_reference()).map(|task| task.name.as_str()).collect()
}

impl Ran {
    /// The part of the run that is traced at all.
    fn sampled(&self, dirt: &Dirt) -> Self {
        let mut cycle_of = std::collections::HashMap::new();
        let mut is_kept = |event: &&RecordedEvent| {
            if let Event::Sent { cycle, .. } = event.event {
                cycle_of.insert(event.request, cycle);
            }
            dirt.samples(cycle_of[&event.request])
        };
        let events = self.events.iter().filter(|event| is_kept(event)).copied().collect();
        Self { model: self.model.clone(), legend: self.legend.clone(), events }
    }
}

fn clean(form: TraceForm) -> Case {
    Case::new(form, SHOWN)
}

fn linked(form: TraceForm) -> Case {
    Case { options: TraceOptions { linked_traces: true, ..TraceOptions::default() }, ..clean(form) }
}

#[test]
fn otlp_spans_give_the_model_back() {
    clean(TraceForm::Otlp).check(MODELS);
}

#[test]
fn linked_otlp_traces_give_the_model_back() {
    linked(TraceForm::Otlp).check(MODELS);
}

#[test]
fn jaeger_spans_give_the_model_back() {
    clean(TraceForm::Jaeger).check(MODELS);
}

#[test]
fn linked_jaeger_traces_give_the_model_back() {
    linked(TraceForm::Jaeger).check(MODELS);
}

#[test]
fn zipkin_spans_give_the_model_back() {
    clean(TraceForm::Zipkin).check(MODELS);
}

fn dirty(dirt: Dirt) -> Case {
    Case { options: TraceOptions { dirt, ..TraceOptions::default() }, ..clean(TraceForm::Otlp) }
}

const SAMPLED: Dirt = Dirt { sampled: 0.1, skew_s: 0.0, lost: 0.0, seed: 1 };
const SKEWED: Dirt = Dirt { sampled: 1.0, skew_s: 0.05, lost: 0.0, seed: 1 };
const LOST: Dirt = Dirt { sampled: 1.0, skew_s: 0.0, lost: 0.01, seed: 1 };
const ALL_DIRT: Dirt = Dirt { sampled: 0.1, skew_s: 0.05, lost: 0.01, seed: 1 };

#[test]
fn a_tenth_of_the_cycles_gives_the_model_back() {
    Case { cycles: 10 * CYCLES, ..dirty(SAMPLED) }.check(MODELS / 2);
}

#[test]
fn skewed_clocks_are_found_and_give_the_model_back() {
    dirty(SKEWED).check(MODELS);
}

/// Models with hosts that are asked for second phases only, so that wide bounds around 0 are all that a pair tells: its clocks are
/// wrong all the same, as the others are.
#[test]
fn clocks_that_may_be_right_are_not_taken_for_right_among_wrong_ones() {
    Case { cycles: FEWER_CYCLES, ..dirty(SKEWED) }.check_seeds(&[488, 603]);
}

/// Models whose replies are by clocks that are off by half a millisecond, and calls close to these.
#[test]
fn calls_near_a_reply_stay_synchronous_where_clocks_leave_them_open() {
    let case = Case { cycles: FEWER_CYCLES, ..dirty(SKEWED) };
    for seed in [436, 722] {
        let ran = Ran::new(case.features, seed, case.cycles);
        let extraction = case.extract(&ran);
        let told = &extraction.quality.as_ref().unwrap().spans.remarks;
        assert!(!told.contains_key("outlives_caller"), "model {seed}: {:?}", told.get("outlives_caller"));
        assert_eq!(case.differences_of(&ran, &extraction, MANY_MODELS), Vec::<String>::new(), "model {seed}");
    }
}

/// Models whose calls are all but seldom of one phase: those that are of the other are so by clocks that tell it.
#[test]
fn calls_that_are_seldom_of_a_phase_stay_there_where_clocks_tell() {
    Case { cycles: FEWER_CYCLES, ..dirty(SKEWED) }.check_seeds(&[773, 913]);
}

/// Models whose second phases are much alike: they are not the difference of two clocks.
#[test]
fn second_phases_that_are_much_alike_are_no_clocks() {
    Case { cycles: FEWER_CYCLES, ..clean(TraceForm::Otlp) }.check_seeds(&[413]);
    Case { cycles: 10 * FEWER_CYCLES, ..dirty(SAMPLED) }.check_seeds(&[260]);
}

/// Models of which few whole traces show what a lost span was.
#[test]
fn what_few_traces_show_is_left_out_where_spans_are_lost() {
    Case { cycles: FEWER_CYCLES, ..dirty(LOST) }.check_seeds(&[56, 494, 981]);
}

#[test]
fn lost_spans_are_told_and_leave_the_model_as_it_is() {
    dirty(LOST).check(MODELS);
}

#[test]
fn sampled_skewed_and_lost_spans_give_the_model_back() {
    Case { cycles: 10 * CYCLES, ..dirty(ALL_DIRT) }.check(MODELS / 2);
}

/// Sampled, skewed and lost spans of traces that are joined by links.
fn dirty_and_linked(cycles: u64) -> Case {
    let options = TraceOptions { dirt: ALL_DIRT, linked_traces: true, ..TraceOptions::default() };
    Case { cycles, options, ..clean(TraceForm::Otlp) }
}

#[test]
fn sampled_skewed_and_lost_spans_of_linked_traces_give_the_model_back() {
    dirty_and_linked(10 * CYCLES).check(MODELS / 2);
}

/// Cycles in the long run; of sampled ones ten times as many.
const FEWER_CYCLES: u64 = 100;

#[test]
#[ignore = "takes minutes"]
fn otlp_spans_give_a_thousand_models_back() {
    Case { cycles: FEWER_CYCLES, ..clean(TraceForm::Otlp) }.check(MANY_MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn linked_otlp_traces_give_a_thousand_models_back() {
    Case { cycles: FEWER_CYCLES, ..linked(TraceForm::Otlp) }.check(MANY_MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn jaeger_spans_give_a_thousand_models_back() {
    Case { cycles: FEWER_CYCLES, ..linked(TraceForm::Jaeger) }.check(MANY_MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn zipkin_spans_give_a_thousand_models_back() {
    Case { cycles: FEWER_CYCLES, ..clean(TraceForm::Zipkin) }.check(MANY_MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn sampled_spans_give_a_thousand_models_back() {
    Case { cycles: 10 * FEWER_CYCLES, ..dirty(SAMPLED) }.check(MANY_MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn skewed_spans_give_a_thousand_models_back() {
    Case { cycles: FEWER_CYCLES, ..dirty(SKEWED) }.check(MANY_MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn lost_spans_give_a_thousand_models_back() {
    Case { cycles: FEWER_CYCLES, ..dirty(LOST) }.check(MANY_MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn sampled_skewed_and_lost_spans_give_a_thousand_models_back() {
    Case { cycles: 10 * FEWER_CYCLES, ..dirty(ALL_DIRT) }.check(MANY_MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn sampled_skewed_and_lost_spans_of_linked_traces_give_a_thousand_models_back() {
    dirty_and_linked(10 * FEWER_CYCLES).check(MANY_MODELS);
}
