//! Families of rival structures.

use std::ops::ControlFlow;

use layerfit::{
    fit::{
        Estimated, Fit, Problem, Trials,
        compare::CompareOptions,
        comparison::family::{Criterion, Family, FamilyError, FittedFamily, Rival, compare_family, fit_family},
    },
    model::{Bindings, Number},
    solve::{self, SolveOptions},
};

use super::three_queue::{fitted, measures, model, problem, trials};

fn rival(name: &str, problem: Problem) -> Rival {
    Rival { name: name.into(), problem }
}

fn four(data: &Trials) -> Problem {
    let mut four = problem(data.clone());
    four.model = model(4);
    four.estimate.push(Estimated::new("d4"));
    four
}

/// The third demand held at its true value.
fn held(data: &Trials) -> Problem {
    let mut held = problem(data.clone());
    held.estimate.pop();
    held.assumed.set("d3", 4.0);
    held
}

/// The three queues and a delay: an addition to the think time.
fn delayed(data: &Trials) -> Problem {
    let mut delayed = problem(data.clone());
    delayed.model.tasks[0].entries[0].phases[0].activity.think_time = Number::Parameter("delay".into());
    delayed.estimate.push(Estimated::new("delay").starting_at(0.1));
    delayed
}

/// The trials as a fourth queue of demand `d4` would have made them.
fn with_fourth(mut data: Trials, d4: f64) -> Trials {
    let at = |d4: f64, controlled: &Bindings| {
        let mut values = controlled.clone();
        [("d1", 2.0), ("d2", 3.0), ("d3", 4.0), ("d4", d4)].into_iter().for_each(|(n, v)| values.set(n, v));
        solve::sensitivities(&model(4), &values, &[], &measures(), &SolveOptions::default()).unwrap().values
    };
    for t in &mut data.trials {
        let (with, without) = (at(d4, &t.controlled), at(0.0, &t.controlled));
        for (k, m) in t.measured.iter_mut().enumerate() {
            m.as_mut().unwrap().value *= with[k] / without[k];
        }
    }
    data
}

fn fitted_family(rivals: &[Rival]) -> Result<FittedFamily, FamilyError> {
    fit_family(rivals, &CompareOptions::default(), &mut |_, _| ControlFlow::Continue(()))
}

fn check_sums(family: &Family) {
    for t in &family.tests {
        let c = &t.comparison;
        assert!(c.larger.sum_of_squares <= c.smaller.sum_of_squares * (1.0 + 1e-9), "{} in {}", t.smaller, t.larger);
    }
    let weights: f64 = family.members.iter().filter_map(|m| m.weight).sum();
    assert!((weights - 1.0).abs() < 1e-12);
    assert!(family.members.is_sorted_by_key(|m| m.delta.unwrap_or(f64::INFINITY)));
    assert_eq!(family.members.iter().filter_map(|m| m.delta).fold(f64::INFINITY, f64::min), 0.0);
}

#[test]
fn the_simplest_that_explains_is_proposed() {
    let data = trials(10.0, 0.01, 31);
    let rivals = [rival("three", problem(data.clone())), rival("four", four(&data)), rival("held", held(&data))];
    let found = fitted_family(&rivals).unwrap();
    let family = &found.family;
    check_sums(family);
    assert_eq!(family.criterion, Criterion::Aicc);
    // held in three in four: all pairs are nested.
    assert_eq!((family.tests.len(), family.untested.len()), (3, 0));
    assert!(family.members.iter().all(|m| m.leave_one_out_error.is_some_and(|e| e > 0.0 && e < 0.1)));
    assert_eq!(family.proposed.as_ref().unwrap().name, "held");
    let text = family.to_text();
    assert!(text.contains("proposed: held (2 parameters") && text.contains("rule: the fewest parameters"), "{text}");
    let json = serde_json::to_string(family).unwrap();
    assert_eq!(serde_json::from_str::<Family>(&json).unwrap(), *family);
    // Akaike's weights from the criteria alone.
    let aicc = |name: &str| family.members.iter().find(|m| m.name == name).unwrap().aicc.unwrap();
    let expected = (-0.5 * (aicc("four") - aicc("held"))).exp();
    let weight = |name: &str| family.members.iter().find(|m| m.name == name).unwrap().weight.unwrap();
    assert!((weight("four") / weight("held") / expected - 1.0).abs() < 1e-9);
}

#[test]
fn what_the_data_ask_for_is_proposed() {
    let data = with_fourth(trials(10.0, 0.01, 32), 1.0);
    let found =
        fitted_family(&[rival("three", problem(data.clone())), rival("four", four(&data)), rival("delayed", delayed(&data))]).unwrap();
    let family = &found.family;
    check_sums(family);
    assert_eq!(family.proposed.as_ref().unwrap().name, "four");
    let three = family.members.iter().find(|m| m.name == "three").unwrap();
    assert!(!three.explains && three.why_not.as_ref().unwrap().contains("more than chance"), "{three:?}");
    // A queue and a delay do not contain one another, but both contain the three queues.
    assert_eq!(family.tests.len(), 2);
    assert_eq!(family.untested.len(), 1);
    assert!(family.untested[0].reason.starts_with("not nested"), "{:?}", family.untested);
}

#[test]
fn stored_fits_are_compared_as_they_are() {
    let data = trials(10.0, 0.01, 33);
    let fits = [fitted(&problem(data.clone())).unwrap(), fitted(&four(&data)).unwrap()];
    let members: Vec<(&str, &Fit)> = ["a", "b"].into_iter().zip(&fits).collect();
    let family = compare_family(&members, &CompareOptions::default()).unwrap();
    check_sums(&family);
    assert_eq!(family.proposed.unwrap().name, "a");
    assert!(family.members.iter().all(|m| m.leave_one_out_error.is_none()));
}

#[test]
fn a_structure_that_cannot_be_fitted_is_said() {
    let data = trials(10.0, 0.01, 34);
    let mut broken = problem(data.clone());
    broken.estimate.push(Estimated::new("nothing"));
    let found = fitted_family(&[rival("three", problem(data)), rival("broken", broken)]).unwrap();
    assert_eq!((found.fits.len(), found.family.failed.len()), (1, 1));
    assert!(found.family.failed[0].reason.contains("nothing"), "{:?}", found.family.failed);
}

#[test]
fn what_is_no_family_is_refused() {
    let data = trials(10.0, 0.01, 35);
    let one = || rival("one", problem(data.clone()));
    let refused = |rivals: &[Rival]| fitted_family(rivals).unwrap_err();
    assert_eq!(refused(&[]), FamilyError::TooFew(0));
    assert_eq!(refused(&[one()]), FamilyError::TooFew(1));
    assert_eq!(refused(&[one(), one()]), FamilyError::SameName("one".into()));
    let other = rival("other", problem(trials(10.0, 0.01, 36)));
    assert!(matches!(refused(&[one(), other]), FamilyError::DifferentTrials { name, .. } if name == "other"));
    let mut plain = rival("plain", problem(data.clone()));
    plain.problem.weighting = layerfit::fit::Weighting::None;
    assert!(matches!(refused(&[one(), plain]), FamilyError::DifferentWeighting { name, .. } if name == "plain"));
}
