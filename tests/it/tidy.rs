//! The floors of the house, as a test: who may use whom, and what may stand where.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every folder of `src/` with the folders whose modules it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("trace", &[]),
    ("structure", &["trace", "model"]),
    ("solve", &["model"]),
    ("fit", &["solve", "model"]),
    ("predict", &["fit", "solve", "model"]),
    ("store", &["model", "trace", "structure", "solve", "fit", "predict"]),
    ("jobs", &["error_chain", "store", "model", "trace", "structure", "solve", "fit", "predict"]),
    ("api", &["error_chain", "jobs", "store", "config", "model", "trace", "structure", "solve", "fit", "predict"]),
    ("web", &["api", "predict"]),
    ("cli", &["error_chain", "api", "jobs", "store", "config", "model", "trace", "structure", "solve", "fit", "predict", "web"]),
];

/// Words that may stand only in the named folders.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("sqlx", &["store"]),
    ("axum", &["api", "web"]),
    ("clap", &["cli"]),
    ("println!", &["cli"]),
    ("eprintln!", &["cli"]),
    ("print!", &["cli"]),
    ("eprint!", &["cli"]),
    ("dbg!", &[]),
];

/// What the pure stages may not touch: files, network, clock, tasks, the environment, unseeded randomness.
const NOT_IN_PURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::time",
    "SystemTime",
    "Instant::",
    "tokio",
    "async fn",
    "rand::rng()",
    "from_os_rng",
    "static mut",
];
const PURE: &[&str] = &["model", "trace", "structure", "solve", "fit", "predict"];

/// Longest file of `src/`, lines: beyond it a file has two jobs.
const LONGEST_FILE_LINES: usize = 600;

struct Line {
    folder: String,
    place: String,
    text: String,
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// All lines of code of the folders of `src/`, without comments and string literals.
fn lines() -> Vec<Line> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let mut lines = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let folder = relative.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        for (number, text) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let code = without_strings(text.split("//").next().unwrap());
            lines.push(Line { folder: folder.clone(), place: format!("src/{}:{}", relative.display(), number + 1), text: code });
        }
    }
    assert!(lines.len() > 1000, "the source was not found");
    lines
}

fn without_strings(line: &str) -> String {
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

/// The first path segments after `crate::` in a line, braces included.
fn used_modules(text: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &text[at + "crate::".len()..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        used.push(name);
    }
    used
}

/// Joins the lines of a `use crate::{…}` so that every module in it is seen.
fn grouped_uses(lines: &[Line]) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, i32)> = None;
    for (i, line) in lines.iter().enumerate() {
        if open.is_none() && line.text.contains("crate::{") {
            open = Some((i, 0));
        }
        let Some((start, depth)) = open else { continue };
        let mut depth = depth;
        let from = if start == i { line.text.find("crate::{").unwrap() + "crate::".len() } else { 0 };
        let mut word = String::new();
        for c in line.text[from..].chars() {
            if depth == 1 && (c.is_alphanumeric() || c == '_') {
                word.push(c);
                continue;
            }
            if !word.is_empty() {
                found.push((line.folder.clone(), line.place.clone(), std::mem::take(&mut word)));
            }
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ':' => {}
                _ => {}
            }
        }
        if !word.is_empty() {
            found.push((line.folder.clone(), line.place.clone(), word));
        }
        open = (depth > 0).then_some((start, depth));
    }
    found
}

#[test]
fn every_folder_uses_only_the_floors_below() {
    let lines = lines();
    let mut uses: Vec<(String, String, String)> = grouped_uses(&lines);
    for line in &lines {
        uses.extend(used_modules(&line.text).into_iter().map(|m| (line.folder.clone(), line.place.clone(), m)));
    }
    let floors: Vec<&str> = MAY_USE.iter().map(|(f, _)| *f).collect();
    let breaches: Vec<String> = uses
        .into_iter()
        .filter(|(folder, _, module)| {
            let allowed = MAY_USE.iter().find(|(f, _)| f == folder).map_or(&[][..], |(_, a)| a);
            floors.contains(&folder.as_str())
                && floors.contains(&module.as_str())
                && module != folder
                && !allowed.contains(&module.as_str())
        })
        .map(|(folder, place, module)| format!("{place}: {folder} may not use {module}"))
        .collect();
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn crates_and_printing_stand_only_where_they_may() {
    let mut breaches = Vec::new();
    for line in lines() {
        for (word, folders) in ONLY_IN {
            let found = line.text.match_indices(word).any(|(at, _)| {
                let before = line.text[..at].chars().next_back();
                let after = line.text[at + word.len()..].chars().next();
                let joined = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                !joined(before) && (word.ends_with('!') || !joined(after))
            });
            if found && !folders.contains(&line.folder.as_str()) {
                breaches.push(format!("{}: {word}", line.place));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn the_pure_stages_touch_nothing_outside() {
    let mut breaches = Vec::new();
    for line in lines().into_iter().filter(|l| PURE.contains(&l.folder.as_str())) {
        for word in NOT_IN_PURE {
            if line.text.contains(word) {
                breaches.push(format!("{}: {word}", line.place));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn no_file_has_grown_two_jobs() {
    let mut lengths = std::collections::BTreeMap::<String, usize>::new();
    for line in lines() {
        *lengths.entry(line.place.rsplit_once(':').unwrap().0.to_owned()).or_default() += 1;
    }
    let long: Vec<String> = lengths.into_iter().filter(|(_, n)| *n > LONGEST_FILE_LINES).map(|(f, n)| format!("{f}: {n} lines")).collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}
