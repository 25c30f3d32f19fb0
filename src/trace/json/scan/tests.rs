use std::io::Read;

use super::*;

/// Yields the text in pieces of `n` bytes, so that every boundary is met.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.1.min(buffer.len());
        self.0.read(&mut buffer[..n])
    }
}

/// Walks all documents, capturing the values of `x` wherever they are, or reading them ahead where they can be; a broken document ends with `!` and its place.
fn walk(text: &str, piece: usize, ahead: bool) -> Vec<String> {
    let mut scanner = Scanner::new(Pieces(text.as_bytes(), piece));
    let mut found = Vec::new();
    loop {
        let outcome = match scanner.next_document() {
            Ok(false) => return found,
            Ok(true) => value(&mut scanner, ahead, &mut found),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            found.push(match error {
                ScanError::Syntax { place, expected } => format!("! {place}: {expected}"),
                ScanError::Ended { place } => format!("! {place}: ended"),
                ScanError::Read(error) => panic!("{error}"),
            });
            if !scanner.next_line_of_json().unwrap() {
                return found;
            }
        }
    }
}

fn value(scanner: &mut Scanner<'_>, ahead: bool, found: &mut Vec<String>) -> Result<(), ScanError> {
    match scanner.peek()? {
        b'{' => {
            scanner.enter()?;
            while scanner.next_key()? {
                if scanner.key() == "x" && ahead && scanner.peek()? == b'{' {
                    let start = scanner.at;
                    let read = scanner.ahead::<serde::de::IgnoredAny>()?.map(|(_, place)| place);
                    if let Some(place) = read {
                        let text = String::from_utf8_lossy(&scanner.buffer[start..scanner.at]).into_owned();
                        found.push(format!("{place}: {text}"));
                        continue;
                    }
                }
                if scanner.key() == "x" {
                    assert!(scanner.capture()?);
                    let text = String::from_utf8_lossy(scanner.captured()).into_owned();
                    found.push(format!("{}: {text}", scanner.captured_place()));
                } else {
                    value(scanner, ahead, found)?;
                }
            }
            Ok(())
        }
        b'[' => {
            scanner.enter()?;
            while scanner.next_element()? {
                value(scanner, ahead, found)?;
            }
            Ok(())
        }
        _ => scanner.skip(),
    }
}

fn check(text: &str, expected: &[&str]) {
    for piece in [1, 2, 3, 7, 1 << 16] {
        for ahead in [false, true] {
            assert_eq!(walk(text, piece, ahead), expected, "in pieces of {piece}, ahead: {ahead}: {text}");
        }
    }
}

#[test]
fn values_are_captured_with_their_places() {
    check(r#"{"a": 1, "x": {"b": [1, "}"]}}"#, &[r#"line 1, column 15: {"b": [1, "}"]}"#]);
    check("\u{feff}[{\"x\": 1},\n {\"y\": {\"x\":\"a\\\"b\"}}]", &["line 1, column 11: 1", "line 2, column 13: \"a\\\"b\""]);
    check(
        "{\"x\": -1.5e3}{\"x\":null}\n\n{\"x\" : true}",
        &["line 1, column 7: -1.5e3", "line 1, column 19: null", "line 3, column 8: true"],
    );
    check("", &[]);
    check(" \n ", &[]);
}

#[test]
fn reading_goes_on_at_the_next_line_that_starts_a_document() {
    check("{nonsense\n{\"x\": 1}\n", &["! line 1, column 2: a key in quotes", "line 2, column 7: 1"]);
    check("{\"x\": 1}\nnonsense\n{\"x\": 2}", &["line 1, column 7: 1", "! line 2, column 1: an object or an array", "line 3, column 7: 2"]);
    check("{\"a\": \"cut\n{\"x\": 2}", &["! line 1, column 11: a quote that ends the text on its line", "line 2, column 7: 2"]);
}

#[test]
fn a_line_that_is_cut_does_not_swallow_the_next() {
    let cut = "{\"x\": 1}\n{\"a\": [{\"b\":\n{\"x\": 2}\n";
    check(cut, &["line 1, column 7: 1", "! line 2, column 13: the end of the object that this line holds", "line 3, column 7: 2"]);
    check(
        "{\"x\": 1}\n{\"x\": {\"b\":\n{\"x\": 2}\n",
        &["line 1, column 7: 1", "! line 2, column 12: the end of the object that this line holds", "line 3, column 7: 2"],
    );
}

/// As no value can begin at the second line, though nothing says yet that each document has a line.
#[test]
fn a_first_line_that_is_cut_does_not_swallow_the_next() {
    for cut in ["{\"a\": [{\"b\"", "{\"a\": 1", "{\"a\": {}", "{\"a\""] {
        let place = format!("! line 1, column {}: the end of the object that this line holds", cut.len() + 1);
        check(&format!("{cut}\n{{\"x\": 2}}\n"), &[place.as_str(), "line 2, column 7: 2"]);
    }
    check("[\n{\"x\": 1},\n{\"x\": 2}\n]", &["line 2, column 7: 1", "line 3, column 7: 2"]);
    check("{\"a\":\n{\"x\": 1}}", &["line 2, column 7: 1"]);
}

#[test]
fn pretty_printed_documents_after_one_on_a_line_are_whole() {
    check(
        "{\"x\": 1}\n{\n \"x\": 2,\n \"y\": [\n  {\n   \"x\": 3}\n ]\n}\n",
        &["line 1, column 7: 1", "line 3, column 7: 2", "line 6, column 9: 3"],
    );
}

#[test]
fn wrong_punctuation_is_told() {
    check("{\"a\" 1}", &["! line 1, column 6: a colon"]);
    check("{\"a\": 1 \"b\": 2}", &["! line 1, column 9: a comma or }"]);
    check("[1 2]", &["! line 1, column 4: a comma or ]"]);
    check("[1,]", &["! line 1, column 4: a value"]);
    check("{\"a\": }", &["! line 1, column 7: a value"]);
    check("{\"a\": 1", &["! line 1, column 8: ended"]);
    check("[[[", &["! line 1, column 4: ended"]);
}

#[test]
fn depth_costs_nothing_when_skipped() {
    let deep = format!("{{\"a\": {}{}, \"x\": 1}}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    let mut scanner = Scanner::new(deep.as_bytes());
    assert!(scanner.next_document().unwrap());
    scanner.enter().unwrap();
    assert!(scanner.next_key().unwrap());
    scanner.skip().unwrap();
    assert!(scanner.next_key().unwrap());
    assert_eq!(scanner.key(), "x");
    assert!(scanner.buffer.len() <= CHUNK_BYTES, "what is skipped is not held");
}

#[test]
fn a_value_that_is_too_long_is_skipped_and_not_held() {
    let text = format!("{{\"x\": \"{}\", \"y\": 1}}", "a".repeat(3 * LONGEST_VALUE_BYTES));
    let mut scanner = Scanner::new(text.as_bytes());
    assert!(scanner.next_document().unwrap());
    scanner.enter().unwrap();
    assert!(scanner.next_key().unwrap());
    assert!(!scanner.capture().unwrap());
    assert!(scanner.next_key().unwrap());
    assert_eq!(scanner.key(), "y");
    assert!(scanner.buffer.len() <= 4 * LONGEST_VALUE_BYTES);
}

#[test]
fn the_rest_of_an_object_is_captured_from_its_start() {
    let text = "[{\"a\": [1], \"id\": 2, \"b\": {}}, 5]";
    for piece in [1, 5, 1 << 16] {
        let mut scanner = Scanner::new(Pieces(text.as_bytes(), piece));
        assert!(scanner.next_document().unwrap());
        scanner.enter().unwrap();
        assert!(scanner.next_element().unwrap());
        scanner.keep().unwrap();
        scanner.enter().unwrap();
        assert!(scanner.next_key().unwrap());
        scanner.skip().unwrap();
        assert!(scanner.next_key().unwrap());
        assert!(scanner.capture_rest().unwrap());
        assert_eq!(scanner.captured(), b"{\"a\": [1], \"id\": 2, \"b\": {}}");
        assert!(scanner.next_element().unwrap());
        scanner.skip().unwrap();
        assert!(!scanner.next_element().unwrap());
        assert!(!scanner.next_document().unwrap());
    }
}

#[test]
fn objects_are_read_ahead_where_they_are_whole_and_sound() {
    check("{\"x\": {\"b\": [1 2]}}\n{\"x\": {\"a\": 1}}", &["line 1, column 7: {\"b\": [1 2]}", "line 2, column 7: {\"a\": 1}"]);
    check(
        "{\"x\": {}}\n{\"x\": {\"a\":\n{\"x\": {\"b\": \"}\"}}\n",
        &["line 1, column 7: {}", "! line 2, column 12: the end of the object that this line holds", "line 3, column 7: {\"b\": \"}\"}"],
    );
    let text = "[{\"a\": [1], \"id\": 2, \"b\": {}}, 5]";
    let mut scanner = Scanner::new(text.as_bytes());
    assert!(scanner.next_document().unwrap());
    scanner.enter().unwrap();
    assert!(scanner.next_element().unwrap());
    scanner.keep().unwrap();
    scanner.enter().unwrap();
    assert!(scanner.next_key().unwrap());
    let (value, place) = scanner.rest_ahead::<serde_json::Value>().unwrap();
    assert_eq!((value.to_string().as_str(), place), ("{\"a\":[1],\"id\":2,\"b\":{}}", Place { line: 1, column: 2 }));
    assert!(scanner.next_element().unwrap());
    assert_eq!(scanner.ahead::<serde_json::Value>().unwrap(), None, "a number is not read ahead");
    scanner.skip().unwrap();
    assert!(!scanner.next_element().unwrap());
    assert!(!scanner.next_document().unwrap());
}
