//! The report: JSON that stands by itself, and words.

use layerfit::fit::{Fit, Trials, compare};

use super::three_queue::{fitted, problem};

fn committed() -> Fit {
    fitted(&problem(Trials::from_csv(include_bytes!("three_queue.csv")).unwrap())).unwrap()
}

#[test]
fn json_survives_a_file_and_has_what_others_read() {
    let fit = committed();
    let text = serde_json::to_string(&fit).unwrap();
    let back = Fit::from_json(text.as_bytes()).unwrap();
    assert_eq!(back.parameters.keys().collect::<Vec<_>>(), ["d1", "d2", "d3"]);
    assert_eq!(back.problem, fit.problem);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in [
        "parameters",
        "sum_of_squares",
        "degrees_of_freedom",
        "mean_square_error",
        "covariance",
        "correlation",
        "iterations",
        "converged",
        "residuals",
        "predicted",
    ] {
        assert!(!json[key].is_null(), "{key}");
    }
    for key in ["estimate", "std_error", "lower", "upper", "start"] {
        assert!(json["parameters"]["d1"][key].is_number(), "{key}");
    }
    assert_eq!(json["parameters"]["d1"]["status"], "free");
    assert_eq!(json["weighting"]["scaled_by_mean_square_error"], true);
    assert!(json["residuals"][9]["throughput(Users)"].is_number());
}

#[test]
fn covariance_and_correlation_belong_together() {
    let fit = committed();
    let (covariance, correlation) = (fit.covariance.unwrap(), fit.correlation.unwrap());
    for i in 0..3 {
        let std_error = fit.parameters[i].std_error.unwrap();
        assert!((covariance[i][i].unwrap().sqrt() / std_error - 1.0).abs() < 1e-12);
        for j in 0..3 {
            let expected = covariance[i][j].unwrap() / (std_error * fit.parameters[j].std_error.unwrap());
            assert!((correlation[i][j].unwrap() - expected).abs() < 1e-12);
        }
    }
}

#[test]
fn words_for_people() {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"ended: a minimum.*", "ended: a minimum");
    settings.add_filter(r"\d+ iterations, \d+ evaluations", "[n] iterations, [n] evaluations");
    settings.bind(|| {
        insta::assert_snapshot!(committed().to_text(), @r"
        parameter      estimate    std error         95 % interval              start
        d1              2.00718      0.01055       1.98356 .. 2.03079               1
        d2              3.00730      0.01053       2.98429 .. 3.03030               3
        d3              4.01606      0.01306       3.98800 .. 4.04412             3.6

        ended: a minimum
        40 measured values, 3 parameters, 37 degrees of freedom; [n] iterations, [n] evaluations
        weighted sum of squares 40.0000, mean square error 1.08108 (scales all intervals; they are wider for variances that are estimated, with 9.7 to 14 degrees of freedom)
        rank 3 of 3, condition number 1.722; the data say least about d3 up by 1 with d2 up by 0.7896 with d1 up by 0.486

        measure                n  rms residual   relative  weighted by
        residence_time(q1)    10       0.06819    2.293 %  its own residual variance
        residence_time(q2)    10        0.1042     1.75 %  its own residual variance
        residence_time(q3)    10         0.199    1.674 %  its own residual variance
        throughput(Users)     10      0.003267    1.773 %  its own residual variance
        AIC -118.184, AICc -114.684, BIC -106.362 (7 parameters, those of the errors among them)
        against no model: F(3, 37) = 36722, p = 2.666e-64
        normal residuals: W = 0.9624, p = 0.2017
        all at once at 95 %: d1 1.97680 .. 2.03755, d2 2.97801 .. 3.03658, d3 3.98059 .. 4.05154
        ");
        insta::assert_snapshot!(committed().to_line(), @"d1 = 2.00718 ± 0.02362, d2 = 3.00730 ± 0.02301, d3 = 4.01606 ± 0.02806");
    });
}

#[test]
fn a_comparison_in_words() {
    let full = committed();
    let mut held = full.problem.clone();
    held.estimate.pop();
    held.assumed.set("d3", 4.0);
    insta::assert_snapshot!(compare(&fitted(&held).unwrap(), &full).unwrap().to_text(), @r"
    smaller: fit 1 (d1, d2), sum of squares 41.8017
    larger: fit 2 (d1, d2, d3), sum of squares 40.0000
    the larger structure is the smaller one where d3 = 4
    F(1, 13.7) = 1.511; critical value 4.619 at 95 %; p = 0.2397
    preferred: fit 1 (the data do not ask for what the larger structure adds)
    note: both sums of squares are taken with the weights of the larger fit
    note: F and its degrees of freedom allow for weights that are estimated
    ");
}

#[test]
fn a_file_that_is_not_a_fit_is_refused() {
    let text = serde_json::to_string(&committed()).unwrap();
    assert!(Fit::from_json(b"").is_err());
    assert!(Fit::from_json(b"{}").is_err());
    assert!(Fit::from_json(&text.as_bytes()[..text.len() / 2]).is_err());
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["identifiability"]["scale"] = serde_json::json!([1.0]);
    assert!(Fit::from_json(json.to_string().as_bytes()).unwrap_err().to_string().contains("another size"));
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["problem"]["estimate"][0]["name"] = "nobody".into();
    assert!(Fit::from_json(json.to_string().as_bytes()).unwrap_err().to_string().contains("problem"));
}
