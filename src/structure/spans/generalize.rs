//! Entry names from texts with ids in them: what differs between two requests for the same thing is cut out.
//!
//! Input: a route, URL, span name or database statement; output: a name that requests of the same kind share.
//!
//! | text | becomes |
//! |---|---|
//! | URL | its path: without scheme, host, query and fragment |
//! | segment (between `/`, blanks, `,`, `=`, `&`, `:` and `;`) of digits | `{id}` |
//! | segment that is a UUID, or hexadecimal of 8 or more with a digit, or `0x…` | `{id}` |
//! | segment of 20 or more with letters and at least 4 digits (tokens) | `{id}` |
//! | 4 or more digits within a segment | `{id}` for the digits |
//! | query (`?a=b`) in a word | cut |
//! | span name that is a statement of SQL | as a statement |
//! | host | its labels (between dots), as segments; an IP address stays |
//! | its port from 32768 on | `{port}` |
//! | segment that a broker calls a temporary queue by (`amq.gen-…`, `spring.gen-…`, `_INBOX.…`) | what it begins with, and `{id}` |
//! | destination of messages | the same of what clients do (`ID:…`, `TempQueue…`, `temp-queue://…`, `temp-topic://…`), else a name |
//! | statement | its verb and the first table: `SELECT orders`; other languages: the verb (`GET`) |

use std::borrow::Cow;

/// Longest name, bytes.
const LONGEST_NAME_BYTES: usize = 120;
/// Shortest hexadecimal segment that is an id.
const SHORTEST_HEX: usize = 8;
/// Shortest token that is an id.
const SHORTEST_TOKEN: usize = 20;
/// Fewest digits that are an id within a segment.
const FEWEST_DIGITS: usize = 4;
/// What brokers begin names of temporary queues with.
const TEMPORARY: &[&str] = &["amq.gen-", "spring.gen-", "_INBOX."];
/// What clients do.
const TEMPORARY_OF_CLIENTS: &[&str] = &["ID:", "TempQueue", "temp-queue://", "temp-topic://"];
/// From here on ports are given away to who asks for any.
const FIRST_SHORT_LIVED_PORT: u16 = 32768;
/// Longest verb of a statement.
const LONGEST_VERB: usize = 24;

/// The path of a URL, with ids cut out; `/` for an empty path.
pub fn path(url: &str) -> String {
    let without_host = match url.find("://") {
        Some(at) => url[at + 3..].find('/').map_or("/", |slash| &url[at + 3 + slash..]),
        None => url,
    };
    let path = without_host.split(['?', '#']).next().unwrap_or("");
    if path.is_empty() { "/".to_owned() } else { name(path) }
}

/// A name with ids cut out.
pub fn name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let whole = without_queries(text.trim());
    let mut rest = whole.as_ref();
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        push_segment(&mut out, &rest[..end]);
        rest = &rest[end..];
        if let Some(separator) = rest.chars().next() {
            out.push(separator);
            rest = &rest[separator.len_utf8()..];
        }
    }
    out.truncate(out.floor_char_boundary(LONGEST_NAME_BYTES));
    out.truncate(out.trim_end().len());
    out
}

/// A text without what stands in its words from a `?` that begins a query on.
fn without_queries(text: &str) -> Cow<'_, str> {
    let query = |word: &str| {
        let begins = |(at, _): &(usize, &str)| {
            let query = &word[at + 1..];
            query.contains('=') && query.starts_with(|c: char| c.is_alphanumeric() || "_%&$[".contains(c))
        };
        word.match_indices('?').find(begins).map(|(at, _)| at)
    };
    if !text.contains('?') {
        return Cow::Borrowed(text);
    }
    let words: Vec<&str> = text.split(' ').map(|word| query(word).map_or(word, |at| &word[..at])).collect();
    Cow::Owned(words.join(" "))
}

fn is_separator(c: char) -> bool {
    matches!(c, '/' | ' ' | ',' | '=' | '&' | ':' | ';' | '\t' | '\n' | '\r' | '(' | ')' | '[' | ']')
}

fn begins_with<'p>(text: &str, prefixes: &[&'p str]) -> Option<&'p str> {
    prefixes.iter().find(|prefix| text.len() > prefix.len() && text.starts_with(**prefix)).copied()
}

fn push_segment(out: &mut String, segment: &str) {
    if let Some(prefix) = begins_with(segment, TEMPORARY) {
        out.push_str(prefix);
        out.push_str("{id}");
        return;
    }
    if is_id(segment) {
        out.push_str("{id}");
        return;
    }
    let mut rest = segment;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..start]);
        let n_digits = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let digits = &rest[start..start + n_digits];
        out.push_str(if n_digits >= FEWEST_DIGITS { "{id}" } else { digits });
        rest = &rest[start + n_digits..];
    }
    out.push_str(rest);
}

fn is_id(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    let n_digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    if n_digits == 0 {
        return false;
    }
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"-_.~+".contains(b);
    n_digits == bytes.len()
        || (bytes.len() >= SHORTEST_HEX && is_hex(bytes))
        || (segment.starts_with("0x") && is_hex(&bytes[2..]))
        || is_uuid(bytes)
        || (bytes.len() >= SHORTEST_TOKEN && n_digits >= FEWEST_DIGITS && bytes.iter().all(is_token))
}

fn is_uuid(bytes: &[u8]) -> bool {
    let mut lengths = bytes.split(|b| *b == b'-').map(<[u8]>::len);
    bytes.len() == 36
        && [8, 4, 4, 4, 12].into_iter().all(|n| lengths.next() == Some(n))
        && bytes.iter().all(|b| *b == b'-' || b.is_ascii_hexdigit())
}

/// A host with ids cut out, and its port, which `address` may hold already; `{port}` for one that systems give to who asks for any.
pub fn endpoint(address: &str, port: Option<&str>) -> String {
    let with_port = address.rsplit_once(':').filter(|(host, port)| {
        let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        is_port && (!host.contains(':') || host.ends_with(']'))
    });
    let (host, port) = with_port.map_or((address, port), |(host, port)| (host, Some(port)));
    let host = without_ids(host);
    match port {
        None => host,
        Some(port) => match port.parse::<u16>() {
            Ok(FIRST_SHORT_LIVED_PORT..) => format!("{host}:{{port}}"),
            _ => format!("{host}:{port}"),
        },
    }
}

fn without_ids(host: &str) -> String {
    let is_address = host.trim_matches(['[', ']']).parse::<core::net::IpAddr>().is_ok();
    if is_address || host.contains('/') {
        return host.to_owned();
    }
    let labels: Vec<String> = host.split('.').map(name).collect();
    labels.join(".")
}

/// The name of a queue or topic with ids cut out.
pub fn destination(text: &str) -> String {
    match begins_with(text, TEMPORARY_OF_CLIENTS) {
        Some(prefix) => format!("{prefix}{{id}}"),
        None => name(text),
    }
}

/// Verb and first table of a statement; `None` where it does not begin with a word.
pub fn statement(text: &str) -> Option<String> {
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
    let table = table.map(|t| name(t.trim_matches(|c: char| matches!(c, '"' | '`' | '\'')))).filter(|t| !t.is_empty());
    Some(table.map_or_else(|| verb.clone(), |table| format!("{verb} {table}")))
}

/// Verb and table of a span name that is a statement of SQL; `None` of any other.
pub fn statement_as_name(text: &str) -> Option<String> {
    let (verb, rest) = text.split_once(char::is_whitespace)?;
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
    (has_second && is_written_so && !rest.starts_with('/')).then(|| statement(text))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_cut_out_of_paths() {
        for (url, expected) in [
            ("/users/42/orders/7", "/users/{id}/orders/{id}"),
            ("https://shop.example:8080/cart/3f2504e0-4f89-11d3-9a0c-0305e82c3301?x=1#top", "/cart/{id}"),
            ("http://shop.example", "/"),
            ("/img/deadbeef01.png", "/img/deadbeef01.png"),
            ("/img/deadbeef01", "/img/{id}"),
            ("/v1/oauth2/s3", "/v1/oauth2/s3"),
            ("/order_12345.html", "/order_{id}.html"),
            ("/reset/eyJhbGciOiJIUzI1NiJ9abc12345", "/reset/{id}"),
            ("/dead/beefcafe", "/dead/beefcafe"),
            ("", "/"),
        ] {
            assert_eq!(path(url), expected, "{url}");
        }
    }

    #[test]
    fn names_have_neither_queries_nor_literals() {
        for (text, expected) in [
            ("GET /search?q=rust&page=2", "GET /search"),
            ("/a?x=1 then /b?y=2", "/a then /b"),
            ("GET /users/:id?", "GET /users/:id?"),
            ("GET /{id?}/{page=1}", "GET /{id?}/{page=1}"),
            ("really?", "really?"),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
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
    fn what_comes_and_goes_has_one_name() {
        for (address, port, expected) in [
            ("3f2504e04f89.svc.local", None, "{id}.svc.local"),
            ("cache-1.example.com", Some("6379"), "cache-1.example.com:6379"),
            ("db.c9akciq32rgx.us-east-1.rds.amazonaws.com", None, "db.c9akciq32rgx.us-east-1.rds.amazonaws.com"),
            ("10.20.30.40", Some("32767"), "10.20.30.40:32767"),
            ("10.20.30.40", Some("32768"), "10.20.30.40:{port}"),
            ("127.0.0.1:36663", Some("36663"), "127.0.0.1:{port}"),
            ("shop:8080", Some("8080"), "shop:8080"),
            ("[2001:db8::1234]", Some("65535"), "[2001:db8::1234]:{port}"),
            ("[2001:db8::1234]:80", None, "[2001:db8::1234]:80"),
            ("2001:db8::1234", None, "2001:db8::1234"),
            ("shop", Some("65536"), "shop:65536"),
            ("/var/run/12345.sock", None, "/var/run/12345.sock"),
        ] {
            assert_eq!(endpoint(address, port), expected, "{address}");
        }
        for (queue, expected) in [
            ("amq.gen-JzTY20BRgKO-HjmUJj0wLg", "amq.gen-{id}"),
            ("_INBOX.Xk2.Fw", "_INBOX.{id}"),
            ("ID:host-1-33-4:1:1", "ID:{id}"),
            ("orders", "orders"),
            ("replies/12", "replies/{id}"),
            ("ID:", "ID:"),
        ] {
            assert_eq!(destination(queue), expected, "{queue}");
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

    proptest! {
        #[test]
        fn any_text_has_a_bounded_name(text in ".{0,300}") {
            prop_assert!(name(&text).len() <= LONGEST_NAME_BYTES);
            let _ = statement(&text);
            let _ = path(&text);
        }

        #[test]
        fn a_name_is_its_own_name(text in "[a-z/0-9 ]{0,60}") {
            let once = name(&text);
            prop_assert_eq!(name(&once), once);
        }
    }
}
