//! The service over HTTP: this router is its index, a file for each resource.
//!
//! | file | is |
//! |---|---|
//! | [`systems`](self) … `jobs` | one file for each resource: its wire types, its handlers |
//! | `error`, `rpc_status` | the one error type, and the only place that knows status codes; the same as OTLP's exporters read it |
//! | `limits` | bounds on requests, with reasons |
//! | `body`, `extract`, `accept` | reading a request: body, path and query, accepted types |
//! | `observe`, `telemetry`, `probes` | request ids, log, metrics, health |
//! | `serve` | the socket and its shutdown |
//!
//! A handler extracts, calls, maps: what is computed is computed by the pure stages, what is slow by [`crate::jobs`].

mod accept;
mod body;
mod comparisons;
mod connections;
mod designs;
mod error;
mod extract;
mod families;
mod fits;
mod identifications;
mod in_process;
mod jobs;
mod limits;
mod models;
mod observations;
mod observe;
mod predictions;
mod probes;
mod problems;
mod reception;
mod rpc_status;
mod serve;
mod state;
mod structures;
mod systems;
mod telemetry;
mod traces;
mod tracks;
mod trials;
mod unread;

use axum::{Router, extract::DefaultBodyLimit, middleware, response::IntoResponse};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use error::{Code, Error, PROBLEM_JSON, Problem};
pub use in_process::{Answer, Call, InProcess, InProcessError};
pub use limits::Limits;
pub use serve::{Ended, serve_on};
pub use state::AppState;

/// The document around the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "layerfit",
        description = "Traces of a running system become a layered queueing network, measurement trials fit its parameters, \
                       the fitted model predicts, with confidence bands.\n\n\
                       Work that takes long is a job: the request that starts it answers 202 with the resource, its `state` \
                       and its `job`. Errors are `application/problem+json` with a stable `code`; `GET /v1/problems` lists them; those of `POST /v1/traces` \
                       are `google.rpc.Status` as OTLP asks, unless problem documents are accepted by name. \
                       Bodies may be gzip (`Content-Encoding: gzip`). Lists are walked by `limit` and `after`."
    ),
    components(schemas(Problem)),
    tags(
        (name = "systems", description = "The folder that everything of one system lies in"),
        (name = "traces", description = "Traces, and the structures extracted from them"),
        (name = "models", description = "Versions of a system's model"),
        (name = "trials", description = "Versions of a system's measurements"),
        (name = "fits", description = "Fits, their predictions and comparisons"),
        (name = "jobs", description = "Work in the background"),
        (name = "operation", description = "Health, metrics, documentation")
    )
)]
struct Document;

fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(systems::create_system, systems::list_systems))
        .routes(routes!(systems::get_system, systems::delete_system))
        .routes(routes!(traces::upload_trace, traces::list_traces))
        .routes(routes!(traces::get_trace))
        .routes(routes!(observations::get_profile))
        .routes(routes!(observations::get_usage))
        .routes(routes!(reception::receive_spans))
        .routes(routes!(structures::list_structures))
        .routes(routes!(structures::get_structure))
        .routes(routes!(models::create_model, models::list_models))
        .routes(routes!(models::get_model))
        .routes(routes!(trials::create_trials, trials::list_trials))
        .routes(routes!(trials::get_trials))
        .routes(routes!(fits::create_fit, fits::list_model_fits))
        .routes(routes!(fits::list_system_fits))
        .routes(routes!(fits::get_fit))
        .routes(routes!(predictions::get_predictions))
        .routes(routes!(designs::design_trials))
        .routes(routes!(identifications::identify_parameters))
        .routes(routes!(comparisons::compare_fits))
        .routes(routes!(families::compare_families))
        .routes(routes!(families::get_baselines))
        .routes(routes!(families::try_additions))
        .routes(routes!(tracks::track_parameters))
        .routes(routes!(jobs::list_jobs))
        .routes(routes!(jobs::get_job, jobs::cancel_job))
        .routes(routes!(jobs::stream_job_events))
        .routes(routes!(problems::list_problems))
        .routes(routes!(problems::get_problem))
        .routes(routes!(probes::get_openapi))
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::readyz))
        .routes(routes!(probes::metrics))
}

/// The service as a router, without a socket.
pub fn app(state: AppState) -> Router {
    let (router, _) = routes().split_for_parts();
    around(router, state)
}

/// Puts around the routes what holds for every request.
fn around(router: Router<AppState>, state: AppState) -> Router {
    router
        .fallback(|uri: axum::http::Uri| async move { Error::new(Code::RouteNotFound, format!("there is nothing at {}", uri.path())) })
        .method_not_allowed_fallback(|method: axum::http::Method| async move {
            Error::new(Code::MethodNotAllowed, format!("{method} is not taken here; the header allow says what is"))
        })
        // Bodies are bounded where they are read, each kind by its own limit.
        .layer(DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(|_| Error::internal("a handler panicked").into_response()))
        .layer(middleware::from_fn_with_state(state.clone(), observe::observe))
        .with_state(state)
}

/// The service's OpenAPI document as JSON, as it is committed in `openapi/openapi.json`.
///
/// # Errors
/// None in practice: the document is made of what can be written.
pub fn openapi_json() -> Result<String, serde_json::Error> {
    let (_, document) = routes().split_for_parts();
    document.to_pretty_json().map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request, routing::get};
    use tower::ServiceExt;

    use super::*;
    use crate::{
        jobs::{Jobs, Options},
        store::Store,
    };

    #[tokio::test]
    async fn a_panic_costs_one_request() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite://{}", folder.path().join("test.db").display())).await.unwrap();
        let jobs = Jobs::start(store.clone(), Options::default()).await.unwrap();
        async fn panics() {
            panic!("a fault of the service")
        }
        let router = Router::new().route("/panics", get(panics)).route("/works", get(|| async {}));
        let app = around(router, AppState::new(store, jobs, Limits::default()));
        for (path, status) in [("/panics", 500), ("/works", 200), ("/panics", 500)] {
            let response = app.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{path}");
            assert!(response.headers().contains_key("x-request-id"), "{path}");
        }
        let response = app.oneshot(Request::get("/panics").body(Body::empty()).unwrap()).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["code"], "internal");
        assert!(problem["request_id"].is_string() && !problem.to_string().contains("a fault of the service"), "{problem}");
    }
}
