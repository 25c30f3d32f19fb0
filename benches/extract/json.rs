//! Passes over lines of JSON: into nothing, and into typed structures that borrow their texts (none is escaped in these traces).

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::baseline::each_line;

pub(super) fn skip(path: &str) -> u64 {
    let mut n = 0;
    each_line(path, |line| {
        serde_json::from_slice::<IgnoredAny>(line).unwrap();
        n += 1;
    });
    n
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TracesData<'a> {
    #[serde(borrow)]
    resource_spans: Vec<ResourceSpans<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    #[serde(borrow)]
    resource: Resource<'a>,
    #[serde(borrow)]
    scope_spans: Vec<ScopeSpans<'a>>,
}

#[derive(Deserialize)]
struct Resource<'a> {
    #[serde(borrow)]
    attributes: Vec<KeyValue<'a>>,
}

#[derive(Deserialize)]
struct ScopeSpans<'a> {
    #[serde(borrow)]
    spans: Vec<OtlpSpan<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is parsed is not used")]
struct OtlpSpan<'a> {
    #[serde(borrow)]
    trace_id: &'a str,
    #[serde(borrow)]
    span_id: &'a str,
    #[serde(borrow, default)]
    parent_span_id: &'a str,
    #[serde(borrow)]
    name: &'a str,
    kind: u8,
    #[serde(borrow)]
    start_time_unix_nano: &'a str,
    #[serde(borrow)]
    end_time_unix_nano: &'a str,
    #[serde(borrow)]
    attributes: Vec<KeyValue<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is parsed is not used")]
struct KeyValue<'a> {
    #[serde(borrow)]
    key: &'a str,
    #[serde(borrow)]
    value: AnyValue<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is parsed is not used")]
struct AnyValue<'a> {
    #[serde(borrow)]
    string_value: Option<&'a str>,
    #[serde(borrow)]
    int_value: Option<&'a str>,
    bool_value: Option<bool>,
    double_value: Option<f64>,
}

pub(super) fn parse_otlp(path: &str) -> u64 {
    let mut n = 0;
    each_line(path, |line| {
        let data: TracesData<'_> = serde_json::from_slice(line).unwrap();
        for of in &data.resource_spans {
            n += of.resource.attributes.len() + of.scope_spans.iter().map(|scope| scope.spans.len()).sum::<usize>();
        }
    });
    n as u64
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    data: Vec<JaegerTrace<'a>>,
}

#[derive(Deserialize)]
struct JaegerTrace<'a> {
    #[serde(borrow)]
    spans: Vec<JaegerSpan<'a>>,
    #[serde(borrow)]
    processes: Pairs<'a, Process<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is parsed is not used")]
struct JaegerSpan<'a> {
    #[serde(borrow, rename = "traceID")]
    trace_id: &'a str,
    #[serde(borrow, rename = "spanID")]
    span_id: &'a str,
    #[serde(borrow)]
    operation_name: &'a str,
    #[serde(borrow)]
    references: Vec<Reference<'a>>,
    start_time: u64,
    duration: u64,
    #[serde(borrow)]
    tags: Vec<Tag<'a>>,
    #[serde(borrow, rename = "processID")]
    process_id: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is parsed is not used")]
struct Reference<'a> {
    #[serde(borrow)]
    ref_type: &'a str,
    #[serde(borrow, rename = "traceID")]
    trace_id: &'a str,
    #[serde(borrow, rename = "spanID")]
    span_id: &'a str,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is parsed is not used")]
struct Tag<'a> {
    #[serde(borrow)]
    key: &'a str,
    #[serde(borrow)]
    value: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is parsed is not used")]
struct Process<'a> {
    #[serde(borrow)]
    service_name: &'a str,
    #[serde(borrow)]
    tags: Vec<Tag<'a>>,
}

pub(super) fn parse_jaeger(path: &str) -> u64 {
    let mut n = 0;
    each_line(path, |line| {
        let answer: Answer<'_> = serde_json::from_slice(line).unwrap();
        n += answer.data.iter().map(|trace| trace.spans.len() + trace.processes.0.len()).sum::<usize>();
    });
    n as u64
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is parsed is not used")]
struct ZipkinSpan<'a> {
    #[serde(borrow)]
    trace_id: &'a str,
    #[serde(borrow)]
    id: &'a str,
    #[serde(borrow, default)]
    parent_id: &'a str,
    #[serde(borrow)]
    kind: &'a str,
    #[serde(borrow)]
    name: &'a str,
    timestamp: u64,
    duration: u64,
    #[serde(borrow)]
    local_endpoint: Endpoint<'a>,
    #[serde(borrow)]
    tags: Pairs<'a, &'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is parsed is not used")]
struct Endpoint<'a> {
    #[serde(borrow)]
    service_name: &'a str,
    #[serde(borrow)]
    ipv4: &'a str,
}

pub(super) fn parse_zipkin(path: &str) -> u64 {
    let mut n = 0;
    each_line(path, |line| n += serde_json::from_slice::<Vec<ZipkinSpan<'_>>>(line).unwrap().len());
    n as u64
}

/// The entries of an object.
struct Pairs<'a, V>(Vec<(&'a str, V)>);

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Pairs<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<V>(std::marker::PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = Vec<(&'de str, V)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData)).map(Pairs)
    }
}
