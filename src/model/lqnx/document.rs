//! XML text to a tree of elements, within bounds.

use std::borrow::Cow;

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesRef, BytesStart, Event},
};

use super::element::{Attribute, Element, Result, SyntaxError};
use crate::model::order::OPAQUE_ELEMENTS;

/// Deepest nesting of elements. The format needs 10 (model, processor, group, task, entry, activities, activity, call,
/// result, confidence); readers recurse once a level.
const MAX_DEPTH: usize = 24;

/// Most elements in a file. A model of 10,000 tasks with five activities and calls each has 200,000.
const MAX_ELEMENTS: usize = 4_000_000;

/// Most attributes of an element. The format's largest, results of lock tasks, has 17.
const MAX_ATTRIBUTES: usize = 64;

/// Reads the one root element of `text`.
pub(super) fn parse(text: &str) -> Result<Element<'_>> {
    let mut document = Document { text, open: Vec::new(), root: None, n_elements: 0 };
    let mut reader = Reader::from_str(text);
    loop {
        let start = usize_of(reader.buffer_position());
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => return Err(SyntaxError { offset: usize_of(reader.error_position()), reason: error.to_string() }),
        };
        let after_bom = if start == 0 && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { start };
        match event {
            Event::Start(tag) => document.open(&tag, after_bom)?,
            Event::Empty(tag) => {
                document.open(&tag, after_bom)?;
                document.close();
            }
            Event::End(_) => document.close(),
            Event::Text(content) => document.text(content.xml10_content(), start)?,
            Event::CData(content) => document.text(content.xml10_content(), start)?,
            Event::GeneralRef(reference) => document.reference(&reference, start)?,
            Event::DocType(_) => {
                let reason = "document types and entities are not read: expected <lqn-model>".into();
                return Err(SyntaxError { offset: start, reason });
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => return document.finish(),
        }
    }
}

/// Offsets in a text that is in memory fit.
fn usize_of(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

struct Document<'a> {
    text: &'a str,
    open: Vec<Element<'a>>,
    root: Option<Element<'a>>,
    n_elements: usize,
}

impl<'a> Document<'a> {
    fn open(&mut self, tag: &BytesStart<'a>, offset: usize) -> Result<()> {
        let error = |reason: String| SyntaxError { offset, reason };
        self.n_elements += 1;
        if self.n_elements > MAX_ELEMENTS {
            return Err(error(format!("more than {MAX_ELEMENTS} elements")));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(error(format!("elements are nested more than {MAX_DEPTH} deep")));
        }
        if self.root.is_some() {
            return Err(error("expected the end of the input after the root element".into()));
        }
        let name = lowered(self.borrowed(tag.name().into_inner()));
        let attributes = self.attributes(tag, offset)?;
        self.open.push(Element { name, offset, attributes, children: Vec::new(), text: Cow::Borrowed("") });
        Ok(())
    }

    fn close(&mut self) {
        let Some(element) = self.open.pop() else {
            return;
        };
        match self.open.last_mut() {
            Some(_) if is_skipped(&element.name) => {}
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    fn attributes(&self, tag: &BytesStart<'a>, offset: usize) -> Result<Vec<Attribute<'a>>> {
        let mut attributes: Vec<Attribute<'a>> = Vec::new();
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|e| SyntaxError { offset, reason: format!("in the tag: {e}") })?;
            let key = attribute.key.into_inner();
            let at = self.offset_of(key).unwrap_or(offset);
            let error = |reason: String| SyntaxError { offset: at, reason };
            let name = lowered(self.borrowed(key));
            if attributes.len() >= MAX_ATTRIBUTES {
                return Err(error(format!("more than {MAX_ATTRIBUTES} attributes")));
            }
            if attributes.iter().any(|a| a.name == name) {
                return Err(error(format!("attribute \"{name}\" stands twice")));
            }
            let value = attribute.normalized_value_with(XmlVersion::Implicit1_0, 1, resolve_predefined_entity);
            let value = value.map_err(|e| error(format!("attribute \"{name}\": {e}")))?;
            let value = match value {
                Cow::Borrowed(value) => self.borrowed(value),
                Cow::Owned(value) => Cow::Owned(value),
            };
            attributes.push(Attribute { name, value, offset: at });
        }
        Ok(attributes)
    }

    /// Where a part of the input stands in it.
    fn offset_of(&self, part: &str) -> Option<usize> {
        let offset = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        (offset + part.len() <= self.text.len()).then_some(offset)
    }

    /// `part` with the lifetime of the input it is a part of; a copy if it is none.
    fn borrowed(&self, part: &str) -> Cow<'a, str> {
        let found = self.offset_of(part).and_then(|offset| self.text.get(offset..offset + part.len()));
        found.map_or_else(|| Cow::Owned(part.to_owned()), Cow::Borrowed)
    }

    fn text(&mut self, text: Cow<'a, str>, offset: usize) -> Result<()> {
        match self.open.last_mut() {
            Some(element) if is_blank(&text) && !holds_text(&element.name) => Ok(()),
            Some(element) if element.text.is_empty() => {
                element.text = text;
                Ok(())
            }
            Some(element) => {
                element.text.to_mut().push_str(&text);
                Ok(())
            }
            None if is_blank(text.trim_start_matches('\u{feff}')) => Ok(()),
            None => Err(SyntaxError { offset, reason: "expected <lqn-model>, found text".into() }),
        }
    }

    fn reference(&mut self, reference: &BytesRef<'a>, offset: usize) -> Result<()> {
        let error = |reason: String| SyntaxError { offset, reason };
        match reference.resolve_char_ref() {
            Err(e) => Err(error(e.to_string())),
            Ok(Some(character)) => self.text(Cow::Owned(character.to_string()), offset),
            Ok(None) => match resolve_predefined_entity(reference) {
                Some(text) => self.text(Cow::Borrowed(text), offset),
                None => Err(error(format!("unknown entity \"&{};\"", crate::model::lexer::shortened(reference)))),
            },
        }
    }

    fn finish(self) -> Result<Element<'a>> {
        if let Some(open) = self.open.last() {
            return Err(open.error(format!("<{}> is not closed", open.name)));
        }
        self.root.ok_or_else(|| SyntaxError { offset: self.text.len(), reason: "expected <lqn-model>, found the end".into() })
    }
}

/// Parts of the format that the LQN tools skip, and we do too.
const SKIPPED: [&str; 5] = ["slot", "service", "run-control", "plot-control", "call-list"];

/// Whether an element is dropped wherever it stands: results of an earlier solution (what is to be observed is kept), and
/// what the LQN tools skip.
fn is_skipped(name: &str) -> bool {
    let is_result = name.starts_with("result-") && !matches!(name, "result-observe" | "result-conf-95" | "result-conf-99");
    is_result || SKIPPED.contains(&name)
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_whitespace())
}

/// Elements whose character data means something; in others only white space may stand, and is dropped.
fn holds_text(name: &str) -> bool {
    name == "parameters" || OPAQUE_ELEMENTS.contains(&name)
}

fn lowered(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.bytes().any(|b| b.is_ascii_uppercase()) { Cow::Owned(name.to_ascii_lowercase()) } else { name }
}
