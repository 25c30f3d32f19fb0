//! JSON objects whose keys are names: a key that stands twice is an error, not a value lost.

use std::{collections::HashSet, fmt, hash::Hash, marker::PhantomData, ops::Deref};

use indexmap::{IndexMap, map::Entry};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// A map that was read without a repeated key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unique<K: Eq + Hash, V>(IndexMap<K, V>);

impl<K: Eq + Hash, V> Default for Unique<K, V> {
    fn default() -> Self {
        Self(IndexMap::new())
    }
}

impl<K: Eq + Hash, V> Deref for Unique<K, V> {
    type Target = IndexMap<K, V>;

    fn deref(&self) -> &IndexMap<K, V> {
        &self.0
    }
}

impl<'de, K: Deserialize<'de> + Eq + Hash + fmt::Display, V: Deserialize<'de>> Deserialize<'de> for Unique<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        map(deserializer).map(Self)
    }
}

/// Reads a map, for `#[serde(deserialize_with = "crate::model::unique::map")]`.
///
/// # Errors
/// What the keys and values say, and a key that stands twice.
pub(crate) fn map<'de, D, K, V>(deserializer: D) -> Result<IndexMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Eq + Hash + fmt::Display,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(Keys(PhantomData))
}

/// Reads a map by the names of parameters, which may stand with their `$` or without; for
/// `#[serde(deserialize_with = "crate::model::unique::by_name")]`.
///
/// # Errors
/// As [`map`], and a name that stands both with `$` and without.
pub(crate) fn by_name<'de, D, V>(deserializer: D) -> Result<IndexMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    let found: IndexMap<String, V> = map(deserializer)?;
    let mut bare = HashSet::new();
    match found.keys().map(|name| name.trim_start_matches('$')).find(|name| !bare.insert(*name)) {
        Some(name) => Err(D::Error::custom(format_args!("{name} is given twice, with $ and without"))),
        None => Ok(found),
    }
}

/// Reads a structure from an object only, where [`super::objects`] does not reach: in what is told apart by its form or by a member, which is read
/// into memory first; for `#[serde(deserialize_with = "crate::model::unique::object")]`.
///
/// # Errors
/// What `T` says, and a list.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(OneObject(PhantomData))
}

struct OneObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneObject<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, pairs: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(pairs))
    }
}

struct Keys<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de> + Eq + Hash + fmt::Display, V: Deserialize<'de>> Visitor<'de> for Keys<K, V> {
    type Value = IndexMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Self::Value, A::Error> {
        let mut found = IndexMap::new();
        while let Some(key) = pairs.next_key::<K>()? {
            match found.entry(key) {
                Entry::Occupied(entry) => return Err(A::Error::custom(format_args!("\"{}\" stands twice", entry.key()))),
                Entry::Vacant(entry) => entry.insert(pairs.next_value()?),
            };
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_named_with_its_place() {
        let read = |text: &str| serde_json::from_str::<Unique<String, Unique<String, f64>>>(text).map_err(|e| e.to_string());
        let found = read(r#"{"b": {"x": 1}, "a": {"x": 2, "y": 3}}"#).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(found["a"]["y"], 3.0);
        assert_eq!(read("{\"a\": {},\n \"a\": {}}").unwrap_err(), "\"a\" stands twice at line 2 column 4");
        let named = |text: &str| by_name::<_, f64>(&mut serde_json::Deserializer::from_str(text)).map_err(|e| e.to_string());
        assert_eq!(named(r#"{"$a": 1, "b": 2}"#).unwrap().len(), 2);
        assert!(named(r#"{"$a": 1, "a": 2}"#).unwrap_err().starts_with("a is given twice, with $ and without"));
        assert!(read(r#"{"a": {"x": 1, "x": 2}}"#).unwrap_err().starts_with("\"x\" stands twice at line 1"));
    }
}
