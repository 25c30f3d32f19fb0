//! `layerfit fit`.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{
    Failure, OutputFormat,
    estimates::{all_estimated, parameter_name},
    fit_method::MethodArguments,
    input,
    output::{check_outputs, write_file},
    write_stdout,
};
use crate::{
    fit::{
        Fit, FitError, FitOptions, Problem, Progress, Trials, Weighting,
        baseline::{BaselineError, BaselineOptions, Baselines, baselines},
        design::Cures,
        fit,
    },
    predict::chart::{baseline_panels, chart},
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
    /// Stand for an expression over other parameters wherever the model uses the parameter; may be repeated.
    #[arg(long, value_name = "NAME=EXPRESSION")]
    tie: Vec<String>,
    /// What experts expect of an estimated parameter: least, most likely and most; may be repeated.
    #[arg(long, value_name = "NAME=LEAST,LIKELY,MOST", allow_hyphen_values = true)]
    prior: Vec<String>,
    /// Search an estimated parameter by its logarithm; its interval is then a factor up and down. May be repeated.
    #[arg(long, value_name = "NAME")]
    log: Vec<String>,
    /// How residuals are weighed.
    #[arg(long, value_enum, default_value_t)]
    weighting: WeightingArgument,
    #[command(flatten)]
    method: MethodArguments,
    /// Level of the intervals, between 0 and 1.
    #[arg(long, default_value_t = 0.95)]
    confidence: f64,
    /// Write the report as JSON to this file too.
    #[arg(long, value_name = "FIT.json")]
    out: Option<PathBuf>,
    /// Fit a polynomial and the Universal Scalability Law too, and compare how far off they are.
    #[arg(long)]
    baselines: bool,
    /// Share of the loads, the highest, that extrapolations do not see.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0 / 3.0, requires = "baselines")]
    hold_out: f64,
    /// With --baselines: draw model and black boxes to this file.
    #[arg(long, value_name = "FILE.svg", requires = "baselines")]
    plot: Option<PathBuf>,
    /// How to print the report.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum WeightingArgument {
    /// By standard errors or weights of the trials; else each measure by its own residual variance.
    #[default]
    Auto,
    /// Each measure by its own residual variance, whatever the trials say of their errors.
    Residual,
    /// By the covariance of trials at one operating point, pooled.
    Replicates,
    /// Plain least squares.
    None,
}

impl WeightingArgument {
    /// The weighting that it names.
    pub(super) fn weighting(self) -> Weighting {
        match self {
            Self::Auto => Weighting::Auto,
            Self::Residual => Weighting::Residual,
            Self::Replicates => Weighting::Replicates,
            Self::None => Weighting::None,
        }
    }
}

/// Runs `layerfit fit`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    check_outputs(&[("--out", args.out.as_deref()), ("--plot", args.plot.as_deref())], &[&args.model, &args.trials])?;
    let problem = problem(&args)?;
    let bar = progress_bar();
    let options = FitOptions { cures: Cures::Listed, ..FitOptions::default() };
    let outcome = fit(&problem, &options, &mut |p| show(&bar, p));
    bar.finish_and_clear();
    let fit = outcome.map_err(|e| failure(&e))?;
    if !fit.converged {
        note!("warning: no minimum was found; the estimates have no intervals");
        note!("hint: give other starts with --estimate NAME=START, or bounds with --bounds NAME=MIN..MAX");
    }
    let json = || serde_json::to_string_pretty(&fit).map(|text| text + "\n").map_err(|e| Failure::internal(&e));
    if let Some(path) = &args.out {
        write_file(path, &json()?)?;
    }
    let beside = args.baselines.then(|| beside_black_boxes(&args, &fit)).transpose();
    let (found, missing) = beside.map_or_else(|failure| (None, Err(failure)), |found| (found, Ok(())));
    match (args.format, found) {
        (OutputFormat::Text, beside) => {
            write_stdout(&fit.to_text());
            beside.iter().for_each(|b| write_stdout(&format!("\n{}", b.to_text())));
        }
        (OutputFormat::Json, None) => write_stdout(&json()?),
        (OutputFormat::Json, Some(beside)) => {
            let mut report = serde_json::to_value(&fit).map_err(|e| Failure::internal(&e))?;
            report["baselines"] = serde_json::to_value(&beside).map_err(|e| Failure::internal(&e))?;
            write_stdout(&(serde_json::to_string_pretty(&report).map_err(|e| Failure::internal(&e))? + "\n"));
        }
    }
    missing
}

/// Why a fit stands without black boxes beside it.
pub(super) fn no_baselines(error: &BaselineError) -> Failure {
    Failure::input_text(format!("the fit stands, without baselines: {}", super::chain(error)))
}

fn beside_black_boxes(args: &Args, fit: &Fit) -> Result<Baselines, Failure> {
    let options = BaselineOptions { hold_out: args.hold_out, ..BaselineOptions::default() };
    let beside = baselines(fit, &options).map_err(|e| no_baselines(&e))?;
    if let Some(path) = &args.plot {
        let svg = chart(&baseline_panels(&beside)).map_err(|e| Failure::input(&e))?;
        write_file(path, &svg)?;
    }
    Ok(beside)
}

fn problem(args: &Args) -> Result<Problem, Failure> {
    let mut problem = Problem {
        estimate: all_estimated(&args.estimate, &args.bounds, &args.prior, &args.log)?,
        model: input::read_model(&args.model)?,
        assumed: input::bindings(&args.set)?,
        trials: read_trials(&args.trials)?,
        weighting: args.weighting.weighting(),
        confidence: args.confidence,
        method: args.method.method()?,
    };
    let tie = |text: &String| {
        let form = || Failure::input_text(format!("--tie {text}: expected NAME=EXPRESSION, as in d2=2*$d1"));
        let (name, expression) = text.split_once('=').ok_or_else(form)?;
        Ok((parameter_name(name).ok_or_else(form)?, expression.to_owned()))
    };
    let ties = args.tie.iter().map(tie).collect::<Result<Vec<_>, _>>()?;
    input::each_once("--tie", &args.tie, ties.iter().map(|(name, _)| name.as_str()))?;
    ties.iter().try_for_each(|(name, expression)| problem.tie(name, expression)).map_err(|e| Failure::input(&e))?;
    Ok(problem)
}

pub(super) fn read_trials(path: &Path) -> Result<Trials, Failure> {
    let bytes = input::read_bytes(path)?;
    let is_json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let trials = if is_json { Trials::from_json(&bytes) } else { Trials::from_csv(&bytes) };
    trials.map_err(|e| Failure::input_text(format!("{}: {}", path.display(), super::chain(&e))))
}

/// A spinner on standard error where that is a terminal; nothing elsewhere.
pub(super) fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar
}

pub(super) fn show(bar: &ProgressBar, progress: &Progress) -> ControlFlow<()> {
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
        FitError::Simulation { .. } => Failure::with_hint(super::chain(error), "leave out --correct-solver"),
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
