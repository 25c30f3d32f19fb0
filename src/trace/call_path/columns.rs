//! The fields of call-path records: their names, and where a CSV has them.

/// The fields that there are, for error messages.
pub(super) const FIELDS: &str = "time, kind, component, method, context_id (and record_id, transaction_id, server, thread, \
     params, action, message_id, session_id)";

/// A field that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    RecordId,
    Time,
    Kind,
    Component,
    Method,
    ContextId,
    TransactionId,
    Server,
    Thread,
    Params,
    Action,
    MessageId,
    SessionId,
}

/// Names by which records call them, in the order of [`Column`].
const NAMES: [&str; N_COLUMNS] = [
    "record_id",
    "time",
    "kind",
    "component",
    "method",
    "context_id",
    "transaction_id",
    "server",
    "thread",
    "params",
    "action",
    "message_id",
    "session_id",
];

pub(super) const N_COLUMNS: usize = Column::SessionId as usize + 1;

const REQUIRED: [Column; 5] = [Column::Time, Column::Kind, Column::Component, Column::Method, Column::ContextId];

impl Column {
    pub(super) fn from_header(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().replace([' ', '-'], "_").as_str() {
            "record_id" | "seq" | "sequence" | "order" => Self::RecordId,
            "time" | "timestamp" | "time_ns" => Self::Time,
            "kind" | "event" | "type" => Self::Kind,
            "component" | "class" => Self::Component,
            "method" | "operation" => Self::Method,
            "context_id" | "context" | "trace_id" | "trace" => Self::ContextId,
            "transaction_id" | "transaction" => Self::TransactionId,
            "server" | "host" | "hostname" => Self::Server,
            "thread" | "thread_id" => Self::Thread,
            "params" | "parameters" => Self::Params,
            "action" | "marker" => Self::Action,
            "message_id" | "msg_id" => Self::MessageId,
            "session_id" | "session" => Self::SessionId,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// Where the fields of a CSV's rows stand.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) delimiter: u8,
    /// Column headings, in file order.
    pub(super) headings: Vec<String>,
    /// Headings that mean nothing here.
    pub(super) unknown: Vec<String>,
    /// What each position of a row says.
    pub(super) columns: Vec<Option<Column>>,
}

impl Layout {
    /// The layout that a header tells; `Err` says what was found and what was expected.
    pub(super) fn detect(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| format!("the first line is not UTF-8 text; expected {FIELDS}"))?;
        for delimiter in [b',', b';', b'\t'] {
            let headings = headings(text, delimiter);
            if headings.len() > 1 && headings.iter().any(|h| Column::from_header(h).is_some()) {
                return Self::from_headings(delimiter, headings);
            }
        }
        Err(format!("{} is not a header; expected {FIELDS}", quoted(text)))
    }

    fn from_headings(delimiter: u8, headings: Vec<String>) -> Result<Self, String> {
        let mut index_of = [None; N_COLUMNS];
        let mut unknown = Vec::new();
        for (position, heading) in headings.iter().enumerate() {
            match Column::from_header(heading) {
                None => unknown.push(heading.clone()),
                Some(column) if index_of[column as usize].is_some() => {
                    return Err(format!("column \"{heading}\" says the same as an earlier column; expected {FIELDS}"));
                }
                Some(column) => index_of[column as usize] = Some(position),
            }
        }
        let missing: Vec<&str> = REQUIRED.iter().filter(|c| index_of[**c as usize].is_none()).map(|c| c.name()).collect();
        if !missing.is_empty() {
            return Err(format!("the header lacks {}; expected {FIELDS}", missing.join(", ")));
        }
        let columns = headings.iter().map(|heading| Column::from_header(heading)).collect();
        Ok(Self { delimiter, headings, unknown, columns })
    }
}

fn headings(line: &str, delimiter: u8) -> Vec<String> {
    let mut csv = csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).trim(csv::Trim::All).from_reader(line.as_bytes());
    csv.records().next().and_then(Result::ok).map_or_else(Vec::new, |record| record.iter().map(str::to_owned).collect())
}

/// At most 60 characters of a text, in quotes.
pub(in crate::trace) fn quoted(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => format!("\"{text}\""),
        Some((end, _)) => format!("\"{}…\"", &text[..end]),
    }
}
