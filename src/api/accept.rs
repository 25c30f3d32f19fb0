//! Choosing the representation that a client accepts (RFC 9110, section 12.5.1).

use axum::http::{HeaderMap, header};

use super::{Code, Error};

/// The first of `offered` media types with the highest quality in the request's `Accept`; the first of all without one.
/// `offered` must not be empty.
///
/// # Errors
/// [`Code::NotAcceptable`] when the client accepts none of them.
pub(super) fn choose<'a>(headers: &HeaderMap, offered: &[&'a str]) -> Result<&'a str, Error> {
    let accept: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let ranges: Vec<Range<'_>> = accept.iter().flat_map(|value| value.split(',')).filter_map(Range::parse).collect();
    let mut best: Option<(&str, f32)> = None;
    for media_type in offered {
        let quality = if ranges.is_empty() { 1.0 } else { quality(&ranges, media_type) };
        if quality > best.map_or(0.0, |(_, quality)| quality) {
            best = Some((media_type, quality));
        }
    }
    best.map(|(media_type, _)| media_type).ok_or_else(|| {
        Error::new(Code::NotAcceptable, format!("this resource is served as {}", offered.join(" or "))).with("offered", offered)
    })
}

/// Whether the client accepts `media_type` and says so by its name.
pub(super) fn names(headers: &HeaderMap, media_type: &str) -> bool {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = accept.flat_map(|value| value.split(',')).filter_map(Range::parse);
    ranges.any(|range| range.media_type.eq_ignore_ascii_case(media_type) && range.quality > 0.0)
}

/// One `type/subtype;q=…` of an `Accept` header.
struct Range<'a> {
    media_type: &'a str,
    quality: f32,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().filter(|media_type| media_type.contains('/'))?;
        let weight = |parameter: &'a str| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        };
        let quality = parts.find_map(weight).map_or(Some(1.0), |q| q.parse().ok())?;
        Some(Self { media_type, quality })
    }

    /// How precisely the range names `media_type`: 0 not at all, 3 exactly.
    fn precision(&self, media_type: &str) -> u8 {
        let kind = media_type.split('/').next().unwrap_or_default();
        let same_kind = || self.media_type.strip_suffix("/*").is_some_and(|asked| asked.eq_ignore_ascii_case(kind));
        match self.media_type {
            exact if exact.eq_ignore_ascii_case(media_type) => 3,
            "*/*" => 1,
            _ if same_kind() => 2,
            _ => 0,
        }
    }
}

/// The quality that the most precise range gives `media_type`.
fn quality(ranges: &[Range<'_>], media_type: &str) -> f32 {
    let matching = ranges.iter().filter(|range| range.precision(media_type) > 0);
    matching.max_by_key(|range| range.precision(media_type)).map_or(0.0, |range| range.quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        if !accept.is_empty() {
            headers.insert(header::ACCEPT, accept.parse().unwrap());
        }
        assert_eq!(choose(&headers, &["application/json", "application/xml"]).ok(), expected, "{accept}");
    }

    #[test]
    fn a_type_is_accepted_by_name() {
        for (accept, expected) in [("", false), ("*/*", false), ("a/b, A/Json;q=0.1", true), ("a/json;q=0", false), ("a/*", false)] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(names(&headers, "a/json"), expected, "{accept}");
        }
    }

    #[test]
    fn the_best_accepted_type_is_chosen() {
        check("", Some("application/json"));
        check("*/*", Some("application/json"));
        check("application/xml", Some("application/xml"));
        check("Application/XML", Some("application/xml"));
        check("application/*", Some("application/json"));
        check("Application/*;Q=0.5", Some("application/json"));
        check("application/json;Q=0, */*", Some("application/xml"));
        check("application/json;q=0.5, application/xml", Some("application/xml"));
        check("text/html, application/xml;q=0.9, */*;q=0.8", Some("application/xml"));
        check("application/json;q=0, */*", Some("application/xml"));
        check("text/html", None);
        check("*/*;q=0", None);
        check("nonsense", Some("application/json"));
    }
}
