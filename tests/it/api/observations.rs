//! `/v1/traces/{trace_id}/profile`, `/v1/traces/{trace_id}/usage`.

use std::fmt::Write as _;

use axum::http::{StatusCode, header};

use super::{BROWSE_PRODUCTS, NO_ID, TestApp, id};

/// Call-path records of 40 users, each of whom searches twice and then buys, with pauses of 5 s.
fn shop() -> String {
    let second = 1_000_000_000_u64;
    let mut log = "time,kind,component,method,context_id,session_id\n".to_owned();
    for user in 0..40_u64 {
        for (step, service) in ["search", "search", "buy"].into_iter().enumerate() {
            let start = (user * 4 + step as u64 * 6) * second;
            let (end, context) = (start + second, user * 3 + step as u64);
            let (from, to) = (start + second / 4, end - second / 4);
            let (front, db) = (format!("Front,{service},{context},S{user}"), format!("Db,query,{context},S{user}"));
            let _ = writeln!(log, "{start},entry,{front}\n{from},entry,{db}\n{to},exit,{db}\n{end},exit,{front}");
        }
    }
    log
}

#[tokio::test]
async fn traces_are_profiled() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/traces?format=same");
    let trace = app.post(&path, "text/plain", BROWSE_PRODUCTS).await.expect(StatusCode::ACCEPTED);
    let path = format!("/v1/traces/{}/profile", id(&trace));
    let profile = app.get(&path).await.expect(StatusCode::OK);
    assert_eq!((profile["n_executions"].as_u64(), profile["calls"].as_array().map(Vec::len)), (Some(4), Some(4)));
    assert_eq!(profile["calls"][1]["operation"], "Inventory.display_START");
    let mean_s = profile["calls"][1]["times"]["mean_s"].as_f64().unwrap();
    assert!((mean_s - 2.52e-3).abs() < 1e-12, "{mean_s}");
    let own = app.get(&format!("{path}?metric=self-time&by=caller&depth=1&min_share=0.01")).await.expect(StatusCode::OK);
    assert_eq!((&own["metric"], own["calls"].as_array().map(Vec::len)), (&"self-time".into(), Some(1)));
    let text = app.get_as(&path, "text/plain").await;
    assert!(text.header(header::CONTENT_TYPE).starts_with("text/plain") && text.text().contains("calls, by their part of all time"));
    // What was odd is told in both forms.
    let odd = app.post(&format!("/v1/systems/{system}/traces?format=same"), "text/plain", BROWSE_PRODUCTS[40..].to_owned()).await;
    let path = format!("/v1/traces/{}/profile", id(&odd.expect(StatusCode::ACCEPTED)));
    let diagnostics = app.get(&path).await.expect(StatusCode::OK)["diagnostics"].clone();
    let code = diagnostics[0]["code"].as_str().unwrap_or_else(|| panic!("nothing odd: {diagnostics}"));
    let text = app.get_as(&path, "text/plain").await;
    assert!(text.text().contains(&format!("\ndiagnostics\n  {code} (")), "{}", text.text());
    for wrong in ["by=nobody", "metric=time", "min_share=2", "depth=-1", "colour=red"] {
        app.get(&format!("{path}?{wrong}")).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
    }
    app.get(&format!("/v1/traces/{NO_ID}/profile")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
}

/// A root span that ends after `end` seconds, of the cart that an attribute names.
fn cart_span(number: u64, name: &str, cart: u64, start_s: u64) -> String {
    let (start, end) = (start_s * 1_000_000_000, (start_s + 1) * 1_000_000_000);
    format!(
        r#"{{"traceId":"{number:032x}","spanId":"{number:016x}","name":"{name}","kind":2,"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}",
        "attributes":[{{"key":"shop.cart","value":{{"stringValue":"cart{cart}"}}}}]}}"#
    )
}

#[tokio::test]
async fn attributes_that_name_sessions_may_be_given_when_asking() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let spans: Vec<String> = (0..10)
        .flat_map(|cart| {
            [cart_span(2 * cart + 1, "GET /find", cart, 100 * cart + 1), cart_span(2 * cart + 2, "POST /buy", cart, 100 * cart + 5)]
        })
        .collect();
    let resource = r#"{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]}"#;
    let document = format!(r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","));
    let trace =
        app.post(&format!("/v1/systems/{system}/traces?format=otlp"), "application/json", document).await.expect(StatusCode::ACCEPTED);
    let path = format!("/v1/traces/{}/usage", id(&trace));
    app.get(&path).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "not_observed");
    let usage = app.get(&format!("{path}?session_key=tenant,shop.cart")).await.expect(StatusCode::OK);
    assert_eq!((usage["n_sessions"].as_u64(), usage["think"]["mean_s"].as_f64()), (Some(10), Some(3.0)));
    app.get(&format!("{path}?session_key=tenant,,")).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
}

#[tokio::test]
async fn sessions_become_a_usage_model_and_reference_tasks() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/traces?format=call-path&usage=sessions");
    let trace = app.post(&path, "text/plain", shop()).await.expect(StatusCode::ACCEPTED);
    let path = format!("/v1/traces/{}/usage", id(&trace));
    let usage = app.get(&path).await.expect(StatusCode::OK);
    assert_eq!((usage["n_sessions"].as_u64(), usage["think"]["mean_s"].as_f64()), (Some(40), Some(5.0)));
    assert_eq!(usage["services"], serde_json::json!(["Front.search", "Front.buy"]));
    let cut = app.get(&format!("{path}?users=session&classes=1&idle_gap_s=50000")).await.expect(StatusCode::OK);
    assert_eq!(cut["n_sessions"], 40);
    let text = app.get_as(&path, "text/plain").await;
    assert!(text.text().starts_with("40 sessions with 120 requests"), "{}", text.text());
    for wrong in ["users=nobody", "classes=0", "classes=17", "idle_gap_s=0", "idle_gap_s=nan", "colour=red"] {
        app.get(&format!("{path}?{wrong}")).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
    }
    let job = app.wait_for(&trace, "succeeded").await;
    let structure = app.get(&format!("/v1/structures/{}", job["structure"].as_str().unwrap())).await.expect(StatusCode::OK);
    assert_eq!(structure["usage"]["n_sessions"], 40);
    let client = structure["model"]["tasks"].as_array().unwrap().iter().find(|task| task["scheduling"] == "ref").unwrap();
    assert_eq!(client["multiplicity"].as_f64(), Some(3.0));

    let plain = app.post(&format!("/v1/systems/{system}/traces?format=same"), "text/plain", BROWSE_PRODUCTS).await;
    let refused = app.get(&format!("/v1/traces/{}/usage", id(&plain.expect(StatusCode::ACCEPTED)))).await;
    let detail = refused.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "not_observed");
    assert!(detail.contains("do not say whose session a request is of"), "{detail}");
}
