//! The bookstore: one trace becomes a model.

use serde_json::json;

use super::{
    super::Failure,
    client::{Client, text},
};
use crate::{
    model::{Bindings, lqnx},
    solve::{SolveOptions, solve},
};

/// The BrowseProducts trace of Israr et al., WOSP 2005, Table 1.
const TRACE: &str = include_str!("../../../examples/bookstore/browse-products.log");

/// Posts the trace, shows the structure found in it, and solves the model.
pub(super) async fn show(client: &Client) -> Result<(), Failure> {
    tell!(
        "\nBookstore: the trace of one BrowseProducts (Israr et al. 2005), {} events",
        TRACE.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')).count()
    );
    let system = client.post("/v1/systems", "application/json", json!({"name": "bookstore"}).to_string().as_bytes()).await?;
    let system = text(&system, "id")?;
    let trace = client.post(&format!("/v1/systems/{system}/traces?format=same"), "text/plain", TRACE.as_bytes()).await?;
    client.wait(&trace).await?;
    let structures = client.get(&format!("/v1/systems/{system}/structures")).await?;
    let structure = text(&structures["items"][0], "id")?;
    let found = client.get(&format!("/v1/structures/{structure}")).await?;
    let count = |kind: &str| found["interactions"][kind].as_u64().unwrap_or(0);
    tell!("  interactions: {} synchronous, {} asynchronous, {} forwarded", count("sync"), count("async"), count("forward"));
    for record in found["records"].as_array().into_iter().flatten() {
        tell!("    {} {} -> {}", text(record, "kind")?, text(record, "from")?, text(record, "to")?);
    }
    let xml = client.get_as(&format!("/v1/structures/{structure}"), "application/xml").await?;
    let model = lqnx::parse(&String::from_utf8_lossy(&xml)).map_err(|e| Failure::internal(&e))?;
    let solution = solve(&model, &Bindings::new(), &SolveOptions::default()).map_err(|e| Failure::internal(&e))?;
    tell!("  solved ({} solver), every entry given 1 ms:", solution.solver);
    for (name, task) in &solution.tasks {
        tell!("    {name:<10} throughput {:>8.2}/s   utilization {:.3}", task.throughput, task.utilization);
    }
    Ok(())
}
