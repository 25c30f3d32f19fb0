//! `layerfit identify`, `layerfit design`, `fit --correct-solver`, `predict --solver-error`.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fs, path::Path};

use serde_json::Value;

use super::{done, layerfit};
use crate::api::{ONE_SERVER, one_server_trials};

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn from_a_plan_to_the_next_trial() {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "one.lqnx", ONE_SERVER);
    let plan = file(folder.path(), "plan.csv", "$users,throughput(User)\n1,\n2,\n4,\n");
    let expected = done(&["identify", &model, &plan, "--estimate", "demand=0.4", "--relative-error", "0.02"]);
    assert!(expected.contains("expected half-width") && expected.contains("3 planned values; rank 1 of 1"), "{expected}");
    let first = done(&["design", &model, "--estimate", "demand=0.4", "--measure", "throughput(User)", "--candidates", "users=1..9"]);
    assert!(first.contains("D-optimal") && first.contains("run: users="), "{first}");

    let trials = file(folder.path(), "trials.csv", &one_server_trials(6));
    let fit = folder.path().join("fit.json").to_str().unwrap().to_owned();
    done(&["fit", &model, &trials, "--estimate", "demand=0.4", "--out", &fit, "--correct-solver=0.05", "--seed", "3"]);
    let stored: Value = serde_json::from_str(&fs::read_to_string(&fit).unwrap()).unwrap();
    assert_eq!(stored["correction"]["outcome"], "settled");
    let points = file(folder.path(), "points.csv", "$users,cost\n2,1\n20,3\n40,9\n");
    let target = ["--for", "response_time(User)", "--at", "users=50"];
    let asked = ["design", &fit, "--points", &points, "--budget", "6", "--format", "json"];
    let design: Value = serde_json::from_str(&done(&[&asked[..], &target[..]].concat())).unwrap();
    assert!(design["total_cost"].as_f64().unwrap() <= 6.0 && design["criterion"]["c"]["at"]["users"] == 50.0, "{design}");
    let svg = folder.path().join("design.svg").to_str().unwrap().to_owned();
    let around = done(&["design", &fit, "--cost", "1 + $users", "--choose", "2", "--plot", &svg]);
    let drawn = fs::read_to_string(&svg).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("half-width, relative to now") && drawn.contains("demand"), "{drawn}");
    assert!(around.contains("one more measure, in all trials there are:") && around.contains("cost"), "{around}");
    let predicted = done(&["predict", &fit, "--at", "users=5", "--solver-error=0.05", "--format", "csv"]);
    assert!(predicted.lines().next().unwrap().contains("mean_simulated(throughput(User))"), "{predicted}");
}

#[test]
fn what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "one.lqnx", ONE_SERVER);
    let plan = file(folder.path(), "plan.csv", "$users,throughput(User)\n1,\n");
    let says = |arguments: &[&str], named: &str| {
        let (code, _, errors) = layerfit(arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains(named), "{arguments:?}: {errors}");
    };
    says(&["identify", &model, &plan, "--estimate", "demand"], "--estimate demand=START");
    says(&["identify", &model, &plan], "nothing to estimate");
    says(&["identify", &model, &plan, "--estimate", "demand=0.4", "--relative-error=-1"], "relative error");
    says(&["design", &model], "give a fit written by layerfit fit --out, or a model with --estimate");
    says(&["design", &model, "--estimate", "demand=0.4", "--candidates", "users=1..3"], "add --measure");
    says(&["design", &model, "--estimate", "demand=0.4", "--measure", "throughput(User)"], "--candidates");
    says(&["design", &model, "--criterion", "c"], "--for MEASURE");
    let base = ["design", &model, "--estimate", "demand=0.4", "--trials", &plan];
    says(&[&base[..], &["--candidates", "users=1..0:1"]].concat(), "--candidates");
    says(&[&base[..], &["--cost", "$nobody"]].concat(), "--cost");
    says(&[&base[..], &["--measure", "throughput(User)", "--measure", "throughput(User)"]].concat(), "throughput(User) is given twice");
    says(&[&base[..], &["--for", "throughput(User)", "--at", "users=1..3"]].concat(), "expected one");
    says(&["predict", &model, "--solver-error=0"], "relative half-width above 0");
}
