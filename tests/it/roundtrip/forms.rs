//! Every form that runs are written in keeps its own rules.

use std::collections::{HashMap, HashSet};

use layerfit::{
    cli::record::{Dirt, TraceForm, TraceOptions},
    solve::simulate::record::{Event, RecordedEvent, RequestKind},
};
use serde_json::Value;

use super::{Features, Ran};

const CYCLES: u64 = 60;
const SEEDS: std::ops::Range<u64> = 0..12;

/// Rows of a CSV, by column.
fn rows(bytes: &[u8]) -> Vec<HashMap<String, String>> {
    csv::Reader::from_reader(bytes).deserialize().map(Result::unwrap).collect()
}

fn runs() -> impl Iterator<Item = Ran> {
    SEEDS.map(|seed| Ran::new(Features::ALL, seed, CYCLES))
}

fn number(row: &HashMap<String, String>, column: &str) -> u64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

#[test]
fn angio_counters_have_no_gaps_and_threads_begin_once_and_end() {
    for ran in runs() {
        let mut last: HashMap<(u64, u64), (u64, String)> = HashMap::new();
        let (mut tasks, mut forked) = (HashMap::<String, u64>::new(), HashSet::new());
        for row in rows(&ran.trace(TraceForm::Angio, &TraceOptions::default())) {
            let thread = (number(&row, "trace"), number(&row, "thread"));
            let (before, kind) = last.get(&thread).cloned().unwrap_or_default();
            assert_eq!(number(&row, "thread_node"), before + 1, "{row:?}");
            assert_eq!(row["kind"] == "begin", before == 0, "{row:?}");
            assert_ne!(kind, "end", "{row:?}");
            assert!(before > 0 || thread.1 == 1 || forked.contains(&thread), "{row:?} was not forked");
            if row["kind"] == "fork" {
                assert!(forked.insert((thread.0, number(&row, "child_thread"))), "{row:?} forks again");
            }
            let node = tasks.entry(row["task"].clone()).or_default();
            *node += 1;
            assert_eq!(number(&row, "task_node"), *node);
            last.insert(thread, (before + 1, row["kind"].clone()));
        }
        assert!(last.values().all(|(_, kind)| kind == "end"), "{}", ran.model.name);
        assert!(forked.iter().all(|thread| last.contains_key(thread)));
    }
}

#[test]
fn event_traces_have_whole_threads_and_paired_messages() {
    for ran in runs() {
        let mut last: HashMap<(u64, u64), (u64, String)> = HashMap::new();
        let mut forked = HashSet::new();
        for row in rows(&ran.trace(TraceForm::EventTrace, &TraceOptions::default())) {
            let thread = (number(&row, "operation"), number(&row, "thread"));
            let (before, kind) = last.get(&thread).cloned().unwrap_or_default();
            assert_eq!(number(&row, "event"), before + 1, "{row:?}");
            let now = row["type"].as_str();
            let first = if thread.1 == 1 { "Ex" } else { "Be" };
            assert_eq!(now == first, before == 0, "{row:?}");
            assert_eq!(kind == "Se", now == "Re", "{row:?} after {kind}");
            assert_eq!(kind == "Sa", now == "Ra", "{row:?} after {kind}");
            assert_ne!(kind, "En", "{row:?}");
            if now == "Fo" {
                assert!(forked.insert((thread.0, number(&row, "next_thread"))));
            }
            last.insert(thread, (before + 1, now.to_owned()));
        }
        assert!(last.values().all(|(_, kind)| kind == "En"), "{}", ran.model.name);
        assert!(last.keys().all(|thread| (thread.1 == 1) != forked.contains(thread)));
    }
}

#[test]
fn call_paths_nest_and_messages_have_both_ends() {
    for ran in runs() {
        let mut open: HashMap<(u64, u64), Vec<(String, String)>> = HashMap::new();
        // Arrivals are sent by nobody who is recorded.
        let is_arrival = |event: &&RecordedEvent| matches!(event.event, Event::Sent { kind: RequestKind::Open, .. });
        let mut sent: HashSet<String> = ran.events.iter().filter(is_arrival).map(|event| event.request.to_string()).collect();
        let mut received = HashSet::new();
        for row in rows(&ran.trace(TraceForm::CallPath, &TraceOptions::default())) {
            let frames = open.entry((number(&row, "context_id"), number(&row, "transaction_id"))).or_default();
            let service = (row["component"].clone(), row["method"].clone());
            match row["kind"].as_str() {
                "entry" => frames.push(service),
                "exit" => assert_eq!(frames.pop(), Some(service), "{row:?}"),
                "send" => assert!(sent.insert(row["message_id"].clone())),
                "receive" => assert!(frames.is_empty() && received.insert(row["message_id"].clone())),
                other => panic!("{other}"),
            }
        }
        assert!(open.values().all(Vec::is_empty), "{}", ran.model.name);
        assert_eq!(sent, received);
    }
}

/// Ids, parents and times of spans of an OpenTelemetry trace.
pub fn otlp_spans(bytes: &[u8]) -> Vec<Value> {
    let documents = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>().map(Result::unwrap);
    let of = |document: Value| {
        let resources = document["resourceSpans"].as_array().unwrap().clone();
        resources.into_iter().flat_map(|r| r["scopeSpans"][0]["spans"].as_array().unwrap().clone())
    };
    documents.flat_map(of).collect()
}

#[test]
fn spans_have_their_parents_and_clean_ones_nest_servers_in_clients() {
    for ran in runs() {
        let spans = otlp_spans(&ran.trace(TraceForm::Otlp, &TraceOptions::default()));
        let by_id: HashMap<&str, &Value> = spans.iter().map(|s| (s["spanId"].as_str().unwrap(), s)).collect();
        assert_eq!(by_id.len(), spans.len(), "ids are unique");
        let time = |span: &Value, field: &str| span[field].as_str().unwrap().parse::<i64>().unwrap();
        for span in &spans {
            assert!(time(span, "startTimeUnixNano") <= time(span, "endTimeUnixNano"));
            let Some(parent) = span["parentSpanId"].as_str() else { continue };
            let parent = by_id[parent];
            assert_eq!(parent["traceId"], span["traceId"]);
            assert!(time(parent, "startTimeUnixNano") <= time(span, "startTimeUnixNano"));
        }
    }
}

#[test]
fn all_span_forms_hold_the_same_spans() {
    for ran in runs().take(4) {
        let options = TraceOptions { linked_traces: true, ..TraceOptions::default() };
        let otlp = otlp_spans(&ran.trace(TraceForm::Otlp, &options)).len();
        let zipkin: Value = serde_json::from_slice(&ran.trace(TraceForm::Zipkin, &options)).unwrap();
        let jaeger: Value = serde_json::from_slice(&ran.trace(TraceForm::Jaeger, &options)).unwrap();
        let of_jaeger: usize = jaeger["data"].as_array().unwrap().iter().map(|t| t["spans"].as_array().unwrap().len()).sum();
        assert_eq!([zipkin.as_array().unwrap().len(), of_jaeger], [otlp; 2]);
    }
}

#[test]
fn dirt_samples_whole_cycles_and_loses_single_spans() {
    let ran = Ran::new(Features::ALL, 1, 400);
    let spans = |dirt| otlp_spans(&ran.trace(TraceForm::Otlp, &TraceOptions { dirt, ..TraceOptions::default() }));
    let whole = spans(Dirt::default());
    let sampled = spans(Dirt { sampled: 0.5, ..Dirt::default() });
    let ids = |spans: &[Value]| spans.iter().map(|s| s["traceId"].to_string()).collect::<HashSet<_>>();
    let kept = ids(&sampled);
    assert!((120..280).contains(&kept.len()), "{} of 400", kept.len());
    assert_eq!(sampled.len(), whole.iter().filter(|s| kept.contains(&s["traceId"].to_string())).count());
    assert!(sampled.iter().all(|s| s["traceState"] == "ot=th:8"));
    let left = spans(Dirt { lost: 0.1, ..Dirt::default() }).len() as f64 / whole.len() as f64;
    assert!((0.85..0.95).contains(&left), "{left}");
}
