//! The E section: entries, their phases and calls.

use super::sections::{Observing, PhasedObservation, Reader, Result};
use crate::model::{
    Activity, Call, CallKind, CallOrder, Declared, Entry, Forwarding, Histogram, HistogramRequest, Number, Observation, Observed, Phase,
    RwLockRole, SemaphoreRole,
    lexer::{SyntaxError, Token},
};

/// Number of bins of a histogram where the text gives none; LQNX has another default.
pub(super) const DEFAULT_BINS: u32 = 20;

/// Where an entry is: its task and its position there.
type At = (usize, usize);

/// Reads one line of the E section.
pub(super) fn read_entries(reader: &mut Reader<'_>) -> Result<()> {
    let letter = reader.letter()?;
    if !matches!(letter, "a" | "A" | "s" | "c" | "Z" | "M" | "f" | "H" | "p" | "F" | "y" | "z" | "P" | "V" | "R" | "U" | "W" | "X") {
        return Err(reader.cursor.unexpected("a line of an entry (a A s c Z M f H p F y z P V R U W X) or \"-1\""));
    }
    let start = reader.cursor.peek()?.start;
    reader.cursor.next()?;
    let (name, at) = reader.entry("an entry's name")?;
    reader.places.add_first(Declared::Entry(name.to_owned()), start);
    if matches!(letter, "a" | "A" | "s" | "c" | "Z" | "M" | "f" | "p") {
        reader.once(letter, None, name, start)?;
    }
    match letter {
        "a" => {
            let rate = reader.number()?;
            reader.with_entry(at, |entry| entry.open_arrival_rate = Some(rate));
            reader.read_entry_observations(name)
        }
        "A" => {
            let activity = reader.name("an activity's name")?;
            reader.with_entry(at, |entry| entry.start_activity = Some(activity.to_owned()));
            Ok(())
        }
        "p" => {
            let priority = reader.number()?;
            reader.with_entry(at, |entry| entry.priority = Some(priority));
            Ok(())
        }
        "F" => reader.read_forwarding(name, at),
        "H" => reader.read_histogram(name, at),
        "y" => reader.read_call(CallKind::Sync, name, at),
        "z" => reader.read_call(CallKind::Async, name, at),
        "s" | "c" | "Z" | "M" | "f" => reader.read_phase_numbers(letter, name, at),
        _ => {
            reader.with_entry(at, |entry| set_role(entry, letter));
            Ok(())
        }
    }
}

fn set_role(entry: &mut Entry, letter: &str) {
    match letter {
        "P" => entry.semaphore = Some(SemaphoreRole::Signal),
        "V" => entry.semaphore = Some(SemaphoreRole::Wait),
        "R" => entry.rwlock = Some(RwLockRole::RLock),
        "U" => entry.rwlock = Some(RwLockRole::RUnlock),
        "W" => entry.rwlock = Some(RwLockRole::WLock),
        _ => entry.rwlock = Some(RwLockRole::WUnlock),
    }
}

/// The activity of a phase, which is made where it is not there yet.
fn phase_of(entry: &mut Entry, phase: u8) -> &mut Activity {
    let at = entry.phases.partition_point(|p| p.phase < phase);
    if entry.phases.get(at).is_none_or(|p| p.phase != phase) {
        let activity = Activity::new(format!("{}_ph{phase}", entry.name), 0.0);
        entry.phases.insert(at, Phase { phase, activity });
    }
    &mut entry.phases[at].activity
}

impl Reader<'_> {
    fn with_entry(&mut self, at: At, change: impl FnOnce(&mut Entry)) {
        let entry = self.model.tasks.get_mut(at.0).and_then(|task| task.entries.get_mut(at.1));
        if let Some(entry) = entry {
            change(entry);
        }
    }

    /// One to three numbers, by phase, then `-1`.
    fn numbers_by_phase(&mut self) -> Result<Vec<(u8, Number)>> {
        let mut numbers = Vec::new();
        for phase in 1..=3 {
            if phase > 1 && self.at_end_of_list()? {
                break;
            }
            numbers.push((phase, self.number()?));
        }
        self.expect_end_of_list("a number for the next phase, or \"-1\"")?;
        Ok(numbers)
    }

    fn read_phase_numbers(&mut self, letter: &str, name: &str, at: At) -> Result<()> {
        let start = self.cursor.peek()?.start;
        let numbers = self.numbers_by_phase()?;
        if letter == "M" && numbers.iter().any(|(_, n)| n.parameter().is_some()) {
            let reason = "expected a number: no $name may stand here".into();
            return Err(SyntaxError { offset: start, reason });
        }
        if letter == "f" && !numbers.iter().all(|(_, n)| n.is(0.0) || n.is(1.0)) {
            let reason = "expected 0 (stochastic) or 1 (deterministic) for each phase".into();
            return Err(SyntaxError { offset: start, reason });
        }
        self.with_entry(at, |entry| {
            for (phase, number) in numbers {
                let activity = phase_of(entry, phase);
                match letter {
                    "s" => activity.host_demand = number,
                    "c" => activity.host_demand_cvsq = number,
                    "Z" => activity.think_time = number,
                    "M" => activity.max_service_time = number,
                    _ if number.is(1.0) => activity.call_order = CallOrder::Deterministic,
                    _ => activity.call_order = CallOrder::Stochastic,
                }
            }
        });
        if letter == "f" { Ok(()) } else { self.read_entry_observations(name) }
    }

    fn read_call(&mut self, kind: CallKind, name: &str, at: At) -> Result<()> {
        let (dest, _) = self.entry("the called entry's name")?;
        let means = self.numbers_by_phase()?;
        let all_zero = means.iter().all(|(_, mean)| mean.is(0.0));
        self.with_entry(at, |entry| {
            for (phase, mean) in means {
                let activity = if phase == 1 || !mean.is(0.0) { phase_of(entry, phase) } else { continue };
                if !mean.is(0.0) || (all_zero && phase == 1) {
                    activity.calls.push(Call { kind, dest: dest.to_owned(), mean });
                }
            }
        });
        while let Some(Observing { key, phase, variable, half_width }) = self.observation()? {
            let of = Observed::PhaseCall { entry: name.to_owned(), phase: phase.max(1), dest: dest.to_owned() };
            let measure = self.measure(&of, key, phase)?;
            self.model.observations.push(Observation { of, measure, variable, half_width });
        }
        Ok(())
    }

    fn read_forwarding(&mut self, name: &str, at: At) -> Result<()> {
        let (dest, _) = self.entry("the entry that goes on")?;
        let probability = self.number()?;
        self.expect_end_of_list("\"-1\" after the probability")?;
        self.with_entry(at, |entry| entry.forwarding.push(Forwarding { dest: dest.to_owned(), probability }));
        self.read_observations(&Observed::Forwarding { entry: name.to_owned(), dest: dest.to_owned() })
    }

    fn read_histogram(&mut self, name: &str, at: At) -> Result<()> {
        let phase = match self.count()? {
            phase @ 1..=3 => phase as u8,
            _ => return Err(self.cursor.error_here("expected a phase: 1, 2 or 3")),
        };
        let request = self.histogram_request()?;
        let is_graph = |entry: &Entry| entry.start_activity.is_some() && entry.phases.is_empty();
        let entry = self.model.tasks.get_mut(at.0).and_then(|task| task.entries.get_mut(at.1));
        match entry.filter(|entry| !is_graph(entry)).map(|entry| &mut phase_of(entry, phase).histogram) {
            Some(slot @ None) => *slot = Some(request),
            _ => self.model.histograms.push(Histogram { of: Observed::Phase { entry: name.to_owned(), phase }, request }),
        }
        Ok(())
    }

    /// `lo:hi [bins]`.
    pub(super) fn histogram_request(&mut self) -> Result<HistogramRequest> {
        let min = self.literal()?;
        self.cursor.expect(":", "\":\" and the upper end")?;
        let max = self.literal()?;
        let has_bins = matches!(self.cursor.peek()?.token, Token::Number(_));
        Ok(HistogramRequest { min, max, bins: if has_bins { self.count()? } else { DEFAULT_BINS } })
    }

    fn read_entry_observations(&mut self, name: &str) -> Result<()> {
        while let Some(Observing { key, phase, variable, half_width }) = self.observation()? {
            let of = Observed::Entry(name.to_owned());
            let measure = self.measure(&of, key, phase)?;
            let observation = Observation { of, measure, variable, half_width };
            self.phased.push(PhasedObservation { entry: name.to_owned(), phase, observation });
        }
        Ok(())
    }

    /// Drops phases 2 and 3 without work, phases of entries with a graph that have none, and settles observations.
    pub(super) fn finish_entries(&mut self) {
        for entry in self.model.tasks.iter_mut().flat_map(|task| &mut task.entries) {
            let is_graph = entry.start_activity.is_some();
            let has_work =
                |activity: &Activity| !(activity.host_demand.is(0.0) && activity.think_time.is(0.0) && activity.calls.is_empty());
            entry.phases.retain(|p| (p.phase == 1 && !is_graph) || has_work(&p.activity));
        }
        for PhasedObservation { entry, phase, mut observation } in std::mem::take(&mut self.phased) {
            let at = self.entries.get(entry.as_str()).copied().unwrap_or_default();
            let found = self.model.tasks.get(at.0).and_then(|task| task.entries.get(at.1));
            if phase > 0 && found.is_some_and(|e| e.phase(phase).is_some()) {
                let prefix = format!("phase{phase}-");
                observation.measure = observation.measure.trim_start_matches(&prefix).to_owned();
                observation.of = Observed::Phase { entry, phase };
            }
            self.model.observations.push(observation);
        }
    }
}
