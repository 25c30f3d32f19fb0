//! What holds for every request: ids, unknown paths and methods, bodies, time-outs.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Method, Request, StatusCode, header},
};
use layerfit::{api::Limits, jobs};
use serde_json::json;
use tokio_stream::StreamExt;

use super::{TestApp, traces::gzip};

#[tokio::test]
async fn a_request_keeps_its_id_or_gets_one() {
    let app = TestApp::new().await;
    let with_id = |id: &str| Request::get("/healthz").header("x-request-id", id).body(Body::empty()).unwrap();
    assert_eq!(app.send(with_id("abc-123")).await.header("x-request-id"), "abc-123");
    let generated = app.get("/healthz").await.header("x-request-id").to_owned();
    assert_eq!(generated.len(), 36);
    assert_ne!(generated, app.get("/healthz").await.header("x-request-id"));
    for unusable in ["", "with space", &"x".repeat(129)] {
        assert_eq!(app.send(with_id(unusable)).await.header("x-request-id").len(), 36, "{unusable}");
    }
    let request = Request::get("/nowhere").header("x-request-id", "mine").body(Body::empty()).unwrap();
    assert_eq!(app.send(request).await.json()["request_id"], "mine");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let app = TestApp::new().await;
    for path in ["/", "/v1", "/v1/", "/v1/systems/", "/v2/systems", "/v1/systems/x/y/z"] {
        app.get(path).await.expect_problem(StatusCode::NOT_FOUND, "route_not_found");
    }
    for (method, path, allow) in [
        (Method::PUT, "/v1/systems", "GET,HEAD,POST"),
        (Method::POST, "/healthz", "GET,HEAD"),
        (Method::PATCH, "/v1/jobs/x", "GET,HEAD,DELETE"),
    ] {
        let answer = app.send(Request::builder().method(method).uri(path).body(Body::empty()).unwrap()).await;
        answer.expect_problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
        let mut allowed: Vec<&str> = answer.header(header::ALLOW).split(',').collect();
        let mut expected: Vec<&str> = allow.split(',').collect();
        allowed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(allowed, expected, "{path}");
    }
}

/// Fields are named, wherever an object stands.
#[tokio::test]
async fn a_list_is_not_taken_for_an_object() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let path = format!("/v1/models/{model}/fits");
    for body in [
        json!({ "trials": trials, "estimate": { "d": [0.1, 0, 1, null, "none"] } }),
        json!({ "trials": trials, "estimate": { "d": { "start": 0.1 } }, "method": { "loss": ["huber", 1.3] } }),
        json!({ "trials": trials, "estimate": { "d": { "start": 0.1 } }, "method": { "starts": [3, 1] } }),
        json!({ "trials": trials, "estimate": { "d": { "start": 0.1 } }, "method": { "bootstrap": [20, 1] } }),
    ] {
        app.post_json(&path, body).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    }
    let model = json!({ "processors": [["p", "fcfs"]], "tasks": [] });
    let answer = app.post_json(&format!("/v1/systems/{system}/models"), model).await;
    answer.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "unreadable_model");
}

#[tokio::test]
async fn bad_json_is_a_problem_that_says_where() {
    let app = TestApp::new().await;
    let answer = app.post("/v1/systems", "application/json", "{\n  \"name\": \"a\",,\n}").await;
    answer.expect_problem(StatusCode::BAD_REQUEST, "malformed_body");
    assert_eq!((answer.json()["line"].as_u64(), answer.json()["column"].as_u64()), (Some(2), Some(15)));
    app.post("/v1/systems", "application/json", "").await.expect_problem(StatusCode::BAD_REQUEST, "empty_body");
    let deep = "[".repeat(100_000);
    app.post("/v1/systems", "application/json", deep).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    app.post("/v1/systems", "text/html", "{\"name\": \"a\"}")
        .await
        .expect_problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type");
    for media_type in ["application/json; charset=utf-8", "application/vnd.x+json", "application/x-www-form-urlencoded"] {
        app.post("/v1/systems", media_type, "{\"name\": \"a\"}").await.expect(StatusCode::CREATED);
    }
}

#[tokio::test]
async fn every_body_is_bounded() {
    let app = TestApp::with(Limits { control_bytes: 100, ..Limits::default() }, jobs::Options::default()).await;
    let body = json!({ "name": "x".repeat(150) }).to_string();
    let answer = app.post("/v1/systems", "application/json", body.clone()).await;
    answer.expect_problem(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    assert_eq!(answer.json()["limit_bytes"], 100);
    // Without a length, and with one that is not true.
    let chunks = tokio_stream::iter(body.clone().into_bytes()).map(|byte| Ok::<_, std::io::Error>(Bytes::from(vec![byte])));
    let streamed = Body::from_stream(chunks);
    app.post("/v1/systems", "application/json", streamed).await.expect_problem(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    let announced = Request::post("/v1/systems").header(header::CONTENT_LENGTH, 101).body(Body::from("{\"name\": \"a\"}")).unwrap();
    app.send(announced).await.expect_problem(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    let bomb = Request::post("/v1/systems").header(header::CONTENT_ENCODING, "gzip").body(Body::from(gzip(body.as_bytes()))).unwrap();
    app.send(bomb).await.expect_problem(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    let small = gzip(json!({ "name": "zipped" }).to_string().as_bytes());
    let zipped = Request::post("/v1/systems").header(header::CONTENT_ENCODING, "gzip").body(Body::from(small)).unwrap();
    assert_eq!(app.send(zipped).await.expect(StatusCode::CREATED)["name"], "zipped");
}

/// A body that is not there yet takes the room that it will have, so that another one of its size finds none.
#[tokio::test]
async fn bodies_of_all_requests_together_are_bounded() {
    const LARGE_BYTES: usize = 200 << 10;
    let limits =
        Limits { sent_bodies_bytes: LARGE_BYTES, decompressed_bodies_bytes: 1, room_time: Duration::from_millis(20), ..Limits::default() };
    let app = TestApp::with(limits, jobs::Options::default()).await;
    let large = json!({ "name": "x".repeat(LARGE_BYTES) }).to_string();
    let part = tokio_stream::iter([Ok::<_, std::io::Error>(Bytes::from(large.clone()))]);
    let endless = Body::from_stream(part.chain(tokio_stream::pending()));
    tokio::select! {
        biased;
        _ = app.post("/v1/systems", "application/json", endless) => panic!("it has not ended"),
        () = async {
            let answer = app.post("/v1/systems", "application/json", large.clone()).await;
            answer.expect_problem(StatusCode::SERVICE_UNAVAILABLE, "overloaded");
            assert_eq!(answer.header(header::RETRY_AFTER), "5");
            app.post("/v1/systems", "application/json", "{\"name\": \"small\"}").await.expect(StatusCode::CREATED);
        } => {}
    }
    let refused = |answer: super::Answer| answer.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    refused(app.post("/v1/systems", "application/json", large.clone()).await);
    // Larger than all the room, and alone.
    let zipped = || Request::post("/v1/systems").header(header::CONTENT_ENCODING, "gzip").body(Body::from(gzip(large.as_bytes()))).unwrap();
    refused(app.send(zipped()).await);
    refused(app.send(zipped()).await);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_problem() {
    let app = TestApp::new().await;
    let broken = tokio_stream::iter([Ok(Bytes::from_static(b"{\"na")), Err(std::io::Error::other("gone"))]);
    app.post("/v1/systems", "application/json", Body::from_stream(broken)).await.expect_problem(StatusCode::BAD_REQUEST, "malformed_body");
    assert_eq!(app.get("/v1/systems").await.json(), json!({ "items": [] }));
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_a_problem() {
    let app = TestApp::with(Limits { body_time: Duration::from_millis(20), ..Limits::default() }, jobs::Options::default()).await;
    let silent = Body::from_stream(tokio_stream::pending::<Result<Bytes, std::io::Error>>());
    app.post("/v1/systems", "application/json", silent).await.expect_problem(StatusCode::REQUEST_TIMEOUT, "body_timeout");
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_a_problem() {
    let limits = Limits { request_time: Duration::from_millis(20), ..Limits::default() };
    let app = TestApp::with(limits, jobs::Options::default()).await;
    let silent = Body::from_stream(tokio_stream::pending::<Result<Bytes, std::io::Error>>());
    let answer = app.post("/v1/systems", "application/json", silent).await;
    answer.expect_problem(StatusCode::SERVICE_UNAVAILABLE, "request_timeout");
    assert!(answer.headers.get(header::RETRY_AFTER).is_none(), "the same would take as long again");
}

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let app = TestApp::new().await;
    let head = app.send(Request::head("/v1/systems").body(Body::empty()).unwrap()).await;
    let get = app.get("/v1/systems").await;
    let without_id = |headers: &HeaderMap| {
        let mut headers = headers.clone();
        headers.remove("x-request-id");
        headers
    };
    assert_eq!((head.status, head.body.len()), (get.status, 0));
    assert_eq!(without_id(&head.headers), without_id(&get.headers));
}
