//! `layerfit design`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::{
    Failure, OutputFormat,
    fit::read_fit,
    input,
    output::{check_outputs, write_file},
    plan::EstimateArguments,
    write_stdout,
};
use crate::{
    fit::{
        Fit, Method, Problem, Trials, Weighting,
        design::{
            Candidate, Criterion, Design, DesignError, DesignOptions, Repeats, Target, candidate::around_the_trials, design, mean_duration,
            plan,
        },
    },
    model::{Bindings, Expression, Measure},
    predict::{Scenarios, plot_design},
};

/// Arguments of `layerfit design`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A fit written by `layerfit fit --out`; or a model, with --estimate, before anything is fitted.
    fit: PathBuf,
    /// Trials that there are or are planned already, where a model is given.
    #[arg(long, value_name = "TRIALS.csv", requires = "estimate")]
    trials: Option<PathBuf>,
    #[command(flatten)]
    estimate: EstimateArguments,
    /// Controlled value or range of them that could be run; may be repeated, for all combinations. Without any, operating points
    /// around those of the trials.
    #[arg(long, value_name = "NAME=VALUE|NAME=FROM..TO[:STEP]", allow_hyphen_values = true)]
    candidates: Vec<String>,
    /// Operating points that could be run: columns $NAME, and where wanted cost, and length or duration.
    #[arg(long, value_name = "FILE.csv")]
    points: Option<PathBuf>,
    /// Number of trials to choose; with a budget at most so many [default: 1, or with a budget as many as it pays].
    #[arg(long, value_name = "K")]
    choose: Option<usize>,
    /// What is to be small [default: d, or c with --for].
    #[arg(long, value_enum)]
    criterion: Option<CriterionArgument>,
    /// The prediction to design for, with --at.
    #[arg(long = "for", value_name = "MEASURE")]
    target: Option<String>,
    /// Operating point of the prediction; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true, requires = "target")]
    at: Vec<String>,
    /// Cost of a trial as an expression over its controlled values, as in '1 + 0.1 * $users'; a column cost overrules it.
    #[arg(long, value_name = "EXPRESSION")]
    cost: Option<String>,
    /// What the trials may cost together; a trial without a cost costs 1.
    #[arg(long, value_name = "COST")]
    budget: Option<f64>,
    /// Length of a trial in multiples of those there are.
    #[arg(long, value_name = "FACTOR")]
    length: Option<f64>,
    /// Choose no operating point twice.
    #[arg(long)]
    no_repeats: bool,
    /// Measure of a new trial [default: those of the trials]. May be repeated.
    #[arg(long, value_name = "M")]
    measure: Vec<String>,
    /// Relative error of a measure of which nothing is known [default: that of the others, or 0.05].
    #[arg(long, value_name = "SHARE")]
    relative_error: Option<f64>,
    /// Level of the half-widths, where a model is given [default: 0.95].
    #[arg(long, requires = "estimate")]
    confidence: Option<f64>,
    /// Draw what one trial alone would bring to this SVG file, against --against.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Controlled value of the plot [default: the first that differs between candidates].
    #[arg(long, value_name = "NAME", requires = "plot")]
    against: Option<String>,
    /// How to print the design.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CriterionArgument {
    /// The volume of the joint confidence ellipsoid.
    D,
    /// The mean square relative error.
    A,
    /// The variance of the prediction of --for.
    C,
}

/// Runs `layerfit design`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let inputs: Vec<&Path> =
        [Some(&args.fit), args.trials.as_ref(), args.points.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    check_outputs(&[("--plot", args.plot.as_deref())], &inputs)?;
    let options = options(&args)?;
    let found = match args.estimate.estimate.is_empty() {
        true => {
            let fit: Fit = read_fit(&args.fit).map_err(or_model)?;
            design(&fit, &candidates(&args, &fit.problem)?, &options)
        }
        false => {
            if read_fit(&args.fit).is_ok() {
                return Err(Failure::with_hint(
                    format!("{} is a fit, which says itself what is estimated: --estimate is for models", args.fit.display()),
                    "leave out --estimate",
                ));
            }
            let problem = problem(&args, &options.measures)?;
            let candidates = candidates(&args, &problem)?;
            if candidates.is_empty() {
                let hint = "give --candidates NAME=FROM..TO, or --points FILE.csv";
                return Err(Failure::with_hint("there are no trials to make operating points around", hint));
            }
            plan(&problem, &candidates, &options)
        }
    };
    let found = found.map_err(|e| failure(&e))?;
    if let Some(path) = &args.plot {
        let svg = plot_design(&found, &against(&args, &found)).map_err(|e| Failure::input_text(format!("--plot: {e}")))?;
        write_file(path, &svg)?;
    }
    write(&found, args.format)
}

/// The controlled value that a plot is drawn against.
fn against(args: &Args, design: &Design) -> String {
    let names = || design.candidates.iter().flat_map(|c| c.candidate.controlled.iter());
    let differs = |(name, value): &(&str, f64)| names().any(|(n, v)| n == *name && v != *value);
    let first = names().find(differs).or_else(|| names().next()).map(|(name, _)| name.to_owned());
    args.against.as_ref().map(|n| n.trim_start_matches('$').to_owned()).or(first).unwrap_or_default()
}

fn write(design: &Design, format: OutputFormat) -> Result<(), Failure> {
    match format {
        OutputFormat::Text => write_stdout(&design.to_text()),
        OutputFormat::Json => {
            let text = serde_json::to_string_pretty(design).map_err(|e| Failure::internal(&e))?;
            write_stdout(&(text + "\n"));
        }
    }
    Ok(())
}

fn or_model(failure: Failure) -> Failure {
    match failure {
        Failure::Input { message, .. } => {
            Failure::with_hint(message, "give a fit written by layerfit fit --out, or a model with --estimate NAME=START")
        }
        other => other,
    }
}

fn options(args: &Args) -> Result<DesignOptions, Failure> {
    let measures = args.measure.iter().map(|m| m.parse::<Measure>()).collect::<Result<Vec<_>, _>>();
    let measures = measures.map_err(|e| Failure::input_text(format!("--measure {e}")))?;
    input::measures_once(&args.measure, &measures)?;
    let target = args.target.as_ref().map(|m| m.parse::<Measure>()).transpose().map_err(|e| Failure::input_text(format!("--for {e}")))?;
    let target = target.map(|measure| Ok(Target { measure, at: point(&args.at)? })).transpose()?;
    let criterion = match (args.criterion, target) {
        (None | Some(CriterionArgument::C), Some(target)) => Criterion::C(target),
        (Some(CriterionArgument::C), None) => {
            return Err(Failure::with_hint("--criterion c needs a prediction", "add --for MEASURE --at NAME=VALUE"));
        }
        (Some(_), Some(_)) => return Err(Failure::input_text("--for is what criterion c is for: leave out --criterion or say c")),
        (Some(CriterionArgument::A), None) => Criterion::A,
        (None | Some(CriterionArgument::D), None) => Criterion::D,
    };
    Ok(DesignOptions {
        criterion,
        choose: args.choose,
        budget: args.budget,
        repeats: if args.no_repeats { Repeats::Forbidden } else { Repeats::Allowed },
        measures,
        relative_error: args.relative_error,
        ..DesignOptions::default()
    })
}

/// The one operating point that `texts` name.
fn point(texts: &[String]) -> Result<Bindings, Failure> {
    let scenarios = Scenarios::parse(texts).map_err(|e| Failure::input_text(format!("--at {e}")))?;
    match scenarios.points().as_slice() {
        [one] => Ok(one.clone()),
        several => Err(Failure::input_text(format!("--at names {} operating points: expected one", several.len()))),
    }
}

fn candidates(args: &Args, problem: &Problem) -> Result<Vec<Candidate>, Failure> {
    let mut found = match &args.points {
        Some(path) => Candidate::from_csv(&input::read_bytes(path)?, mean_duration(problem))
            .map_err(|e| Failure::input_text(format!("{}: {e}", path.display())))?,
        None => Vec::new(),
    };
    if !args.candidates.is_empty() {
        let scenarios = Scenarios::parse(&args.candidates).map_err(|e| Failure::input_text(format!("--candidates {e}")))?;
        found.extend(scenarios.points().into_iter().map(Candidate::at));
    }
    if args.points.is_none() && args.candidates.is_empty() {
        found = around_the_trials(problem);
    }
    let cost =
        args.cost.as_ref().map(|text| Expression::parse(text)).transpose().map_err(|e| Failure::input_text(format!("--cost: {e}")))?;
    for candidate in &mut found {
        candidate.length = candidate.length.or(args.length);
        if let (Some(cost), None) = (&cost, candidate.cost) {
            let value = cost.eval(&candidate.controlled).map_err(|e| Failure::input_text(format!("--cost: {e}")))?;
            candidate.cost = Some(value);
        }
    }
    Ok(found)
}

/// What is to be estimated before anything is fitted.
fn problem(args: &Args, measures: &[Measure]) -> Result<Problem, Failure> {
    let trials = match &args.trials {
        Some(path) => Trials::plan_from_csv(&input::read_bytes(path)?)
            .map_err(|e| Failure::input_text(format!("{}: {}", path.display(), super::chain(&e))))?,
        None => Trials { measures: measures.to_vec(), trials: Vec::new() },
    };
    if trials.measures.is_empty() {
        return Err(Failure::with_hint("there is nothing that a trial would measure", "add --measure M, as in throughput(User)"));
    }
    Ok(Problem {
        model: input::read_model(Path::new(&args.fit))?,
        estimate: args.estimate.estimated()?,
        assumed: input::bindings(&args.estimate.set)?,
        trials,
        weighting: Weighting::Auto,
        confidence: args.confidence.unwrap_or(0.95),
        method: Method::default(),
    })
}

pub(super) fn failure(error: &DesignError) -> Failure {
    match error {
        DesignError::NoStart { name } => Failure::with_hint(super::chain(error), format!("say --estimate {name}=START")),
        DesignError::Missing { name, .. } => {
            Failure::with_hint(super::chain(error), format!("add {name}=VALUE to --candidates, --points or --at"))
        }
        _ => Failure::input(error),
    }
}
