//! Numbers of a model: a value, or the `$name` of a parameter bound at solution time.

use std::fmt;

use indexmap::IndexMap;
use num_dual::{Derivative, Dual64, DualNum, DualSVec64};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The scalar over which models are solved: `f64`, or a dual number that carries derivatives beside the value.
pub trait Scalar: DualNum<Primitive = f64> + Copy + Send + Sync {
    /// The value without derivatives.
    fn value(&self) -> f64;

    /// The derivatives; empty for a plain number and for a constant.
    fn derivatives(&self) -> &[f64];

    /// The derivatives, to be set; empty for a plain number.
    fn derivatives_mut(&mut self) -> &mut [f64] {
        &mut []
    }
}

impl Scalar for f64 {
    fn value(&self) -> f64 {
        *self
    }

    fn derivatives(&self) -> &[f64] {
        &[]
    }
}

impl Scalar for Dual64 {
    fn value(&self) -> f64 {
        self.re
    }

    fn derivatives(&self) -> &[f64] {
        std::slice::from_ref(&self.eps)
    }

    fn derivatives_mut(&mut self) -> &mut [f64] {
        std::slice::from_mut(&mut self.eps)
    }
}

impl<const N: usize> Scalar for DualSVec64<N> {
    fn value(&self) -> f64 {
        self.re
    }

    fn derivatives(&self) -> &[f64] {
        self.eps.0.as_ref().map_or(&[], |eps| eps.as_slice())
    }

    fn derivatives_mut(&mut self) -> &mut [f64] {
        if self.eps.0.is_none() {
            self.eps = Derivative::some(nalgebra::SVector::zeros());
        }
        self.eps.0.as_mut().map_or(&mut [], |eps| eps.as_mut_slice())
    }
}

/// A number in a model: a literal, or a parameter's name (stored without its `$`).
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A literal.
    Value(f64),
    /// The parameter `$name`; the string holds `name`.
    Parameter(String),
}

/// A parameter was needed but neither the model nor the caller gives it a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameter ${name} has no value: the model gives it none, and nothing else does")]
pub struct UnboundParameter {
    /// The parameter, without its `$`.
    pub name: String,
}

/// Values of parameters by name (without the `$`), in insertion order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bindings<S = f64>(pub IndexMap<String, S>);

impl<S: Copy> Bindings<S> {
    /// No values.
    pub fn new() -> Self {
        Self(IndexMap::new())
    }

    /// Sets `name` (without `$`), replacing an earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: S) {
        self.0.insert(name.into(), value);
    }

    /// The value of `name` (without `$`).
    pub fn get(&self, name: &str) -> Option<S> {
        self.0.get(name).copied()
    }

    /// Names and values in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, S)> {
        self.0.iter().map(|(k, v)| (k.as_str(), *v))
    }
}

impl<S: Copy, K: Into<String>> FromIterator<(K, S)> for Bindings<S> {
    fn from_iter<I: IntoIterator<Item = (K, S)>>(iter: I) -> Self {
        Self(iter.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }
}

impl Number {
    /// The value under `bindings`.
    ///
    /// # Errors
    /// [`UnboundParameter`] when this is a `$name` that `bindings` does not hold.
    pub fn eval<S: Scalar>(&self, bindings: &Bindings<S>) -> Result<S, UnboundParameter> {
        match self {
            Self::Value(v) => Ok(S::from(*v)),
            Self::Parameter(name) => bindings.get(name).ok_or_else(|| UnboundParameter { name: name.clone() }),
        }
    }

    /// The literal, or `None` for a parameter.
    pub fn literal(&self) -> Option<f64> {
        match self {
            Self::Value(v) => Some(*v),
            Self::Parameter(_) => None,
        }
    }

    /// The parameter's name, or `None` for a literal.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Self::Value(_) => None,
            Self::Parameter(name) => Some(name),
        }
    }

    /// Whether this is the literal `value`.
    pub fn is(&self, value: f64) -> bool {
        self.literal() == Some(value)
    }

    /// Reads `3.5`, `1e-3`, `inf`, `@infinity` or `$name`; digits that make a number larger than there are make none.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix('$') {
            return is_name(name).then(|| Self::Parameter(name.to_owned()));
        }
        if text.eq_ignore_ascii_case("@infinity") {
            return Some(Self::Value(f64::INFINITY));
        }
        let is_number = |value: &f64| value.is_finite() || !text.contains(|c: char| c.is_ascii_digit());
        text.parse().ok().filter(is_number).map(Self::Value)
    }
}

/// The default of multiplicities and factors.
pub(super) fn one() -> Number {
    Number::Value(1.0)
}

/// The default of times and rates.
pub(super) fn zero() -> Number {
    Number::Value(0.0)
}

/// Whether serde may leave `n` out, its default being 1.
pub(super) fn is_one(n: &Number) -> bool {
    n.is(1.0)
}

/// Whether serde may leave `n` out, its default being 0.
pub(super) fn is_zero(n: &Number) -> bool {
    n.is(0.0)
}

/// Whether serde may leave `value` out.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Whether `name` can follow a `$`: a letter or underscore, then letters, digits, underscores; or digits alone.
pub fn is_name(name: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || name.chars().all(|c| c.is_ascii_digit());
    !name.is_empty() && starts_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self::Value(value)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(v) if *v == f64::INFINITY => f.write_str("@infinity"),
            Self::Value(v) => write!(f, "{v}"),
            Self::Parameter(name) => write!(f, "${name}"),
        }
    }
}

impl Serialize for Number {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        match self {
            Self::Value(v) if v.is_finite() => serializer.serialize_f64(*v),
            other => serializer.collect_str(other),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or \"$name\"")
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Number, E> {
                Ok(Number::Value(v))
            }
            #[expect(clippy::cast_precision_loss, reason = "counts in a model are far below 2^53")]
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Number, E> {
                Ok(Number::Value(v as f64))
            }
            #[expect(clippy::cast_precision_loss, reason = "counts in a model are far below 2^53")]
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Number, E> {
                Ok(Number::Value(v as f64))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Number, E> {
                Number::parse(v).ok_or_else(|| E::invalid_value(de::Unexpected::Str(v), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
