//! `/v1/families`, baselines and additions of a fit, tracks of a model.

use axum::http::StatusCode;
use serde_json::json;

use super::{NO_ID, TestApp, id};

#[tokio::test]
async fn rival_fits_are_ranked() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let with_think = super::ONE_SERVER.replace("think-time=\"5\"", "think-time=\"$think\"");
    let model = app.post(&format!("/v1/systems/{system}/models"), "application/xml", with_think).await.expect(StatusCode::CREATED);
    let (trials, path) = (app.trials(&system, 12).await, format!("/v1/models/{}/fits", id(&model)));
    let mut fits = Vec::new();
    for asked in [
        json!({ "trials": trials, "estimate": { "demand": 0.4 }, "assumed": { "think": 5 } }),
        json!({ "trials": trials, "estimate": { "demand": 0.4, "think": 4 } }),
        json!({ "trials": trials, "estimate": { "think": 4 }, "assumed": { "demand": 0.7 } }),
    ] {
        let fit = app.post_json(&path, asked).await.expect(StatusCode::ACCEPTED);
        app.wait_for(&fit, "succeeded").await;
        fits.push(id(&fit).to_owned());
    }
    let family = app.post_json("/v1/families", json!({ "fits": fits })).await.expect(StatusCode::OK);
    assert_eq!(family["members"].as_array().map(Vec::len), Some(3));
    assert_eq!(family["proposed"]["name"], fits[0].as_str(), "the think time is 5: {family}");
    assert_eq!(family["tests"].as_array().map(Vec::len), Some(2));

    let beside = app.get(&format!("/v1/fits/{}/baselines?load=users&hold_out=0.25", fits[0])).await.expect(StatusCode::OK);
    assert_eq!(beside["held_out"].as_array().map(Vec::len), Some(3));
    let refused = app.get(&format!("/v1/fits/{}/baselines?hold_out=2", fits[0])).await;
    refused.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_prediction");

    let additions = app.post_json(&format!("/v1/fits/{}/additions", fits[0]), json!({ "kinds": ["delay"] })).await.expect(StatusCode::OK);
    assert_eq!(additions["report"]["additions"][0]["candidates"].as_array().map(Vec::len), Some(2));
    assert!(additions["model"]["tasks"].is_array() && additions["estimates"]["demand"].is_number());
    for body in [json!({ "kinds": ["cache"] }), json!({ "max_additions": 11 }), json!({ "steps": 3 })] {
        app.post_json(&format!("/v1/fits/{}/additions", fits[0]), body)
            .await
            .expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    }
}

#[tokio::test]
async fn parameters_are_tracked() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 10).await);
    let path = format!("/v1/models/{model}/tracks");
    let asked = json!({ "trials": trials, "estimate": { "demand": { "start": 0.4, "transform": "log" } }, "drift": { "demand": null } });
    let track = app.post_json(&path, asked).await.expect(StatusCode::OK);
    assert_eq!(track["trials"].as_array().map(Vec::len), Some(10));
    let last = &track["trials"][9]["smoothed"]["demand"];
    assert!((last["estimate"].as_f64().unwrap() - 0.5).abs() < 0.05, "{last}");
    for (body, code) in [
        (json!({ "trials": trials, "estimate": { "demand": 0.4 }, "drift": { "speed": 1 } }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": { "demand": 0.4 }, "drift": { "demand": -1 } }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": { "demand": 0.4 }, "window": 0 }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": { "demand": 0.4 }, "drifts": {} }), "invalid_body"),
        (json!({ "trials": NO_ID, "estimate": { "demand": 0.4 } }), "unknown_reference"),
    ] {
        app.post_json(&path, body).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, code);
    }
}

#[tokio::test]
async fn bad_families_are_refused() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let fit = app.fit(&model, &trials).await;
    let fit = id(&fit);
    for (fits, status, code) in [
        (json!([]), StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"),
        (json!([fit]), StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"),
        (json!([NO_ID, fit]), StatusCode::UNPROCESSABLE_ENTITY, "unknown_reference"),
        (json!([fit, fit]), StatusCode::CONFLICT, "fit_not_ready"),
    ] {
        app.post_json("/v1/families", json!({ "fits": fits })).await.expect_problem(status, code);
    }
    app.get(&format!("/v1/fits/{fit}/baselines")).await.expect_problem(StatusCode::CONFLICT, "fit_not_ready");
    app.get(&format!("/v1/fits/{NO_ID}/baselines")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
}
