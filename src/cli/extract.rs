//! `layerfit extract`.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use super::{Failure, OutputFormat, input, write_stdout};
use crate::{
    model::{Model, Number, format::Format as ModelFormat, json, lqnx},
    structure::{Accepts, Demands, ExtractOptions, Extraction, MergeKey, Record, SecondPhase, TaskReport, Technique, Timing, extract},
    trace::{BadRows, Format, Source, SourcesAre},
};

/// Records that the text report shows.
const RECORDS_SHOWN: usize = 20;

/// Arguments of `layerfit extract`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Traces, plain or gzip.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Format of the traces: same.
    #[arg(long)]
    from: Format,
    /// How structure is found: same. By default what fits the format.
    #[arg(long)]
    technique: Option<Technique>,
    /// Where the model is written: .lqnx or .json.
    #[arg(long, value_name = "MODEL")]
    out: Option<PathBuf>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
    /// Fail at the first row that cannot be read, instead of skipping and counting.
    #[arg(long)]
    strict: bool,
    /// The files are parts of one recording, not each a scenario of its own.
    #[arg(long)]
    parts: bool,
    /// How often a scenario (a file, or the log's column) is used, relative to the others.
    #[arg(long, value_name = "SCENARIO=WEIGHT")]
    profile: Vec<String>,
    /// Name of a task for a process, as from an instance to its class.
    #[arg(long, value_name = "PROCESS=TASK")]
    rename: Vec<String>,
    /// Seconds of one tick of the log's clock.
    #[arg(long, value_name = "SECONDS", default_value_t = 1e-6, allow_negative_numbers = true)]
    seconds_per_tick: f64,
    /// Demand of an entry where nothing else says it, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1e-3, allow_negative_numbers = true)]
    default_demand: f64,
    /// Where demands come from: default, self-times.
    #[arg(long, value_parser = by_name::<Demands>, default_value = "default")]
    demands: Demands,
    /// Which times of a message count: auto, reception, two-point.
    #[arg(long, value_parser = by_name::<Timing>, default_value = "auto")]
    timing: Timing,
    /// What a task sends after its reply is its second phase (detect), or the start of something new (ignore).
    #[arg(long, value_parser = by_name::<SecondPhase>, default_value = "detect")]
    second_phase: SecondPhase,
    /// What becomes one entry: behaviour (and operation), behaviour-only, operation.
    #[arg(long, value_parser = by_name::<MergeKey>, default_value = "behaviour")]
    merge: MergeKey,
    /// Name of the reference task that makes the initial requests of several scenarios.
    #[arg(long, value_name = "TASK", default_value = "Client")]
    client: String,
    /// Customers of each reference task: a number or $NAME. By default as many as were seen at once.
    #[arg(long, value_name = "N", value_parser = number)]
    customers: Option<Number>,
    /// Think time of the reference tasks: seconds or $NAME.
    #[arg(long, value_name = "SECONDS", value_parser = number, default_value = "0")]
    think_time: Number,
}

/// Reads an option's value by its name in the options' JSON form.
fn by_name<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<Number, String> {
    Number::parse(text).ok_or_else(|| "expected a number or $NAME".to_owned())
}

/// Runs `layerfit extract`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let options = options(&args)?;
    let writer = args.out.as_deref().map(model_writer).transpose()?;
    let mut contents = Vec::with_capacity(args.traces.len());
    for path in &args.traces {
        contents.push((path.to_string_lossy().into_owned(), input::read_bytes(path)?));
    }
    let sources: Vec<Source<'_>> = contents.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let extraction = extract(&sources, args.from, &options).map_err(|error| Failure::input(&error))?;
    if let (Some(path), Some(write)) = (&args.out, writer) {
        fs::write(path, write(&extraction.model)).map_err(|error| Failure::input_text(format!("{}: {error}", path.display())))?;
    }
    match args.format {
        OutputFormat::Text => write_stdout(&report(&extraction)),
        OutputFormat::Json => {
            let json = serde_json::to_string_pretty(&extraction).map_err(|error| Failure::internal(&error))?;
            write_stdout(&format!("{json}\n"));
        }
    }
    Ok(())
}

fn options(args: &Args) -> Result<ExtractOptions, Failure> {
    let mut options = ExtractOptions {
        technique: args.technique,
        bad_rows: if args.strict { BadRows::Reject } else { BadRows::Count },
        sources_are: if args.parts { SourcesAre::Parts } else { SourcesAre::Scenarios },
        timing: args.timing,
        second_phase: args.second_phase,
        merge: args.merge,
        seconds_per_tick: args.seconds_per_tick,
        default_demand: args.default_demand,
        demands: args.demands,
        client: args.client.clone(),
        customers: args.customers.clone(),
        think_time: args.think_time.clone(),
        ..ExtractOptions::default()
    };
    for argument in &args.profile {
        let parsed = argument.rsplit_once('=').and_then(|(name, weight)| Some((name.trim(), weight.trim().parse().ok()?)));
        let Some((name, weight)) = parsed.filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::input_text(format!("\"{argument}\": expected SCENARIO=WEIGHT, as in browse=0.7")));
        };
        options.usage_profile.insert(name.to_owned(), weight);
    }
    for argument in &args.rename {
        let Some((process, task)) = argument.split_once('=').filter(|(process, task)| !process.is_empty() && !task.is_empty()) else {
            return Err(Failure::input_text(format!("\"{argument}\": expected PROCESS=TASK, as in Book2=Book")));
        };
        options.task_names.insert(process.to_owned(), task.to_owned());
    }
    Ok(options)
}

/// What writes a model to a file of that name.
fn model_writer(path: &Path) -> Result<fn(&Model) -> String, Failure> {
    match ModelFormat::from_file_name(&path.to_string_lossy()) {
        Some(ModelFormat::Lqnx) => Ok(lqnx::write),
        Some(ModelFormat::Json) => Ok(json::write),
        Some(ModelFormat::LqnText) | None => Err(Failure::with_hint(
            format!("{}: a model is written to a file ending in .lqnx or .json", path.display()),
            "the text grammar is read, not written",
        )),
    }
}

fn report(extraction: &Extraction) -> String {
    let mut text = String::new();
    let counts = &extraction.interactions;
    let _ = writeln!(text, "model {}", extraction.model.name);
    let _ = writeln!(text, "interactions: {} synchronous, {} asynchronous, {} forwarded", counts.sync, counts.asynchronous, counts.forward);
    if extraction.scenarios.len() > 1 {
        let _ = writeln!(text, "\nscenarios");
        for scenario in &extraction.scenarios {
            let _ = writeln!(text, "  {:<24} {:>6} traces  probability {:.4}", scenario.name, scenario.traces, scenario.probability);
        }
    }
    let _ = writeln!(text, "\ntasks");
    extraction.tasks.iter().for_each(|task| report_task(&mut text, task, &extraction.model));
    let _ = writeln!(text, "\nrecords");
    extraction.records.iter().take(RECORDS_SHOWN).for_each(|record| report_record(&mut text, record));
    if let Some(more) = extraction.records.len().checked_sub(RECORDS_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "  … and {more} more; --format json has all");
    }
    if !extraction.diagnostics.is_empty() {
        let _ = writeln!(text, "\ndiagnostics");
    }
    for diagnostic in &extraction.diagnostics {
        let _ = writeln!(text, "  {} ({} times): {}", diagnostic.code, diagnostic.count, diagnostic.message);
        for example in &diagnostic.examples {
            let _ = writeln!(text, "      {example}");
        }
    }
    text
}

fn report_task(text: &mut String, task: &TaskReport, model: &Model) {
    let kind = if task.reference { "reference task" } else { "task" };
    let _ = writeln!(text, "  {kind} {} on {}, {} seen", task.name, task.processor, plural(task.threads, "thread"));
    for report in &task.entries {
        let accepts = match report.accepts {
            Accepts::Nothing => "starts on its own",
            Accepts::Sync => "replies",
            Accepts::Async => "does not reply",
        };
        let _ = write!(text, "    {}: {accepts}, {}", report.name, plural(report.occurrences, "occurrence"));
        let times: Vec<String> = report.self_times.iter().map(|t| t.map_or("unknown".into(), |t| format!("{t:.6} s"))).collect();
        let _ = writeln!(text, ", self time {}", times.join(" + "));
        let Some((_, entry)) = model.entry(&report.name) else { continue };
        for phase in &entry.phases {
            for call in &phase.activity.calls {
                let kind = if call.kind == crate::model::CallKind::Sync { "calls" } else { "sends to" };
                let _ = writeln!(text, "      phase {} {kind} {} × {}", phase.phase, call.dest, call.mean);
            }
        }
        for forwarding in &entry.forwarding {
            let _ = writeln!(text, "      forwards to {} with probability {}", forwarding.dest, forwarding.probability);
        }
    }
}

fn plural(n: u64, noun: &str) -> String {
    if n == 1 { format!("{n} {noun}") } else { format!("{n} {noun}s") }
}

fn report_record(text: &mut String, record: &Record) {
    let kind = match record.kind {
        crate::structure::interactions::InteractionKind::Sync => "sync   ",
        crate::structure::interactions::InteractionKind::Async => "async  ",
        crate::structure::interactions::InteractionKind::Forward => "forward",
    };
    let chain: Vec<&str> = [&record.from].into_iter().chain(&record.via).chain([&record.to]).map(String::as_str).collect();
    let times: Vec<String> = record.times.iter().map(ToString::to_string).collect();
    let phase = if record.phase == 2 { ", phase 2" } else { "" };
    let _ = writeln!(text, "  {kind} {} at {}{phase}", chain.join(" → "), times.join(", "));
}
