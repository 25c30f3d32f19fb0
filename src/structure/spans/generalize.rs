//! Entry names from texts with ids in them: what differs between two requests for the same thing is cut out.
//!
//! Input: a route, URL or span name; output: a name that requests of the same kind share. Statements: [`super::statements`].
//!
//! | text | becomes |
//! |---|---|
//! | URL | its path: without scheme, host, query and fragment |
//! | segment (between `/`, blanks, `,`, `=`, `&`, `:` and `;`) of digits | `{id}` |
//! | segment that is a UUID, or hexadecimal of 8 or more with a digit, or `0x…` | `{id}` |
//! | segment of 20 or more with letters and at least 4 digits (tokens) | `{id}` |
//! | segment that is an e-mail address | `{id}` |
//! | within a segment, between `.`, `-`, `_` and `@`: digits alone, also with `T` and `Z` of a time; hexadecimal of 8 or more with a digit | `{id}`; of several beside each other (dates) one |
//! | digits alone after a version (`v1.2`), after a word that is numbered ([`NUMBERED`]: `utf-8`), two of them of one or two digits that are the segment (`1.1`) | stay |
//! | 4 or more digits within a segment | `{id}` for the digits |
//! | query (`?a=b`) in a word | cut |
//! | port of a host in a name (`shop.local:8080/…`) | stays |
//! | host | its labels (between dots) as segments, but for what is within one; an IP address stays |
//! | its port from 32768 on | `{port}` |
//! | segment that a broker calls a temporary queue by (`amq.gen-…`, `spring.gen-…`, `_INBOX.…`) | what it begins with, and `{id}` |
//! | destination of messages | as a host's label; of what clients do (`ID:…`, `TempQueue…`, `temp-queue://…`, `temp-topic://…`) the same as of brokers |
//!
//! Words with digits (`oauth2`, `s3`, `http2`, `v1`) stay. What these rules let through is bounded by [`super::entries`].

use std::borrow::Cow;

/// Longest name, bytes.
const LONGEST_NAME_BYTES: usize = 120;
/// Shortest hexadecimal segment that is an id.
const SHORTEST_HEX: usize = 8;
/// Shortest token that is an id.
const SHORTEST_TOKEN: usize = 20;
/// Fewest digits that are an id within a segment.
const FEWEST_DIGITS: usize = 4;
/// Words that a number belongs to: standards, and what there are few of.
pub const NUMBERED: &[&str] = &[
    "aes", "base", "http", "ipv", "iso", "latin", "level", "md", "mp", "oauth", "phase", "sha", "ssl", "step", "tls", "ucs", "utf", "v",
    "ver", "version", "windows", "x",
];
/// What brokers begin names of temporary queues with.
const TEMPORARY: &[&str] = &["amq.gen-", "spring.gen-", "_INBOX."];
/// What clients do.
const TEMPORARY_OF_CLIENTS: &[&str] = &["ID:", "TempQueue", "temp-queue://", "temp-topic://"];
/// From here on ports are given away to who asks for any.
const FIRST_SHORT_LIVED_PORT: u16 = 32768;

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
    generalized(text, push_tokens)
}

fn generalized(text: &str, push: fn(&mut String, &str)) -> String {
    let mut out = String::with_capacity(text.len());
    let whole = without_queries(text.trim());
    let mut rest = whole.as_ref();
    let mut is_after_host = false;
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        let (segment, after) = rest.split_at(end);
        let start = out.len();
        if is_after_host && is_port(segment, after) {
            out.push_str(segment);
        } else {
            push(&mut out, segment);
        }
        is_after_host = after.starts_with(':') && is_host(&out[start..]);
        rest = after;
        if let Some(separator) = rest.chars().next() {
            out.push(separator);
            rest = &rest[separator.len_utf8()..];
        }
    }
    out.truncate(out.floor_char_boundary(LONGEST_NAME_BYTES));
    out.truncate(out.trim_end().len());
    out
}

fn is_host(segment: &str) -> bool {
    segment == "localhost" || (segment.contains('.') && segment.contains(|c: char| c.is_ascii_alphabetic()))
}

/// Whether what stands after a host and a colon is its port.
fn is_port(segment: &str, after: &str) -> bool {
    (after.is_empty() || after.starts_with('/')) && segment.parse::<u16>().is_ok()
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

/// A segment, with its ids cut out as a whole only.
fn push_segment(out: &mut String, segment: &str) {
    if let Some(prefix) = begins_with(segment, TEMPORARY) {
        out.push_str(prefix);
        out.push_str("{id}");
    } else if is_id(segment) {
        out.push_str("{id}");
    } else {
        push_long_numbers(out, segment);
    }
}

fn push_long_numbers(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..start]);
        let n_digits = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let digits = &rest[start..start + n_digits];
        out.push_str(if n_digits >= FEWEST_DIGITS { "{id}" } else { digits });
        rest = &rest[start + n_digits..];
    }
    out.push_str(rest);
}

/// A segment, with ids cut out of its parts.
fn push_tokens(out: &mut String, segment: &str) {
    let is_within = |c: char| matches!(c, '.' | '-' | '_' | '@');
    let is_whole = begins_with(segment, TEMPORARY).is_some() || is_id(segment) || !segment.contains(is_within);
    if is_email(segment) {
        out.push_str("{id}");
        return;
    }
    if is_whole || is_short_version(segment) {
        push_segment(out, segment);
        return;
    }
    let (mut rest, mut before, mut separator) = (segment, "", "");
    let (mut is_numbered, mut is_after_id) = (false, false);
    loop {
        let end = rest.find(is_within).unwrap_or(rest.len());
        let token = &rest[..end];
        let is_number = !token.is_empty() && token.bytes().all(|b| b.is_ascii_digit());
        is_numbered = is_number && (is_numbered || is_version(before) || NUMBERED.iter().any(|word| before.eq_ignore_ascii_case(word)));
        let is_id = token == "{id}" || (!is_numbered && is_id_token(token));
        if !(is_id && is_after_id) {
            out.push_str(separator);
            if is_id {
                out.push_str("{id}");
            } else if is_numbered {
                out.push_str(token);
            } else {
                push_long_numbers(out, token);
            }
        }
        (is_after_id, before) = (is_id, token);
        if end == rest.len() {
            return;
        }
        separator = &rest[end..=end];
        rest = &rest[end + 1..];
    }
}

fn is_id_token(token: &str) -> bool {
    let bytes = token.as_bytes();
    let is_of_time = bytes.first().is_some_and(u8::is_ascii_digit) && bytes.iter().all(|b| b.is_ascii_digit() || b"TZ".contains(b));
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    is_of_time || (has_digit && bytes.len() >= SHORTEST_HEX && bytes.iter().all(u8::is_ascii_hexdigit))
}

/// `v1`, `V12`.
fn is_version(token: &str) -> bool {
    let number = token.strip_prefix(['v', 'V']).unwrap_or("");
    (1..FEWEST_DIGITS).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())
}

/// `1.1`.
fn is_short_version(segment: &str) -> bool {
    let is_short = |number: &str| (1..=2).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    segment.split_once('.').is_some_and(|(major, minor)| is_short(major) && is_short(minor))
}

fn is_email(segment: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || c == '.' || c == '-';
    let parts = segment.rsplit_once('@').or_else(|| segment.rsplit_once("%40"));
    parts.is_some_and(|(user, domain)| {
        let is_domain = domain.split('.').all(|label| !label.is_empty()) && domain.contains('.') && domain.chars().all(is_allowed);
        !user.is_empty() && is_domain && domain.ends_with(|c: char| c.is_ascii_alphabetic())
    })
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
    let labels: Vec<String> = host.split('.').map(|label| generalized(label, push_segment)).collect();
    labels.join(".")
}

/// The name of a queue or topic with ids cut out.
pub fn destination(text: &str) -> String {
    match begins_with(text, TEMPORARY_OF_CLIENTS) {
        Some(prefix) => format!("{prefix}{{id}}"),
        None => generalized(text, push_segment),
    }
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
            ("/img/deadbeef01.png", "/img/{id}.png"),
            ("/img/deadbeef01", "/img/{id}"),
            ("/v1/oauth2/s3", "/v1/oauth2/s3"),
            ("/order_12345.html", "/order_{id}.html"),
            ("/reset/eyJhbGciOiJIUzI1NiJ9abc12345", "/reset/{id}"),
            ("/dead/beefcafe", "/dead/beefcafe"),
            ("/item/AB-30-X", "/item/AB-{id}-X"),
            ("/static/app.47eb301b.js", "/static/app.{id}.js"),
            ("/e/user9@example.com", "/e/{id}"),
            ("/e/user9%40example.com/x", "/e/{id}/x"),
            ("/p/2024-01-09", "/p/{id}"),
            ("/p/2024-01-09T10:30:00.5Z/x", "/p/{id}:{id}:{id}/x"),
            ("/p/2024_report-7", "/p/{id}_report-{id}"),
            ("/at/10.0.0.3", "/at/{id}"),
            ("/api/1.1/users", "/api/1.1/users"),
            ("/api/v1.2/v2-beta/users", "/api/v1.2/v2-beta/users"),
            ("/oauth2/s3/http2/utf-8/iso-8859-1", "/oauth2/s3/http2/utf-8/iso-8859-1"),
            ("/jquery-3.6.0.min.js", "/jquery-{id}.min.js"),
            ("/@scope/pkg", "/@scope/pkg"),
            ("", "/"),
        ] {
            assert_eq!(path(url), expected, "{url}");
        }
    }

    #[test]
    fn names_have_no_queries_and_no_ids() {
        for (text, expected) in [
            ("GET /search?q=rust&page=2", "GET /search"),
            ("/a?x=1 then /b?y=2", "/a then /b"),
            ("GET /users/:id?", "GET /users/:id?"),
            ("GET /{id?}/{page=1}", "GET /{id?}/{page=1}"),
            ("really?", "really?"),
            ("user-55.load", "user-{id}.load"),
            ("HTTP/1.1 GET", "HTTP/1.1 GET"),
            ("b.default.svc:8080/*", "b.default.svc:8080/*"),
            ("localhost:80", "localhost:80"),
            ("GET user:1234", "GET user:{id}"),
            ("lock a.b:70000", "lock a.b:{id}"),
        ] {
            assert_eq!(name(text), expected, "{text}");
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

    proptest! {
        #[test]
        fn any_text_has_a_bounded_name(text in ".{0,300}") {
            prop_assert!(name(&text).len() <= LONGEST_NAME_BYTES);
            prop_assert!(destination(&text).len() <= LONGEST_NAME_BYTES + 16);
            let _ = path(&text);
        }

        #[test]
        fn a_name_is_its_own_name(text in "[a-eTvx/0-9 .@_:-]{0,30}") {
            let once = name(&text);
            prop_assert_eq!(name(&once), once);
        }
    }
}
