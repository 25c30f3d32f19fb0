//! What the tests of span formats share: a reading in short form.

use std::ops::ControlFlow;

use layerfit::trace::{
    BadRows,
    diagnostics::{Diagnostic, Diagnostics},
    span::{Attribute, Span, SpanTexts},
    spans::{ReadError, SpanFormat, SpanFormatSeen, SpanReadOptions, read_spans},
};

/// Everything that a source gave.
pub struct Reading {
    pub seen: SpanFormatSeen,
    pub spans: Vec<Span>,
    pub texts: SpanTexts,
    pub diagnostics: Vec<Diagnostic>,
}

pub const STRICT: SpanReadOptions = SpanReadOptions { bad_rows: BadRows::Reject, limit_bytes: 1 << 30, session_keys: Vec::new() };

pub fn try_read(bytes: &[u8], format: SpanFormat, options: &SpanReadOptions) -> Result<Reading, ReadError> {
    let (mut texts, mut diagnostics, mut spans) = (SpanTexts::default(), Diagnostics::default(), Vec::new());
    let seen = read_spans("traces", bytes, format, options, &mut texts, &mut diagnostics, &mut |span, _| {
        spans.push(span);
        ControlFlow::Continue(())
    })?;
    Ok(Reading { seen, spans, texts, diagnostics: diagnostics.into_vec() })
}

pub fn read(text: &str) -> Reading {
    try_read(text.as_bytes(), SpanFormat::Auto, &SpanReadOptions::default()).unwrap()
}

/// The words of the error that `text` is in strict mode, with its cause.
pub fn refusal(text: &str) -> String {
    match try_read(text.as_bytes(), SpanFormat::Auto, &STRICT) {
        Ok(reading) => panic!("{} spans were read", reading.spans.len()),
        Err(error) => error.to_string(),
    }
}

impl Reading {
    pub fn name(&self, span: usize) -> &str {
        self.texts.texts.name(self.spans[span].name)
    }

    pub fn service(&self, span: usize) -> &str {
        let resource = self.texts.resource(self.spans[span].resource).unwrap();
        resource.service.map_or("", |service| self.texts.texts.name(service))
    }

    pub fn host(&self, span: usize) -> &str {
        let resource = self.texts.resource(self.spans[span].resource).unwrap();
        resource.host.map_or("", |host| self.texts.texts.name(host))
    }

    pub fn attribute(&self, span: usize, attribute: Attribute) -> Option<&str> {
        self.spans[span].attribute(attribute).map(|text| self.texts.texts.name(text))
    }

    pub fn names(&self) -> Vec<&str> {
        (0..self.spans.len()).map(|i| self.name(i)).collect()
    }

    pub fn services(&self) -> Vec<&str> {
        (0..self.spans.len()).map(|i| self.service(i)).collect()
    }

    /// Codes of what was odd, with their counts.
    pub fn odd(&self) -> Vec<(&str, u64)> {
        self.diagnostics.iter().map(|d| (d.code.as_str(), d.count)).collect()
    }

    pub fn example(&self, code: &str) -> &str {
        let found = self.diagnostics.iter().find(|d| d.code == code);
        found.unwrap_or_else(|| panic!("no {code} in {:?}", self.odd())).examples[0].as_str()
    }
}
