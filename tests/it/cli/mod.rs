//! The command line, run as a process.

mod design;
mod extract;
mod families;
mod inputs;
mod observe;
mod outputs;
mod serve;
mod simulate;

/// The program with these arguments: its exit code, what it printed and what it said beside.
fn layerfit(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_layerfit")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// What the program prints with these arguments, when it succeeds.
fn done(arguments: &[&str]) -> String {
    let (code, output, errors) = layerfit(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {errors}");
    output
}

/// What cannot be written is no success: neither to standard output nor, silently, to standard error.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    use std::{fs::OpenOptions, process::Command};

    let full = || OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let layerfit = || Command::new(env!("CARGO_BIN_EXE_layerfit"));
    let output = layerfit().arg("openapi").stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"), "{output:?}");
    let output = layerfit().args(["solve", "no-such-model.lqnx"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}
