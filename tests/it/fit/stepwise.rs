//! Additions that the data ask for.

use std::ops::ControlFlow;

use layerfit::{
    fit::{
        Estimated, Fit, Measured, Problem, Trial, Trials,
        stepwise::{AdditionKind, Stepwise, StepwiseOptions, additions, proposed_model, stepwise},
    },
    model::{Bindings, Model, Number, Phase, TaskScheduling, lqnx},
    solve::{self, SolveOptions, Solver},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::three_queue::{model, problem, trials};

/// Trials of `truth` with 1, 4, 7 and 10 customers and relative errors of half a percent.
fn measured(truth: &Model, values: &[(&str, f64)], measures: &[&str], solver: Solver, seed: u64) -> Trials {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let measures: Vec<layerfit::model::Measure> = measures.iter().map(|m| m.parse().unwrap()).collect();
    let options = SolveOptions { solver, ..SolveOptions::default() };
    let mut trial = |n: i32| {
        let controlled: Bindings = [("users", f64::from(n)), ("think", 10.0)].into_iter().collect();
        let mut all = controlled.clone();
        values.iter().for_each(|(name, v)| all.set(*name, *v));
        let exact = solve::sensitivities(truth, &all, &[], &measures, &options).unwrap().values;
        let mut noisy = |v: f64| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            Some(Measured { value: v * (1.0 + 0.005 * noise), std_error: Some(0.005 * v), weight: None })
        };
        Trial { id: n.to_string(), controlled, measured: exact.into_iter().map(&mut noisy).collect(), ..Trial::default() }
    };
    let trials = [1, 4, 7, 10].map(&mut trial).to_vec();
    Trials { measures, trials }
}

const DEMANDS: [(&str, f64); 4] = [("d1", 2.0), ("d2", 3.0), ("d3", 4.0), ("d4", 1.0)];

fn searched(problem: &Problem, kinds: &[AdditionKind]) -> Stepwise {
    let options = StepwiseOptions { kinds: kinds.to_vec(), max_additions: 1, ..StepwiseOptions::default() };
    stepwise(problem, &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn estimate(fit: &Fit, name: &str) -> f64 {
    fit.parameters[name].estimate
}

#[test]
fn a_queue_that_was_left_out_is_found() {
    let measures = ["residence_time(q1)", "residence_time(q2)", "residence_time(q3)", "throughput(Users)", "response_time(Users)"];
    let data = measured(&model(4), &DEMANDS, &measures, Solver::Auto, 51);
    let found = searched(&problem(data), &[AdditionKind::Delay, AdditionKind::Queue]);
    let round = &found.report.additions[0];
    assert_eq!(round.candidates.len(), 8, "a delay and a queue at each of four entries");
    let best = &round.candidates[0];
    assert_eq!((best.kind, best.parameter.as_deref()), (AdditionKind::Queue, Some("queue_cycle")), "{}", found.report.to_text());
    assert!(best.corrected_p_value.unwrap() < 1e-6 && best.corrected_p_value >= best.p_value);
    let d4 = estimate(&found.proposed, "queue_cycle");
    assert!((d4 - 1.0).abs() < 0.1, "{d4}");
    for c in round.candidates.iter().filter(|c| c.failure.is_none()) {
        let (without, with) = c.sums_of_squares.unwrap();
        assert!(with <= without * (1.0 + 1e-8), "{c:?}");
    }
    assert_eq!(found.report.added, std::slice::from_ref(&best.description));
    // The proposed model stands by itself, in a file too.
    let written = lqnx::parse(&lqnx::write(&proposed_model(&found.proposed))).unwrap();
    let at: Bindings = [("users", 4.0), ("think", 10.0)].into_iter().collect();
    let x = solve::sensitivities(&written, &at, &[], &found.proposed.problem.trials.measures, &SolveOptions::default()).unwrap().values;
    let predicted = &found.proposed.predicted[1];
    for (value, expected) in x.iter().zip(predicted.values()) {
        assert!((value / expected - 1.0).abs() < 1e-9, "{value} is not {expected}");
    }
}

#[test]
fn nothing_is_added_to_what_explains_the_data() {
    let measures = ["residence_time(q1)", "residence_time(q2)", "residence_time(q3)", "throughput(Users)"];
    let data = measured(&model(3), &DEMANDS[..3], &measures, Solver::Auto, 52);
    let found = searched(&problem(data), &[AdditionKind::Queue]);
    assert!(found.report.added.is_empty() && found.report.left_out.is_empty(), "{}", found.report.to_text());
    assert!(found.report.to_text().contains("taken: none"));
    assert_eq!(found.proposed.parameters.len(), 3);
}

#[test]
fn a_surplus_queue_is_left_out() {
    let mut four = problem(trials(10.0, 0.01, 53));
    four.model = model(4);
    four.estimate.push(Estimated::new("d4"));
    let found = searched(&four, &[]);
    assert_eq!(found.report.left_out, ["d4"], "{}", found.report.to_text());
    assert!(found.proposed.parameters.keys().eq(["d1", "d2", "d3"]));
    assert_eq!(found.proposed.problem.assumed.get("d4"), Some(0.0));
}

#[test]
fn one_more_server_is_found() {
    let mut base = model(3);
    // A pool without limit of threads before the servers of p3.
    base.tasks[3].scheduling = TaskScheduling::Inf;
    base.tasks[3].multiplicity = Number::Value(f64::INFINITY);
    let mut truth = base.clone();
    truth.processors[3].multiplicity = Number::Value(2.0);
    let measures = ["residence_time(q1)", "residence_time(q2)", "residence_time(q3)", "throughput(Users)"];
    let data = measured(&truth, &DEMANDS[..3], &measures, Solver::Auto, 54);
    let found = searched(&Problem { model: base, ..problem(data) }, &[AdditionKind::Server]);
    let best = &found.report.additions[0].candidates[0];
    assert!(best.description.contains("processor p3: 2 instead of 1"), "{}", found.report.to_text());
    assert!(best.parameter.is_none() && best.aicc_change.unwrap() < 0.0);
    assert_eq!(found.report.added.len(), 1);
    assert!((estimate(&found.proposed, "d3") - 4.0).abs() < 0.1);
}

#[test]
fn a_second_phase_is_found() {
    let base = model(1);
    let mut truth = base.clone();
    let entry = &mut truth.tasks[1].entries[0];
    let mut second = entry.phases[0].activity.clone();
    entry.phases[0].activity.host_demand = Number::Value(1.8);
    second.host_demand = Number::Value(1.2);
    second.name = "e1_ph2".into();
    entry.phases.push(Phase { phase: 2, activity: second });
    let measures = ["response_time(Users)", "throughput(Users)", "utilization(p1)"];
    let data = measured(&truth, &[], &measures, Solver::Layered, 55);
    let asked = Problem { model: base, estimate: vec![Estimated::new("d1")], ..problem(data) };
    let found = searched(&asked, &[AdditionKind::SecondPhase, AdditionKind::Thread]);
    let best = &found.report.additions[0].candidates[0];
    assert_eq!(best.kind, AdditionKind::SecondPhase, "{}", found.report.to_text());
    assert!(best.layered, "the model without a second phase has an exact solution, with it none");
    let (share, demand) = (estimate(&found.proposed, "after_e1"), estimate(&found.proposed, "d1"));
    assert!((share - 0.4).abs() < 0.03 && (demand - 3.0).abs() < 0.05, "{share} {demand}");
}

#[test]
fn additions_are_the_model_at_zero() {
    let base = problem(trials(10.0, 0.01, 56));
    let all = additions(&base, &StepwiseOptions::default().kinds);
    let count = |kind| all.iter().filter(|a| a.kind == kind).count();
    use AdditionKind::{Delay, Queue, SecondPhase, Server, Thread};
    assert_eq!([Delay, Queue, SecondPhase, Thread, Server].map(count), [4, 4, 3, 3, 3]);
    for a in &all {
        let errors: Vec<String> = a
            .problem
            .model
            .validate()
            .into_iter()
            .filter(|d| d.kind.severity() == layerfit::model::Severity::Error)
            .map(|d| d.to_string())
            .collect();
        assert!(errors.is_empty() && a.problem.check().is_ok(), "{}: {errors:?} {:?}", a.description, a.problem.check());
        let new = a.problem.estimate.len() - base.estimate.len();
        assert_eq!(new, usize::from(a.parameter.is_some()), "{}", a.description);
    }
    // Made twice, names do not collide.
    let queue = all.iter().find(|a| a.kind == Queue).unwrap();
    let again = additions(&queue.problem, &[Queue]);
    assert!(again.iter().all(|a| a.parameter != queue.parameter && a.problem.check().is_ok()));
}
