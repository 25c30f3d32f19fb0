//! `layerfit fit`.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Failure, OutputFormat, input, write_stdout};
use crate::{
    fit::{Estimated, Fit, FitError, FitOptions, Method, Problem, Progress, Trials, Weighting, fit},
    model::Number,
};

/// Arguments of `layerfit fit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Model: .lqnx, .lqn or .json.
    model: PathBuf,
    /// Trials: .csv, or .json with {"trials": [...]}.
    trials: PathBuf,
    /// Parameter to estimate, with a start or without; may be repeated.
    #[arg(long, value_name = "NAME[=START]", required = true)]
    estimate: Vec<String>,
    /// Bounds of an estimated parameter; either end may be left out.
    #[arg(long, value_name = "NAME=MIN..MAX", allow_hyphen_values = true)]
    bounds: Vec<String>,
    /// Known value of another parameter.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// How residuals are weighed.
    #[arg(long, value_enum, default_value_t)]
    weighting: WeightingArgument,
    /// Level of the intervals, between 0 and 1.
    #[arg(long, default_value_t = 0.95)]
    confidence: f64,
    /// Write the report as JSON to this file too.
    #[arg(long, value_name = "FIT.json")]
    out: Option<PathBuf>,
    /// How to print the report.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum WeightingArgument {
    /// By standard errors or weights of the trials; else each measure by its own residual variance.
    #[default]
    Auto,
    /// Each measure by its own residual variance, whatever the trials say of their errors.
    Residual,
    /// Plain least squares.
    None,
}

/// Runs `layerfit fit`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let problem = problem(&args)?;
    let bar = progress_bar();
    let outcome = fit(&problem, &FitOptions::default(), &mut |p| show(&bar, p));
    bar.finish_and_clear();
    let fit = outcome.map_err(|e| failure(&e))?;
    if !fit.converged {
        eprintln!("warning: no minimum was found; the estimates have no intervals");
        eprintln!("hint: give other starts with --estimate NAME=START, or bounds with --bounds NAME=MIN..MAX");
    }
    let json = || serde_json::to_string_pretty(&fit).map(|text| text + "\n").map_err(|e| Failure::internal(&e));
    if let Some(path) = &args.out {
        std::fs::write(path, json()?).map_err(|e| Failure::input_text(format!("{}: {e}", path.display())))?;
    }
    match args.format {
        OutputFormat::Text => write_stdout(&fit.to_text()),
        OutputFormat::Json => write_stdout(&json()?),
    }
    Ok(())
}

fn problem(args: &Args) -> Result<Problem, Failure> {
    let mut estimate = args.estimate.iter().map(|text| estimated(text)).collect::<Result<Vec<_>, _>>()?;
    for text in &args.bounds {
        let (name, min, max) = bounds(text)?;
        let Some(target) = estimate.iter_mut().find(|e| e.name == name) else {
            return Err(Failure::with_hint(format!("--bounds {text}: {name} is not estimated"), format!("add --estimate {name}")));
        };
        (target.min, target.max) = (min, max);
    }
    Ok(Problem {
        model: input::read_model(&args.model)?,
        estimate,
        assumed: input::bindings(&args.set)?,
        trials: read_trials(&args.trials)?,
        weighting: match args.weighting {
            WeightingArgument::Auto => Weighting::Auto,
            WeightingArgument::Residual => Weighting::Residual,
            WeightingArgument::None => Weighting::None,
        },
        confidence: args.confidence,
        method: Method::default(),
    })
}

fn read_trials(path: &Path) -> Result<Trials, Failure> {
    let bytes = input::read_bytes(path)?;
    let is_json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let trials = if is_json { Trials::from_json(&bytes) } else { Trials::from_csv(&bytes) };
    trials.map_err(|e| Failure::input_text(format!("{}: {}", path.display(), super::chain(&e))))
}

fn estimated(text: &str) -> Result<Estimated, Failure> {
    let form = || Failure::input_text(format!("--estimate {text}: expected NAME or NAME=START with a number, as in dbD=0.1"));
    let (name, start) = text.split_once('=').map_or((text, None), |(name, start)| (name, Some(start)));
    let name = parameter_name(name).ok_or_else(form)?;
    let start = start.map(|s| finite(s).ok_or_else(form)).transpose()?;
    Ok(Estimated { start, ..Estimated::new(name) })
}

fn bounds(text: &str) -> Result<(String, Option<f64>, Option<f64>), Failure> {
    let form = || Failure::input_text(format!("--bounds {text}: expected NAME=MIN..MAX, NAME=MIN.. or NAME=..MAX, as in dbD=0..0.5"));
    let (name, range) = text.split_once('=').ok_or_else(form)?;
    let (min, max) = range.split_once("..").ok_or_else(form)?;
    let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { finite(text).map(Some).ok_or_else(form) };
    let (min, max) = (end(min)?, end(max)?);
    if min.is_none() && max.is_none() {
        return Err(form());
    }
    Ok((parameter_name(name).ok_or_else(form)?, min, max))
}

fn parameter_name(text: &str) -> Option<String> {
    let name = text.trim().trim_start_matches('$');
    Number::parse(&format!("${name}"))?.parameter().map(str::to_owned)
}

fn finite(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|v| v.is_finite())
}

/// A spinner on standard error where that is a terminal; nothing elsewhere.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) -> ControlFlow<()> {
    bar.tick();
    let Progress { round, iteration, sum_of_squares, .. } = progress;
    bar.set_message(format!("round {round}, iteration {iteration}: weighted sum of squares {sum_of_squares:.6e}"));
    ControlFlow::Continue(())
}

fn failure(error: &FitError) -> Failure {
    match error {
        FitError::Start(_) | FitError::StartNotFinite => {
            Failure::with_hint(super::chain(error), "give other starts with --estimate NAME=START, or bounds with --bounds NAME=MIN..MAX")
        }
        FitError::Solution(_) => Failure::internal(error),
        _ => Failure::input(error),
    }
}

/// The fit in a file that `layerfit fit --out` wrote.
pub(super) fn read_fit(path: &Path) -> Result<Fit, Failure> {
    let bytes = input::read_bytes(path)?;
    Fit::from_json(&bytes).map_err(|e| {
        Failure::with_hint(
            format!("{}: {}", path.display(), super::chain(&e)),
            "layerfit fit MODEL TRIALS.csv --estimate NAME --out FIT.json writes such a file",
        )
    })
}
