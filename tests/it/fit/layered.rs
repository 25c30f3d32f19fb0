//! The layered example: recovery, whole numbers, collinear demands, capacity.

use layerfit::{
    fit::{Estimated, Fit, ParameterStatus, Problem, problem::Starts},
    model::{Bindings, Measure, Model},
    solve::{self, SimulateOptions, SolveOptions},
};

use super::{
    layered_model::{DELAYS, TRUE, Variant, model, problem, seven_parameters, trials, values},
    three_queue::fitted,
};

fn covers(fit: &Fit) -> Vec<&str> {
    let holds = |(name, truth): &(&str, f64)| {
        let p = &fit.parameters[*name];
        p.lower.is_some_and(|l| l < *truth) && p.upper.is_some_and(|u| *truth < u)
    };
    TRUE.iter().filter(|t| holds(t)).map(|(name, _)| *name).collect()
}

/// Test 7, by simulation: the seven utilizations printed for 50 users, capacity, and flow balance.
#[test]
fn the_reconstruction_has_the_printed_utilizations() {
    let options = SimulateOptions { seed: 7, run_time: Some(3e4), precision: None, ..SimulateOptions::default() };
    let found = solve::simulate(&model(Variant::L), &values(50.0, 0.4), &options).unwrap();
    let processors = [("WSP", 0.88), ("AppP", 0.61), ("DBP", 0.34)].map(|(n, u)| (n, u, found.processors[n].utilization));
    let tasks = [("WS", 3.0), ("App", 0.96), ("DB", 0.34), ("Dir", 0.04)].map(|(n, u)| (n, u, found.tasks[n].utilization));
    for (name, printed, found) in processors.into_iter().chain(tasks) {
        assert!((found - printed).abs() < 0.01, "{name}: {found} is not {printed}");
    }
    assert!(found.tasks["App"].utilization <= 1.0);
    assert!((found.tasks["DB"].throughput / found.tasks["App"].throughput - 2.4).abs() < 0.03);
}

fn seven_from(threads: f64) -> Problem {
    let mut asked = seven_parameters();
    asked.estimate.iter_mut().filter(|e| e.name == "wsThreads").for_each(|e| e.start = Some(threads));
    asked
}

fn check_whole_numbers(fits: &[Fit]) {
    for fit in fits {
        assert!(fit.converged, "{:?}", fit.stop);
        assert_eq!((fit.parameters["mApp"].estimate, fit.parameters["wsThreads"].estimate), (1.0, 3.0));
        let n = fit.parameters.len();
        assert!(covers(fit).len() + 1 >= n, "{:?}: {:?}", covers(fit), fit.parameters);
        let threads = &fit.parameters["wsThreads"];
        assert!(threads.upper.unwrap() - threads.estimate < 0.1, "{threads:?}");
        let tried = &fit.whole_numbers.iter().find(|w| w.parameter == "wsThreads").unwrap().tried;
        let at = |v: f64| tried.iter().find(|t| t.0 == v).unwrap().1;
        assert!(at(2.0) > 20.0 * at(3.0) && at(4.0) > 20.0 * at(3.0), "{tried:?}");
        let app = &fit.whole_numbers.iter().find(|w| w.parameter == "mApp").unwrap().tried;
        assert!(app.iter().find(|t| t.0 == 2.0).unwrap().1 > 20.0 * at(3.0), "{app:?}");
    }
    for (a, b) in fits[0].parameters.values().zip(fits[1].parameters.values()) {
        assert!((a.estimate / b.estimate - 1.0).abs() < 1e-5, "{a:?} {b:?}");
    }
}

/// What is said of a whole number is of the end that is kept, also where other starts end elsewhere.
#[test]
fn a_whole_number_is_explained_by_its_own_search() {
    let mut asked = seven_from(3.0);
    asked.trials.trials.retain(|t| ["3", "10"].contains(&t.id.as_str()));
    asked.estimate.retain(|e| ["WSD", "wsThreads"].contains(&e.name.as_str()));
    let known = TRUE.iter().filter(|(n, _)| !["WSD", "wsThreads"].contains(n));
    known.for_each(|(n, v)| asked.assumed.set(*n, *v));
    asked.method.starts = Some(Starts { n: 4, seed: 3 });
    let fit = fitted(&asked).unwrap();
    let found = &fit.whole_numbers[0];
    assert_eq!((fit.parameters["wsThreads"].estimate, found.value), (3.0, 3.0));
    let here = found.tried.iter().find(|t| t.0 == 3.0).unwrap().1;
    assert!((here / fit.sum_of_squares - 1.0).abs() < 1e-6, "{here} {}", fit.sum_of_squares);
}

/// Test 11: the number of threads from starts on either side, with one demand, from two trials.
#[test]
fn a_whole_number_is_found_from_starts_on_either_side() {
    let small = |threads: f64| {
        let mut asked = seven_from(threads);
        asked.trials.trials.retain(|t| ["3", "10"].contains(&t.id.as_str()));
        asked.estimate.retain(|e| ["WSD", "wsThreads"].contains(&e.name.as_str()));
        let known = TRUE.iter().filter(|(n, _)| !["WSD", "wsThreads"].contains(n));
        known.for_each(|(n, v)| asked.assumed.set(*n, *v));
        fitted(&asked).unwrap()
    };
    for fit in [small(2.0), small(4.0)] {
        let threads = &fit.parameters["wsThreads"];
        assert!(fit.converged && threads.estimate == 3.0 && threads.upper.unwrap() - 3.0 < 0.2, "{threads:?}");
        let tried = &fit.whole_numbers[0].tried;
        let at = |v: f64| tried.iter().find(|t| t.0 == v).unwrap().1;
        assert!(at(2.0) > 20.0 * at(3.0) && at(4.0) > 20.0 * at(3.0), "{tried:?}");
    }
}

/// Tests 8 and 11, whole: seven parameters from ten trials.
#[test]
fn seven_parameters_are_recovered_from_starts_on_either_side_of_the_whole_numbers() {
    check_whole_numbers(&[fitted(&seven_from(2.0)).unwrap(), fitted(&seven_from(4.0)).unwrap()]);
}

/// Test 10: in variant L the directory's demand and the application's first phase do the same to every measure.
#[test]
fn collinear_demands_are_named_and_their_sum_is_known() {
    let mut asked = problem(Variant::L, trials(Variant::L, &DELAYS, 0.00003, 10), 3.0);
    asked.trials.trials.retain(|t| ["3", "10"].contains(&t.id.as_str()));
    asked.estimate.retain(|e| ["dirD", "appDph1"].contains(&e.name.as_str()));
    let known = TRUE.iter().filter(|(n, _)| !["dirD", "appDph1"].contains(n));
    known.for_each(|(n, v)| asked.assumed.set(*n, if *n == "WSD" { 0.4 } else { *v }));
    let fit = fitted(&asked).unwrap();
    let (dir, app) = (&fit.parameters["dirD"], &fit.parameters["appDph1"]);
    assert!(dir.status == ParameterStatus::Free && dir.std_error.unwrap() > 0.05 * dir.estimate, "{dir:?}");
    let correlation = fit.correlation.as_ref().unwrap()[0][1].unwrap();
    assert!(correlation < -0.95, "{correlation}");
    let sum = app.estimate + 0.28 * dir.estimate;
    assert!((sum - 0.228).abs() < 0.001, "{sum}");
    let weak = fit.identifiability.weakest_direction.as_ref().unwrap();
    assert!(weak.contains("dirD") && weak.contains("appDph1"), "{weak}");
}

/// Test 9: a solution that breaks capacity is remarked.
#[test]
fn a_solution_beyond_capacity_is_remarked() {
    let mut asked = problem(Variant::L, trials(Variant::L, &DELAYS[..2], 0.005, 11), 3.0);
    asked.estimate = vec![Estimated::new("dbD").starting_at(0.1)];
    TRUE.iter().filter(|(n, _)| *n != "dbD").for_each(|(n, v)| asked.assumed.set(*n, if *n == "WSD" { 0.4 } else { *v }));
    let broken = |m: &Model, v: &Bindings, w: &[String], measures: &[Measure], o: &SolveOptions| {
        let mut solved = solve::sensitivities(m, v, w, measures, o)?;
        solved.solution.tasks.get_mut("App").unwrap().utilization *= 1.1;
        Ok(solved)
    };
    let keep = &mut |_: &layerfit::fit::Progress| std::ops::ControlFlow::Continue(());
    let fit = layerfit::fit::fit_with(&asked, &Default::default(), &broken, keep).unwrap();
    assert!(fit.notes.iter().any(|n| n.contains("task App") && n.contains("more than it can be")), "{:?}", fit.notes);
}
