//! What the technique can be asked for.

use serde::{Deserialize, Serialize};

use super::{
    demand::{ConnectionDelay, Resource},
    dependencies::Binning,
};
use crate::{
    structure::{OptionError, interactions::ScenariosBy},
    trace::call_path::{Boundaries, TimeUnit},
};

/// Whether a component is one or several by the servers that it runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instances {
    /// One instance for each server, named `SERVER::COMPONENT`; its processor is the server.
    #[default]
    ByServer,
    /// One, wherever it runs.
    Together,
}

/// What is done with call paths of which some records are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partial {
    /// They are left out, but used when there are no others.
    #[default]
    LeaveOut,
    /// They are used as they stand.
    Keep,
}

/// What of a parameter a dependency is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Characterisation {
    /// Its value.
    #[default]
    Value,
    /// The number of its elements: of `[a, b]` 2, of a whole number itself.
    Size,
    /// The number of characters of its rendering.
    Length,
}

/// What may depend on a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependentAction {
    /// The transition taken of the branch action of this method.
    Branch(String),
    /// The number of iterations of the loop action of this method.
    Loop(String),
    /// The number of calls to this service, `COMPONENT.METHOD`.
    Calls(String),
    /// The self time, in nanoseconds.
    SelfTime,
}

/// A dependency that is known to be possible (an analysis of records alone cannot find them).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DependencySpec {
    /// The service, `CLASS.METHOD` as recorded.
    pub service: String,
    /// What depends.
    pub action: DependentAction,
    /// The parameter's name.
    pub parameter: String,
    /// What of it.
    #[serde(default)]
    pub characterisation: Characterisation,
}

/// A stretch of time in which only some requests were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Its beginning, in nanoseconds of the log's clock.
    pub from_ns: i64,
    /// Its end, exclusive.
    pub until_ns: i64,
    /// Share of the requests that were recorded, in (0, 1].
    pub rate: f64,
}

/// Options of the technique.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallPathOptions {
    /// Which building blocks are one component.
    pub boundaries: Boundaries,
    /// Whether components are told apart by server.
    pub instances: Instances,
    /// Name of the process that makes the requests from outside.
    pub client: String,
    /// Scenario that the recordings are of, unless `scenarios` tells them apart.
    pub scenario: String,
    /// Whether requests that start with different services are of different scenarios, `COMPONENT.METHOD`. A usage profile that
    /// names these asks for it, too.
    pub scenarios: ScenariosBy,
    /// The unit of times in records; by default nanoseconds, or what a Kieker log says.
    pub time_unit: Option<TimeUnit>,
    /// What is done with incomplete call paths.
    pub partial: Partial,
    /// A context is complete when nothing of it is open for this many records.
    pub quiet_records: u64,
    /// Most records of unfinished contexts that are held, ≥ 1; beyond, the contexts longest silent are cut where they stand.
    pub most_live_records: usize,
    /// Occurrences of a batch that is handed over, ≥ 1.
    pub batch_occurrences: usize,
    /// Dependencies to quantify.
    pub dependencies: Vec<DependencySpec>,
    /// How values of parameters are put into bins where there are many.
    pub binning: Binning,
    /// What was measured of resources, to estimate demands from.
    pub resources: Vec<Resource>,
    /// What a connection to another server takes, by load in requests from outside a second.
    pub connection_delay: Option<ConnectionDelay>,
    /// The load for which that is said, requests a second; by default that of the records.
    pub load_per_s: Option<f64>,
    /// Share of the contexts to use, in (0, 1]: whole contexts, chosen by a hash of their identity.
    pub sample: f64,
    /// Share of the requests that were recorded, in (0, 1].
    pub recorded: f64,
    /// Stretches of time with shares of their own.
    pub slots: Vec<Slot>,
}

impl Default for CallPathOptions {
    fn default() -> Self {
        Self {
            boundaries: Boundaries::default(),
            instances: Instances::default(),
            client: "Client".to_owned(),
            scenario: "call-path".to_owned(),
            scenarios: ScenariosBy::default(),
            time_unit: None,
            partial: Partial::default(),
            quiet_records: 10_000,
            most_live_records: 1 << 20,
            batch_occurrences: 1 << 12,
            dependencies: Vec::new(),
            binning: Binning::default(),
            resources: Vec::new(),
            connection_delay: None,
            load_per_s: None,
            sample: 1.0,
            recorded: 1.0,
            slots: Vec::new(),
        }
    }
}

impl CallPathOptions {
    /// These for a log in `n_parts` files, of which any may go on with a request that is over as far as another tells: requests are held as
    /// long as there is room for them, of which each part has its share; of a third of it, as whole requests take it, too.
    #[must_use]
    pub(in crate::structure) fn of_parts(mut self, n_parts: usize) -> Self {
        if n_parts > 1 {
            self.quiet_records = u64::MAX;
            self.most_live_records = (self.most_live_records / (3 * n_parts)).max(1);
        }
        self
    }
}

/// An option whose value cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{option} is {found}, expected {expected}")]
pub struct CallPathOptionError {
    /// The option.
    pub option: &'static str,
    /// Its value.
    pub found: String,
    /// What was expected.
    pub expected: &'static str,
}

impl From<CallPathOptionError> for OptionError {
    fn from(error: CallPathOptionError) -> Self {
        let CallPathOptionError { option, found, expected } = error;
        Self { option: option.to_owned(), found, expected }
    }
}

impl CallPathOptions {
    /// Checks what can be checked without records.
    ///
    /// # Errors
    /// [`CallPathOptionError`] for a number out of its range or an empty name.
    pub fn check(&self) -> Result<(), CallPathOptionError> {
        let share = |option, share: f64| {
            let fits = share.is_finite() && share > 0.0 && share <= 1.0;
            if fits {
                Ok(())
            } else {
                Err(CallPathOptionError { option, found: share.to_string(), expected: "a share above 0, at most 1" })
            }
        };
        share("sample", self.sample)?;
        share("recorded", self.recorded)?;
        for slot in &self.slots {
            share("the rate of a slot", slot.rate)?;
            if slot.from_ns >= slot.until_ns {
                let found = format!("{}..{}", slot.from_ns, slot.until_ns);
                return Err(CallPathOptionError { option: "a slot", found, expected: "a beginning before the end" });
            }
        }
        for resource in &self.resources {
            resource.check()?;
        }
        if let Binning::Equidistant(0) | Binning::Equiprobable(0) = self.binning {
            return Err(CallPathOptionError { option: "binning", found: "0 bins".to_owned(), expected: "1 or more" });
        }
        let not_negative = |number: &f64| number.is_finite() && *number >= 0.0;
        if let Some(load) = self.load_per_s.filter(|load| !not_negative(load)) {
            return Err(CallPathOptionError {
                option: "load_per_s",
                found: load.to_string(),
                expected: "a number of requests a second, 0 or more",
            });
        }
        if let Some((load, delay)) =
            self.connection_delay.iter().flat_map(|delay| &delay.samples).find(|(a, b)| !(not_negative(a) && not_negative(b)))
        {
            let found = format!("({load}, {delay})");
            return Err(CallPathOptionError {
                option: "a sample of connection_delay",
                found,
                expected: "a load and seconds, each 0 or more",
            });
        }
        self.check_names_and_limits()
    }

    fn check_names_and_limits(&self) -> Result<(), CallPathOptionError> {
        let names = [("client", &self.client, "a process name"), ("scenario", &self.scenario, "a name")];
        let components = self.boundaries.given.values().map(|component| ("a component of boundaries.given", component, "a name"));
        if let Some((option, _, expected)) = names.into_iter().chain(components).find(|(_, name, _)| name.trim().is_empty()) {
            return Err(CallPathOptionError { option, found: "empty".to_owned(), expected });
        }
        let limits = [("most_live_records", self.most_live_records), ("batch_occurrences", self.batch_occurrences)];
        match limits.into_iter().find(|(_, limit)| *limit == 0) {
            Some((option, _)) => Err(CallPathOptionError { option, found: "0".to_owned(), expected: "1 or more" }),
            None => Ok(()),
        }
    }

    /// How many contexts one that began at `time_ns` stands for: 1 / share recorded and used.
    pub fn weight(&self, time_ns: i64) -> f64 {
        let slot = self.slots.iter().find(|slot| (slot.from_ns..slot.until_ns).contains(&time_ns));
        1.0 / (slot.map_or(self.recorded, |slot| slot.rate) * self.sample)
    }
}

/// Whether the context named `identity` is among a share `rate` of all, the same ones wherever this is asked: by the 64-bit
/// FNV-1a hash of the identity, mixed so that consecutive numbers spread.
pub fn is_sampled(identity: &str, rate: f64) -> bool {
    let fnv = identity.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    rate >= 1.0 || (((mixed ^ (mixed >> 33)) >> 11) as f64) < rate * (1_u64 << 53) as f64
}
