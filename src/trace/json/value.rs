//! Values as formats write them: texts borrowed where they can be, scalars of any type, `null` for nothing.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess},
};

/// A text, borrowed from the input unless it is escaped there; `null` is the empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(v.to_owned())))
            }
            fn visit_unit<E>(self) -> Result<Text<'de>, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A value of any type; what is neither text, number nor truth value is passed over.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scalar<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A whole number.
    Int(i64),
    /// A whole number past `i64::MAX`.
    Large(u64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// `null`, an array, or an object.
    #[default]
    Other,
}

impl Scalar<'_> {
    /// As a text: numbers in digits; `None` for [`Scalar::Other`].
    pub fn text(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Int(v) => Cow::Owned(v.to_string()),
            Self::Large(v) => Cow::Owned(v.to_string()),
            Self::Float(v) => Cow::Owned(v.to_string()),
            Self::Bool(v) => Cow::Borrowed(if *v { "true" } else { "false" }),
            Self::Other => return None,
        })
    }

    /// As a finite number, texts of digits too.
    #[expect(clippy::cast_precision_loss, reason = "the nearest f64 is asked for")]
    pub fn number(&self) -> Option<f64> {
        let number = match self {
            Self::Text(text) => text.trim().parse().ok()?,
            Self::Int(v) => *v as f64,
            Self::Large(v) => *v as f64,
            Self::Float(v) => *v,
            Self::Bool(_) | Self::Other => return None,
        };
        f64::is_finite(number).then_some(number)
    }

    /// As a whole number times `factor`, exact for whole numbers and texts of them, else rounded; `None` out of range.
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the range is checked")]
    pub fn whole(&self, factor: i64) -> Option<i64> {
        let exact = match self {
            Self::Int(v) => Some(*v),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        if let Some(exact) = exact {
            return exact.checked_mul(factor);
        }
        let rounded = (self.number()? * factor as f64).round();
        (rounded.abs() < i64::MAX as f64).then_some(rounded as i64)
    }
}

/// Takes a scalar of any type.
struct ScalarVisitor;

impl<'de> de::Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(v)))
    }
    fn visit_str<E>(self, v: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(v.to_owned())))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Int(v))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Scalar<'de>, E> {
        Ok(i64::try_from(v).map_or(Scalar::Large(v), Scalar::Int))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Float(v))
    }
    fn visit_bool<E>(self, v: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Bool(v))
    }
    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// A value, or `null` for its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OrNull<T>(pub T);

impl<'de, T: Default + Deserialize<'de>> Deserialize<'de> for OrNull<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<T>::deserialize(deserializer).map(|value| Self(value.unwrap_or_default()))
    }
}

/// The entries of an object whose values are scalars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries<'a>(pub Vec<(Text<'a>, Scalar<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Entries<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
