//! `/v1/models/{model_id}/fits`, `/v1/fits`.

use axum::http::{StatusCode, header};
use serde_json::json;

use super::{NO_ID, TestApp, id};

#[tokio::test]
async fn a_fit_is_asked_for_and_read() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 8).await);
    let path = format!("/v1/models/{model}/fits");
    let asked = json!({ "trials": trials, "estimate": { "$demand": 0.2 }, "weighting": "none", "confidence": 0.9 });
    let accepted = app.post_json(&path, asked).await;
    let fit = accepted.expect(StatusCode::ACCEPTED);
    assert_eq!((&fit["state"], accepted.header(header::LOCATION)), (&json!("queued"), format!("/v1/fits/{}", id(&fit)).as_str()));
    let job = app.wait_for(&fit, "succeeded").await;
    assert_eq!((&job["kind"], &job["fit"]), (&json!("fit"), &fit["id"]));
    let stored = app.get(accepted.header(header::LOCATION)).await.expect(StatusCode::OK);
    assert_eq!(stored["state"], "succeeded");
    assert_eq!((&stored["options"]["confidence"], &stored["options"]["weighting"]), (&json!(0.9), &json!("none")));
    let report = &stored["report"];
    for member in [
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
        assert!(report.get(member).is_some(), "{member}: {report}");
    }
    assert_eq!((&report["converged"], &report["confidence"]), (&json!(true), &json!(0.9)));
    for list in [path, format!("/v1/systems/{system}/fits")] {
        let listed = app.get(&list).await.expect(StatusCode::OK);
        assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["state"]), (&fit["id"], &json!("succeeded")));
        assert!(listed["items"][0].get("report").is_none(), "a list has no reports");
    }
}

/// A body of another shape is told by the field that has it.
#[tokio::test]
async fn errors_of_a_body_name_the_field() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/models/{}/fits", app.model(&system).await);
    for (body, field) in [
        (json!({ "trials": NO_ID, "estimate": { "demand": {} }, "confidence": "x" }), "confidence"),
        (json!({ "trials": NO_ID, "estimate": { "demand": { "start": 0.004, "mn": 1 } } }), "estimate.demand"),
        (json!({ "trials": NO_ID, "estimate": { "demand": "0.4" } }), "estimate.demand"),
    ] {
        let answer = app.post_json(&path, body).await;
        let detail = answer.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
        assert!(detail.starts_with(&format!("{field}: ")), "{detail}");
        assert_eq!((&answer.json()["field"], answer.json()["line"].as_u64()), (&json!(field), Some(1)));
    }
    let detail = app.post_json("/v1/systems", json!({ "name": 7 })).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    assert!(detail.starts_with("name: invalid type"), "{detail}");
    let twice = json!({ "trials": NO_ID, "estimate": {} }).to_string().repeat(2);
    app.post(&path, "application/json", twice).await.expect_problem(StatusCode::BAD_REQUEST, "malformed_body");
}

#[tokio::test]
async fn bad_fits_are_refused_and_leave_nothing() {
    let app = TestApp::new().await;
    let (system, other) = (app.system().await, app.system().await);
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let trials_elsewhere = app.trials(&other, 4).await;
    let path = format!("/v1/models/{model}/fits");
    let before = app.n_rows().await;
    let demand = json!({ "demand": {} });
    for (body, code) in [
        (json!({ "trials": NO_ID, "estimate": demand }), "unknown_reference"),
        (json!({ "trials": "x", "estimate": demand }), "unknown_reference"),
        (json!({ "trials": trials_elsewhere, "estimate": demand }), "unknown_reference"),
        (json!({ "trials": trials, "estimate": {} }), "invalid_fit"),
        (
            json!({ "trials": trials, "estimate": { "demand": {} }, "method": { "correct_solver": { "simulation": { "precision": 1e-9 } } } }),
            "invalid_fit",
        ),
        (
            json!({ "trials": trials, "estimate": { "demand": {} }, "method": { "correct_solver": { "simulation": { "precision": 1.0 } } } }),
            "invalid_fit",
        ),
        (json!({ "trials": trials, "estimate": { "speed": {} } }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": { "users": {} } }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": { "demand": { "start": 5, "max": 1 } } }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": { "demand": { "min": 2, "max": 1 } } }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": demand, "confidence": 1 }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": demand, "confidence": -0.5 }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": demand, "assumed": { "speed": 1 } }), "invalid_fit"),
        (json!({ "trials": trials, "estimate": { "demand": { "startt": 1 } } }), "invalid_body"),
        (json!({ "trials": trials, "estimate": { "demand": "fast" } }), "invalid_body"),
        (json!({ "trials": trials, "estimate": ["demand"] }), "invalid_body"),
        (json!({ "trials": trials, "estimate": demand, "weighting": "heavy" }), "invalid_body"),
        (json!({ "trials": trials, "estimate": demand, "confidense": 0.9 }), "invalid_body"),
        (json!({ "estimate": demand }), "invalid_body"),
        (json!({ "trials": trials, "estimate": demand, "assumed": { "$users": 1, "users": 2 } }), "invalid_body"),
        // A list in place of an object, whose elements would be taken for its fields.
        (json!({ "trials": trials, "estimate": demand, "method": [{ "kind": "huber" }, "known"] }), "invalid_body"),
        (json!({ "trials": trials, "estimate": demand, "weighting": "replicates" }), "invalid_fit"),
    ] {
        let answer = app.post_json(&path, body.clone()).await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (StatusCode::UNPROCESSABLE_ENTITY, Some(code)),
            "{body} {}",
            answer.text()
        );
    }
    let detail = |body| async { app.post_json(&path, body).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_fit") };
    let nothing = detail(json!({ "trials": trials, "estimate": {}, "assumed": { "a": 1, "b": 2, "c": 3 } })).await;
    assert!(nothing.starts_with("estimate: there is nothing to estimate"), "{nothing}");
    let many: serde_json::Map<String, serde_json::Value> = (0..2000).map(|n| (format!("p{n}"), json!({}))).collect();
    app.post_json(&path, json!({ "trials": trials, "estimate": many }))
        .await
        .expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_fit");
    let asked = json!({ "trials": trials, "estimate": demand });
    app.post_json(&format!("/v1/models/{NO_ID}/fits"), asked).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    app.get(&format!("/v1/models/{NO_ID}/fits")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    app.get(&format!("/v1/fits/{NO_ID}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(app.n_rows().await, before);
}

#[tokio::test]
async fn a_parameter_that_stands_twice_is_refused_with_its_place() {
    let app = TestApp::new().await;
    let model = app.model(&app.system().await).await;
    let path = format!("/v1/models/{model}/fits");
    for field in ["estimate", "assumed"] {
        let body = format!("{{\"trials\": \"x\",\n \"{field}\": {{\"d\": 1, \"d\": 2}}}}");
        let answer = app.post(&path, "application/json", body).await;
        let detail = answer.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
        assert!(detail.contains("\"d\" stands twice"), "{detail}");
        assert_eq!(answer.json()["line"], 2);
    }
}

#[tokio::test]
async fn null_is_as_if_a_field_were_absent() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let absent = json!({ "trials": trials, "estimate": { "demand": { "start": 0.1 } } });
    let null = json!({
        "trials": trials, "weighting": null, "confidence": null, "method": null,
        "estimate": { "demand": { "start": 0.1, "min": null, "max": null, "prior": null, "transform": null } },
    });
    let path = format!("/v1/models/{model}/fits");
    let (absent, null) = (app.post_json(&path, absent).await, app.post_json(&path, null).await);
    assert_eq!(null.expect(StatusCode::ACCEPTED)["options"], absent.expect(StatusCode::ACCEPTED)["options"]);
    let track =
        json!({ "trials": trials, "estimate": { "demand": 0.1 }, "drift": { "demand": 0.01 }, "weighting": null, "error_scale": null });
    app.post_json(&format!("/v1/models/{model}/tracks"), track).await.expect(StatusCode::OK);
    let twice = json!({ "trials": trials, "estimate": { "demand": 0.1 }, "drift": { "demand": 0.01, "$demand": 0.02 } });
    let answer = app.post_json(&format!("/v1/models/{model}/tracks"), twice).await;
    let detail = answer.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    assert!(detail.starts_with("drift: demand is given twice"), "{detail}");
}
