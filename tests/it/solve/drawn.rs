//! Models drawn at random: every one is valid and survives its formats; every one is solved or refused in so many words, and
//! what a solver calls converged obeys the laws of its own results.

use layerfit::{
    model::{Bindings, Model, Severity, json, lqnx},
    solve::{SimulateOptions, SolveError, SolveOptions, Solver, simulate, solve},
};

use super::{
    draw::{Kind, draw},
    laws::violations,
};

/// Relative error of a law that a converged fixed point may show.
const TOLERANCE: f64 = 1e-6;
/// Models of each kind.
const SEEDS: u64 = 36;

/// Models of a kind, of three to six tasks.
fn models(kind: Kind) -> impl Iterator<Item = Model> {
    (0..SEEDS).map(move |seed| draw(kind, 3 + (seed % 4) as usize, seed))
}

#[test]
fn drawn_models_are_valid_and_survive_their_formats() {
    for model in Kind::ALL.into_iter().flat_map(models).chain([draw(Kind::Mixed, 100, 1), draw(Kind::Multi, 250, 2)]) {
        let errors: Vec<_> = model.validate().into_iter().filter(|d| d.kind.severity() == Severity::Error).collect();
        assert_eq!(errors, [], "{}", model.name);
        let in_order = model.clone().in_file_order();
        assert_eq!(lqnx::parse(&lqnx::write(&model)).unwrap(), in_order, "{}", model.name);
        assert_eq!(json::parse(&json::write(&model)).unwrap(), model, "{}", model.name);
    }
}

/// Solves analytically, else simulates for a moment. Says whether it was analytically, and which laws the result breaks.
fn solve_somehow(model: &Model) -> (bool, Vec<String>) {
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    match solve(model, &Bindings::new(), &options) {
        Ok(solution) => {
            assert!(solution.converged || !solution.diagnostics.is_empty(), "{}", model.name);
            let broken = if solution.converged { violations(model, &solution, TOLERANCE) } else { Vec::new() };
            return (true, broken.into_iter().map(|law| format!("{}: {law}", model.name)).collect());
        }
        Err(SolveError::Unsupported { .. }) => {}
        Err(SolveError::Saturated { utilization, capacity, .. }) => {
            assert!(utilization >= capacity * (1.0 - TOLERANCE), "{}", model.name);
            return (true, Vec::new());
        }
        Err(error) => panic!("{}: {error}", model.name),
    }
    let moment = SimulateOptions { run_time: Some(50.0), precision: None, max_events: 10_000, replications: 1, ..Default::default() };
    match simulate(model, &Bindings::new(), &moment) {
        Ok(solution) => assert!(solution.tasks.values().all(|t| t.throughput.is_finite() && t.utilization.is_finite()), "{}", model.name),
        Err(SolveError::Unbounded { .. }) => {}
        Err(error) => panic!("{}: {error}", model.name),
    }
    (false, Vec::new())
}

#[test]
fn what_converges_obeys_its_laws() {
    let mut broken = Vec::new();
    for kind in Kind::ALL {
        let results: Vec<(bool, Vec<String>)> = models(kind).map(|model| solve_somehow(&model)).collect();
        let analytic = results.iter().filter(|(is_analytic, _)| *is_analytic).count() as u64;
        assert!(kind == Kind::Mixed || analytic == SEEDS, "{kind:?}: {analytic} of {SEEDS} analytically");
        broken.extend(results.into_iter().flat_map(|(_, laws)| laws));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
