//! Columns of trials that say nothing new, nothing at all, or what cannot be.

use layerfit::fit::{Fit, FitError, Measured, Problem, ProblemError, Trial, Trials, Weighting};

use super::three_queue::{fitted, problem, truth};

/// Trials at think time 10, `repeated` times at each of four loads, off by a few per cent that repeat themselves only after some.
fn trials(columns: &[&str], repeated: usize) -> Trials {
    let measures: Vec<_> = columns.iter().map(|m| m.parse().unwrap()).collect();
    let mut found = Vec::new();
    for k in 0..4 * repeated {
        let users = [2.0, 4.0, 6.0, 8.0][k % 4];
        let error = |column: &str| {
            // A task alone on its processor is measured as busy as that.
            let place = columns.iter().position(|c| c.replace("(q", "(p") == column.replace("(q", "(p")).unwrap();
            let x = [0.8, -0.3, 1.1, -0.9, 0.2, -1.2, 0.5, 0.1, -0.6, 1.4, -0.2][(3 * k + 5 * place) % 11];
            1.0 + 0.02 * x
        };
        let values = truth(users, 10.0, &measures);
        let measured = values.into_iter().zip(columns).map(|(v, c)| Some(Measured { value: v * error(c), std_error: None, weight: None }));
        let controlled = [("users", users), ("think", 10.0)].into_iter().collect();
        found.push(Trial { id: k.to_string(), controlled, measured: measured.collect(), ..Trial::default() });
    }
    Trials { measures, trials: found }
}

/// Of the three demands the first is estimated.
fn asked(trials: Trials) -> Problem {
    let mut asked = problem(trials);
    asked.estimate.retain(|e| e.name == "d1");
    [("d2", 3.0), ("d3", 4.0)].into_iter().for_each(|(name, v)| asked.assumed.set(name, v));
    asked
}

fn said(fit: &Fit, what: &str) -> bool {
    fit.notes.iter().any(|note| note.contains(what))
}

#[test]
fn a_measure_that_stands_twice_counts_once() {
    let once = fitted(&asked(trials(&["throughput(Users)", "utilization(p1)"], 2))).unwrap();
    let twice = fitted(&asked(trials(&["throughput(Users)", "utilization(p1)", "utilization(q1)"], 2))).unwrap();
    let of = |fit: &Fit| (fit.parameters["d1"].estimate, fit.parameters["d1"].std_error.unwrap(), fit.n_observations);
    assert_eq!(of(&twice), of(&once));
    assert!(said(&twice, "utilization(q1) is left out: it has the values of utilization(p1)"), "{:?}", twice.notes);
    // Plain least squares is what it is.
    let mut plain = asked(trials(&["throughput(Users)", "utilization(p1)", "utilization(q1)"], 2));
    plain.weighting = Weighting::None;
    assert_eq!(fitted(&plain).unwrap().n_observations, 24);
}

#[test]
fn replicates_that_never_differ_say_nothing_of_errors() {
    let columns = ["throughput(Users)", "utilization(p1)", "utilization(desk)"];
    let mut with = asked(trials(&columns, 3));
    with.weighting = Weighting::Replicates;
    let mut without = asked(trials(&columns[..2], 3));
    without.weighting = Weighting::Replicates;
    let [with, without] = [&with, &without].map(|p| fitted(p).unwrap());
    assert_eq!(with.parameters["d1"].std_error, without.parameters["d1"].std_error);
    // A measured constant where the model has something.
    let mut constant = asked(trials(&columns[..2], 3));
    constant.weighting = Weighting::Replicates;
    constant.trials.trials.iter_mut().for_each(|t| t.measured[1].as_mut().unwrap().value = 0.4);
    let fit = fitted(&constant).unwrap();
    assert!(said(&fit, "utilization(p1) is left out: its replicates do not differ"), "{:?}", fit.notes);
    constant.trials.trials.iter_mut().for_each(|t| t.measured[0].as_mut().unwrap().value = 0.1);
    assert_eq!(fitted(&constant), Err(FitError::Problem(ProblemError::EqualReplicates)));
}

/// The same measure twice leaves a direction without an error, not a matrix that cannot be believed.
#[test]
fn replicates_of_a_measure_that_stands_twice_keep_their_covariances() {
    let mut twice = asked(trials(&["throughput(Users)", "utilization(p1)", "utilization(q1)"], 3));
    twice.weighting = Weighting::Replicates;
    let fit = fitted(&twice).unwrap();
    assert!(!said(&fit, "their covariances are taken as 0"), "{:?}", fit.notes);
}

#[test]
fn percentages_are_noticed() {
    let mut percent = asked(trials(&["throughput(Users)", "utilization(p1)"], 1));
    assert!(!said(&fitted(&percent).unwrap(), "to be busy"));
    percent.trials.trials.iter_mut().for_each(|t| t.measured[1].as_mut().unwrap().value *= 100.0);
    let fit = fitted(&percent).unwrap();
    assert!(said(&fit, "with 1 to be busy, and 3 more trials likewise: expected the mean number that are busy"), "{:?}", fit.notes);
}

#[test]
fn residuals_far_beyond_the_standard_errors_are_said() {
    let mut tight = asked(trials(&["throughput(Users)", "utilization(p1)"], 1));
    let mut give = |share: f64| {
        tight.trials.trials.iter_mut().flat_map(|t| t.measured.iter_mut().flatten()).for_each(|m| m.std_error = Some(share * m.value));
        fitted(&tight).unwrap()
    };
    let words = "times as large as the standard errors given";
    assert!(!said(&give(0.02), words));
    assert!(said(&give(0.0002), words));
}
