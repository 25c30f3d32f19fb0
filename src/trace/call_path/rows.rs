//! Rows of call-path records: from fields to events.

use std::io::BufRead;

use super::{
    Action, BadRow, Event, Key, Kind, ReadError, ReadOptions, ReadReport, Sink, Texts,
    columns::{Column, Layout, N_COLUMNS, quoted},
};
use crate::trace::{
    BadRows,
    csv_rows::{self, CsvRows, OPEN_AND_EXPECTED},
    lines::next_line,
    number,
    recent::Recent,
};

/// The fields of a row; `None` is a field that the row does not have.
pub(super) type Cells<'r> = [Option<&'r str>; N_COLUMNS];

/// The texts of an object of JSON.
type OwnedCells = [Option<String>; N_COLUMNS];

/// Reads the rows of one source into the sink.
pub(super) struct RowReader<'a, 's> {
    pub(super) log: &'a str,
    pub(super) options: &'a ReadOptions,
    pub(super) texts: &'a mut Texts,
    pub(super) sink: &'a mut Sink<'s>,
    pub(super) report: &'a mut ReadReport,
    /// Numbers of services.
    pub(super) recent: Recent,
    /// Numbers of servers and threads.
    pub(super) recent_names: Recent,
}

impl RowReader<'_, '_> {
    /// Reads the rows of a CSV after its header, which is line `header_line`.
    pub(super) fn read_csv(&mut self, bytes: impl BufRead, layout: &Layout, header_line: u64) -> Result<(), ReadError> {
        let mut csv = CsvRows::new(bytes, layout.delimiter, header_line + 1);
        while csv.advance().map_err(|source| ReadError::Unreadable { log: self.log.to_owned(), source })? {
            let cells = if csv.is_open() {
                let [found, expected] = OPEN_AND_EXPECTED.map(str::to_owned);
                Err(self.bad(csv.line(), "row", found, expected))
            } else {
                self.csv_cells(&csv.fields(), layout, csv.line())
            };
            self.row(cells, csv.line())?;
        }
        Ok(())
    }

    fn csv_cells<'r>(&self, fields: &csv_rows::Fields<'r>, layout: &Layout, line: u64) -> Result<Cells<'r>, BadRow> {
        if fields.len() != layout.headings.len() {
            let expected = format!("{} fields ({})", layout.headings.len(), layout.headings.join(", "));
            return Err(self.bad(line, "row", format!("{} fields long", fields.len()), expected));
        }
        let mut cells: Cells<'r> = [None; N_COLUMNS];
        if let Some(texts) = fields.texts() {
            for (column, text) in layout.columns.iter().zip(texts) {
                if let Some(column) = *column {
                    cells[column as usize] = (!text.is_empty()).then_some(text);
                }
            }
            return Ok(cells);
        }
        for ((column, heading), field) in layout.columns.iter().zip(&layout.headings).zip(fields.iter()) {
            let Some(column) = *column else { continue };
            let text = field.map_err(|bytes| self.bad(line, heading, quoted(&String::from_utf8_lossy(bytes)), "UTF-8 text".to_owned()))?;
            cells[column as usize] = (!text.is_empty()).then_some(text);
        }
        Ok(cells)
    }

    /// Reads JSON lines.
    pub(super) fn read_json(&mut self, mut bytes: impl BufRead) -> Result<(), ReadError> {
        let mut line = Vec::new();
        for number in 1.. {
            let more =
                next_line(&mut bytes, &mut line, number).map_err(|source| ReadError::Unreadable { log: self.log.to_owned(), source })?;
            if !more {
                break;
            }
            let text = line.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let cells = self.json_cells(text, number);
            let cells = cells.as_ref().map(|cells| cells.each_ref().map(Option::as_deref));
            self.row(cells.map_err(BadRow::clone), number)?;
        }
        Ok(())
    }

    fn json_cells(&mut self, text: &[u8], line: u64) -> Result<OwnedCells, BadRow> {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(text).map_err(|error| {
            self.bad(line, "row", quoted(&String::from_utf8_lossy(text)), format!("one JSON object in a line ({error})"))
        })?;
        let mut cells = OwnedCells::default();
        for (name, value) in object {
            let Some(column) = Column::from_header(&name) else {
                if self.options.bad_rows == BadRows::Reject {
                    return Err(self.bad(line, &name, "there".to_owned(), super::columns::FIELDS.to_owned()));
                }
                self.note_unknown(&name);
                continue;
            };
            let text = match value {
                serde_json::Value::Null => continue,
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            };
            cells[column as usize] = (!text.is_empty()).then_some(text);
        }
        Ok(cells)
    }

    pub(super) fn note_unknown(&mut self, name: &str) {
        let log = self.log;
        self.report.diagnostics.add("unknown_column", "columns that are not known were ignored", || format!("{log}: {name}"));
    }

    fn row(&mut self, cells: Result<Cells<'_>, BadRow>, line: u64) -> Result<(), ReadError> {
        self.report.n_rows += 1;
        let mut params = Vec::new();
        let bad = match cells {
            Err(bad) => bad,
            Ok(cells) => match self.event(&cells, line, &mut params) {
                Ok(event) => {
                    self.report.n_events += 1;
                    (self.sink)(self.texts, &event);
                    return Ok(());
                }
                Err(bad) => bad,
            },
        };
        if self.options.bad_rows == BadRows::Reject {
            return Err(bad.into());
        }
        self.report.diagnostics.add("bad_row", "rows that cannot be read were skipped", || bad.to_string());
        Ok(())
    }

    fn event<'r>(&mut self, cells: &Cells<'r>, line: u64, params: &'r mut Vec<(String, String)>) -> Result<Event<'r>, BadRow> {
        let text = |column: Column| cells[column as usize];
        let required = |column: Column, expected: &str| {
            text(column).ok_or_else(|| self.bad(line, column.name(), "missing".to_owned(), expected.to_owned()))
        };
        let context = Key::of(required(Column::ContextId, "what the records of one system request share")?);
        let time_ns = self.time_ns(required(Column::Time, "a time")?, line)?;
        let kind = required(Column::Kind, KINDS)?;
        let component = required(Column::Component, "the name of a component class")?;
        let method = required(Column::Method, "the name of a method")?;
        let order = match text(Column::RecordId) {
            None => None,
            Some(id) => {
                Some(number::unsigned(id).ok_or_else(|| self.bad(line, "record_id", quoted(id), "a whole number, 0 or more".to_owned()))?)
            }
        };
        let action = match text(Column::Action) {
            None => None,
            Some(action) => Some(
                parse_action(action)
                    .ok_or_else(|| self.bad(line, "action", quoted(action), "internal, branch(I), loop or iteration".to_owned()))?,
            ),
        };
        if let Some(text) = text(Column::Params) {
            *params = parse_params(text)
                .ok_or_else(|| self.bad(line, "params", quoted(text), "name=value with | between them, or a JSON object".to_owned()))?;
        }
        let message = text(Column::MessageId).map(Key::of);
        let texts = &mut *self.texts;
        let location = self.recent.number(component, method, || texts.location(component, method));
        let is = |word: &str| kind.eq_ignore_ascii_case(word);
        let kind = if is("entry") {
            Kind::Entry { location, action, params }
        } else if is("exit") {
            Kind::Exit { location }
        } else if is("call") {
            Kind::Call { location, returns: true }
        } else if is("return") {
            Kind::Return { location }
        } else if is("send") {
            Kind::Send { location, message }
        } else if is("receive") {
            Kind::Receive { location, message }
        } else {
            return Err(self.bad(line, "kind", quoted(kind), KINDS.to_owned()));
        };
        let names = &mut self.texts.names;
        let mut name = |name| self.recent_names.number(name, "", || names.intern(name));
        Ok(Event {
            context,
            transaction: text(Column::TransactionId).map(Key::of),
            order,
            time_ns,
            server: text(Column::Server).map(&mut name),
            thread: text(Column::Thread).map(&mut name),
            session: text(Column::SessionId),
            kind,
        })
    }

    /// Nanoseconds; fractions of one are cut off.
    fn time_ns(&self, text: &str, line: u64) -> Result<i64, BadRow> {
        let time = parse_time_ns(text, self.options.time_unit.nanoseconds());
        time.ok_or_else(|| self.bad(line, "time", quoted(text), format!("a time (a number of {})", self.options.time_unit.name())))
    }

    fn bad(&self, line: u64, field: &str, found: String, expected: String) -> BadRow {
        BadRow { log: self.log.to_owned(), line, field: field.to_owned(), found, expected }
    }
}

const KINDS: &str = "entry, exit, call, return, send or receive";

/// Reads a whole number or a decimal fraction of units of `unit_ns` nanoseconds.
pub(in crate::trace) fn parse_time_ns(text: &str, unit_ns: i64) -> Option<i64> {
    if let Some(whole) = number::whole(text) {
        return whole.checked_mul(unit_ns);
    }
    let (whole, fraction) = text.split_once('.')?;
    let (negative, whole) = whole.strip_prefix('-').map_or((false, whole), |rest| (true, rest));
    if !(whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let parts = fraction.bytes().chain(std::iter::repeat(b'0')).take(9).fold(0, |sum, b| sum * 10 + i128::from(b - b'0'));
    let time = i128::from(whole) * i128::from(unit_ns) + parts * i128::from(unit_ns) / 1_000_000_000;
    i64::try_from(if negative { -time } else { time }).ok()
}

fn parse_action(text: &str) -> Option<Action> {
    let text = text.to_ascii_lowercase();
    let index = text.strip_prefix("branch").map(|rest| rest.trim_start_matches(['(', ':', ' ']).trim_end_matches(')'));
    match (text.as_str(), index) {
        ("internal", _) => Some(Action::Internal),
        ("loop", _) => Some(Action::Loop),
        ("iteration", _) => Some(Action::Iteration),
        (_, Some(index)) => index.parse().ok().map(Action::Branch),
        _ => None,
    }
}

fn parse_params(text: &str) -> Option<Vec<(String, String)>> {
    if text.starts_with('{') {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
        let rendered = |value: serde_json::Value| match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        return Some(object.into_iter().map(|(name, value)| (name, rendered(value))).collect());
    }
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    text.split('|').map(pair).collect()
}
