//! `layerfit family`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;

use super::{
    Failure, OutputFormat,
    fit::{no_baselines, progress_bar, show},
    fit_method::MethodArguments,
    output::{check_outputs, model_writer, write_file},
    problem::{Named, ProblemArguments, named, read_trials},
    write_stdout,
};
use crate::{
    fit::{
        Fit, Problem,
        baseline::{BaselineOptions, Baselines, baselines},
        compare::CompareOptions,
        comparison::family::{FamilyError, FittedFamily, Rival, fit_family},
        run::FitError,
        stepwise::{AdditionKind, Stepwise, StepwiseError, StepwiseOptions, proposed_model, stepwise},
    },
    predict::chart::{baseline_panels, chart},
};

/// Arguments of `layerfit family`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Models, then the trials (.csv or .json) as the last file. A model may be given twice, to be estimated in two ways.
    #[arg(value_name = "MODEL... TRIALS", num_args = 2.., required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    problem: ProblemArguments,
    #[command(flatten)]
    method: MethodArguments,
    /// Try additions to each model too (of several, to the one that is proposed): a delay, a queue, a second phase, a thread, a server.
    #[arg(long)]
    stepwise: bool,
    /// Additions to try; all when none is named.
    #[arg(long, value_enum, value_name = "KIND", requires = "stepwise")]
    add: Vec<KindArgument>,
    /// Most additions to take.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "stepwise")]
    max_additions: usize,
    /// Fit a polynomial and the Universal Scalability Law too, beside the proposed model.
    #[arg(long)]
    baselines: bool,
    /// Share of the loads, the highest, that extrapolations do not see.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0 / 3.0, requires = "baselines")]
    hold_out: f64,
    /// Draw model and black boxes to this file.
    #[arg(long, value_name = "FILE.svg", requires = "baselines")]
    plot: Option<PathBuf>,
    /// Write the proposed model, with its estimates as values, to this file (.lqnx or .json).
    #[arg(long, value_name = "MODEL.lqnx")]
    out: Option<PathBuf>,
    /// Write the fit of the proposed model to this file.
    #[arg(long, value_name = "FIT.json")]
    out_fit: Option<PathBuf>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindArgument {
    /// A pure delay.
    Delay,
    /// One more queue.
    Queue,
    /// A second phase.
    SecondPhase,
    /// One more thread.
    Thread,
    /// One more server.
    Server,
}

/// Runs `layerfit family`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    check_files(&args)?;
    let Some((trials, models)) = args.files.split_last() else { return Err(Failure::input_text("expected models and trials")) };
    let paths: Vec<&Path> = models.iter().map(PathBuf::as_path).collect();
    let models = named(&paths);
    let trials = read_trials(trials)?;
    if models.len() == 1 && !args.stepwise {
        return Err(Failure::with_hint(
            "a family has at least two models",
            "give another, or --stepwise to have additions to this one tried",
        ));
    }
    let problems = args.problem.problems(&models, &trials, args.method.method()?)?;
    let (found, missing) = search(&args, &models, problems)?;
    write_files(&args, &found)?;
    match args.format {
        OutputFormat::Text => write_stdout(&found.text()),
        OutputFormat::Json => {
            let text = serde_json::to_string_pretty(&found.json()).map_err(|e| Failure::internal(&e))?;
            write_stdout(&(text + "\n"));
        }
    }
    missing
}

/// Everything that was asked.
struct Found {
    family: Option<FittedFamily>,
    stepwise: Option<Stepwise>,
    baselines: Option<Baselines>,
    proposed: Fit,
}

/// What was asked, and why there are no baselines where these are missing.
fn search(args: &Args, models: &[Named<'_>], problems: Vec<Problem>) -> Result<(Found, Result<(), Failure>), Failure> {
    let bar = progress_bar();
    let mut family = None;
    let mut problem = problems.first().cloned().ok_or_else(|| Failure::input_text("expected a model"))?;
    if problems.len() > 1 {
        let rivals: Vec<Rival> = models.iter().zip(problems).map(|(m, problem)| Rival { name: m.name.clone(), problem }).collect();
        let found = fit_family(&rivals, &CompareOptions::default(), &mut |_, p| show(&bar, p)).map_err(|e| family_failure(&e))?;
        let fit = proposed_of(&found)?;
        problem = fit.problem.clone();
        problem.estimate.iter_mut().zip(fit.estimates()).for_each(|(e, (_, x))| e.start = Some(x));
        family = Some(found);
    }
    let mut searched = None;
    if args.stepwise {
        let options = StepwiseOptions { kinds: kinds(&args.add), max_additions: args.max_additions, ..StepwiseOptions::default() };
        let found = stepwise(&problem, &options, &mut |p| show(&bar, p)).map_err(|e| stepwise_failure(&e))?;
        searched = Some(found);
    }
    bar.finish_and_clear();
    let proposed = match (&searched, &family) {
        (Some(s), _) => s.proposed.clone(),
        (None, Some(f)) => proposed_of(f)?.clone(),
        (None, None) => return Err(Failure::input_text("nothing was asked")),
    };
    let options = BaselineOptions { hold_out: args.hold_out, ..BaselineOptions::default() };
    let beside = args.baselines.then(|| baselines(&proposed, &options).map_err(|e| no_baselines(&e))).transpose();
    let (beside, missing) = beside.map_or_else(|failure| (None, Err(failure)), |found| (found, Ok(())));
    Ok((Found { family, stepwise: searched, baselines: beside, proposed }, missing))
}

fn proposed_of(found: &FittedFamily) -> Result<&Fit, Failure> {
    let name = found.family.proposed.as_ref().map(|p| &p.name);
    let fit = found.fits.iter().find(|(n, _)| Some(n) == name).map(|(_, fit)| fit);
    fit.ok_or_else(|| Failure::input_text("no structure of the family found a minimum: give other starts or bounds"))
}

fn kinds(asked: &[KindArgument]) -> Vec<AdditionKind> {
    if asked.is_empty() {
        return StepwiseOptions::default().kinds;
    }
    let kind = |k: &KindArgument| match k {
        KindArgument::Delay => AdditionKind::Delay,
        KindArgument::Queue => AdditionKind::Queue,
        KindArgument::SecondPhase => AdditionKind::SecondPhase,
        KindArgument::Thread => AdditionKind::Thread,
        KindArgument::Server => AdditionKind::Server,
    };
    asked.iter().map(kind).collect()
}

impl Found {
    fn text(&self) -> String {
        let parts = [
            self.family.as_ref().map(|f| f.family.to_text()),
            self.stepwise.as_ref().map(|s| s.report.to_text()),
            self.baselines.as_ref().map(Baselines::to_text),
            Some(format!("estimates: {}\n", self.proposed.to_line())),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    fn json(&self) -> serde_json::Value {
        let mut object = match &self.family {
            Some(f) => json!(f.family),
            None => json!({}),
        };
        if let Some(f) = &self.family {
            object["fits"] = f.fits.iter().map(|(name, fit)| (name.clone(), json!(fit))).collect::<serde_json::Map<_, _>>().into();
        }
        if let Some(s) = &self.stepwise {
            object["stepwise"] = json!(s.report);
        }
        if let Some(b) = &self.baselines {
            object["baselines"] = json!(b);
        }
        object["estimates"] = self.proposed.estimates().map(|(n, v)| (n.to_owned(), json!(v))).collect::<serde_json::Map<_, _>>().into();
        object
    }
}

fn write_files(args: &Args, found: &Found) -> Result<(), Failure> {
    let write = |path: &Path, text: String| write_file(path, &text);
    if let Some(path) = &args.out {
        write(path, model_writer(path)?(&proposed_model(&found.proposed)))?;
    }
    if let Some(path) = &args.out_fit {
        write(path, serde_json::to_string_pretty(&found.proposed).map_err(|e| Failure::internal(&e))? + "\n")?;
    }
    if let (Some(path), Some(beside)) = (&args.plot, &found.baselines) {
        write(path, chart(&baseline_panels(beside)).map_err(|e| Failure::input(&e))?)?;
    }
    Ok(())
}

/// Checks the files to be written before the work.
fn check_files(args: &Args) -> Result<(), Failure> {
    args.out.as_deref().map(model_writer).transpose()?;
    let outputs = [("--out", args.out.as_deref()), ("--out-fit", args.out_fit.as_deref()), ("--plot", args.plot.as_deref())];
    let inputs: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    check_outputs(&outputs, &inputs)
}

fn family_failure(error: &FamilyError) -> Failure {
    Failure::input(error)
}

fn stepwise_failure(error: &StepwiseError) -> Failure {
    match error {
        StepwiseError::Fit(FitError::Solution(_)) => Failure::internal(error),
        _ => Failure::input(error),
    }
}
