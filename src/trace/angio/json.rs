//! Angio events as JSON, one object a line.

use std::{borrow::Cow, fmt, io::BufRead};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    BadRow, ReadError, Rows,
    columns::{Column, N_COLUMNS, abridged},
    rows::{Fields, Row},
};
use crate::trace::lines::next_line;

/// Reads the lines of `bytes`, the first of which is line `first` of the source.
pub(super) fn read(mut bytes: impl BufRead, first: u64, rows: &mut Rows<'_>) -> Result<(), ReadError> {
    let mut line = Vec::new();
    for number in first.. {
        if !next_line(&mut bytes, &mut line, number).map_err(|error| rows.unreadable(error))? {
            break;
        }
        let text = line.trim_ascii();
        if !text.is_empty() && !text.starts_with(b"#") {
            read_line(text, number, rows)?;
        }
    }
    Ok(())
}

fn read_line(text: &[u8], line: u64, rows: &mut Rows<'_>) -> Result<(), ReadError> {
    let bad = |field: &str, found: String, expected: &str| BadRow {
        log: String::new(),
        line,
        field: field.to_owned(),
        found,
        expected: expected.to_owned(),
    };
    let object: Object<'_> = match serde_json::from_slice(text) {
        Ok(object) => object,
        Err(error) => {
            let found = format!("\"{}\" ({error})", abridged(&String::from_utf8_lossy(text)));
            return rows.bad_row(BadRow { log: rows.log.to_owned(), ..bad("row", found, "one JSON object of texts and numbers") });
        }
    };
    let mut fields: Fields<'_> = [""; N_COLUMNS];
    for (name, value) in &object.0 {
        let Some(column) = Column::from_header(name) else {
            rows.unknown_column(name, line)?;
            continue;
        };
        let fault = match value {
            Scalar::Absent => None,
            Scalar::Text(text) if fields[column as usize].is_empty() => {
                fields[column as usize] = text.trim();
                None
            }
            Scalar::Text(_) => Some(bad(name, "said twice".to_owned(), "each field once")),
            Scalar::Other(found) => Some(bad(name, (*found).to_owned(), "a text or a number")),
        };
        if let Some(fault) = fault {
            return rows.bad_row(BadRow { log: rows.log.to_owned(), ..fault });
        }
    }
    match (Row { log: rows.log, fields: &fields, headings: None }).event() {
        Ok(event) => {
            (rows.sink)(event);
            Ok(())
        }
        Err(bad) => rows.bad_row(BadRow { line, ..bad }),
    }
}

/// The fields of an object in their order, repeated ones too.
struct Object<'j>(Vec<(Cow<'j, str>, Scalar<'j>)>);

/// A field's value.
enum Scalar<'j> {
    Absent,
    /// A text, or a number as text.
    Text(Cow<'j, str>),
    /// Anything else, by what it is.
    Other(&'static str),
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::with_capacity(N_COLUMNS);
                while let Some(Text(name)) = map.next_key()? {
                    fields.push((name, map.next_value()?));
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// A text, borrowed where it has no escapes.
struct Text<'j>(Cow<'j, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => Ok(Self(text)),
            Scalar::Absent | Scalar::Other(_) => Err(serde::de::Error::custom("a field's name is not a text")),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Absent)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(number.to_string())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(number.to_string())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other("true or false"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("an object"))
    }
}
