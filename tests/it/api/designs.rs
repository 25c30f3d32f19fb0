//! `/v1/fits/{fit_id}/designs`.

use axum::http::StatusCode;
use serde_json::json;

use super::{NO_ID, TestApp, id};

#[tokio::test]
async fn trials_are_chosen() {
    let app = TestApp::new().await;
    let path = format!("/v1/fits/{}/designs", id(&app.finished_fit().await));
    let found = app.post_json(&path, json!({ "candidates": ["users=1..20"], "choose": 2 })).await.expect(StatusCode::OK);
    let times: u64 = found["chosen"].as_array().unwrap().iter().map(|c| c["times"].as_u64().unwrap()).sum();
    assert_eq!((times, found["candidates"].as_array().map(Vec::len)), (2, Some(20)), "{found}");
    assert!(found["parameters"]["demand"]["half_width_after"].as_f64() < found["parameters"]["demand"]["half_width_now"].as_f64());
    // For a prediction, within a budget.
    let points = json!([{ "controlled": { "users": 3 }, "cost": 1 }, { "controlled": { "users": 30 }, "cost": 4, "length": 2 }]);
    let asked = json!({ "points": points, "budget": 5, "for": { "measure": "response_time(User)", "at": { "users": 40 } } });
    let found = app.post_json(&path, asked).await.expect(StatusCode::OK);
    assert!(found["target"]["half_width_after"].as_f64() < found["target"]["half_width_now"].as_f64(), "{found}");
    assert!(found["total_cost"].as_f64() <= Some(5.0));
    // Without candidates, points around the trials.
    let found = app.post_json(&path, json!({})).await.expect(StatusCode::OK);
    assert!(!found["chosen"].as_array().unwrap().is_empty() && !found["additional_measures"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn bad_designs_are_refused() {
    let app = TestApp::new().await;
    let path = format!("/v1/fits/{}/designs", id(&app.finished_fit().await));
    for asked in [
        json!({ "candidates": ["users=x"] }),
        json!({ "candidates": ["speed=1"] }),
        json!({ "candidates": ["users=1..5000"] }),
        json!({ "criterion": "c" }),
        json!({ "choose": 0 }),
        // A search of many minutes.
        json!({ "candidates": ["users=1..1000"], "choose": 1000 }),
        json!({ "candidates": ["users=1..500"], "budget": 200 }),
        json!({ "budget": -1 }),
        json!({ "measures": ["throughput(Nobody)"] }),
    ] {
        app.post_json(&path, asked).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_design");
    }
    for asked in [
        json!({ "criterion": "e" }),
        json!({ "measures": ["speed"] }),
        json!({ "what": 1 }),
        json!({ "points": [{ "controlled": { "users": 1, "$users": 2 } }] }),
    ] {
        app.post_json(&path, asked).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    }
    app.post_json(&format!("/v1/fits/{NO_ID}/designs"), json!({})).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn what_a_plan_will_tell_is_said_before_it_is_run() {
    let app = TestApp::new().await;
    let fit = app.finished_fit().await;
    let path = format!("/v1/models/{}/identifications", fit["model"].as_str().unwrap());
    let plan = |at: &str| json!({ "at": [at], "measures": ["response_time(User)", "throughput(User)"], "estimate": { "demand": 0.1 } });
    let few = app.post_json(&path, plan("users=1..5")).await.expect(StatusCode::OK);
    let many = app.post_json(&path, plan("users=1..40")).await.expect(StatusCode::OK);
    assert_eq!((&few["rank"], &few["n_observations"]), (&json!(1), &json!(10)), "{few}");
    assert!(many["parameters"]["demand"]["half_width"].as_f64() < few["parameters"]["demand"]["half_width"].as_f64());
    let stored = app.post_json(&path, json!({ "trials": fit["trials"], "estimate": { "demand": 0.1 } })).await.expect(StatusCode::OK);
    assert!(stored["parameters"]["demand"]["std_error"].is_number(), "{stored}");
    for asked in [
        json!({ "estimate": { "demand": 0.1 } }),
        json!({ "trials": fit["trials"], "at": ["users=1"], "estimate": { "demand": 0.1 } }),
        json!({ "at": ["users=1..5000"], "measures": ["throughput(User)"], "estimate": { "demand": 0.1 } }),
        json!({ "at": ["users=1..5"], "measures": ["throughput(Nobody)"], "estimate": { "demand": 0.1 } }),
        json!({ "at": ["users=1..5"], "measures": ["throughput(User)"], "estimate": { "speed": 0.1 } }),
        json!({ "at": ["users=1..5"], "measures": ["throughput(User)"], "estimate": { "demand": 0.1 }, "relative_error": 0 }),
    ] {
        app.post_json(&path, asked).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_design");
    }
    let unknown = json!({ "trials": NO_ID, "estimate": { "demand": 0.1 } });
    app.post_json(&path, unknown).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "unknown_reference");
}

#[tokio::test]
async fn the_solver_error_is_simulated_when_asked() {
    let app = TestApp::new().await;
    let path = format!("/v1/fits/{}/predictions", id(&app.finished_fit().await));
    let found = app.get(&format!("{path}?at=users=3&measure=throughput(User)&solver_error=0.05")).await.expect(StatusCode::OK);
    assert!(found["rows"][0]["measures"]["throughput(User)"]["mean_simulated"].is_number(), "{found}");
    let many = app.get(&format!("{path}?at=users=1..40&solver_error=0.05")).await;
    many.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_prediction");
    app.get(&format!("{path}?at=users=3&solver_error=0")).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
}
