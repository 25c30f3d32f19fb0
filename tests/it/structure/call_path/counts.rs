//! Which requests count, and for how much.

use layerfit::{
    structure::{ExtractOptions, Extraction, call_path::Slot, extract},
    trace::{Format, Source},
};

use super::{CallPathOptions, HEADER, Records, close, found, mean_calls, model_calls, service};
use crate::structure::{calls, count};

fn extracted(files: &[&str], call_path: CallPathOptions) -> Extraction {
    let sources: Vec<Source<'_>> = files.iter().map(|text| Source { name: "records.csv", bytes: text.as_bytes() }).collect();
    extract(&sources, Format::CallPath, &ExtractOptions { call_path, ..ExtractOptions::default() }).unwrap()
}

#[test]
fn an_exit_without_entry_is_dropped_and_its_request_stays() {
    let mut records = Records::default();
    records.add("c", "t", "x:A(y:B)").add("e", "t", "x:A");
    let csv = format!("{HEADER}0,5,exit,Z,z,c,t,,\n{}", records.csv);
    let (finished, all) = found(&csv, &CallPathOptions::default());
    assert_eq!((finished.diagnostics.count("orphan_exit"), finished.diagnostics.count("requests_left_out")), (1, 0));
    assert_eq!((finished.report.paths.partial, all.traces.len()), (0, 2));
    assert_eq!(model_calls(all), ["A.x sync 0.5 B.y", "Client.1 sync 1 A.x"]);
}

#[test]
fn requests_that_are_left_out_are_counted_and_named() {
    let mut records = Records::default();
    records.add("whole", "t", "x:A(y:B)");
    let whole = format!("{HEADER}{}", records.csv);
    let cut = format!("{HEADER}1,10,entry,A,x,cut,t,,\n");
    for files in [[whole.as_str(), cut.as_str()], [cut.as_str(), whole.as_str()]] {
        let extraction = extracted(&files, CallPathOptions::default());
        let told = extraction.diagnostics.iter().find(|d| d.code == "requests_left_out").unwrap();
        assert_eq!((told.count, told.examples.as_slice()), (1, ["cut".to_owned()].as_slice()));
    }
    let extraction = extracted(&[&cut, &cut.replace("cut", "too")], CallPathOptions::default());
    assert_eq!((count(&extraction, "requests_left_out"), count(&extraction, "only_partial_paths")), (0, 1));
}

/// S_x of the specification's second vector, of which the first 30 were recorded at a tenth of the rate.
#[test]
fn shares_that_were_recorded_scale_throughputs_and_no_probabilities() {
    let mut records = Records::default();
    for n in 0..100 {
        let path = ["x:A(y:B)", "x:A(z:B)", "x:A(z:B z:B)"][usize::from(n >= 30) + usize::from(n >= 80)];
        records.add(&format!("c{n}"), "t", path);
    }
    records.add("other", "t", "w:D");
    let csv = format!("{HEADER}{}", records.csv);
    let slots = vec![Slot { from_ns: 0, until_ns: 1205, rate: 0.1 }];
    let extraction = extracted(&[&csv], CallPathOptions { slots, ..CallPathOptions::default() });
    let mut found: Vec<String> = calls(&extraction.model);
    found.sort();
    let from_outside: Vec<String> = found.iter().filter(|call| call.starts_with("Client.1")).cloned().collect();
    assert_eq!(found[..2], ["A.x sync 0.3 B.y", "A.x sync 0.9 B.z"]);
    // 30 of the 100 stand for ten each.
    let mean = |call: &str| call.split(' ').nth(2).unwrap().parse::<f64>().unwrap();
    close(mean(&from_outside[0]), 1.0 / 371.0);
    close(mean(&from_outside[1]), 370.0 / 371.0);
}

#[test]
fn calls_inside_of_marked_actions_are_calls_of_their_service() {
    let mut records = Records::default();
    for path in ["x:A(b:A!branch(1)(y:B) w:C)", "x:A(l:A!loop(i:A!iteration(y:B) i:A!iteration(y:B)))"] {
        records.add(path, "t", path);
    }
    let (finished, all) = records.found(&CallPathOptions::default());
    let of_x = service(&finished, "A", "x");
    assert_eq!((of_x.calls.len(), mean_calls(of_x, "B", "y"), mean_calls(of_x, "C", "w")), (2, 1.5, 0.5));
    assert_eq!(model_calls(all), ["A.x sync 0.5 C.w", "A.x sync 1.5 B.y", "Client.1 sync 1 A.x"]);
}
