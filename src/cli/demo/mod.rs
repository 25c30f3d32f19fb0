//! `layerfit demo`: the whole road on real input, through an in-process service on a temporary database.
//!
//! Two systems: a bookstore, whose trace becomes a model; and a PostgreSQL under load, whose trials at the lower loads fit a
//! model that then predicts the higher ones, which were measured too.

mod bookstore;
mod client;
mod pgbench;

use std::{fs, path::PathBuf, time::Duration};

use self::client::Client;
use super::Failure;
use crate::{
    api::{AppState, InProcess, Limits},
    jobs::{self, Jobs},
    store::Store,
};

/// Longest time that the workers get to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Arguments of `layerfit demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder for the plots.
    #[arg(long, default_value = ".", value_name = "DIR")]
    out: PathBuf,
}

/// Runs `layerfit demo`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    if !args.out.is_dir() {
        let what = if args.out.exists() { "not a folder" } else { "there is no such folder" };
        return Err(Failure::with_hint(format!("{}: {what}", args.out.display()), "--out names the folder for the plots"));
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|e| Failure::internal(&e))?;
    let folder = std::env::temp_dir().join(format!("layerfit-demo-{}", uuid::Uuid::new_v4()));
    fs::create_dir(&folder).map_err(|e| Failure::Internal(format!("{}: {e}", folder.display())))?;
    let result = runtime.block_on(walk(&folder.join("demo.db"), &args.out));
    let _ = fs::remove_dir_all(&folder);
    result
}

async fn walk(database: &std::path::Path, out: &std::path::Path) -> Result<(), Failure> {
    tell!("Starting a service in this process on {}", database.display());
    let store = Store::open(&format!("sqlite://{}", database.display())).await.map_err(|e| Failure::internal(&e))?;
    let jobs = Jobs::start(store.clone(), jobs::Options::default()).await.map_err(|e| Failure::internal(&e))?;
    let client = Client::new(InProcess::new(AppState::new(store, jobs.clone(), Limits::default())));
    bookstore::show(&client).await?;
    pgbench::show(&client, out).await?;
    jobs.shutdown(SHUTDOWN_GRACE).await;
    Ok(())
}
