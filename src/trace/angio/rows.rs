//! Rows of an angio trace: from fields to events.

use std::io::BufRead;

use super::{
    AngioEvent, AngioKind, BadRow, ReadError, Rows, Time,
    columns::{Column, Layout, N_COLUMNS, abridged},
};

/// Reads the rows of a CSV after its header, which is line `header_line`.
pub(super) fn read_csv(bytes: impl BufRead, layout: &Layout, header_line: u64, rows: &mut Rows<'_>) -> Result<(), ReadError> {
    let mut csv = csv::ReaderBuilder::new()
        .delimiter(layout.delimiter)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(bytes.chain(&b"\n"[..]));
    let mut record = csv::ByteRecord::new();
    while csv.read_byte_record(&mut record).map_err(|error| rows.unreadable(error.into()))? {
        if record.len() == 1 && record[0].trim_ascii().is_empty() {
            continue;
        }
        let mut fields: Fields<'_> = [b""; N_COLUMNS];
        for (text, column) in record.iter().zip(&layout.columns) {
            if let Some(column) = column {
                fields[*column as usize] = text.trim_ascii();
            }
        }
        let row = Row { log: rows.log, fields: &fields, headings: Some(layout) };
        let event = if record.len() == layout.headings.len() { row.event() } else { Err(row.wrong_length(record.len(), layout)) };
        match event {
            Ok(event) => (rows.sink)(event),
            Err(bad) => {
                let newlines: u64 = record.iter().map(|field| field.iter().filter(|b| **b == b'\n').count() as u64).sum();
                let line = csv.position().line().saturating_sub(1 + newlines).max(1) + header_line;
                rows.bad_row(BadRow { line, ..bad })?;
            }
        }
    }
    Ok(())
}

/// The texts of a row by [`Column`]; empty where the log does not have them.
pub(super) type Fields<'r> = [&'r [u8]; N_COLUMNS];

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
            trace: self.text(Column::Trace)?,
            thread: self.whole(Column::Thread, "a whole number, 0 or more")?,
            thread_node: self.counter(Column::ThreadNode)?,
            kind,
            task: self.name(Column::Task, "the name of a task")?,
            task_node: self.counter(Column::TaskNode)?,
            service: self.text(Column::Service)?,
            operation: self.text(Column::Operation)?,
            activity: self.text(Column::Activity)?,
            time: self.time()?,
            demand: self.number(Column::Demand, "a number of ticks, 0 or more", |demand| demand >= 0.0)?,
            weight: self.number(Column::Weight, "a number above 0", |weight| weight > 0.0)?,
        })
    }

    fn kind(&self) -> Result<AngioKind, BadRow> {
        let text = self.text(Column::Kind)?;
        let is = |names: [&str; 2]| names.iter().any(|name| text.eq_ignore_ascii_case(name));
        let kind = if is(["fork", "Fk"]) {
            return Ok(AngioKind::Fork { child_thread: self.whole(Column::ChildThread, "the thread that the fork starts")? });
        } else if is(["begin", "Be"]) {
            AngioKind::Begin
        } else if is(["activity", "Ac"]) {
            AngioKind::Activity
        } else if is(["end", "Ed"]) {
            AngioKind::End
        } else {
            return Err(self.wrong(Column::Kind, text, "begin, activity, fork or end"));
        };
        match self.text(Column::ChildThread)? {
            "" => Ok(kind),
            child => Err(self.wrong(Column::ChildThread, child, "nothing, as only a fork starts a thread")),
        }
    }

    fn text(&self, column: Column) -> Result<&'r str, BadRow> {
        let bytes = self.fields[column as usize];
        std::str::from_utf8(bytes).map_err(|_| self.wrong(column, &String::from_utf8_lossy(bytes), "UTF-8 text"))
    }

    fn name(&self, column: Column, expected: &str) -> Result<&'r str, BadRow> {
        match self.text(column)? {
            "" => Err(self.wrong(column, "", expected)),
            name => Ok(name),
        }
    }

    fn whole<N: std::str::FromStr>(&self, column: Column, expected: &str) -> Result<N, BadRow> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.wrong(column, text, expected))
    }

    fn counter<N: std::str::FromStr + PartialOrd + From<u8>>(&self, column: Column) -> Result<N, BadRow> {
        const EXPECTED: &str = "a whole number, 1 or more";
        let counter: N = self.whole(column, EXPECTED)?;
        if counter < N::from(1) { Err(self.wrong(column, self.text(column)?, EXPECTED)) } else { Ok(counter) }
    }

    fn time(&self) -> Result<Option<Time>, BadRow> {
        match self.text(Column::Time)? {
            "" => Ok(None),
            text => match Time::parse(text) {
                None => Err(self.wrong(Column::Time, text, "a time (a number of ticks)")),
                time => Ok(time),
            },
        }
    }

    fn number(&self, column: Column, expected: &str, fits: impl Fn(f64) -> bool) -> Result<Option<f64>, BadRow> {
        match self.text(column)? {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && fits(number) => Ok(Some(number)),
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
