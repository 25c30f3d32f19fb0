//! Opening the database, and what can go wrong with it.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use sqlx::{
    Sqlite, SqlitePool, Transaction,
    error::ErrorKind,
    migrate::{MigrateError, Migrator},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

/// The schema, version by version.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// How long a statement waits for another process's lock (a backup, a shell) before it fails.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request waits for a free connection before it fails.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that read. SQLite reads in parallel under WAL; more connections than this only cost memory.
const READERS: u32 = 8;

/// The database: cheap to clone, shared by all.
///
/// Writes go through one connection, so that they queue in the process and never meet `SQLITE_BUSY`; reads have their own.
#[derive(Clone, Debug)]
pub struct Store {
    readers: SqlitePool,
    writer: SqlitePool,
    /// Held while the store lives: a second service on the same file would take this one's running jobs for crashed ones.
    _lock: Arc<File>,
}

/// What can go wrong in the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database's address is not usable.
    #[error("database \"{url}\": {reason}")]
    Address {
        /// The address as given.
        url: String,
        /// What is wrong with it and what was expected.
        reason: String,
    },
    /// Another process serves the same database.
    #[error("database {} is in use by another layerfit service", path.display())]
    InUse {
        /// The database file.
        path: PathBuf,
    },
    /// A file beside the database cannot be used.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no database, or not one of this service.
    #[error("database {}: {reason}; expected a database of layerfit, or a file that does not exist yet", path.display())]
    Unusable {
        /// The database file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The schema cannot be brought up to date.
    #[error("the database's schema cannot be brought up to date")]
    Migrate(#[from] MigrateError),
    /// A row names another row that is not there (any more).
    #[error("a referenced row does not exist")]
    MissingReference,
    /// A row of the same key is there already.
    #[error("a row with the same key exists")]
    Duplicate,
    /// The system has work that is not finished.
    #[error("the system has unfinished jobs")]
    UnfinishedJobs,
    /// A stored value cannot be read back.
    #[error("stored {what} cannot be read")]
    Corrupt {
        /// The value.
        what: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value cannot be written.
    #[error("a value cannot be written as JSON")]
    Encode(#[from] serde_json::Error),
    /// The database failed.
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error.as_database_error().map(|e| e.kind()) {
            Some(ErrorKind::ForeignKeyViolation) => Self::MissingReference,
            Some(ErrorKind::UniqueViolation) => Self::Duplicate,
            _ => Self::Database(error),
        }
    }
}

impl StoreError {
    /// Whether the same request may succeed a little later.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::PoolTimedOut) => true,
            // SQLITE_BUSY and its extended codes: the low byte is 5.
            Self::Database(sqlx::Error::Database(e)) => {
                e.code().and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == 5)
            }
            _ => false,
        }
    }
}

/// What the database takes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Size of the database without its write-ahead log, bytes.
    pub size_bytes: i64,
    /// Open connections that read.
    pub reader_connections: u32,
    /// Those of them that are idle.
    pub idle_connections: usize,
}

impl Store {
    /// Opens the database at `url` (`sqlite://PATH`), creates it if there is none, and brings its schema up to date.
    ///
    /// # Errors
    /// [`StoreError::Address`] for another kind of address, [`StoreError::InUse`] while another service has it open,
    /// [`StoreError::Unusable`] when the file is no database of this program or its schema is newer, otherwise what the database says.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let options = connect_options(url)?;
        let path = options.get_filename().to_owned();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| StoreError::File { path: folder.to_owned(), source })?;
        }
        let lock = lock(&path)?;
        let is_new = !path.exists();
        let writer = SqlitePoolOptions::new().max_connections(1).acquire_timeout(ACQUIRE_TIMEOUT).connect_with(options.clone());
        let writer = writer.await.map_err(|e| unusable(&path, e))?;
        if let Err(error) = MIGRATIONS.run(&writer).await {
            return Err(match error {
                MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) if !is_new => unusable(&path, source),
                MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_) => {
                    StoreError::Unusable { path, reason: format!("its schema is not of this version of layerfit: {error}") }
                }
                other => other.into(),
            });
        }
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.create_if_missing(false).read_only(true))
            .await?;
        Ok(Self { readers, writer, _lock: Arc::new(lock) })
    }

    /// Whether the database answers and takes writes.
    ///
    /// # Errors
    /// What the database says.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(&self.readers).await?;
        self.begin().await?.rollback().await?;
        Ok(())
    }

    /// What the database takes up.
    ///
    /// # Errors
    /// What the database says.
    pub async fn usage(&self) -> Result<Usage, StoreError> {
        let size_bytes =
            sqlx::query_scalar("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetch_one(&self.readers).await?;
        Ok(Usage { size_bytes, reader_connections: self.readers.size(), idle_connections: self.readers.num_idle() })
    }

    /// Closes the connections after the statements that are running; the write-ahead log is folded into the database.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// The connections that read.
    pub(super) fn read(&self) -> &SqlitePool {
        &self.readers
    }

    /// The connection that writes.
    pub(super) fn write(&self) -> &SqlitePool {
        &self.writer
    }

    /// A transaction that writes; it takes the database's write lock at once, so that what it reads stays true.
    pub(super) async fn begin(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }
}

fn connect_options(url: &str) -> Result<SqliteConnectOptions, StoreError> {
    let refuse = |reason: &str| StoreError::Address { url: url.to_owned(), reason: reason.to_owned() };
    if !url.starts_with("sqlite:") {
        return Err(refuse("expected sqlite://PATH, as in sqlite://layerfit.db"));
    }
    let options = SqliteConnectOptions::from_str(url).map_err(|e| refuse(&e.to_string()))?;
    let path = options.get_filename();
    if path.as_os_str().is_empty() || url.contains(":memory:") || url.contains("mode=memory") {
        return Err(refuse("a file is needed, as in sqlite://layerfit.db: what is only in memory does not survive a restart"));
    }
    Ok(options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // What a client was told is stored stays stored, through a power cut too; writes here are few and large.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT))
}

/// The error of a file that SQLite does not take; other errors as they are.
fn unusable(path: &Path, error: sqlx::Error) -> StoreError {
    // SQLITE_ERROR: a table that is there already; SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_PERM and SQLITE_READONLY.
    const OF_THE_FILE: [u32; 6] = [1, 3, 8, 11, 14, 26];
    let code = error.as_database_error().and_then(|e| e.code()?.parse::<u32>().ok());
    match code {
        Some(code) if OF_THE_FILE.contains(&(code & 0xff)) => {
            let reason = error.as_database_error().map_or_else(|| error.to_string(), |e| e.message().to_owned());
            StoreError::Unusable { path: path.to_owned(), reason }
        }
        _ => error.into(),
    }
}

/// Takes the lock file beside the database; the operating system gives it back when the process ends, however it ends.
fn lock(database: &Path) -> Result<File, StoreError> {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let at_fault = |source| StoreError::File { path: path.clone(), source };
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(at_fault)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: database.to_owned() }),
        Err(TryLockError::Error(source)) => Err(at_fault(source)),
    }
}

/// Reads a JSON column.
pub(super) fn decode<T: serde::de::DeserializeOwned>(text: &str, what: impl FnOnce() -> String) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|e| StoreError::Corrupt { what: what(), source: e.into() })
}
