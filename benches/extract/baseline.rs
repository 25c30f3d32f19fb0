//! Passes that only skip or parse: rows of CSV, lines of Kieker, messages of protobuf.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
};

use prost::Message;

const BUFFER_BYTES: usize = 1 << 16;

fn csv(path: &str) -> csv::Reader<File> {
    csv::ReaderBuilder::new().buffer_capacity(BUFFER_BYTES).from_path(path).unwrap()
}

pub(super) fn skip_csv(path: &str) -> u64 {
    let mut reader = csv(path);
    let mut record = csv::ByteRecord::new();
    let mut n = 0;
    while reader.read_byte_record(&mut record).unwrap() {
        n += record.len() as u64;
    }
    n
}

/// What the texts of a column are.
enum Column {
    Whole,
    Decimal,
    Text,
}

pub(super) fn parse_csv(path: &str) -> u64 {
    let mut reader = csv(path);
    let column = |name: &str| match name {
        "time" | "sent" | "demand" => Column::Decimal,
        "thread_node" | "child_thread" | "task_node" | "next_thread" | "event" | "record_id" => Column::Whole,
        _ => Column::Text,
    };
    let columns: Vec<Column> = reader.headers().unwrap().iter().map(column).collect();
    let mut record = csv::StringRecord::new();
    let (mut n, mut sum) = (0, 0.0);
    while reader.read_record(&mut record).unwrap() {
        for (column, text) in columns.iter().zip(&record) {
            match column {
                Column::Whole if !text.is_empty() => n += text.parse::<u64>().unwrap(),
                Column::Decimal if !text.is_empty() => sum += text.parse::<f64>().unwrap(),
                _ => n += text.len() as u64,
            }
        }
    }
    n + sum as u64
}

/// Lines, without their ends.
pub(super) fn each_line(path: &str, mut take: impl FnMut(&[u8])) {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, File::open(path).unwrap());
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).unwrap() > 0 {
        take(line.trim_ascii_end());
        line.clear();
    }
}

pub(super) fn skip_lines(path: &str) -> u64 {
    let mut n = 0;
    each_line(path, |line| n += memchr::memchr_iter(b';', line).count() as u64);
    n
}

/// Fields of an execution: class, stamp, operation, session, trace, start, end, host, order and depth.
pub(super) fn parse_kieker(path: &str) -> u64 {
    let mut sum = 0_u64;
    each_line(path, |line| {
        let line = std::str::from_utf8(line).unwrap();
        if !line.starts_with("$1;") {
            return;
        }
        for (index, field) in line.split(';').enumerate() {
            sum = sum.wrapping_add(match index {
                1 | 4 | 5 | 6 | 8 | 9 => field.parse().unwrap(),
                _ => field.len() as u64,
            });
        }
    });
    sum
}

#[derive(Clone, PartialEq, Message)]
struct TracesData {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string_value: Option<String>,
    #[prost(int64, optional, tag = "3")]
    int_value: Option<i64>,
}

/// Messages after their lengths.
pub(super) fn parse_protobuf(path: &str) -> u64 {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, File::open(path).unwrap());
    let (mut n, mut bytes) = (0, Vec::new());
    loop {
        let (mut length, mut shift) = (0, 0);
        loop {
            let mut byte = [0];
            if reader.read(&mut byte).unwrap() == 0 {
                return n;
            }
            length |= usize::from(byte[0] & 0x7f) << shift;
            shift += 7;
            if byte[0] < 0x80 {
                break;
            }
        }
        bytes.resize(length, 0);
        reader.read_exact(&mut bytes).unwrap();
        let data = TracesData::decode(&bytes[..]).unwrap();
        n += data.resource_spans.iter().flat_map(|of| &of.scope_spans).map(|scope| scope.spans.len() as u64).sum::<u64>();
    }
}
