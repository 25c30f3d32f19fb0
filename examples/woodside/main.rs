//! The tables of M. Woodside, The Relationship of Performance Models to Data, SIPEW 2008, made again from simulated trials.
//!
//! `cargo run --release --example woodside [-- --quick] [--format text|json]`. Trials come from the simulator of this crate with fixed
//! seeds; the models stand beside this file. Each figure is printed with the paper's, and what differs is said under each table.
//! `--quick` leaves out the trials of a hundred thousand time units and more.

mod layered;
mod queues;
mod text;
mod trials;

use std::{ops::ControlFlow, process::ExitCode};

use layerfit::fit::{Fit, FitOptions, Problem, fit};
use serde::Serialize;

/// All tables.
#[derive(Debug, Serialize)]
struct Tables {
    table_1: Vec<queues::Row>,
    table_2: Vec<queues::FourthRow>,
    table_3_printed: Vec<layered::PrintedRow>,
    table_3: Vec<layered::Row>,
    utilizations: Vec<layered::Utilization>,
}

/// Fits with default options; a fit without a minimum is an error.
fn fitted(problem: &Problem) -> Result<Fit, String> {
    let found = fit(problem, &FitOptions::default(), &mut |_| ControlFlow::Continue(())).map_err(|e| e.to_string())?;
    if found.converged { Ok(found) } else { Err(format!("no minimum: {:?}", found.stop)) }
}

#[expect(clippy::print_stdout, reason = "what the example is for")]
fn run() -> Result<(), String> {
    let (mut quick, mut json) = (false, false);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match (argument, if argument == "--format" { rest.next() } else { None }) {
            ("--quick", _) => quick = true,
            ("--format", Some("text")) => json = false,
            ("--format", Some("json")) => json = true,
            _ => return Err("expected [--quick] [--format text|json]".into()),
        }
    }
    let (table_1, table_2) = queues::tables(quick)?;
    let tables = Tables {
        table_1,
        table_2,
        table_3_printed: layered::printed(),
        table_3: layered::table(quick)?,
        utilizations: layered::utilizations(quick)?,
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&tables).map_err(|e| e.to_string())?);
    } else {
        print!("{}", text::report(&tables));
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "errors go to standard error")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
