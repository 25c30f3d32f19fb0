//! The service killed in the middle of a fit: after a restart on the same database the fit completes.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::api::{JOB_PATIENCE, ONE_SERVER, id, one_server_trials};

/// How often the state of a job is asked for.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// What stands before the address in the log.
const ADDRESS_MARK: &str = "listening on ";

/// The built program, serving; killed when dropped.
struct Service {
    process: Child,
    base: String,
}

impl Service {
    fn start(folder: &Path) -> Self {
        let database = format!("sqlite://{}", folder.join("crash.db").display());
        let mut process = Command::new(env!("CARGO_BIN_EXE_layerfit"))
            .args(["serve", "--database", &database, "--listen", "127.0.0.1:0", "--workers", "1", "--log", "json"])
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut log = BufReader::new(process.stderr.take().expect("its log is read")).lines();
        let base = log.find_map(|line| {
            let line: Value = serde_json::from_str(&line.expect("the log is text")).expect("the log is JSON");
            line["message"].as_str()?.strip_prefix(ADDRESS_MARK).map(str::to_owned)
        });
        // The rest of the log is read away, so that the program is not held up by a full pipe.
        std::thread::spawn(move || log.for_each(drop));
        Self { process, base: base.expect("the log says the address") }
    }

    fn kill(mut self) {
        self.process.kill().expect("SIGKILL");
        self.process.wait().expect("the program has ended");
    }

    async fn get(&self, path: &str) -> Value {
        reqwest::get(format!("{}{path}", self.base)).await.expect("an answer").json().await.expect("JSON")
    }

    async fn post(&self, path: &str, media_type: &str, body: String) -> Value {
        let request = reqwest::Client::new().post(format!("{}{path}", self.base)).header("content-type", media_type).body(body);
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {:?}", answer.text().await);
        answer.json().await.expect("JSON")
    }

    /// The fit of [`ONE_SERVER`] to `n_trials`.
    async fn fit(&self, n_trials: usize) -> Value {
        let system = self.post("/v1/systems", "application/json", json!({ "name": "crash" }).to_string()).await;
        let path = |kind: &str| format!("/v1/systems/{}/{kind}", id(&system));
        let model = self.post(&path("models"), "application/xml", ONE_SERVER.to_owned()).await;
        let trials = self.post(&path("trials"), "text/csv", one_server_trials(n_trials)).await;
        let asked = json!({ "trials": trials["id"], "estimate": { "demand": { "start": 0.1, "min": 0 } } });
        self.post(&format!("/v1/models/{}/fits", id(&model)), "application/json", asked.to_string()).await
    }

    /// The job when it has left the states `passing`.
    async fn job_after(&self, fit: &Value, passing: &[&str]) -> Value {
        let path = format!("/v1/jobs/{}", fit["job"].as_str().expect("a job"));
        let begun = Instant::now();
        loop {
            let job = self.get(&path).await;
            if !passing.iter().any(|state| job["state"] == *state) {
                return job;
            }
            assert!(begun.elapsed() < JOB_PATIENCE, "{job}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // An error only says that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_fit_survives_sigkill() {
    // The more trials, the longer the fit takes: until the kill comes before its end.
    for n_trials in [500, 2000, 8000, 32000] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let service = Service::start(folder.path());
        let fit = service.fit(n_trials).await;
        let job = service.job_after(&fit, &["queued"]).await;
        service.kill();
        if job["state"] != "running" {
            continue;
        }
        let service = Service::start(folder.path());
        let job = service.job_after(&fit, &["queued", "running"]).await;
        let stored = service.get(&format!("/v1/fits/{}", id(&fit))).await;
        assert_eq!((&job["state"], &stored["report"]["converged"]), (&json!("succeeded"), &json!(true)), "{job}");
        // One attempt: the fit had ended between the look and the kill.
        if job["attempts"] == 2 {
            return;
        }
    }
    panic!("no fit was long enough to be killed");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_service_in_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for signal in ["TERM", "INT"] {
        let mut service = Service::start(folder.path());
        let sent = Command::new("kill").args(["-s", signal, &service.process.id().to_string()]).status().expect("kill is there");
        assert!(sent.success());
        assert!(service.process.wait().expect("the program ends").success(), "{signal}");
    }
}
