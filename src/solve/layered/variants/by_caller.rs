//! Entries told apart by the task that calls them.
//!
//! A task of few threads meets next to none of its own requests at what its callees wait for (`m - 1` of `m`), and all of the others': of a service of one thread that
//! is nearly always at the database, and another of two that is there now and then, either finds what the other has there. So an entry that several tasks call is laid out
//! once for each of few threads and once for the rest:
//!
//! ```text
//! group of a caller       its own where m_t <= FEW, else that of all others, to which customers, arrivals from outside and asynchronous requests belong
//! variant (e, g)          entry e as it works for group g; a call of task t that works for g to e becomes one to (e, h), h = g_t or g, whichever has fewer threads (g_t of as many)
//! ```
//!
//! | symbol | here |
//! |---|---|
//! | `m_t` | threads of the task `t`, of all copies |
//! | `g` | a number, 0 that of all others |
//!
//! So what works for few threads is told apart further down, too: below a pool of four that a single thread calls and requests from outside, too, those of the thread do not find each other. What an
//! entry forwards stays its caller's. Entries of tasks that go on after their reply have none: with them the reference models
//! with second phases were 1.9 % off in throughput, without 1.6.

use std::collections::{BTreeSet, HashMap};

use super::{OTHERS, Place, Variants, called, entries, redirect, redirect_entry, served};
use crate::{
    model::{CallKind, Model, Number, TaskScheduling},
    solve::copies,
};

/// Most threads of a task that has variants of its own.
const FEW: f64 = 8.0;

/// The variants of `model`, with so many entries at most; none where no entry has several, or where its numbers cannot be read.
pub(super) fn tell_apart(model: &Model, most: usize, value: &impl Fn(&Number) -> Option<f64>) -> Option<Variants> {
    let mut few = Vec::new();
    for (at, task) in model.tasks.iter().enumerate() {
        if !task.scheduling.is_reference() && task.scheduling != TaskScheduling::Inf {
            let threads = value(&task.multiplicity)? * value(&task.replication)?;
            if threads <= FEW {
                few.push((threads, at));
            }
        }
    }
    few.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let places = entries(model, value)?;
    let numbers: HashMap<&str, usize> = places.iter().enumerate().map(|(number, it)| (it.entry.name.as_str(), number)).collect();
    // Those of the fewest threads first, as far as variants go.
    for n_few in (1..=few.len()).rev() {
        let mut threads = vec![f64::INFINITY; model.tasks.len()];
        few[..n_few].iter().for_each(|&(number, task)| threads[task] = number);
        let mut callers = Callers { model, of_entry: vec![BTreeSet::new(); places.len()], threads: &threads, numbers: &numbers };
        callers.find(&places);
        if callers.of_entry.iter().all(|of_entry| of_entry.len() < 2) {
            return None;
        }
        if callers.of_entry.iter().map(|of_entry| of_entry.len().max(1)).sum::<usize>() <= most {
            return Some(callers.lay_out());
        }
    }
    None
}

/// Who calls which entry.
struct Callers<'a> {
    model: &'a Model,
    /// By entry, the groups whose requests come to it.
    of_entry: Vec<BTreeSet<usize>>,
    /// By task, infinitely many where it has no group.
    threads: &'a [f64],
    numbers: &'a HashMap<&'a str, usize>,
}

impl<'a> Callers<'a> {
    /// The group to which requests of a task belong that works for a group.
    fn passes(&self, task: usize, group: usize) -> usize {
        let of_group = group.checked_sub(1).map_or(f64::INFINITY, |caller| self.threads[caller]);
        if self.threads[task] < of_group || self.threads[task] <= of_group && of_group.is_finite() { task + 1 } else { group }
    }

    /// Finds who calls each entry.
    fn find(&mut self, places: &[Place<'a>]) {
        // Second phases are met as they are by all callers together.
        let goes_on = |it: &Place<'_>| it.task.entries.iter().flat_map(|entry| &entry.phases).any(|phase| phase.phase > 1);
        let tasks: Vec<usize> = self.model.tasks.iter().enumerate().flat_map(|(at, task)| task.entries.iter().map(move |_| at)).collect();
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (number, place) in places.iter().enumerate() {
            if place.task.scheduling.is_reference() || place.entry.open_arrival_rate.is_some() {
                open.push((number, OTHERS));
            }
        }
        let mut activities: Vec<bool> = vec![false; self.model.tasks.len()];
        while let Some((number, group)) = open.pop() {
            let (place, task) = (&places[number], tasks[number]);
            let group = if place.has_variants && place.entry.start_activity.is_none() && !goes_on(place) { group } else { OTHERS };
            if !self.of_entry[number].insert(group) {
                continue;
            }
            let passed = self.passes(task, group);
            let mut send = |dest: &str, kind: CallKind| {
                open.extend(self.numbers.get(dest).map(|&dest| (dest, served(passed, kind))));
            };
            place.entry.phases.iter().flat_map(|phase| called(&phase.activity)).for_each(|(dest, kind)| send(dest, kind));
            if place.entry.start_activity.is_some() && !std::mem::replace(&mut activities[task], true) {
                place.task.activities.iter().flat_map(called).for_each(|(dest, kind)| send(dest, kind));
            }
            // Whoever forwards is free, and the thread that waits is the caller's.
            let forwarded = place.entry.forwarding.iter().filter_map(|it| self.numbers.get(it.dest.as_str()));
            open.extend(forwarded.map(|&dest| (dest, group)));
        }
    }

    fn lay_out(&self) -> Variants {
        let word = copies::free_word(self.model, "from");
        let name = |dest: &str, group: usize| {
            let of_entry = &self.of_entry[*self.numbers.get(dest)?];
            // The first variant has the entry's own name.
            (of_entry.contains(&group) && of_entry.first() != Some(&group))
                .then(|| format!("{dest} ({word} {})", self.model.tasks[group - 1].name))
        };
        let mut laid = Variants { model: self.model.clone(), originals: Vec::new(), activities: HashMap::new() };
        let mut number = 0;
        for (at, task) in laid.model.tasks.iter_mut().enumerate() {
            for entry in std::mem::take(&mut task.entries) {
                let groups = self.of_entry[number].iter().copied();
                let groups = groups.chain(self.of_entry[number].is_empty().then_some(OTHERS));
                for group in groups {
                    let mut variant = entry.clone();
                    if let Some(name) = name(&entry.name, group) {
                        (variant.name, variant.open_arrival_rate) = (name, None);
                    }
                    let passed = self.passes(at, group);
                    redirect_entry(&mut variant, &|dest, kind| name(dest, served(passed, kind)), &|dest| name(dest, group));
                    task.entries.push(variant);
                    laid.originals.push(number);
                }
                number += 1;
            }
            let passed = self.passes(at, OTHERS);
            task.activities.iter_mut().for_each(|activity| redirect(activity, &|dest, kind| name(dest, served(passed, kind))));
        }
        laid
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::wiring, *};
    use crate::model::lqn_text;

    const MOST: usize = 15;

    /// Customers before `a` of so many threads and `b` of as many, both before `d`, whose threads share a processor with another task.
    fn model(threads: [u32; 2], more: &str) -> Model {
        let [a, b] = threads;
        let text = format!(
            "P 0 p PP f p AA f m {a} p BB f m {b} p CC i -1 T 0 t cc r ec -1 CC m 30 t aa n ea -1 AA m {a} t bb n eb -1 BB m {b} t dd n ed -1 PP t ee n ee -1 PP -1 \
             E 0 s ec 0.1 -1 y ec ea 1 -1 y ec eb 1 -1 s ea 0.2 -1 y ea ed 2 -1 s eb 0.2 -1 y eb ed 1 -1 s ed 0.1 -1 y ed ee 1 -1 s ee 0.1 -1 {more} -1"
        );
        lqn_text::parse(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn apart(model: &Model) -> Option<Variants> {
        tell_apart(model, MOST, &|number| number.literal())
    }

    #[test]
    fn tasks_of_few_threads_have_entries_of_their_own() {
        let laid = apart(&model([1, 2], "")).unwrap();
        assert_eq!(wiring(&laid.model), "ed > ee, ed (from bb) > ee; ee; ea > ed; eb > ed (from bb); ec > ea + eb");
        assert_eq!(laid.originals, [0, 0, 1, 2, 3, 4]);
        // One of many threads is of the rest, and so are customers and whoever does not wait.
        let laid = apart(&model([1, 9], "y ec ee 1 -1")).unwrap();
        assert_eq!(
            wiring(&laid.model),
            "ed > ee (from dd), ed (from aa) > ee (from dd); ee, ee (from dd); ea > ed (from aa); eb > ed; ec > ea + eb + ee"
        );
        let mut sending = model([1, 2], "");
        sending.tasks[2].entries[0].phases[0].activity.calls[0].kind = CallKind::Async;
        assert_eq!(wiring(&apart(&sending).unwrap().model), "ed > ee, ed (from bb) > ee; ee; ea > ed; eb > ed (from bb); ec > ea + eb");
    }

    #[test]
    fn callers_of_many_threads_share_their_entries() {
        assert!(apart(&model([9, 30], "")).is_none());
        let mut one = model([1, 2], "");
        one.tasks[3].entries[0].phases[0].activity.calls.clear();
        assert!(apart(&one).is_none());
        // No more entries than are asked for.
        assert!(tell_apart(&model([1, 2], ""), 5, &|number| number.literal()).is_none());
    }

    /// Below a task of more threads the requests stay those of the fewer; of as many, they are of the next one.
    #[test]
    fn whom_an_entry_works_for_is_told_further_down() {
        let mut few_above = model([1, 8], "");
        few_above.tasks[0].multiplicity = 4.0.into();
        assert_eq!(
            wiring(&apart(&few_above).unwrap().model),
            "ed > ee (from aa), ed (from bb) > ee; ee, ee (from aa); ea > ed; eb > ed (from bb); ec > ea + eb"
        );
    }

    #[test]
    fn what_comes_from_outside_is_of_the_others() {
        let laid = apart(&model([1, 2], "a ed 0.5")).unwrap();
        assert_eq!(
            wiring(&laid.model),
            "ed > ee, ed (from aa) > ee, ed (from bb) > ee; ee; ea > ed (from aa); eb > ed (from bb); ec > ea + eb"
        );
        let rates: Vec<bool> = laid.model.tasks[0].entries.iter().map(|e| e.open_arrival_rate.is_some()).collect();
        assert_eq!(rates, [true, false, false]);
    }
}
