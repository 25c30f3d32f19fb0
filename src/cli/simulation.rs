//! How to simulate, as arguments of several subcommands, and how long it takes.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Failure;
use crate::solve::SimulateOptions;

/// Time after which progress is shown, and between two changes of it.
const MOMENT: Duration = Duration::from_millis(200);

/// Arguments of a simulation.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Simulation")]
pub(super) struct SimulationArgs {
    /// Relative half-width to reach for the throughput of reference tasks and the response time of open arrivals
    /// [default: 0.003, unless --time is given].
    #[arg(long, value_name = "P")]
    precision: Option<f64>,
    /// Model time of each replication, warm-up included; with --precision, whichever is reached first.
    #[arg(long = "time", value_name = "T")]
    run_time: Option<f64>,
    /// Independent replications [default: 4]. The result depends on their number and the seed only, not on the machine.
    #[arg(long, value_name = "N")]
    replications: Option<usize>,
    /// Replications that run at the same time; 0 for as many as there are cores.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Most events over all replications [default: 40000000, unless --time is given].
    #[arg(long, value_name = "N")]
    max_events: Option<u64>,
    /// Confidence of half-widths and bounds.
    #[arg(long, value_name = "C", default_value_t = 0.95)]
    confidence: f64,
    /// Probability of a quantile of response times to report; may be repeated [default: 0.5, 0.9, 0.95, 0.99].
    #[arg(long = "quantile", value_name = "P")]
    quantiles: Vec<f64>,
}

/// Time taken, shown on a terminal while what takes more than a moment goes on; `what` may tell `{pos}` of `{len}`.
pub(super) fn progress(n: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(n as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(&format!("{{spinner}} {{elapsed}} {what}")) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(MOMENT);
    bar
}

impl SimulationArgs {
    /// The first option given that only a simulation has.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--precision", self.precision.is_some()),
            ("--time", self.run_time.is_some()),
            ("--replications", self.replications.is_some()),
            ("--max-events", self.max_events.is_some()),
            ("--quantile", !self.quantiles.is_empty()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// The options, checked.
    pub(super) fn options(&self) -> Result<SimulateOptions, Failure> {
        let defaults = SimulateOptions::default();
        let is_timed = self.run_time.is_some();
        let options = SimulateOptions {
            confidence: self.confidence,
            run_time: self.run_time,
            precision: if is_timed { self.precision } else { self.precision.or(defaults.precision) },
            max_events: self.max_events.unwrap_or(if is_timed { u64::MAX } else { defaults.max_events }),
            replications: self.replications.unwrap_or(defaults.replications),
            workers: self.threads,
            quantiles: if self.quantiles.is_empty() { defaults.quantiles } else { self.quantiles.clone() },
            ..defaults
        };
        options.check().map_err(|e| Failure::input(&e))?;
        Ok(options)
    }
}
