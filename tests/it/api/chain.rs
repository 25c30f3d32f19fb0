//! The whole chain as a client walks it: trace, structure, model, trials, fit, predictions, comparison.

use axum::http::{StatusCode, header};
use serde_json::json;

use super::{BROWSE_PRODUCTS, TestApp, id};

/// The demand that the trials of `one_server_trials` were made with.
const DEMAND: f64 = 0.5;
/// How close an estimate must come, from trials with errors of a percent.
const DEMAND_TOLERANCE: f64 = 0.02;

#[tokio::test]
async fn a_trace_becomes_a_model() {
    let app = TestApp::new().await;
    let system = app.system().await;

    let trace = app.post(&format!("/v1/systems/{system}/traces?format=same"), "text/plain", BROWSE_PRODUCTS).await;
    assert_eq!(trace.header(header::LOCATION), format!("/v1/traces/{}", id(&trace.json())));
    let job = app.wait_for(&trace.expect(StatusCode::ACCEPTED), "succeeded").await;
    let structures = app.get(&format!("/v1/systems/{system}/structures")).await.expect(StatusCode::OK);
    let structure = id(&structures["items"][0]).to_owned();
    assert_eq!(job["structure"], structure.as_str());

    let extraction = app.get(&format!("/v1/structures/{structure}")).await.expect(StatusCode::OK);
    let entry =
        extraction["model"]["tasks"].as_array().unwrap().iter().find(|t| t["name"] == "Server").unwrap()["entries"][0]["name"].clone();
    let demand = format!("demand({})", entry.as_str().unwrap());
    let derived = json!({ "structure": structure, "set": { demand: "$demand" } });
    let model = app.post_json(&format!("/v1/systems/{system}/models"), derived).await.expect(StatusCode::CREATED);
    assert_eq!((&model["source"], &model["structure"]), (&json!("structure"), &json!(structure)));
    assert_eq!(model["free_parameters"], json!(["demand"]));
}

#[tokio::test]
async fn trials_become_predictions_with_bands() {
    let app = TestApp::new().await;
    let fit = app.finished_fit().await;
    let demand = &fit["report"]["parameters"]["demand"];
    let estimate = demand["estimate"].as_f64().expect("an estimate");
    assert!((estimate - DEMAND).abs() < DEMAND_TOLERANCE, "{demand}");
    assert!(demand["lower"].as_f64().unwrap() < estimate && estimate < demand["upper"].as_f64().unwrap(), "{demand}");

    let path = format!("/v1/fits/{}/predictions?at=users=1..20:5&measure=response_time(User)", id(&fit));
    let predictions = app.get(&path).await.expect(StatusCode::OK);
    let rows = predictions["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().map(|row| row["controlled"]["users"].as_f64().unwrap()).collect::<Vec<_>>(), [1.0, 6.0, 11.0, 16.0]);
    for row in rows {
        let measure = &row["measures"]["response_time(User)"];
        let [lower, mean, upper] = ["lower", "mean", "upper"].map(|k| measure[k].as_f64().unwrap_or_else(|| panic!("{k}: {row}")));
        assert!(lower < mean && mean < upper, "{row}");
    }
}

#[tokio::test]
async fn a_fit_names_what_it_came_from() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 8).await);
    let fit = app.fit(&model, &trials).await;
    app.wait_for(&fit, "succeeded").await;
    // New versions come; the fit stays that of the old ones.
    let (newer_model, newer_trials) = (app.model(&system).await, app.trials(&system, 9).await);
    assert!(newer_model != model && newer_trials != trials);
    let fit = app.get(&format!("/v1/fits/{}", id(&fit))).await.expect(StatusCode::OK);
    assert_eq!((&fit["model"], &fit["trials"], &fit["system"]), (&json!(model), &json!(trials), &json!(system)));
    assert_eq!(fit["report"]["problem"]["trials"]["trials"].as_array().map(Vec::len), Some(8));
    assert_eq!(app.get(&format!("/v1/models/{newer_model}")).await.json()["version"], 2);
    assert_eq!(app.get(&format!("/v1/trials/{newer_trials}")).await.json()["version"], 2);
}
