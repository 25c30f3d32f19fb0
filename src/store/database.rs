//! Opening the database, and what can go wrong with it.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use sqlx::{
    ConnectOptions, Connection, Sqlite, SqlitePool, Transaction,
    error::ErrorKind,
    migrate::{MigrateError, Migrator},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

/// The schema, version by version.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Another connection has a lock.
const SQLITE_BUSY: u32 = 5;
/// What may only be read was to be written.
const SQLITE_READONLY: u32 = 8;
/// The operating system could not read or write.
const SQLITE_IOERR: u32 = 10;
/// The disk is full.
const SQLITE_FULL: u32 = 13;
/// A file cannot be opened.
const SQLITE_CANTOPEN: u32 = 14;

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
    /// The database may be read, but not written.
    #[error("database {} cannot be written: expected a file and a folder that the service may write to", path.display())]
    ReadOnly {
        /// The database file.
        path: PathBuf,
    },
    /// A file beside the database cannot be used.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
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
            Self::Database(error) => primary_code(error) == Some(SQLITE_BUSY),
            _ => false,
        }
    }

    /// Whether the database could not be written (or read) because the disk is full or out of order.
    pub fn is_disk_at_fault(&self) -> bool {
        const OF_THE_DISK: [u32; 4] = [SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN];
        match self {
            Self::Database(error) => primary_code(error).is_some_and(|code| OF_THE_DISK.contains(&code)),
            _ => false,
        }
    }

    /// What a database says that is busy.
    #[cfg(test)]
    pub(crate) fn busy() -> Self {
        Self::Database(sqlx::Error::PoolTimedOut)
    }

    /// Whether the same may succeed another time without anything in it being changed: the database is busy, the disk full or out of
    /// order, memory short.
    pub fn may_pass(&self) -> bool {
        const SQLITE_LOCKED: u32 = 6;
        const SQLITE_NOMEM: u32 = 7;
        const PASSING: [u32; 7] = [SQLITE_BUSY, SQLITE_LOCKED, SQLITE_NOMEM, SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN];
        match self {
            Self::Database(error @ sqlx::Error::Database(_)) => primary_code(error).is_some_and(|code| PASSING.contains(&code)),
            Self::Database(error) => {
                use sqlx::Error::{BeginFailed, InvalidSavePointStatement, Io, PoolTimedOut, WorkerCrashed};
                matches!(error, PoolTimedOut | WorkerCrashed | Io(_) | BeginFailed | InvalidSavePointStatement)
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
        let is_new = !path.exists();
        if !is_new {
            refuse_strangers(&path).await?;
        }
        let lock = lock(&path)?;
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // SQLite rolls back by itself what finds the disk full; sqlx then fails to, and takes the connection to be within a transaction
            // for ever. Another connection takes its place.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect_with(options.clone());
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
        require_writable(&writer, &path).await?;
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

    /// Takes no further page, as on a full disk.
    ///
    /// # Errors
    /// What the database says.
    #[cfg(test)]
    pub(crate) async fn fill(&self) -> Result<(), StoreError> {
        let size: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(self.write()).await?;
        self.limit(size).await
    }

    /// Takes pages again after [`Self::fill`].
    ///
    /// # Errors
    /// What the database says.
    #[cfg(test)]
    pub(crate) async fn unfill(&self) -> Result<(), StoreError> {
        const MOST: i64 = 1 << 30;
        self.limit(MOST).await
    }

    #[cfg(test)]
    async fn limit(&self, n_pages: i64) -> Result<(), StoreError> {
        sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {n_pages}"))).execute(self.write()).await?;
        Ok(())
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

/// The result code of an error of SQLite, without what extends it.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error().and_then(|e| e.code()?.parse::<u32>().ok()).map(|code| code & 0xff)
}

/// The error of a file that SQLite does not take; other errors as they are.
fn unusable(path: &Path, error: sqlx::Error) -> StoreError {
    // SQLITE_ERROR: a table that is there already; SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_NOTADB and SQLITE_PERM.
    const OF_THE_FILE: [u32; 5] = [1, 3, 11, 14, 26];
    match primary_code(&error) {
        Some(SQLITE_READONLY) => StoreError::ReadOnly { path: path.to_owned() },
        Some(code) if OF_THE_FILE.contains(&code) => {
            let reason = error.as_database_error().map_or_else(|| error.to_string(), |e| e.message().to_owned());
            StoreError::Unusable { path: path.to_owned(), reason }
        }
        _ => error.into(),
    }
}

/// Refuses a database of another program before anything in it or beside it is changed. What cannot be read is left to who opens it.
async fn refuse_strangers(path: &Path) -> Result<(), StoreError> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(BUSY_TIMEOUT);
    let Ok(mut connection) = options.connect().await else { return Ok(()) };
    let tables =
        sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name");
    let tables: Result<Vec<String>, _> = tables.fetch_all(&mut connection).await;
    // An error only says that it could not be closed in order; nothing was written.
    let _ = connection.close().await;
    let Ok(tables) = tables else { return Ok(()) };
    let is_ours = ["_sqlx_migrations", "systems"].iter().all(|&name| tables.iter().any(|table| table == name));
    match tables.first() {
        Some(table) if !is_ours => {
            Err(StoreError::Unusable { path: path.to_owned(), reason: format!("it holds the table \"{table}\" of another program") })
        }
        _ => Ok(()),
    }
}

/// Checks that the database takes writes, which SQLite says no earlier than at the first one.
async fn require_writable(writer: &SqlitePool, path: &Path) -> Result<(), StoreError> {
    sqlx::query("UPDATE systems SET name = name WHERE FALSE").execute(writer).await.map_err(|e| unusable(path, e))?;
    Ok(())
}

/// The file that a path leads to, which need not be there yet, as SQLite finds it: through symbolic links.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder.canonicalize()?,
            _ => Path::new(".").canonicalize()?,
        };
        path = path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name));
        match path.read_link() {
            Ok(target) => path = folder.join(target),
            // It is no link, or not there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links follow each other"))
}

/// Takes the lock file beside the database; the operating system gives it back when the process ends, however it ends.
fn lock(database: &Path) -> Result<File, StoreError> {
    let resolved = resolved(database).map_err(|source| StoreError::File { path: database.to_owned(), source })?;
    let mut path = resolved.into_os_string();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::Model,
        store::{
            PageRequest,
            models::{ModelSource, NewModel},
        },
    };

    #[tokio::test]
    async fn what_does_not_fit_is_an_error_and_what_comes_after_it_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite://{}", folder.path().join("full.db").display())).await.unwrap();
        let system = store.insert_system("full").await.unwrap().id;
        let content = "x".repeat(1 << 20);
        let model = Model::default();
        let new = || NewModel { system, source: ModelSource::Json, content: &content, structure: None, model: &model };
        store.fill().await.unwrap();
        let refused = store.insert_model(new()).await;
        assert!(refused.as_ref().is_err_and(|error| error.may_pass() && error.is_disk_at_fault()), "{refused:?}");
        // What SQLite does by itself where the disk is full.
        let mut transaction = store.begin().await.unwrap();
        sqlx::query("ROLLBACK").execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap_err();
        store.ping().await.unwrap();
        let stored = store.insert_model(new()).await.unwrap();
        let listed = store.list_models(system, PageRequest { after: None, limit: 10 }).await.unwrap();
        assert_eq!((stored.version, listed.items), (1, vec![stored.clone()]));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_to_a_database_has_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        let url = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        std::os::unix::fs::symlink("deep/real.db", folder.path().join("link.db")).unwrap();
        // Of a link to nothing, too.
        let first = Store::open(&url("link.db")).await.unwrap();
        for name in ["deep/real.db", "link.db", "deep/../link.db"] {
            assert!(matches!(Store::open(&url(name)).await, Err(StoreError::InUse { .. })), "{name}");
        }
        drop(first);
        std::os::unix::fs::symlink("loop.db", folder.path().join("loop.db")).unwrap();
        assert!(matches!(Store::open(&url("loop.db")).await, Err(StoreError::File { .. })));
    }

    #[tokio::test]
    async fn a_database_that_may_not_be_written_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("locked.db").display());
        Store::open(&url).await.unwrap().close().await;
        let refused = Store::open(&format!("{url}?mode=ro")).await.unwrap_err();
        assert!(matches!(refused, StoreError::ReadOnly { .. }) && refused.to_string().contains("locked.db"), "{refused}");
    }

    #[tokio::test]
    async fn systems_of_one_name_that_are_asked_for_together_are_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite://{}", folder.path().join("names.db").display())).await.unwrap();
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let store = store.clone();
            asked.spawn(async move { store.system_called("shop").await.unwrap().id });
        }
        let found = asked.join_all().await;
        assert!(found.iter().all(|id| *id == found[0]), "{found:?}");
    }
}
