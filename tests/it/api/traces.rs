//! `/v1/systems/{system_id}/traces`, `/v1/traces`.

use std::io::Write;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use flate2::{Compression, write::GzEncoder};
use layerfit::{api::Limits, jobs};
use serde_json::json;

use super::{BROWSE_PRODUCTS, NO_ID, TestApp, id};

/// Compresses a body.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

#[tokio::test]
async fn a_trace_is_extracted_from() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/traces?format=same&technique=same&default_demand=0.002");
    let trace = app.post(&path, "text/plain", BROWSE_PRODUCTS).await.expect(StatusCode::ACCEPTED);
    assert_eq!((&trace["state"], &trace["bytes"]), (&json!("queued"), &json!(BROWSE_PRODUCTS.len())));
    let job = app.wait_for(&trace, "succeeded").await;
    assert_eq!((&job["kind"], &job["trace"], &job["attempts"]), (&json!("extraction"), &trace["id"], &json!(1)));
    let stored = app.get(&format!("/v1/traces/{}", id(&trace))).await.expect(StatusCode::OK);
    assert_eq!((&stored["state"], &stored["structure"]), (&json!("succeeded"), &job["structure"]));
    assert_eq!((&stored["options"]["technique"], &stored["options"]["default_demand"]), (&json!("same"), &json!(0.002)));
    let listed = app.get(&format!("/v1/systems/{system}/traces")).await.expect(StatusCode::OK);
    assert_eq!(listed["items"], json!([stored]));
}

#[tokio::test]
async fn gzip_is_taken_as_encoding_and_as_a_file() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/traces?format=same");
    let plain = app.post(&path, "text/plain", BROWSE_PRODUCTS).await.expect(StatusCode::ACCEPTED);
    let body = gzip(BROWSE_PRODUCTS.as_bytes());
    let file = app.post(&path, "application/gzip", body.clone()).await.expect(StatusCode::ACCEPTED);
    let request = Request::post(&path).header(header::CONTENT_ENCODING, "gzip").body(Body::from(body)).unwrap();
    let encoded = app.send(request).await.expect(StatusCode::ACCEPTED);
    for trace in [file, encoded] {
        assert_eq!((&trace["sha256"], &trace["bytes"]), (&plain["sha256"], &plain["bytes"]));
        app.wait_for(&trace, "succeeded").await;
    }
}

#[tokio::test]
async fn bad_uploads_leave_nothing() {
    let limits = Limits { trace_sent_bytes: 4096, trace_bytes: 8192, ..Limits::default() };
    let app = TestApp::with(limits, jobs::Options::default()).await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/traces");
    let before = app.n_rows().await;
    for query in [
        "",
        "?technique=same",
        "?format=same&technique=magic",
        "?format=same&default_demand=x",
        "?format=same&speed=1",
        "?format=same&limit_bytes=1",
    ] {
        app.post(&format!("{path}{query}"), "text/plain", BROWSE_PRODUCTS).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
    }
    let detail = app
        .post(&format!("{path}?format=pcap"), "text/plain", BROWSE_PRODUCTS)
        .await
        .expect_problem(StatusCode::BAD_REQUEST, "unknown_format");
    assert!(detail.contains("same"), "{detail}");
    let same = format!("{path}?format=same");
    app.post(&same, "text/plain", "").await.expect_problem(StatusCode::BAD_REQUEST, "empty_body");
    app.post(&same, "text/plain", gzip(b"")).await.expect_problem(StatusCode::BAD_REQUEST, "empty_body");
    app.post(&same, "text/plain", vec![b'x'; 4097]).await.expect_problem(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    let bomb = gzip(&vec![b'x'; 1 << 20]);
    assert!(bomb.len() < 4096, "the bomb passes the bound on what is sent");
    app.post(&same, "text/plain", bomb.clone()).await.expect_problem(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    let mut broken = gzip(BROWSE_PRODUCTS.as_bytes());
    broken.truncate(broken.len() / 2);
    app.post(&same, "text/plain", broken).await.expect_problem(StatusCode::BAD_REQUEST, "malformed_body");
    for (encoding, body, status, code) in [
        ("gzip", b"not gzip".to_vec(), StatusCode::BAD_REQUEST, "malformed_body"),
        ("gzip", bomb, StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
        ("br", b"x".to_vec(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_content_encoding"),
    ] {
        let request = Request::post(&same).header(header::CONTENT_ENCODING, encoding).body(Body::from(body)).unwrap();
        app.send(request).await.expect_problem(status, code);
    }
    let elsewhere = format!("/v1/systems/{NO_ID}/traces?format=same");
    app.post(&elsewhere, "text/plain", BROWSE_PRODUCTS).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    app.get(&format!("/v1/traces/{NO_ID}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(app.n_rows().await, before);
}

#[tokio::test]
async fn sizes_are_those_after_decompression() {
    let app = TestApp::new().await;
    let path = format!("/v1/systems/{}/traces?format=same", app.system().await);
    let plain = app.post(&path, "text/plain", BROWSE_PRODUCTS).await.expect(StatusCode::ACCEPTED);
    for compressed in [gzip(BROWSE_PRODUCTS.as_bytes()), zstd::encode_all(BROWSE_PRODUCTS.as_bytes(), 3).unwrap()] {
        let trace = app.post(&path, "application/octet-stream", compressed).await.expect(StatusCode::ACCEPTED);
        assert_eq!((&trace["bytes"], &trace["sha256"]), (&json!(BROWSE_PRODUCTS.len()), &plain["sha256"]));
        app.wait_for(&trace, "succeeded").await;
    }
}

#[tokio::test]
async fn options_that_cannot_work_are_refused_at_once() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let before = app.n_rows().await;
    for (query, expected) in [
        ("default_demand=abc", "default_demand: invalid type"),
        ("default_demand=-1", "default_demand"),
        ("merge=zzz", "merge: unknown variant"),
        ("technique=call-path", "does not take traces of the format same: expected the technique same"),
    ] {
        let answer = app.post(&format!("/v1/systems/{system}/traces?format=same&{query}"), "text/plain", BROWSE_PRODUCTS).await;
        let detail = answer.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
        assert!(detail.contains(expected), "{query}: {detail}");
    }
    assert_eq!(app.n_rows().await, before);
}

#[tokio::test]
async fn a_trace_that_cannot_be_read_fails_its_job() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/traces?format=same");
    let trace = app.post(&path, "text/plain", "this is no message log").await.expect(StatusCode::ACCEPTED);
    let job = app.wait_for(&trace, "failed").await;
    assert_eq!(job["error"]["code"], "extraction_failed");
    assert!(!job["error"]["message"].as_str().unwrap().is_empty());
    let stored = app.get(&format!("/v1/traces/{}", id(&trace))).await.json();
    assert_eq!((&stored["state"], &stored["error"]), (&json!("failed"), &job["error"]), "a failed trace says why");
    assert_eq!(app.get(&format!("/v1/systems/{system}/structures")).await.json(), json!({ "items": [] }));
}
