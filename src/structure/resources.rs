//! The resource database: what a trace does not say, as a TOML file beside it.
//!
//! Input is TOML text; output [`Hints`], which every technique's interactions can carry. Source: Mizan & Franks, ICPE 2011,
//! sections 2 and 6.2 (scheduling policy, concurrency of tasks, allocation of tasks to processors, multiplicity of
//! processors, workload intensity at the reference task, host demands of entries).
//!
//! | key | holds |
//! |---|---|
//! | `[task.NAME]` | a task (process) of the trace |
//! | `processor` | name of the processor that it runs on |
//! | `threads` | its threads: a whole number, 1 or more, or `"infinite"` |
//! | `scheduling` | `fcfs`, `hol`, `pri`, `poll`, `rand`, or `inf` (as `threads = "infinite"`) |
//! | `customers`, `think_time` | of a reference task: customers (> 0) and mean think time in seconds (≥ 0; 0 if left out) |
//! | `rate` | of a reference task, instead: cycles a second that arrive from outside (> 0) |
//! | `[task.NAME.demand]` | for each entry its host demand in seconds (≥ 0), or `[phase 1, phase 2]` |
//! | `[processor.NAME]` | a processor |
//! | `cores` | a whole number, 1 or more |
//! | `scheduling` | `fcfs`, `ps`, `hol`, `pri`, `rand`, `lcfs`, `rr`, `cfs`, `inf` |
//!
//! Any other key is an error. Whether the names are in the trace is told where both are known
//! ([`super::execution_graph::WorkloadReport::note_resources`]), and so is what does not count for its task (`unused_resource`).

use indexmap::IndexMap;
use serde::{Deserialize, de::DeserializeOwned};
use toml::Spanned;

use super::interactions::{Hints, ProcessHints, ProcessorHints, Workload};
use crate::model::{ProcessorScheduling, TaskScheduling};

/// Longest resource database, bytes.
const LIMIT_BYTES: usize = 16 << 20;

/// A resource database, or a file of options, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// It is not TOML, or has a key or type that is not known here.
    #[error("{name}, line {line}, column {column}: {reason}")]
    Unreadable {
        /// The source.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column, in characters from 1.
        column: usize,
        /// What was found and what was expected.
        reason: String,
    },
    /// A value is out of its range.
    #[error("{name}, line {line}, column {column}: {key} is {found}, expected {expected}")]
    Value {
        /// The source.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column, in characters from 1.
        column: usize,
        /// The key, with those that it stands under.
        key: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// It is longer than anything that is meant to be read here.
    #[error("{name} is {found} bytes long, expected at most {LIMIT_BYTES}")]
    TooLong {
        /// The source.
        name: String,
        /// Its length, bytes.
        found: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Database {
    #[serde(default)]
    task: IndexMap<String, TaskRow>,
    #[serde(default)]
    processor: IndexMap<String, ProcessorRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskRow {
    processor: Option<Spanned<String>>,
    threads: Option<Spanned<Threads>>,
    scheduling: Option<Spanned<TaskScheduling>>,
    customers: Option<Spanned<f64>>,
    think_time: Option<Spanned<f64>>,
    rate: Option<Spanned<f64>>,
    #[serde(default)]
    demand: IndexMap<String, Spanned<Demand>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessorRow {
    cores: Option<Spanned<i64>>,
    scheduling: Option<ProcessorScheduling>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a whole number or \"infinite\"")]
enum Threads {
    Number(i64),
    Word(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of seconds, or a list of two: [phase 1, phase 2]")]
enum Demand {
    One(f64),
    Both([f64; 2]),
}

/// Reads the resource database `text` called `name`.
///
/// # Errors
/// [`ResourceError`]: text that is not TOML, a key that is not known, a value of another type or out of its range; each
/// with its place.
pub fn parse_resources(name: &str, text: &str) -> Result<Hints, ResourceError> {
    let place = Place { name, text };
    let database: Database = parse_toml(name, text)?;
    let mut hints = Hints::default();
    for (task, row) in database.task {
        let process = place.task(&task, row)?;
        hints.processes.insert(task, process);
    }
    for (processor, row) in database.processor {
        let cores = row.cores.map(|cores| place.count(&format!("processor.{processor}.cores"), &cores)).transpose()?;
        hints.processors.insert(processor, ProcessorHints { cores, machines: None, scheduling: row.scheduling });
    }
    Ok(hints)
}

/// Reads the TOML `text` called `name`.
///
/// # Errors
/// [`ResourceError`]: text that is too long or not TOML, or a key or type that is not known.
pub(super) fn parse_toml<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ResourceError> {
    if text.len() > LIMIT_BYTES {
        return Err(ResourceError::TooLong { name: name.to_owned(), found: text.len() });
    }
    toml::from_str(text).map_err(|error| {
        let (line, column) = Place { name, text }.line_and_column(error.span().map_or(0, |span| span.start));
        ResourceError::Unreadable { name: name.to_owned(), line, column, reason: error.message().trim().replace('\n', "; ") }
    })
}

/// Tells where in the text a value stands.
#[derive(Clone, Copy)]
struct Place<'t> {
    name: &'t str,
    text: &'t str,
}

impl Place<'_> {
    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    fn wrong<T>(&self, key: &str, value: &Spanned<T>, expected: &'static str) -> ResourceError {
        let (line, column) = self.line_and_column(value.span().start);
        let found = self.text.get(value.span()).unwrap_or("").to_owned();
        ResourceError::Value { name: self.name.to_owned(), line, column, key: key.to_owned(), found, expected }
    }

    fn task(&self, task: &str, row: TaskRow) -> Result<ProcessHints, ResourceError> {
        let key = |name: &str| format!("task.{task}.{name}");
        let mut process = ProcessHints { workload: self.workload(&key, &row)?, ..ProcessHints::default() };
        if let Some(processor) = row.processor {
            if processor.get_ref().trim().is_empty() {
                return Err(self.wrong(&key("processor"), &processor, "the name of a processor"));
            }
            process.processor = Some(processor.into_inner());
        }
        if let Some(threads) = row.threads {
            match threads.get_ref() {
                Threads::Number(number) if *number >= 1 => process.threads = u64::try_from(*number).ok(),
                Threads::Word(word) if word == "infinite" => process.infinite = true,
                _ => return Err(self.wrong(&key("threads"), &threads, "a whole number, 1 or more, or \"infinite\"")),
            }
        }
        if let Some(scheduling) = row.scheduling {
            match scheduling.get_ref() {
                TaskScheduling::Inf => process.infinite = true,
                TaskScheduling::Fcfs | TaskScheduling::Hol | TaskScheduling::Pri | TaskScheduling::Poll | TaskScheduling::Rand => {
                    process.scheduling = Some(scheduling.into_inner());
                }
                _ => return Err(self.wrong(&key("scheduling"), &scheduling, "fcfs, hol, pri, poll, rand or inf")),
            }
        }
        for (entry, demand) in row.demand {
            let seconds = match demand.get_ref() {
                Demand::One(seconds) => [Some(*seconds), None],
                Demand::Both(seconds) => seconds.map(Some),
            };
            if seconds.iter().flatten().any(|seconds| !(seconds.is_finite() && *seconds >= 0.0)) {
                return Err(self.wrong(&key(&format!("demand.{entry}")), &demand, "seconds, 0 or more"));
            }
            process.demands.insert(entry, seconds);
        }
        Ok(process)
    }

    fn workload(&self, key: &dyn Fn(&str) -> String, row: &TaskRow) -> Result<Option<Workload>, ResourceError> {
        let above_0 = |name: &str, value: &Spanned<f64>| match *value.get_ref() {
            number if number.is_finite() && number > 0.0 => Ok(number),
            _ => Err(self.wrong(&key(name), value, "a number above 0")),
        };
        match (&row.customers, &row.think_time, &row.rate) {
            (None, None, None) => Ok(None),
            (None, None, Some(rate)) => Ok(Some(Workload::Open { rate: above_0("rate", rate)? })),
            (_, _, Some(rate)) => Err(self.wrong(&key("rate"), rate, "either a rate, or customers and their think time")),
            (None, Some(think_time), None) => Err(self.wrong(&key("think_time"), think_time, "customers beside it")),
            (Some(customers), think_time, None) => {
                let customers = above_0("customers", customers)?;
                let think_time = match think_time {
                    None => 0.0,
                    Some(time) if time.get_ref().is_finite() && *time.get_ref() >= 0.0 => *time.get_ref(),
                    Some(time) => return Err(self.wrong(&key("think_time"), time, "seconds, 0 or more")),
                };
                Ok(Some(Workload::Closed { customers, think_time }))
            }
        }
    }

    fn count(&self, key: &str, number: &Spanned<i64>) -> Result<u64, ResourceError> {
        match u64::try_from(*number.get_ref()) {
            Ok(count) if count >= 1 => Ok(count),
            _ => Err(self.wrong(key, number, "a whole number, 1 or more")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
[task.User]
processor = "Doors"
customers = 50
think_time = 2.5

[task.Camera]
rate = 4

[task."Disk 1"]
processor = "DiskP"
threads = 2
scheduling = "hol"

[task."Disk 1".demand]
read = 0.5e-3
"write block" = [1, 0.25]

[task.Network]
threads = "infinite"

[processor.DiskP]
cores = 4
scheduling = "ps"
"#;

    #[test]
    fn everything_that_can_be_said_is_read() {
        let hints = parse_resources("bss.toml", WHOLE).unwrap();
        let user = &hints.processes["User"];
        assert_eq!(
            (user.processor.as_deref(), user.workload),
            (Some("Doors"), Some(Workload::Closed { customers: 50.0, think_time: 2.5 }))
        );
        assert_eq!(hints.processes["Camera"].workload, Some(Workload::Open { rate: 4.0 }));
        let disk = &hints.processes["Disk 1"];
        assert_eq!((disk.threads, disk.scheduling, disk.infinite), (Some(2), Some(TaskScheduling::Hol), false));
        assert_eq!(disk.demands["read"], [Some(0.5e-3), None]);
        assert_eq!(disk.demands["write block"], [Some(1.0), Some(0.25)]);
        assert!(hints.processes["Network"].infinite);
        assert_eq!(hints.processors["DiskP"], ProcessorHints { cores: Some(4), machines: None, scheduling: Some(ProcessorScheduling::Ps) });
        assert_eq!(hints.processes.keys().collect::<Vec<_>>(), ["User", "Camera", "Disk 1", "Network"]);
    }

    #[test]
    fn nothing_said_is_no_hints() {
        assert_eq!(parse_resources("r.toml", "# all left open\n").unwrap(), Hints::default());
    }

    #[track_caller]
    fn refused(text: &str, message: &str) {
        assert_eq!(parse_resources("r.toml", text).unwrap_err().to_string(), message);
    }

    #[test]
    fn values_out_of_range_are_refused_with_their_place() {
        refused(
            "[task.A]\nthreads = 0",
            "r.toml, line 2, column 11: task.A.threads is 0, expected a whole number, 1 or more, or \"infinite\"",
        );
        refused(
            "[task.A]\nthreads = \"many\"",
            "r.toml, line 2, column 11: task.A.threads is \"many\", expected a whole number, 1 or more, or \"infinite\"",
        );
        refused("[task.A.demand]\nx = -1e-3", "r.toml, line 2, column 5: task.A.demand.x is -1e-3, expected seconds, 0 or more");
        refused("[task.A.demand]\nx = [0.1, inf]", "r.toml, line 2, column 5: task.A.demand.x is [0.1, inf], expected seconds, 0 or more");
        refused("[task.A]\ncustomers = 0", "r.toml, line 2, column 13: task.A.customers is 0, expected a number above 0");
        refused("[task.A]\nrate = nan", "r.toml, line 2, column 8: task.A.rate is nan, expected a number above 0");
        refused("[task.A]\nthink_time = 1", "r.toml, line 2, column 14: task.A.think_time is 1, expected customers beside it");
        refused(
            "[task.A]\ncustomers = 1\nrate = 2",
            "r.toml, line 3, column 8: task.A.rate is 2, expected either a rate, or customers and their think time",
        );
        refused(
            "[task.A]\nscheduling = \"ref\"",
            "r.toml, line 2, column 14: task.A.scheduling is \"ref\", expected fcfs, hol, pri, poll, rand or inf",
        );
        refused("[task.A]\nprocessor = \" \"", "r.toml, line 2, column 13: task.A.processor is \" \", expected the name of a processor");
        refused("[processor.P]\ncores = -2", "r.toml, line 2, column 9: processor.P.cores is -2, expected a whole number, 1 or more");
    }

    #[track_caller]
    fn unreadable(text: &str, place: (usize, usize), word: &str) {
        match parse_resources("r.toml", text).unwrap_err() {
            ResourceError::Unreadable { line, column, reason, .. } => {
                assert_eq!((line, column), place, "{reason}");
                assert!(reason.contains(word), "{reason}");
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_not_known_or_not_toml_is_refused_with_its_place() {
        unreadable("[task.A]\nthread = 2", (2, 1), "thread");
        unreadable("[tasks.A]\nthreads = 2", (1, 2), "tasks");
        unreadable("[task.A]\ncustomers = \"many\"", (2, 13), "string");
        unreadable("[processor.P]\nscheduling = \"best\"", (2, 14), "best");
        unreadable("[task.A.demand]\nx = [1]", (2, 5), "two");
        unreadable("[task.A\n", (1, 8), "");
        unreadable("[task.A]\n[task.A]\n", (2, 7), "duplicate");
    }
}
