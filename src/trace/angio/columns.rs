//! The columns of an angio trace: what each is called, and where it stands.

/// What a log must have, for error messages.
pub(super) const EXPECTED: &str = "expected scenario, thread, thread_node, kind, child_thread, task, task_node \
     (and trace, service, operation, activity, time, demand, weight)";

/// A column that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Scenario,
    Trace,
    Thread,
    ThreadNode,
    Kind,
    ChildThread,
    Task,
    TaskNode,
    Service,
    Operation,
    Activity,
    Time,
    Demand,
    Weight,
}

/// Number of columns.
pub(super) const N_COLUMNS: usize = Column::Weight as usize + 1;

/// Columns that every log has.
const NEEDED: [(Column, &str); 6] = [
    (Column::Scenario, "scenario"),
    (Column::Thread, "thread"),
    (Column::ThreadNode, "thread_node"),
    (Column::Kind, "kind"),
    (Column::Task, "task"),
    (Column::TaskNode, "task_node"),
];

impl Column {
    /// The column that `text` heads.
    pub(super) fn from_header(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().replace([' ', '-'], "_").as_str() {
            "scenario" => Self::Scenario,
            "trace" | "trace_id" => Self::Trace,
            "thread" | "scenario_thread" | "thread_id" => Self::Thread,
            "thread_node" | "thread_counter" => Self::ThreadNode,
            "kind" | "type" | "label" => Self::Kind,
            "child_thread" | "child" => Self::ChildThread,
            "task" | "task_id" => Self::Task,
            "task_node" | "task_counter" => Self::TaskNode,
            "service" | "process" => Self::Service,
            "operation" | "entry" => Self::Operation,
            "activity" | "activity_id" => Self::Activity,
            "time" | "timestamp" => Self::Time,
            "demand" | "cpu" => Self::Demand,
            "weight" => Self::Weight,
            _ => return None,
        })
    }

    /// Its plain name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Trace => "trace",
            Self::Thread => "thread",
            Self::ThreadNode => "thread_node",
            Self::Kind => "kind",
            Self::ChildThread => "child_thread",
            Self::Task => "task",
            Self::TaskNode => "task_node",
            Self::Service => "service",
            Self::Operation => "operation",
            Self::Activity => "activity",
            Self::Time => "time",
            Self::Demand => "demand",
            Self::Weight => "weight",
        }
    }
}

/// Where the fields of a CSV's rows stand.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) delimiter: u8,
    /// Column headings, in file order.
    pub(super) headings: Vec<String>,
    /// What each position of a row says.
    pub(super) columns: Vec<Option<Column>>,
    /// Headings that mean nothing here.
    pub(super) unknown: Vec<String>,
}

impl Layout {
    /// The layout that a log's first line tells; `Err` says what was found and what was expected.
    pub(super) fn detect(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| format!("the first line is not UTF-8 text; {EXPECTED}"))?;
        for delimiter in [b',', b';', b'\t'] {
            let headings = headings(text, delimiter);
            if headings.len() > 1 && headings.iter().any(|heading| Column::from_header(heading).is_some()) {
                return Self::from_headings(delimiter, headings);
            }
        }
        Err(format!("\"{}\" is not a header; {EXPECTED}", abridged(text)))
    }

    fn from_headings(delimiter: u8, headings: Vec<String>) -> Result<Self, String> {
        let columns: Vec<Option<Column>> = headings.iter().map(|heading| Column::from_header(heading)).collect();
        for (position, column) in columns.iter().enumerate() {
            if column.is_some() && columns[..position].contains(column) {
                return Err(format!("column \"{}\" says the same as an earlier column; {EXPECTED}", headings[position]));
            }
        }
        let missing: Vec<&str> = NEEDED.iter().filter(|(column, _)| !columns.contains(&Some(*column))).map(|(_, name)| *name).collect();
        if !missing.is_empty() {
            return Err(format!("the header lacks {}; {EXPECTED}", missing.join(", ")));
        }
        let unknown = headings.iter().zip(&columns).filter(|(_, column)| column.is_none()).map(|(heading, _)| heading.clone());
        Ok(Self { delimiter, unknown: unknown.collect(), headings, columns })
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
