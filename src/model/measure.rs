//! Measures: the text by which a result of a model is asked for, heads a CSV column, keys a JSON object, labels a plot.
//!
//! | text | is | unit |
//! |---|---|---|
//! | `throughput(T)` | cycles of a task or invocations of an entry, a unit of time | 1/time |
//! | `utilization(T)` | mean busy threads of a task, or busy servers of a processor | servers |
//! | `response_time(T)` | of a reference task: mean cycle without think time | time |
//! | `response_time(E)` | of a called entry: waiting plus phase-1 service of one request | time |
//! | `service_time(E,k)` | of phase k of an entry, blocked time included; `service_time(E)` is phase 1's | time |
//! | `waiting(E->F)` | mean time that a request of E queues before service at F; `waiting(E->F,k)` of phase k | time |
//! | `residence_time(S)` | time that one cycle of the customers spends at task or processor S, queueing included | time |
//!
//! A task and a processor of the same name are told apart by `utilization(processor:P)` and `utilization(task:T)`;
//! without the prefix the task is meant.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A named result of a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Throughput of a task or entry.
    Throughput(String),
    /// Utilization of a task, processor or entry.
    Utilization(String),
    /// Response time of a reference task or called entry.
    ResponseTime(String),
    /// Mean service time of a phase of an entry.
    ServiceTime {
        /// The entry.
        entry: String,
        /// The phase, 1 to 3.
        phase: u8,
    },
    /// Mean time in queue of one request.
    Waiting {
        /// The calling entry.
        from: String,
        /// The called entry.
        to: String,
        /// The calling phase, 1 to 3.
        phase: u8,
    },
    /// Time per customer cycle at a task or processor.
    ResidenceTime(String),
}

/// A text that is not a measure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a measure: {expected}")]
pub struct MeasureError {
    /// The text as given.
    pub text: String,
    /// What was expected.
    pub expected: &'static str,
}

const FORMS: &str = "expected throughput(NAME), utilization(NAME), response_time(NAME), service_time(ENTRY,PHASE), waiting(FROM->TO) or residence_time(NAME)";

impl FromStr for Measure {
    type Err = MeasureError;

    fn from_str(text: &str) -> Result<Self, MeasureError> {
        let error = |expected| MeasureError { text: text.to_owned(), expected };
        let trimmed = text.trim();
        let (kind, rest) = trimmed.split_once('(').ok_or_else(|| error(FORMS))?;
        let argument = rest
            .strip_suffix(')')
            .ok_or_else(|| error("the closing parenthesis is missing (in CSV a name with a comma stands in quotes)"))?
            .trim();
        if argument.is_empty() {
            return Err(error("a name is missing between the parentheses"));
        }
        let phase_of = |argument: &str| -> Result<(String, u8), MeasureError> {
            match argument.rsplit_once(',') {
                None => Ok((argument.to_owned(), 1)),
                Some((name, phase)) => match phase.trim() {
                    "1" => Ok((name.trim().to_owned(), 1)),
                    "2" => Ok((name.trim().to_owned(), 2)),
                    "3" => Ok((name.trim().to_owned(), 3)),
                    _ => Err(error("a phase is 1, 2 or 3")),
                },
            }
        };
        match kind.trim() {
            "throughput" => Ok(Self::Throughput(argument.to_owned())),
            "utilization" => Ok(Self::Utilization(argument.to_owned())),
            "response_time" => Ok(Self::ResponseTime(argument.to_owned())),
            "residence_time" => Ok(Self::ResidenceTime(argument.to_owned())),
            "service_time" => phase_of(argument).map(|(entry, phase)| Self::ServiceTime { entry, phase }),
            "waiting" => {
                let (pair, phase) = phase_of(argument)?;
                let (from, to) = pair.split_once("->").ok_or_else(|| error("expected waiting(FROM->TO)"))?;
                let (from, to) = (from.trim().to_owned(), to.trim().to_owned());
                if from.is_empty() || to.is_empty() {
                    return Err(error("expected waiting(FROM->TO)"));
                }
                Ok(Self::Waiting { from, to, phase })
            }
            _ => Err(error(FORMS)),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throughput(name) => write!(f, "throughput({name})"),
            Self::Utilization(name) => write!(f, "utilization({name})"),
            Self::ResponseTime(name) => write!(f, "response_time({name})"),
            Self::ServiceTime { entry, phase } => write!(f, "service_time({entry},{phase})"),
            Self::Waiting { from, to, phase: 1 } => write!(f, "waiting({from}->{to})"),
            Self::Waiting { from, to, phase } => write!(f, "waiting({from}->{to},{phase})"),
            Self::ResidenceTime(name) => write!(f, "residence_time({name})"),
        }
    }
}

impl Serialize for Measure {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_survive_text() {
        for text in [
            "throughput(User)",
            "utilization(processor:WSP)",
            "response_time(User)",
            "service_time(appOp,2)",
            "waiting(appOp->dbOp)",
            "waiting(appOp->dbOp,2)",
            "residence_time(disk)",
        ] {
            assert_eq!(text.parse::<Measure>().expect(text).to_string(), text);
        }
        assert_eq!("service_time(e)".parse(), Ok(Measure::ServiceTime { entry: "e".into(), phase: 1 }));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "throughput", "throughput(", "throughput()", "speed(x)", "waiting(a)", "waiting(->b)", "service_time(e,4)"] {
            assert!(text.parse::<Measure>().is_err(), "{text}");
        }
    }
}
