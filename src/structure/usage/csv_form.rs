//! Behaviours as CSV: a header of states, one row a state, `*` at the entry, `$` the column of Exit (van Hoorn et al., Fig. 9).
//!
//! ```text
//! ,S0,S1,S2,$
//! S0*,0,0.7,0.1,0.2
//! S1,0,0.5,0.1,0.4
//! S2,0.1,0.5,0,0.4
//! ```

use nalgebra::DMatrix;

use super::behaviour::{Behaviour, BehaviourError, START};

/// A behaviour's file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// It is not CSV.
    #[error("behaviour \"{name}\": it is not CSV")]
    Csv {
        /// The behaviour.
        name: String,
        /// Why.
        #[source]
        source: csv::Error,
    },
    /// Its header is not one.
    #[error("behaviour \"{name}\", line 1: {found}, expected an empty cell, the names of the states, and $")]
    Header {
        /// The behaviour.
        name: String,
        /// What is wrong.
        found: String,
    },
    /// A row is not a state's.
    #[error("behaviour \"{name}\", line {line}: {found}, expected {expected}")]
    Row {
        /// The behaviour.
        name: String,
        /// Line, from 1.
        line: u64,
        /// What is there.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The entry state is not unique.
    #[error("behaviour \"{name}\": {found} states are marked with * as the entry, expected one")]
    Entry {
        /// The behaviour.
        name: String,
        /// How many.
        found: usize,
    },
    /// The numbers are no behaviour.
    #[error(transparent)]
    Behaviour(#[from] BehaviourError),
}

struct Rows {
    states: Vec<String>,
    /// Shape `(n, n + 1)`, Exit last.
    probabilities: DMatrix<f64>,
    entries: Vec<usize>,
}

/// Reads the behaviour called `name`. Think times are not part of the file.
///
/// # Errors
/// [`CsvError`], naming the line.
pub fn parse_behaviour(name: &str, text: &str) -> Result<Behaviour, CsvError> {
    let rows = parse_rows(name, text)?;
    let [entry] = rows.entries.as_slice() else { return Err(CsvError::Entry { name: name.to_owned(), found: rows.entries.len() }) };
    let virtual_start = rows.states[*entry] == START;
    let kept: Vec<usize> = (0..rows.states.len()).filter(|i| !(virtual_start && i == entry)).collect();
    let start = |i: &usize| if virtual_start { rows.probabilities[(*entry, *i)] } else { f64::from(u8::from(i == entry)) };
    let behaviour = Behaviour {
        name: name.to_owned(),
        services: kept.iter().map(|i| rows.states[*i].clone()).collect(),
        start: kept.iter().map(start).collect(),
        transitions: DMatrix::from_fn(kept.len(), kept.len(), |i, j| rows.probabilities[(kept[i], kept[j])]),
        exit: kept.iter().map(|i| rows.probabilities[(*i, rows.states.len())]).collect(),
        think: None,
    };
    behaviour.check()?;
    Ok(behaviour)
}

fn parse_rows(name: &str, text: &str) -> Result<Rows, CsvError> {
    let owned = || name.to_owned();
    let mut reader = csv::ReaderBuilder::new().has_headers(true).trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|source| CsvError::Csv { name: owned(), source })?.clone();
    let cells: Vec<&str> = header.iter().collect();
    let [first, states @ .., last] = cells.as_slice() else {
        return Err(CsvError::Header { name: owned(), found: format!("{} cells", cells.len()) });
    };
    let repeated = states.iter().enumerate().find(|(i, state)| state.is_empty() || states[..*i].contains(state));
    if !first.is_empty() || *last != "$" || repeated.is_some() {
        let found = repeated.map_or_else(|| format!("\"{}\"", cells.join(",")), |(_, state)| format!("state \"{state}\" twice or empty"));
        return Err(CsvError::Header { name: owned(), found });
    }
    let states: Vec<String> = states.iter().map(|state| (*state).to_owned()).collect();
    let mut probabilities = DMatrix::zeros(states.len(), states.len() + 1);
    let (mut entries, mut seen) = (Vec::new(), vec![false; states.len()]);
    for record in reader.records() {
        let record = record.map_err(|source| CsvError::Csv { name: owned(), source })?;
        let line = record.position().map_or(0, csv::Position::line);
        let error = |found: String, expected| CsvError::Row { name: owned(), line, found, expected };
        let label = record.get(0).unwrap_or("");
        let state = label.strip_suffix('*').unwrap_or(label);
        let Some(i) = states.iter().position(|known| known == state).filter(|i| !seen[*i]) else {
            return Err(error(format!("\"{label}\""), "a state of the header that has no row yet"));
        };
        seen[i] = true;
        if label.ends_with('*') {
            entries.push(i);
        }
        if record.len() != states.len() + 2 {
            return Err(error(format!("{} cells", record.len()), "as many cells as in the header"));
        }
        for (j, cell) in record.iter().skip(1).enumerate() {
            let value: f64 = cell.parse().map_err(|_| error(format!("\"{cell}\""), "a probability"))?;
            probabilities[(i, j)] = value;
        }
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        return Err(CsvError::Header { name: owned(), found: format!("state \"{}\" has no row", states[missing]) });
    }
    Ok(Rows { states, probabilities, entries })
}

impl Behaviour {
    /// The behaviour as CSV; with several first services a state `(start)` is its entry.
    pub fn to_csv(&self) -> String {
        let entry = self.entry();
        let virtual_start = entry.is_none();
        let mut lines = vec![Vec::new()];
        lines[0].push(String::new());
        lines[0].extend(virtual_start.then(|| START.to_owned()));
        lines[0].extend(self.services.iter().cloned());
        lines[0].push("$".to_owned());
        if virtual_start {
            let start = self.start.iter().map(f64::to_string);
            lines.push([format!("{START}*"), "0".to_owned()].into_iter().chain(start).chain(["0".to_owned()]).collect());
        }
        for (i, service) in self.services.iter().enumerate() {
            let mark = if entry == Some(i) { "*" } else { "" };
            let mut line = vec![format!("{service}{mark}")];
            line.extend(virtual_start.then(|| "0".to_owned()));
            line.extend(self.transitions.row(i).iter().map(f64::to_string));
            line.push(self.exit[i].to_string());
            lines.push(line);
        }
        let quoted = |cell: &String| {
            if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() }
        };
        lines.iter().map(|line| line.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n").collect()
    }
}
