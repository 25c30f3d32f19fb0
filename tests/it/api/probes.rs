//! `/healthz`, `/readyz`, `/metrics`, `/v1/problems`.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use layerfit::api::Code;

use super::TestApp;

#[tokio::test]
async fn a_service_is_alive_and_ready() {
    let app = TestApp::new().await;
    assert_eq!(app.get("/healthz").await.expect(StatusCode::OK)["status"], "ok");
    assert_eq!(app.get("/readyz").await.expect(StatusCode::OK)["status"], "ok");
}

#[tokio::test]
async fn a_service_that_stops_is_alive_but_not_ready() {
    let app = TestApp::new().await;
    assert!(app.state.jobs().shutdown(Duration::from_secs(60)).await);
    assert_eq!(app.get("/healthz").await.status, StatusCode::OK);
    let answer = app.get("/readyz").await;
    answer.expect_problem(StatusCode::SERVICE_UNAVAILABLE, "not_ready");
    assert_eq!(answer.header(header::RETRY_AFTER), "5");
}

#[tokio::test]
async fn a_service_without_its_database_is_not_ready() {
    let app = TestApp::new().await;
    app.state.store().close().await;
    app.get("/readyz").await.expect_problem(StatusCode::SERVICE_UNAVAILABLE, "not_ready");
    let detail = app.get("/v1/systems").await.expect_problem(StatusCode::INTERNAL_SERVER_ERROR, "internal");
    assert!(!detail.contains("sql") && !detail.contains("pool"), "the cause stays in the log: {detail}");
}

#[tokio::test]
async fn metrics_count_requests_and_jobs() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    app.fit(&model, &trials).await;
    app.get(&format!("/v1/systems/{system}")).await;
    app.get("/v1/systems/x").await;
    app.get("/nowhere").await;
    for invented in ["BREW", "M1"] {
        let request = Request::builder().method(invented).uri("/v1/systems").body(Body::empty()).unwrap();
        assert_eq!(app.send(request).await.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    let answer = app.get("/metrics").await;
    assert_eq!((answer.status, answer.header(header::CONTENT_TYPE)), (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        "layerfit_http_requests_total{method=\"GET\",route=\"/v1/systems/{system_id}\",status=\"200\"} 1",
        "layerfit_http_requests_total{method=\"GET\",route=\"/v1/systems/{system_id}\",status=\"404\"} 1",
        "layerfit_http_requests_total{method=\"GET\",route=\"unmatched\",status=\"404\"} 1",
        "layerfit_http_request_duration_seconds_count{method=\"GET\",route=\"/v1/systems/{system_id}\"} 2",
        "layerfit_http_requests_total{method=\"other\",route=\"/v1/systems\",status=\"405\"} 2",
        "layerfit_http_requests_in_flight 1",
        "layerfit_jobs{state=\"queued\"} 1",
        "layerfit_jobs{state=\"succeeded\"} 0",
        "layerfit_workers_alive 0",
    ] {
        assert!(answer.text().lines().any(|l| l == line), "{line}\n{}", answer.text());
    }
    assert!(answer.text().contains("layerfit_http_request_duration_seconds_bucket"), "{}", answer.text());
    assert!(answer.text().contains("layerfit_database_size_bytes"), "{}", answer.text());
    assert!(!answer.text().contains(&system), "a path is no label");
}

#[tokio::test]
async fn metrics_have_what_jobs_took_and_what_was_received() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let fit = app.fit(&model, &trials).await;
    app.wait_for(&fit, "succeeded").await;
    let span = |id: &str| {
        serde_json::json!({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": id, "name": "get", "kind": 2,
        "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000"})
    };
    let request = serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": [span("eee19b7ec3c1b174"), span("")]}]}]});
    app.post("/v1/traces", "application/json", request.to_string()).await.expect(StatusCode::OK);
    // The end of a job is stored before it is counted.
    let lines = [
        "layerfit_job_duration_seconds_count{kind=\"fit\",state=\"succeeded\"} 1",
        "layerfit_job_duration_seconds_bucket{kind=\"fit\",state=\"succeeded\",le=\"7200\"} 1",
        "layerfit_spans_received_total{outcome=\"taken\"} 1",
        "layerfit_spans_received_total{outcome=\"rejected\"} 1",
    ];
    let mut text = String::new();
    for _ in 0..200 {
        text = app.get("/metrics").await.text().to_owned();
        if lines.iter().all(|line| text.lines().any(|l| l == *line)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("{text}");
}

#[tokio::test]
async fn every_code_is_explained() {
    let app = TestApp::new().await;
    let listed = app.get("/v1/problems").await.expect(StatusCode::OK);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(Code::ALL.len()));
    for code in Code::ALL {
        let explained = app.get(&format!("/v1/problems/{}", code.name())).await.expect(StatusCode::OK);
        assert_eq!(explained["status"], code.status().as_u16());
    }
    for unknown in ["nonsense", "%FF"] {
        app.get(&format!("/v1/problems/{unknown}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    }
}
