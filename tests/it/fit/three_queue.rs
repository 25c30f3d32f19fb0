//! The three-queue example: customers who think, then visit three single servers once each.
//!
//! M. Woodside, SIPEW 2008, section 3: true demands 2, 3, 4; populations 1 to 10; think time 0 or 10.

use std::ops::ControlFlow;

use layerfit::{
    fit::{Estimated, Fit, FitError, FitOptions, Measured, Method, Problem, Trial, Trials, Weighting, fit},
    model::{
        Activity, Bindings, Call, CallKind, Entry, Measure, Model, Number, Phase, Processor, ProcessorScheduling, Task, TaskScheduling,
    },
    solve::{self, SolveOptions},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// True demands of the example.
pub const TRUE_DEMANDS: [f64; 3] = [2.0, 3.0, 4.0];

/// The network with `n` queues: task `Users` (`$users` customers, think time `$think`) calls `q1`, `q2`, … once each, of
/// demand `$d1`, `$d2`, ….
pub fn model(n: usize) -> Model {
    let mut model = Model { name: format!("{n} queues"), ..Model::default() };
    let mut desk = Processor::new("desk");
    desk.scheduling = ProcessorScheduling::Inf;
    model.processors.push(desk);
    let mut users = Task::new("Users", "desk");
    users.scheduling = TaskScheduling::Ref;
    users.multiplicity = Number::Parameter("users".into());
    users.think_time = Number::Parameter("think".into());
    let mut cycle = Activity::new("cycle_ph1", 0.0);
    for k in 1..=n {
        cycle.calls.push(Call { kind: CallKind::Sync, dest: format!("e{k}"), mean: Number::Value(1.0) });
        model.processors.push(Processor::new(format!("p{k}")));
        let mut task = Task::new(format!("q{k}"), format!("p{k}"));
        task.entries.push(entry(&format!("e{k}"), Activity::new(format!("e{k}_ph1"), Number::Parameter(format!("d{k}")))));
        model.tasks.push(task);
    }
    users.entries.push(entry("cycle", cycle));
    model.tasks.insert(0, users);
    model
}

fn entry(name: &str, activity: Activity) -> Entry {
    let mut entry = Entry::new(name);
    entry.phases.push(Phase { phase: 1, activity });
    entry
}

/// Residence times at the three queues and the throughput.
pub fn measures() -> Vec<Measure> {
    ["residence_time(q1)", "residence_time(q2)", "residence_time(q3)", "throughput(Users)"].map(|m| m.parse().unwrap()).to_vec()
}

/// Values of `measures` with true demands at `users` customers.
pub fn truth(users: f64, think: f64, measures: &[Measure]) -> Vec<f64> {
    let mut values: Bindings = [("users", users), ("think", think)].into_iter().collect();
    TRUE_DEMANDS.iter().zip(1..).for_each(|(d, k)| values.set(format!("d{k}"), *d));
    solve::sensitivities(&model(3), &values, &[], measures, &SolveOptions::default()).unwrap().values
}

/// Trials at 1 to 10 customers, each value off by a normal error of `relative_error` times its measure's mean.
pub fn trials(think: f64, relative_error: f64, seed: u64) -> Trials {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let users = (1..=10).map(f64::from);
    let exact: Vec<Vec<f64>> = users.map(|n| truth(n, think, &measures())).collect();
    let error = |k: usize| relative_error * exact.iter().map(|row| row[k]).sum::<f64>() / 10.0;
    let errors: Vec<f64> = (0..measures().len()).map(error).collect();
    let mut measured = |row: &Vec<f64>| {
        let cell = |(v, error): (&f64, &f64)| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            Some(Measured { value: v + error * noise, std_error: None, weight: None })
        };
        row.iter().zip(&errors).map(cell).collect()
    };
    let trial = |(n, row): (i32, &Vec<f64>)| {
        let controlled = [("users", f64::from(n)), ("think", think)].into_iter().collect();
        Trial { id: n.to_string(), duration: None, time: None, controlled, measured: measured(row), ..Trial::default() }
    };
    let trials = (1..=10).zip(&exact).map(trial).collect();
    Trials { measures: measures(), trials }
}

/// The three demands, to be estimated from `trials`.
pub fn problem(trials: Trials) -> Problem {
    Problem {
        model: model(3),
        estimate: ["d1", "d2", "d3"].map(Estimated::new).to_vec(),
        assumed: Bindings::new(),
        trials,
        weighting: Weighting::Auto,
        confidence: 0.95,
        method: Method::default(),
    }
}

/// The problem with a start for every parameter.
pub fn starting_at(problem: Problem, start: &[f64]) -> Problem {
    let estimate = problem.estimate.iter().zip(start).map(|(e, s)| e.clone().starting_at(*s)).collect();
    Problem { estimate, ..problem }
}

/// Fits with default options.
pub fn fitted(problem: &Problem) -> Result<Fit, FitError> {
    fit(problem, &FitOptions::default(), &mut |_| ControlFlow::Continue(()))
}

/// The estimates of a fit, in order.
pub fn estimates(fit: &Fit) -> Vec<f64> {
    fit.estimates().map(|(_, v)| v).collect()
}
