//! `layerfit simulate`, and `layerfit solve --solver simulate`.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fs, path::Path};

use layerfit::{fit::Trials, solve::Solution};

use super::layerfit;

const MODEL: &str = r#"<lqn-model name="queue"><processor name="p" scheduling="inf">
 <task name="users" scheduling="ref" multiplicity="$n" think-time="3"><entry name="use" type="PH1PH2"><entry-phase-activities>
  <activity name="use1" phase="1" host-demand-mean="0" call-order="DETERMINISTIC"><synch-call dest="get" calls-mean="1"/></activity>
 </entry-phase-activities></entry></task></processor>
<processor name="q" scheduling="fcfs"><task name="server"><entry name="get" type="PH1PH2"><entry-phase-activities>
  <activity name="get1" phase="1" host-demand-mean="1" max-service-time="2"/></entry-phase-activities></entry></task></processor></lqn-model>"#;

fn model(folder: &Path) -> String {
    let path = folder.join("queue.lqnx");
    fs::write(&path, MODEL).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Of open arrivals the default columns have throughput and response time: of M/M/1, 1 / (1 - .5).
#[test]
fn open_arrivals_are_measured_without_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("open.lqn");
    fs::write(&path, "P 0\np pp f\n-1\nT 0\nt tt n ee -1 pp\n-1\nE 0\ns ee 1.0 -1\na ee 0.5\n-1\n").unwrap();
    let (code, table, errors) = layerfit(&["simulate", path.to_str().unwrap(), "--time", "200000"]);
    assert_eq!(code, Some(0), "{errors}");
    let trials = Trials::from_csv(table.as_bytes()).unwrap();
    let value = |name: &str| {
        let place = trials.measures.iter().position(|m| m.to_string() == name).unwrap();
        trials.trials[0].measured[place].unwrap()
    };
    assert!((value("throughput(ee)").value - 0.5).abs() < 0.02);
    let response = value("response_time(ee)");
    assert!((response.value - 2.0).abs() < 4.0 * response.std_error.unwrap() && response.std_error.unwrap() < 0.1, "{response:?}");
}

#[test]
fn trials_repeat_and_are_what_a_fit_takes() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let run = |seed: &str, threads: &str| {
        let (code, table, errors) =
            layerfit(&["simulate", &model, "--trials", "n=1..5:2", "--time", "3000", "--seed", seed, "--threads", threads]);
        assert_eq!(code, Some(0), "{errors}");
        table
    };
    let table = run("1", "1");
    assert_eq!(table, run("1", "3"));
    assert_ne!(table, run("2", "1"));
    let header = table.lines().next().unwrap();
    let measures = ["throughput(users)", "response_time(users)", "utilization(p)", "utilization(q)", "utilization(server)"];
    let columns: Vec<String> = measures.iter().flat_map(|m| [(*m).to_owned(), format!("stderr({m})")]).collect();
    assert_eq!(header, format!("trial,$n,{},duration", columns.join(",")));
    let trials = Trials::from_csv(table.as_bytes()).unwrap();
    assert_eq!(trials.trials.len(), 3);
    let x: Vec<f64> = table.lines().skip(1).map(|row| row.split(',').nth(2).unwrap().parse().unwrap()).collect();
    let error: Vec<f64> = table.lines().skip(1).map(|row| row.split(',').nth(3).unwrap().parse().unwrap()).collect();
    // Machine repair with 1, 3 and 5 machines up for 3 and repaired in 1: 1 - p(0).
    for ((x, error), want) in x.iter().zip(error).zip([1.0 / 4.0, 17.0 / 26.0, 1.0 - 1.0 / 9.005]) {
        assert!(error > 0.0 && (x - want).abs() < 4.0 * error + 0.01, "{x} ± {error}, want {want}");
    }
}

#[test]
fn negative_numbers_are_values_and_names_stand_once() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    for (arguments, expected) in [
        (&["--set", "n=1", "--time", "-5"][..], "the run time is -5, expected more than 0"),
        (&["--set", "n=1", "--set", "n=2", "--time", "5"], "--set n=2: n is given twice"),
    ] {
        let (code, _, errors) = layerfit(&[&["simulate", &model], arguments].concat());
        assert_eq!(code, Some(1), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn what_was_never_observed_is_an_empty_cell() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    // A request takes 1 after thinking for 3 on average: in 0.05 none is served.
    let measures = ["--measure", "throughput(users)", "--measure", "response_time(users)", "--measure", "response_time(get)"];
    let arguments = [&["simulate", &model, "--set", "n=1", "--time", "0.05"][..], &measures].concat();
    let (code, table, errors) = layerfit(&arguments);
    assert_eq!(code, Some(0), "{errors}");
    assert!(table.lines().nth(1).unwrap().starts_with("1,0,,,,,,"), "{table}");
    assert!(errors.contains("trial 1: response_time(get) was never observed, its cell is empty"), "{errors}");
    assert!(errors.contains("no cycle of task \"users\" ended in the time measured"), "{errors}");
    let trials = Trials::from_csv(table.as_bytes()).unwrap();
    assert_eq!(trials.trials[0].measured.iter().map(|m| m.map(|m| m.value)).collect::<Vec<_>>(), [Some(0.0), None, None]);
}

#[test]
fn solutions_say_what_was_never_observed() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let arguments = ["solve", &model, "--solver", "simulate", "--set", "n=1", "--time", "0.05", "--replications", "1"];
    let (code, text, errors) = layerfit(&arguments);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("NOT CONVERGED") && text.contains("not observed") && !text.contains('±'), "{text}");
    let (_, json, _) = layerfit(&[&arguments[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["converged"], false);
    assert_eq!(json["entries"]["get"]["service_times"], serde_json::json!([null]));
    assert_eq!((&json["calls"][0]["waiting"], &json["entries"]["get"]["throughput"]), (&serde_json::Value::Null, &serde_json::json!(0.0)));
    assert!(json["entries"]["get"].get("throughput_half_width").is_none(), "{json}");
}

#[test]
fn solutions_have_response_times() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let arguments = ["solve", &model, "--solver", "simulate", "--set", "n=1", "--time", "2000", "--replications", "3"];
    let (code, text, errors) = layerfit(&[&arguments[..], &["--quantile", "0.8"]].concat());
    assert_eq!(code, Some(0), "{errors}");
    for part in ["0.8 quantile (bounds)", "entry get, phase 1: 0.1", "of the service times exceed 2"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(errors.contains("in 3 replications"), "{errors}");
    let json = |threads: &str| {
        let (code, text, errors) = layerfit(&[&arguments[..], &["--format", "json", "--threads", threads]].concat());
        assert_eq!(code, Some(0), "{errors}");
        text
    };
    assert_eq!(json("1"), json("2"));
    let solution: Solution = serde_json::from_str(&json("1")).unwrap();
    assert_eq!(solution.entries["get"].response_time.as_ref().unwrap().quantiles.len(), 4);
}

#[test]
fn options_that_cannot_be_used_are_the_callers_fault() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    for (option, value, named) in [
        ("--precision", "0", "precision"),
        ("--time", "-1", "time"),
        ("--replications", "0", "replications"),
        ("--confidence", "1", "confidence"),
        ("--quantile", "2", "quantile"),
    ] {
        let option = format!("{option}={value}");
        let (code, _, errors) = layerfit(&["solve", &model, "--solver", "simulate", "--set", "n=1", &option]);
        assert_eq!(code, Some(1), "{option}: {errors}");
        assert!(errors.contains(named), "{option}: {errors}");
    }
    let (code, _, errors) = layerfit(&["simulate", &model, "--time", "100"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("$n") && errors.contains("--trials"), "{errors}");
}

/// Nothing is simulated, for what would be ages, where a later trial cannot be.
#[test]
fn trials_are_checked_before_the_first_is_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    for (arguments, expected) in [
        (&["--trials", "n=1..2:.5"][..], "trial 2: task \"users\": its multiplicity is 1.5"),
        (&["--set", "n=1", "--measure", "throughput(users)", "--measure", "throughput( users )"], "throughput(users) is given twice"),
        (&["--set", "n=1", "--measure", "throughput(nobody)"], "nobody"),
        (&["--set", "n=4294967296"], "its multiplicity is 4294967296, expected at most 1000000"),
        (&["--set", "n=1e300"], "its multiplicity is 1e300, expected at most 1000000"),
    ] {
        let (code, data, errors) = layerfit(&[&["simulate", &model, "--time", "1e15"], arguments].concat());
        assert_eq!((code, data.as_str()), (Some(1), ""), "{errors}");
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
    let (_, _, errors) = layerfit(&["simulate", &model, "--set", "n=1", "--time", "1e400"]);
    assert!(errors.contains("the run time is not finite"), "{errors}");
    let (_, _, errors) = layerfit(&["solve", &model, "--set", "n=4294967296"]);
    assert!(errors.contains("it must be at most 4294967295"), "{errors}");
    let (_, _, errors) = layerfit(&["solve", &model]);
    assert!(errors.contains("parameter $n has no value") && errors.contains("hint: say --set n=VALUE"), "{errors}");
}

#[test]
fn options_that_have_no_effect_on_a_trace_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let trace = folder.path().join("run");
    let run =
        ["simulate", &model, "--set", "n=1", "--time", "50", "--trace", trace.to_str().unwrap(), "--sampled", "0.5", "--linked-traces"];
    for (form, is_told) in [("same", true), ("event-trace", true), ("otlp", false)] {
        let (code, _, errors) = layerfit(&[&run[..], &["--trace-format", form]].concat());
        assert_eq!(code, Some(0), "{errors}");
        let told = format!("warning: no effect on traces of this form ({form}): --sampled, --linked-traces");
        assert_eq!(errors.contains(&told), is_told, "{errors}");
    }
    let (code, _, errors) = layerfit(&[&run[..], &["--replications", "3"]].concat());
    assert_eq!(code, Some(1));
    assert!(errors.contains("cannot be used with"), "{errors}");
}
