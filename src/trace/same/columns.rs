//! The columns of a log: which form it has, and where each field stands.

use super::rows::FirstLine;

/// What a header must have, for error messages.
pub(super) const EXPECTED: &str = "expected time, kind, process, message_type (and msg_id, peer, thread, seq, trace, scenario), \
     or sender, receiver, time (and sent, message_type, msg_id, sender_thread, receiver_thread, seq, trace, scenario)";

/// A column that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Time,
    Sent,
    Kind,
    Process,
    MessageType,
    MessageId,
    Peer,
    Thread,
    Seq,
    Trace,
    Scenario,
    Sender,
    Receiver,
    SenderThread,
    ReceiverThread,
}

/// Number of columns.
pub(super) const N_COLUMNS: usize = Column::ReceiverThread as usize + 1;

impl Column {
    fn from_header(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().replace([' ', '-'], "_").as_str() {
            "time" | "timestamp" | "received" | "received_at" => Self::Time,
            "sent" | "sent_at" => Self::Sent,
            "kind" | "event" => Self::Kind,
            "process" | "task" => Self::Process,
            "message_type" | "type" | "operation" => Self::MessageType,
            "msg_id" | "message_id" | "id" => Self::MessageId,
            "peer" => Self::Peer,
            "thread" | "thread_id" => Self::Thread,
            "seq" | "sequence" => Self::Seq,
            "trace" | "trace_id" => Self::Trace,
            "scenario" => Self::Scenario,
            "sender" | "from" => Self::Sender,
            "receiver" | "to" => Self::Receiver,
            "sender_thread" => Self::SenderThread,
            "receiver_thread" => Self::ReceiverThread,
            _ => return None,
        })
    }

    /// Whether the column belongs to rows of this shape.
    fn fits(self, shape: Shape) -> bool {
        match self {
            Self::Kind | Self::Process | Self::Peer | Self::Thread => shape == Shape::Events,
            Self::Sender | Self::Receiver | Self::Sent | Self::SenderThread | Self::ReceiverThread => shape == Shape::Messages,
            Self::Time | Self::MessageType | Self::MessageId | Self::Seq | Self::Trace | Self::Scenario => true,
        }
    }
}

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The sending or the reception of a message, or a local event.
    Events,
    /// A whole message.
    Messages,
}

/// Where the fields of a log's rows stand.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Separator of a CSV; `None` for the plain form.
    pub(super) delimiter: Option<u8>,
    pub(super) shape: Shape,
    /// Column headings, in file order.
    pub(super) headings: Vec<String>,
    /// Headings that mean nothing here.
    pub(super) unknown: Vec<String>,
    /// Whether the first line is a header.
    pub(super) has_header: bool,
    /// The number of that line, from 1.
    pub(super) line: u64,
    index_of: [Option<usize>; N_COLUMNS],
    /// What each position of a row says: a [`Column`], or [`N_COLUMNS`] for nothing.
    pub(super) columns: Vec<usize>,
}

impl Layout {
    /// The layout that a log's first line tells; `Err` says what was found and what was expected.
    pub(super) fn detect(line: &FirstLine) -> Result<Self, String> {
        let text = std::str::from_utf8(line.text.trim_ascii()).map_err(|_| format!("the first line is not UTF-8 text; {EXPECTED}"))?;
        for delimiter in [b',', b';', b'\t'] {
            let headings = headings(text, delimiter);
            if headings.len() > 1 && headings.iter().any(|h| Column::from_header(h).is_some()) {
                return Self::from_headings(Some(delimiter), headings, line.number);
            }
        }
        if text.contains(',') || text.contains(';') {
            return Err(format!("\"{}\" is not a header; {EXPECTED}", abridged(text)));
        }
        let has_header = text.split_ascii_whitespace().next().is_some_and(|first| first.eq_ignore_ascii_case("time"));
        Ok(Self::plain(has_header, line.number))
    }

    /// The columns of Table 1.
    fn plain(has_header: bool, line: u64) -> Self {
        let mut index_of = [None; N_COLUMNS];
        let columns = [Column::Time, Column::Kind, Column::Process, Column::MessageType];
        for (position, column) in columns.into_iter().enumerate() {
            index_of[column as usize] = Some(position);
        }
        let columns = columns.map(|column| column as usize).to_vec();
        let headings = ["time", "kind", "process", "message_type"].map(str::to_owned).to_vec();
        Self { delimiter: None, shape: Shape::Events, headings, unknown: Vec::new(), has_header, line, index_of, columns }
    }

    fn from_headings(delimiter: Option<u8>, headings: Vec<String>, line: u64) -> Result<Self, String> {
        let mut index_of = [None; N_COLUMNS];
        let mut unknown = Vec::new();
        for (position, heading) in headings.iter().enumerate() {
            match Column::from_header(heading) {
                None => unknown.push(heading.clone()),
                Some(column) if index_of[column as usize].is_some() => {
                    return Err(format!("column \"{heading}\" says the same as an earlier column; {EXPECTED}"));
                }
                Some(column) => index_of[column as usize] = Some(position),
            }
        }
        let shape = shape(&index_of)?;
        for heading in &headings {
            if Column::from_header(heading).is_some_and(|column| !column.fits(shape)) {
                return Err(format!("column \"{heading}\" does not belong to the others; {EXPECTED}"));
            }
        }
        let columns = headings.iter().map(|heading| Column::from_header(heading).map_or(N_COLUMNS, |column| column as usize)).collect();
        Ok(Self { delimiter, shape, headings, unknown, has_header: true, line, index_of, columns })
    }

    /// Where `column` stands in a row, if the log has it.
    pub(super) fn position(&self, column: Column) -> Option<usize> {
        self.index_of[column as usize]
    }

    /// The heading of `column`; empty if the log does not have it.
    pub(super) fn heading(&self, column: Column) -> &str {
        self.position(column).and_then(|i| self.headings.get(i)).map_or("", String::as_str)
    }
}

fn shape(index_of: &[Option<usize>; N_COLUMNS]) -> Result<Shape, String> {
    let missing = |columns: &[(Column, &str)]| -> Vec<String> {
        columns.iter().filter(|(column, _)| index_of[*column as usize].is_none()).map(|(_, name)| (*name).to_owned()).collect()
    };
    let for_messages = missing(&[(Column::Sender, "sender"), (Column::Receiver, "receiver"), (Column::Time, "time")]);
    let for_events =
        missing(&[(Column::Time, "time"), (Column::Kind, "kind"), (Column::Process, "process"), (Column::MessageType, "message_type")]);
    if for_messages.is_empty() {
        return Ok(Shape::Messages);
    }
    if for_events.is_empty() {
        return Ok(Shape::Events);
    }
    let wanted = if for_messages.len() < for_events.len() { for_messages } else { for_events };
    Err(format!("the header lacks {}; {EXPECTED}", wanted.join(", ")))
}

fn headings(line: &str, delimiter: u8) -> Vec<String> {
    let mut csv = csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).trim(csv::Trim::All).from_reader(line.as_bytes());
    csv.records().next().and_then(Result::ok).map_or_else(Vec::new, |record| record.iter().map(str::to_owned).collect())
}

/// At most 60 characters of a text.
pub(super) fn abridged(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
