//! Rows of an angio trace: from fields to events.

use std::io::BufRead;

use super::{
    AngioEvent, AngioKind, BadRow, ReadError, Rows, Time,
    columns::{Column, Layout, N_COLUMNS, abridged},
};
use crate::trace::{
    csv_rows::{CsvRows, OPEN_AND_EXPECTED},
    number,
};

/// Reads the rows of a CSV after its header, which is line `header_line`.
pub(super) fn read_csv(bytes: impl BufRead, layout: &Layout, header_line: u64, rows: &mut Rows<'_>) -> Result<(), ReadError> {
    let mut csv = CsvRows::new(bytes, layout.delimiter, header_line + 1);
    while csv.advance().map_err(|error| rows.unreadable(error))? {
        let found = csv.fields();
        let mut fields: Fields<'_> = [""; N_COLUMNS];
        let mut not_text = None;
        for (column, field) in layout.columns.iter().zip(found.iter()) {
            match (*column, field) {
                (Some(column), Ok(text)) => fields[column as usize] = text,
                (Some(column), Err(bytes)) => not_text = Some((column, bytes)),
                (None, _) => {}
            }
        }
        let row = Row { log: rows.log, fields: &fields, headings: Some(layout) };
        let event = match not_text {
            _ if csv.is_open() => Err(row.open()),
            _ if found.len() != layout.headings.len() => Err(row.wrong_length(found.len(), layout)),
            Some((column, bytes)) => Err(row.wrong(column, &String::from_utf8_lossy(bytes), "UTF-8 text")),
            None => row.event(),
        };
        match event {
            Ok(event) => (rows.sink)(event),
            Err(bad) => rows.bad_row(BadRow { line: csv.line(), ..bad })?,
        }
    }
    Ok(())
}

/// The texts of a row by [`Column`]; empty where the log does not have them.
pub(super) type Fields<'r> = [&'r str; N_COLUMNS];

/// A row before it is understood. The line of its [`BadRow`]s is left to the caller.
pub(super) struct Row<'a, 'r> {
    pub(super) log: &'a str,
    pub(super) fields: &'a Fields<'r>,
    /// What a CSV calls its columns.
    pub(super) headings: Option<&'a Layout>,
}

impl<'r> Row<'_, 'r> {
    /// The event that the row says.
    pub(super) fn event(&self) -> Result<AngioEvent<'r>, BadRow> {
        let kind = self.kind()?;
        Ok(AngioEvent {
            scenario: self.name(Column::Scenario, "the name of a scenario")?,
            trace: self.text(Column::Trace),
            thread: self.whole(Column::Thread, "a whole number, 0 or more")?,
            thread_node: self.counter(Column::ThreadNode)?,
            kind,
            task: self.name(Column::Task, "the name of a task")?,
            task_node: self.counter(Column::TaskNode)?,
            service: self.text(Column::Service),
            operation: self.text(Column::Operation),
            activity: self.text(Column::Activity),
            time: self.time()?,
            demand: self.number(Column::Demand, "a number of ticks, 0 or more", |demand| demand >= 0.0)?,
            weight: self.number(Column::Weight, "a number above 0", |weight| weight > 0.0)?,
        })
    }

    fn kind(&self) -> Result<AngioKind, BadRow> {
        let text = self.text(Column::Kind);
        let is = |names: [&str; 2]| names.contains(&text) || names.iter().any(|name| text.eq_ignore_ascii_case(name));
        let kind = if is(["fork", "Fk"]) {
            return Ok(AngioKind::Fork { child_thread: self.whole(Column::ChildThread, "the thread that the fork starts")? });
        } else if is(["activity", "Ac"]) {
            AngioKind::Activity
        } else if is(["begin", "Be"]) {
            AngioKind::Begin
        } else if is(["end", "Ed"]) {
            AngioKind::End
        } else {
            return Err(self.wrong(Column::Kind, text, "begin, activity, fork or end"));
        };
        match self.text(Column::ChildThread) {
            "" => Ok(kind),
            child => Err(self.wrong(Column::ChildThread, child, "nothing, as only a fork starts a thread")),
        }
    }

    fn text(&self, column: Column) -> &'r str {
        self.fields[column as usize]
    }

    fn name(&self, column: Column, expected: &str) -> Result<&'r str, BadRow> {
        match self.text(column) {
            "" => Err(self.wrong(column, "", expected)),
            name => Ok(name),
        }
    }

    fn whole<N: std::str::FromStr>(&self, column: Column, expected: &str) -> Result<N, BadRow> {
        let text = self.text(column);
        text.parse().map_err(|_| self.wrong(column, text, expected))
    }

    fn counter<N: std::str::FromStr + PartialOrd + From<u8>>(&self, column: Column) -> Result<N, BadRow> {
        const EXPECTED: &str = "a whole number, 1 or more";
        let counter: N = self.whole(column, EXPECTED)?;
        if counter < N::from(1) { Err(self.wrong(column, self.text(column), EXPECTED)) } else { Ok(counter) }
    }

    fn time(&self) -> Result<Option<Time>, BadRow> {
        match self.text(Column::Time) {
            "" => Ok(None),
            text => match Time::parse(text) {
                None => Err(self.wrong(Column::Time, text, "a time (a number of ticks)")),
                time => Ok(time),
            },
        }
    }

    fn number(&self, column: Column, expected: &str, fits: impl Fn(f64) -> bool) -> Result<Option<f64>, BadRow> {
        match self.text(column) {
            "" => Ok(None),
            text => match number::decimal(text) {
                Some(number) if number.is_finite() && fits(number) => Ok(Some(number)),
                _ => Err(self.wrong(column, text, expected)),
            },
        }
    }

    fn wrong(&self, column: Column, found: &str, expected: &str) -> BadRow {
        let found = if found.is_empty() { "missing".to_owned() } else { format!("\"{}\"", abridged(found)) };
        self.bad(self.heading(column), found, expected.to_owned())
    }

    fn wrong_length(&self, n_fields: usize, layout: &Layout) -> BadRow {
        let expected = format!("{} fields ({})", layout.headings.len(), layout.headings.join(", "));
        self.bad("row", format!("{n_fields} fields long"), expected)
    }

    fn open(&self) -> BadRow {
        let [found, expected] = OPEN_AND_EXPECTED.map(str::to_owned);
        self.bad("row", found, expected)
    }

    /// A bad row of this log.
    pub(super) fn bad(&self, field: &str, found: String, expected: String) -> BadRow {
        BadRow { log: self.log.to_owned(), line: 0, field: field.to_owned(), found, expected }
    }

    fn heading(&self, column: Column) -> &str {
        let heading = self.headings.and_then(|layout| {
            let position = layout.columns.iter().position(|known| *known == Some(column))?;
            layout.headings.get(position)
        });
        heading.map_or(column.name(), String::as_str)
    }
}
