//! `layerfit solve`: a model's measures by the asked or the best solver.

use std::{fmt::Write, path::PathBuf, time::Instant};

use clap::ValueEnum;

use super::{
    Failure, input,
    simulation::{SimulationArgs, progress},
    solve_times,
    table::{number, observed, table},
    write_stdout,
};
use crate::{
    model::{Parameter, UnboundParameter},
    solve::{ResultCallKind, Solution, SolveError, SolveOptions, Solver, lqnx, solve},
};

/// Arguments of `layerfit solve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Model: .lqnx, .lqn or .json.
    model: PathBuf,
    /// The algorithm.
    #[arg(long, value_enum, default_value_t)]
    solver: SolverName,
    /// Parameter values, `NAME=VALUE`; they overrule the model's own.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Seed of the simulator.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: SolutionFormat,
    #[command(flatten)]
    simulation: SimulationArgs,
}

/// How a solution is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SolutionFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// The model with its results, as the LQN tools write it.
    Lqnx,
}

/// The algorithms, as the command line names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SolverName {
    /// Exact where the model is product-form and small enough, else layered, else simulated.
    #[default]
    Auto,
    /// Exact mean value analysis.
    Exact,
    /// The layered approximation.
    Layered,
    /// Discrete-event simulation.
    Simulate,
    /// The Markov chain of the model, exactly; small models only.
    Markov,
}

impl From<SolverName> for Solver {
    fn from(name: SolverName) -> Self {
        match name {
            SolverName::Auto => Self::Auto,
            SolverName::Exact => Self::Exact,
            SolverName::Layered => Self::Layered,
            SolverName::Simulate => Self::Simulate,
            SolverName::Markov => Self::Markov,
        }
    }
}

/// Runs `layerfit solve`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let model = input::read_model(&args.model)?;
    let values = input::settings(&model, &args.set)?;
    let several = |p: &&Parameter| values.get(&p.name).is_none() && p.value.values().is_some_and(|all| all.len() > 1);
    for Parameter { name, .. } in model.parameters.iter().filter(several) {
        note!("warning: ${name} has several values: this is the solution for the first; others by --set {name}=VALUE");
    }
    let options =
        SolveOptions { solver: args.solver.into(), seed: args.seed, simulation: args.simulation.options()?, ..SolveOptions::default() };
    let at_fault = |e: SolveError| {
        let message = format!("{}: {e}", args.model.display());
        match e {
            SolveError::Unbound(UnboundParameter { name }) => Failure::with_hint(message, format!("say --set {name}=VALUE")),
            _ => Failure::input_text(message),
        }
    };
    let start = Instant::now();
    let bar = progress(1, "solving");
    let solved = solve(&model, &values, &options);
    bar.finish_and_clear();
    let solution = solved.map_err(at_fault)?;
    let elapsed_s = Some(start.elapsed().as_secs_f64());
    if let Some(option) = args.simulation.given().filter(|_| solution.solver != "simulate") {
        note!(
            "warning: {option} is of simulations, and this is a solution by the {} solver: for one ask --solver simulate",
            solution.solver
        );
    }
    for diagnostic in &solution.diagnostics {
        note!("note: {diagnostic}");
    }
    write_stdout(&match args.format {
        SolutionFormat::Text => text(&solution),
        SolutionFormat::Json => format!("{}\n", serde_json::to_string_pretty(&solution).map_err(|e| Failure::internal(&e))?),
        SolutionFormat::Lqnx => {
            let options = lqnx::LqnxOptions { confidence: options.simulation.confidence, elapsed_s };
            lqnx::write(&model, &values, &solution, &options).map_err(at_fault)?
        }
    });
    Ok(())
}

fn header(cells: &[&str]) -> Vec<Vec<String>> {
    vec![cells.iter().map(|c| (*c).to_owned()).collect()]
}

fn text(solution: &Solution) -> String {
    let mut out = String::new();
    let state = if solution.converged { "converged" } else { "NOT CONVERGED" };
    let name = if solution.model.is_empty() { "model" } else { &solution.model };
    let _ = writeln!(
        out,
        "{name}: {} solver, {} iterations, {state} (residual {:.1e})\n",
        solution.solver, solution.iterations, solution.residual
    );
    let mut rows = header(&["processor", "utilization"]);
    rows.extend(solution.processors.iter().map(|(name, p)| vec![name.clone(), number(p.utilization, p.utilization_half_width)]));
    table(&mut out, &rows);
    out.push('\n');
    let mut rows = header(&["task", "throughput", "utilization"]);
    rows.extend(solution.tasks.iter().map(|(name, t)| {
        let name = t.copies.map_or_else(|| name.clone(), |n| format!("{name} (each of {n})"));
        vec![name, number(t.throughput, t.throughput_half_width), number(t.utilization, t.utilization_half_width)]
    }));
    table(&mut out, &rows);
    out.push('\n');
    let mut rows = header(&["entry", "throughput", "utilization", "service time by phase"]);
    rows.extend(solution.entries.iter().map(|(name, e)| {
        let halves = e.service_times_half_width.as_deref().unwrap_or_default();
        let service: Vec<String> =
            e.service_times.iter().enumerate().map(|(k, &s)| observed(s, halves.get(k).copied().flatten())).collect();
        vec![
            name.clone(),
            number(e.throughput, e.throughput_half_width),
            number(e.utilization, e.utilization_half_width),
            service.join("  "),
        ]
    }));
    table(&mut out, &rows);
    if !solution.activities.is_empty() {
        out.push('\n');
        let mut rows = header(&["activity", "throughput", "service time"]);
        rows.extend(solution.activities.iter().flat_map(|(task, activities)| {
            activities.iter().map(move |(name, a)| {
                let time = observed(a.service_time, a.service_time_half_width);
                vec![format!("{task}: {name}"), number(a.throughput, a.throughput_half_width), time]
            })
        }));
        table(&mut out, &rows);
    }
    if !solution.calls.is_empty() {
        out.push('\n');
        let mut rows = header(&["call", "phase", "kind", "mean", "waiting"]);
        rows.extend(solution.calls.iter().map(|c| {
            let kind = match c.kind {
                ResultCallKind::Sync => "sync",
                ResultCallKind::Async => "async",
                ResultCallKind::Forward => "forward",
            };
            let by = c.activity.as_ref().map_or_else(String::new, |a| format!(" ({a})"));
            let copies = c.fan_out.map_or_else(String::new, |n| format!(" (each of {n})"));
            let call = format!("{}{by} -> {}{copies}", c.from, c.to);
            vec![call, c.phase.to_string(), kind.to_owned(), number(c.mean, None), observed(c.waiting, c.waiting_half_width)]
        }));
        table(&mut out, &rows);
    }
    solve_times::append(&mut out, solution);
    out
}
