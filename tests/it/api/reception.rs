//! The OTLP/HTTP receiver, as exporters use it.

use std::{collections::HashMap, io::Write, time::Duration};

use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use layerfit::{
    api::{Limits, serve_on},
    jobs::{Options, Refresh},
};
use opentelemetry::{
    Context, KeyValue,
    trace::{SpanKind, TraceContextExt, Tracer, TracerProvider},
};
use opentelemetry_otlp::{Compression, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use prost::Message;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};

use super::{TestApp, jobs::restarted};

/// One request of a shop: the client's half, the server's half, and a query of the database seen from the server.
pub fn spans(namespace: Option<&str>) -> Value {
    let resource = |service: &str| {
        let mut attributes = vec![json!({"key": "service.name", "value": {"stringValue": service}})];
        attributes.extend(namespace.map(|n| json!({"key": "service.namespace", "value": {"stringValue": n}})));
        json!({"attributes": attributes})
    };
    let span = |id: u8, parent: Option<u8>, name: &str, kind: u8, from_ms: u64, to_ms: u64| {
        json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": format!("{id:016x}"),
            "parentSpanId": parent.map(|p| format!("{p:016x}")).unwrap_or_default(), "name": name, "kind": kind,
            "startTimeUnixNano": (1_700_000_000_000_000_000 + from_ms * 1_000_000).to_string(),
            "endTimeUnixNano": (1_700_000_000_000_000_000 + to_ms * 1_000_000).to_string(),
        })
    };
    let mut query = span(4, Some(3), "SELECT items", 3, 20, 30);
    query["attributes"] = json!([{"key": "db.system", "value": {"stringValue": "postgresql"}}]);
    json!({"resourceSpans": [
        {"resource": resource("web"), "scopeSpans": [{"spans": [span(1, None, "GET /", 2, 0, 100), span(2, Some(1), "GET", 3, 5, 60)]}]},
        {"resource": resource("shop"), "scopeSpans": [{"spans": [span(3, Some(2), "GET /items", 2, 10, 55), query]}]},
    ]})
}

async fn export(app: &TestApp, system: Option<&str>, body: &Value) -> super::Answer {
    let mut request = Request::builder().method(Method::POST).uri("/v1/traces").header(header::CONTENT_TYPE, "application/json");
    if let Some(system) = system {
        request = request.header("x-layerfit-system", system);
    }
    app.send(request.body(Body::from(body.to_string())).unwrap()).await
}

/// The one structure of the one system of that name.
async fn structure_of(app: &TestApp, system: &str) -> Value {
    app.state.receptions().refresh(Refresh::All).await;
    let systems = app.get(&format!("/v1/systems?name={system}")).await.expect(StatusCode::OK);
    let id = systems["items"][0]["id"].as_str().expect("the system was made").to_owned();
    let structures = app.get(&format!("/v1/systems/{id}/structures")).await.expect(StatusCode::OK);
    let structures = structures["items"].as_array().unwrap().clone();
    assert!(!structures.is_empty(), "no structure of {system}");
    let last = structures.last().unwrap()["id"].as_str().unwrap().to_owned();
    app.get(&format!("/v1/structures/{last}")).await.expect(StatusCode::OK)
}

fn task_names(structure: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = structure["tasks"].as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn spans_are_filed_by_header_then_namespace_then_default() {
    let app = TestApp::new().await;
    for (header, namespace, system) in [(Some("billing"), Some("shop"), "billing"), (None, Some("shop"), "shop"), (None, None, "default")] {
        let answer = export(&app, header, &spans(namespace)).await;
        assert_eq!(answer.expect(StatusCode::OK), json!({}));
        let structure = structure_of(&app, system).await;
        let names = task_names(&structure);
        for task in ["web", "shop"] {
            assert!(names.contains(&task), "{system}: {names:?}");
        }
        assert!(names.iter().any(|name| name.contains("postgresql")), "{names:?}");
    }
}

/// Namespaces name systems as people can; a header is UTF-8.
#[tokio::test]
async fn names_of_systems_are_those_that_can_be_given_by_hand() {
    let app = TestApp::new().await;
    for (namespace, name) in [("  padded ", "padded"), (" ", "default"), ("a\nb\u{0}", "a_b_")] {
        export(&app, None, &spans(Some(namespace))).await.expect(StatusCode::OK);
        let found = app.get("/v1/systems?limit=10").await.expect(StatusCode::OK);
        assert!(found["items"].as_array().unwrap().iter().any(|system| system["name"] == name), "{found}");
    }
    export(&app, Some("bücher"), &spans(None)).await.expect(StatusCode::OK);
    let found = app.get("/v1/systems?name=b%C3%BCcher").await.expect(StatusCode::OK);
    assert_eq!(found["items"][0]["name"], "bücher");
}

/// Spans for the name of a deleted system are of a new one.
#[tokio::test]
async fn a_deleted_system_is_made_anew() {
    let app = TestApp::new().await;
    export(&app, Some("market"), &spans(None)).await.expect(StatusCode::OK);
    let first = app.get("/v1/systems?name=market").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    structure_of(&app, "market").await;
    assert_eq!(app.delete(&format!("/v1/systems/{first}")).await.status, StatusCode::NO_CONTENT);
    export(&app, Some("market"), &spans(None)).await.expect(StatusCode::OK);
    let second = app.get("/v1/systems?name=market").await.json()["items"][0]["id"].as_str().expect("it is there again").to_owned();
    assert_ne!(first, second);
    assert_eq!(task_names(&structure_of(&app, "market").await).len(), 4);
}

#[tokio::test]
async fn a_structure_grows_with_what_is_received_and_old_ones_go() {
    let app = TestApp::new().await;
    let mut body = spans(Some("grows"));
    for trace in 0..25 {
        for resource in body["resourceSpans"].as_array_mut().unwrap() {
            for span in resource["scopeSpans"][0]["spans"].as_array_mut().unwrap() {
                span["traceId"] = json!(format!("{:032x}", trace + 1));
            }
        }
        export(&app, None, &body).await.expect(StatusCode::OK);
        app.state.receptions().refresh(Refresh::All).await;
    }
    let structure = structure_of(&app, "grows").await;
    let shop = structure["tasks"].as_array().unwrap().iter().find(|task| task["name"] == "shop").unwrap();
    assert_eq!(shop["entries"][0]["occurrences"], 25);
    let systems = app.get("/v1/systems?name=grows").await.expect(StatusCode::OK);
    let id = systems["items"][0]["id"].as_str().unwrap();
    let kept = app.get(&format!("/v1/systems/{id}/structures")).await.expect(StatusCode::OK);
    assert_eq!(kept["items"].as_array().unwrap().len(), 20, "the latest are kept");
    // A model can be made of a structure that was received.
    let last = kept["items"][19]["id"].as_str().unwrap();
    app.post_json(&format!("/v1/systems/{id}/models"), json!({"structure": last})).await.expect(StatusCode::CREATED);
}

/// `google.rpc.Status` with the one detail that the service gives.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(message, optional, tag = "2")]
    value: Option<ErrorInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

/// Checks that this is a `google.rpc.Status` in either encoding; its code and message.
#[track_caller]
fn expect_status(answer: &super::Answer, status: StatusCode, reason: &str) -> (i64, String) {
    assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&answer.body));
    let (code, message, info) = match answer.header(header::CONTENT_TYPE) {
        "application/x-protobuf" => {
            let told = RpcStatus::decode(answer.body.as_slice()).unwrap();
            let [Any { type_url, value: Some(info) }] = &told.details[..] else { panic!("{told:?}") };
            let info = json!({"@type": type_url, "reason": info.reason, "domain": info.domain, "metadata": info.metadata});
            (i64::from(told.code), told.message, info)
        }
        "application/json" => {
            let told = answer.json();
            (told["code"].as_i64().unwrap(), told["message"].as_str().unwrap().to_owned(), told["details"][0].clone())
        }
        other => panic!("{other}"),
    };
    let metadata = json!({"request_id": answer.header("x-request-id")});
    let expected =
        json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "layerfit", "metadata": metadata});
    assert_eq!(info, expected);
    assert!(!message.is_empty());
    (code, message)
}

/// Errors are in the request's encoding, as exporters read them; a request in none of the two is answered in JSON.
#[tokio::test]
async fn errors_are_in_the_encoding_of_the_request() {
    let app = TestApp::with(Limits { trace_sent_bytes: 300, trace_bytes: 1000, ..Limits::default() }, Options::default()).await;
    let gzip = |n: usize| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b' '; n]).unwrap();
        encoder.finish().unwrap()
    };
    let bad = (StatusCode::BAD_REQUEST, 3, "MALFORMED_BODY", "");
    let large = (StatusCode::PAYLOAD_TOO_LARGE, 3, "BODY_TOO_LARGE", "");
    let media = (StatusCode::UNSUPPORTED_MEDIA_TYPE, 3, "UNSUPPORTED_MEDIA_TYPE", "expected application/x-protobuf or application/json");
    let coding = (StatusCode::UNSUPPORTED_MEDIA_TYPE, 3, "UNSUPPORTED_CONTENT_ENCODING", "expected gzip or identity");
    for (media_type, encoding, body, answered, (status, code, reason, message)) in [
        ("application/x-protobuf", "identity", b"\xff\xff".to_vec(), "application/x-protobuf", bad),
        ("application/json", "identity", b"{".to_vec(), "application/json", bad),
        ("application/x-protobuf", "gzip", b"no gzip".to_vec(), "application/x-protobuf", bad),
        ("application/x-protobuf", "identity", vec![0; 301], "application/x-protobuf", large),
        ("application/json; charset=utf-8", "gzip", gzip(1001), "application/json", large),
        ("text/csv", "identity", b"x".to_vec(), "application/json", media),
        ("application/protobuf", "br", b"x".to_vec(), "application/x-protobuf", coding),
    ] {
        let request = || Request::post("/v1/traces").header(header::CONTENT_TYPE, media_type).header(header::CONTENT_ENCODING, encoding);
        let answer = app.send(request().body(Body::from(body.clone())).unwrap()).await;
        let told = expect_status(&answer, status, reason);
        assert_eq!((answer.header(header::CONTENT_TYPE), told.0), (answered, code), "{media_type} {encoding}");
        assert!(told.1.contains(message), "{told:?}");
        assert!(answer.headers.get(header::RETRY_AFTER).is_none(), "nothing of it is better another time");
        // Who asks for problem documents gets them.
        let asking = request().header(header::ACCEPT, "application/problem+json").body(Body::from(body)).unwrap();
        app.send(asking).await.expect_problem(status, &reason.to_ascii_lowercase());
    }
    let unnamed = app.send(Request::post("/v1/traces").body(Body::from("x")).unwrap()).await;
    expect_status(&unnamed, StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE");
    // Other methods of the path, and other routes, are no OTLP.
    app.get("/v1/traces").await.expect_problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    app.get(&format!("/v1/traces/{}", super::NO_ID)).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
}

/// What may succeed another time has a status that exporters send again after, and says when.
#[tokio::test]
async fn what_may_succeed_later_is_to_be_sent_again() {
    let slow = Limits { body_time: Duration::from_millis(50), ..Limits::default() };
    let app = TestApp::with(slow, Options::default()).await;
    let never = Body::from_stream(tokio_stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let answer = app.send(Request::post("/v1/traces").header(header::CONTENT_TYPE, "application/x-protobuf").body(never).unwrap()).await;
    assert_eq!(expect_status(&answer, StatusCode::SERVICE_UNAVAILABLE, "REQUEST_TIMEOUT").0, 14);
    assert_eq!(answer.header(header::RETRY_AFTER), "5");

    let late = Limits { request_time: Duration::from_millis(50), ..Limits::default() };
    let app = TestApp::with(late, Options::default()).await;
    let never = Body::from_stream(tokio_stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let answer = app.send(Request::post("/v1/traces").header(header::CONTENT_TYPE, "application/json").body(never).unwrap()).await;
    assert_eq!(expect_status(&answer, StatusCode::SERVICE_UNAVAILABLE, "REQUEST_TIMEOUT").0, 14);

    let app = TestApp::new().await;
    for system in 0..64 {
        export(&app, Some(&format!("s{system}")), &spans(None)).await.expect(StatusCode::OK);
    }
    let answer = export(&app, Some("one-more"), &spans(None)).await;
    assert_eq!(expect_status(&answer, StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_SYSTEMS").0, 8);
    assert_eq!(answer.header(header::RETRY_AFTER), "60");
    // Nothing of what is refused is kept, of systems that are received for neither.
    let mut both = spans(Some("s1"));
    both["resourceSpans"].as_array_mut().unwrap().extend(spans(Some("one-more"))["resourceSpans"].as_array().unwrap().clone());
    expect_status(&export(&app, None, &both).await, StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_SYSTEMS");
    assert_eq!(app.get("/v1/systems?name=one-more").await.expect(StatusCode::OK)["items"], json!([]));
    export(&app, Some("s1"), &spans(None)).await.expect(StatusCode::OK);
    let metrics = app.get("/metrics").await;
    assert!(metrics.text().lines().any(|l| l.starts_with("layerfit_spans_received_total") && l.ends_with(" 260")), "{}", metrics.text());
}

#[tokio::test]
async fn what_cannot_be_taken_is_said_in_the_answer() {
    let app = TestApp::new().await;
    let mut body = spans(Some("partial"));
    body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = json!("0000000000000000");
    let answer = export(&app, None, &body).await.expect(StatusCode::OK);
    assert_eq!(answer["partialSuccess"]["rejectedSpans"], "1");
    assert!(answer["partialSuccess"]["errorMessage"].as_str().unwrap().contains("span"), "{answer}");

    // Of a body that ends early nothing is taken, whatever stood before its end.
    let whole = spans(Some("cut")).to_string();
    let cut = Request::post("/v1/traces").header(header::CONTENT_TYPE, "application/json");
    let cut = cut.body(Body::from(whole[..whole.len() - 100].to_owned())).unwrap();
    expect_status(&app.send(cut).await, StatusCode::BAD_REQUEST, "MALFORMED_BODY");
    assert_eq!(app.get("/v1/systems?name=cut").await.expect(StatusCode::OK)["items"], json!([]));
    // What is taken with a loss is remarked on, though no span is rejected.
    let mut body = spans(Some("remarked"));
    body["resourceSpans"][0]["resource"] = json!("x");
    let answer = export(&app, None, &body).await.expect(StatusCode::OK);
    assert_eq!(answer["partialSuccess"]["rejectedSpans"], "0");
    assert!(answer["partialSuccess"]["errorMessage"].as_str().unwrap().contains("resource"), "{answer}");

    for wrong in [json!(3), json!([{"scopeSpans": 5}]), json!([{"scopeSpans": [5]}]), json!([{"scopeSpans": [{"spans": {}}]}])] {
        let malformed = export(&app, None, &json!({"resourceSpans": wrong})).await;
        expect_status(&malformed, StatusCode::BAD_REQUEST, "MALFORMED_BODY");
    }
    // In the JSON of protobuf, null is what is not there.
    for nothing in [json!(null), json!([{"scopeSpans": null}]), json!([{"scopeSpans": [{"spans": null}]}])] {
        assert_eq!(export(&app, None, &json!({"resourceSpans": nothing})).await.expect(StatusCode::OK), json!({}));
    }
    for body in ["{\"resourceSpans\": [", "[]", "no json"] {
        let request = Request::post("/v1/traces").header(header::CONTENT_TYPE, "application/json").body(Body::from(body)).unwrap();
        expect_status(&app.send(request).await, StatusCode::BAD_REQUEST, "MALFORMED_BODY");
    }
    let request = Request::post("/v1/traces").header(header::CONTENT_TYPE, "text/csv").body(Body::from("x")).unwrap();
    expect_status(&app.send(request).await, StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE");
    let nothing = Request::post("/v1/traces").header(header::CONTENT_TYPE, "application/x-protobuf").body(Body::empty()).unwrap();
    assert_eq!(app.send(nothing).await.status, StatusCode::OK, "an export of nothing is an empty message");
}

/// Ten visits of users to the shop, each of three requests that begin 2 s after the reply to the one before.
fn visits(namespace: &str, first_trace: u64) -> Value {
    let requests = (0..30_u64).map(|n| {
        let (visit, k, names) = (n / 3, n % 3, ["browse", "search", "buy"]);
        let start_ms = 10_000 * first_trace + 600_000 * visit + 3_000 * k;
        json!({
            "traceId": format!("{:032x}", first_trace + n), "spanId": format!("{:016x}", n + 1), "name": names[k as usize], "kind": 2,
            "startTimeUnixNano": (1_700_000_000_000_000_000 + start_ms * 1_000_000).to_string(),
            "endTimeUnixNano": (1_700_000_000_000_000_000 + (start_ms + 1_000) * 1_000_000).to_string(),
            "attributes": [{"key": "session.id", "value": {"stringValue": format!("v{first_trace}-{visit}")}}],
        })
    });
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let resource = json!({"attributes": [attribute("service.name", "web"), attribute("service.namespace", namespace)]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": requests.collect::<Vec<_>>()}]}]})
}

#[tokio::test]
async fn received_spans_tell_sessions() {
    let app = TestApp::new().await;
    export(&app, None, &visits("visited", 1)).await.expect(StatusCode::OK);
    structure_of(&app, "visited").await;
    let systems = app.get("/v1/systems?name=visited").await.expect(StatusCode::OK);
    let system = systems["items"][0]["id"].as_str().unwrap().to_owned();
    let traces = app.get(&format!("/v1/systems/{system}/traces")).await.expect(StatusCode::OK);
    let trace = format!("/v1/traces/{}", traces["items"][0]["id"].as_str().unwrap());
    let usage = app.get(&format!("{trace}/usage?classes=1")).await.expect(StatusCode::OK);
    assert_eq!((&usage["n_sessions"], &usage["n_requests"]), (&json!(10), &json!(30)), "{usage}");
    assert_eq!(usage["services"], json!(["web.browse", "web.search", "web.buy"]));
    assert!((usage["classes"][0]["think"]["mean_s"].as_f64().unwrap() - 2.0).abs() < 1e-6, "{usage}");
    assert!(app.get_as(&format!("{trace}/usage"), "text/plain").await.text().contains("web.browse"));

    // More that comes counts, whichever of the system's traces is asked.
    export(&app, None, &visits("visited", 1000)).await.expect(StatusCode::OK);
    structure_of(&app, "visited").await;
    let usage = app.get(&format!("{trace}/usage")).await.expect(StatusCode::OK);
    assert_eq!((&usage["n_sessions"], &usage["n_requests"]), (&json!(20), &json!(60)), "{usage}");

    let detail = app.get(&format!("{trace}/usage?users=address")).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
    assert!(detail.starts_with("users: "), "{detail}");
    let detail = app.get(&format!("{trace}/profile")).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "not_observed");
    assert!(detail.contains("not kept"), "{detail}");

    // The same database after a restart: what came before is gone.
    let again = restarted(app, 1).await;
    let detail = again.get(&format!("{trace}/usage")).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "not_observed");
    assert!(detail.contains("since the service started"), "{detail}");
}

/// Runs requests through the SDK's tracer: a gateway that calls a server, three times.
fn trace_requests(endpoint: &str, protocol: Protocol, compression: Option<Compression>, namespace: &'static str) {
    let exporter = |service: &'static str| {
        let mut builder = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(protocol)
            .with_endpoint(endpoint)
            .with_timeout(Duration::from_secs(30))
            .with_headers(HashMap::from([("x-unrelated".to_owned(), "1".to_owned())]));
        if let Some(compression) = compression {
            builder = builder.with_compression(compression);
        }
        let resource = Resource::builder_empty()
            .with_attributes([KeyValue::new("service.name", service), KeyValue::new("service.namespace", namespace)])
            .build();
        SdkTracerProvider::builder().with_batch_exporter(builder.build().unwrap()).with_resource(resource).build()
    };
    let (gateway, server) = (exporter("gateway"), exporter("server"));
    let (at_gateway, at_server) = (gateway.tracer("test"), server.tracer("test"));
    for _ in 0..3 {
        let root = Context::new().with_span(at_gateway.span_builder("GET /cart").with_kind(SpanKind::Server).start(&at_gateway));
        let call = root.with_span(at_gateway.span_builder("GET").with_kind(SpanKind::Client).start_with_context(&at_gateway, &root));
        let served = call.with_span(at_server.span_builder("GET /items").with_kind(SpanKind::Server).start_with_context(&at_server, &call));
        std::thread::sleep(Duration::from_millis(2));
        served.span().end();
        call.span().end();
        root.span().end();
    }
    gateway.shutdown().unwrap();
    server.shutdown().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_opentelemetry_sdk_exports_to_a_running_service() {
    let app = TestApp::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve_on(listener, app.state.clone(), async move { drop(stopped.await) }, Duration::from_secs(30)));
    let exports = [
        (Protocol::HttpBinary, None, "binary"),
        (Protocol::HttpBinary, Some(Compression::Gzip), "binary-gzip"),
        (Protocol::HttpJson, None, "json"),
        (Protocol::HttpJson, Some(Compression::Gzip), "json-gzip"),
    ];
    for (protocol, compression, system) in exports {
        let endpoint = endpoint.clone();
        tokio::task::spawn_blocking(move || trace_requests(&endpoint, protocol, compression, system)).await.unwrap();
        let structure = structure_of(&app, system).await;
        let tasks = structure["tasks"].as_array().unwrap();
        let entry =
            |task: &str| tasks.iter().find(|t| t["name"] == task).unwrap_or_else(|| panic!("{system}: no {task}"))["entries"][0].clone();
        let (called, calling) = (entry("server"), entry("gateway"));
        assert_eq!((&called["operation"], &called["occurrences"]), (&json!("GET /items"), &json!(3)), "{system}");
        assert_eq!((&calling["calls"][0]["to"], &calling["calls"][0]["mean"]), (&called["name"], &json!(1.0)), "{system}");
        assert!(called["self_times"][0].as_f64().unwrap() >= 0.002, "{system}: {called}");
    }
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn spans_that_wait_for_a_structure_hold_up_nothing_else() {
    let app = TestApp::with(Limits { n_computations: 1, ..Limits::default() }, Options::default()).await;
    let other = app.system().await;
    export(&app, Some("shop"), &spans(None)).await.expect(StatusCode::OK);
    let system = app.get("/v1/systems?name=shop").await.json()["items"][0]["id"].as_str().unwrap().parse().unwrap();
    let held = app.state.receptions().hold(&[system]).await;
    let body = spans(None);
    tokio::select! {
        biased;
        _ = export(&app, Some("shop"), &body) => panic!("it waits for the stream"),
        model = tokio::time::timeout(Duration::from_secs(60), app.model(&other)) => assert!(model.is_ok(), "it is held up"),
    }
    drop(held);
    export(&app, Some("shop"), &body).await.expect(StatusCode::OK);
}
