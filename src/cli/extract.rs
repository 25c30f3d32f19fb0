//! `layerfit extract`.

use std::path::{Path, PathBuf};

use super::{
    Failure, OutputFormat,
    extraction_report::report,
    input,
    output::{model_writer, write_file},
    traces::{TraceArgs, by_name},
    usage::UserArgs,
    write_stdout,
};
use crate::{
    model::Number,
    structure::{
        Changes, Demands, ExtractOptions, Extraction, MergeKey, SecondPhase, Side, Technique, Timing, UsageFrom, compare, extract_streams,
        resources::parse_resources,
    },
    trace::Format,
};

/// Probability that `--compare` calls anything changed which has not.
const CHANGE_LEVEL: f64 = 0.05;

/// Arguments of `layerfit extract`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    traces: TraceArgs,
    /// How structure is found: same, tlc, execution-graph, call-path, spans. By default what fits the format.
    #[arg(long)]
    technique: Option<Technique>,
    /// Where the model is written: .lqnx or .json.
    #[arg(long, value_name = "MODEL")]
    out: Option<PathBuf>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
    /// How often a scenario (a file, the log's column, or what a recording starts with) is used, relative to the others.
    #[arg(long, value_name = "SCENARIO=WEIGHT")]
    profile: Vec<String>,
    /// Name of a task for a process, as from an instance to its class.
    #[arg(long, value_name = "PROCESS=TASK")]
    rename: Vec<String>,
    /// Says what calls and entries changed since an extraction that was printed with --format json. Times and demands are not compared.
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,
    /// Resources beside the traces, TOML: processors, threads, demands, workload.
    #[arg(long, value_name = "FILE.toml")]
    resources: Option<PathBuf>,
    /// Most interactions that are reported one by one.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    records: usize,
    /// Demand of an entry where nothing else says it, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1e-3, allow_negative_numbers = true)]
    default_demand: f64,
    /// Where demands come from: auto, default, self-times.
    #[arg(long, value_parser = by_name::<Demands>, default_value = "auto")]
    demands: Demands,
    /// Message logs: which times of a message count: auto, reception, two-point.
    #[arg(long, value_parser = by_name::<Timing>, default_value = "auto")]
    timing: Timing,
    /// Message logs: what a task sends after its reply is its second phase (detect), or the start of something new (ignore).
    #[arg(long, value_parser = by_name::<SecondPhase>, default_value = "detect")]
    second_phase: SecondPhase,
    /// What becomes one entry: auto, behaviour (and operation), behaviour-only, operation.
    #[arg(long, value_parser = by_name::<MergeKey>, default_value = "auto")]
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
    /// What reference tasks are made of: recordings (one after another), sessions (of users: their mix, think times, number).
    #[arg(long, value_parser = by_name::<UsageFrom>, default_value = "recordings")]
    usage: UsageFrom,
    #[command(flatten)]
    users: UserArgs,
}

fn number(text: &str) -> Result<Number, String> {
    Number::parse(text).ok_or_else(|| "expected a number or $NAME".to_owned())
}

/// Runs `layerfit extract`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let options = options(&args)?;
    let writer = args.out.as_deref().map(model_writer).transpose()?;
    args.warn_of_what_has_no_effect();
    let old = args.compare.as_deref().map(read_extraction).transpose()?;
    let (sources, bar) = args.traces.open(&[("--out", args.out.as_deref())], &[args.resources.as_deref(), args.compare.as_deref()])?;
    let extraction = extract_streams(sources, args.traces.from, &options);
    bar.finish_and_clear();
    let extraction = extraction.map_err(|error| Failure::input(&error))?;
    let changes = old.map(|old| compare(&Side::from(&old), &Side::from(&extraction), CHANGE_LEVEL));
    if let (Some(path), Some(write)) = (&args.out, writer) {
        write_file(path, &write(&extraction.model))?;
    }
    print(args.format, &extraction, changes.as_ref())
}

impl Args {
    /// Options that are of other forms of traces are named.
    fn warn_of_what_has_no_effect(&self) {
        let mut without = self.traces.without_effect();
        if self.traces.from != Format::Same {
            without.extend((self.timing != Timing::default()).then_some("--timing"));
            without.extend((self.second_phase != SecondPhase::default()).then_some("--second-phase"));
        }
        if !without.is_empty() {
            note!("warning: no effect on traces of this form ({}): {}", self.traces.from, without.join(", "));
        }
    }
}

fn print(format: OutputFormat, extraction: &Extraction, changes: Option<&Changes>) -> Result<(), Failure> {
    for cut in extraction.diagnostics.iter().filter(|d| d.code == "truncated") {
        cut.examples.iter().for_each(|example| note!("warning: {example}: {}", cut.message));
    }
    match format {
        OutputFormat::Text => {
            write_stdout(&report(extraction));
            if let Some(changes) = changes {
                write_stdout(&format!("\n{}", changes.text()));
            }
        }
        OutputFormat::Json => {
            let mut json = serde_json::to_value(extraction).map_err(|error| Failure::internal(&error))?;
            if let Some(changes) = changes {
                json["changes"] = serde_json::to_value(changes).map_err(|error| Failure::internal(&error))?;
            }
            let json = serde_json::to_string_pretty(&json).map_err(|error| Failure::internal(&error))?;
            write_stdout(&format!("{json}\n"));
        }
    }
    Ok(())
}

/// An extraction as `--format json` printed it.
fn read_extraction(path: &Path) -> Result<Extraction, Failure> {
    let text = input::read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("{}: {error}: expected what `layerfit extract --format json` prints", path.display());
        Failure::input_text(message)
    })
}

fn options(args: &Args) -> Result<ExtractOptions, Failure> {
    let mut options = ExtractOptions {
        technique: args.technique,
        timing: args.timing,
        second_phase: args.second_phase,
        merge: args.merge,
        default_demand: args.default_demand,
        demands: args.demands,
        client: args.client.clone(),
        customers: args.customers.clone(),
        think_time: args.think_time.clone(),
        usage: args.usage,
        users: args.users.sessions(),
        behaviour: args.users.behaviour(),
        records_kept: args.records,
        ..args.traces.options()?
    };
    if let Some(path) = &args.resources {
        let text = input::read_text(path)?;
        options.resources = parse_resources(&path.to_string_lossy(), &text).map_err(|error| Failure::input(&error))?;
    }
    for argument in &args.profile {
        let parsed = argument.rsplit_once('=').and_then(|(name, weight)| Some((name.trim(), weight.trim().parse().ok()?)));
        let Some((name, weight)) = parsed.filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::input_text(format!("\"{argument}\": expected SCENARIO=WEIGHT, as in browse=0.7")));
        };
        if options.usage_profile.insert(name.to_owned(), weight).is_some() {
            return Err(Failure::input_text(format!("\"{argument}\": {name} has a weight already, expected each scenario once")));
        }
    }
    for argument in &args.rename {
        let Some((process, task)) = argument.split_once('=').filter(|(process, task)| !process.is_empty() && !task.is_empty()) else {
            return Err(Failure::input_text(format!("\"{argument}\": expected PROCESS=TASK, as in Book2=Book")));
        };
        if options.task_names.insert(process.to_owned(), task.to_owned()).is_some() {
            return Err(Failure::input_text(format!("\"{argument}\": {process} has a task already, expected each process once")));
        }
    }
    Ok(options)
}
