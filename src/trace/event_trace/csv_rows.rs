//! Rows of a CSV.

use std::io::BufRead;

use super::{
    BadEvent, EventTraceError, Rows,
    columns::{Layout, N_COLUMNS},
    row::{Field, Row},
};
use crate::trace::csv_rows::{self, CsvRows, OPEN_AND_EXPECTED};

/// Reads what follows the header, which stands on line `number`.
pub(super) fn read(rows: &mut Rows<'_>, stream: impl BufRead, header: &[u8], number: u64) -> Result<(), EventTraceError> {
    let error = |reason| EventTraceError::Header { trace: rows.trace.to_owned(), line: number, reason };
    let layout = Layout::detect(header).map_err(error)?;
    for name in &layout.unknown {
        rows.unknown_column(name, number)?;
    }
    let mut csv = CsvRows::new(stream, layout.delimiter, number + 1);
    while csv.advance().map_err(|error| rows.unreadable(error))? {
        let found = csv.fields();
        if csv.is_open() || found.len() != layout.headings.len() {
            let long =
                || [format!("{} fields long", found.len()), format!("{} fields ({})", layout.headings.len(), layout.headings.join(", "))];
            let [found, expected] = if csv.is_open() { OPEN_AND_EXPECTED.map(str::to_owned) } else { long() };
            rows.accept(Err(BadEvent { trace: rows.trace.to_owned(), line: csv.line(), field: "row".to_owned(), found, expected }))?;
            continue;
        }
        let fields = fields(&found, &layout);
        let name_of = |column| layout.position(column).map_or_else(|| column.name().to_owned(), |i| layout.headings[i].clone());
        let row = Row { trace: rows.trace, line_of: &|| csv.line(), fields: &fields, name_of: &name_of };
        let event = row.event();
        rows.accept(event)?;
    }
    Ok(())
}

fn fields<'r>(found: &csv_rows::Fields<'r>, layout: &Layout) -> [Field<'r>; N_COLUMNS] {
    let mut fields = [Field::Missing; N_COLUMNS];
    if let Some(texts) = found.texts() {
        for (column, text) in layout.columns.iter().zip(texts) {
            if let Some(column) = *column {
                fields[column as usize] = Field::Text(text);
            }
        }
        return fields;
    }
    for (column, field) in layout.columns.iter().zip(found.iter()) {
        if let Some(column) = *column {
            fields[column as usize] = field.map_or(Field::Unusable("not UTF-8 text"), Field::Text);
        }
    }
    fields
}
