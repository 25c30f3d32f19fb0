//! `layerfit usage`.

use std::path::PathBuf;

use super::{
    Failure, OutputFormat,
    traces::{TraceArgs, by_name},
    write_stdout,
};
use crate::{
    structure::{
        observations::{UserKey, UserOptions, Wanted},
        usage::{ClassChoice, PlanOptions, SessionOptions, UsageModel, UsageOptions},
    },
    trace::diagnostics,
};

/// Arguments of `layerfit usage`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    traces: TraceArgs,
    #[command(flatten)]
    users: UserArgs,
    /// Writes a test plan of JMeter with these users.
    #[arg(long, value_name = "PLAN.jmx")]
    plan: Option<PathBuf>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// How requests become sessions, and sessions classes.
#[derive(Debug, clap::Args)]
pub(super) struct UserArgs {
    /// What joins requests to sessions: session (its key), user (else the user's name), address (else that of the client).
    #[arg(long, value_parser = by_name::<UserKey>, default_value = "user")]
    users: UserKey,
    /// Longest pause within a session of a user or an address, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800.0, value_parser = gap)]
    idle_gap: f64,
    /// Most classes of behaviour that are looked for.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=16))]
    classes: u8,
}

fn gap(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|gap: &f64| gap.is_finite() && *gap > 0.0).ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

impl UserArgs {
    /// How requests become sessions.
    pub(super) fn sessions(&self) -> UserOptions {
        let defaults = SessionOptions::default();
        // A session with its own key may pause for longer, never for less.
        let sessions = SessionOptions { idle_gap_s: self.idle_gap, session_gap_s: defaults.session_gap_s.max(self.idle_gap), ..defaults };
        UserOptions { key: self.users, sessions, ..UserOptions::default() }
    }

    /// How sessions become classes.
    pub(super) fn behaviour(&self) -> UsageOptions {
        let classes = if self.classes == 1 { ClassChoice::One } else { ClassChoice::Clustered { most: self.classes.into() } };
        UsageOptions { classes, ..UsageOptions::default() }
    }
}

/// Runs `layerfit usage`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let wanted = Wanted { profile: None, users: Some(args.users.sessions()) };
    let observed = args.traces.observe(&wanted, &[("--plan", args.plan.as_deref())])?;
    let Some(sessions) = observed.usage else { return Err(Failure::Internal("no sessions were looked for".to_owned())) };
    let usage = UsageModel::of(&sessions, &args.users.behaviour()).map_err(|error| Failure::input(&error))?;
    if let Some(path) = &args.plan {
        let plan = usage.to_jmeter(&PlanOptions::default()).map_err(|error| Failure::input(&error))?;
        super::output::write_file(path, &plan)?;
    }
    match args.format {
        OutputFormat::Text => write_stdout(&(usage.to_text() + &diagnostics::in_words(&usage.diagnostics))),
        OutputFormat::Json => {
            let json = serde_json::to_string_pretty(&usage).map_err(|error| Failure::internal(&error))?;
            write_stdout(&(json + "\n"));
        }
    }
    Ok(())
}
