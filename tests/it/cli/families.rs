//! `layerfit family`, `track`, `fit --baselines` and `compare` of several fits.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fmt::Write as _, fs, path::Path};

use layerfit::{
    model::{Bindings, Measure, lqnx},
    solve::{SolveOptions, sensitivities},
};
use serde_json::Value;

use super::{done, layerfit};

const MODEL: &str = r#"<lqn-model name="queue"><processor name="p" scheduling="inf">
 <task name="users" scheduling="ref" multiplicity="$n" think-time="$z"><entry name="use" type="PH1PH2"><entry-phase-activities>
  <activity name="use1" phase="1" host-demand-mean="0"><synch-call dest="get" calls-mean="1"/></activity>
 </entry-phase-activities></entry></task></processor>
<processor name="q" scheduling="fcfs"><task name="server"><entry name="get" type="PH1PH2"><entry-phase-activities>
  <activity name="get1" phase="1" host-demand-mean="$d"/></entry-phase-activities></entry></task></processor></lqn-model>"#;

/// Ten trials of the model with think time 3 and demand 1, off by up to a percent.
fn trials() -> String {
    let model = lqnx::parse(MODEL).unwrap();
    let measures: Vec<Measure> = ["throughput(users)", "response_time(users)"].map(|m| m.parse().unwrap()).into();
    let mut csv = String::from("time,$n,throughput(users),response_time(users)\n");
    for t in 0..10 {
        let n = f64::from(t + 1);
        let values: Bindings = [("n", n), ("z", 3.0), ("d", 1.0)].into_iter().collect();
        let x = sensitivities(&model, &values, &[], &measures, &SolveOptions::default()).unwrap().values;
        let error = 0.01 * (1.7 * n).sin();
        let _ = writeln!(csv, "{t},{n},{},{}", x[0] * (1.0 + error), x[1] * (1.0 - 0.7 * error));
    }
    csv
}

fn files(folder: &Path) -> (String, String) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::write(path("queue.lqnx"), MODEL).unwrap();
    fs::write(path("trials.csv"), trials()).unwrap();
    (path("queue.lqnx"), path("trials.csv"))
}

#[test]
fn one_model_estimated_in_two_ways() {
    let folder = tempfile::tempdir().unwrap();
    let (model, trials) = files(folder.path());
    let fit = folder.path().join("fit.json");
    let asked = ["family", &model, &model, &trials, "--estimate", "d", "--estimate", "2:z=2", "--set", "1:z=3"];
    let text = done(&[&asked[..], &["--baselines"]].concat());
    assert!(text.contains("queue#1 in queue#2 (z = 3)") && text.contains("proposed: queue#1"), "{text}");
    assert!(text.contains("scalability law") && text.contains("estimates: d = "), "{text}");
    let json: Value =
        serde_json::from_str(&done(&[&asked[..], &["--format", "json", "--out-fit", fit.to_str().unwrap()]].concat())).unwrap();
    assert_eq!(json["proposed"]["name"], "queue#1");
    assert!(json["fits"]["queue#2"]["parameters"]["z"]["estimate"].is_number());
    assert!(done(&["predict", fit.to_str().unwrap(), "--at", "n=12"]).contains("12"));
}

#[test]
fn additions_are_tried_and_the_model_written() {
    let folder = tempfile::tempdir().unwrap();
    let (model, trials) = files(folder.path());
    let out = folder.path().join("proposed.lqnx");
    // Customers that are said not to think do: a delay is missing.
    let asked = ["family", &model, &trials, "--estimate", "d", "--set", "z=0", "--stepwise", "--add", "delay", "--max-additions", "1"];
    let text = done(&[&asked[..], &["--out", out.to_str().unwrap()]].concat());
    assert!(text.contains("round 1: 2 candidates") && text.contains("proposed: add a pure delay"), "{text}");
    assert!(done(&["solve", out.to_str().unwrap(), "--set", "n=5", "--format", "json"]).contains("\"converged\": true"));
}

#[test]
fn tracks_are_printed_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (model, trials) = files(folder.path());
    let plot = folder.path().join("track.svg");
    let asked = ["track", &model, &trials, "--estimate", "d", "--set", "z=3"];
    let text = done(&[&asked[..], &["--drift", "d=0.02", "--plot", plot.to_str().unwrap()]].concat());
    assert!(text.contains("d: drift 0.02 in one unit of time (given)"), "{text}");
    assert!(fs::read_to_string(plot).unwrap().starts_with("<svg"));
    let csv = done(&[&asked[..], &["--log", "d", "--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), 11);
    let json: Value = serde_json::from_str(&done(&[&asked[..], &["--drift", "d=0", "--format", "json"]].concat())).unwrap();
    assert_eq!(json["timed"], true);
}

#[test]
fn a_fit_stands_beside_black_boxes_and_among_others() {
    let folder = tempfile::tempdir().unwrap();
    let (model, trials) = files(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let base = ["fit", &model, &trials, "--estimate", "d"];
    let plot = path("beside.svg");
    let json = done(&[&base[..], &["--set", "z=3", "--baselines", "--plot", &plot, "--format", "json", "--out", &path("a.json")]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["baselines"]["measures"]["throughput(users)"]["scalability"]["sigma"]["estimate"].is_number());
    assert!(fs::read_to_string(plot).unwrap().starts_with("<svg"));
    done(&[&base[..], &["--estimate", "z", "--out", &path("b.json")]].concat());
    done(&[&base[..], &["--set", "z=4", "--out", &path("c.json")]].concat());
    let text = done(&["compare", &path("a.json"), &path("b.json"), &path("c.json")]);
    assert!(text.contains("proposed: a") && text.contains("not c: "), "{text}");
    assert!(done(&["compare", &path("a.json"), &path("b.json")]).contains("preferred: fit 1"));
}

#[test]
fn bad_arguments_are_the_users_fault() {
    let folder = tempfile::tempdir().unwrap();
    let (model, trials) = files(folder.path());
    for (arguments, said) in [
        (vec!["family", &model, &trials, "--estimate", "d"], "--stepwise"),
        (vec!["family", &model, &model, &trials, "--estimate", "d", "--estimate", "3:z"], "there is no model \"3\""),
        (vec!["family", &model, &model, &trials, "--estimate", "speed"], "no model uses $speed"),
        (vec!["track", &model, &trials, "--estimate", "d", "--set", "z=3", "--drift", "d=-1"], "expected NAME or NAME=STD"),
        (vec!["track", &model, &trials, "--estimate", "d", "--set", "z=3", "--drift", "z"], "it is not estimated"),
        (vec!["fit", &model, &trials, "--estimate", "d", "--set", "z=3", "--baselines", "--hold-out", "1"], "hold out"),
    ] {
        let (code, _, errors) = layerfit(&arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    }
}
