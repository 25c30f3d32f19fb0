//! Two classes with very different demands at one queue: small enough for its Markov chain, which gives the truth, and a model on
//! which the layered solver is some per cent off.

use layerfit::{
    fit::{Estimated, Measured, Method, Problem, Trial, Trials, Weighting},
    model::{Activity, Bindings, Measure, Model, Number},
    solve::{self, MarkovOptions, solve_markov},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::solve::build::{Does, customers, entry, model as built, server, work};

/// Demands of an interactive request and of a report.
pub const TRUE: [(&str, f64); 2] = [("askD", 0.2), ("reportD", 1.0)];

/// What is measured.
pub const MEASURES: [&str; 2] = ["throughput(c)", "response_time(ask)"];

/// `$users` customers who think for 3 and ask, with demand `$askD`, and two who think for 4 and want a report, with demand `$reportD`.
pub fn model() -> Model {
    let parameter = |name: &str| Number::Parameter(name.into());
    let mut users = customers("c", 1, 3.0, work("c", 0.0).calls("ask", 1));
    users.multiplicity = parameter("users");
    let others = customers("b", 2, 4.0, work("b", 0.0).calls("report", 1));
    let serves = |name: &str, demand: &str| entry(name, [Activity::new(format!("{name}1"), parameter(demand))]);
    built([], [users, others, server("s", [serves("ask", "askD"), serves("report", "reportD")])])
}

/// Exact values of `measures`.
pub fn truth(users: f64, measures: &[Measure]) -> Vec<f64> {
    let mut values: Bindings = TRUE.into_iter().collect();
    values.set("users", users);
    let solution = solve_markov(&model(), &values, &MarkovOptions::default()).unwrap();
    measures.iter().map(|m| solve::measure::value(&model(), &solution, m).unwrap()).collect()
}

/// Both demands, to be estimated from trials at `users` with independent errors of `error` times the exact values.
pub fn problem(users: &[u32], error: f64, seed: u64) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let measures: Vec<Measure> = MEASURES.iter().map(|m| m.parse().unwrap()).collect();
    let mut noisy = |v: f64| {
        let z: f64 = StandardNormal.sample(&mut rng);
        Some(Measured { value: v * (1.0 + error * z), std_error: Some(error * v), weight: None })
    };
    let mut trial = |n: &u32| Trial {
        id: n.to_string(),
        controlled: [("users", f64::from(*n))].into_iter().collect(),
        measured: truth(f64::from(*n), &measures).into_iter().map(&mut noisy).collect(),
        ..Trial::default()
    };
    let trials = users.iter().map(&mut trial).collect();
    Problem {
        model: model(),
        estimate: TRUE.iter().map(|(name, v)| Estimated::new(*name).starting_at(*v)).collect(),
        assumed: Bindings::new(),
        trials: Trials { measures, trials },
        weighting: Weighting::Auto,
        confidence: 0.95,
        method: Method::default(),
    }
}
