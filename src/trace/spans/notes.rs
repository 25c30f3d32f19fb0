//! What the attributes of one span said, until the span is whole.

use super::{
    super::{
        json::Scalar,
        span::{Attribute, Span, SpanKind, SpanStatus},
    },
    intake::Intake,
    keys::{Meaning, Socket},
    sampling,
};

/// What was said of how a span ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::trace) enum Said {
    /// Nothing.
    #[default]
    Nothing,
    /// That it ended well.
    Ok,
    /// That it failed.
    Error,
}

/// What the attributes of a span said.
#[derive(Debug, Default)]
pub(in crate::trace) struct Notes {
    attributes: Vec<(Attribute, u32)>,
    peers: Vec<(Attribute, u32)>,
    /// Of a URL: used where nothing else says who was asked.
    authority: Option<(u32, Option<u32>)>,
    /// Name, address and port of the other end of a socket: used where not even a URL does.
    socket: [Option<u32>; 3],
    /// What stands for a message's destination that is one of many: the template of their names, or what they are called together.
    template: Option<u32>,
    short_lived: Option<&'static str>,
    url_template: Option<u32>,
    component: Option<u32>,
    pub(in crate::trace) kind: SpanKind,
    pub(in crate::trace) said: Said,
    /// Status that a code or a message of an error gives away: less general than an error.
    reason: Option<SpanStatus>,
    /// Status that a response's code tells, where nobody said how the span ended.
    response: Option<SpanStatus>,
    sampled_with_probability: bool,
    sampler_parameter: Option<f64>,
    pub(in crate::trace) adjusted_count: Option<f64>,
    /// Whether the span was Zipkin's before, so that a server may have its client's id.
    pub(in crate::trace) was_zipkin: bool,
}

impl Notes {
    /// Notes an attribute, unless it is not for us.
    pub(in crate::trace) fn note(&mut self, intake: &mut Intake<'_>, key: &str, value: &Scalar<'_>) {
        let Some(meaning) = intake.meaning(key) else { return };
        let Some(text) = value.text() else { return };
        match meaning {
            Meaning::Keep(attribute) => keep(&mut self.attributes, attribute, intake.attribute_text(&text)),
            Meaning::Peer(attribute) => keep(&mut self.peers, attribute, intake.attribute_text(&text)),
            Meaning::Socket(part) => self.note_socket(intake, part, &text),
            Meaning::Url => self.note_url(intake, &text),
            Meaning::UrlTemplate => self.url_template = self.url_template.or_else(|| intake.attribute_text(&text)),
            Meaning::DestinationTemplate => self.template = self.template.or_else(|| intake.attribute_text(&text)),
            Meaning::ShortLived(together) if text == "true" => self.short_lived = self.short_lived.or(Some(together)),
            Meaning::ShortLived(_) => {}
            Meaning::Component => self.component = intake.attribute_text(&text),
            Meaning::Kind => self.kind = kind_of_name(&text).unwrap_or(self.kind),
            Meaning::Error => self.note_error(&text),
            Meaning::ErrorType => {
                self.said = Said::Error;
                self.note_words(&text);
            }
            Meaning::StatusCode => self.note_status_code(&text),
            Meaning::StatusMessage => self.note_words(&text),
            Meaning::HttpStatus => {
                keep(&mut self.attributes, Attribute::HttpStatus, intake.attribute_text(&text));
                self.response = self.response.or_else(|| status_of_http(&text));
            }
            Meaning::GrpcStatus => self.response = self.response.or_else(|| status_of_grpc(&text)),
            Meaning::SamplerType => self.sampled_with_probability = text == "probabilistic",
            Meaning::SamplerParameter => self.sampler_parameter = value.number(),
            Meaning::SampleRate => self.adjusted_count = self.adjusted_count.or(value.number().and_then(sampling::adjusted_count_of_rate)),
            Meaning::OriginalFormat => self.was_zipkin = text.eq_ignore_ascii_case("zipkin"),
        }
    }

    /// Notes `attribute` with a text that was read before, unless it is known.
    pub(in crate::trace) fn set(&mut self, attribute: Attribute, text: Option<u32>) {
        keep(&mut self.attributes, attribute, text);
    }

    /// Notes words that come with a status: they may tell why a span failed.
    pub(in crate::trace) fn note_words(&mut self, words: &str) {
        self.reason = self.reason.or_else(|| status_of_words(words));
    }

    /// Notes the value of a tag named `error`: `false`, or what went wrong.
    pub(in crate::trace) fn note_error(&mut self, text: &str) {
        if !text.eq_ignore_ascii_case("false") {
            self.said = Said::Error;
            self.note_words(text);
        }
    }

    fn note_status_code(&mut self, text: &str) {
        if text.eq_ignore_ascii_case("error") || text == "2" {
            self.said = Said::Error;
        } else if text.eq_ignore_ascii_case("ok") && self.said == Said::Nothing {
            self.said = Said::Ok;
        }
    }

    fn note_socket(&mut self, intake: &mut Intake<'_>, part: Socket, text: &str) {
        let slot = &mut self.socket[part as usize];
        if slot.is_none() {
            *slot = intake.attribute_text(text);
        }
    }

    fn note_url(&mut self, intake: &mut Intake<'_>, url: &str) {
        // Most have no colon, which is found sooner.
        let split = if url.contains(':') { url.split_once("://") } else { None };
        let (authority, rest) = match split {
            Some((_, rest)) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                (rest.get(..end), &rest[end..])
            }
            None => (None, url),
        };
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        keep(&mut self.attributes, Attribute::Url, intake.attribute_text(if path.is_empty() { "/" } else { path }));
        let host = authority.map(|authority| authority.rsplit('@').next().unwrap_or_default());
        if let Some(host) = host.filter(|host| !host.is_empty() && self.authority.is_none()) {
            let (address, port) = match host.rsplit_once(':') {
                Some((address, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => (address, Some(port)),
                _ => (host, None),
            };
            let port = port.and_then(|port| intake.attribute_text(port));
            self.authority = intake.attribute_text(address).map(|address| (address, port));
        }
    }

    /// Gives `span` what was noted: attributes, kind, status, sampling.
    pub(in crate::trace) fn complete(mut self, intake: &mut Intake<'_>, span: &mut Span) {
        if span.kind == SpanKind::Unspecified {
            span.kind = self.kind;
        }
        span.status = self.status();
        let by_sampler = self.sampler_parameter.filter(|p| self.sampled_with_probability && (0.0..=1.0).contains(p));
        span.adjusted_count = span.adjusted_count.or(self.adjusted_count).or_else(|| by_sampler.and_then(sampling::adjusted_count_of_rate));
        self.generalise_destination(intake, span);
        let mut attributes = self.attributes;
        keep(&mut attributes, Attribute::HttpRoute, self.url_template);
        if span.kind != SpanKind::Server {
            for (attribute, text) in self.peers {
                keep(&mut attributes, attribute, Some(text));
            }
            if let Some((address, port)) = self.authority.filter(|_| !attributes.iter().any(|(a, _)| *a == Attribute::ServerAddress)) {
                attributes.push((Attribute::ServerAddress, address));
                keep(&mut attributes, Attribute::ServerPort, port);
            }
        }
        let [name, address, port] = self.socket;
        let is_named = attributes.iter().any(|(a, _)| *a == Attribute::ServerAddress);
        if matches!(span.kind, SpanKind::Client | SpanKind::Producer) && !is_named && name.or(address).is_some() {
            keep(&mut attributes, Attribute::ServerAddress, name.or(address));
            keep(&mut attributes, Attribute::ServerPort, port);
        }
        if let Some(component) = self.component.filter(|c| is_data_base(intake.text_of(*c))) {
            keep(&mut attributes, Attribute::DbSystem, Some(component));
        }
        span.attributes = attributes;
    }

    /// Gives a destination that is one of many the name of all, in the span's name too.
    fn generalise_destination(&mut self, intake: &mut Intake<'_>, span: &mut Span) {
        let together = self.template.or_else(|| self.short_lived.and_then(|together| intake.attribute_text(together)));
        let Some(together) = together else { return };
        let Some((_, known)) = self.attributes.iter_mut().find(|(attribute, _)| *attribute == Attribute::MessagingDestination) else {
            self.attributes.push((Attribute::MessagingDestination, together));
            return;
        };
        let one = std::mem::replace(known, together);
        let name = intake.text_of(span.name);
        if name.contains(intake.text_of(one)) {
            let name = name.replace(intake.text_of(one), intake.text_of(together));
            span.name = intake.name_text(&name);
        }
    }

    fn status(&self) -> SpanStatus {
        match self.said {
            Said::Ok => SpanStatus::Ok,
            Said::Error => {
                let telling = self.reason.or(self.response).filter(|s| *s != SpanStatus::Ok);
                telling.unwrap_or(SpanStatus::Error)
            }
            Said::Nothing => self.response.unwrap_or(SpanStatus::Ok),
        }
    }
}

fn keep(attributes: &mut Vec<(Attribute, u32)>, attribute: Attribute, text: Option<u32>) {
    if let Some(text) = text.filter(|_| !attributes.iter().any(|(known, _)| *known == attribute)) {
        attributes.push((attribute, text));
    }
}

/// The kind that a name says: `SERVER`, `server`, `SPAN_KIND_SERVER`.
pub(in crate::trace) fn kind_of_name(name: &str) -> Option<SpanKind> {
    let prefix = "SPAN_KIND_";
    let name = name.get(..prefix.len()).filter(|p| p.eq_ignore_ascii_case(prefix)).map_or(name, |_| &name[prefix.len()..]);
    let kinds = [
        ("unspecified", SpanKind::Unspecified),
        ("internal", SpanKind::Internal),
        ("server", SpanKind::Server),
        ("client", SpanKind::Client),
        ("producer", SpanKind::Producer),
        ("consumer", SpanKind::Consumer),
    ];
    kinds.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
}

/// Time-outs: 408 and 504, the gateways' 524 and 598; 499: the client has gone; from 500 on an error.
fn status_of_http(code: &str) -> Option<SpanStatus> {
    match code.trim().parse::<u16>().ok()? {
        408 | 504 | 524 | 598 => Some(SpanStatus::Timeout),
        499 => Some(SpanStatus::Cancelled),
        500..=599 => Some(SpanStatus::Error),
        _ => None,
    }
}

/// Codes of gRPC by number or name; those are errors that a server's fault makes.
fn status_of_grpc(code: &str) -> Option<SpanStatus> {
    let letters: String = code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).take(32).collect();
    match letters.as_str() {
        "4" | "DEADLINEEXCEEDED" => Some(SpanStatus::Timeout),
        "1" | "CANCELLED" | "CANCELED" => Some(SpanStatus::Cancelled),
        "2" | "12" | "13" | "14" | "15" | "UNKNOWN" | "UNIMPLEMENTED" | "INTERNAL" | "UNAVAILABLE" | "DATALOSS" => Some(SpanStatus::Error),
        _ => None,
    }
}

/// Longest piece of an error's words that is searched, bytes.
const WORDS_SEARCHED_BYTES: usize = 2048;

fn status_of_words(words: &str) -> Option<SpanStatus> {
    let words = words[..words.floor_char_boundary(WORDS_SEARCHED_BYTES)].to_ascii_lowercase();
    let any = |of: &[&str]| of.iter().any(|word| words.contains(word));
    if any(&["timeout", "timed out", "time-out", "timed_out", "deadline exceeded", "deadline_exceeded", "deadlineexceeded"]) {
        Some(SpanStatus::Timeout)
    } else if any(&["canceled", "cancelled"]) {
        Some(SpanStatus::Cancelled)
    } else {
        None
    }
}

fn is_data_base(component: &str) -> bool {
    let component = component.to_ascii_lowercase();
    ["jdbc", "sql", "mongo", "redis", "memcached", "cassandra", "elasticsearch"].iter().any(|known| component.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_all_their_names() {
        for (name, kind) in [("SPAN_KIND_SERVER", SpanKind::Server), ("server", SpanKind::Server), ("PRODUCER", SpanKind::Producer)] {
            assert_eq!(kind_of_name(name), Some(kind));
        }
        for name in ["", "SPAN_KIND_", "é", "servant"] {
            assert_eq!(kind_of_name(name), None, "{name}");
        }
    }

    #[test]
    fn words_and_codes_of_time_outs() {
        assert_eq!(status_of_words("context Deadline Exceeded (Client.Timeout)"), Some(SpanStatus::Timeout));
        assert_eq!(status_of_words("context canceled"), Some(SpanStatus::Cancelled));
        assert_eq!(status_of_words("out of memory"), None);
        assert_eq!(status_of_http("504"), Some(SpanStatus::Timeout));
        assert_eq!(status_of_http("404"), None);
        assert_eq!(status_of_grpc("DEADLINE_EXCEEDED"), Some(SpanStatus::Timeout));
        assert_eq!(status_of_grpc("14"), Some(SpanStatus::Error));
        assert_eq!(status_of_grpc("0"), None);
    }

    #[test]
    fn an_explicit_ok_wins_over_codes_and_an_error_over_nothing() {
        let mut notes = Notes { response: Some(SpanStatus::Error), ..Notes::default() };
        assert_eq!(notes.status(), SpanStatus::Error);
        notes.said = Said::Ok;
        assert_eq!(notes.status(), SpanStatus::Ok);
        notes.said = Said::Error;
        notes.reason = Some(SpanStatus::Timeout);
        assert_eq!(notes.status(), SpanStatus::Timeout);
    }
}
