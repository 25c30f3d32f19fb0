//! Experiment design: the best sets, the best next trial, what cures a singular fit, cost and length.

use layerfit::{
    fit::{
        Estimated, Fit, Measured, Problem, Trial, Trials,
        design::{Candidate, Criterion, Design, DesignError, DesignOptions, Repeats, Search, Target, design, plan},
        distribution::t_two_sided_at,
        problem::ErrorScale,
    },
    model::{Bindings, Parameter, ParameterValue},
    solve::{self, SolveOptions},
};
use nalgebra::DMatrix;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::three_queue::{TRUE_DEMANDS, fitted, measures, model, problem, trials, truth};

fn candidates(users: impl IntoIterator<Item = u32>) -> Vec<Candidate> {
    let one = |n: u32| Candidate::at([("users", f64::from(n)), ("think", 10.0)].into_iter().collect());
    users.into_iter().map(one).collect()
}

fn finished() -> Fit {
    fitted(&problem(trials(10.0, 0.02, 60))).unwrap()
}

fn asked(criterion: Criterion, choose: usize) -> DesignOptions {
    DesignOptions { criterion, choose: Some(choose), ..DesignOptions::default() }
}

fn response_at(users: f64) -> Criterion {
    let at = [("users", users)].into_iter().collect();
    Criterion::C(Target { measure: "response_time(Users)".parse().unwrap(), at })
}

fn times(found: &Design) -> Vec<(f64, usize)> {
    found.chosen.iter().map(|c| (c.candidate.controlled.get("users").unwrap(), c.times)).collect()
}

/// Sensitivities at `users` over the fit's errors, by the solver alone.
fn rows(fit: &Fit, users: f64) -> DMatrix<f64> {
    let mut values: Bindings = fit.estimates().collect();
    [("users", users), ("think", 10.0)].into_iter().for_each(|(n, v)| values.set(n, v));
    let names: Vec<String> = fit.parameters.keys().cloned().collect();
    let solved = solve::sensitivities(&model(3), &values, &names, &measures(), &SolveOptions::default()).unwrap();
    let mut rows = solved.jacobian;
    for (k, m) in fit.weighting.measures.values().enumerate() {
        rows.row_mut(k).unscale_mut(m.deviation.unwrap());
    }
    rows
}

fn information_now(fit: &Fit) -> DMatrix<f64> {
    let c = fit.covariance.as_ref().unwrap();
    DMatrix::from_fn(3, 3, |i, j| c[i][j].unwrap()).try_inverse().unwrap()
}

/// Every multiset of three out of eight candidates, by the formula.
fn brute_force(fit: &Fit, users: &[u32], value: impl Fn(&DMatrix<f64>) -> f64) -> Vec<f64> {
    let now = information_now(fit);
    let each: Vec<DMatrix<f64>> = users.iter().map(|n| rows(fit, f64::from(*n))).map(|r| r.transpose() * r).collect();
    let n = users.len();
    let sets = (0..n).flat_map(|a| (a..n).flat_map(move |b| (b..n).map(move |c| [a, b, c])));
    let best = sets.min_by(|s, t| {
        let of = |set: &[usize; 3]| value(&(&now + &each[set[0]] + &each[set[1]] + &each[set[2]]).try_inverse().unwrap());
        of(s).total_cmp(&of(t))
    });
    best.unwrap().map(|j| f64::from(users[j])).to_vec()
}

#[test]
fn the_chosen_set_is_the_best_of_all_sets() {
    let fit = finished();
    let users = [1, 2, 4, 6, 8, 12, 16, 20];
    let x = information_now(&fit);
    assert_eq!(x.shape(), (3, 3));
    let estimates: Vec<f64> = fit.estimates().map(|(_, v)| v).collect();
    let c = {
        let mut values: Bindings = fit.estimates().collect();
        [("users", 30.0), ("think", 10.0)].into_iter().for_each(|(n, v)| values.set(n, v));
        let names: Vec<String> = fit.parameters.keys().cloned().collect();
        let measure = ["response_time(Users)".parse().unwrap()];
        solve::sensitivities(&model(3), &values, &names, &measure, &SolveOptions::default()).unwrap().jacobian
    };
    type Value = Box<dyn Fn(&DMatrix<f64>) -> f64>;
    let cases: [(Criterion, Value); 3] = [
        (Criterion::D, Box::new(|p| p.determinant())),
        (Criterion::A, Box::new(move |p| (0..3).map(|k| p[(k, k)] / estimates[k].powi(2)).sum())),
        (response_at(30.0), Box::new(move |p| (&c * p * c.transpose())[(0, 0)])),
    ];
    for (criterion, value) in cases {
        let expected = brute_force(&fit, &users, value);
        let found = design(&fit, &candidates(users), &asked(criterion.clone(), 3)).unwrap();
        let sets: Vec<f64> = times(&found).into_iter().flat_map(|(n, times)| vec![n; times]).collect();
        assert_eq!(sets, expected, "{criterion:?}");
        assert_eq!((found.search, found.efficiency), (Search::Exhaustive, Some(1.0)));
    }
}

#[test]
fn half_widths_before_and_after_are_those_of_the_covariance() {
    let fit = finished();
    let found = design(&fit, &candidates([20]), &asked(Criterion::D, 2)).unwrap();
    assert_eq!(times(&found), [(20.0, 2)]);
    let r = rows(&fit, 20.0);
    let after = (information_now(&fit) + 2.0 * r.transpose() * r).try_inverse().unwrap();
    for (k, (name, p)) in fit.parameters.iter().enumerate() {
        let width = found.parameters[name];
        let now = p.upper.unwrap() - p.estimate;
        assert!((width.half_width_now.unwrap() / now - 1.0).abs() < 1e-9, "{name}: {width:?} {now}");
        // Eight values more on 37 that are more than the parameters tell the variances so much better.
        let expected = t_two_sided_at(0.95, p.degrees_of_freedom.unwrap() * 45.0 / 37.0).unwrap() * after[(k, k)].sqrt();
        assert!((width.half_width_after.unwrap() / expected - 1.0).abs() < 1e-6, "{name}: {width:?} {expected}");
    }
    let ratio = (after.determinant() * information_now(&fit).determinant()).powf(1.0 / 6.0);
    assert!((found.width_ratio.unwrap() - ratio).abs() < 1e-6, "{:?} {ratio}", found.width_ratio);
}

/// The next trial that is chosen for a prediction is the one whose simulated refit has the narrowest band there.
#[test]
fn the_next_trial_for_a_prediction_narrows_its_band_most() {
    let measured = |users: &[f64], noise: f64, seed: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut cell = |v: f64| {
            let z: f64 = StandardNormal.sample(&mut rng);
            Some(Measured { value: v * (1.0 + noise * z), std_error: Some(0.02 * v), weight: None })
        };
        let mut trial = |n: &f64| Trial {
            id: n.to_string(),
            controlled: [("users", *n), ("think", 10.0)].into_iter().collect(),
            measured: truth(*n, 10.0, &measures()).into_iter().map(&mut cell).collect(),
            ..Trial::default()
        };
        let trials = users.iter().map(&mut trial).collect();
        let mut asked = problem(Trials { measures: measures(), trials });
        asked.method.error_scale = ErrorScale::Known;
        asked
    };
    let band = |fit: &Fit| {
        let at = layerfit::predict::Scenarios::parse(&["users=30".to_owned(), "think=10".to_owned()]).unwrap();
        let found = layerfit::predict::predict(fit, &at, &["response_time(Users)".parse().unwrap()], 0.95).unwrap();
        let p = &found.rows[0].measures[0];
        p.upper.unwrap() - p.lower.unwrap()
    };
    let users = [1.0, 4.0, 7.0, 10.0];
    let refitted = |n: f64, seed: u64| band(&fitted(&measured(&[2.0, 3.0, 5.0, 6.0, n], 0.02, seed)).unwrap());
    let simulated = users.map(|n| (0..10).map(|seed| refitted(n, seed)).sum::<f64>() / 10.0);
    let narrowest = users[simulated.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).unwrap().0];
    let fit = fitted(&measured(&[2.0, 3.0, 5.0, 6.0], 0.0, 0)).unwrap();
    let found = design(&fit, &candidates([1, 4, 7, 10]), &asked(response_at(30.0), 1)).unwrap();
    assert_eq!(times(&found), [(narrowest, 1)], "{simulated:?}");
    let target = found.target.unwrap();
    assert!((2.0 * target.half_width_now.unwrap() / band(&fit) - 1.0).abs() < 1e-9);
    // The promised band is the simulated one, but for what the estimates of each refit do to the sensitivities.
    let promised = 2.0 * target.half_width_after.unwrap();
    let expected = simulated.iter().copied().fold(f64::INFINITY, f64::min);
    assert!((promised / expected - 1.0).abs() < 0.1, "{promised} {expected}");
}

#[test]
fn a_large_choice_is_near_its_bound() {
    let fit = finished();
    let found = design(&fit, &candidates(1..=40), &asked(Criterion::D, 8)).unwrap();
    assert_eq!(found.search, Search::Exchange);
    assert_eq!(found.chosen.iter().map(|c| c.times).sum::<usize>(), 8);
    assert!(found.efficiency.unwrap() > 0.95, "{:?}", found.efficiency);
    let once = DesignOptions { repeats: Repeats::Forbidden, ..asked(Criterion::D, 8) };
    let found = design(&fit, &candidates(1..=40), &once).unwrap();
    assert!(found.chosen.len() == 8 && found.chosen.iter().all(|c| c.times == 1));
}

#[test]
fn a_budget_is_kept_and_gain_counts_for_its_cost() {
    let fit = finished();
    let mut priced = candidates([1, 5, 10, 20, 40]);
    priced.iter_mut().for_each(|c| c.cost = c.controlled.get("users"));
    let options = DesignOptions { budget: Some(50.0), ..DesignOptions::default() };
    let found = design(&fit, &priced, &options).unwrap();
    assert!(found.total_cost.unwrap() <= 50.0 && found.total_cost.unwrap() > 45.0, "{:?}", found.total_cost);
    // Without a budget: most gain for the cost. One user, and cheap, against forty.
    let found = design(&fit, &priced, &asked(Criterion::D, 1)).unwrap();
    let best = &found.candidates[0];
    let gain = |p: &layerfit::fit::design::RankedPoint| -p.width_ratio.unwrap().ln() / p.candidate.cost.unwrap();
    assert!(found.candidates.iter().all(|p| gain(p) <= gain(best) + 1e-12));
    assert_eq!(times(&found)[0].0, best.candidate.controlled.get("users").unwrap());
    let poor = DesignOptions { budget: Some(0.5), ..DesignOptions::default() };
    assert_eq!(design(&fit, &priced, &poor), Err(DesignError::Budget { budget: 0.5, least: 1.0 }));
}

/// Variance falls as the inverse of the length, so that a trial of length 3 is three trials.
#[test]
fn a_long_trial_is_several_short_ones() {
    let fit = finished();
    let mut long = candidates([8]);
    long[0].length = Some(3.0);
    let once = design(&fit, &long, &asked(Criterion::D, 1)).unwrap();
    let thrice = design(&fit, &candidates([8]), &asked(Criterion::D, 3)).unwrap();
    assert!((once.width_ratio.unwrap() - thrice.width_ratio.unwrap()).abs() < 1e-9);
}

/// Two demands that only appear as a sum: the candidate that tells them apart comes first, and what stays unseen is said.
#[test]
fn a_singular_fit_prefers_what_cures_it() {
    let mut asked_for = problem(trials(10.0, 0.01, 61));
    let sum = ParameterValue::Expression("$a + $weight * $b".into());
    asked_for.model.parameters.push(Parameter { name: "weight".into(), value: ParameterValue::Number(1.0) });
    asked_for.model.parameters.push(Parameter { name: "d1".into(), value: sum });
    asked_for.estimate = ["a", "b", "d2", "d3"].map(|n| Estimated::new(n).starting_at(1.0)).to_vec();
    let fit = fitted(&asked_for).unwrap();
    let mut offered = candidates([5, 10, 20]);
    offered.push(Candidate::at([("users", 5.0), ("weight", 2.0)].into_iter().collect()));
    let found = design(&fit, &offered, &asked(Criterion::D, 1)).unwrap();
    assert_eq!((found.rank.now, found.rank.after, found.rank.of), (3, 4, 4));
    assert_eq!(found.chosen[0].candidate.controlled.get("weight"), Some(2.0));
    assert!(found.unidentified_now[0].contains('a') && found.unidentified_after.is_empty(), "{found:?}");
    assert!(found.parameters["a"].half_width_now.is_none() && found.parameters["a"].half_width_after.is_some());
    assert_eq!(found.width_ratio, None, "there is no volume to compare with yet");
    let text = found.to_text();
    assert!(text.contains("sees 3 of 4 directions now, 4 after") && text.contains("settles"), "{text}");
    let same = design(&fit, &offered[..3], &asked(Criterion::D, 1)).unwrap();
    assert_eq!((same.rank.after, same.unidentified_after.len(), same.efficiency), (3, 1, None));
}

/// Without any trial: the set alone determines the parameters, and so does a prior with fewer trials.
#[test]
fn a_first_design_needs_no_trials() {
    let mut first: Problem = problem(trials(10.0, 0.0, 1));
    first.trials.trials.clear();
    assert_eq!(plan(&first, &candidates([1]), &asked(Criterion::D, 1)), Err(DesignError::NoStart { name: "d1".into() }));
    first.estimate = ["d1", "d2", "d3"].iter().zip(TRUE_DEMANDS).map(|(n, d)| Estimated::new(*n).starting_at(d)).collect();
    let found = plan(&first, &candidates(1..=20), &asked(Criterion::D, 3)).unwrap();
    assert_eq!((found.rank.now, found.rank.after), (0, 3));
    assert!(found.parameters.values().all(|p| p.half_width_now.is_none() && p.half_width_after.is_some()), "{found:?}");
    let mut known = first.clone();
    for (e, d) in known.estimate.iter_mut().zip(TRUE_DEMANDS) {
        e.prior = Some(layerfit::fit::Prior { min: 0.5 * d, most_likely: d, max: 2.0 * d });
    }
    let found = plan(&known, &candidates(1..=20), &asked(Criterion::A, 1)).unwrap();
    assert_eq!(found.rank.now, 3);
    for p in found.parameters.values() {
        assert!(p.half_width_after.unwrap() < p.half_width_now.unwrap());
    }
}

#[test]
fn additional_measures_are_ranked() {
    let mut few = problem(trials(10.0, 0.02, 62));
    // Throughput alone hardly tells three demands apart.
    few.trials.measures = vec!["throughput(Users)".parse().unwrap()];
    few.trials.trials.iter_mut().for_each(|t| t.measured = vec![t.measured[3]]);
    few.estimate.iter_mut().zip(TRUE_DEMANDS).for_each(|(e, d)| e.start = Some(d));
    let expected = layerfit::fit::design::identify(&few, &layerfit::fit::design::IdentifyOptions::default()).unwrap();
    assert!(expected.condition_number.unwrap() > 30.0, "{expected:?}");
    let found = plan(&few, &candidates([20]), &asked(Criterion::D, 1)).unwrap();
    let ratios: Vec<f64> = found.additional_measures.iter().map(|m| m.width_ratio.unwrap()).collect();
    assert!(ratios.windows(2).all(|w| w[0] <= w[1] + 1e-12) && ratios[0] < 0.5, "{ratios:?}");
    let names: Vec<String> = found.additional_measures.iter().map(|m| m.measure.to_string()).collect();
    for name in ["utilization(q2)", "response_time(e3)", "service_time(e1,1)", "waiting(cycle->e2)"] {
        assert!(names.iter().any(|n| n == name), "{name} {names:?}");
    }
    assert!(!names.contains(&"throughput(Users)".to_owned()));
}

#[test]
fn what_cannot_be_designed_is_refused_by_name() {
    let fit = finished();
    let refused = |candidate: &[(&str, f64)], options: &DesignOptions| {
        design(&fit, &[Candidate::at(candidate.iter().copied().collect())], options).unwrap_err().to_string()
    };
    let plain = asked(Criterion::D, 1);
    assert_eq!(refused(&[("user", 3.0)], &plain), "\"user\" is not a parameter of the model (it uses $users, $think, $d1, $d2, $d3)");
    assert_eq!(refused(&[("users", 3.0), ("d1", 3.0)], &plain), "d1 is estimated: an operating point cannot set it");
    assert_eq!(refused(&[], &plain), "users must be given: it is controlled and not the same in all trials");
    assert_eq!(refused(&[("users", 3.0)], &asked(Criterion::D, 0)), "the number of trials to choose is 0: expected 1 to 1000");
    let budget = DesignOptions { budget: Some(-1.0), ..DesignOptions::default() };
    assert_eq!(refused(&[("users", 3.0)], &budget), "the budget is -1: expected a number above 0");
    assert!(refused(&[("users", -3.0)], &plain).starts_with("the model has no solution at any candidate"));
    let unknown = DesignOptions { measures: vec!["throughput(nobody)".parse().unwrap()], ..DesignOptions::default() };
    assert!(refused(&[("users", 3.0)], &unknown).contains("nobody"));
    let certain = Criterion::C(Target { measure: "service_time(cycle,2)".parse().unwrap(), at: [("users", 2.0)].into_iter().collect() });
    assert!(refused(&[("users", 3.0)], &asked(certain, 1)).contains("nothing to design for"));
}

#[test]
fn json_survives_and_words_say_it() {
    let found = design(&finished(), &candidates([2, 30]), &asked(response_at(30.0), 2)).unwrap();
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Design>(&json).unwrap(), found);
    let text = found.to_text();
    for part in ["c-optimal: the narrowest band of response_time(Users) at users=30", "run: users=30 think=10, 2 times", "half-width now"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// The throughput of a queue with one visit a cycle is that of its customers: as a column of the trials, a fit leaves it out, and more of it tells
/// nothing more either.
#[test]
fn a_measure_that_is_another_counts_once() {
    let once = trials(10.0, 0.02, 62);
    let mut twice = once.clone();
    twice.measures.push("throughput(q1)".parse().unwrap());
    twice.trials.iter_mut().for_each(|t| t.measured.push(t.measured[3]));
    let of = |trials: Trials| design(&fitted(&problem(trials)).unwrap(), &candidates([5, 20]), &asked(Criterion::D, 2)).unwrap();
    let (once, twice) = (of(once), of(twice));
    assert_eq!(once.measures, twice.measures);
    for (name, p) in &once.parameters {
        let (a, b) = (p.half_width_after.unwrap(), twice.parameters[name].half_width_after.unwrap());
        assert!((a / b - 1.0).abs() < 1e-9, "{name}: {a} {b}");
    }
    let offered: Vec<String> = once.additional_measures.iter().map(|m| m.measure.to_string()).collect();
    assert!(!offered.iter().any(|m| m.starts_with("throughput(")) && offered.contains(&"utilization(q2)".to_owned()), "{offered:?}");
    let fit = fitted(&problem(trials(10.0, 0.02, 62))).unwrap();
    let named =
        DesignOptions { measures: ["throughput(Users)", "throughput(q1)"].map(|m| m.parse().unwrap()).to_vec(), ..asked(Criterion::D, 2) };
    let found = design(&fit, &candidates([5, 20]), &named).unwrap();
    assert_eq!(found.measures, ["throughput(Users)".parse().unwrap()]);
    assert!(found.notes.iter().any(|n| n.contains("throughput(q1) is in the model what throughput(Users) is")), "{:?}", found.notes);
}
