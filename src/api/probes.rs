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
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = OK, body = Health)))]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Says whether the service takes work: the database answers and every worker is alive.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = OK, body = Health),
    (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json")
))]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<Json<Health>, Error> {
    if let Err(error) = state.store().ping().await {
        tracing::error!(error = super::error::chain(&error), "the database does not answer");
        return Err(Error::new(Code::NotReady, "the database does not answer"));
    }
    if !state.jobs().is_ready() {
        return Err(Error::new(Code::NotReady, "the workers are stopping or not all alive"));
    }
    Ok(healthz().await)
}

/// Metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses(
    (status = OK, body = String, content_type = "text/plain"),
    (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json")
))]
pub(super) async fn metrics(State(state): State<AppState>) -> Result<([(HeaderName, &'static str); 1], String), Error> {
    let gauges =
        Gauges { jobs: state.store().count_jobs().await?, n_workers: state.jobs().n_alive(), database: state.store().usage().await? };
    state.telemetry().count_jobs(&state.jobs().take_ended());
    Ok(([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], state.telemetry().render(&gauges)))
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "operation", responses((status = OK, body = Object)))]
pub(super) async fn get_openapi() -> Result<impl IntoResponse, Error> {
    let document = super::openapi_json().map_err(Error::internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], document))
}
