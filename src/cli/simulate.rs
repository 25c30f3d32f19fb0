//! `layerfit simulate`: measured data from a model, as trials, or a run of it as a trace.

use std::{
    num::NonZero,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    Failure, input,
    output::{Draft, check_outputs, unwritable, write_file},
    record::{TraceForm, TraceOptions, UnknownForm, dirt::Dirt, writer},
    simulation::progress,
    write_stdout,
};
use crate::{
    model::{Bindings, Measure, Model},
    solve::{
        SimulateOptions, SolveError,
        simulate::{
            self, Measured,
            record::{RecordOptions, Recording},
        },
    },
};

/// Most trials of one command.
const TRIALS_LIMIT: usize = 100_000;

/// Arguments of `layerfit simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Model: .lqnx, .lqn or .json.
    model: PathBuf,
    /// Parameter values, `NAME=VALUE`.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Controlled values, one trial each; several make a trial of every combination.
    #[arg(long = "trials", value_name = "NAME=FROM..TO[:STEP]")]
    trials: Vec<String>,
    /// Trials of every combination, each with random numbers of its own: replicates, from which a fit with --weighting
    /// replicates takes the errors of measurement and what the measures of a trial have in common.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: usize,
    /// Model time of a trial, the warm-up that is left out included.
    #[arg(long, value_name = "T")]
    time: f64,
    /// Seed of the random numbers; trial i uses seed + i.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Independent replications of each trial; each runs for --time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    replications: usize,
    /// Trials that run at the same time; 0 for as many as there are cores. Does not change the result.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// File to write; standard output without it.
    #[arg(long, value_name = "TRIALS.csv")]
    out: Option<PathBuf>,
    /// What to measure, as throughput(User); may be repeated. Without it the throughput and response time of reference
    /// tasks and of entries with open arrivals, and the utilization of processors and tasks.
    #[arg(long = "measure", value_name = "MEASURE")]
    measures: Vec<String>,
    /// Trace to write of one run instead of trials: cycles begin until --time, and all that began are recorded to their end.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trials", "repeat", "replications", "measures", "out"])]
    trace: Option<PathBuf>,
    #[command(flatten)]
    tracing: TraceArgs,
}

/// Arguments of the trace that is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Trace")]
struct TraceArgs {
    /// Its form: same, angio, event-trace, call-path, otlp, jaeger or zipkin.
    #[arg(long, value_name = "FORMAT", requires = "trace", default_value = "same", value_parser = |text: &str| text.parse::<TraceForm>().map_err(|e: UnknownForm| e.to_string()))]
    trace_format: TraceForm,
    /// Seconds of the model's time unit.
    #[arg(long, value_name = "S", requires = "trace", default_value_t = 1.0)]
    seconds_per_unit: f64,
    /// Spans: share of cycles that are traced.
    #[arg(long, value_name = "P", requires = "trace", default_value_t = 1.0)]
    sampled: f64,
    /// Spans: largest offset of a host's clock either way, in seconds.
    #[arg(long, value_name = "S", requires = "trace", default_value_t = 0.0)]
    skew: f64,
    /// Spans: share of spans that never arrive.
    #[arg(long, value_name = "P", requires = "trace", default_value_t = 0.0)]
    lost: f64,
    /// Spans: what handles a message begins a trace of its own, linked to the sender's.
    #[arg(long, requires = "trace")]
    linked_traces: bool,
}

/// Runs `layerfit simulate`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    check_outputs(&[("--out", args.out.as_deref()), ("--trace", args.trace.as_deref())], &[&args.model])?;
    let model = input::read_model(&args.model)?;
    let fixed = input::settings(&model, &args.set)?;
    if let Some(path) = &args.trace {
        return write_trace(&model, &fixed, path, &args);
    }
    let ranges = args.trials.iter().map(|text| range(text)).collect::<Result<Vec<_>, _>>()?;
    input::each_once("--trials", &args.trials, ranges.iter().map(|(name, _)| name.as_str()))?;
    for (i, (name, _)) in ranges.iter().enumerate() {
        input::require_parameter(&model, name, &format!("--trials {}", args.trials[i]))?;
        if fixed.get(name).is_some() {
            return Err(Failure::input_text(format!("--trials {}: {name} has a value by --set, too", args.trials[i])));
        }
    }
    let trials = repeated(&combinations(&ranges)?, args.repeat)?;
    let measures = if args.measures.is_empty() { default_measures(&model) } else { parse_measures(&args.measures)? };
    let table = Plan { model: &model, fixed: &fixed, ranges: &ranges, trials: &trials, measures: &measures }.simulate(&args)?;
    match &args.out {
        None => write_stdout(&table),
        Some(path) => write_file(path, &table)?,
    }
    Ok(())
}

/// Runs the model once and writes what happens as it happens.
fn write_trace(model: &Model, fixed: &Bindings, path: &Path, args: &Args) -> Result<(), Failure> {
    let options = args.tracing.options(args.seed)?;
    args.tracing.warn_of_what_has_no_effect();
    let record = RecordOptions { seed: args.seed, run_time: Some(args.time), ..RecordOptions::default() };
    let recording = Recording::new(model, fixed, record).map_err(|e| failure(&e, 1, 1))?;
    let unwritable = |error: std::io::Error| unwritable(path, &error);
    let mut draft = Draft::new(path)?;
    let mut writer = writer(args.tracing.trace_format, recording.legend(), &options, &mut draft).map_err(unwritable)?;
    let mut written = Ok(());
    let bar = progress(1, "the run is written");
    let recorded = recording.run(&mut |event| {
        written = writer.event(event);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    bar.finish_and_clear();
    let recorded = recorded.map_err(|e| failure(&e, 1, 1))?;
    written.and_then(|()| writer.finish()).map_err(unwritable)?;
    drop(writer);
    draft.finish()?;
    if !recorded.is_complete {
        note!("warning: the trace stops short: not all of its {} cycles have ended", recorded.cycles);
    }
    note!("{}: {} events of {} cycles in {} time units", path.display(), recorded.n_events, recorded.cycles, recorded.time);
    Ok(())
}

impl TraceArgs {
    /// Options of spans are named where other forms are written.
    fn warn_of_what_has_no_effect(&self) {
        let given = [
            ("--sampled", self.sampled < 1.0),
            ("--skew", self.skew > 0.0),
            ("--lost", self.lost > 0.0),
            ("--linked-traces", self.linked_traces),
        ];
        let without: Vec<&str> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect();
        if !self.trace_format.has_spans() && !without.is_empty() {
            note!("warning: no effect on traces of this form ({}): {}", self.trace_format.name(), without.join(", "));
        }
    }

    /// The options, checked.
    fn options(&self, seed: u64) -> Result<TraceOptions, Failure> {
        let wrong = |option: &str, value: f64, expected: &str| Failure::input_text(format!("{option} is {value}, expected {expected}"));
        if !(self.seconds_per_unit.is_finite() && self.seconds_per_unit > 0.0) {
            return Err(wrong("--seconds-per-unit", self.seconds_per_unit, "more than 0"));
        }
        if !(self.sampled > 0.0 && self.sampled <= 1.0) {
            return Err(wrong("--sampled", self.sampled, "a share above 0, at most 1"));
        }
        if !(0.0..1.0).contains(&self.lost) {
            return Err(wrong("--lost", self.lost, "a share of at least 0, below 1"));
        }
        if !(self.skew.is_finite() && self.skew >= 0.0) {
            return Err(wrong("--skew", self.skew, "seconds, at least 0"));
        }
        let dirt = Dirt { sampled: self.sampled, skew_s: self.skew, lost: self.lost, seed };
        let (seconds_per_unit, linked_traces) = (self.seconds_per_unit, self.linked_traces);
        Ok(TraceOptions { seconds_per_unit, linked_traces, dirt, ..TraceOptions::default() })
    }
}

/// Trials to be simulated.
struct Plan<'a> {
    model: &'a Model,
    fixed: &'a Bindings,
    ranges: &'a [(String, Vec<f64>)],
    /// Values of the ranges' parameters in each.
    trials: &'a [Vec<f64>],
    measures: &'a [Measure],
}

impl Plan<'_> {
    /// Values of all parameters in a trial.
    fn values(&self, number: usize) -> Bindings {
        let mut values = self.fixed.clone();
        self.ranges.iter().zip(&self.trials[number]).for_each(|((name, _), &value)| values.set(name.clone(), value));
        values
    }

    /// The table of what was measured; nothing is simulated where a trial has values that the model cannot have.
    fn simulate(&self, args: &Args) -> Result<String, Failure> {
        let Self { model, ranges, trials, measures, .. } = *self;
        let options = |number: usize| SimulateOptions {
            seed: args.seed.wrapping_add(number as u64),
            run_time: Some(args.time),
            precision: None,
            max_events: u64::MAX,
            replications: args.replications,
            workers: 1,
            ..SimulateOptions::default()
        };
        options(0).check().map_err(|e| Failure::input(&e))?;
        let checked = in_parallel(trials.len(), args.threads, |number| simulate::check(model, &self.values(number), measures));
        checked.into_iter().enumerate().try_for_each(|(number, found)| found.map_err(|e| failure(&e, number + 1, trials.len())))?;
        let bar = progress(trials.len(), "{pos} of {len} trials simulated");
        let one = |number: usize| simulate::measure(model, &self.values(number), &options(number), measures).inspect(|_| bar.inc(1));
        let found = in_parallel(trials.len(), args.threads, one);
        bar.finish_and_clear();
        let failed = |e: &dyn std::error::Error| Failure::internal(e);
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(header(ranges, measures)).map_err(|e| failed(&e))?;
        for (number, (trial, measured)) in trials.iter().zip(found).enumerate() {
            let measured = measured.map_err(|e| failure(&e, number + 1, trials.len()))?;
            if !measured.solution.converged {
                measured.solution.diagnostics.iter().for_each(|note| note!("warning: trial {}: {note}", number + 1));
            }
            for (measure, _) in measures.iter().zip(&measured.values).filter(|(_, value)| value.is_none()) {
                note!("warning: trial {}: {measure} was never observed, its cell is empty: simulate for longer", number + 1);
            }
            table.write_record(row(number + 1, trial, &measured)).map_err(|e| failed(&e))?;
        }
        let bytes = table.into_inner().map_err(|e| failed(&e))?;
        String::from_utf8(bytes).map_err(|e| failed(&e))
    }
}

fn row(number: usize, trial: &[f64], measured: &Measured) -> Vec<String> {
    let mut row = vec![number.to_string()];
    row.extend(trial.iter().map(f64::to_string));
    for (value, std_error) in measured.values.iter().zip(measured.std_errors()) {
        row.push(value.map_or_else(String::new, |v| v.to_string()));
        // A measure that never varied has no standard error that a fit could weigh it by.
        row.push(std_error.filter(|e| *e > 0.0).map_or_else(String::new, |e| e.to_string()));
    }
    row.push(measured.solution.measured_time.map_or_else(String::new, |t| t.to_string()));
    row
}

/// Results of `one` for 0 to `n - 1`, in that order, from several threads. After an error no further ones are begun, so that
/// the results may end with the first error.
fn in_parallel<T: Send, E: Send>(n: usize, threads: usize, one: impl Fn(usize) -> Result<T, E> + Sync) -> Vec<Result<T, E>> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = if threads == 0 { cores } else { threads }.clamp(1, n.max(1));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= n {
                return results;
            }
            let result = one(number);
            if result.is_err() {
                next.store(n, Ordering::Relaxed);
            }
            results.push((number, result));
        }
    };
    let mut results = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().filter_map(|w| w.join().ok()).flatten().collect::<Vec<_>>()
    });
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

fn failure(error: &SolveError, number: usize, of: usize) -> Failure {
    let hint = match error {
        SolveError::Unbound(_) => Some("give it a value with --set or a range with --trials"),
        SolveError::Unbounded { .. } => Some("lower the arrival rates, or bound the queue with queue-length"),
        _ => None,
    };
    let message = if of > 1 { format!("trial {number}: {error}") } else { error.to_string() };
    hint.map_or_else(|| Failure::input_text(message.clone()), |hint| Failure::with_hint(message.clone(), hint))
}

fn header(ranges: &[(String, Vec<f64>)], measures: &[Measure]) -> Vec<String> {
    let mut header = vec!["trial".to_owned()];
    header.extend(ranges.iter().map(|(name, _)| format!("${name}")));
    for measure in measures {
        header.push(measure.to_string());
        header.push(format!("stderr({measure})"));
    }
    header.push("duration".to_owned());
    header
}

/// `NAME=FROM..TO[:STEP]`, or `NAME=VALUE` for a single value.
fn range(text: &str) -> Result<(String, Vec<f64>), Failure> {
    let bad = || Failure::input_text(format!("\"{text}\": expected NAME=FROM..TO or NAME=FROM..TO:STEP with numbers, as in users=1..50:5"));
    let (name, values) = text.split_once('=').ok_or_else(bad)?;
    let name = name.trim().trim_start_matches('$').to_owned();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(bad);
    if name.is_empty() {
        return Err(bad());
    }
    let Some((from, rest)) = values.split_once("..") else {
        return Ok((name, vec![number(values)?]));
    };
    let (to, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    if step <= 0.0 || to < from {
        return Err(Failure::input_text(format!("\"{text}\": expected FROM at most TO, and STEP above 0")));
    }
    // A last value off by rounding still counts.
    let steps = ((to - from) / step + 1e-9).floor();
    if steps >= TRIALS_LIMIT as f64 {
        return Err(Failure::input_text(format!("\"{text}\": more than {TRIALS_LIMIT} values")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    let n = steps as u32;
    Ok((name, (0..=n).map(|i| from + f64::from(i) * step).collect()))
}

/// Every combination of the values, the first range outermost.
fn combinations(ranges: &[(String, Vec<f64>)]) -> Result<Vec<Vec<f64>>, Failure> {
    let mut trials = vec![Vec::new()];
    for (name, values) in ranges {
        if trials.len() * values.len() > TRIALS_LIMIT {
            return Err(Failure::input_text(format!("with the values of {name} there are more than {TRIALS_LIMIT} trials")));
        }
        let extend = |trial: &Vec<f64>| values.iter().map(|&v| [trial.as_slice(), &[v]].concat()).collect::<Vec<_>>();
        trials = trials.iter().flat_map(extend).collect();
    }
    Ok(trials)
}

/// Each of `trials` so many times, one after the other.
fn repeated(trials: &[Vec<f64>], times: usize) -> Result<Vec<Vec<f64>>, Failure> {
    if times == 0 || trials.len().saturating_mul(times) > TRIALS_LIMIT {
        return Err(Failure::input_text(format!("--repeat {times}: expected 1 or more, and at most {TRIALS_LIMIT} trials in all")));
    }
    Ok(trials.iter().flat_map(|trial| std::iter::repeat_n(trial.clone(), times)).collect())
}

fn parse_measures(texts: &[String]) -> Result<Vec<Measure>, Failure> {
    let measures = texts.iter().map(|text| text.parse()).collect::<Result<Vec<Measure>, _>>().map_err(|e| Failure::input(&e))?;
    input::measures_once(texts, &measures)?;
    Ok(measures)
}

/// Throughput and response time of reference tasks and of entries with open arrivals, utilization of processors and of the other tasks.
fn default_measures(model: &Model) -> Vec<Measure> {
    let mut measures = Vec::new();
    for task in model.tasks.iter().filter(|t| t.scheduling.is_reference()) {
        measures.push(Measure::Throughput(task.name.clone()));
        measures.push(Measure::ResponseTime(task.name.clone()));
    }
    // A name that a task has too means the task.
    let told_apart = |kind: &str, name: &str| if model.task(name).is_some() { format!("{kind}:{name}") } else { name.to_owned() };
    for entry in model.tasks.iter().flat_map(|t| &t.entries).filter(|e| e.open_arrival_rate.is_some()) {
        let name = told_apart("entry", &entry.name);
        measures.extend([Measure::Throughput(name.clone()), Measure::ResponseTime(name)]);
    }
    for processor in &model.processors {
        measures.push(Measure::Utilization(told_apart("processor", &processor.name)));
    }
    for task in model.tasks.iter().filter(|t| !t.scheduling.is_reference()) {
        measures.push(Measure::Utilization(task.name.clone()));
    }
    measures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_threads() {
        for threads in [0, 1, 3, 50] {
            let results = in_parallel(20, threads, |i| Ok::<_, ()>(i * i));
            assert_eq!(results, (0..20).map(|i| Ok(i * i)).collect::<Vec<_>>());
        }
        let results = in_parallel(20, 1, |i| if i == 3 { Err(i) } else { Ok(i) });
        assert_eq!(results, [Ok(0), Ok(1), Ok(2), Err(3)]);
    }

    #[test]
    fn ranges_are_values() {
        for (text, values) in [("n=1..3", vec![1.0, 2.0, 3.0]), ("$x=0.1..0.3:0.1", vec![0.1, 0.2, 0.1 + 2.0 * 0.1]), ("n=4", vec![4.0])] {
            assert_eq!(range(text).unwrap().1, values, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "n", "n=", "=1..2", "n=1..", "n=3..1", "n=1..2:0", "n=1..inf", "n=1..1e9", "n=a..b"] {
            assert!(range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn combinations_vary_the_last_range_fastest() {
        let ranges = [("a".to_owned(), vec![1.0, 2.0]), ("b".to_owned(), vec![3.0, 4.0])];
        assert_eq!(combinations(&ranges).unwrap(), [[1.0, 3.0], [1.0, 4.0], [2.0, 3.0], [2.0, 4.0]]);
        assert_eq!(combinations(&[]).unwrap(), [Vec::<f64>::new()]);
    }

    #[test]
    fn replicates_stand_together() {
        let trials = [vec![1.0], vec![2.0]];
        assert_eq!(repeated(&trials, 2).unwrap(), [[1.0], [1.0], [2.0], [2.0]]);
        assert!(repeated(&trials, 0).is_err() && repeated(&trials, TRIALS_LIMIT).is_err());
    }
}
