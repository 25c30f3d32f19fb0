//! What traces say beside the structure, by way of every format that says it: profiles and sessions.

use std::{collections::BTreeMap, fmt::Write as _};

use layerfit::{
    model::{Number, Severity, Task},
    structure::{
        ExtractError, ExtractOptions, UsageFrom, extract_streams,
        observations::{Observed, UserKey, UserOptions, Wanted},
        observe_streams,
        profile::{CallBounds, Level, Metric, ProfileOptions, ViewOptions, draw_calls},
        usage::{Application, ClassChoice, ThinkLaw, UsageModel, UsageOptions, UsageSpec, parse_behaviour},
    },
    trace::{Format, Source},
};

use super::TABLE_1;

/// Users of a shop.
const CHAIN: &str = "\
,home,list,item,buy,$
home*,0,0.7,0.1,0,0.2
list,0.1,0.3,0.5,0,0.1
item,0,0.4,0,0.2,0.4
buy,0.25,0,0,0,0.75
";
const N_SESSIONS: u64 = 1500;
const THINK_S: f64 = 4.0;
/// Probability that any bound of this file is broken by chance, though the seed is fixed.
const RISK: f64 = 1e-6;

/// A request: its session, service, start and end in nanoseconds.
type Row = (u64, String, i64, i64);

fn rows(seed: u64) -> Vec<Row> {
    let mut behaviour = parse_behaviour("shopper", CHAIN).unwrap();
    behaviour.think = Some(ThinkLaw::Exponential { mean_s: THINK_S });
    let spec = UsageSpec {
        mix: vec![(behaviour, 1.0)],
        application: Application::default(),
        intensity: vec![(0.0, 12)],
        responses: Default::default(),
        response: ThinkLaw::Exponential { mean_s: 0.2 },
        n_sessions: N_SESSIONS,
    };
    // A time of 0 is none in spans.
    let ns = |seconds: f64| 1_000_000_000 + (seconds * 1e9).round() as i64;
    let mut rows = Vec::new();
    spec.generate(seed, &mut |r| rows.push((r.session, r.request.to_owned(), ns(r.start_s), ns(r.end_s)))).unwrap();
    rows
}

/// The requests as a Kieker log: each calls the data base for the middle half of its time.
fn kieker(rows: &[Row]) -> String {
    let mut log = String::new();
    for (trace, (session, service, start, end)) in rows.iter().enumerate() {
        let (from, to) = (start + (end - start) / 4, end - (end - start) / 4);
        let _ = writeln!(log, "$1;{to};public void shop.Db.query();S{session};{trace};{from};{to};db;1;1");
        let _ = writeln!(log, "$1;{end};public void shop.Front.{service}();S{session};{trace};{start};{end};web;0;0");
    }
    log
}

const MAP: &str = "$1=kieker.common.record.controlflow.OperationExecutionRecord\n";

/// The requests as call-path records.
fn call_path(rows: &[Row]) -> String {
    let mut log = "time,kind,component,method,context_id,server,session_id\n".to_owned();
    for (trace, (session, service, start, end)) in rows.iter().enumerate() {
        let (from, to) = (start + (end - start) / 4, end - (end - start) / 4);
        let (front, db) = (format!("shop.Front,{service}(),{trace},web,S{session}"), format!("shop.Db,query(),{trace},db,S{session}"));
        let _ = writeln!(log, "{start},entry,{front}\n{from},entry,{db}\n{to},exit,{db}\n{end},exit,{front}");
    }
    log
}

/// The requests as spans of OpenTelemetry, a line each; the session stands on the inner span.
fn otlp(rows: &[Row], attribute: &str) -> String {
    let mut log = String::new();
    for (trace, (session, service, start, end)) in rows.iter().enumerate() {
        let (from, to) = (start + (end - start) / 4, end - (end - start) / 4);
        let span = |id: u64, parent: &str, name: &str, kind: u8, (start, end): (i64, i64), attributes: &str| {
            let ids = format!(r#""traceId":"{:032x}","spanId":"{id:016x}"{parent}"#, trace + 1);
            let times = format!(r#""startTimeUnixNano":"{start}","endTimeUnixNano":"{end}""#);
            format!(r#"{{{ids},"name":"{name}","kind":{kind},{times},"attributes":[{attributes}]}}"#)
        };
        let of = |service: &str, spans: &str| {
            let resource = format!(r#"{{"attributes":[{{"key":"service.name","value":{{"stringValue":"{service}"}}}}]}}"#);
            format!(r#"{{"resource":{resource},"scopeSpans":[{{"spans":[{spans}]}}]}}"#)
        };
        let user = format!(r#"{{"key":"{attribute}","value":{{"stringValue":"S{session}"}}}}"#);
        let served = [
            span(1, "", &format!("{service}()"), 2, (*start, *end), ""),
            span(2, r#","parentSpanId":"0000000000000001""#, "query()", 3, (from, to), &user),
        ];
        let asked = span(3, r#","parentSpanId":"0000000000000002""#, "query()", 2, (from, to), "");
        let _ = writeln!(log, r#"{{"resourceSpans":[{},{}]}}"#, of("shop.Front", &served.join(",")), of("shop.Db", &asked));
    }
    log
}

/// The requests as spans of Zipkin.
fn zipkin(rows: &[Row]) -> String {
    let spans = rows.iter().enumerate().map(|(trace, (session, service, start, end))| {
        let (start, end) = (start / 1000, (end / 1000).max(start / 1000 + 1));
        let endpoint = r#""localEndpoint":{"serviceName":"shop.Front"}"#;
        let call = r#""localEndpoint":{"serviceName":"shop.Front"},"remoteEndpoint":{"serviceName":"shop.Db"}"#;
        let id = trace + 1;
        let tags = format!(r#""tags":{{"session.id":"S{session}"}}"#);
        let served = format!(
            r#"{{"traceId":"{id:016x}","id":"{id:016x}","name":"{service}()","kind":"SERVER","timestamp":{start},"duration":{},{endpoint},{tags}}}"#,
            end - start
        );
        let child = format!(
            r#"{{"traceId":"{id:016x}","parentId":"{id:016x}","id":"f{id:015x}","name":"query()","kind":"CLIENT","timestamp":{start},"duration":1,{call}}}"#
        );
        format!("{served},{child}")
    });
    format!("[{}]", spans.collect::<Vec<_>>().join(","))
}

fn observe(sources: &[(&str, &str)], format: Format, wanted: &Wanted) -> Result<Observed, ExtractError> {
    let sources: Vec<Source<'_>> = sources.iter().map(|(name, text)| Source { name, bytes: text.as_bytes() }).collect();
    observe_streams(sources.iter().map(Source::stream).collect(), format, &ExtractOptions::default(), wanted)
}

fn one_class() -> UsageOptions {
    UsageOptions { classes: ClassChoice::One, smoothing: 0.0 }
}

fn users(key: UserKey) -> Wanted {
    Wanted { profile: None, users: Some(UserOptions { key, ..UserOptions::default() }) }
}

fn usage(sources: &[(&str, &str)], format: Format) -> UsageModel {
    let observed = observe(sources, format, &users(UserKey::User)).unwrap();
    UsageModel::of(&observed.usage.unwrap(), &one_class()).unwrap()
}

/// Bernstein's bound on |mean of `n` - expectation|, for variance `v` and scale `c`, that is broken with probability
/// 2 exp(-`l`): the root of n t² = 2 l (v + c t).
fn bernstein(n: f64, v: f64, c: f64, l: f64) -> f64 {
    (c * l + (c * c * l * l + 2.0 * n * v * l).sqrt()) / n
}

/// Sessions of a known chain come back from every format: steps and think times within Bernstein's bounds of the chain's,
/// all counts exactly.
#[test]
fn sessions_of_a_known_chain_come_back() {
    let rows = rows(11);
    let known = parse_behaviour("shopper", CHAIN).unwrap();
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    rows.iter().for_each(|(_, service, ..)| *counts.entry(service).or_insert(0.0) += 1.0);
    let log = kieker(&rows);
    let logs = [("log/kieker.map", MAP), ("log/kieker-1.dat", log.as_str())];
    let (records, spans, zipkin) = (call_path(&rows), otlp(&rows, "session.id"), zipkin(&rows));
    let found = [
        ("web::shop.Front.", usage(&logs, Format::Kieker)),
        ("web::shop.Front.", usage(&[("calls.csv", &records)], Format::CallPath)),
        ("shop.Front.", usage(&[("spans.json", &spans)], Format::Auto)),
        ("shop.front.", usage(&[("zipkin.json", &zipkin)], Format::Zipkin)),
    ];
    // Each comparison may be for any number of visits up to that of all requests.
    let l = (2.0 * (known.services.len() * (known.services.len() + 1) * rows.len()) as f64 / RISK).ln();
    for (prefix, usage) in &found {
        assert_eq!((usage.n_sessions, usage.n_requests), (N_SESSIONS, rows.len() as u64), "{prefix}");
        let [class] = usage.classes.as_slice() else { panic!("one class") };
        let index = |service: &str| {
            let is_it = |name: &String| name.eq_ignore_ascii_case(&format!("{prefix}{service}()"));
            usage.services.iter().position(is_it).unwrap_or_else(|| panic!("{service} in {:?}", usage.services))
        };
        for (i, from) in known.services.iter().enumerate() {
            let row = index(from);
            assert!((class.visits[row] * N_SESSIONS as f64 - counts[from.as_str()]).abs() < 1e-6, "visits to {from}");
            let ends = (known.exit[i], class.behaviour.exit[row]);
            let steps =
                known.services.iter().enumerate().map(|(j, to)| (known.transitions[(i, j)], class.behaviour.transitions[(row, index(to))]));
            for (p, seen) in steps.chain([ends]) {
                let bound = bernstein(counts[from.as_str()], p * (1.0 - p), 1.0 / 3.0, l);
                assert!((p - seen).abs() <= bound, "{prefix}{from}: {p} {seen} ± {bound}");
            }
        }
        let think = class.think.unwrap();
        assert_eq!(think.n, rows.len() as u64 - N_SESSIONS);
        // An exponential law has the moments that Bernstein's bound asks for with v = mean², c = mean.
        let bound = bernstein(think.n as f64, THINK_S * THINK_S, THINK_S, l);
        assert!((think.mean_s - THINK_S).abs() <= bound, "{} ± {bound}", think.mean_s);
        let steps: f64 = class.steps.iter().map(|step| step.count).sum();
        assert!((steps - (rows.len() as u64 + N_SESSIONS) as f64).abs() < 1e-6, "every session has one step more than requests");
    }
    // Quantiles do not depend on the order in which sessions end; sums do, by rounding.
    let exact = |usage: &UsageModel| usage.think.map(|think| (think.n, think.min_s, think.median_s, think.p95_s, think.max_s));
    assert_eq!(exact(&found[0].1), exact(&found[1].1));
    assert_eq!(exact(&found[0].1), exact(&found[2].1));
}

/// Mix, think time and customers of the model are those of the sessions; without sessions they are those of the recordings.
#[test]
fn reference_tasks_come_from_sessions() {
    let rows = rows(12);
    let log = kieker(&rows);
    let spans = otlp(&rows, "enduser.id");
    let logs = vec![Source { name: "log/kieker.map", bytes: MAP.as_bytes() }, Source { name: "log/k.dat", bytes: log.as_bytes() }];
    let inputs = [
        (logs, Format::Kieker, "web::shop.Front."),
        (vec![Source { name: "s.json", bytes: spans.as_bytes() }], Format::Otlp, "shop.Front."),
    ];
    let n = rows.len() as f64;
    let mut last_end: BTreeMap<u64, i64> = BTreeMap::new();
    let (mut response_ns, mut active_ns) = (0.0, 0.0);
    for (session, _, start, end) in &rows {
        let since = *last_end.get(session).unwrap_or(start);
        response_ns += (end - start) as f64;
        active_ns += (end - since) as f64;
        last_end.insert(*session, *end);
    }
    let span_ns = rows.iter().map(|row| row.3).max().unwrap() - rows.iter().map(|row| row.2).min().unwrap();
    let customers = (active_ns / span_ns as f64).round();
    assert!(customers > 5.0, "{customers}");
    for (sources, format, prefix) in inputs {
        let options = ExtractOptions { usage: UsageFrom::Sessions, behaviour: one_class(), ..ExtractOptions::default() };
        let streams = || sources.iter().map(Source::stream).collect();
        let extraction = extract_streams(streams(), format, &options).unwrap();
        super::models::check_valid(&extraction.model);
        let client = extraction.model.tasks.iter().find(|task| task.scheduling.is_reference()).unwrap();
        assert_eq!(client.multiplicity.literal(), Some(customers), "{format}");
        // Whole customers make as many requests as were seen. Times are whole nanoseconds: no more than rounding of sums is left.
        let think_s = (customers * span_ns as f64 - response_ns) / n * 1e-9;
        assert!((client.think_time.literal().unwrap() - think_s).abs() < 1e-9, "{format}: {:?} {think_s}", client.think_time);
        let calls = &client.entries[0].phases[0].activity.calls;
        assert_eq!(calls.len(), 4);
        for call in calls {
            let of = |row: &&Row| call.dest == format!("{prefix}{}()", row.1);
            let share = rows.iter().filter(of).count() as f64 / n;
            assert!((call.mean.literal().unwrap() - share).abs() < 1e-9, "{} {share}", call.dest);
        }
        assert_eq!(extraction.usage.as_ref().unwrap().n_sessions, N_SESSIONS);
        assert!(extraction.diagnostics.iter().all(|d| d.code != "few_sessions"));
        // A number that is asked for, and a parameter.
        let asked = |customers: Number| {
            let options = ExtractOptions { customers: Some(customers), ..options.clone() };
            let model = extract_streams(streams(), format, &options).unwrap().model;
            model.tasks.into_iter().find(|task| task.scheduling.is_reference()).unwrap().multiplicity
        };
        assert_eq!(asked(Number::Value(40.0)).literal(), Some(40.0));
        assert_eq!(asked(Number::Parameter("users".to_owned())).parameter(), Some("users"));
        let plain = extract_streams(streams(), format, &ExtractOptions::default()).unwrap();
        assert_eq!(plain.usage, None);
        assert_eq!(plain.interactions, extraction.interactions);
    }
}

/// One of four traces was recorded, as their roots say: customers make the requests of all four.
#[test]
fn sampled_sessions_keep_the_rate_of_all_requests() {
    let rows = rows(14);
    let sampled = r#""attributes":[{"key":"SampleRate","value":{"intValue":"4"}}]}"#;
    let spans = otlp(&rows, "session.id").replace(r#""attributes":[]}"#, sampled);
    let options = ExtractOptions { usage: UsageFrom::Sessions, behaviour: one_class(), ..ExtractOptions::default() };
    let source = Source { name: "s.json", bytes: spans.as_bytes() };
    let extraction = extract_streams(vec![source.stream()], Format::Otlp, &options).unwrap();
    let client = extraction.model.tasks.iter().find(|task| task.scheduling.is_reference()).unwrap();
    let response_s = rows.iter().map(|row| (row.3 - row.2) as f64).sum::<f64>() / rows.len() as f64 * 1e-9;
    let rate = client.multiplicity.literal().unwrap() / (client.think_time.literal().unwrap() + response_s);
    let span_s = (rows.iter().map(|row| row.3).max().unwrap() - rows.iter().map(|row| row.2).min().unwrap()) as f64 * 1e-9;
    assert!((rate * span_s / rows.len() as f64 - 4.0).abs() < 1e-6, "{rate} {span_s}");
    assert!(super::count(&extraction, "sampled_sessions") >= rows.len() as u64);
}

/// Two kinds of users become two reference tasks, whose customers sum to those that were active.
#[test]
fn classes_of_behaviour_become_reference_tasks() {
    let reader = (0..200).flat_map(|s| (0..6).map(move |k| (s, if k == 0 { "home" } else { "list" }, s as i64 * 3, k)));
    let other = (200..400).flat_map(|s| (0..4).map(move |k| (s, if k % 2 == 0 { "home" } else { "list" }, (s - 200) as i64 * 3, k)));
    let second = 1_000_000_000;
    let row =
        |(s, service, from, k): (u64, &str, i64, i64)| (s, service.to_owned(), (from + 10 * k) * second, (from + 10 * k + 1) * second);
    let mut rows: Vec<Row> = reader.chain(other).map(row).collect();
    rows.sort_by_key(|row| row.2);
    let log = kieker(&rows);
    let sources = [Source { name: "l/kieker.map", bytes: MAP.as_bytes() }, Source { name: "l/k.dat", bytes: log.as_bytes() }];
    let options = ExtractOptions { usage: UsageFrom::Sessions, ..ExtractOptions::default() };
    let extraction = extract_streams(sources.iter().map(Source::stream).collect(), Format::Kieker, &options).unwrap();
    let clients: Vec<_> = extraction.model.tasks.iter().filter(|task| task.scheduling.is_reference()).collect();
    assert_eq!(clients.len(), 2, "{:?}", extraction.model.tasks.iter().map(|t| &t.name).collect::<Vec<_>>());
    let usage = extraction.usage.unwrap();
    let customers: f64 = clients.iter().map(|task| task.multiplicity.literal().unwrap()).sum();
    assert_eq!(customers, usage.mean_active.round());
    let means = |task: &Task| {
        let calls = task.entries[0].phases[0].activity.calls.iter();
        let mut means: Vec<_> = calls.map(|call| (call.dest.clone(), call.mean.literal().unwrap())).collect();
        means.sort_by(|a, b| a.0.cmp(&b.0));
        means
    };
    let mut found: Vec<_> = clients.iter().map(|task| means(task)).collect();
    found.sort_by(|a, b| a[0].1.total_cmp(&b[0].1));
    // The mixture counts 0.01 for a step that a class did not take beside the 1000 from a list that readers did: a session of
    // the others is a reader's with probability 0.01 / 1000 × 0.2 / (0.5 × 0.5), and shifts means by less than that.
    const SHIFT: f64 = 8e-6;
    for (found, [home, list]) in found.iter().zip([[1.0 / 6.0, 5.0 / 6.0], [0.5, 0.5]]) {
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["web::shop.Front.home()", "web::shop.Front.list()"]);
        assert!((found[0].1 - home).abs() < SHIFT && (found[1].1 - list).abs() < SHIFT, "{found:?}");
    }
}

#[test]
fn few_and_no_sessions_are_said() {
    let second = 1_000_000_000;
    let rows: Vec<Row> = (0..40).map(|k| (1, "home".to_owned(), k * 100 * second, (k * 100 + 1) * second)).collect();
    let extract = |log: &str| {
        let sources = [Source { name: "l/kieker.map", bytes: MAP.as_bytes() }, Source { name: "l/k.dat", bytes: log.as_bytes() }];
        let options = ExtractOptions { usage: UsageFrom::Sessions, ..ExtractOptions::default() };
        extract_streams(sources.iter().map(Source::stream).collect(), Format::Kieker, &options).unwrap()
    };
    let few = extract(&kieker(&rows));
    assert_eq!(super::count(&few, "few_sessions"), 1);
    let none = extract(&kieker(&rows).replace(";S1;", ";<no-session-id>;"));
    assert_eq!((super::count(&none, "no_sessions"), super::count(&none, "requests_without_user")), (1, 40));
    assert_eq!(none.usage, None);
}

/// A part of the requests is in no session: they arrive beside the users, however many these are, at their own entry or at that of others.
#[test]
fn requests_in_no_session_arrive_from_outside() {
    let second = 1_000_000_000;
    let rows: Vec<Row> = (0..40).map(|k| (1, "home".to_owned(), k * 100 * second, (k * 100 + 1) * second)).collect();
    let log = kieker(&rows);
    for (service, customers) in [("away", None), ("home", None), ("home", Some(Number::Value(40.0)))] {
        let log =
            log.replace("home();S1;1", &format!("{service}();<no-session-id>;1")).replace("query();S1;1", "query();<no-session-id>;1");
        let sources = [Source { name: "l/kieker.map", bytes: MAP.as_bytes() }, Source { name: "l/k.dat", bytes: log.as_bytes() }];
        let options = ExtractOptions { usage: UsageFrom::Sessions, customers: customers.clone(), ..ExtractOptions::default() };
        let found = extract_streams(sources.iter().map(Source::stream).collect(), Format::Kieker, &options).unwrap();
        // Threads without limit that requests arrive at are remarked on.
        let defects = found.model.validate();
        assert!(defects.iter().all(|defect| defect.kind.severity() == Severity::Warning), "{defects:?}");
        let count = |code: &str| super::count(&found, code);
        assert_eq!((count("requests_without_user"), count("requests_outside_sessions"), count("open_workload")), (11, 1, 0));
        let client = found.model.tasks.iter().find(|task| task.scheduling.is_reference()).unwrap();
        assert_eq!(client.multiplicity.literal(), Some(customers.map_or(1.0, |n| n.literal().unwrap())));
        let asked: Vec<(&str, f64)> =
            client.entries[0].phases[0].activity.calls.iter().map(|call| (call.dest.as_str(), call.mean.literal().unwrap())).collect();
        assert_eq!(asked, [("web::shop.Front.home()", 1.0)]);
        let arrivals: Vec<(&str, f64)> = found
            .model
            .tasks
            .iter()
            .flat_map(|task| &task.entries)
            .filter_map(|entry| Some((entry.name.as_str(), entry.open_arrival_rate.as_ref()?.literal()?)))
            .collect();
        // From the first request of a session to the last answer.
        let rate = 11.0 / 3901.0;
        assert_eq!(arrivals.len(), 1, "{arrivals:?}");
        let twin = if service == "home" { "#2" } else { "" };
        assert_eq!(arrivals[0].0, format!("web::shop.Front.{service}(){twin}"));
        assert!((arrivals[0].1 - rate).abs() < 1e-12, "{arrivals:?}, expected {rate}");
    }
}

/// One customer that is active for a hundredth of the time makes as many requests as were seen.
#[test]
fn less_than_one_active_session_keeps_the_rate() {
    let second = 1_000_000_000;
    let rows: Vec<Row> = (0..50_u64).map(|s| (s, "home".to_owned(), s as i64 * 100 * second, (s as i64 * 100 + 1) * second)).collect();
    let log = kieker(&rows);
    let sources = [Source { name: "l/kieker.map", bytes: MAP.as_bytes() }, Source { name: "l/k.dat", bytes: log.as_bytes() }];
    let options = ExtractOptions { usage: UsageFrom::Sessions, ..ExtractOptions::default() };
    let extraction = extract_streams(sources.iter().map(Source::stream).collect(), Format::Kieker, &options).unwrap();
    let client = extraction.model.tasks.iter().find(|task| task.scheduling.is_reference()).unwrap();
    // 50 requests of 1 s in 4901 s.
    let think = client.think_time.literal().unwrap();
    assert!((think + 1.0 - 4901.0 / 50.0).abs() < 1e-6, "{think}");
    assert_eq!(client.multiplicity.literal(), Some(1.0));
    assert_eq!(super::count(&extraction, "less_than_one_active"), 1);
    assert_eq!(super::count(&extraction, "no_think_times"), 1);
}

/// What names a user: a session's key before a name, a name before an address; each only where it is asked for.
#[test]
fn users_are_named_in_order() {
    let rows = rows(13);
    let n = |attribute: &str, key: UserKey| {
        let spans = otlp(&rows, attribute);
        observe(&[("s.json", &spans)], Format::Otlp, &users(key)).map(|observed| observed.usage.unwrap().n_requests())
    };
    let all = rows.len() as u64;
    for attribute in ["session.id", "session_id", "http.session.id", "app.session.id", "highlight.session_id"] {
        assert_eq!(n(attribute, UserKey::Session).unwrap(), all, "{attribute}");
    }
    for attribute in ["enduser.id", "enduser.pseudo.id", "user.id", "app.user.id"] {
        assert!(matches!(n(attribute, UserKey::Session), Err(ExtractError::NothingObserved { .. })), "{attribute}");
        assert_eq!(n(attribute, UserKey::User).unwrap(), all, "{attribute}");
    }
    for attribute in ["client.address", "http.client_ip"] {
        let error = n(attribute, UserKey::User).unwrap_err().to_string();
        assert!(error.contains("requests name an address, but neither session nor user"), "{error}");
        assert_eq!(n(attribute, UserKey::Address).unwrap(), all, "{attribute}");
    }
}

/// An attribute that no convention knows names sessions where it is said to.
#[test]
fn a_sessions_attribute_can_be_given() {
    let rows = rows(13);
    let n = |attribute: &str, given: &str| {
        let spans = otlp(&rows, attribute);
        let source = Source { name: "s.json", bytes: spans.as_bytes() };
        let mut options = ExtractOptions::default();
        options.spans.session_keys = vec!["tenant".to_owned(), given.to_owned()];
        let observed = observe_streams(vec![source.stream()], Format::Otlp, &options, &users(UserKey::Session));
        observed.map(|observed| observed.usage.unwrap().n_requests())
    };
    assert_eq!(n("app.cart", "app.cart").unwrap(), rows.len() as u64);
    assert_eq!(n("enduser.id", "enduser.id").unwrap(), rows.len() as u64);
    assert!(matches!(n("app.cart", "app.basket"), Err(ExtractError::NothingObserved { .. })));
}

/// A stream in several files, which are read side by side, gives the sessions and times of the whole.
#[test]
fn files_of_one_stream_add_up() {
    let rows = rows(14);
    let whole = otlp(&rows, "session.id");
    let lines: Vec<&str> = whole.lines().collect();
    let parts: Vec<String> = lines.chunks(lines.len() / 3 + 1).map(|part| part.join("\n")).collect();
    let names = ["a.json", "b.json", "c.json"];
    let sources: Vec<(&str, &str)> = names.into_iter().zip(parts.iter().map(String::as_str)).collect();
    let wanted = Wanted { profile: Some(ProfileOptions::default()), users: Some(UserOptions::default()) };
    let (whole, parts) =
        (observe(&[("w.json", &whole)], Format::Otlp, &wanted).unwrap(), observe(&sources, Format::Otlp, &wanted).unwrap());
    let model = |observed: &Observed| UsageModel::of(observed.usage.as_ref().unwrap(), &one_class()).unwrap();
    let (of_whole, of_parts) = (model(&whole), model(&parts));
    assert_eq!((of_parts.n_sessions, of_parts.n_requests), (N_SESSIONS, rows.len() as u64));
    let steps = |usage: &UsageModel| {
        let named = usage.classes[0].steps.iter().map(|step| (step.from.clone(), step.to.clone(), step.count.round() as u64));
        named.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(steps(&of_whole), steps(&of_parts));
    let bounds = CallBounds::default();
    let times = |observed: &Observed| {
        let calls = observed.profile.as_ref().unwrap().calls(Metric::Response, &bounds);
        calls.into_iter().map(|call| (call.operation, call.depth, call.times.map(|t| (t.n, t.min_s, t.p95_s, t.max_s)))).collect::<Vec<_>>()
    };
    assert_eq!(times(&whole), times(&parts));
}

/// A session that began long before the end of one file goes on in the next.
#[test]
fn sessions_go_on_from_file_to_file() {
    let minute = 60_000_000_000;
    let at = |session: u64, minutes: i64| (session, "home".to_owned(), (minutes + 1) * minute, (minutes + 1) * minute + 1_000_000);
    // A user whose pauses are below half an hour, among others; the second file begins between two requests.
    let mut rows: Vec<Row> = (0..20).map(|k| at(7, 20 * k)).collect();
    rows.extend((100..130).map(|k| at(k, (k as i64 - 100) * 13)));
    rows.sort_by_key(|row| row.2);
    let (first, second) = rows.split_at(rows.len() / 2);
    let (first, second) = (otlp(first, "user.id"), otlp(second, "user.id").replace("\"traceId\":\"0", "\"traceId\":\"a"));
    let usage = usage(&[("a.json", &first), ("b.json", &second)], Format::Otlp);
    assert_eq!((usage.n_sessions, usage.lengths.max_s), (31, 20.0));
}

/// The calls of a log with their times: also those inside one component, whichever format tells of them.
#[test]
fn executions_are_profiled_by_caller_and_stack() {
    let rows = rows(15);
    let wanted = Wanted { profile: Some(ProfileOptions::default()), users: None };
    let log = kieker(&rows).replace("shop.Db.query", "shop.Front.query");
    let records = call_path(&rows).replace("shop.Db,", "shop.Front,");
    let kieker_observed = observe(&[("l/kieker.map", MAP), ("l/k.dat", &log)], Format::Kieker, &wanted).unwrap();
    let records_observed = observe(&[("c.csv", &records)], Format::CallPath, &wanted).unwrap();
    for observed in [kieker_observed, records_observed] {
        let profile = observed.profile.unwrap();
        assert_eq!((profile.n_executions(), profile.n_traces()), (2 * rows.len() as u64, rows.len() as u64));
        let calls = profile.calls(Metric::Response, &CallBounds::default());
        for call in &calls {
            let above = call.parent.map(|parent| calls[parent].operation.as_str());
            let of = |row: &&Row| {
                let front = format!("shop.Front.{}()", row.1);
                call.operation == front || (call.operation == "shop.Front.query()" && above == Some(front.as_str()))
            };
            let part = if above.is_some() { 0.5 } else { 1.0 };
            let of: Vec<f64> = rows.iter().filter(of).map(|row| (row.3 - row.2) as f64 * 1e-9 * part).collect();
            let times = call.times.unwrap();
            assert_eq!(times.n, of.len() as u64, "{}", call.operation);
            // The quarters are cut to whole nanoseconds.
            assert!((times.mean_s - of.iter().sum::<f64>() / of.len() as f64).abs() < 2e-9, "{}", call.operation);
        }
        assert_eq!(calls.len(), 8);
        let view = profile.view(&ViewOptions { by: Level::Trace, ..ViewOptions::default() });
        let contexts = |level: Level| view.contexts.iter().filter(|context| context.level == level).count();
        // Four services and the query; the query has four callers.
        assert_eq!([Level::All, Level::Operation, Level::Caller, Level::Stack].map(contexts), [1, 5, 8, 8]);
        assert!(view.contexts.iter().skip(1).all(|context| view.contexts[context.parent.unwrap()].times.n >= context.times.n));
        assert!((calls.iter().filter(|call| call.depth == 0).map(|call| call.share).sum::<f64>() - 1.0).abs() < 1e-9);
        let text = view.to_text();
        for line in ["response times of ", "calls, by their part of all time\n", "contexts of operations", "└ shop.Front.query() "] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let own = profile.view(&ViewOptions { metric: Metric::SelfTime, depth: 1, ..ViewOptions::default() });
        assert_eq!(own.calls.len(), 4);
        assert!(own.calls.iter().all(|call| call.n_left_out == 1));
        assert_eq!(draw_calls(&own.calls).matches("└ … and 1 smaller or deeper").count(), 4);
    }
}

/// Table 1 of SAME's paper: the replies say how long each call took.
#[test]
fn messages_are_profiled_by_their_replies() {
    let wanted = Wanted { profile: Some(ProfileOptions::default()), users: None };
    let profile = observe(&[("browse.log", TABLE_1)], Format::Same, &wanted).unwrap().profile.unwrap();
    let calls = profile.calls(Metric::Response, &CallBounds::default());
    let found: Vec<(&str, usize, u64)> =
        calls.iter().map(|call| (call.operation.as_str(), call.depth, (call.times.unwrap().mean_s * 1e6).round() as u64)).collect();
    let expected = [
        ("Server.browse_STARTC", 0, 3520),
        ("Inventory.display_START", 1, 2520),
        ("Book.getName_START", 2, 490),
        ("Book2.getName_START", 2, 440),
    ];
    assert_eq!(found, expected);
    let error = observe(&[("browse.log", TABLE_1)], Format::Same, &users(UserKey::User)).unwrap_err();
    assert!(matches!(error, ExtractError::NoUsers { format: Format::Same }), "{error}");
    let error = observe(&[("a.csv", "")], Format::Angio, &wanted).unwrap_err();
    assert!(matches!(error, ExtractError::NoDurations { format: Format::Angio }), "{error}");
}

/// Requests with records missing are left out of the profile as long as there are others.
#[test]
fn incomplete_requests_are_profiled_only_alone() {
    let rows = rows(16);
    let wanted = Wanted { profile: Some(ProfileOptions::default()), users: None };
    let whole = call_path(&rows[..40]);
    // Every second request loses the exit of its query.
    let mut n = 0;
    let cut: Vec<&str> = whole
        .lines()
        .filter(|line| {
            n += u32::from(line.contains("exit,shop.Db"));
            !(line.contains("exit,shop.Db") && n % 2 == 0)
        })
        .collect();
    let profile = |text: &str| observe(&[("c.csv", text)], Format::CallPath, &wanted).unwrap().profile.unwrap();
    let some = profile(&cut.join("\n"));
    assert_eq!((some.n_traces(), some.diagnostics().count("incomplete_recordings")), (20, 20));
    let none = profile(&whole.lines().filter(|line| !line.contains("exit,shop.Db")).collect::<Vec<_>>().join("\n"));
    assert_eq!((none.n_executions(), none.diagnostics().count("only_incomplete_recordings")), (40, 40));
}

#[test]
fn options_out_of_range_are_refused() {
    let check = |change: fn(&mut ExtractOptions), expected: &str| {
        let mut options = ExtractOptions::default();
        change(&mut options);
        let error = options.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(|o| o.users.sessions.idle_gap_s = 0.0, "users.sessions.idle_gap_s is 0, expected a number of seconds above 0");
    check(|o| o.users.summary.window_s = f64::NAN, "users.summary.window_s is NaN");
    check(|o| o.users.sessions.lateness_s = -1.0, "users.sessions.lateness_s is -1");
    check(|o| o.users.sessions.max_open = 0, "users.sessions.max_open is 0, expected 1 or more");
    check(|o| o.users.sessions.max_requests = 0, "users.sessions.max_requests is 0, expected 1 or more");
    check(|o| o.users.summary.max_sessions = 0, "users.summary.max_sessions is 0, expected 1 or more");
    check(|o| o.users.summary.max_services = 1 << 20, "users.summary.max_services is 1048576, expected a number of services, 1 to 1024");
    check(|o| o.behaviour.classes = ClassChoice::Clustered { most: 17 }, "behaviour.classes is 17, expected a number of classes, 1 to 16");
    check(|o| o.behaviour.smoothing = -0.5, "behaviour.smoothing is -0.5");
    let both = |o: &mut ExtractOptions| {
        o.usage = UsageFrom::Sessions;
        o.usage_profile.insert("browse".to_owned(), 1.0);
    };
    check(both, "usage_profile is given beside usage of sessions");
}

/// Two servers that take turns in answering the requests of each session: what one has of it is not a session of its own.
#[test]
fn a_session_may_be_in_several_files() {
    let header = "time,kind,component,method,context_id,session_id\n";
    let (mut parts, mut whole) = ([header.to_owned(), header.to_owned()], header.to_owned());
    let second = 1_000_000_000_i64;
    for session in 0..100_i64 {
        for request in 0..4_i64 {
            let start = (session * 100 + request * 5) * second;
            let context = session * 4 + request;
            for (time, kind) in [(start, "entry"), (start + second, "exit")] {
                let row = format!("{time},{kind},Web,a,q{context},s{session}\n");
                parts[(request % 2) as usize] += &row;
                whole += &row;
            }
        }
    }
    let [first, other] = &parts;
    let split = usage(&[("1.csv", first), ("2.csv", other)], Format::CallPath);
    let whole = usage(&[("all.csv", &whole)], Format::CallPath);
    assert_eq!((split.n_sessions, split.n_requests), (100, 400));
    assert_eq!((split.think, split.lengths), (whole.think, whole.lengths));
}
