//! Rows of a CSV.

use std::{borrow::Cow, io::BufRead};

use super::{
    BadEvent, EventTraceError, Rows,
    columns::{Column, Layout, N_COLUMNS},
    row::{Field, Row},
};

/// Reads what follows the header, which stands on line `number`.
pub(super) fn read(rows: &mut Rows<'_>, stream: impl BufRead, header: &[u8], number: u64) -> Result<(), EventTraceError> {
    let error = |reason| EventTraceError::Header { trace: rows.trace.to_owned(), line: number, reason };
    let layout = Layout::detect(header).map_err(error)?;
    for name in &layout.unknown {
        rows.unknown_column(name, number)?;
    }
    let mut csv = csv::ReaderBuilder::new()
        .delimiter(layout.delimiter)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .terminator(csv::Terminator::Any(b'\n'))
        .buffer_capacity(1 << 16)
        .from_reader(stream.chain(&b"\n"[..]));
    let mut record = csv::ByteRecord::new();
    while csv.read_byte_record(&mut record).map_err(|error| rows.unreadable(error.into()))? {
        if record.len() == 1 && record.iter().all(|field| field.trim_ascii().is_empty()) {
            continue;
        }
        let line = |record: &csv::ByteRecord| {
            let lines_after = csv.position().line();
            number + lines_after.saturating_sub(1 + newlines(record.as_slice())).max(1)
        };
        if record.len() != layout.headings.len() {
            let bad = BadEvent {
                trace: rows.trace.to_owned(),
                line: line(&record),
                field: "row".to_owned(),
                found: format!("{} fields long", record.len()),
                expected: format!("{} fields ({})", layout.headings.len(), layout.headings.join(", ")),
            };
            rows.accept(Err(bad))?;
            continue;
        }
        let fields = fields(&record, &layout);
        let name_of = |column| layout.position(column).map_or_else(|| column.name().to_owned(), |i| layout.headings[i].clone());
        let row = Row { trace: rows.trace, line_of: &|| line(&record), fields: &fields, name_of: &name_of };
        let event = row.event();
        rows.accept(event)?;
    }
    Ok(())
}

fn fields<'r>(record: &'r csv::ByteRecord, layout: &Layout) -> [Field<'r>; N_COLUMNS] {
    Column::ALL.map(|column| match layout.position(column).and_then(|i| record.get(i)) {
        None => Field::Missing,
        Some(bytes) => match std::str::from_utf8(bytes.trim_ascii()) {
            Ok(text) => Field::Text(Cow::Borrowed(text)),
            Err(_) => Field::Unusable("not UTF-8 text"),
        },
    })
}

fn newlines(fields: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', fields).count() as u64
}
