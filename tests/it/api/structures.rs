//! `/v1/structures`.

use axum::http::{StatusCode, header};
use layerfit::model::{format, lqnx};

use super::{BROWSE_PRODUCTS, NO_ID, TestApp};

#[tokio::test]
async fn a_structure_is_json_or_lqnx() {
    let app = TestApp::new().await;
    let system = app.system().await;
    let trace = app.post(&format!("/v1/systems/{system}/traces?format=same"), "text/plain", BROWSE_PRODUCTS).await;
    let job = app.wait_for(&trace.json(), "succeeded").await;
    let path = format!("/v1/structures/{}", job["structure"].as_str().unwrap());

    let structure = app.get(&path).await.expect(StatusCode::OK);
    for member in ["id", "system", "trace", "created_at", "tasks", "interactions", "records", "model", "diagnostics"] {
        assert!(structure.get(member).is_some(), "{member}: {structure}");
    }
    // Table 1 has four requests that are waited for: browse, display and getName twice.
    assert_eq!(structure["interactions"]["sync"], 4);

    let lqnx_answer = app.get_as(&path, "application/xml").await;
    assert_eq!((lqnx_answer.status, lqnx_answer.header(header::CONTENT_TYPE)), (StatusCode::OK, "application/xml"));
    let model = format::parse(lqnx_answer.text(), format::Format::Lqnx).expect("the LQNX is read");
    assert_eq!(lqnx::write(&model), lqnx_answer.text());
    assert!(model.task("Inventory").is_some());

    app.get_as(&path, "text/html").await.expect_problem(StatusCode::NOT_ACCEPTABLE, "not_acceptable");
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let app = TestApp::new().await;
    app.get(&format!("/v1/structures/{NO_ID}")).await.expect_problem(StatusCode::NOT_FOUND, "not_found");
}
