//! Trials as JSON: `{"trials": [{"controlled": {"users": 10}, "measured": {"throughput(User)": 1.2}}]}`.

use std::{cell::Cell, fmt};

use indexmap::{IndexMap, IndexSet};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};

use super::trials::{BYTE_ORDER_MARK, Bounds, ErrorCovariance, Measured, Trial, Trials, TrialsError, is_parameter_name};
use crate::model::{Bindings, Measure, objects::Objects, unique::Unique};

impl Trials {
    /// Reads `{"trials": [{"controlled": {"users": 10}, "measured": {"throughput(User)": 1.2}, "id", "stderr": {...},
    /// "weight": {...}, "covariance": {"throughput(User)": {"response_time(User)": -0.01}}, "duration", "time"}]}`. A measure that a trial lacks, or has as `null`, is a missing value.
    ///
    /// # Errors
    /// [`TrialsError`] naming the trial and the key.
    pub fn from_json(bytes: &[u8]) -> Result<Self, TrialsError> {
        Self::from_json_within(bytes, &Bounds::NONE)
    }

    /// As [`Trials::from_json`], of no more than is allowed.
    ///
    /// # Errors
    /// As [`Trials::from_json`], and [`TrialsError::TooMany`] before the rest is read.
    pub fn from_json_within(bytes: &[u8], bounds: &Bounds) -> Result<Self, TrialsError> {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if bytes.trim_ascii_start().starts_with(b"[") {
            let reason = "expected an object with \"trials\", found a list".to_owned();
            return Err(TrialsError::Json { line: 1, column: 1, reason });
        }
        let list = read_list(bytes, bounds)?;
        let mut measures: IndexSet<Measure> = IndexSet::new();
        for measure in list.iter().flat_map(|t| t.measured.keys()) {
            if !measures.contains(measure) {
                measures.insert(measure.clone());
            }
        }
        bounds.check(list.len(), measures.len())?;
        let trials = list.into_iter().enumerate().map(|(index, t)| t.into_trial(index + 1, &measures)).collect::<Result<Vec<_>, _>>()?;
        let trials = Self { measures: measures.into_iter().collect(), trials };
        if trials.trials.is_empty() {
            return Err(TrialsError::NoTrials);
        }
        bounds.check(trials.trials.len(), trials.n_columns())?;
        trials.check()?;
        trials.check_controlled()?;
        Ok(trials)
    }

    /// Checks that every trial has the controlled values that others have, as a table has.
    fn check_controlled(&self) -> Result<(), TrialsError> {
        let names = self.controlled_names();
        for (index, trial) in self.trials.iter().enumerate() {
            if let Some(name) = names.iter().find(|name| trial.controlled.get(name).is_none()) {
                return Err(TrialsError::ControlledMissing { row: index + 1, id: trial.id.clone(), name: (*name).to_owned() });
            }
        }
        Ok(())
    }

    /// What [`Trials::from_json`] reads.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!(self.as_sent())
    }

    /// As [`Trials::to_json`], to be written without being held.
    pub fn as_sent(&self) -> AsSent<'_> {
        let names: Vec<String> = self.measures.iter().map(ToString::to_string).collect();
        AsSent { trials: self, names }
    }
}

/// Trials as they are written, see [`Trials::as_sent`].
#[derive(Clone, Debug)]
pub struct AsSent<'a> {
    trials: &'a Trials,
    /// Of the measures.
    names: Vec<String>,
}

impl Serialize for AsSent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("trials", &List(self))?;
        map.end()
    }
}

struct List<'a>(&'a AsSent<'a>);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(AsSent { trials, names }) = self;
        serializer.collect_seq(trials.trials.iter().map(|trial| OneAsSent { trial, names }))
    }
}

struct OneAsSent<'a> {
    trial: &'a Trial,
    names: &'a [String],
}

impl Serialize for OneAsSent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { trial, names } = self;
        let column = |of: fn(&Measured) -> Option<f64>| -> IndexMap<&str, f64> {
            let cells = names.iter().zip(&trial.measured);
            cells.filter_map(|(name, cell)| Some((name.as_str(), of(cell.as_ref()?)?))).collect()
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &trial.id)?;
        map.serialize_entry("controlled", &trial.controlled)?;
        map.serialize_entry("measured", &column(|m| Some(m.value)))?;
        if let Some(duration) = trial.duration {
            map.serialize_entry("duration", &duration)?;
        }
        if let Some(time) = trial.time {
            map.serialize_entry("time", &time)?;
        }
        for (name, column) in [("stderr", column(|m| m.std_error)), ("weight", column(|m| m.weight))] {
            if !column.is_empty() {
                map.serialize_entry(name, &column)?;
            }
        }
        let mut covariances: IndexMap<&str, IndexMap<&str, f64>> = IndexMap::new();
        for c in &trial.covariances {
            covariances.entry(&names[c.first]).or_default().insert(&names[c.second], c.value);
        }
        if !covariances.is_empty() {
            map.serialize_entry("covariance", &covariances)?;
        }
        map.end()
    }
}

/// Reads `{"trials": [...]}`, and stops where there are more than may be.
fn read_list(bytes: &[u8], bounds: &Bounds) -> Result<Vec<JsonTrial>, TrialsError> {
    let too_many = Cell::new(None);
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = File(Reading { bounds, too_many: &too_many }).deserialize(Objects(&mut json)).and_then(|list| json.end().map(|()| list));
    read.map_err(|e| {
        let broken = || TrialsError::Json { line: e.line(), column: e.column(), reason: without_position(&e.to_string()) };
        too_many.take().unwrap_or_else(broken)
    })
}

/// What is allowed, and what was beyond it.
#[derive(Clone, Copy)]
struct Reading<'a> {
    bounds: &'a Bounds,
    too_many: &'a Cell<Option<TrialsError>>,
}

/// The object around the trials.
struct File<'a>(Reading<'a>);

impl<'de> DeserializeSeed<'de> for File<'_> {
    type Value = Vec<JsonTrial>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for File<'_> {
    type Value = Vec<JsonTrial>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"trials\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = pairs.next_key::<String>()? {
            match key.as_str() {
                "trials" if found.is_some() => return Err(A::Error::duplicate_field("trials")),
                "trials" => found = Some(pairs.next_value_seed(Elements(self.0))?),
                other => return Err(A::Error::unknown_field(other, &["trials"])),
            }
        }
        found.ok_or_else(|| A::Error::missing_field("trials"))
    }
}

/// The trials.
struct Elements<'a>(Reading<'a>);

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = Vec<JsonTrial>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Vec<JsonTrial>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of trials")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let Self(Reading { bounds, too_many }) = self;
        let (mut list, mut n_cells) = (Vec::new(), 0);
        while let Some(trial) = elements.next_element::<JsonTrial>()? {
            let n_columns = trial.n_cells();
            n_cells += n_columns;
            list.push(trial);
            if let Err(error) = bounds.check(list.len(), 0).and(bounds.check(1, n_columns)).and(bounds.check_cells(n_cells)) {
                too_many.set(Some(error));
                return Err(A::Error::custom("too many"));
            }
        }
        Ok(list)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct JsonTrial {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    duration: Option<f64>,
    #[serde(default)]
    time: Option<f64>,
    #[serde(default)]
    controlled: Unique<String, f64>,
    measured: Unique<Measure, Option<f64>>,
    #[serde(default)]
    stderr: Unique<Measure, Option<f64>>,
    #[serde(default)]
    weight: Unique<Measure, Option<f64>>,
    #[serde(default)]
    covariance: Unique<Measure, Unique<Measure, f64>>,
}

impl JsonTrial {
    /// Values, standard errors, weights and covariances that are given.
    fn n_cells(&self) -> usize {
        let n_covariances = self.covariance.values().map(|row| row.len()).sum::<usize>();
        self.controlled.len() + self.measured.len() + self.stderr.len() + self.weight.len() + n_covariances
    }

    fn into_trial(self, row: usize, measures: &IndexSet<Measure>) -> Result<Trial, TrialsError> {
        for (kind, column) in [("stderr", &self.stderr), ("weight", &self.weight)] {
            for measure in column.iter().filter(|(_, v)| v.is_some()).map(|(m, _)| m) {
                if self.measured.get(measure).copied().flatten().is_none() {
                    return Err(TrialsError::WithoutValue { row, column: format!("{kind}({measure})"), measure: measure.clone() });
                }
            }
        }
        let mut covariances: Vec<ErrorCovariance> = Vec::new();
        for (one, other, value) in self.covariance.iter().flat_map(|(one, row)| row.iter().map(move |(other, v)| (one, other, *v))) {
            let position = |m: &Measure| {
                let without = || TrialsError::WithoutValue { row, column: format!("covariance({one};{other})"), measure: m.clone() };
                measures.get_index_of(m).ok_or_else(without)
            };
            let (first, second) = (position(one)?, position(other)?);
            match covariances.iter().find(|c| (c.second, c.first) == (first, second)) {
                Some(given) if given.value != value => {
                    let column = format!("covariance({one};{other})");
                    return Err(TrialsError::Cell {
                        row,
                        column,
                        cell: value.to_string(),
                        expected: "the value given for the pair the other way round",
                    });
                }
                Some(_) => {}
                None => covariances.push(ErrorCovariance { first, second, value }),
            }
        }
        let of = |column: &Unique<Measure, Option<f64>>, m: &Measure| column.get(m).copied().flatten();
        let measured = |m: &Measure| {
            of(&self.measured, m).map(|value| Measured { value, std_error: of(&self.stderr, m), weight: of(&self.weight, m) })
        };
        let mut controlled = IndexMap::new();
        for (name, value) in self.controlled.iter() {
            let bare = name.strip_prefix('$').unwrap_or(name);
            let refuse = |expected| Err(TrialsError::Cell { row, column: "controlled".into(), cell: name.clone(), expected });
            if !is_parameter_name(bare) {
                return refuse("a parameter's name");
            }
            if controlled.insert(bare.to_owned(), *value).is_some() {
                return refuse("a name once; it is given twice, with $ and without");
            }
        }
        if self.id.as_ref().is_some_and(String::is_empty) {
            return Err(TrialsError::Cell {
                row,
                column: "id".into(),
                cell: String::new(),
                expected: "a text that is not empty, or no id",
            });
        }
        Ok(Trial {
            controlled: Bindings(controlled),
            measured: measures.iter().map(measured).collect(),
            id: self.id.unwrap_or_else(|| row.to_string()),
            duration: self.duration,
            time: self.time,
            covariances,
            planned_errors: Vec::new(),
        })
    }
}

/// The message of `serde_json` without the position that it appends.
fn without_position(message: &str) -> String {
    message.rfind(" at line ").map_or(message, |end| &message[..end]).to_owned()
}
