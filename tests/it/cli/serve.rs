//! `layerfit serve` where it cannot start.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fs, net::TcpListener, path::Path, process::Command};

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
