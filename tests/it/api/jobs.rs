//! `/v1/jobs`.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use http_body_util::BodyExt;
use layerfit::{
    api::Limits,
    jobs::{JobEvent, Options},
    store::jobs::{Ending, Failure, State},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{JOB_PATIENCE, NO_ID, TestApp, events, id};

#[tokio::test]
async fn a_job_tells_its_steps_and_its_end() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 8).await);
    let fit = app.fit(&model, &trials).await;
    let path = format!("/v1/jobs/{}", fit["job"].as_str().unwrap());
    let stream = tokio::time::timeout(JOB_PATIENCE, app.get(&format!("{path}/events"))).await.expect("the job ends");
    assert_eq!(stream.header("content-type"), "text/event-stream");
    let events = events(stream.text());
    let (last, before) = events.split_last().expect("events");
    assert!(before.iter().all(|(name, job)| name == "progress" && job["id"] == fit["job"]), "{events:?}");
    assert_eq!((last.0.as_str(), &last.1["state"], &last.1["attempts"]), ("done", &json!("succeeded"), &json!(1)));
    // A finished job tells its end at once.
    let again = super::events(app.get(&format!("{path}/events")).await.text());
    assert_eq!(again, std::slice::from_ref(last));
    let job = app.get(&path).await.expect(StatusCode::OK);
    assert_eq!(job, last.1);
    assert!(job["created_at"].as_str() <= job["started_at"].as_str() && job["started_at"].as_str() <= job["finished_at"].as_str());
    app.delete(&path).await.expect_problem(StatusCode::CONFLICT, "job_finished");
}

#[tokio::test]
async fn a_queued_job_is_cancelled_at_once() {
    let app = TestApp::without_workers().await;
    let (fit, path) = queued_fit(&app, 4).await;
    for _ in 0..2 {
        assert_eq!(app.delete(&path).await.expect(StatusCode::OK)["state"], "cancelled");
    }
    let fit = app.get(&format!("/v1/fits/{}", id(&fit))).await.expect(StatusCode::OK);
    assert_eq!((&fit["state"], fit.get("report")), (&json!("cancelled"), None));
    app.get(&format!("/v1/fits/{}/predictions?at=users=3", id(&fit))).await.expect_problem(StatusCode::CONFLICT, "fit_not_ready");
}

#[tokio::test]
async fn a_running_job_is_cancelled() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let model = app.model(&system).await;
    // The more trials, the longer a step takes: until the cancellation comes before the end.
    for n_trials in [200, 800, 3200, 12800] {
        let trials = app.trials(&system, n_trials).await;
        let mut listener = app.state.jobs().subscribe();
        let fit = app.fit(&model, &trials).await;
        while !matches!(listener.recv().await.expect("events"), JobEvent::Progress(..)) {}
        let answer = app.delete(&format!("/v1/jobs/{}", fit["job"].as_str().unwrap())).await;
        if answer.status == StatusCode::CONFLICT {
            continue;
        }
        let job = answer.expect(StatusCode::ACCEPTED);
        assert_eq!((&job["state"], &job["cancel_requested"]), (&json!("running"), &json!(true)));
        app.wait_for(&fit, "cancelled").await;
        assert!(app.get(&format!("/v1/fits/{}", id(&fit))).await.json().get("report").is_none());
        return;
    }
    panic!("no fit was long enough to be cancelled");
}

#[tokio::test]
async fn jobs_are_listed_by_system_and_state() {
    let app = TestApp::without_workers().await;
    let (system, other) = (app.system().await, app.system().await);
    let mut jobs = Vec::new();
    for system in [&system, &system, &other] {
        let (model, trials) = (app.model(system).await, app.trials(system, 4).await);
        jobs.push(app.fit(&model, &trials).await["job"].clone());
    }
    app.delete(&format!("/v1/jobs/{}", jobs[0].as_str().unwrap())).await.expect(StatusCode::OK);
    for (query, expected) in [
        (String::new(), vec![0, 1, 2]),
        (format!("?system={system}"), vec![0, 1]),
        ("?state=queued".into(), vec![1, 2]),
        (format!("?state=cancelled&system={other}"), vec![]),
        (format!("?after={}", jobs[1].as_str().unwrap()), vec![2]),
    ] {
        let listed = app.get(&format!("/v1/jobs{query}")).await.expect(StatusCode::OK);
        let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|job| job["id"].clone()).collect();
        assert_eq!(ids, expected.iter().map(|&n: &usize| jobs[n].clone()).collect::<Vec<_>>(), "{query}");
    }
    for query in ["state=asleep", "system=x", "limit=0"] {
        app.get(&format!("/v1/jobs?{query}")).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
    }
}

#[tokio::test]
async fn a_job_that_ran_when_the_service_ended_is_run_again_but_not_for_ever() {
    let mut app = TestApp::without_workers().await;
    let (fit, path) = queued_fit(&app, 4).await;
    let max_attempts = Options::default().max_attempts;
    for attempt in 1..=max_attempts {
        // A worker takes the job, and the process ends.
        let claimed = app.state.store().claim_job().await.unwrap().expect("the job is queued");
        assert_eq!(claimed.attempts, i64::from(attempt));
        app = restarted(app, 0).await;
        let expected = if attempt < max_attempts { "queued" } else { "failed" };
        assert_eq!(app.get(&path).await.json()["state"], expected);
    }
    let job = app.get(&path).await.expect(StatusCode::OK);
    assert_eq!(job["error"]["code"], "crashed");
    assert!(app.state.store().claim_job().await.unwrap().is_none());
    assert_eq!(app.get(&format!("/v1/fits/{}", id(&fit))).await.json()["error"]["code"], "crashed");
}

#[tokio::test]
async fn a_cancellation_outlives_the_service() {
    let app = TestApp::without_workers().await;
    let (_, path) = queued_fit(&app, 4).await;
    app.state.store().claim_job().await.unwrap().expect("the job is queued");
    app.delete(&path).await.expect(StatusCode::ACCEPTED);
    let app = restarted(app, 1).await;
    assert_eq!(app.get(&path).await.json()["state"], "cancelled");
}

#[tokio::test]
async fn a_shutdown_puts_a_running_fit_back_and_it_is_finished_later() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let model = app.model(&system).await;
    for n_trials in [200, 800, 3200] {
        let trials = app.trials(&system, n_trials).await;
        let mut listener = app.state.jobs().subscribe();
        let fit = app.fit(&model, &trials).await;
        while !matches!(listener.recv().await.expect("events"), JobEvent::Progress(..)) {}
        if app.get(&format!("/v1/fits/{}", id(&fit))).await.json()["state"] == State::Succeeded.name() {
            continue;
        }
        assert!(app.state.jobs().shutdown(Duration::from_secs(60)).await, "the fit stops at its next step");
        assert!(!app.state.jobs().is_ready());
        let job = app.get(&format!("/v1/jobs/{}", fit["job"].as_str().unwrap())).await.json();
        // The fit may have ended in the moment of the order: then it has succeeded.
        if job["state"] == "queued" {
            assert_eq!(job["attempts"], 0, "a stopped attempt does not count");
        }
        let app = restarted(app, 1).await;
        let job = app.wait_for(&fit, "succeeded").await;
        assert_eq!(job["attempts"], 1);
        return;
    }
    panic!("no fit was long enough to be stopped");
}

/// A job whose work does not look up is put back when the time is over; however often, that is no crash.
#[tokio::test]
async fn stops_that_do_not_wait_for_a_job_are_no_crashes() {
    let n_stops = 2 * Options::default().max_attempts;
    // The more trials, the longer it takes: until it is stopped each time.
    'longer: for n_trials in [3200, 12_800, 51_200] {
        let mut app = TestApp::without_workers().await;
        let (_, path) = queued_fit(&app, n_trials).await;
        for _ in 0..n_stops {
            app = restarted(app, 1).await;
            let claimed = async {
                while app.get(&path).await.json()["state"] == "queued" {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), claimed).await.expect("a worker claims the job");
            app.state.jobs().shutdown(Duration::ZERO).await;
            let job = app.get(&path).await.json();
            if job["state"] == "succeeded" {
                continue 'longer;
            }
            assert_eq!((&job["state"], &job["attempts"]), (&json!("queued"), &json!(0)), "{job}");
        }
        return;
    }
    panic!("no fit was long enough to be stopped {n_stops} times");
}

#[tokio::test]
async fn what_comes_after_the_end_of_a_job_changes_nothing() {
    let app = TestApp::without_workers().await;
    let (_, path) = queued_fit(&app, 4).await;
    let claimed = app.state.store().claim_job().await.unwrap().expect("the job is queued");
    app.state.store().finish_job(&claimed, &Ending::Cancelled).await.unwrap();
    let late = Ending::Failed(Failure { code: "late".into(), message: "late".into() });
    app.state.store().finish_job(&claimed, &late).await.unwrap();
    app.state.store().requeue_job(claimed.id).await.unwrap();
    let job = app.get(&path).await.json();
    assert_eq!((&job["state"], job.get("error"), &job["attempts"]), (&json!("cancelled"), None, &json!(1)));
}

/// A job that is deleted before its end was told.
#[tokio::test]
async fn the_stream_of_a_deleted_job_ends() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let job = app.fit(&model, &trials).await["job"].as_str().unwrap().to_owned();
    let asked = Request::get(format!("/v1/jobs/{job}/events")).body(Body::empty()).unwrap();
    let stream = app.router.clone().oneshot(asked).await.unwrap();
    // Past the queue, which would tell it.
    app.state.store().request_cancel(job.parse().unwrap()).await.unwrap();
    assert_eq!(app.delete(&format!("/v1/systems/{system}")).await.status, StatusCode::NO_CONTENT);
    let told = tokio::time::timeout(JOB_PATIENCE, stream.into_body().collect()).await.expect("the stream ends").unwrap();
    let events = events(std::str::from_utf8(&told.to_bytes()).unwrap());
    assert!(events.iter().all(|(name, job)| name == "progress" && job["state"] == "queued"), "{events:?}");
}

/// A fit to so many trials that nobody works on, and the path of its job.
async fn queued_fit(app: &TestApp, n_trials: usize) -> (Value, String) {
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, n_trials).await);
    let fit = app.fit(&model, &trials).await;
    let path = format!("/v1/jobs/{}", fit["job"].as_str().unwrap());
    (fit, path)
}

/// The service ends and starts again on the same database.
pub async fn restarted(app: TestApp, n_workers: usize) -> TestApp {
    let TestApp { state, folder, router, .. } = app;
    state.jobs().shutdown(JOB_PATIENCE).await;
    state.store().close().await;
    drop((state, router));
    TestApp::within(folder, Limits::default(), Options { n_workers, ..Options::default() }).await
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let app = TestApp::new().await;
    for path in [format!("/v1/jobs/{NO_ID}"), "/v1/jobs/x".into()] {
        app.get(&path).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
        app.delete(&path).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
        app.get(&format!("{path}/events")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    }
}
