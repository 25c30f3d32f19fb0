//! `/v1/comparisons`.

use axum::http::StatusCode;
use serde_json::json;

use super::{NO_ID, TestApp, id};

#[tokio::test]
async fn nested_fits_are_compared() {
    let app = TestApp::new().await;
    let system = app.system().await;
    // The larger structure also estimates the think time, which the smaller one holds at 5.
    let with_think = super::ONE_SERVER.replace("think-time=\"5\"", "think-time=\"$think\"");
    let model = app.post(&format!("/v1/systems/{system}/models"), "application/xml", with_think).await.expect(StatusCode::CREATED);
    let (trials, path) = (app.trials(&system, 12).await, format!("/v1/models/{}/fits", id(&model)));
    let small = json!({ "trials": trials, "estimate": { "demand": 0.4 }, "assumed": { "think": 5 }, "weighting": "none" });
    let large = json!({ "trials": trials, "estimate": { "demand": 0.4, "think": 4 }, "weighting": "none" });
    let small = app.post_json(&path, small).await.expect(StatusCode::ACCEPTED);
    let large = app.post_json(&path, large).await.expect(StatusCode::ACCEPTED);
    app.wait_for(&small, "succeeded").await;
    app.wait_for(&large, "succeeded").await;

    let comparison = app.post_json("/v1/comparisons", json!({ "fits": [id(&small), id(&large)] })).await.expect(StatusCode::OK);
    for member in ["f", "numerator_dof", "denominator_dof", "critical_value", "p_value", "preferred"] {
        assert!(comparison.get(member).is_some(), "{member}: {comparison}");
    }
    assert_eq!(comparison["numerator_dof"], 1);
    let same = app.post_json("/v1/comparisons", json!({ "fits": [id(&small), id(&small)] })).await;
    same.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "not_comparable");
}

#[tokio::test]
async fn bad_comparisons_are_refused() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let fit = app.fit(&model, &trials).await;
    let fit = id(&fit);
    for (fits, status, code) in [
        (json!([]), StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"),
        (json!([fit]), StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"),
        (json!([fit, fit, fit]), StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"),
        (json!("fit"), StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"),
        (json!([NO_ID, fit]), StatusCode::UNPROCESSABLE_ENTITY, "unknown_reference"),
        (json!(["x", fit]), StatusCode::UNPROCESSABLE_ENTITY, "unknown_reference"),
        (json!([fit, fit]), StatusCode::CONFLICT, "fit_not_ready"),
    ] {
        app.post_json("/v1/comparisons", json!({ "fits": fits })).await.expect_problem(status, code);
    }
}
