//! Rows of JSON lines.

use std::{borrow::Cow, fmt, io::BufRead};

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    BadEvent, EventTraceError, Rows,
    columns::{Column, N_COLUMNS, abridged},
    row::{Field, Row},
};
use crate::trace::lines::next_line;

/// Reads `first`, which stands on line `number`, and what follows it.
pub(super) fn read(rows: &mut Rows<'_>, mut stream: impl BufRead, first: Vec<u8>, mut number: u64) -> Result<(), EventTraceError> {
    let mut line = first;
    loop {
        let text = line.trim_ascii();
        if !text.is_empty() && !text.starts_with(b"#") {
            row(rows, text, number)?;
        }
        number += 1;
        if !next_line(&mut stream, &mut line, number).map_err(|error| rows.unreadable(error))? {
            return Ok(());
        }
    }
}

fn row(rows: &mut Rows<'_>, text: &[u8], line: u64) -> Result<(), EventTraceError> {
    let object: Object<'_> = match serde_json::from_slice(text) {
        Ok(object) => object,
        Err(error) => {
            let bad = BadEvent {
                trace: rows.trace.to_owned(),
                line,
                field: format!("row, column {}", error.column()),
                found: format!("\"{}\"", abridged(&String::from_utf8_lossy(text))),
                expected: format!("a JSON object ({})", reason(&error)),
            };
            return rows.accept(Err(bad));
        }
    };
    if let Some(name) = &object.unknown {
        rows.unknown_column(name, line)?;
    }
    let name_of = |column: Column| column.name().to_owned();
    let fields = object.values.each_ref().map(Value::field);
    let event = Row { trace: rows.trace, line_of: &|| line, fields: &fields, name_of: &name_of }.event();
    rows.accept(event)
}

/// What the parser says, without the place, which is said before.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// A field's value.
#[derive(Debug)]
enum Value<'r> {
    Text(Cow<'r, str>),
    Other(Field<'static>),
}

impl Default for Value<'_> {
    fn default() -> Self {
        Self::Other(Field::Missing)
    }
}

impl Value<'_> {
    fn field(&self) -> Field<'_> {
        match self {
            Self::Text(text) => Field::Text(text),
            Self::Other(field) => *field,
        }
    }
}

/// An object's values by column, and the first key that means nothing here.
#[derive(Debug, Default)]
struct Object<'r> {
    values: [Value<'r>; N_COLUMNS],
    unknown: Option<String>,
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut object = Object::default();
        while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
            match Column::from_name(&key) {
                Some(column) => object.values[column as usize] = map.next_value()?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                    object.unknown.get_or_insert_with(|| key.into_owned());
                }
            }
        }
        Ok(object)
    }
}

/// A text, borrowed where it holds no escapes.
struct Text<'r>(Cow<'r, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Text(text) => Ok(Self(text)),
            _ => Err(de::Error::custom("a key that is not a text")),
        }
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text, true, false or null")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value<'de>, E> {
        Ok(Value::Other(Field::Missing))
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value<'de>, E> {
        Ok(Value::Other(Field::Flag(flag)))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Other(Field::Whole(number)))
    }

    #[expect(clippy::cast_precision_loss, reason = "a negative number is wrong in every field; it is only shown")]
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Other(u64::try_from(number).map_or(Field::Number(number as f64), Field::Whole)))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value<'de>, E> {
        Ok(Value::Other(Field::Number(number)))
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other(Field::Unusable("an object")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other(Field::Unusable("a list")))
    }
}
