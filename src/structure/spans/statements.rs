//! Names of database statements: what differs between two that do the same is cut out.
//!
//! Input: a statement, or a span name that may be one; output: a name that statements of the same kind share.
//!
//! | text | becomes |
//! |---|---|
//! | comments (`/* … */`, `-- …`, `# …` at the start of a line) | cut, before anything else |
//! | statement | its verb and the first table: `SELECT orders`; other languages: the verb (`GET`) |
//! | span name that is a statement of SQL | as a statement |

use std::borrow::Cow;

use super::generalize;

/// Longest verb of a statement.
const LONGEST_VERB: usize = 24;

/// Verb and first table of a statement; `None` where it does not begin with a word.
pub fn statement(text: &str) -> Option<String> {
    of_code(&without_comments(text))
}

/// As [`statement`], of a text without comments.
fn of_code(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';')).filter(|w| !w.is_empty());
    let verb = words.next().filter(|w| w.len() <= LONGEST_VERB && w.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_'))?;
    let verb = verb.to_ascii_uppercase();
    let before_table: &[&str] = match verb.as_str() {
        "SELECT" | "DELETE" | "WITH" => &["FROM"],
        "INSERT" | "REPLACE" | "MERGE" => &["INTO"],
        "UPDATE" => &[],
        "CREATE" | "ALTER" | "DROP" | "TRUNCATE" => &["TABLE", "INDEX", "VIEW"],
        _ => return Some(verb),
    };
    if !before_table.is_empty() {
        words.find(|word| before_table.iter().any(|known| word.eq_ignore_ascii_case(known)));
    }
    let is_any = |word: &str, of: &[&str]| of.iter().any(|known| word.eq_ignore_ascii_case(known));
    let mut table = words.find(|word| !is_any(word, &["ONLY", "IF", "NOT", "EXISTS"]));
    // Of a statement within one: what that reads.
    while table.is_some_and(|word| is_any(word, &["SELECT", "VALUES", "WITH"])) {
        words.find(|word| is_any(word, &["FROM"]));
        table = words.next();
    }
    let table = table.map(|t| generalize::name(t.trim_matches(|c: char| matches!(c, '"' | '`' | '\'')))).filter(|t| !t.is_empty());
    Some(table.map_or_else(|| verb.clone(), |table| format!("{verb} {table}")))
}

/// Verb and table of a span name that is a statement of SQL; `None` of any other.
pub fn statement_as_name(text: &str) -> Option<String> {
    let text = without_comments(text);
    let (verb, rest) = text.trim_start().split_once(char::is_whitespace)?;
    let second: &[&str] = match verb.to_ascii_uppercase().as_str() {
        "SELECT" | "DELETE" => &["FROM"],
        "WITH" => &["SELECT"],
        "INSERT" | "REPLACE" | "MERGE" => &["INTO"],
        "UPDATE" => &["SET"],
        _ => return None,
    };
    let mut words = rest.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
    let has_second = words.any(|word| second.iter().any(|known| word.eq_ignore_ascii_case(known)));
    let is_written_so = !verb.bytes().any(|b| b.is_ascii_lowercase()) || rest.contains(['*', '=', '(', ';', '\'']);
    (has_second && is_written_so && !rest.starts_with('/')).then(|| of_code(&text))?
}

/// A statement without its comments; what stands in quotes is none.
fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("/*") && !text.contains("--") && !text.contains('#') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_line_start = true;
    while let Some(c) = rest.chars().next() {
        let n_bytes = if let Some(end) = comment(rest, is_line_start) {
            out.push(' ');
            end
        } else {
            let end = if matches!(c, '\'' | '"' | '`') { quoted(rest, c) } else { c.len_utf8() };
            out.push_str(&rest[..end]);
            end
        };
        let ends_line = n_bytes > 0 && rest.as_bytes()[n_bytes - 1] == b'\n';
        is_line_start = ends_line || (is_line_start && c.is_whitespace());
        rest = &rest[n_bytes..];
    }
    Cow::Owned(out)
}

/// Length of the comment that a text begins with: `/* … */`, or to the end of the line `--`, at the start of one `#`.
fn comment(text: &str, is_line_start: bool) -> Option<usize> {
    if let Some(inside) = text.strip_prefix("/*") {
        return inside.find("*/").map(|end| end + 4);
    }
    let is_to_end_of_line = text.starts_with("--") || (is_line_start && text.starts_with('#'));
    is_to_end_of_line.then(|| text.find('\n').map_or(text.len(), |end| end + 1))
}

/// Length of what begins with the quote `quote` and ends with it; of the quote alone where it does not end.
fn quoted(text: &str, quote: char) -> usize {
    text[1..].find(quote).map_or(1, |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_are_statements_have_no_literals() {
        for (text, expected) in [
            ("SELECT * FROM t WHERE id = 42", Some("SELECT t")),
            ("update stock set n = 3 where id = 'x'", Some("UPDATE stock")),
            ("WITH a AS (SELECT 1 FROM b) SELECT * FROM a", Some("WITH b")),
            ("SELECT shop.orders", None),
            ("delete user from cache", None),
            ("DELETE /users from here", None),
            ("SELECT", None),
        ] {
            assert_eq!(statement_as_name(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn statements_are_verb_and_table() {
        for (text, expected) in [
            ("select a, b from orders o where id = 5", Some("SELECT orders")),
            ("INSERT INTO `users` (a) VALUES (1)", Some("INSERT users")),
            ("update only \"stock\" set n = n - 1", Some("UPDATE stock")),
            ("DELETE FROM shop.cart WHERE id=3", Some("DELETE shop.cart")),
            ("GET user:1234", Some("GET")),
            ("COMMIT", Some("COMMIT")),
            ("SELECT 1", Some("SELECT")),
            ("SELECT n FROM (SELECT COUNT(*) n FROM orders) t", Some("SELECT orders")),
            ("SELECT * FROM (SELECT 1)", Some("SELECT")),
            ("{ \"find\": 1 }", None),
            ("", None),
        ] {
            assert_eq!(statement(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn comments_are_cut_first() {
        for (text, expected) in [
            ("/* load User */ SELECT * FROM users", Some("SELECT users")),
            ("/* insert shop.Order */ INSERT INTO orders (a) VALUES (1)", Some("INSERT orders")),
            ("-- name: GetUser :one\nSELECT a FROM users", Some("SELECT users")),
            ("  # by shop\n  SELECT a\n  -- from nowhere\n FROM users", Some("SELECT users")),
            ("SELECT /*+ INDEX(a b) */ a -- FROM b\n FROM users /* from c", Some("SELECT users")),
            ("SELECT '-- /* ' || \"a#\" FROM users", Some("SELECT users")),
            ("SELECT a #> '{b}' FROM users", Some("SELECT users")),
            ("SELECT it's -- FROM a", Some("SELECT")),
            ("/* nothing */", None),
        ] {
            assert_eq!(statement(text).as_deref(), expected, "{text}");
        }
        assert_eq!(statement_as_name("/* load User */ SELECT * FROM users WHERE id = 1").as_deref(), Some("SELECT users"));
        assert_eq!(statement_as_name("shop.svc:8080/*"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[-a-zé#/*'\"` \n]{0,60}") {
            let _ = statement(&text);
            prop_assert!(without_comments(&text).len() <= text.len());
        }
    }
}
