//! Health, metrics and the service's own description.

use axum::{
    Json,
    extract::State,
    http::{HeaderName, header},
    response::IntoResponse,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{AppState, Code, Error, Problem, telemetry::Gauges};

/// Media type of the Prometheus text format.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A sign of life.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
    /// Version of the program.
    version: &'static str,
}

/// Says that the process answers.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = OK, description = "The process answers", body = Health)))]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Says whether the service takes work: the database answers, no write has failed for want of room within the last 30 s,
/// and every worker is alive.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = OK, description = "The service takes work", body = Health),
    (status = SERVICE_UNAVAILABLE, description = "`code`: not_ready", body = Problem, content_type = "application/problem+json")
))]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<Json<Health>, Error> {
    if let Err(error) = state.store().ping().await {
        tracing::error!(error = super::error::chain(&error), "the database does not answer");
        return Err(Error::new(Code::NotReady, "the database does not answer"));
    }
    if state.is_unwritable() {
        return Err(Error::new(Code::NotReady, "the database cannot be written: the disk is full or out of order"));
    }
    if !state.jobs().is_ready() {
        return Err(Error::new(Code::NotReady, "the workers are stopping or not all alive"));
    }
    Ok(healthz().await)
}

/// Metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses(
    (status = OK, description = "The metrics", body = String, content_type = "text/plain"),
    (status = SERVICE_UNAVAILABLE, description = "`code`: database_busy, database_full, request_timeout", body = Problem, content_type = "application/problem+json")
))]
pub(super) async fn metrics(State(state): State<AppState>) -> Result<([(HeaderName, &'static str); 1], String), Error> {
    let gauges =
        Gauges { jobs: state.store().count_jobs().await?, n_workers: state.jobs().n_alive(), database: state.store().usage().await? };
    state.telemetry().count_jobs(&state.jobs().take_ended());
    Ok(([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], state.telemetry().render(&gauges)))
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "operation", responses((status = OK, description = "The document", body = Object)))]
pub(super) async fn get_openapi() -> Result<impl IntoResponse, Error> {
    let document = super::openapi_json().map_err(Error::internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], document))
}

#[cfg(test)]
mod tests {
    use axum::{
        body::Body,
        http::{Request, Response, StatusCode},
    };
    use tower::ServiceExt;

    use super::*;
    use crate::{
        api::{Limits, app},
        jobs::{Jobs, Options},
        store::Store,
    };

    #[tokio::test]
    async fn what_finds_the_disk_full_may_be_sent_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite://{}", folder.path().join("test.db").display())).await.unwrap();
        let jobs = Jobs::start(store.clone(), Options::default()).await.unwrap();
        let app = app(AppState::new(store.clone(), jobs, Limits::default()));
        let send = async |request: Request<Body>| -> Response<Body> { app.clone().oneshot(request).await.unwrap() };
        let ready = || Request::get("/readyz").body(Body::empty()).unwrap();
        let system = send(Request::post("/v1/systems").body(Body::from("{\"name\": \"full\"}")).unwrap()).await;
        let location = system.headers()[header::LOCATION].to_str().unwrap().to_owned();
        let model = || {
            let comment = format!("<!-- {} -->", "x".repeat(1 << 20));
            let model = r#"<lqn-model name="m"><processor name="P" scheduling="inf"><task name="U" scheduling="ref">
                <entry name="e" type="PH1PH2"><entry-phase-activities><activity name="a" phase="1" host-demand-mean="1"/>
                </entry-phase-activities></entry></task></processor></lqn-model>"#;
            Request::post(format!("{location}/models")).body(Body::from(format!("{model}{comment}"))).unwrap()
        };
        store.fill().await.unwrap();
        let refused = send(model()).await;
        assert_eq!((refused.status(), refused.headers()[header::RETRY_AFTER].to_str().unwrap()), (StatusCode::SERVICE_UNAVAILABLE, "5"));
        let body = axum::body::to_bytes(refused.into_body(), 4096).await.unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&body).unwrap()["code"], "database_full");
        assert_eq!(send(ready()).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        store.unfill().await.unwrap();
        assert_eq!(send(model()).await.status(), StatusCode::CREATED);
        assert_eq!(send(ready()).await.status(), StatusCode::OK);
    }
}
