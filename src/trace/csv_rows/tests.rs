use proptest::prelude::*;

use super::*;

/// Hands over its bytes a few at a time.
struct Dripping<'a>(&'a [u8], usize);

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = buffer.len().min(self.1);
        self.0.read(&mut buffer[..n])
    }
}

struct Found {
    line: u64,
    is_open: bool,
    fields: Vec<Vec<u8>>,
}

fn rows(bytes: &[u8], step: usize) -> Vec<Found> {
    let mut rows = CsvRows::new(Dripping(bytes, step), b',', 1);
    let mut found = Vec::new();
    while rows.advance().unwrap() {
        let fields = rows.fields();
        assert!(fields.iter().eq((0..fields.len()).map(|at| fields.get(at))));
        if let Some(ascii) = rows.ascii() {
            assert!(fields.iter().eq((0..ascii.len()).map(|at| Ok(std::str::from_utf8(ascii.get(at)).unwrap()))));
        }
        let texts = fields.iter().map(|field| field.map_or_else(<[u8]>::to_vec, |text| text.as_bytes().to_vec()));
        found.push(Found { line: rows.line(), is_open: rows.is_open(), fields: texts.collect() });
    }
    found
}

/// Whether the `csv` crate takes a line end after these bytes, and a quote, for a part of the last field.
fn leaves_a_quote_open(bytes: &[u8]) -> bool {
    let n_fields = |end: &[u8]| {
        let bytes = [bytes, end].concat();
        let mut csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .terminator(csv::Terminator::Any(b'\n'))
            .from_reader(&bytes[..]);
        csv.byte_records().map(|record| record.unwrap().len()).sum::<usize>()
    };
    n_fields(b"\nx,y\n") == n_fields(b"\n")
}

/// What the `csv` crate makes of the same.
fn expected(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(bytes.chain(&b"\n"[..]));
    let rows = csv.byte_records().map(|record| record.unwrap().iter().map(|field| field.trim_ascii().to_vec()).collect());
    rows.filter(|row: &Vec<Vec<u8>>| row.len() > 1 || !row[0].is_empty()).collect()
}

proptest! {
    /// Up to a quote that is left open.
    #[test]
    fn rows_are_those_of_the_csv_crate(pieces in prop::collection::vec(
        prop::sample::select(vec!["a", "bcd", "longer than eight", ",", ",", "\"", "\n", "\n", "\r\n", "#", " ", "é", "1,2,3\n"]), 0..60),
        step in 1..50_usize,
    ) {
        let bytes = pieces.concat().into_bytes();
        let found = rows(&bytes, step);
        let open = found.iter().position(|row| row.is_open);
        prop_assert_eq!(open.is_some(), leaves_a_quote_open(&bytes));
        let whole = found.into_iter().take(open.unwrap_or(usize::MAX)).map(|row| row.fields);
        let expected = expected(&bytes).into_iter().take(open.unwrap_or(usize::MAX));
        prop_assert!(whole.eq(expected));
    }
}

#[test]
fn lines_are_those_that_rows_begin_on() {
    let lines = |text: &str| rows(text.as_bytes(), 7).into_iter().map(|row| row.line).collect::<Vec<_>>();
    assert_eq!(lines("a,b\n\n# note\nc,d\n"), [1, 4]);
    assert_eq!(lines("a,\"b\n\nc\"\nd,e"), [1, 4]);
}

#[test]
fn what_is_not_text_is_told_by_its_field() {
    let mut rows = CsvRows::new(&b"ab,\xff ,c\n"[..], b',', 1);
    assert!(rows.advance().unwrap());
    let fields = rows.fields();
    assert_eq!([0, 1, 2, 3].map(|at| fields.get(at)), [Ok("ab"), Err(&b"\xff"[..]), Ok("c"), Ok("")]);
}

#[test]
fn rows_longer_than_the_buffer_are_read_and_endless_ones_refused() {
    let long = "x".repeat(BUFFER_BYTES * 3);
    assert_eq!(rows(format!("a,{long}\nb,\"{long}\"\n").as_bytes(), 1 << 20).len(), 2);
    let endless = "x".repeat(3 * LONGEST_ROW_BYTES);
    let mut rows = CsvRows::new(endless.as_bytes(), b',', 1);
    assert_eq!(rows.advance().unwrap_err().to_string(), "line 1: a row is longer than 1048576 bytes");
}

#[test]
fn a_quote_left_open_costs_its_line_alone() {
    let short = format!("a,b\n\"c,d\n{}", "e,f\n".repeat(1000));
    let long = format!("a,b\nc,\"d\n{}", "e,f\n".repeat(LONGEST_ROW_BYTES));
    for text in [short.as_str(), short.trim_end(), &long] {
        let found = rows(text.as_bytes(), 1 << 20);
        let open: Vec<u64> = found.iter().filter(|row| row.is_open).map(|row| row.line).collect();
        assert_eq!((found.len(), open), (text.lines().count(), vec![2]));
        assert_eq!(found[1].fields.len(), 2);
        assert!(found[2..].iter().zip(3..).all(|(row, line)| row.line == line && row.fields == [b"e", b"f"]));
    }
}
