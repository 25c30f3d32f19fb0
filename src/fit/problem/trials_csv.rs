//! Trials as CSV: one row a trial.
//!
//! | header cell | column holds |
//! |---|---|
//! | `$name` | a controlled value; never empty |
//! | a measure, `throughput(User)` | measured values; empty is missing |
//! | `stderr(MEASURE)` | standard errors of that measure, > 0 |
//! | `weight(MEASURE)` | weights of that measure in the sum of squares, ≥ 0 |
//! | `covariance(MEASURE;MEASURE)` | covariances of the errors of two measures in one trial; variances where both are one |
//! | `trial` | ids; without it, row numbers from 1 |
//! | `duration` | how long the trial was measured, > 0 |
//! | `time` | when it was measured, in any unit; it orders the trials where parameters drift |
//!
//! Quoted cells, a byte order mark, CRLF and blank around cells are accepted; a row of nothing but empty cells is skipped.

use csv::StringRecord;
use indexmap::IndexSet;

use super::trials::{
    Bounds, ErrorCovariance, FINITE, Measured, NOT_NEGATIVE, POSITIVE, POSITIVE_WITH_A_SQUARE, Trial, Trials, TrialsError, WITH_A_SQUARE,
    has_a_square, is_parameter_name,
};
use crate::model::Measure;

/// What a column holds; positions are those of the measure among the measures.
#[derive(Clone, Debug, PartialEq)]
enum Column {
    Id,
    Duration,
    Time,
    Controlled(String),
    Value(usize),
    StandardError(usize),
    Weight(usize),
    Covariance(usize, usize),
}

#[derive(Debug)]
struct Header {
    cells: Vec<String>,
    columns: Vec<Column>,
    measures: Vec<Measure>,
}

impl Trials {
    /// Reads CSV.
    ///
    /// # Errors
    /// [`TrialsError`] naming row and column header of the first cell that cannot be used.
    pub fn from_csv(bytes: &[u8]) -> Result<Self, TrialsError> {
        Self::from_csv_within(bytes, &Bounds::NONE)
    }

    /// As [`Trials::from_csv`], of no more than is allowed.
    ///
    /// # Errors
    /// As [`Trials::from_csv`], and [`TrialsError::TooMany`] before the rest is read.
    pub fn from_csv_within(bytes: &[u8], bounds: &Bounds) -> Result<Self, TrialsError> {
        let trials = Self::read_csv(bytes, bounds)?;
        trials.check()?;
        Ok(trials)
    }

    /// Reads CSV of trials that are planned: measures may be empty cells throughout.
    ///
    /// # Errors
    /// As [`Trials::from_csv`].
    pub fn plan_from_csv(bytes: &[u8]) -> Result<Self, TrialsError> {
        let trials = Self::read_csv(bytes, &Bounds::NONE)?;
        trials.check_plan()?;
        Ok(trials)
    }

    fn read_csv(bytes: &[u8], bounds: &Bounds) -> Result<Self, TrialsError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        std::str::from_utf8(bytes).map_err(|e| TrialsError::NotUtf8 { byte: e.valid_up_to() })?;
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(bytes);
        let mut records = reader.records().enumerate().map(|(row, record)| {
            let reason = |e: csv::Error| TrialsError::Csv { row, reason: e.to_string() };
            record.map(|r| (row, r)).map_err(reason)
        });
        let first = records.next().ok_or(TrialsError::Empty)??.1;
        bounds.check(0, first.len())?;
        let header = Header::read(&first)?;
        let mut trials = Vec::new();
        for record in records {
            let (row, record) = record?;
            if record.iter().all(str::is_empty) {
                continue;
            }
            trials.push(header.trial(row, &record)?);
            bounds.check(trials.len(), header.columns.len())?;
        }
        Ok(Self { measures: header.measures, trials })
    }

    /// Writes CSV that [`Trials::from_csv`] reads back to the same trials.
    pub fn to_csv(&self) -> String {
        let controlled = self.controlled_names();
        let any = |index: usize, of: fn(&Measured) -> Option<f64>| {
            self.trials.iter().any(|t| t.measured.get(index).copied().flatten().and_then(|m| of(&m)).is_some())
        };
        let mut columns: Vec<(String, Column)> = vec![("trial".into(), Column::Id)];
        if self.trials.iter().any(|t| t.duration.is_some()) {
            columns.push(("duration".into(), Column::Duration));
        }
        if self.trials.iter().any(|t| t.time.is_some()) {
            columns.push(("time".into(), Column::Time));
        }
        columns.extend(controlled.iter().map(|name| (format!("${name}"), Column::Controlled((*name).to_owned()))));
        for (index, measure) in self.measures.iter().enumerate() {
            columns.push((measure.to_string(), Column::Value(index)));
            if any(index, |m| m.std_error) {
                columns.push((format!("stderr({measure})"), Column::StandardError(index)));
            }
            if any(index, |m| m.weight) {
                columns.push((format!("weight({measure})"), Column::Weight(index)));
            }
        }
        let mut pairs: IndexSet<(usize, usize)> = IndexSet::new();
        for c in self.trials.iter().flat_map(|t| &t.covariances) {
            if !pairs.contains(&(c.second, c.first)) {
                pairs.insert((c.first, c.second));
            }
        }
        for (i, j) in pairs {
            columns.push((format!("covariance({};{})", self.measures[i], self.measures[j]), Column::Covariance(i, j)));
        }
        let header: Vec<String> = columns.iter().map(|(cell, _)| quoted(cell)).collect();
        let row = |t: &Trial| columns.iter().map(|(_, column)| quoted(&column.cell(t))).collect::<Vec<_>>().join(",");
        std::iter::once(header.join(",")).chain(self.trials.iter().map(row)).fold(String::new(), |text, line| text + &line + "\n")
    }
}

impl Header {
    fn read(record: &StringRecord) -> Result<Self, TrialsError> {
        let cells: Vec<String> = record.iter().map(str::to_owned).collect();
        for (second, cell) in cells.iter().enumerate() {
            if let Some(first) = cells[..second].iter().position(|other| other == cell) {
                return Err(TrialsError::DuplicateColumn { cell: cell.clone(), first: first + 1, second: second + 1 });
            }
        }
        let mut measures: Vec<Measure> = Vec::new();
        for cell in cells.iter().filter(|cell| companion(cell).is_none() && pair(cell).is_none()) {
            if let Ok(measure) = cell.parse::<Measure>() {
                measures.push(measure);
            }
        }
        if let ([cell], true) = (cells.as_slice(), measures.is_empty()) {
            let separated =
                [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")].into_iter().find(|(separator, _)| cell.contains(*separator));
            if let Some((_, found)) = separated {
                return Err(TrialsError::Separator { found });
            }
        }
        let columns = cells.iter().enumerate().map(|(i, cell)| column(cell, i + 1, &measures)).collect::<Result<_, _>>()?;
        let header = Self { cells, columns, measures };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), TrialsError> {
        for (second, kind) in self.columns.iter().enumerate() {
            if let Some(first) = self.columns[..second].iter().position(|other| other == kind) {
                return Err(TrialsError::DuplicateColumn { cell: self.cells[second].clone(), first: first + 1, second: second + 1 });
            }
        }
        for (index, measure) in self.measures.iter().enumerate() {
            if self.columns.contains(&Column::StandardError(index)) && self.columns.contains(&Column::Weight(index)) {
                return Err(TrialsError::StandardErrorAndWeight { measure: measure.clone() });
            }
        }
        if self.measures.is_empty() { Err(TrialsError::NoMeasures) } else { Ok(()) }
    }

    fn trial(&self, row: usize, record: &StringRecord) -> Result<Trial, TrialsError> {
        if record.len() != self.columns.len() {
            return Err(TrialsError::RowLength { row, found: record.len(), expected: self.columns.len() });
        }
        let mut trial = Trial { id: row.to_string(), measured: vec![None; self.measures.len()], ..Trial::default() };
        let mut companions = Vec::new();
        for ((cell, header), column) in record.iter().zip(&self.cells).zip(&self.columns) {
            let number = |expected, accept: fn(f64) -> bool| number(cell, row, header, expected, accept);
            match column {
                Column::Id if !cell.is_empty() => cell.clone_into(&mut trial.id),
                Column::Controlled(name) => trial.controlled.set(name.clone(), number(FINITE, f64::is_finite)?),
                _ if cell.is_empty() => {}
                Column::Id => {}
                Column::Duration => trial.duration = Some(number(POSITIVE, |v| v > 0.0)?),
                Column::Time => trial.time = Some(number(FINITE, f64::is_finite)?),
                Column::Value(index) => {
                    number(FINITE, f64::is_finite)?;
                    let value = number(WITH_A_SQUARE, has_a_square)?;
                    trial.measured[*index] = Some(Measured { value, std_error: None, weight: None });
                }
                Column::StandardError(index) => {
                    number(POSITIVE, |v| v > 0.0)?;
                    companions.push((*index, header, number(POSITIVE_WITH_A_SQUARE, has_a_square)?, true));
                }
                Column::Weight(index) => companions.push((*index, header, number(NOT_NEGATIVE, |v| v >= 0.0)?, false)),
                Column::Covariance(first, second) => {
                    trial.covariances.push(ErrorCovariance { first: *first, second: *second, value: number(FINITE, f64::is_finite)? });
                }
            }
        }
        for (index, header, value, is_standard_error) in companions {
            match &mut trial.measured[index] {
                Some(measured) if is_standard_error => measured.std_error = Some(value),
                Some(measured) => measured.weight = Some(value),
                // Of what is planned errors may be known before values.
                None if is_standard_error => {
                    trial.planned_errors.resize(trial.measured.len(), None);
                    trial.planned_errors[index] = Some(value);
                }
                None => {
                    let measure = self.measures[index].clone();
                    return Err(TrialsError::WithoutValue { row, column: header.clone(), measure });
                }
            }
        }
        Ok(trial)
    }
}

impl Column {
    fn cell(&self, trial: &Trial) -> String {
        let measured = |index: &usize| trial.measured.get(*index).copied().flatten();
        let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
        match self {
            Self::Id => trial.id.clone(),
            Self::Duration => number(trial.duration),
            Self::Time => number(trial.time),
            Self::Controlled(name) => number(trial.controlled.get(name)),
            Self::Value(index) => number(measured(index).map(|m| m.value)),
            Self::StandardError(index) => number(measured(index).and_then(|m| m.std_error)),
            Self::Weight(index) => number(measured(index).and_then(|m| m.weight)),
            Self::Covariance(i, j) => {
                let is_it = |c: &&ErrorCovariance| (c.first, c.second) == (*i, *j) || (c.second, c.first) == (*i, *j);
                number(trial.covariances.iter().find(is_it).map(|c| c.value))
            }
        }
    }
}

/// The inside of `stderr(...)` or `weight(...)`.
fn companion(cell: &str) -> Option<(&str, &str)> {
    let (kind, rest) = cell.split_once('(')?;
    let kind = kind.trim();
    matches!(kind, "stderr" | "weight").then(|| (kind, rest.strip_suffix(')').unwrap_or(rest)))
}

/// The two inside `covariance(...;...)`.
fn pair(cell: &str) -> Option<(&str, &str)> {
    let inside = cell.strip_prefix("covariance")?.trim().strip_prefix('(')?.strip_suffix(')')?;
    inside.split_once(';').map(|(one, other)| (one.trim(), other.trim()))
}

fn column(cell: &str, position: usize, measures: &[Measure]) -> Result<Column, TrialsError> {
    if let Some(name) = cell.strip_prefix('$') {
        return match is_parameter_name(name) {
            true => Ok(Column::Controlled(name.to_owned())),
            false => Err(TrialsError::HeaderName { cell: cell.to_owned(), column: position }),
        };
    }
    match cell {
        "trial" => return Ok(Column::Id),
        "duration" => return Ok(Column::Duration),
        "time" => return Ok(Column::Time),
        _ => {}
    }
    let header_error = |source| TrialsError::Header { cell: cell.to_owned(), column: position, source };
    if let Some((one, other)) = pair(cell) {
        let index = |text: &str| {
            let measure: Measure = text.parse().map_err(header_error)?;
            let found = measures.iter().position(|m| *m == measure);
            found.ok_or_else(|| TrialsError::Companionless { cell: cell.to_owned(), measure })
        };
        return Ok(Column::Covariance(index(one)?, index(other)?));
    }
    let (kind, text) = companion(cell).map_or((None, cell), |(kind, inside)| (Some(kind), inside));
    let measure: Measure = text.parse().map_err(header_error)?;
    let index = measures.iter().position(|m| *m == measure);
    match (kind, index) {
        (None, Some(index)) => Ok(Column::Value(index)),
        (Some("stderr"), Some(index)) => Ok(Column::StandardError(index)),
        (Some(_), Some(index)) => Ok(Column::Weight(index)),
        (_, None) => Err(TrialsError::Companionless { cell: cell.to_owned(), measure }),
    }
}

fn number(cell: &str, row: usize, header: &str, expected: &'static str, accept: fn(f64) -> bool) -> Result<f64, TrialsError> {
    let parsed = cell.parse::<f64>().ok().filter(|v| v.is_finite() && accept(*v));
    parsed.ok_or_else(|| TrialsError::Cell { row, column: header.to_owned(), cell: cell.to_owned(), expected })
}

/// A cell, quoted where CSV asks for it.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}
