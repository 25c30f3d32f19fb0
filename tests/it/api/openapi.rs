//! The OpenAPI document: it is the committed one, and every operation in it is called here and answers as it says.

use std::collections::BTreeSet;

use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use layerfit::api;
use serde_json::{Value, json};

use super::{BROWSE_PRODUCTS, ONE_SERVER, TestApp, id, one_server_trials};

#[test]
fn the_committed_document_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/openapi.json");
    let committed = std::fs::read_to_string(path).expect("openapi/openapi.json is there");
    let generated = api::openapi_json().expect("the document is written");
    assert!(committed == generated, "openapi/openapi.json has drifted: run `cargo run -- openapi > openapi/openapi.json`");
}

#[test]
fn every_reference_leads_somewhere() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                    found.insert(reference.to_owned());
                }
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document: Value = serde_json::from_str(&api::openapi_json().unwrap()).unwrap();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 10, "{found:?}");
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}

/// OpenAPI requires a description of every response.
#[test]
fn every_response_has_a_description() {
    let document: Value = serde_json::from_str(&api::openapi_json().unwrap()).unwrap();
    let items = document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    for operation in items {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let is_described = response["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_described, "{} {status}: {response}", operation["operationId"]);
        }
    }
}

/// Every operation with a request that succeeds, in an order in which each finds what it needs. `{system}` … stand for the
/// ids of what was made before.
const CALLS: &[(&str, Method, &str, StatusCode)] = &[
    ("healthz", Method::GET, "/healthz", StatusCode::OK),
    ("readyz", Method::GET, "/readyz", StatusCode::OK),
    ("create_system", Method::POST, "/v1/systems", StatusCode::CREATED),
    ("list_systems", Method::GET, "/v1/systems", StatusCode::OK),
    ("get_system", Method::GET, "/v1/systems/{system}", StatusCode::OK),
    ("upload_trace", Method::POST, "/v1/systems/{system}/traces?format=same", StatusCode::ACCEPTED),
    ("stream_job_events", Method::GET, "/v1/jobs/{job}/events", StatusCode::OK),
    ("list_traces", Method::GET, "/v1/systems/{system}/traces", StatusCode::OK),
    ("get_trace", Method::GET, "/v1/traces/{trace}", StatusCode::OK),
    ("get_profile", Method::GET, "/v1/traces/{trace}/profile", StatusCode::OK),
    // Messages name no sessions: understood, and refused.
    ("get_usage", Method::GET, "/v1/traces/{trace}/usage", StatusCode::UNPROCESSABLE_ENTITY),
    ("receive_spans", Method::POST, "/v1/traces", StatusCode::OK),
    ("list_structures", Method::GET, "/v1/systems/{system}/structures", StatusCode::OK),
    ("get_structure", Method::GET, "/v1/structures/{structure}", StatusCode::OK),
    ("create_model", Method::POST, "/v1/systems/{system}/models", StatusCode::CREATED),
    ("list_models", Method::GET, "/v1/systems/{system}/models", StatusCode::OK),
    ("get_model", Method::GET, "/v1/models/{model}", StatusCode::OK),
    ("create_trials", Method::POST, "/v1/systems/{system}/trials", StatusCode::CREATED),
    ("list_trials", Method::GET, "/v1/systems/{system}/trials", StatusCode::OK),
    ("get_trials", Method::GET, "/v1/trials/{trials}", StatusCode::OK),
    ("create_fit", Method::POST, "/v1/models/{model}/fits", StatusCode::ACCEPTED),
    ("stream_job_events", Method::GET, "/v1/jobs/{job}/events", StatusCode::OK),
    ("list_model_fits", Method::GET, "/v1/models/{model}/fits", StatusCode::OK),
    ("list_system_fits", Method::GET, "/v1/systems/{system}/fits", StatusCode::OK),
    ("get_fit", Method::GET, "/v1/fits/{fit}", StatusCode::OK),
    ("get_predictions", Method::GET, "/v1/fits/{fit}/predictions?at=users=3", StatusCode::OK),
    ("design_trials", Method::POST, "/v1/fits/{fit}/designs", StatusCode::OK),
    ("identify_parameters", Method::POST, "/v1/models/{model}/identifications", StatusCode::OK),
    ("compare_fits", Method::POST, "/v1/comparisons", StatusCode::UNPROCESSABLE_ENTITY),
    ("compare_families", Method::POST, "/v1/families", StatusCode::UNPROCESSABLE_ENTITY),
    ("get_baselines", Method::GET, "/v1/fits/{fit}/baselines", StatusCode::OK),
    ("try_additions", Method::POST, "/v1/fits/{fit}/additions", StatusCode::OK),
    ("track_parameters", Method::POST, "/v1/models/{model}/tracks", StatusCode::OK),
    ("list_jobs", Method::GET, "/v1/jobs", StatusCode::OK),
    ("get_job", Method::GET, "/v1/jobs/{job}", StatusCode::OK),
    ("cancel_job", Method::DELETE, "/v1/jobs/{job}", StatusCode::CONFLICT),
    ("list_problems", Method::GET, "/v1/problems", StatusCode::OK),
    ("get_problem", Method::GET, "/v1/problems/not_found", StatusCode::OK),
    ("get_openapi", Method::GET, "/v1/openapi.json", StatusCode::OK),
    ("metrics", Method::GET, "/metrics", StatusCode::OK),
    ("delete_system", Method::DELETE, "/v1/systems/{system}", StatusCode::NO_CONTENT),
];

#[test]
fn every_operation_is_called() {
    let document: Value = serde_json::from_str(&api::openapi_json().unwrap()).unwrap();
    let items = document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let documented: BTreeSet<&str> = items.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    let called: BTreeSet<&str> = CALLS.iter().map(|(operation, ..)| *operation).collect();
    assert_eq!(documented, called);
}

#[tokio::test]
async fn every_operation_answers_as_documented() {
    let app = TestApp::new().await;
    // Names of ids, and the ids.
    let mut ids: Vec<(&str, String)> = Vec::new();
    for (operation, method, template, status) in CALLS {
        let path = ids.iter().rev().fold((*template).to_owned(), |path, (name, id)| path.replace(&format!("{{{name}}}"), id));
        let (media_type, body) = body_of(operation, &ids);
        let request = Request::builder().method(method).uri(&path).header(header::CONTENT_TYPE, media_type).body(Body::from(body));
        let answer = app.send(request.unwrap()).await;
        assert_eq!(answer.status, *status, "{operation}: {}", answer.text());
        let is_json = answer.header(header::CONTENT_TYPE) == "application/json";
        let resource = if is_json { answer.json() } else { Value::Null };
        match *operation {
            "create_system" => ids.push(("system", id(&resource).to_owned())),
            "upload_trace" => ids.extend([("trace", id(&resource).to_owned()), ("job", resource["job"].as_str().unwrap().to_owned())]),
            "list_structures" => ids.push(("structure", id(&resource["items"][0]).to_owned())),
            "create_model" => ids.push(("model", id(&resource).to_owned())),
            "create_trials" => ids.push(("trials", id(&resource).to_owned())),
            "create_fit" => ids.extend([("fit", id(&resource).to_owned()), ("job", resource["job"].as_str().unwrap().to_owned())]),
            _ => {}
        }
    }
}

/// The body of an operation that takes one.
fn body_of(operation: &str, ids: &[(&str, String)]) -> (&'static str, String) {
    let made = |name: &str| ids.iter().rev().find(|(n, _)| *n == name).map(|(_, id)| id.clone());
    match operation {
        "create_system" => ("application/json", json!({ "name": "s" }).to_string()),
        "upload_trace" => ("text/plain", BROWSE_PRODUCTS.to_owned()),
        "create_model" => ("application/xml", ONE_SERVER.to_owned()),
        "create_trials" => ("text/csv", one_server_trials(6)),
        "create_fit" => ("application/json", json!({ "trials": made("trials"), "estimate": { "demand": 0.1 } }).to_string()),
        "design_trials" => ("application/json", json!({ "candidates": ["users=1..9:4"] }).to_string()),
        "identify_parameters" => ("application/json", json!({ "trials": made("trials"), "estimate": { "demand": 0.1 } }).to_string()),
        // A fit compared with itself: understood, and refused.
        "compare_fits" => ("application/json", json!({ "fits": [made("fit"), made("fit")] }).to_string()),
        "compare_families" => ("application/json", json!({ "fits": [made("fit"), made("fit")] }).to_string()),
        "try_additions" => ("application/json", json!({ "kinds": ["delay"], "max_additions": 1 }).to_string()),
        "track_parameters" => {
            let body = json!({ "trials": made("trials"), "estimate": { "demand": 0.1 }, "drift": { "demand": 0.01 } });
            ("application/json", body.to_string())
        }
        _ => ("application/json", String::new()),
    }
}
