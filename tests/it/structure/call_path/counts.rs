//! Which requests count, and for how much.

use layerfit::{
    structure::{ExtractOptions, Extraction, call_path::Slot, extract},
    trace::{Format, Source},
};

use super::{CallPathOptions, FlowNode, HEADER, Records, close, found, mean_calls, model_calls, service};
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

/// An exit before its entry: neither how long that execution worked nor how long the one that waited for it is known, and both are told.
#[test]
fn times_that_are_not_possible_are_told_and_not_counted() {
    let csv = "record_id,time,kind,component,method,context_id,transaction_id\n\
        1,0,entry,A,x,c0,t\n2,100,entry,B,y,c0,t\n3,50,exit,B,y,c0,t\n4,600,exit,A,x,c0,t\n\
        5,1000,entry,A,x,c1,u\n6,1100,entry,B,y,c1,u\n7,1500,exit,B,y,c1,u\n8,1600,exit,A,x,c1,u\n\
        9,2000,entry,A,x,c2,v\n10,2100,entry,B,y,c2,v\n11,2900,exit,B,y,c2,v\n12,2600,exit,A,x,c2,v\n";
    let (finished, _) = found(csv, &CallPathOptions::default());
    let count = |code: &str| finished.report.diagnostics.iter().find(|d| d.code == code).map_or(0, |d| d.count);
    assert_eq!(count("negative_response"), 1);
    let of = |method: &str| finished.report.services.iter().find(|service| service.method == method).unwrap();
    assert_eq!(of("y").mean_self_ns, Some(f64::midpoint(400.0, 800.0)));
    assert_eq!(of("x").mean_duration_ns, Some(600.0));
    assert_eq!(count("outside_of_caller"), 1);
}

/// From the call to the return the caller's clock counts, whatever the callee's server says.
#[test]
fn calls_stand_where_the_caller_made_them() {
    let csv = "record_id,time,kind,component,method,context_id,transaction_id,server\n\
        1,0,entry,A,x,c,t,S1\n2,1000,call,B,y,c,t,S1\n3,5000100,entry,B,y,c,t,S2\n4,5000200,exit,B,y,c,t,S2\n\
        5,1300,return,B,y,c,t,S1\n6,1310,exit,A,x,c,t,S1\n";
    let (finished, _) = found(csv, &CallPathOptions::default());
    let service = finished.report.services.iter().find(|service| service.method == "x").unwrap();
    let times: Vec<f64> =
        service.flow.iter().filter_map(|node| if let FlowNode::Internal { mean_ns, .. } = node { Some(*mean_ns) } else { None }).collect();
    assert_eq!((times.as_slice(), service.mean_self_ns), ([1000.0, 10.0].as_slice(), Some(1010.0)));
}

/// A record that is there twice, whichever it is, changes nothing but that it is counted.
#[test]
fn records_that_are_there_twice_are_dropped() {
    let rows: Vec<String> = "10,entry,A,x 20,entry,B,y 30,exit,B,y 40,entry,C,z 50,exit,C,z 60,entry,C,z 70,exit,C,z 80,exit,A,x"
        .split(' ')
        .enumerate()
        .map(|(i, row)| format!("{},{row},c,t\n", i + 1))
        .collect();
    let with_twice = |twice: Option<usize>| {
        let all = rows.iter().enumerate().map(|(i, row)| if twice == Some(i) { format!("{row}{row}") } else { row.clone() });
        let csv = format!("record_id,time,kind,component,method,context_id,transaction_id\n{}", all.collect::<String>());
        found(&csv, &CallPathOptions::default()).0.report
    };
    let plain = with_twice(None);
    assert_eq!(plain.records.duplicates, 0);
    for twice in 0..rows.len() {
        let report = with_twice(Some(twice));
        assert_eq!((report.records.duplicates, &report.services), (1, &plain.services), "{twice}");
        let count = |code: &str| report.diagnostics.iter().find(|d| d.code == code).map_or(0, |d| d.count);
        assert_eq!((count("duplicate_record"), count("orphan_exit"), count("truncated_path")), (1, 0, 0), "{twice}");
    }
}
