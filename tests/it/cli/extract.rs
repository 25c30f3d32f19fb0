//! `layerfit extract`.

use std::fs;

use layerfit::{
    model::{Model, format},
    structure::Extraction,
};

use super::{done, layerfit};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bookstore/browse-products.log");

#[test]
fn prints_a_report() {
    let (code, report, errors) = layerfit(&["extract", TRACE, "--from", "same"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    for line in [
        "interactions: 4 synchronous, 0 asynchronous, 0 forwarded",
        "  reference task Client on Client_cpu, 1 thread seen",
        "    Inventory.display_START: replies, 1 occurrence, self time 0.000810 s",
        "      phase 1 calls Book2.getName_START × 1",
        "  sync    Client.1 → Server.1 at 4053220, 4056740",
        "  no_msg_id_fifo_assumed (8 times): without message ids, messages were paired first in, first out",
    ] {
        assert!(report.lines().any(|l| l == line), "{line}\n{report}");
    }
}

/// How many threads a third party has is not known from what one client sees of it.
#[test]
fn tasks_without_limit_have_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spans.json");
    let span = |id: &str, more: &str| {
        format!(r#"{{"traceId":"1","id":"{id}","timestamp":5,"duration":9,"localEndpoint":{{"serviceName":"s"}},{more}}}"#)
    };
    let client = r#""kind":"CLIENT","name":"get","parentId":"1","remoteEndpoint":{"serviceName":"bank"}"#;
    fs::write(&path, format!("[{},{}]", span("1", r#""kind":"SERVER","name":"buy""#), span("2", client))).unwrap();
    let report = done(&["extract", path.to_str().unwrap()]);
    assert!(report.contains("  task bank on bank_cpu, any number of threads\n"), "{report}");
    assert!(report.contains("  task s on s_cpu, 1 thread seen\n"), "{report}");
}

/// The JSON is that of the library's result, and the model written is the one in it.
#[test]
fn prints_json_and_writes_the_model() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["bookstore.lqnx", "bookstore.json"] {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        let arguments = ["extract", TRACE, "--from", "same", "--technique", "same", "--strict", "--format", "json", "--out", path];
        let printed = done(&[&arguments[..], &["--rename", "Book2=Book", "--customers", "$users", "--think-time", "0.1"]].concat());
        let extraction: Extraction = serde_json::from_str(&printed).unwrap();
        assert_eq!((extraction.interactions.sync, extraction.records.len(), extraction.tasks.len()), (4, 4, 4));
        let format = format::Format::from_file_name(name).unwrap();
        let written: Model = format::parse(&fs::read_to_string(path).unwrap(), format).unwrap();
        assert_eq!(written, extraction.model);
        let client = written.task("Client").unwrap();
        assert_eq!((client.multiplicity.parameter(), client.think_time.literal()), (Some("users"), Some(0.1)));
    }
}

/// The keys that programs rely on.
#[test]
fn json_has_the_promised_form() {
    let json: serde_json::Value = serde_json::from_str(&done(&["extract", TRACE, "--from", "same", "--format", "json"])).unwrap();
    assert_eq!(json["interactions"], serde_json::json!({"sync": 4, "async": 0, "forward": 0}));
    let record = &json["records"][3];
    assert_eq!(
        *record,
        serde_json::json!({"kind": "sync", "from": "Client.1", "to": "Server.1", "via": [], "phase": 1, "times": [4_053_220, 4_056_740]})
    );
    assert!(json["tasks"].is_array() && json["diagnostics"].is_array() && json["model"]["tasks"].is_array());
}

#[test]
fn faults_of_the_input_end_with_status_1_and_say_why() {
    let check = |arguments: &[&str], expected: &str| {
        let (code, output, errors) = layerfit(&[&["extract"], arguments].concat());
        assert_eq!((code, output.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(errors.contains(expected), "{errors}");
    };
    check(&[TRACE, "--from", "sam"], "\"sam\" is not a trace format that is read here: expected same");
    check(&[TRACE, "--from", "same", "--technique", "sam"], "\"sam\" is not an extraction technique: expected same");
    check(
        &[TRACE, "--from", "same", "--technique", "tlc"],
        "the technique tlc does not take traces of the format same: expected the technique same",
    );
    check(&[TRACE], "expected spans of OpenTelemetry");
    check(&[TRACE, "--from", "same", "--timing", "never"], "expected one of `auto`, `reception`, `two-point`");
    check(&[TRACE, "--from", "same", "--out", "model.lqn"], "error: model.lqn: a model is written to a file ending in .lqnx or .json");
    check(&[TRACE, "--from", "same", "--profile", "browse"], "error: \"browse\": expected SCENARIO=WEIGHT, as in browse=0.7");
    let twice = [TRACE, "--from", "same", "--profile", "browse=1", "--profile", "browse=9"];
    check(&twice, "error: \"browse=9\": browse has a weight already, expected each scenario once");
    let twice = [TRACE, "--from", "same", "--rename", "a=b", "--rename", "a=c"];
    check(&twice, "error: \"a=c\": a has a task already, expected each process once");
    check(&[TRACE, "--from", "same", "--rename", "=x"], "error: \"=x\": expected PROCESS=TASK, as in Book2=Book");
    check(&[TRACE, "--from", "same", "--customers", "two"], "expected a number or $NAME");
    check(&[TRACE, "--from", "same", "--default-demand", "-1"], "error: default_demand is -1, expected a number of seconds, 0 or more");
    check(&["no/such/file", "--from", "same"], "error: no/such/file: ");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.log");
    fs::write(&path, "1 send A x\n2 receive B x\nthree send B y\n").unwrap();
    let bad = path.to_str().unwrap();
    check(&[bad, "--from", "same", "--strict"], "bad.log, line 3: time is \"three\", expected a time (a number of ticks)");
    let lenient = done(&["extract", bad, "--from", "same"]);
    assert!(lenient.contains("bad_row (1 time): rows that cannot be read were skipped"), "{lenient}");
}

/// What has no argument of its own is in a file, with the names that it has over HTTP.
#[test]
fn options_of_techniques_are_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let log = file(
        "l.csv",
        "time,kind,component,method,context_id,server\n0,entry,A,x,c,s1\n9,exit,A,x,c,s1\n20,entry,A,x,d,s2\n29,exit,A,x,d,s2\n",
    );
    let together = file("o.toml", "[call_path]\ninstances = \"together\"\n");
    let tasks = |options: &[&str]| {
        let printed = done(&[&["extract", &log, "--from", "call-path", "--format", "json"], options].concat());
        serde_json::from_str::<Extraction>(&printed).unwrap().tasks.len()
    };
    assert_eq!((tasks(&[]), tasks(&["--options", &together])), (3, 2));
    let wrong = file("wrong.toml", "[call_path]\ninstance = \"together\"\n");
    let (code, _, errors) = layerfit(&["extract", &log, "--from", "call-path", "--options", &wrong]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("wrong.toml, line 2, column 1: unknown field `instance`"), "{errors}");
}

#[test]
fn options_and_files_without_effect_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    fs::copy(TRACE, logs.join("a.log")).unwrap();
    fs::write(logs.join("b.log"), "").unwrap();
    let options = ["--internal", "keep", "--entry-rule", "*=all", "--sampling-rate", "0.5", "--session-key", "user"];
    let (code, report, errors) = layerfit(&[&["extract", logs.to_str().unwrap(), "--from", "same"], &options[..]].concat());
    assert_eq!(code, Some(0), "{errors}");
    assert!(report.contains("interactions: 4 synchronous"), "{report}");
    for warning in
        ["no effect on traces of this form (same): --entry-rule, --internal, --sampling-rate, --session-key", "b.log is empty: passed over"]
    {
        assert!(errors.contains(warning), "{errors}");
    }
    let spans = folder.path().join("spans.json");
    let span = r#"[{"traceId":"1","id":"1","name":"get","kind":"SERVER","timestamp":5,"duration":9,"localEndpoint":{"serviceName":"web"}},
        {"traceId":"1","id":"2","parentId":"1","name":"ask","kind":"SERVER","timestamp":6,"duration":2,"localEndpoint":{"serviceName":"db"}}]"#;
    fs::write(&spans, span).unwrap();
    let spans = ["extract", spans.to_str().unwrap(), "--entry-rule", "ge*=fetch", "--entry-rule", "gte*=other", "--timing", "reception"];
    let (code, report, errors) = layerfit(&spans);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("no effect on traces of this form (auto): --timing"), "{errors}");
    assert!(report.contains("unused_entry_rule (1 time)") && report.contains("      gte*=other\n"), "{report}");
}
