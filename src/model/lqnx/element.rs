//! Elements of an XML document, and typed reading of their attributes.

use std::borrow::Cow;

use crate::model::{Number, number::is_name};

pub(super) use crate::model::lexer::SyntaxError;

/// An element with its attributes and children.
#[derive(Debug)]
pub(super) struct Element<'a> {
    /// Name in lower case.
    pub(super) name: Cow<'a, str>,
    pub(super) offset: usize,
    pub(super) attributes: Vec<Attribute<'a>>,
    pub(super) children: Vec<Element<'a>>,
    /// Character data, that of all pieces joined.
    pub(super) text: Cow<'a, str>,
}

/// An attribute, unescaped.
#[derive(Debug)]
pub(super) struct Attribute<'a> {
    /// Name in lower case.
    pub(super) name: Cow<'a, str>,
    pub(super) value: Cow<'a, str>,
    pub(super) offset: usize,
}

pub(super) type Result<T> = std::result::Result<T, SyntaxError>;

impl<'a> Element<'a> {
    /// An error at the element.
    pub(super) fn error(&self, reason: impl Into<String>) -> SyntaxError {
        SyntaxError { offset: self.offset, reason: reason.into() }
    }

    /// Refuses attributes that the element does not have, and text where it holds none.
    pub(super) fn allow(&self, attributes: &[&str]) -> Result<()> {
        for attribute in &self.attributes {
            let name = attribute.name.as_ref();
            let known = attributes.contains(&name) || name == "comment" || is_foreign(name);
            if !known {
                let expected = if attributes.is_empty() { "it has none".into() } else { format!("expected {}", list(attributes)) };
                let reason = format!("unknown attribute \"{name}\" of <{}>: {expected}", self.name);
                return Err(SyntaxError { offset: attribute.offset, reason });
            }
        }
        if self.text.trim().is_empty() { Ok(()) } else { Err(self.error(format!("unexpected text in <{}>", self.name))) }
    }

    /// An error for a child that does not belong here.
    pub(super) fn unknown_child(&self, child: &Element<'_>, expected: &[&str]) -> SyntaxError {
        let expected = if expected.is_empty() { "it has none".to_owned() } else { format!("expected {}", list(expected)) };
        child.error(format!("unexpected element <{}> in <{}>: {expected}", child.name, self.name))
    }

    /// The value of an attribute.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.attribute(name).map(|a| a.value.as_ref())
    }

    /// The value of an attribute that must be there.
    pub(super) fn required(&self, name: &str) -> Result<&str> {
        self.text_of(name).ok_or_else(|| self.error(format!("<{}> lacks the attribute \"{name}\"", self.name)))
    }

    /// The number in an attribute, or `default` where it is absent.
    pub(super) fn number_or(&self, name: &str, default: f64) -> Result<Number> {
        Ok(self.number(name)?.unwrap_or(Number::Value(default)))
    }

    /// The number or `$name` in an attribute.
    pub(super) fn number(&self, name: &str) -> Result<Option<Number>> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let number = Number::parse(&attribute.value).filter(|n| n.literal().is_none_or(|v| !v.is_nan()));
        number.map(Some).ok_or_else(|| attribute.number_error("a number or $name"))
    }

    /// The number in an attribute where no `$name` may stand, or `default`.
    pub(super) fn literal_or(&self, name: &str, default: f64) -> Result<f64> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(default);
        };
        let value = Number::parse(&attribute.value).and_then(|n| n.literal()).filter(|v| !v.is_nan());
        value.ok_or_else(|| attribute.number_error("a number (no $name may stand here)"))
    }

    /// The whole number in an attribute where no `$name` may stand, or `default`.
    pub(super) fn count_or(&self, name: &str, default: u32) -> Result<u32> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(default);
        };
        attribute.value.trim().parse().map_err(|_| attribute.error("a whole number"))
    }

    /// A phase in an attribute that must be there.
    pub(super) fn phase(&self) -> Result<u8> {
        self.required("phase")?;
        let phase = self.count_or("phase", 0)?;
        let found = u8::try_from(phase).ok().filter(|p| (1..=3).contains(p));
        found.ok_or_else(|| self.attribute_error("phase", "1, 2 or 3"))
    }

    /// Yes or no in an attribute, no where it is absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.text_of(name).map(str::trim) {
            None => Ok(false),
            Some(text) if ["yes", "true", "1"].iter().any(|t| text.eq_ignore_ascii_case(t)) => Ok(true),
            Some(text) if ["no", "false", "0"].iter().any(|t| text.eq_ignore_ascii_case(t)) => Ok(false),
            Some(_) => Err(self.attribute_error(name, "yes, no, true or false")),
        }
    }

    /// One of several values in an attribute.
    pub(super) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let found = choices.iter().find(|(text, _)| *text == attribute.value.trim()).map(|(_, value)| *value);
        let names: Vec<&str> = choices.iter().map(|(text, _)| *text).collect();
        found.map(Some).ok_or_else(|| attribute.error(&list(&names)))
    }

    /// The variable `$x` in an attribute, without its `$`.
    pub(super) fn variable(attribute: &Attribute<'_>) -> Result<String> {
        let name = attribute.value.trim().strip_prefix('$').filter(|n| is_name(n));
        name.map(str::to_owned).ok_or_else(|| attribute.error("a $name"))
    }

    /// An error at an attribute, or at the element where it is absent.
    pub(super) fn attribute_error(&self, name: &str, expected: &str) -> SyntaxError {
        self.attribute(name).map_or_else(|| self.error(format!("expected {expected}")), |a| a.error(expected))
    }

    fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|a| a.name == name)
    }
}

impl Attribute<'_> {
    /// An error at the attribute, whose value is not what was `expected`.
    pub(super) fn error(&self, expected: &str) -> SyntaxError {
        let value = crate::model::lexer::shortened(&self.value);
        SyntaxError { offset: self.offset, reason: format!("{}=\"{value}\": expected {expected}", self.name) }
    }

    /// As [`Attribute::error`], of a value that is to be a number.
    fn number_error(&self, expected: &str) -> SyntaxError {
        if !self.value.trim().parse().is_ok_and(f64::is_infinite) {
            return self.error(expected);
        }
        let value = crate::model::lexer::shortened(&self.value);
        SyntaxError { offset: self.offset, reason: format!("{}=\"{value}\": the number is too large", self.name) }
    }
}

/// Attributes of XML itself and of schema instances, which say nothing about the model.
pub(super) fn is_foreign(name: &str) -> bool {
    name == "xmlns" || ["xmlns:", "xsi:", "xml:"].iter().any(|prefix| name.starts_with(prefix))
}

/// `a, b or c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
