//! The chain of requests that a client of the service walks.

use std::time::Duration;

use serde_json::Value;

use super::super::Failure;
use crate::api::{Call, InProcess};

/// Pause between two looks at a job.
const POLL: Duration = Duration::from_millis(20);
/// Looks at a job before the demo gives up: two minutes.
const MAX_POLLS: usize = 6000;

/// A client that says what it does.
pub(super) struct Client {
    service: InProcess,
}

impl Client {
    pub fn new(service: InProcess) -> Self {
        Self { service }
    }

    /// POSTs a body and returns the created resource.
    pub async fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Result<Value, Failure> {
        tell!("  POST {path}");
        let call = Call { method: "POST", path, content_type, accept: "application/json", body };
        json(path, &self.send(call).await?)
    }

    /// GETs a resource as JSON.
    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        tell!("  GET  {path}");
        self.get_quietly(path).await
    }

    /// GETs a resource as JSON without saying so.
    pub async fn get_quietly(&self, path: &str) -> Result<Value, Failure> {
        json(path, &self.get_as(path, "application/json").await?)
    }

    /// GETs a resource in the asked form.
    pub async fn get_as(&self, path: &str, accept: &str) -> Result<Vec<u8>, Failure> {
        self.send(Call { method: "GET", path, content_type: "application/json", accept, body: &[] }).await
    }

    /// Waits for the job of an accepted resource.
    pub async fn wait(&self, accepted: &Value) -> Result<(), Failure> {
        let job = text(accepted, "job")?;
        for _ in 0..MAX_POLLS {
            let state = self.get_quietly(&format!("/v1/jobs/{job}")).await?;
            match state["state"].as_str() {
                Some("succeeded") => return Ok(()),
                Some("queued" | "running") => tokio::time::sleep(POLL).await,
                _ => return Err(Failure::Internal(format!("job {job} did not succeed: {state}"))),
            }
        }
        Err(Failure::Internal(format!("job {job} did not end")))
    }

    async fn send(&self, call: Call<'_>) -> Result<Vec<u8>, Failure> {
        let answer = self.service.send(call).await.map_err(|e| Failure::internal(&e))?;
        if answer.status >= 300 {
            let body = String::from_utf8_lossy(&answer.body);
            return Err(Failure::Internal(format!("{} {} answered {}: {body}", call.method, call.path, answer.status)));
        }
        Ok(answer.body)
    }
}

fn json(path: &str, body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|e| Failure::Internal(format!("{path}: the answer is not JSON: {e}")))
}

/// A text field of an answer.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, Failure> {
    value[key].as_str().ok_or_else(|| Failure::Internal(format!("the answer has no \"{key}\": {value}")))
}
