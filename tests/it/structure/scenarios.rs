//! Traces of several scenarios make one model, under a usage profile.

use layerfit::{
    structure::{ExtractOptions, Extraction, extract},
    trace::{Format, Source, SourcesAre},
};

use super::{
    calls, check_calls, count, messages,
    models::{check_cycle, check_valid},
    records, reference_tasks,
};

fn extract_all(logs: &[(&str, &str)], options: &ExtractOptions) -> Result<Extraction, String> {
    let sources: Vec<Source<'_>> = logs.iter().map(|(name, text)| Source { name, bytes: text.as_bytes() }).collect();
    extract(&sources, Format::Same, options).map_err(|error| error.to_string())
}

fn profile(weights: &[(&str, f64)]) -> ExtractOptions {
    let usage_profile = weights.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect();
    ExtractOptions { usage_profile, ..ExtractOptions::default() }
}

/// Browsing asks the server, which asks the database; buying also asks for billing, and the server is asked twice.
const BROWSE: &str = "sender,receiver,time,operation\nuser,web,1,browse\nweb,db,2,read\ndb,web,3,\nweb,user,4,\n";
const BUY: &str = "sender,receiver,time,operation\nshopper,web,1,browse\nweb,db,2,read\ndb,web,3,\nweb,shopper,4,\n\
                   shopper,web,5,buy\nweb,billing,6,bill\nbilling,web,7,\nweb,db,8,read\ndb,web,9,\nweb,shopper,10,\n";

#[test]
fn one_client_makes_the_initial_requests_in_proportion() {
    let logs = [("logs/browse.csv", BROWSE), ("logs/buy.csv", BUY)];
    let found = extract_all(&logs, &profile(&[("browse", 3.0), ("buy", 1.0)])).unwrap();
    // A run browses once in either scenario, and buys in every fourth.
    check_calls(
        &found,
        &[
            "Client.1 sync 1 web.browse",
            "Client.1 sync 0.25 web.buy",
            "web.browse sync 1 db.read",
            "web.buy sync 1 billing.bill",
            "web.buy sync 1 db.read",
        ],
    );
    // 1 ms of the client, 2 ms to browse, a quarter of 3 ms to buy.
    check_cycle(&found.model, "Client", 0.00375);
    assert_eq!(reference_tasks(&found.model), ["Client"]);
    assert_eq!(found.model.name, "combined");
    let shares: Vec<_> = found.scenarios.iter().map(|s| (s.name.as_str(), s.traces, s.probability)).collect();
    assert_eq!(shares, [("browse", 1, 0.75), ("buy", 1, 0.25)]);
    let weights: Vec<_> = found.tasks.iter().flat_map(|t| &t.entries).map(|e| (e.name.as_str(), e.occurrences)).collect();
    assert_eq!(weights, [("Client.1", 3), ("web.browse", 2), ("web.buy", 1), ("db.read", 3), ("billing.bill", 1)]);
    assert!(records(&found).contains(&"sync buy:web.2@6 billing".replace("billing", "buy:billing.1@7")));
}

#[test]
fn without_a_profile_every_trace_is_a_run() {
    let logs = [("browse.1.csv", BROWSE), ("buy.csv", BUY), ("other/browse.1.csv.gz", BROWSE)];
    let found = extract_all(&logs, &ExtractOptions::default()).unwrap();
    let shares: Vec<_> = found.scenarios.iter().map(|s| (s.name.as_str(), s.traces)).collect();
    assert_eq!(shares, [("browse.1", 2), ("buy", 1)]);
    assert!(calls(&found.model).contains(&format!("Client.1 sync {} web.buy", 1.0 / 3.0)));
}

/// Several traces of one scenario share its weight.
#[test]
fn traces_of_a_scenario_share_its_weight() {
    let logs = [("browse.csv", BROWSE), ("buy.csv", BUY), ("b/browse.csv", BROWSE)];
    let found = extract_all(&logs, &profile(&[("browse", 0.5), ("buy", 0.5)])).unwrap();
    assert!(calls(&found.model).contains(&"Client.1 sync 0.5 web.buy".to_owned()));
    assert!(calls(&found.model).contains(&"Client.1 sync 1 web.browse".to_owned()));
}

/// The columns `trace` and `scenario` do in one file what several files do.
#[test]
fn traces_and_scenarios_may_be_columns() {
    let log = "trace,scenario,sender,receiver,time,operation\n\
               1,browse,u,web,1,browse\n2,buy,u,web,1,buy\n1,browse,web,u,2,\n2,buy,web,u,3,\n3,buy,u,web,7,buy\n3,buy,web,u,8,\n";
    let found = extract_all(&[("all.csv", log)], &profile(&[("browse", 9.0), ("buy", 1.0)])).unwrap();
    check_calls(&found, &["Client.1 sync 0.9 web.browse", "Client.1 sync 0.1 web.buy"]);
    assert_eq!(records(&found)[0], "sync 1:u.1@1 1:web.1@2");
}

/// Files of the nodes of one system are one recording.
#[test]
fn parts_are_joined_by_time() {
    let client = "10 send client get\n40 receive client got\n";
    let server = "20 receive server get\n30 send server got\n";
    let options = ExtractOptions { sources_are: SourcesAre::Parts, ..ExtractOptions::default() };
    let found = extract_all(&[("client.log", client), ("server.log", server)], &options).unwrap();
    assert_eq!(records(&found), ["sync client.1@20 server.1@40"]);
    assert_eq!(found.scenarios.len(), 1);
    let apart = extract_all(&[("client.log", client), ("server.log", server)], &ExtractOptions::default()).unwrap_err();
    assert!(apart.starts_with("no messages between tasks were found in client.log, server.log; "), "{apart}");
    assert!(
        apart.contains("sends without a reception were dropped: 2 (as in client: client get at 10; server: server got at 30)"),
        "{apart}"
    );
}

#[test]
fn a_client_that_is_also_a_server_is_set_apart() {
    let callback = messages(&[("Client", "web", 1), ("web", "Client", 2), ("job", "Client", 3), ("Client", "job", 4)]);
    let found = extract_all(&[("a.csv", &callback), ("b.csv", &callback)], &ExtractOptions::default()).unwrap();
    check_valid(&found.model);
    assert_eq!((reference_tasks(&found.model), count(&found, "reference_task_split")), (vec!["Client(client)"], 1));
}

#[test]
fn profiles_that_do_not_fit_are_errors() {
    let check = |weights: &[(&str, f64)], expected: &str| {
        let logs = [("browse.csv", BROWSE), ("buy.csv", BUY)];
        assert_eq!(extract_all(&logs, &profile(weights)).unwrap_err(), expected);
    };
    check(
        &[("browse", 1.0), ("by", 1.0)],
        "scenario \"by\" of the usage profile is not among those recorded (\"browse\", \"buy\"), expected the name of a recorded scenario",
    );
    check(
        &[("browse", 1.0)],
        "the weight of scenario \"buy\" in the usage profile is missing, expected a weight for every recorded scenario",
    );
    check(&[("browse", 0.0), ("buy", 1.0)], "the weight of scenario \"browse\" is 0, expected a number above 0");
    check(&[("browse", f64::NAN), ("buy", 1.0)], "the weight of scenario \"browse\" is NaN, expected a number above 0");
}

/// Weights count by their ratios, also where their sum is no number.
#[test]
fn great_weights_have_shares() {
    let found = extract_all(&[("browse.csv", BROWSE), ("buy.csv", BUY)], &profile(&[("browse", 1e308), ("buy", 1e308)])).unwrap();
    let shares: Vec<_> = found.scenarios.iter().map(|s| s.probability).collect();
    assert_eq!(shares, [0.5, 0.5]);
    check_valid(&found.model);
}

#[test]
fn options_out_of_range_are_errors() {
    let check = |options: ExtractOptions, expected: &str| {
        assert_eq!(extract_all(&[("browse.csv", BROWSE)], &options).unwrap_err(), expected);
    };
    let of = ExtractOptions::default;
    check(ExtractOptions { seconds_per_tick: 0.0, ..of() }, "seconds_per_tick is 0, expected a number above 0");
    check(ExtractOptions { default_demand: -1.0, ..of() }, "default_demand is -1, expected a number of seconds, 0 or more");
    check(ExtractOptions { client: " ".into(), ..of() }, "client is empty, expected a task name");
    check(ExtractOptions { customers: Some(1.5.into()), ..of() }, "customers is 1.5, expected a whole number, 1 or more, or a $name");
    check(
        ExtractOptions { think_time: f64::INFINITY.into(), ..of() },
        "think_time is inf, expected a number of seconds, 0 or more, or a $name",
    );
    assert_eq!(extract_all(&[], &of()).unwrap_err(), "no trace was given");
}

#[test]
fn options_are_read_from_json() {
    let json = r#"{"timing": "two-point", "merge": "operation", "usage_profile": {"a": 2}, "customers": "$n", "bad_rows": "reject"}"#;
    let options: ExtractOptions = serde_json::from_str(json).unwrap();
    assert_eq!(options.usage_profile["a"], 2.0);
    assert_eq!(options.seconds_per_tick, 1e-6);
    let again: ExtractOptions = serde_json::from_str(&serde_json::to_string(&options).unwrap()).unwrap();
    assert_eq!(again, options);
    let unknown = serde_json::from_str::<ExtractOptions>(r#"{"timming": "auto"}"#).unwrap_err().to_string();
    assert!(unknown.contains("unknown field `timming`"), "{unknown}");
}

/// Four recordings, of which one buys.
fn recordings(format: Format) -> (String, [&'static str; 2]) {
    let operations = ["browse", "browse", "buy", "browse"].into_iter().enumerate();
    match format {
        Format::EventTrace => {
            let events = |(n, entry): (usize, &str)| {
                format!(
                    "{n},1,1,Ex,U,{entry}\n{n},1,2,Se,U,{entry}\n{n},1,3,Re,W,{entry}\n{n},1,4,Sa,W,{entry}\n{n},1,5,Ra,U,{entry}\n{n},1,6,En,U,{entry}\n"
                )
            };
            let header = "operation,thread,event,type,task,entry\n".to_owned();
            (header + &operations.map(events).collect::<String>(), ["U.browse", "U.buy"])
        }
        Format::Kieker => {
            let execution = |(n, entry): (usize, &str)| format!("$1;9;public void p.W.{entry}();<no-session-id>;{n};1;9;H;0;0\n");
            (operations.map(execution).collect(), ["p.W.browse()", "p.W.buy()"])
        }
        _ => {
            let records = |(n, entry): (usize, &str)| format!("{n}1,entry,W,{entry},c{n}\n{n}9,exit,W,{entry},c{n}\n");
            let header = "time,kind,component,method,context_id\n".to_owned();
            (header + &operations.map(records).collect::<String>(), ["W.browse", "W.buy"])
        }
    }
}

#[test]
fn scenarios_of_a_profile_are_what_recordings_start_with() {
    for format in [Format::EventTrace, Format::CallPath, Format::Kieker] {
        let (text, [browse, buy]) = recordings(format);
        let map = "$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
        let sources = [Source { name: "k/trace.dat", bytes: text.as_bytes() }, Source { name: "k/kieker.map", bytes: map.as_bytes() }];
        let n_sources = if format == Format::Kieker { 2 } else { 1 };
        let of = |options: &ExtractOptions| extract(&sources[..n_sources], format, options).map_err(|error| error.to_string());
        let mean = |found: &Extraction, entry: &str| {
            let called = |call: &&String| call.contains("sync") && call.contains(entry) && !call.starts_with('W');
            calls(&found.model).iter().filter(called).map(|call| call.split(' ').nth(2).unwrap().parse::<f64>().unwrap()).sum::<f64>()
        };
        let plain = of(&ExtractOptions::default()).unwrap();
        assert_eq!((plain.scenarios.len(), mean(&plain, "browse"), mean(&plain, "buy")), (1, 0.75, 0.25), "{format:?}");
        let shared = of(&profile(&[(browse, 1.0), (buy, 4.0)])).unwrap();
        let found: Vec<_> = shared.scenarios.iter().map(|s| (s.name.as_str(), s.traces, s.probability)).collect();
        assert_eq!(found, [(browse, 3, 0.2), (buy, 1, 0.8)], "{format:?}");
        assert!((mean(&shared, "browse") - 0.2).abs() < 1e-12 && (mean(&shared, "buy") - 0.8).abs() < 1e-12, "{:?}", calls(&shared.model));
        check_valid(&shared.model);
        let error = of(&profile(&[("other", 1.0)])).unwrap_err();
        assert!(error.contains(browse) && error.contains(buy), "{error}");
        // The one scenario that they are of without a profile may be named, too.
        let one = of(&profile(&[(&plain.scenarios[0].name, 1.0)])).unwrap();
        assert_eq!((mean(&one, "browse"), mean(&one, "buy")), (0.75, 0.25), "{format:?}");
    }
}
