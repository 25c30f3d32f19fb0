//! Predicting: bands, remarks, and what is refused.

mod solver_error;

use layerfit::{
    fit::{
        Estimated, Fit, FitOptions, Method, Problem, Trials, Weighting, distribution::t_two_sided_at, least_squares::LeastSquaresOptions,
    },
    model::{
        Bindings, Measure, Parameter, ParameterValue,
        format::{Format, parse},
    },
    predict::{
        PredictError, PredictedRow, Predictions, Scenarios,
        plot::{PlotOptions, plot},
        predict,
    },
};

use crate::fit::three_queue::{fitted, problem, trials, truth};

fn committed() -> Fit {
    fitted(&problem(Trials::from_csv(include_bytes!("../fit/three_queue.csv")).unwrap())).unwrap()
}

fn at(fit: &Fit, texts: &[&str], measures: &[&str]) -> Result<Predictions, PredictError> {
    let scenarios = Scenarios::parse(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>()).unwrap();
    let measures: Vec<Measure> = measures.iter().map(|m| m.parse().unwrap()).collect();
    predict(fit, &scenarios, &measures, 0.95)
}

fn half_width(row: &PredictedRow, measure: &str) -> f64 {
    let p = &row.measures[&measure.parse::<Measure>().unwrap()];
    p.upper.unwrap() - p.mean
}

#[test]
fn bands_hold_the_truth_and_widen_beyond_the_data() {
    let found = at(&committed(), &["users=10..40:10"], &["response_time(Users)", "throughput(Users)"]).unwrap();
    let widths: Vec<f64> = found.rows.iter().map(|row| half_width(row, "response_time(Users)")).collect();
    assert!(widths.windows(2).all(|w| w[0] < w[1]), "{widths:?}");
    let truth = truth(20.0, 10.0, &found.measures)[0];
    let p = &found.rows[1].measures[0];
    assert!(p.lower.unwrap() < truth && truth < p.upper.unwrap(), "{truth} and {p:?}");
}

/// The band is `t √(H P Hᵀ)` with the derivatives of finite differences; `t` with the degrees of freedom of that variance.
#[test]
fn a_band_is_what_its_formula_says() {
    let fit = committed();
    let row = &at(&fit, &["users=20"], &["response_time(Users)"]).unwrap().rows[0];
    let mean_at = |estimates: &[f64]| {
        let sets: Vec<String> = estimates.iter().zip(1..).map(|(v, k)| format!("d{k}={v:e}")).chain(["users=20".into()]).collect();
        let texts: Vec<&str> = sets.iter().map(String::as_str).collect();
        at(&fit, &texts, &["response_time(Users)"]).unwrap().rows[0].measures[0].mean
    };
    let x: Vec<f64> = fit.estimates().map(|(_, v)| v).collect();
    let slope = |k: usize| {
        let moved = |by: f64| {
            let mut moved = x.clone();
            moved[k] += by;
            mean_at(&moved)
        };
        (moved(1e-5) - moved(-1e-5)) / 2e-5
    };
    let h: Vec<f64> = (0..3).map(slope).collect();
    let covariance = fit.covariance.clone().unwrap();
    let variance: f64 = (0..3).flat_map(|i| (0..3).map(move |j| (i, j))).map(|(i, j)| h[i] * covariance[i][j].unwrap() * h[j]).sum();
    let variances = fit.identifiability.estimated_variances.as_ref().unwrap();
    let along = |p: &[Vec<f64>]| -> f64 { (0..3).flat_map(|i| (0..3).map(move |j| (i, j))).map(|(i, j)| h[i] * p[i][j] * h[j]).sum() };
    let parts: Vec<f64> = variances.groups.iter().map(|g| along(&g.part)).collect();
    let spread: f64 = (0..4).flat_map(|k| (0..4).map(move |l| (k, l))).map(|(k, l)| parts[k] * variances.spread[k][l] * parts[l]).sum();
    let dof = 2.0 * along(&variances.covariance).powi(2) / spread;
    assert!(dof > 5.0 && dof < 37.0, "{dof}");
    let expected = t_two_sided_at(0.95, dof).unwrap() * variance.sqrt();
    assert!((half_width(row, "response_time(Users)") / expected - 1.0).abs() < 1e-6);
}

#[test]
fn a_new_measurement_has_a_wider_band_than_the_mean() {
    let found = at(&committed(), &["users=5"], &[]).unwrap();
    assert_eq!(found.measures.len(), 4);
    for p in found.rows[0].measures.values() {
        assert!(p.new_lower.unwrap() < p.lower.unwrap() && p.upper.unwrap() < p.new_upper.unwrap());
    }
    let other = at(&committed(), &["users=5"], &["utilization(q3)"]).unwrap();
    let p = &other.rows[0].measures[0];
    assert!(p.lower.is_some() && p.new_lower.is_none() && p.no_new_band.as_ref().unwrap().contains("no such measure"));
}

/// Where errors are as large as values a linear band would reach below zero.
#[test]
fn bands_end_where_nothing_can_be() {
    let fit = fitted(&problem(trials(10.0, 0.5, 51))).unwrap();
    let found = at(&fit, &["users=1"], &["throughput(Users)", "residence_time(q1)"]).unwrap();
    let row = &found.rows[0];
    for (measure, p) in &row.measures {
        assert_eq!(p.new_lower, Some(0.0), "{measure}: {p:?}");
        let words = format!("{measure}: the band of a new measurement would reach below 0, and ends there");
        assert!(row.notes.iter().any(|n| n.contains(&words)), "{:?}", row.notes);
    }
    let narrow = at(&committed(), &["users=5"], &["throughput(Users)"]).unwrap();
    assert!(narrow.rows[0].notes.iter().all(|n| !n.contains("ends there")), "{:?}", narrow.rows[0].notes);
}

#[test]
fn estimates_set_far_from_what_they_were_are_extrapolated() {
    let fit = committed();
    let set = |d1: &str| at(&fit, &["users=5", d1], &["throughput(Users)"]).unwrap().rows[0].clone();
    let (near, far) = (set(&format!("d1={}", fit.parameters["d1"].estimate)), set("d1=9"));
    assert!(!near.extrapolated && far.extrapolated, "{near:?} {far:?}");
    assert!(far.notes.iter().any(|n| n.contains("d1 = 9 is outside its interval")), "{:?}", far.notes);
}

#[test]
fn points_outside_the_trials_are_remarked() {
    let found = at(&committed(), &["users=5..25:20"], &["throughput(Users)"]).unwrap();
    assert!(!found.rows[0].extrapolated && found.rows[0].notes.is_empty(), "{:?}", found.rows[0].notes);
    assert!(found.rows[1].extrapolated);
    assert_eq!(found.rows[1].notes, ["users = 25 is outside the measured range 1 to 10"]);
    let mut low = problem(trials(10.0, 0.01, 41));
    low.trials.trials.truncate(4);
    let busy = at(&fitted(&low).unwrap(), &["users=12"], &["throughput(Users)"]).unwrap();
    assert!(
        busy.rows[0].notes.iter().any(|n| n.starts_with("processor p3 is 9") && n.contains("in the trials at most")),
        "{:?}",
        busy.rows[0].notes
    );
}

/// Each value was measured, but not with the other.
#[test]
fn points_outside_the_hull_of_the_trials_are_remarked() {
    let mut data = trials(10.0, 0.01, 41);
    for (trial, think) in data.trials.iter_mut().zip([10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0].into_iter().cycle()) {
        trial.controlled.set("think", think);
    }
    let fit = fitted(&problem(data)).unwrap();
    let (few, many) = (
        at(&fit, &["users=1", "think=19"], &["throughput(Users)"]).unwrap(),
        at(&fit, &["users=5", "think=14"], &["throughput(Users)"]).unwrap(),
    );
    assert!(few.rows[0].extrapolated);
    assert!(few.rows[0].notes[0].contains("were not measured together: outside the convex hull"), "{:?}", few.rows[0].notes);
    assert!(!many.rows[0].extrapolated, "{:?}", many.rows[0].notes);
}

#[test]
fn a_value_that_all_trials_share_need_not_be_given() {
    let fit = committed();
    let shared = at(&fit, &["users=7"], &["throughput(Users)"]).unwrap();
    let given = at(&fit, &["users=7", "think=10"], &["throughput(Users)"]).unwrap();
    assert_eq!(shared.rows[0].measures, given.rows[0].measures);
    let other = at(&fit, &["users=7", "think=5"], &["throughput(Users)"]).unwrap();
    assert_eq!(other.rows[0].notes, ["think = 5 is outside the measured range 10 to 10"]);
    assert!(other.rows[0].measures[0].mean > given.rows[0].measures[0].mean);
}

#[test]
fn what_cannot_be_predicted_is_refused_by_name() {
    let fit = committed();
    let refused = |texts: &[&str], measures: &[&str]| at(&fit, texts, measures).unwrap_err().to_string();
    assert_eq!(refused(&[], &[]), "users must be given: the trials have it from 1 to 10");
    assert_eq!(refused(&["user=3"], &[]), "\"user\" is not a parameter of the model (it uses $users, $think, $d1, $d2, $d3)");
    assert!(refused(&["users=3"], &["throughput(nobody)"]).contains("nobody"));
    let scenarios = Scenarios::parse(&["users=3".to_owned()]).unwrap();
    assert_eq!(predict(&fit, &scenarios, &[], 1.5), Err(PredictError::Confidence(1.5)));
}

#[test]
fn a_set_estimate_is_no_longer_estimated() {
    let found = at(&committed(), &["users=10", "d3=2"], &["throughput(Users)"]).unwrap();
    assert_eq!(
        found.notes,
        [
            "d3 was estimated; here it is set, as what it is to be: what is not known of it in the trials stays in the bands, by the other estimates"
        ]
    );
    let all = at(&committed(), &["users=10", "d1=2", "d2=3", "d3=4"], &["throughput(Users)"]).unwrap();
    let p = &all.rows[0].measures[0];
    assert_eq!((p.lower, p.no_band.as_deref()), (None, Some("no estimated parameter affects it here")));
    assert!(p.new_lower.is_some(), "a new measurement still has its error");
}

#[test]
fn a_sum_has_a_band_although_its_terms_have_none() {
    let mut sum = problem(trials(10.0, 0.01, 42));
    sum.model.parameters.push(Parameter { name: "d1".into(), value: ParameterValue::Expression("$a + $b".into()) });
    sum.estimate = ["a", "b", "d2", "d3"].map(|n| Estimated::new(n).starting_at(1.0)).to_vec();
    let fit = fitted(&sum).unwrap();
    let p = &at(&fit, &["users=15"], &["throughput(Users)"]).unwrap().rows[0].measures[0];
    let separate = fitted(&problem(sum.trials.clone())).unwrap();
    let q = &at(&separate, &["users=15"], &["throughput(Users)"]).unwrap().rows[0].measures[0];
    assert!((p.upper.unwrap() - q.upper.unwrap()).abs() < 0.03 * (q.upper.unwrap() - q.lower.unwrap()), "{p:?} and {q:?}");
    let known = &at(&fit, &["users=15", "a=1"], &["throughput(Users)"]).unwrap().rows[0].measures[0];
    assert_eq!((known.lower, known.new_lower), (None, None));
    assert!(known.no_band.as_ref().unwrap().contains("do not determine"));
}

#[test]
fn without_errors_there_are_no_bands() {
    let exact = fitted(&problem(trials(10.0, 0.0, 43))).unwrap();
    let p = &at(&exact, &["users=20"], &["throughput(Users)"]).unwrap().rows[0].measures[0];
    assert!(p.lower.is_some() || p.no_band.is_some());
    let options =
        FitOptions { least_squares: LeastSquaresOptions { max_iterations: 1, ..LeastSquaresOptions::default() }, ..FitOptions::default() };
    let mut far: Problem = crate::fit::three_queue::starting_at(problem(trials(10.0, 0.01, 44)), &[200.0; 3]);
    far.weighting = Weighting::None;
    let ended = layerfit::fit::fit(&far, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let p = &at(&ended, &["users=20"], &["throughput(Users)"]).unwrap().rows[0].measures[0];
    assert_eq!((p.lower, p.new_lower), (None, None));
    assert_eq!(p.no_band.as_deref(), Some("no minimum: the limit of iterations was reached"));
}

#[test]
fn a_point_without_a_solution_is_one_row_and_not_an_error() {
    let found = at(&committed(), &["users=-1..5:6"], &["throughput(Users)"]).unwrap();
    assert!(found.rows[0].failure.is_some() && found.rows[0].measures.is_empty(), "{:?}", found.rows[0]);
    assert!(found.rows[1].failure.is_none());
}

#[test]
fn json_csv_and_words() {
    let found = at(&committed(), &["users=5..15:10"], &["throughput(Users)"]).unwrap();
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["rows"][0]["controlled"]["users"], 5.0);
    for key in ["mean", "lower", "upper", "new_lower", "new_upper"] {
        assert!(json["rows"][0]["measures"]["throughput(Users)"][key].is_number(), "{key}");
    }
    let csv = found.to_csv();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(
        header,
        [
            "$users",
            "throughput(Users)",
            "lower(throughput(Users))",
            "upper(throughput(Users))",
            "new_lower(throughput(Users))",
            "new_upper(throughput(Users))",
            "notes"
        ]
    );
    assert_eq!(reader.records().count(), 2);
    insta::assert_snapshot!(found.to_text(), @r"
    bands of 95 %
    users  throughput(Users)      band of the mean       new measurement
        5           0.185875  0.185049 .. 0.186701  0.178244 .. 0.193505
       15           0.246095  0.244483 .. 0.247706  0.238385 .. 0.253804
    users=15: users = 15 is outside the measured range 1 to 10
    ");
}

#[test]
fn a_plot_has_axes_bands_and_points() {
    let fit = committed();
    let found = at(&fit, &["users=1..20"], &["throughput(Users)"]).unwrap();
    let mut options = PlotOptions::new(found.measures[0].clone(), "users");
    options.time_unit = Some("s".into());
    let svg = plot(&fit, &found, &options).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for text in ["users", "throughput(Users) [1/s]", "predicted", "measured", "mean, 95 %", "new measurement, 95 %", "3 queues"] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(svg.matches("<circle").count() >= 10);
    assert_eq!(svg.matches("<polygon").count(), 2);
    options.against = "think".into();
    assert!(plot(&fit, &found, &options).is_err());
}

/// One server of open requests, whose response time `S / (1 - λ S)` bends near saturation.
#[test]
fn predictions_that_bend_within_their_band_are_told() {
    let model = "P 0\n p srv f\n-1\nT 0\n t server i ask -1 srv\n-1\nE 0\n a ask $lambda\n s ask $demand -1\n-1\n";
    let csv = "$lambda,response_time(ask),utilization(srv)\n1,0.111,0.11\n2,0.127,0.19\n4,0.165,0.41\n5,0.203,0.49\n6,0.248,0.61\n";
    let open = Problem {
        model: parse(model, Format::LqnText).unwrap(),
        estimate: vec![Estimated::new("demand")],
        assumed: Bindings::new(),
        trials: Trials::from_csv(csv.as_bytes()).unwrap(),
        weighting: Weighting::Auto,
        confidence: 0.95,
        method: Method::default(),
    };
    let fit = fitted(&open).unwrap();
    let bends = |lambda: &str| {
        let found = at(&fit, &[lambda], &["response_time(ask)"]).unwrap();
        found.rows[0].notes.iter().find(|n| n.contains("the band is linear in the estimates")).cloned()
    };
    assert_eq!(bends("lambda=5"), None);
    let demand = &fit.parameters["demand"];
    let [low, high] = [demand.lower, demand.upper].map(|s| s.unwrap() / (1.0 - 9.8 * s.unwrap()));
    let said = bends("lambda=9.8").unwrap();
    assert!(said.contains(&format!("from {} to {}", four_digits(low), four_digits(high))), "{said} {low} {high}");
    assert!(bends("lambda=9.95").unwrap().contains("has no solution"));
}

/// Four digits, as texts have them.
fn four_digits(value: f64) -> String {
    let decimals = 3 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", usize::try_from(decimals.max(0)).unwrap());
    text.trim_end_matches('0').to_owned()
}

/// A measure that does not count, as it has the values of another, is measured as well as that.
#[test]
fn a_measure_with_the_values_of_another_has_its_error() {
    let mut trials = Trials::from_csv(include_bytes!("../fit/three_queue.csv")).unwrap();
    let k = trials.measures.iter().position(|m| m.to_string() == "throughput(Users)").unwrap();
    trials.measures.push("throughput(q1)".parse().unwrap());
    trials.trials.iter_mut().for_each(|t| t.measured.push(t.measured[k]));
    let fit = fitted(&problem(trials)).unwrap();
    let found = at(&fit, &["users=10"], &["throughput(Users)", "throughput(q1)"]).unwrap();
    let [one, other] = [0, 1].map(|i| &found.rows[0].measures[i]);
    assert!(one.new_upper.is_some() && one.new_upper == other.new_upper, "{one:?} {other:?}");
}
