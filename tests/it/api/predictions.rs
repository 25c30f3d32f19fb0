//! `/v1/fits/{fit_id}/predictions`.

use axum::http::{StatusCode, header};

use super::{NO_ID, TestApp, id};

#[tokio::test]
async fn predictions_are_json_or_csv() {
    let app = TestApp::new().await;
    let path = format!("/v1/fits/{}/predictions", id(&app.finished_fit().await));
    let query = format!("{path}?at=users=1..10:3&measure=throughput(User)&measure=utilization(Server)&confidence=0.9");
    let rows = app.get(&query).await.expect(StatusCode::OK)["rows"].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(4));
    assert!(rows[0]["measures"]["utilization(Server)"]["upper"].is_number(), "{rows}");
    let csv = app.get_as(&query, "text/csv").await;
    assert_eq!((csv.status, csv.header(header::CONTENT_TYPE)), (StatusCode::OK, "text/csv"));
    assert_eq!(csv.text().lines().count(), 5, "{}", csv.text());

    // Without a measure, those of the trials.
    let rows = app.get(&format!("{path}?at=users=3")).await.expect(StatusCode::OK)["rows"].clone();
    assert_eq!(
        rows[0]["measures"].as_object().map(|m| m.keys().cloned().collect::<Vec<_>>()),
        Some(vec!["throughput(User)".into(), "response_time(User)".into()])
    );
    // A wider level, a wider band.
    let width = |answer: serde_json::Value| {
        let measure = answer["rows"][0]["measures"]["throughput(User)"].clone();
        measure["upper"].as_f64().unwrap() - measure["lower"].as_f64().unwrap()
    };
    let narrow = width(app.get(&format!("{path}?at=users=3&confidence=0.5")).await.json());
    let wide = width(app.get(&format!("{path}?at=users=3&confidence=0.99")).await.json());
    assert!(0.0 < narrow && narrow < wide, "{narrow} {wide}");
}

#[tokio::test]
async fn bad_questions_are_refused() {
    let app = TestApp::new().await;
    let path = format!("/v1/fits/{}/predictions", id(&app.finished_fit().await));
    for query in [
        "at=users=3&measure=speed",
        "at=users=3&confidence=1",
        "at=users=3&confidence=x",
        "users=3",
        "at=users=3&foo=1",
        "at=users=3&confidence=.5&confidence=.9",
    ] {
        let answer = app.get(&format!("{path}?{query}")).await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (StatusCode::BAD_REQUEST, Some("invalid_query")),
            "{query} {}",
            answer.text()
        );
    }
    for query in ["at=users", "at=users=x", "at=users=1..1e9:0.001", "at=speed=1", "at=users=3&measure=throughput(Nobody)"] {
        let answer = app.get(&format!("{path}?{query}")).await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (StatusCode::UNPROCESSABLE_ENTITY, Some("invalid_prediction")),
            "{query} {}",
            answer.text()
        );
    }
    app.get_as(&format!("{path}?at=users=3"), "application/xml").await.expect_problem(StatusCode::NOT_ACCEPTABLE, "not_acceptable");
    app.get(&format!("/v1/fits/{NO_ID}/predictions")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn a_fit_without_a_report_predicts_nothing() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let fit = app.fit(&model, &trials).await;
    let answer = app.get(&format!("/v1/fits/{}/predictions?at=users=3", id(&fit))).await;
    answer.expect_problem(StatusCode::CONFLICT, "fit_not_ready");
    assert_eq!(answer.json()["state"], "queued");
}
