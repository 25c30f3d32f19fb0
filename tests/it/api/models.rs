//! `/v1/systems/{system_id}/models`, `/v1/models`.

use axum::http::{StatusCode, header};
use layerfit::{api::Limits, jobs};
use serde_json::json;

use super::{BROWSE_PRODUCTS, NO_ID, ONE_SERVER, TestApp, id};

#[tokio::test]
async fn a_model_is_stored_in_every_format() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/models");
    let lqnx = app.post(&path, "application/xml", ONE_SERVER).await;
    let first = lqnx.expect(StatusCode::CREATED);
    assert_eq!((&first["version"], &first["source"]), (&json!(1), &json!("lqnx")));
    assert_eq!(first["free_parameters"], json!(["users", "demand"]));
    assert_eq!(app.get(lqnx.header(header::LOCATION)).await.expect(StatusCode::OK), first);

    let again = app.post_json(&path, first["model"].clone()).await.expect(StatusCode::CREATED);
    assert_eq!((&again["version"], &again["source"], &again["model"]), (&json!(2), &json!("json"), &first["model"]));
    // A client that names no type: the text decides; the query outweighs the header.
    let untold = app.post(&path, "application/x-www-form-urlencoded", ONE_SERVER).await.expect(StatusCode::CREATED);
    let told = app.post(&format!("{path}?format=lqnx"), "text/csv", ONE_SERVER).await.expect(StatusCode::CREATED);
    for model in [untold, told] {
        assert_eq!((&model["source"], &model["sha256"], &model["model"]), (&json!("lqnx"), &first["sha256"], &first["model"]));
    }
    let listed = app.get(&path).await.expect(StatusCode::OK);
    let versions: Vec<_> = listed["items"].as_array().unwrap().iter().map(|m| m["version"].clone()).collect();
    assert_eq!(versions, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_model_is_read_as_lqnx() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/models/{}", app.model(&system).await);
    let lqnx = app.get_as(&path, "application/xml").await;
    assert_eq!((lqnx.status, lqnx.header(header::CONTENT_TYPE)), (StatusCode::OK, "application/xml"));
    let again = app.post(&format!("/v1/systems/{system}/models"), "application/xml", lqnx.body).await.expect(StatusCode::CREATED);
    assert_eq!(again["model"], app.get(&path).await.json()["model"]);
    app.get_as(&path, "image/png").await.expect_problem(StatusCode::NOT_ACCEPTABLE, "not_acceptable");
}

#[tokio::test]
async fn bad_models_are_refused_and_leave_nothing() {
    let app = TestApp::with(Limits { model_bytes: 4096, ..Limits::default() }, jobs::Options::default()).await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/models");
    let before = app.n_rows().await;

    let unreadable = app.post(&path, "application/xml", "<lqn-model>\n  <processor").await;
    unreadable.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "unreadable_model");
    assert_eq!(unreadable.json()["line"], 2, "{}", unreadable.text());
    for (media_type, body) in [("application/json", "{\"processors\": 1}"), ("application/json", "{"), ("text/plain", "P 1 nonsense")] {
        app.post(&path, media_type, body).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "unreadable_model");
    }
    let unknown_entry = ONE_SERVER.replace("dest=\"serve\"", "dest=\"sevre\"");
    let invalid = app.post(&path, "application/xml", unknown_entry).await;
    invalid.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_model");
    assert!(invalid.json()["errors"][0]["message"].as_str().unwrap().contains("sevre"), "{}", invalid.text());
    let line = ONE_SERVER.lines().position(|line| line.contains("dest=\"serve\"")).unwrap();
    for place in [&invalid.json(), &invalid.json()["errors"][0]] {
        assert!(place["line"] == line + 1 && place["column"].is_u64(), "{}", invalid.text());
    }

    // Parameters that have no value, whatever others are.
    let json = layerfit::model::format::parse(ONE_SERVER, layerfit::model::format::Format::Lqnx).expect("the model is read");
    for (parameters, name) in [
        (json!([{ "name": "demand", "value": "$demand + 1" }]), "$demand"),
        (json!([{ "name": "demand", "value": "$a" }, { "name": "a", "value": "$demand" }]), "$demand"),
        (json!([{ "name": "a", "value": "1/0" }]), "$a"),
        (json!([{ "name": "a", "value": "log(-1)" }]), "$a"),
    ] {
        let mut model = serde_json::to_value(&json).unwrap();
        model["parameters"] = parameters;
        let detail = app.post_json(&path, model).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_model");
        assert!(detail.starts_with(&format!("parameter {name}: its value cannot be used")), "{detail}");
    }
    app.post(&path, "application/xml", "").await.expect_problem(StatusCode::BAD_REQUEST, "empty_body");
    app.post(&path, "application/xml", vec![0xff, 0xfe]).await.expect_problem(StatusCode::BAD_REQUEST, "malformed_body");
    app.post(&path, "application/xml", vec![b' '; 4097]).await.expect_problem(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    app.post(&path, "image/png", ONE_SERVER).await.expect_problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type");
    app.post(&format!("{path}?format=uml"), "text/plain", ONE_SERVER).await.expect_problem(StatusCode::BAD_REQUEST, "unknown_format");
    app.post(&format!("{path}?fromat=lqn"), "text/plain", ONE_SERVER).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
    app.post(&format!("/v1/systems/{NO_ID}/models"), "application/xml", ONE_SERVER)
        .await
        .expect_problem(StatusCode::NOT_FOUND, "not_found");
    app.get(&format!("/v1/models/{NO_ID}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(app.n_rows().await, before);
}

#[tokio::test]
async fn bad_derivations_are_refused_and_leave_nothing() {
    let app = TestApp::new().await;
    let (system, other) = (app.system().await, app.system().await);
    let trace = app.post(&format!("/v1/systems/{system}/traces?format=same"), "text/plain", BROWSE_PRODUCTS).await;
    let structure = app.wait_for(&trace.json(), "succeeded").await["structure"].clone();
    let path = format!("/v1/systems/{system}/models");
    let before = app.n_rows().await;
    for unknown in [json!(NO_ID), json!("x")] {
        app.post_json(&path, json!({ "structure": unknown })).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "unknown_reference");
    }
    let elsewhere = app.post_json(&format!("/v1/systems/{other}/models"), json!({ "structure": structure })).await;
    elsewhere.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "unknown_reference");
    for set in [json!({ "demand(nothing)": 1 }), json!({ "users": 1 }), json!({ "think_time(Client)": -1 })] {
        let answer = app.post_json(&path, json!({ "structure": structure, "set": set })).await;
        answer.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_model");
    }
    for body in [json!({ "structure": structure, "set": 1 }), json!({ "structure": structure, "st": {} }), json!({ "structure": 1 })] {
        app.post_json(&path, body).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    }
    let broken_off = app.post(&path, "application/json", format!("{{\"structure\": {structure}, ")).await;
    broken_off.expect_problem(StatusCode::BAD_REQUEST, "malformed_body");
    assert_eq!(app.n_rows().await, before);
    let model = app.post_json(&path, json!({ "structure": structure })).await.expect(StatusCode::CREATED);
    assert_eq!(app.get(&format!("/v1/models/{}", id(&model))).await.json(), model);
}
