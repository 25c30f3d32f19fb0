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

/// Five trials, variances from their residuals: a demand given as an end of its 95 % interval is at the edge of a test at 5 %.
#[test]
fn a_test_agrees_with_the_interval_beside_it() {
    let mut few = trials(10.0, 0.01, 33);
    few.trials = few.trials.into_iter().step_by(2).collect();
    let three = fitted(&problem(few.clone())).unwrap();
    let d3 = &three.parameters["d3"];
    let given = |value: f64| {
        let mut two = problem(few.clone());
        two.estimate.retain(|e| e.name != "d3");
        two.assumed.set("d3", value);
        compare(&fitted(&two).unwrap(), &three).unwrap().test
    };
    for value in [d3.lower.unwrap(), d3.upper.unwrap()] {
        let test = given(value);
        let by = test.estimated_variances.unwrap();
        assert!((by.degrees_of_freedom - d3.degrees_of_freedom.unwrap()).abs() < 1e-6 && by.factor < 1.0, "{by:?} {d3:?}");
        assert!((0.045..0.055).contains(&test.p_value), "{test:?}");
        assert!((test.critical_value.sqrt() - (d3.upper.unwrap() - d3.estimate) / d3.std_error.unwrap()).abs() < 1e-6, "{test:?} {d3:?}");
    }
    assert!(given(d3.estimate).p_value > 0.999);
}

/// A second phase that is not there has no visit to the processor either, which the parameter 0 would leave.
#[test]
fn a_second_phase_is_nested_and_found() {
    let text = |second: &str| {
        format!(
            "P 0 p UU i p SP f m 2 p DP f -1 T 0 t uu r uu -1 UU z 1 m $users t ss n ss -1 SP m 8 t dd n dd -1 DP -1
             E 0 s uu 0 -1 y uu ss 1 -1 s ss $s1{second} -1 y ss dd 1 -1 s dd $d -1 -1"
        )
    };
    let [without, with] = ["", " $s2"].map(|second| layerfit::model::lqn_text::parse(&text(second)).unwrap());
    let measures: Vec<layerfit::model::Measure> = ["throughput(uu)", "response_time(uu)"].map(|m| m.parse().unwrap()).to_vec();
    let trial = |users: f64| {
        let mut values: Bindings = [("users", users), ("s1", 0.04), ("s2", 0.04), ("d", 0.03)].into_iter().collect();
        let found = solve::sensitivities(&with, &values, &[], &measures, &SolveOptions::default()).unwrap().values;
        let measured = found.iter().enumerate().map(|(k, v)| {
            let value = v * (1.0 + 0.005 * (users * 1.7 + 2.0 * f64::from(u8::try_from(k).unwrap())).sin());
            Some(layerfit::fit::Measured { value, std_error: Some(0.005 * v), weight: None })
        });
        values = [("users", users)].into_iter().collect();
        layerfit::fit::Trial { id: users.to_string(), controlled: values, measured: measured.collect(), ..Default::default() }
    };
    let trials = [3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0, 24.0].map(trial).to_vec();
    let data = layerfit::fit::Trials { measures: measures.clone(), trials };
    let asked = |model: &layerfit::model::Model, names: &[&str]| {
        let mut asked = problem(data.clone());
        asked.model = model.clone();
        asked.estimate = names.iter().map(|n| Estimated::new(*n).starting_at(0.03)).collect();
        fitted(&asked).unwrap()
    };
    let (smaller, larger) = (asked(&without, &["s1", "d"]), asked(&with, &["s1", "s2", "d"]));
    let found = compare(&smaller, &larger).unwrap();
    assert_eq!((found.restriction[0].parameter.as_str(), found.restriction[0].value, found.preferred_fit), ("s2", 0.0, 2), "{found:?}");
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
