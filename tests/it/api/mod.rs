//! The service, called through its router: one file for each resource.

mod chain;
mod comparisons;
mod designs;
mod families;
mod fits;
mod jobs;
mod models;
mod observations;
mod openapi;
mod predictions;
mod probes;
mod protocol;
mod reception;
mod shutdown;
mod structures;
mod systems;
mod traces;
mod trials;

use std::{fmt::Write as _, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Method, Request, StatusCode, header},
};
use http_body_util::BodyExt;
use layerfit::{
    api::{self, AppState, Limits},
    jobs::{Jobs, Options},
    model::{Bindings, Measure, format},
    solve::{SolveOptions, sensitivities},
    store::Store,
};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

/// Longest that a test waits for a job, far above what one takes.
pub const JOB_PATIENCE: Duration = Duration::from_secs(120);

/// The BrowseProducts trace: Table 1 of Israr, Lau, Franks, Woodside, WOSP 2005.
pub const BROWSE_PRODUCTS: &str = "\
4052950 send Client browse_STARTC
4053220 receive Server browse_STARTC
4053500 send Server display_START
4053720 receive Inventory display_START
4053990 send Inventory getName_START
4054270 receive Book getName_START
4054490 send Book getName_END
4054760 receive Inventory getName_END
4055030 send Inventory getName_START
4055310 receive Book2 getName_START
4055530 send Book2 getName_END
4055750 receive Inventory getName_END
4056020 send Inventory display_END
4056240 receive Server display_END
4056460 send Server browse_ENDC
4056740 receive Client browse_ENDC
";

/// Customers who think, and one server: `$users`, think time 5, demand `$demand`.
pub const ONE_SERVER: &str = r#"<?xml version="1.0"?>
<lqn-model name="one-server">
  <processor name="UserP" scheduling="inf">
    <task name="User" scheduling="ref" multiplicity="$users" think-time="5">
      <entry name="use" type="PH1PH2">
        <entry-phase-activities><activity name="use_1" phase="1" host-demand-mean="0"><synch-call dest="serve" calls-mean="1"/></activity></entry-phase-activities>
      </entry>
    </task>
  </processor>
  <processor name="ServerP" scheduling="fcfs">
    <task name="Server" scheduling="fcfs">
      <entry name="serve" type="PH1PH2">
        <entry-phase-activities><activity name="serve_1" phase="1" host-demand-mean="$demand"/></entry-phase-activities>
      </entry>
    </task>
  </processor>
</lqn-model>"#;

/// Trials of [`ONE_SERVER`] with demand 0.5 and 1 to `n` customers, as it solves, with an error of a percent that
/// alternates. More than one round of all populations has ever other errors.
pub fn one_server_trials(n: usize) -> String {
    const LARGEST_POPULATION: usize = 40;
    let model = format::parse(ONE_SERVER, format::Format::Lqnx).expect("the model is read");
    let measures: Vec<Measure> = ["throughput(User)", "response_time(User)"].map(|m| m.parse().expect(m)).into();
    let mut csv = String::from("$users,throughput(User),response_time(User)\n");
    for trial in 0..n {
        let users = (trial % LARGEST_POPULATION + 1) as f64;
        let values: Bindings = [("users", users), ("demand", 0.5)].into_iter().collect();
        let solved = sensitivities(&model, &values, &[], &measures, &SolveOptions::default()).expect("the model is solved");
        let error = 0.01 * (trial as f64 * 1.7).sin();
        let _ = writeln!(csv, "{users},{},{}", solved.values[0] * (1.0 + error), solved.values[1] * (1.0 - error));
    }
    csv
}

/// A service on a temporary database, without a socket.
pub struct TestApp {
    router: Router,
    pub state: AppState,
    pub folder: TempDir,
    document: Value,
}

/// A response, whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub fn header(&self, name: impl header::AsHeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a header is text"))
    }

    /// The JSON of a response with the expected status.
    #[track_caller]
    pub fn expect(&self, status: StatusCode) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// Checks that this is a problem document with that status and code; its detail.
    #[track_caller]
    pub fn expect_problem(&self, status: StatusCode, code: &str) -> String {
        assert_eq!((self.status, self.json()["code"].as_str()), (status, Some(code)), "{}", self.text());
        let problem = self.json();
        assert_eq!(self.header(header::CONTENT_TYPE), "application/problem+json");
        assert_eq!(problem["status"], status.as_u16());
        assert_eq!(problem["type"], format!("/v1/problems/{code}"));
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()));
        problem["detail"].as_str().expect("a detail").to_owned()
    }
}

/// The id in a resource.
pub fn id(resource: &Value) -> &str {
    resource["id"].as_str().expect("the resource has an id")
}

impl TestApp {
    pub async fn new() -> Self {
        Self::with(Limits::default(), Options::default()).await
    }

    pub async fn with(limits: Limits, options: Options) -> Self {
        Self::within(tempfile::tempdir().expect("a temporary folder"), limits, options).await
    }

    /// A service on the database of a folder, which may have been another's.
    pub async fn within(folder: TempDir, limits: Limits, options: Options) -> Self {
        let url = format!("sqlite://{}", folder.path().join("test.db").display());
        let store = Store::open(&url).await.expect("the database is opened");
        let jobs = Jobs::start(store.clone(), options).await.expect("the queue is started");
        let state = AppState::new(store, jobs, limits);
        let document = serde_json::from_str(&api::openapi_json().expect("the document is written")).expect("the document is JSON");
        Self { router: api::app(state.clone()), state, folder, document }
    }

    /// A service whose jobs wait for ever.
    pub async fn without_workers() -> Self {
        Self::with(Limits::default(), Options { n_workers: 0, ..Options::default() }).await
    }

    /// Calls the service; a status that the OpenAPI document does not have for the operation fails the test.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.expect("the router does not fail");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("the body is whole").to_bytes().into();
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        if let Some(operation) = self.operation(&method, &path) {
            let is_documented = operation["responses"].get(answer.status.as_str()).is_some();
            assert!(is_documented, "{method} {path} answered {}, which is not documented: {}", answer.status, answer.text());
        }
        answer
    }

    /// The operation of the OpenAPI document that a path belongs to.
    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        let matches = |template: &str| {
            let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
            template.len() == path.len() && template.iter().zip(&path).all(|(t, p)| t.starts_with('{') || t == p)
        };
        let (_, item) = self.document["paths"].as_object()?.iter().find(|(template, _)| matches(template))?;
        item.get(method.as_str().to_ascii_lowercase())
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).expect(A_REQUEST)).await
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send(Request::get(path).header(header::ACCEPT, accept).body(Body::empty()).expect(A_REQUEST)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Request::delete(path).body(Body::empty()).expect(A_REQUEST)).await
    }

    pub async fn post(&self, path: &str, media_type: &str, body: impl Into<Body>) -> Answer {
        self.send(Request::post(path).header(header::CONTENT_TYPE, media_type).body(body.into()).expect(A_REQUEST)).await
    }

    pub async fn post_json(&self, path: &str, body: Value) -> Answer {
        self.post(path, "application/json", body.to_string()).await
    }

    /// A system; its id.
    pub async fn system(&self) -> String {
        let system = self.post_json("/v1/systems", serde_json::json!({ "name": "bookstore" })).await.expect(StatusCode::CREATED);
        id(&system).to_owned()
    }

    /// [`ONE_SERVER`] in a system; its id.
    pub async fn model(&self, system: &str) -> String {
        let model = self.post(&format!("/v1/systems/{system}/models"), "application/xml", ONE_SERVER).await;
        id(&model.expect(StatusCode::CREATED)).to_owned()
    }

    /// Trials of [`ONE_SERVER`] in a system; their id.
    pub async fn trials(&self, system: &str, n: usize) -> String {
        let trials = self.post(&format!("/v1/systems/{system}/trials"), "text/csv", one_server_trials(n)).await;
        id(&trials.expect(StatusCode::CREATED)).to_owned()
    }

    /// A fit of [`ONE_SERVER`], not waited for.
    pub async fn fit(&self, model: &str, trials: &str) -> Value {
        let asked = serde_json::json!({ "trials": trials, "estimate": { "demand": { "start": 0.1, "min": 0 } } });
        self.post_json(&format!("/v1/models/{model}/fits"), asked).await.expect(StatusCode::ACCEPTED)
    }

    /// A fit of [`ONE_SERVER`] in a new system that has succeeded.
    pub async fn finished_fit(&self) -> Value {
        let system = self.system().await;
        let (model, trials) = (self.model(&system).await, self.trials(&system, 8).await);
        let fit = self.fit(&model, &trials).await;
        self.wait_for(&fit, "succeeded").await;
        self.get(&format!("/v1/fits/{}", id(&fit))).await.expect(StatusCode::OK)
    }

    /// The job of a resource, waited for until it has ended, as `state`.
    pub async fn wait_for(&self, resource: &Value, state: &str) -> Value {
        let path = format!("/v1/jobs/{}/events", resource["job"].as_str().expect("the resource has a job"));
        let stream = tokio::time::timeout(JOB_PATIENCE, self.get(&path)).await.expect("the job ends");
        let (name, job) = events(stream.text()).pop().expect("the stream has events");
        assert_eq!((name.as_str(), job["state"].as_str()), ("done", Some(state)), "{job}");
        job
    }

    /// How many rows every table has.
    pub async fn n_rows(&self) -> Vec<(String, usize)> {
        let mut rows = Vec::new();
        for path in ["/v1/systems", "/v1/jobs"] {
            rows.push((path.to_owned(), self.get(path).await.json()["items"].as_array().map_or(0, Vec::len)));
        }
        let systems = self.get("/v1/systems").await.json();
        for system in systems["items"].as_array().expect("a list") {
            for kind in ["traces", "structures", "models", "trials", "fits"] {
                let path = format!("/v1/systems/{}/{kind}", id(system));
                let count = self.get(&path).await.json()["items"].as_array().map_or(0, Vec::len);
                rows.push((path, count));
            }
        }
        rows
    }
}

/// The events of a stream: name and data.
pub fn events(stream: &str) -> Vec<(String, Value)> {
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).map(str::to_owned))
    };
    let events = stream.split("\n\n").filter_map(|event| Some((field(event, "event")?, field(event, "data")?)));
    events.map(|(name, data)| (name, serde_json::from_str(&data).expect("the data is JSON"))).collect()
}

/// Why a request of a test is one.
const A_REQUEST: &str = "paths and headers of tests are well formed";

/// An id of nothing.
pub const NO_ID: &str = "01932c07-209c-7f3a-8d2e-2f1c7b3d9a51";
