//! The fields of a row: what they are called, and where a CSV has them.

/// What a trace must have, for error messages.
pub(super) const EXPECTED: &str = "expected operation, thread, next_thread, event, type, task, entry (and ack, cpu)";

/// A field that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Operation,
    Thread,
    NextThread,
    Index,
    Kind,
    Task,
    Entry,
    Ack,
    Cpu,
}

pub(super) const N_COLUMNS: usize = Column::Cpu as usize + 1;

impl Column {
    /// The first of its names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Thread => "thread",
            Self::NextThread => "next_thread",
            Self::Index => "event",
            Self::Kind => "type",
            Self::Task => "task",
            Self::Entry => "entry",
            Self::Ack => "ack",
            Self::Cpu => "cpu",
        }
    }

    /// The column of a heading or key; case does not matter, and blanks, `-` and `.` are as `_`.
    pub(super) fn from_name(text: &str) -> Option<Self> {
        match Self::from_plain_name(text) {
            None => Self::from_plain_name(&text.to_ascii_lowercase().replace([' ', '-', '.'], "_")),
            known => known,
        }
    }

    fn from_plain_name(text: &str) -> Option<Self> {
        Some(match text {
            "operation" | "op" | "operation_index" => Self::Operation,
            "thread" | "thread_current" | "current_thread" | "thread_index" => Self::Thread,
            "next_thread" | "thread_next" => Self::NextThread,
            "event" | "event_index" | "thread_event_index" | "index" => Self::Index,
            "type" | "event_type" | "kind" => Self::Kind,
            "task" => Self::Task,
            "entry" => Self::Entry,
            "ack" => Self::Ack,
            "cpu" | "cpu_time" | "cpu_ticks" => Self::Cpu,
            _ => return None,
        })
    }
}

/// Columns that a header must have.
const REQUIRED: [Column; 6] = [Column::Operation, Column::Thread, Column::Index, Column::Kind, Column::Task, Column::Entry];

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
    index_of: [Option<usize>; N_COLUMNS],
}

impl Layout {
    /// The layout that a header tells; `Err` says what was found and what was expected.
    pub(super) fn detect(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| format!("the first line is not UTF-8 text; {EXPECTED}"))?;
        for delimiter in [b',', b';', b'\t'] {
            let headings = headings(text, delimiter);
            if headings.len() > 1 && headings.iter().any(|h| Column::from_name(h).is_some()) {
                return Self::from_headings(delimiter, headings);
            }
        }
        Err(format!("\"{}\" is not a header; {EXPECTED}, or JSON lines", abridged(text)))
    }

    fn from_headings(delimiter: u8, headings: Vec<String>) -> Result<Self, String> {
        let mut index_of = [None; N_COLUMNS];
        let mut unknown = Vec::new();
        for (position, heading) in headings.iter().enumerate() {
            match Column::from_name(heading) {
                None => unknown.push(heading.clone()),
                Some(column) if index_of[column as usize].is_some() => {
                    return Err(format!("column \"{heading}\" says the same as an earlier column; {EXPECTED}"));
                }
                Some(column) => index_of[column as usize] = Some(position),
            }
        }
        let lacking: Vec<&str> =
            REQUIRED.iter().filter(|column| index_of[**column as usize].is_none()).map(|column| column.name()).collect();
        if lacking.is_empty() {
            let columns = headings.iter().map(|heading| Column::from_name(heading)).collect();
            Ok(Self { delimiter, headings, unknown, columns, index_of })
        } else {
            Err(format!("the header lacks {}; {EXPECTED}", lacking.join(", ")))
        }
    }

    /// Where `column` stands in a row, if the trace has it.
    pub(super) fn position(&self, column: Column) -> Option<usize> {
        self.index_of[column as usize]
    }
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
