//! What the codes of errors mean.

use axum::{
    Json,
    extract::{Path, rejection::PathRejection},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Code, Error, Problem};

/// What a code means.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProblemBody {
    /// The code.
    code: &'static str,
    /// Status of the responses that carry it.
    status: u16,
    /// What it means.
    title: &'static str,
}

/// Every code.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProblemList {
    /// The codes.
    items: Vec<ProblemBody>,
}

impl From<Code> for ProblemBody {
    fn from(code: Code) -> Self {
        Self { code: code.name(), status: code.status().as_u16(), title: code.title() }
    }
}

/// Lists every code that an error can have.
#[utoipa::path(get, path = "/v1/problems", tag = "operation", responses((status = OK, description = "Every code", body = ProblemList)))]
pub(super) async fn list_problems() -> Json<ProblemList> {
    Json(ProblemList { items: Code::ALL.iter().copied().map(Into::into).collect() })
}

/// Says what one code means: the `type` of an error leads here.
#[utoipa::path(get, path = "/v1/problems/{code}", tag = "operation", params(("code" = String, Path, description = "The code")),
    responses(
        (status = OK, description = "What the code means", body = ProblemBody),
        (status = NOT_FOUND, description = "`code`: not_found", body = Problem, content_type = "application/problem+json")
    ))]
pub(super) async fn get_problem(code: Result<Path<String>, PathRejection>) -> Result<Json<ProblemBody>, Error> {
    let Path(code) = code.map_err(|_| Error::new(Code::NotFound, "the path is not UTF-8 text"))?;
    let found = Code::ALL.iter().copied().find(|c| c.name() == code);
    found.map(|code| Json(code.into())).ok_or_else(|| Error::not_found("error code", &code))
}
