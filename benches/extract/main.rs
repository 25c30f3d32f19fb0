//! Speed and memory of extraction: each format read and analysed to a model, beside passes that only parse the same bytes.
//!
//! | pass | does |
//! |---|---|
//! | skip | finds the ends of fields and rows (`csv`), or of values (`serde_json` into `IgnoredAny`): nothing is read |
//! | parse | makes numbers and texts of all fields that the format has: rows of `csv` with their numbers parsed, typed structures of `serde` that borrow their texts, messages of `prost` |
//! | read | layerfit's reader, with a sink that counts |
//! | extract | `extract_streams` on one thread: reads, finds interactions, sums them up, makes the model |
//!
//! The passes of a form run one after another in one process, several times round, over one file; of each the least processor
//! time counts. Three further processes extract, on one core, on all (the steps of one file beside each other), and on all with
//! the trace divided among files: for the time that passes, on all the least of the rounds, and the resident set, the greatest.
//!
//! ```text
//! cargo bench --bench extract                       # sizes that take a minute or two
//! cargo bench --bench extract -- --full             # those of the goals
//! cargo bench --bench extract -- --form otlp --n 1000000 --rounds 5
//! ```
#![expect(clippy::print_stdout, reason = "benchmarks print")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot unwrap has failed")]

mod baseline;
#[path = "../../examples/traces/forms/mod.rs"]
mod forms;
mod json;
mod passes;

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use forms::{Asked, FORMS};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Files that the trace is divided among, for each core.
const FILES_PER_CORE: usize = 4;

/// Size and services of a form: small, and that of the goals.
fn sizes(form: &str) -> (u64, u64, u64) {
    match form {
        "same" | "same-ends" | "same-recordings" => (500_000, 10_000_000, 20),
        "angio" | "angio-one" => (300_000, 1_000_000, 100),
        "kieker" => (500_000, 2_032_573, 40),
        "otlp" | "otlp-protobuf" | "jaeger" | "zipkin" => (300_000, 10_000_000, 100),
        _ => (500_000, 10_000_000, 20),
    }
}

/// What the arguments ask for.
struct Arguments {
    full: bool,
    forms: Vec<String>,
    n: Option<u64>,
    services: Option<u64>,
    rounds: usize,
}

impl Arguments {
    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let mut asked = Self { full: false, forms: Vec::new(), n: None, services: None, rounds: 3 };
        let mut arguments = arguments.filter(|a| a != "--bench");
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
            match argument.as_str() {
                "--full" => asked.full = true,
                "--form" => asked.forms.push(value()),
                "--n" => asked.n = Some(value().parse().unwrap()),
                "--services" => asked.services = Some(value().parse().unwrap()),
                "--rounds" => asked.rounds = value().parse().unwrap(),
                _ => panic!("{argument} is not known: expected --full, --form, --n, --services, --rounds"),
            }
        }
        if asked.forms.is_empty() {
            asked.forms = FORMS.iter().map(|(form, _)| (*form).to_owned()).collect();
        }
        asked
    }
}

/// Writes a trace to `n_files` files of the folder; returns them, and how many messages, events, spans or executions there are.
fn write(asked: &Asked, folder: &Path, n_files: usize) -> (Vec<PathBuf>, u64) {
    // Files of a Kieker log are known by their names; any other would be a log of its own beside the map.
    let end = if asked.form == "kieker" { "dat" } else { "log" };
    let paths: Vec<PathBuf> = (0..n_files).map(|index| folder.join(format!("{}-{n_files}-{index}.{end}", asked.form))).collect();
    let open = |path: &PathBuf| Box::new(File::create(path).unwrap()) as Box<dyn Write>;
    let n = forms::write(asked, paths.iter().map(open).collect()).unwrap();
    (paths, n)
}

/// What a process of its own measured: one line of numbers.
fn measured(mode: &str, form: &str, rounds: usize, paths: &[PathBuf]) -> Vec<f64> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--measure", mode, form, &rounds.to_string()]).args(paths).stderr(Stdio::inherit());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{mode} of {form} failed");
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Least time that passes and greatest peak of as many runs on all cores.
fn on_all_cores(form: &str, rounds: usize, paths: &[PathBuf]) -> [f64; 2] {
    let n_cores = thread::available_parallelism().map_or(1, usize::from);
    (0..rounds)
        .map(|_| measured("extract", form, n_cores, paths))
        .fold([f64::INFINITY, 0.0], |[time, peak], run| [time.min(run[0]), peak.max(run[1])])
}

fn bench(asked: &Asked, what: &str, rounds: usize, folder: &Path) {
    let form = asked.form.as_str();
    let (one, n) = write(asked, folder, 1);
    let n_bytes = fs::metadata(&one[0]).unwrap().len();
    let passes = measured("passes", form, rounds, &one);
    let [skip, parse, read, extract] = passes[..] else { panic!("four passes are expected") };
    let n_cores = thread::available_parallelism().map_or(1, usize::from);
    let alone = measured("extract", form, 1, &one);
    let in_steps = on_all_cores(form, rounds, &one);
    fs::remove_file(&one[0]).unwrap();
    let divides = form != "kieker" && form != "angio-one";
    let together = divides.then(|| {
        let (many, _) = write(asked, folder, FILES_PER_CORE * n_cores);
        let together = on_all_cores(form, rounds, &many);
        many.iter().for_each(|path| fs::remove_file(path).unwrap());
        together
    });
    let ratio_of = |time: f64, to: f64| if to > 0.0 { format!("{:.2}", time / to) } else { "–".to_owned() };
    let ratio = |to: f64| ratio_of(extract, to);
    let rate = |seconds: f64| format!("{:.2}", n as f64 / seconds / 1e6);
    println!(
        "| {form} | {n} {what}, {} MB | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} | {:.0} | {} |",
        n_bytes / 1_000_000,
        ratio(skip),
        ratio(parse),
        ratio(read),
        ratio_of(in_steps[0], parse),
        ratio_of(in_steps[0], read),
        rate(extract),
        rate(in_steps[0]),
        together.as_ref().map_or("–".to_owned(), |t| rate(t[0])),
        alone[1] / 1e6,
        in_steps[1] / 1e6,
        together.as_ref().map_or("–".to_owned(), |t| format!("{:.0}", t[1] / 1e6)),
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == "--measure").is_some() {
        return passes::measure(arguments.collect());
    }
    let arguments = Arguments::of(arguments);
    let folder = tempfile::tempdir().unwrap();
    println!(
        "processor time of extracting over that of skipping, parsing and reading; time that passes on all cores, of one file, over the processor time of \
         parsing and reading; millions a second on one core, of one file on all, of several on all; peak of the resident set, MB\n"
    );
    println!(
        "| form | of | / skip | / parse | / read | {0} cores / parse | {0} cores / read | M/s, one core | one file, {0} cores | files, {0} cores | MB, one core | MB, one file | MB, files |",
        thread::available_parallelism().map_or(1, usize::from)
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for form in &arguments.forms {
        let what = FORMS.iter().find(|(known, _)| known == form).unwrap_or_else(|| panic!("{form} is not a form: expected {FORMS:?}")).1;
        let (small, full, services) = sizes(form);
        let n = arguments.n.unwrap_or(if arguments.full { full } else { small });
        let asked = Asked { form: form.clone(), n, services: arguments.services.unwrap_or(services), seed: 1 };
        bench(&asked, what, arguments.rounds, folder.path());
    }
}
