//! Where iterations were long, or did not end: before one full thread, and with many customers and threads.

use layerfit::{
    model::{Bindings, Number},
    solve::{SolveOptions, Solver, solve},
};

use super::{
    draw::{Kind, draw},
    features::read,
    laws::violations,
};

/// Relative error of a law that a converged fixed point may show.
const TOLERANCE: f64 = 1e-6;

/// A web server's threads before an application of one thread with a second phase, both on calls to others: many of these are, without
/// a bound, a little beyond the application's capacity.
const BEFORE_ONE_THREAD: &str = "P 0 p UsersP i p WSP f m 2 p AppP f p DBP f -1
    T 0 t Users r users -1 UsersP z 5 m 15 t WS n wsOp -1 WSP m $threads t App n appOp -1 AppP t Dir n dirOp -1 AppP t DB n dbOp -1 DBP -1
    E 0 s users 0 -1 y users wsOp 1 -1 s wsOp $web -1 y wsOp appOp 1 -1 y wsOp dirOp 0.2 -1 s appOp $first $second -1
    y appOp dbOp 1.2 1.2 -1 s dirOp $dir -1 s dbOp $db -1 -1";
/// Sweeps that are enough for each of them: 139 of 140 take up to 120, with what short services behind long ones change at the cores.
const ENOUGH: usize = 140;

#[test]
fn threads_before_one_that_is_full_settle_at_once() {
    let model = read("before one thread", BEFORE_ONE_THREAD);
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    let mut n_full = 0;
    for (threads, web) in [(2.0, 0.08), (3.0, 0.1), (3.0, 0.3), (4.0, 0.06), (4.0, 0.227), (4.0, 0.266), (4.0, 0.3)] {
        for (first, second) in [(0.3, 0.3), (0.16, 0.49), (0.47, 0.3), (0.12, 1.2), (0.59, 0.3)] {
            for (dir, db) in [(0.3, 0.3), (0.19, 0.196), (0.67, 0.41), (0.3, 0.17)] {
                let values: Bindings = [("threads", threads), ("web", web), ("first", first), ("second", second), ("dir", dir), ("db", db)]
                    .into_iter()
                    .collect();
                let solution = solve(&model, &values, &options).unwrap();
                let of = format!("{values:?}: {} sweeps, {:?}", solution.iterations, solution.diagnostics);
                assert!(solution.converged && solution.iterations <= ENOUGH, "{of}");
                assert!(!solution.diagnostics.iter().any(|said| said.contains("left out")), "{of}");
                n_full += usize::from(solution.tasks["App"].utilization > 1.0 - TOLERANCE);
            }
        }
    }
    assert!(n_full > 30, "{n_full}");
}

/// A task that finds nobody but who calls it there, on one core with its caller, and messages from elsewhere beside them.
#[test]
fn a_slice_that_finds_nobody_settles() {
    let text = "P 0 p UsersP i p FrontP f p Core f -1
        T 0 t Readers r readers -1 UsersP z 1 m 10 t Lookers r lookers -1 UsersP z 1 m 10 t Front n front -1 FrontP m 2 t Mid n mid -1 Core t DB n read write look -1 Core -1
        E 0 s readers 0 -1 y readers front 1 -1 s lookers 0 -1 y lookers mid 1 -1 s front 0.01 -1 y front read 1 -1 z front write 1 -1
        s mid 0.01 -1 y mid look 2 -1 s read 0.02 -1 s write 0.02 -1 s look 0.01 -1 -1";
    let model = read("nobody is found", text);
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    let solution = solve(&model, &Bindings::new(), &options).unwrap();
    assert!(solution.converged && solution.iterations < 60, "{} sweeps, {:?}", solution.iterations, solution.diagnostics);
    assert_eq!(violations(&model, &solution, TOLERANCE), Vec::<String>::new());
}

fn tenfold(number: &mut Number) {
    if let Number::Value(v) = number {
        *v = (*v * 10.0).round();
    }
}

/// Where next to nobody is ahead at a pool of tens of threads before tens of cores, a wait of the solution is counted and not its rounding.
#[test]
fn many_threads_before_many_cores_settle() {
    for seed in [3, 6, 41] {
        let mut model = draw(Kind::Multi, 8, seed);
        model.tasks.iter_mut().for_each(|task| tenfold(&mut task.multiplicity));
        model.processors.iter_mut().for_each(|processor| tenfold(&mut processor.multiplicity));
        let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
        let solution = solve(&model, &Bindings::new(), &options).unwrap();
        assert!(solution.converged, "{}: {:?}", model.name, solution.diagnostics);
        assert_eq!(violations(&model, &solution, TOLERANCE), Vec::<String>::new(), "{}", model.name);
    }
}

/// Ten times the customers and threads: several stations are full at once, and their waits trade for each other.
#[test]
fn drawn_models_with_many_customers_settle() {
    for (kind, seed) in [Kind::Multi, Kind::Phase2, Kind::Forward].into_iter().flat_map(|kind| (0..20).map(move |seed| (kind, seed))) {
        let mut model = draw(kind, 8, seed);
        for task in &mut model.tasks {
            if task.scheduling.is_reference() || task.multiplicity.literal().is_some_and(|m| m > 1.0) {
                tenfold(&mut task.multiplicity);
            }
        }
        if seed % 2 == 0 {
            model.processors.iter_mut().for_each(|processor| tenfold(&mut processor.multiplicity));
        }
        let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
        let solution = solve(&model, &Bindings::new(), &options).unwrap();
        assert!(solution.converged, "{}, seed {seed}: {:?}", model.name, solution.diagnostics);
        assert_eq!(violations(&model, &solution, TOLERANCE), Vec::<String>::new(), "{}, seed {seed}", model.name);
    }
}

/// Beside the wait of so many customers for a full server a few services, by which a wait was raised for a load beyond it, passed for nothing.
#[test]
fn up_to_a_million_customers_settle_within_the_capacities() {
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    for (kind, tasks, seed) in [(Kind::Sync, 4, 3), (Kind::Multi, 4, 5), (Kind::Ps, 4, 2), (Kind::Forward, 4, 2), (Kind::Phase2, 8, 6)] {
        for customers in [1e4, 1e5, 1e6] {
            let mut model = draw(kind, tasks, seed);
            let class = model.tasks.iter_mut().find(|task| task.scheduling.is_reference()).unwrap();
            class.multiplicity = Number::Value(customers);
            let solution = solve(&model, &Bindings::new(), &options).unwrap();
            assert!(solution.converged, "{}, {customers}: {:?}", model.name, solution.diagnostics);
            assert_eq!(violations(&model, &solution, TOLERANCE), Vec::<String>::new(), "{}, {customers}", model.name);
        }
    }
}
