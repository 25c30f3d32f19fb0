//! What is given to subcommands and cannot be used: names that the model does not have, values that it cannot have.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fs, path::Path};

use super::layerfit;

/// Customers, and requests from outside, at one server.
const MODEL: &str = "P 0 p pc i p ps f -1
T 0 t users r use -1 pc z $think m $users t server n get -1 ps -1
E 0 s use 0 -1 y use get 1 -1 s get $demand -1 -1
";

/// Requests from outside only.
const OPEN: &str = "P 0 p ps f -1
T 0 t server n get -1 ps -1
E 0 a get $rate s get $demand -1 -1
";

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn refused(arguments: &[&str], expected: &str) {
    let (code, data, errors) = layerfit(arguments);
    assert_eq!((code, data.as_str()), (Some(1), ""), "{errors}");
    assert!(errors.contains(expected), "{expected}: {errors}");
}

#[test]
fn unknown_parameters_are_named_with_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path(), "m.lqn", MODEL);
    let known = ["--set", "think=1", "--set", "users=2", "--set", "demand=0.1"];
    let unknown = "the model has no parameter $usres (it has $users, ";
    let (code, _, errors) = layerfit(&[&["solve", &model][..], &known].concat());
    assert_eq!(code, Some(0), "{errors}");
    refused(&[&["solve", &model][..], &known, &["--set", "usres=3"]].concat(), &format!("--set usres=3: {unknown}"));
    let simulate = [&["simulate", &model, "--time", "100"][..], &known].concat();
    refused(&[&simulate[..], &["--set", "$usres=3"]].concat(), &format!("--set $usres=3: {unknown}"));
    refused(&[&simulate[..], &["--trials", "usres=1..3"]].concat(), &format!("--trials usres=1..3: {unknown}"));
    refused(&[&simulate[..], &["--trials", "users=1", "--trials", "users=2"]].concat(), "--trials users=2: users is given twice");
    let trials = written(folder.path(), "t.csv", "$users,throughput(users)\n1,0.9\n2,1.7\n3,2.4\n");
    let rest = ["--estimate", "demand=0.1", "--set", "think=1", "--set", "usres=3"];
    refused(&[&["fit", &model, &trials][..], &rest].concat(), "assumed parameter \"usres\" is not used in the model");
    for command in [&["family", &model, &model, &trials][..], &["track", &model, &trials]] {
        refused(&[command, &rest].concat(), &format!("--set usres=3: {unknown}"));
    }
}

#[test]
fn controlled_values_that_the_model_cannot_have_are_named_by_row_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path(), "m.lqn", MODEL);
    for (row, expected) in [
        ("1.5,1", "row 2 of the trials (trial \"2\"), column $users: task \"users\""),
        ("-1,1", "row 2 of the trials (trial \"2\"), column $users: task \"users\""),
        ("3,-1", "row 2 of the trials (trial \"2\"), column $think: task \"users\""),
    ] {
        let trials = format!("$users,$think,throughput(users)\n1,1,0.9\n{row},1.7\n2,1,1.7\n4,1,2.4\n");
        let trials = written(folder.path(), "t.csv", &trials);
        refused(&["fit", &model, &trials, "--estimate", "demand"], expected);
    }
}

#[test]
fn predictions_without_any_solution_fail_and_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path(), "open.lqn", OPEN);
    let trials = written(folder.path(), "t.csv", "$rate,utilization(ps)\n0.1,0.1\n0.2,0.21\n0.3,0.29\n0.4,0.4\n");
    let fit = folder.path().join("fit.json");
    let fit = fit.to_str().unwrap();
    let (code, _, errors) = layerfit(&["fit", &model, &trials, "--estimate", "demand=1", "--out", fit]);
    assert_eq!(code, Some(0), "{errors}");
    let (code, rows, errors) = layerfit(&["predict", fit, "--at", "rate=2..3", "--format", "csv"]);
    assert_eq!((code, rows.lines().count()), (Some(1), 3), "{errors}");
    assert!(errors.contains("error: no operating point has a solution: ") && errors.contains("no steady state"), "{errors}");
    let (code, rows, errors) = layerfit(&["predict", fit, "--at", "rate=0.5..2.5", "--format", "csv"]);
    assert_eq!((code, rows.lines().count()), (Some(0), 4), "{errors}");
    assert!(errors.contains("warning: 2 of 3 operating points have no solution"), "{errors}");
    refused(&["predict", fit, "--at", "rate=1..1e19"], "--at rate=1..1e19: more than 100000 operating points: take larger steps");
}

#[test]
fn a_run_that_fails_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path(), "open.lqn", OPEN);
    let trace = folder.path().join("run.json");
    let trace = trace.to_str().unwrap();
    let run = ["simulate", &model, "--set", "rate=20", "--set", "demand=1", "--time", "1e9", "--trace", trace, "--trace-format", "otlp"];
    refused(&run, "no steady state");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_has_no_value_is_said_with_the_options_that_give_one() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path(), "m.lqn", MODEL);
    let trials = written(folder.path(), "t.csv", "$users,throughput(users)\n1,0.9\n2,1.7\n3,2.4\n");
    for command in [&["fit", &model, &trials, "--estimate", "demand"][..], &["track", &model, &trials, "--estimate", "demand"]] {
        refused(command, "parameter $think has no value: it is neither estimated nor assumed, and the trials have no column $think");
        refused(command, "hint: say --estimate think=START or --set think=VALUE, or give the trials a column $think");
    }
    let fit = ["fit", &model, &trials, "--estimate", "demand", "--set", "think=1"];
    refused(&[&fit[..], &["--resample", "trials"]].concat(), "--bootstrap");
    refused(&["demo", "--out", folder.path().join("none").to_str().unwrap()], "there is no such folder");
    refused(&["demo", "--out", &trials], "not a folder");
}

#[test]
fn pragmas_that_are_not_known_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let text = written(folder.path(), "m.lqn", &format!("#pragma speeed=high\n#pragma mva=exact\n{OPEN}"));
    let xml = r#"<lqn-model name="m"><solver-params><pragma param="speeed" value="high"/></solver-params>
<processor name="p"><task name="t"><entry name="e" type="PH1PH2" open-arrival-rate="1"><entry-phase-activities>
<activity name="e1" phase="1" host-demand-mean=".1"/></entry-phase-activities></entry></task></processor></lqn-model>"#;
    let xml = written(folder.path(), "m.lqnx", xml);
    for command in [&["solve", &text, "--set", "rate=1", "--set", "demand=.1"][..], &["solve", &xml]] {
        let (code, _, errors) = layerfit(command);
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(errors.matches("is not known: it is kept and not acted on").count(), 1, "{errors}");
        assert!(errors.contains("warning: ") && errors.contains("pragma \"speeed\""), "{errors}");
    }
}
