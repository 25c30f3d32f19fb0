//! `/v1/systems/{system_id}/trials`, `/v1/trials`.

use axum::http::{StatusCode, header};
use layerfit::{api::Limits, fit::trials::Bounds, jobs};
use serde_json::json;

use super::{NO_ID, TestApp, id};

const CSV: &str = "$users,throughput(User),stderr(throughput(User)),trial\n1,0.5,0.01,a\n2,0.9,,b\n";

#[tokio::test]
async fn trials_are_stored_as_csv_and_as_json() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/trials");
    let created = app.post(&path, "text/csv; charset=utf-8", CSV).await;
    let first = created.expect(StatusCode::CREATED);
    assert_eq!((&first["count"], &first["version"], &first["source"]), (&json!(2), &json!(1), &json!("csv")));
    assert_eq!((&first["controlled"], &first["measures"]), (&json!(["users"]), &json!(["throughput(User)"])));
    assert_eq!(first["trials"][0]["controlled"]["users"], 1.0);
    assert_eq!(app.get(created.header(header::LOCATION)).await.expect(StatusCode::OK), first);

    // What is served can be sent again.
    let again = app.post_json(&path, json!({ "trials": first["trials"] })).await.expect(StatusCode::CREATED);
    assert_eq!((&again["trials"], &again["version"], &again["source"]), (&first["trials"], &json!(2), &json!("json")));
    let csv = app.get_as(&format!("/v1/trials/{}", id(&first)), "text/csv").await;
    assert_eq!((csv.status, csv.header(header::CONTENT_TYPE)), (StatusCode::OK, "text/csv"));
    let from_csv = app.post(&path, "text/csv", csv.body).await.expect(StatusCode::CREATED);
    assert_eq!(from_csv["trials"], first["trials"]);
    // A client that names no type: the text decides.
    let untold = app.post(&path, "application/x-www-form-urlencoded", CSV).await.expect(StatusCode::CREATED);
    assert_eq!((&untold["source"], &untold["sha256"]), (&json!("csv"), &first["sha256"]));

    let listed = app.get(&format!("{path}?limit=3")).await.expect(StatusCode::OK);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(3));
    assert_eq!(listed["next"], from_csv["id"]);
}

#[tokio::test]
async fn bad_trials_are_refused_and_leave_nothing() {
    let app = TestApp::with(Limits { trials_bytes: 1024, ..Limits::default() }, jobs::Options::default()).await;
    let system = app.system().await;
    let path = format!("/v1/systems/{system}/trials");
    let before = app.n_rows().await;
    for csv in ["$users\n1\n", "users,throughput(User)\n1,2\n", "$users,throughput(User)\n", "$users,throughput(User)\n1,x\n"] {
        let detail = app.post(&path, "text/csv", csv).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_trials");
        assert!(!detail.is_empty(), "{csv}");
    }
    for body in
        ["{", "[]", "[[{\"measured\": {\"throughput(User)\": 1}}]]", "{\"trials\": []}", "{\"trials\": [{\"measured\": {\"speed\": 1}}]}"]
    {
        app.post(&path, "application/json", body).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_trials");
    }
    // What could not be read back as CSV, or would be read otherwise than it was meant.
    for (trials, expected) in [
        (r#"{"controlled": {"$n": 1, "n": 2}, "measured": {"throughput(U)": 1}}"#, "given twice"),
        (
            r#"{"controlled": {"n": 1}, "measured": {"throughput(U)": 1}}, {"id": "b", "controlled": {"m": 1}, "measured": {"throughput(U)": 1}}"#,
            "row 1 (trial \"1\"): it has no value of $m",
        ),
        (r#"{"id": "", "measured": {"throughput(U)": 1}}"#, "row 1, column id"),
        (r#"["a", null, null, {"n": 1}, {"throughput(U)": 1}]"#, "expected an object"),
    ] {
        let answer = app.post(&path, "application/json", format!("{{\"trials\": [{trials}]}}")).await;
        let detail = answer.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_trials");
        assert!(detail.contains(expected), "{detail}");
    }
    app.post(&path, "text/csv", "").await.expect_problem(StatusCode::BAD_REQUEST, "empty_body");
    app.post(&path, "text/csv", vec![0xff]).await.expect_problem(StatusCode::BAD_REQUEST, "malformed_body");
    app.post(&path, "text/csv", vec![b'1'; 1025]).await.expect_problem(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    app.post(&path, "application/xml", CSV).await.expect_problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type");
    app.post(&format!("/v1/systems/{NO_ID}/trials"), "text/csv", CSV).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    app.get(&format!("/v1/trials/{NO_ID}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(app.n_rows().await, before);
}

#[tokio::test]
async fn trials_have_no_other_representation() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let trials = app.trials(&system, 2).await;
    app.get_as(&format!("/v1/trials/{trials}"), "application/xml").await.expect_problem(StatusCode::NOT_ACCEPTABLE, "not_acceptable");
}

#[tokio::test]
async fn the_size_of_a_set_is_bounded_as_it_is_read() {
    let trials = Bounds { n_trials: 3, n_columns: 3, n_cells: 6 };
    let app = TestApp::with(Limits { trials, ..Limits::default() }, jobs::Options::default()).await;
    let path = format!("/v1/systems/{}/trials", app.system().await);
    let csv = |columns: &str, row: &str, n: usize| format!("{columns}\n{}", format!("{row}\n").repeat(n));
    let json = |trial: &str, n: usize| format!("{{\"trials\": [{}]}}", vec![trial; n].join(","));
    let two_values = r#"{"controlled": {"u": 1}, "measured": {"throughput(U)": 1}}"#;
    app.post(&path, "text/csv", csv("$u,throughput(U)", "1,1", 3)).await.expect(StatusCode::CREATED);
    app.post(&path, "application/json", json(two_values, 3)).await.expect(StatusCode::CREATED);
    let four_values = r#"{"controlled": {"u": 1, "v": 1}, "measured": {"throughput(U)": 1, "throughput(V)": 1}}"#;
    let one_each = r#"{"measured": {"throughput(U)": 1}}, {"measured": {"throughput(V)": 1}}, {"measured": {"throughput(W)": 1}}"#;
    for (media_type, body, expected, limit) in [
        // What would be refused if it were read is not.
        ("text/csv", csv("throughput(U)", "1", 3) + "1\nx\n", "more than 3 trials", 3),
        ("text/csv", csv("$u,$v,$w,throughput(U)", "1,1,1,1", 1), "more than 3 columns", 3),
        ("text/csv", csv("$u,$v,throughput(U)", "1,1,1", 3), "more than 6 cells", 6),
        ("application/json", json(r#"{"measured": {"throughput(U)": 1}}"#, 4) + "x", "more than 3 trials", 3),
        ("application/json", json(four_values, 1), "more than 3 columns", 3),
        ("application/json", json(one_each, 1), "more than 6 cells", 6),
    ] {
        let answer = app.post(&path, media_type, body).await;
        let detail = answer.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_trials");
        assert!(detail.starts_with(expected), "{detail}");
        assert_eq!(answer.json()["limit"], limit);
    }
}
