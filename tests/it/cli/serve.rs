//! `layerfit serve` where it cannot start, and where its log cannot be written.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

fn refused(arguments: &[&str], expected: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_layerfit")).arg("serve").args(arguments).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    expected.iter().for_each(|words| assert!(errors.contains(words), "{words}: {errors}"));
}

fn url(path: &Path) -> String {
    format!("sqlite://{}", path.display())
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "these are notes, and no database\n".repeat(100);
    fs::write(&path, &text).unwrap();
    refused(
        &["--database", &url(&path), "--listen", "127.0.0.1:0"],
        &[path.to_str().unwrap(), "not a database", "expected a database of layerfit"],
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    refused(
        &["--database", &url(folder.path()), "--listen", "127.0.0.1:0"],
        &[folder.path().to_str().unwrap(), "expected a database of layerfit"],
    );
}

#[test]
fn a_port_that_is_taken_leaves_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["--database", &url(&folder.path().join("new.db")), "--listen", &address], &["cannot listen on", &address, "hint: "]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn workers_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--database", &url(&folder.path().join("new.db")), "--listen", "127.0.0.1:0", "--workers", "100000"];
    refused(&arguments, &["--workers 100000: expected 1 to 256"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A service that ends with the test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Who read the log has gone: its lines are lost, requests are answered.
#[test]
fn a_log_that_nobody_reads_does_not_end_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_layerfit"));
    command.args(["serve", "--database", &url(&folder.path().join("new.db")), "--listen", "127.0.0.1:0"]).env("RUST_LOG", "debug");
    let mut service = Service(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(service.0.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening on http://") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "the log ends before the service listens");
    }
    let address = line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
    drop(log);
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).unwrap();
        let body = r#"{"name":"shop"}"#;
        let head = format!("POST /v1/systems HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }
    assert!(service.0.try_wait().unwrap().is_none());
}
