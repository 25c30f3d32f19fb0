//! Nested structures against each other.

use layerfit::{
    fit::{
        CompareError, Estimated, Fit, Problem, compare,
        f_test::{FTestError, Preferred},
    },
    model::Bindings,
    solve::{self, SolveOptions},
};

use super::three_queue::{fitted, model, problem, trials};

fn four_queues(trials: layerfit::fit::Trials) -> Problem {
    let mut four = problem(trials);
    four.model = model(4);
    four.estimate.push(Estimated::new("d4"));
    four
}

#[test]
fn a_fourth_queue_that_is_not_there_is_not_preferred() {
    let data = trials(10.0, 0.01, 31);
    let (three, four) = (fitted(&problem(data.clone())).unwrap(), fitted(&four_queues(data)).unwrap());
    for (a, b, preferred_fit) in [(&three, &four, 1), (&four, &three, 2)] {
        let found = compare(a, b).unwrap();
        assert_eq!((found.test.preferred, found.preferred_fit), (Preferred::Smaller, preferred_fit));
        assert_eq!((found.test.numerator_dof, found.test.denominator_dof), (1, 36));
        assert_eq!((found.restriction[0].parameter.as_str(), found.restriction[0].value), ("d4", 0.0));
        assert!(found.smaller.sum_of_squares >= found.larger.sum_of_squares * (1.0 - 1e-9));
        assert!(found.notes.iter().any(|n| n.contains("on a bound")), "{:?}", found.notes);
    }
}

#[test]
fn a_fourth_queue_that_is_there_is_preferred() {
    let mut data = trials(10.0, 0.01, 32);
    let wrong = measure_four_queues(&mut data);
    let (three, four) = (fitted(&problem(wrong.clone())).unwrap(), fitted(&four_queues(wrong)).unwrap());
    let found = compare(&three, &four).unwrap();
    assert_eq!((found.test.preferred, found.preferred_fit), (Preferred::Larger, 2));
    assert!(found.test.p_value < 1e-6 && found.test.f > found.test.critical_value);
    let p = &four.parameters["d4"];
    assert!(p.lower.unwrap() < 1.0 && 1.0 < p.upper.unwrap(), "{p:?}");
}

/// Scales every value by what a fourth queue of demand 1 would do to it.
fn measure_four_queues(data: &mut layerfit::fit::Trials) -> layerfit::fit::Trials {
    let at = |d4: f64, controlled: &Bindings| {
        let mut values = controlled.clone();
        [("d1", 2.0), ("d2", 3.0), ("d3", 4.0), ("d4", d4)].into_iter().for_each(|(n, v)| values.set(n, v));
        solve::sensitivities(&model(4), &values, &[], &super::three_queue::measures(), &SolveOptions::default()).unwrap().values
    };
    for t in &mut data.trials {
        let (with, without) = (at(1.0, &t.controlled), at(0.0, &t.controlled));
        for (k, m) in t.measured.iter_mut().enumerate() {
            m.as_mut().unwrap().value *= with[k] / without[k];
        }
    }
    data.clone()
}

#[test]
fn a_held_parameter_is_nested_in_the_same_model() {
    let data = trials(10.0, 0.01, 33);
    let mut held = problem(data.clone());
    held.estimate.pop();
    held.assumed.set("d3", 4.0);
    let found = compare(&fitted(&held).unwrap(), &fitted(&problem(data)).unwrap()).unwrap();
    assert_eq!((found.restriction[0].parameter.as_str(), found.restriction[0].value), ("d3", 4.0));
    assert!(found.test.p_value > 1e-3, "the held value is the true one: {:?}", found.test);
}

#[test]
fn what_is_not_nested_is_refused() {
    let data = trials(10.0, 0.01, 34);
    let three = fitted(&problem(data.clone())).unwrap();
    let refused = |a: &Fit, b: &Fit| compare(a, b).unwrap_err();
    assert!(matches!(refused(&three, &three), CompareError::NotNested { .. }));
    let other = fitted(&problem(trials(10.0, 0.01, 35))).unwrap();
    assert_eq!(refused(&three, &other), CompareError::DifferentTrials);
    let mut plain = problem(data.clone());
    plain.weighting = layerfit::fit::Weighting::None;
    assert_eq!(refused(&three, &fitted(&plain).unwrap()), CompareError::DifferentWeighting);
    let mut ended = three.clone();
    ended.converged = false;
    assert_eq!(refused(&three, &ended), CompareError::NotConverged { fit: 2 });
    // Demand d1 held at a value that nobody names: the larger model with d1 at 0 or 1 is another function.
    let mut hidden = problem(data);
    hidden.model.tasks[1].entries[0].phases[0].activity.host_demand = 2.0.into();
    hidden.estimate.remove(0);
    assert!(matches!(refused(&fitted(&hidden).unwrap(), &three), CompareError::NotNested { .. }));
}

#[test]
fn too_few_measurements_leave_no_test() {
    let mut data = trials(10.0, 0.01, 36);
    data.trials.truncate(1);
    let mut held = problem(data.clone());
    held.estimate.pop();
    held.assumed.set("d3", 4.0);
    let mut full = problem(data);
    full.trials.trials[0].measured[3] = None;
    held.trials = full.trials.clone();
    let error = compare(&fitted(&held).unwrap(), &fitted(&full).unwrap()).unwrap_err();
    assert_eq!(error, CompareError::Test(FTestError::NoDegreesOfFreedom { n_obs: 3, n_params: 3 }));
}
