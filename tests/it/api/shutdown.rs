//! The service on a socket, and its end.

use std::time::Duration;

use layerfit::{
    api::{AppState, Ended, Limits, serve_on},
    jobs::{Jobs, Options},
    store::{Store, StoreError},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::{NO_ID, TestApp};

/// Far above what a graceful end takes.
const GRACE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_is_answered_and_an_event_stream_ends() {
    let app = TestApp::without_workers().await;
    let system = app.system().await;
    let (model, trials) = (app.model(&system).await, app.trials(&system, 4).await);
    let job = app.fit(&model, &trials).await["job"].as_str().unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let stop_ordered = async move { drop(stopped.await) };
    let server = tokio::spawn(serve_on(listener, app.state.clone(), stop_ordered, GRACE));

    // A stream of a job that never ends: its first event has come, so it is open.
    let mut events = TcpStream::connect(address).await.unwrap();
    events.write_all(format!("GET /v1/jobs/{job}/events HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut seen = String::new();
    while !seen.contains("\"queued\"") {
        let mut buffer = [0; 4096];
        let n = events.read(&mut buffer).await.unwrap();
        assert!(n > 0, "{seen}");
        seen.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
    }
    // A request of which half has been sent, and which the service has begun to read: it says so.
    let mut slow = TcpStream::connect(address).await.unwrap();
    let head = "POST /v1/systems HTTP/1.1\r\nhost: x\r\ncontent-length: 15\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n";
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut continued = [0; 25];
    slow.read_exact(&mut continued).await.unwrap();
    assert_eq!(&continued, b"HTTP/1.1 100 Continue\r\n\r\n");

    stop.send(()).unwrap();
    let mut rest = String::new();
    events.read_to_string(&mut rest).await.expect("the stream ends in order");
    slow.write_all(b"{\"name\":\"late\"}").await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    assert_eq!(server.await.unwrap().unwrap(), Ended::Gracefully);
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

/// Who never ends the head of a request, or never begins one, does not keep its connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_end_is_given_up() {
    let app = TestApp::with(Limits { head_time: Duration::from_millis(50), ..Limits::default() }, Options::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let stop_ordered = async move { drop(stopped.await) };
    let server = tokio::spawn(serve_on(listener, app.state.clone(), stop_ordered, GRACE));
    for head in ["GET /v1/systems HTTP/1.1\r\nHo", ""] {
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(GRACE, slow.read_to_string(&mut answer)).await.expect("the connection is closed").unwrap();
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    stop.send(()).unwrap();
    assert_eq!(server.await.unwrap().unwrap(), Ended::Gracefully);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_end_is_cut_off() {
    let app = TestApp::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let stop_ordered = async move { drop(stopped.await) };
    let server = tokio::spawn(serve_on(listener, app.state.clone(), stop_ordered, Duration::from_millis(50)));
    let mut silent = TcpStream::connect(address).await.unwrap();
    let head = "POST /v1/systems HTTP/1.1\r\nhost: x\r\ncontent-length: 15\r\nexpect: 100-continue\r\n\r\n";
    silent.write_all(head.as_bytes()).await.unwrap();
    silent.read_exact(&mut [0; 25]).await.unwrap();
    stop.send(()).unwrap();
    assert_eq!(server.await.unwrap().unwrap(), Ended::OutOfTime);
}

/// A service on a socket.
struct Served {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    server: tokio::task::JoinHandle<std::io::Result<Ended>>,
}

async fn served(app: &TestApp) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let stop_ordered = async move { drop(stopped.await) };
    let server = tokio::spawn(serve_on(listener, app.state.clone(), stop_ordered, GRACE));
    Served { address, stop, server }
}

/// The end does not wait for requests that have not begun.
#[tokio::test(flavor = "multi_thread")]
async fn half_a_head_does_not_hold_up_the_end() {
    let app = TestApp::new().await;
    let Served { address, stop, server } = served(&app).await;
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(b"GET /healthz HTTP/1.1\r\nHo").await.unwrap();
    // Half of a second request, after one that was answered.
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /hea").await.unwrap();
    let mut answer = [0; 12];
    second.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    stop.send(()).unwrap();
    assert_eq!(server.await.unwrap().unwrap(), Ended::Gracefully);
    let mut rest = String::new();
    first.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
}

/// What was taken as the service stopped is stored.
#[tokio::test(flavor = "multi_thread")]
async fn spans_that_come_last_are_stored() {
    let app = TestApp::new().await;
    let Served { address, stop, server } = served(&app).await;
    let body = super::reception::spans(None).to_string();
    let mut exporter = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-layerfit-system: late\r\ncontent-length: {}\r\n\
         expect: 100-continue\r\nconnection: close\r\n\r\n",
        body.len()
    );
    exporter.write_all(head.as_bytes()).await.unwrap();
    exporter.read_exact(&mut [0; 25]).await.unwrap();
    stop.send(()).unwrap();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    exporter.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    exporter.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.await.unwrap().unwrap(), Ended::Gracefully);
    let app = super::jobs::restarted(app, 0).await;
    let late = app.get("/v1/systems?name=late").await.json()["items"][0]["id"].as_str().expect("the system was made").to_owned();
    let structures = app.get(&format!("/v1/systems/{late}/structures")).await.json();
    assert_eq!(structures["items"].as_array().map(Vec::len), Some(1), "{structures}");
}

/// Who asks and does not read is dropped with what waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_dropped() {
    /// More than the buffers of a connection hold.
    const N_ASKED: usize = 1000;
    let limits = Limits { write_time: Duration::from_millis(100), ..Limits::default() };
    let app = TestApp::with(limits, Options::default()).await;
    let Served { address, stop, server } = served(&app).await;
    let mut deaf = TcpStream::connect(address).await.unwrap();
    let asked = "GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(N_ASKED);
    deaf.write_all(asked.as_bytes()).await.unwrap();
    // A write fails once the connection is closed at the other end: until then, nothing is read.
    tokio::time::timeout(GRACE, async {
        while deaf.write_all(b"\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await
        }
    })
    .await
    .expect("the connection is closed");
    stop.send(()).unwrap();
    assert_eq!(server.await.unwrap().unwrap(), Ended::Gracefully);
}

#[tokio::test]
async fn a_database_serves_one_service() {
    let app = TestApp::new().await;
    let url = format!("sqlite://{}", app.folder.path().join("test.db").display());
    assert!(matches!(Store::open(&url).await, Err(StoreError::InUse { .. })));
}

/// A client that sends all before it looks sees why it was refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_unread_is_answered() {
    // More than sockets hold.
    const LARGE_BYTES: usize = 32 << 20;
    let app = TestApp::new().await;
    let system = app.system().await;
    let served = served(&app).await;
    let mut client = TcpStream::connect(served.address).await.unwrap();
    let head = format!("POST /v1/systems/{system}/traces?format=none HTTP/1.1\r\nhost: x\r\ncontent-length: {LARGE_BYTES}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&vec![b'x'; LARGE_BYTES]).await.expect("the body is taken to its end");
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400");
}

/// Neither is anything in it changed, nor anything left beside it.
#[tokio::test]
async fn a_database_of_another_program_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    for table in ["users", "systems"] {
        let path = folder.path().join(format!("{table}.db"));
        let url = format!("sqlite://{}", path.display());
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE TABLE {table} (id INTEGER)"))).execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
        let before = std::fs::read(&path).unwrap();
        let refused = Store::open(&url).await;
        let named = |reason: &str| reason.contains(table) && reason.contains("another program");
        assert!(matches!(&refused, Err(StoreError::Unusable { reason, .. }) if named(reason)), "{refused:?}");
        assert!(std::fs::read(&path).unwrap() == before, "{table}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "only the two databases");
}

#[tokio::test]
async fn a_database_is_created_in_a_folder_that_is_not_there_yet() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("deep/down/new.db").display());
    let store = Store::open(&url).await.expect("the database is created");
    store.ping().await.expect("the database answers");
    assert!(store.usage().await.expect("the database answers").size_bytes > 0);
    let jobs = Jobs::start(store.clone(), Options::default()).await.expect("the queue is started");
    let state = AppState::new(store, jobs, Limits::default());
    assert!(state.store().load_job(NO_ID.parse().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn other_addresses_are_refused() {
    for url in
        ["", "layerfit.db", "postgres://localhost/x", "sqlite::memory:", "sqlite://", "sqlite://x?mode=memory", "sqlite://x?nonsense=1"]
    {
        let refused = Store::open(url).await;
        assert!(matches!(refused, Err(StoreError::Address { .. })), "{url}: {refused:?}");
    }
}
