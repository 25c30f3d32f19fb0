//! From the fields of a row to an event, whatever the row was written in.

use super::{
    BadEvent, Event, EventKind,
    columns::{Column, N_COLUMNS, abridged},
};
use crate::trace::number;

/// A field as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Field<'r> {
    #[default]
    Missing,
    /// A whole number, 0 or more.
    Whole(u64),
    /// Any other number.
    Number(f64),
    Flag(bool),
    Text(&'r str),
    /// What no field can be; how to name it.
    Unusable(&'static str),
}

/// A row's fields by column, with the names that the trace has for them.
pub(super) struct Row<'r, 'n> {
    pub(super) trace: &'n str,
    /// The line that it begins on, from 1.
    pub(super) line_of: &'n dyn Fn() -> u64,
    pub(super) fields: &'r [Field<'r>; N_COLUMNS],
    /// The heading of a column in this trace.
    pub(super) name_of: &'n dyn Fn(Column) -> String,
}

impl<'r> Row<'r, '_> {
    /// The event that the row holds.
    pub(super) fn event(&self) -> Result<Event<'r>, BadEvent> {
        let kind = self.kind()?;
        let is_fork = kind == EventKind::Fork;
        Ok(Event {
            operation: self.whole(Column::Operation, "a whole number, 0 or more")?,
            thread: self.whole(Column::Thread, "a whole number, 0 or more")?,
            next_thread: if is_fork { Some(self.whole(Column::NextThread, "the whole number of the spawned thread")?) } else { None },
            index: match self.whole(Column::Index, "a whole number, 1 or more")? {
                0 => return Err(self.wrong(Column::Index, "a whole number, 1 or more")),
                index => index,
            },
            kind,
            task: self.name(Column::Task, "the name of a task")?,
            entry: self.name(Column::Entry, "the name of an entry")?,
            ack: if is_fork { self.flag(Column::Ack)? } else { None },
            cpu_ticks: self.ticks(Column::Cpu)?,
        })
    }

    fn field(&self, column: Column) -> &'r Field<'r> {
        &self.fields[column as usize]
    }

    fn kind(&self) -> Result<EventKind, BadEvent> {
        let kind = match self.field(Column::Kind) {
            Field::Text(text) => EventKind::parse(text),
            _ => None,
        };
        kind.ok_or_else(|| self.wrong(Column::Kind, "Ex, Be, Ac, Fo, Se, Re, Sa, Ra or En"))
    }

    fn whole(&self, column: Column, expected: &str) -> Result<u64, BadEvent> {
        let number = match self.field(column) {
            Field::Whole(number) => Some(*number),
            Field::Text(text) => whole(text),
            _ => None,
        };
        number.ok_or_else(|| self.wrong(column, expected))
    }

    fn name(&self, column: Column, expected: &str) -> Result<&'r str, BadEvent> {
        match self.field(column) {
            Field::Text(text) if !text.is_empty() => Ok(text),
            _ => Err(self.wrong(column, expected)),
        }
    }

    fn flag(&self, column: Column) -> Result<Option<bool>, BadEvent> {
        match self.field(column) {
            Field::Missing => Ok(None),
            Field::Flag(flag) => Ok(Some(*flag)),
            Field::Whole(0) => Ok(Some(false)),
            Field::Whole(1) => Ok(Some(true)),
            Field::Text(text) => match text.to_ascii_lowercase().as_str() {
                "" => Ok(None),
                "true" | "yes" | "y" | "1" => Ok(Some(true)),
                "false" | "no" | "n" | "0" => Ok(Some(false)),
                _ => Err(self.wrong(column, "true or false")),
            },
            _ => Err(self.wrong(column, "true or false")),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "ticks are rounded to the precision of f64")]
    fn ticks(&self, column: Column) -> Result<Option<f64>, BadEvent> {
        let ticks = match self.field(column) {
            Field::Missing => return Ok(None),
            Field::Whole(number) => Some(*number as f64),
            Field::Number(number) => Some(*number),
            Field::Text("") => return Ok(None),
            Field::Text(text) => number::decimal(text),
            Field::Flag(_) | Field::Unusable(_) => None,
        };
        let ticks = ticks.filter(|ticks: &f64| ticks.is_finite() && *ticks >= 0.0);
        ticks.map(Some).ok_or_else(|| self.wrong(column, "a number of ticks, 0 or more"))
    }

    fn wrong(&self, column: Column, expected: &str) -> BadEvent {
        let found = match self.field(column) {
            Field::Missing => "missing".to_owned(),
            Field::Whole(number) => number.to_string(),
            Field::Number(number) => number.to_string(),
            Field::Flag(flag) => flag.to_string(),
            Field::Text("") => "missing".to_owned(),
            Field::Text(text) => format!("\"{}\"", abridged(text)),
            Field::Unusable(what) => (*what).to_owned(),
        };
        BadEvent {
            trace: self.trace.to_owned(),
            line: (self.line_of)(),
            field: (self.name_of)(column),
            found,
            expected: expected.to_owned(),
        }
    }
}

/// A number of digits only: what `str::parse` also takes (`+5`) is not a number here.
fn whole(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { number::unsigned(text) }
}
