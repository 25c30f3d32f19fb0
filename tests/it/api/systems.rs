//! `/v1/systems`.

use axum::http::{StatusCode, header};
use serde_json::{Value, json};

use super::{NO_ID, TestApp, id};

#[tokio::test]
async fn a_system_is_created_and_read_back() {
    let app = TestApp::new().await;
    let created = app.post_json("/v1/systems", json!({ "name": "  bookstore " })).await;
    let system = created.expect(StatusCode::CREATED);
    assert_eq!(system["name"], "bookstore");
    assert_eq!(app.get(created.header(header::LOCATION)).await.expect(StatusCode::OK), system);
}

#[tokio::test]
async fn bad_names_are_refused_and_nothing_is_stored() {
    let app = TestApp::new().await;
    for name in ["", "   ", "a\u{7}b", &"x".repeat(201)] {
        app.post_json("/v1/systems", json!({ "name": name })).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    }
    for body in [json!({}), json!({ "name": 1 }), json!({ "name": "a", "nmae": "b" }), json!([]), json!(["z"])] {
        app.post_json("/v1/systems", body).await.expect_problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body");
    }
    assert_eq!(app.get("/v1/systems").await.json(), json!({ "items": [] }));
}

#[tokio::test]
async fn lists_are_walked_by_keyset() {
    let app = TestApp::new().await;
    let mut created = Vec::new();
    for n in 0..5 {
        let name = if n % 2 == 0 { "even" } else { "odd" };
        created.push(app.post_json("/v1/systems", json!({ "name": name })).await.expect(StatusCode::CREATED));
    }
    let (mut walked, mut path): (Vec<Value>, _) = (Vec::new(), "/v1/systems?limit=2".to_owned());
    let mut n_pages = 0;
    loop {
        let page = app.get(&path).await.expect(StatusCode::OK);
        walked.extend(page["items"].as_array().unwrap().iter().cloned());
        n_pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/systems?limit=2&after={next}");
    }
    assert_eq!((walked, n_pages), (created.clone(), 3));
    let even = app.get("/v1/systems?name=even").await.expect(StatusCode::OK);
    assert_eq!(even["items"], json!([created[0], created[2], created[4]]));
}

#[tokio::test]
async fn bad_pages_are_refused() {
    let app = TestApp::new().await;
    for query in ["limit=0", "limit=501", "limit=-1", "limit=x", "after=x", "limitt=1", "limit=1&limit=2"] {
        let detail = app.get(&format!("/v1/systems?{query}")).await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
        let name = query.split('=').next().unwrap();
        assert!(detail.contains(name), "{query}: {detail}");
    }
    let detail = app.get("/v1/systems?limit=x").await.expect_problem(StatusCode::BAD_REQUEST, "invalid_query");
    assert_eq!(detail, "Failed to deserialize query string: limit: invalid digit found in string");
}

#[tokio::test]
async fn a_system_without_work_is_deleted_with_all_in_it() {
    let app = TestApp::new().await;
    let fit = app.finished_fit().await;
    let system = fit["system"].as_str().unwrap();
    assert_eq!(app.delete(&format!("/v1/systems/{system}")).await.status, StatusCode::NO_CONTENT);
    let gone = ["/v1/systems/", "/v1/models/", "/v1/trials/", "/v1/fits/", "/v1/jobs/"];
    for (path, id) in gone.into_iter().zip([
        system,
        fit["model"].as_str().unwrap(),
        fit["trials"].as_str().unwrap(),
        id(&fit),
        fit["job"].as_str().unwrap(),
    ]) {
        app.get(&format!("{path}{id}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
    }
}

#[tokio::test]
async fn a_system_with_work_is_not_deleted() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let fit = app.fit(&model, &trials).await;
    let path = format!("/v1/systems/{system}");
    app.delete(&path).await.expect_problem(StatusCode::CONFLICT, "system_busy");
    app.get(&path).await.expect(StatusCode::OK);
    app.delete(&format!("/v1/jobs/{}", fit["job"].as_str().unwrap())).await.expect(StatusCode::OK);
    assert_eq!(app.delete(&path).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let app = TestApp::new().await;
    for text in [NO_ID, "1", "not-an-id", "%F0%9F%90%8C", "..%2F..%2Fetc%2Fpasswd"] {
        app.get(&format!("/v1/systems/{text}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
        app.delete(&format!("/v1/systems/{text}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
        for kind in ["traces", "structures", "models", "trials", "fits"] {
            app.get(&format!("/v1/systems/{text}/{kind}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
        }
    }
}
