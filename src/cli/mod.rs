//! The command line: one file for each subcommand, and the only place that prints.
//!
//! Data goes to standard output, everything else (progress, warnings, hints) to standard error. Exit status 0 is done,
//! 1 the input is at fault, 2 our fault.

/// A line on standard error; not a panic where that cannot be written.
macro_rules! note {
    ($($text:tt)*) => { $crate::cli::write_stderr(&format!("{}\n", format_args!($($text)*))) };
}

/// A line on standard output, as [`write_stdout`].
macro_rules! tell {
    ($($text:tt)*) => { $crate::cli::write_stdout(&format!("{}\n", format_args!($($text)*))) };
}

mod compare;
mod demo;
mod design;
mod estimates;
mod extract;
mod extraction_report;
mod family;
mod fit;
mod fit_method;
mod identify;
mod input;
mod openapi;
mod output;
mod plan;
mod predict;
mod problem;
mod profile;
pub mod record;
mod serve;
mod simulate;
mod simulation;
mod solve;
mod solve_times;
mod sources;
mod table;
mod traces;
mod track;
mod usage;

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::{error_chain::chain, fit::problem::ProblemError};

/// Traces to layered queueing models, measurements to fitted parameters, predictions with confidence bands.
#[derive(Debug, Parser)]
#[command(name = "layerfit", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Walk the whole road on real input: trace, model, trials, fit, predictions.
    Demo(demo::Args),
    /// Serve it all over HTTP.
    Serve(serve::Args),
    /// Extract a model from traces.
    Extract(extract::Args),
    /// Profile traces: times by calling context, and what each level of context explains of their spread.
    Profile(profile::Args),
    /// Find what users do: sessions as Markov chains of requests, think times, mix.
    Usage(usage::Args),
    /// Solve a model.
    Solve(solve::Args),
    /// Fit a model's parameters to trials.
    Fit(fit::Args),
    /// Say what planned trials will tell, before they are run: intervals, what cannot be told apart, what would settle it.
    Identify(identify::Args),
    /// Choose what to measure next: the best trials among candidates, and the best additional measure.
    Design(design::Args),
    /// Compare two fits of nested models on the same trials, or rank several.
    Compare(compare::Args),
    /// Fit rival models to the same trials, test and rank them, and propose the simplest that explains the trials.
    Family(family::Args),
    /// Track parameters that drift over the trials.
    Track(track::Args),
    /// Predict with a fitted model.
    Predict(predict::Args),
    /// Measure a model by simulation, as trials.
    Simulate(simulate::Args),
    /// Print the OpenAPI document of the service.
    Openapi(openapi::Args),
}

/// How a subcommand writes its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Why a subcommand ended without a result.
#[derive(Debug)]
enum Failure {
    /// The user's input is at fault: exit status 1.
    Input { message: String, hint: Option<String> },
    /// We are at fault: exit status 2.
    Internal(String),
}

impl Failure {
    /// The input is at fault; the message is the error with its chain of sources.
    fn input(error: &(dyn Error + 'static)) -> Self {
        Self::Input { message: chain(error), hint: hint_of(error) }
    }

    /// The input is at fault, in words.
    fn input_text(message: impl Into<String>) -> Self {
        Self::Input { message: message.into(), hint: None }
    }

    /// As [`Failure::input_text`], with what the user could do.
    fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input { message: message.into(), hint: Some(hint.into()) }
    }

    /// We are at fault.
    fn internal(error: &dyn Error) -> Self {
        Self::Internal(chain(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { message, hint: None } => write!(f, "error: {message}"),
            Self::Input { message, hint: Some(hint) } => write!(f, "error: {message}\nhint: {hint}"),
            Self::Internal(message) => write!(f, "internal error: {message}"),
        }
    }
}

/// What the user could do about a problem without a value, if that is among the causes of `error`.
fn hint_of(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref() {
        Some(ProblemError::Unbound { name }) => {
            Some(format!("say --estimate {name}=START or --set {name}=VALUE, or give the trials a column ${name}"))
        }
        _ => hint_of(error.source()?),
    }
}

/// The command line. A negative number is the value of its option, and refused where that does not take it.
fn command() -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        command.mut_args(|arg| {
            let takes_one = arg.get_action().takes_values() && !arg.is_positional() && !arg.is_allow_hyphen_values_set();
            if takes_one { arg.allow_negative_numbers(true) } else { arg }
        })
    })
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let status = u8::from(error.use_stderr());
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    let result = match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Extract(args) => extract::run(args),
        Command::Profile(args) => profile::run(args),
        Command::Usage(args) => usage::run(args),
        Command::Solve(args) => solve::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Identify(args) => identify::run(args),
        Command::Design(args) => design::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Family(args) => family::run(args),
        Command::Track(args) => track::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Openapi(args) => openapi::run(args),
    };
    let unwritten = UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    match result {
        Ok(()) if unwritten.is_some() => {
            note!("error: standard output could not be written: {}", unwritten.map_or_else(String::new, |error| error.to_string()));
            ExitCode::from(1)
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            note!("{failure}");
            ExitCode::from(if matches!(failure, Failure::Input { .. }) { 1 } else { 2 })
        }
    }
}

/// Why standard output could not be written, if it could not.
static UNWRITTEN: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes to standard output; a reader that has gone away (`| head`) is not an error, a full disk is one of the command.
fn write_stdout(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Writes to standard error, as far as it can be written.
fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
