//! What was measured beside the records: demands that follow from it, and the delays of connections.

use layerfit::{
    structure::{ExtractOptions, Extraction, extract, option_file::parse_options},
    trace::{Format, Source},
};

/// A on one server calls B on another twice, and itself takes 30 ms; B takes 30 ms each time.
const LOG: &str = "time,kind,component,method,context_id,server\n\
    0,entry,A,x,c,s1\n\
    10000000,entry,B,y,c,s2\n40000000,exit,B,y,c,s2\n\
    50000000,entry,B,y,c,s2\n80000000,exit,B,y,c,s2\n\
    90000000,exit,A,x,c,s1\n";

fn extracted(options: &str) -> Extraction {
    let options = ExtractOptions::default().asking(parse_options("o.toml", options).unwrap());
    extract(&[Source { name: "l.csv", bytes: LOG.as_bytes() }], Format::CallPath, &options).unwrap()
}

fn demand(extraction: &Extraction, entry: &str) -> f64 {
    let entries = extraction.model.tasks.iter().flat_map(|task| &task.entries);
    let found = entries.into_iter().find(|e| e.name == entry).unwrap();
    found.phases[0].activity.host_demand.literal().unwrap()
}

/// U = .6 of one core at 20 and 10 executions a second, R = 30 and 30 ms, but 60 ms at the resource for B: D = 15 and 30 ms; with
/// κ = (.54/36)/(.60/35) = .875 of that.
#[test]
fn demands_follow_from_utilization_and_reach_the_model() {
    let resource = "[[call_path.resources]]\nname = \"cpu\"\n\
        intervals = [{ utilization = 0.6, throughputs_per_s = { \"A.x\" = 20, \"B.y\" = 10 } }]\nresponse_times_s = { \"B.y\" = 0.06 }\n";
    let plain = extracted(resource);
    let with_overhead = extracted(&format!("{resource}overhead = [[0.54, 36], [0.60, 35]]\n"));
    for (entry, expected) in [("s1::A.x", 0.015), ("s2::B.y", 0.030)] {
        assert!((demand(&plain, entry) - expected).abs() < 1e-12);
        assert!((demand(&with_overhead, entry) - 0.875 * expected).abs() < 1e-12);
    }
    assert_eq!(plain.findings.unwrap()["demands"][0]["rule"], "response_time_ratios");
    assert!((demand(&extracted(""), "s1::A.x") - 0.03).abs() < 1e-12);
}

/// δ between 10 ms without load and 30 ms at 10 requests a second; a request connects to A, and from there to B's server twice.
#[test]
fn connections_to_other_servers_add_their_delay() {
    let options = "[call_path.connection_delay]\nsamples = [[0, 0.01], [10, 0.03]]\n";
    let findings = |options: &str| extracted(options).findings.unwrap()["connection_delays"].clone();
    let at_5 = findings(&format!("[call_path]\nload_per_s = 5\n{options}"));
    assert_eq!((at_5[0]["service"].as_str(), at_5.as_array().unwrap().len()), (Some("A.x"), 1));
    for (key, expected) in [("connections", 3.0), ("delay_s", 0.02), ("added_s", 0.06)] {
        assert!((at_5[0][key].as_f64().unwrap() - expected).abs() < 1e-12, "{key}");
    }
    // One request in 90 ms.
    assert!((findings(options)[0]["load_per_s"].as_f64().unwrap() - 1.0 / 0.09).abs() < 1e-9);
    assert!(findings("").is_null());
}

#[test]
fn measurements_out_of_range_are_refused() {
    let refused = |text: &str| {
        let options = ExtractOptions::default().asking(parse_options("o.toml", text).unwrap());
        extract(&[Source { name: "l.csv", bytes: LOG.as_bytes() }], Format::CallPath, &options).unwrap_err().to_string()
    };
    let resource = |rest: &str| format!("[[call_path.resources]]\nname = \"cpu\"\n{rest}\n");
    assert_eq!(refused(&resource("cores = 0\nintervals = []")), "a resource is cpu: cores 0, expected cores above 0");
    let throughput = resource("intervals = [{ utilization = 0.5, throughputs_per_s = { x = -1 } }]");
    assert_eq!(refused(&throughput), "a resource is cpu: throughput -1, expected throughputs of 0 or more");
    assert_eq!(refused("[call_path]\nbinning = { equidistant = 0 }\n"), "binning is 0 bins, expected 1 or more");
    assert_eq!(
        refused("[call_path.connection_delay]\nsamples = [[1, -1]]\n"),
        "a sample of connection_delay is (1, -1), expected a load and seconds, each 0 or more"
    );
}

/// Times in another unit are those of nanoseconds, of CSV and of Kieker's logs, whatever these say themselves.
#[test]
fn times_are_in_the_unit_that_is_said() {
    let map = "$0=kieker.common.record.misc.KiekerMetadataRecord\n$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
    // Milliseconds, with as many zeros as the unit needs.
    let csv = "time,kind,component,method,context_id,server\n\
        0,entry,A,x,c,s1\n10~,entry,B,y,c,s2\n40~,exit,B,y,c,s2\n70~,exit,A,x,c,s1\n";
    let log = "$0;0;1.15;load;web;1;false;0;NANOSECONDS;1\n\
        $1;9;void B.y();s;7;10~;40~;s2;1;1\n$1;9;void A.x();s;7;0;70~;s1;0;0\n";
    for (unit, zeros) in [("nanoseconds", 6), ("microseconds", 3), ("milliseconds", 0)] {
        let options = ExtractOptions::default().asking(parse_options("o.toml", &format!("[call_path]\ntime_unit = \"{unit}\"\n")).unwrap());
        let [csv, log] = [csv, log].map(|text| text.replace('~', &"0".repeat(zeros)));
        let kieker = [("l/kieker.map", map), ("l/kieker-1.dat", &log)].map(|(name, text)| Source { name, bytes: text.as_bytes() });
        let records = extract(&[Source { name: "l.csv", bytes: csv.as_bytes() }], Format::CallPath, &options).unwrap();
        let executions = extract(&kieker, Format::Kieker, &options).unwrap();
        for (extraction, entries) in [(records, ["s1::A.x", "s2::B.y"]), (executions, ["s1::A.x()", "s2::B.y()"])] {
            for (entry, expected) in entries.into_iter().zip([0.04, 0.03]) {
                let found = extraction.tasks.iter().flat_map(|task| &task.entries).find(|known| known.name == entry).unwrap();
                assert!((found.self_times[0].unwrap() - expected).abs() < 1e-12, "{entry} in {unit}: {found:?}");
            }
        }
    }
}
