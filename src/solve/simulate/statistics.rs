//! What a run counts and integrates, in one flat row of numbers that is cut off at the end of every batch.
//!
//! | kept | per | numbers in a row |
//! |---|---|---|
//! | integral of the busy servers, threads | processor, task, entry | 1 each |
//! | integral of the asynchronous and open requests in the model | model | 1 |
//! | cycles | task | 1 |
//! | completions; phases; open response; holding; offered, lost; response | entry | 20 |
//! | sum and number of service times | activity | 2 |
//! | sum, squares and number of waits; offered, lost | call | 5 |
//! | sum, squares and number of delays | join | 3 |
//! | offered, lost at a bounded queue | task | 2 |

use super::{
    network::{Origins, Watch, Watched},
    times::Times,
};

/// Numbers of an entry in a row.
const ENTRY: usize = 20;
/// Numbers of a call in a row.
const CALL: usize = 5;
/// Numbers of a join in a row.
const JOIN: usize = 3;

/// Where in a row what is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    first_task: usize,
    first_entry_level: usize,
    population: usize,
    first_cycles: usize,
    first_entry: usize,
    first_activity: usize,
    first_call: usize,
    first_join: usize,
    first_lost: usize,
    width: usize,
}

impl Layout {
    /// The layout for these elements.
    pub(super) fn new(origins: &Origins) -> Self {
        let first_task = origins.processors.len();
        let first_entry_level = first_task + origins.tasks.len();
        let population = first_entry_level + origins.entries.len();
        let first_cycles = population + 1;
        let first_entry = first_cycles + origins.tasks.len();
        let first_activity = first_entry + ENTRY * origins.entries.len();
        let first_call = first_activity + 2 * origins.activities.len();
        let first_join = first_call + CALL * origins.calls.len();
        let first_lost = first_join + JOIN * origins.joins.len();
        let width = first_lost + 2 * origins.tasks.len();
        Self {
            first_task,
            first_entry_level,
            population,
            first_cycles,
            first_entry,
            first_activity,
            first_call,
            first_join,
            first_lost,
            width,
        }
    }

    /// Integral of the busy threads of a task.
    pub(super) fn task_level(&self, task: usize) -> usize {
        self.first_task + task
    }

    /// Integral of the busy threads of an entry.
    pub(super) fn entry_level(&self, entry: usize) -> usize {
        self.first_entry_level + entry
    }

    /// Integral of the asynchronous and open requests in the model.
    pub(super) fn population(&self) -> usize {
        self.population
    }

    fn n_levels(&self) -> usize {
        self.first_cycles
    }

    /// Cycles of a task.
    pub(super) fn cycles(&self, task: usize) -> usize {
        self.first_cycles + task
    }

    /// Completions of an entry.
    pub(super) fn completions(&self, entry: usize) -> usize {
        self.first_entry + entry * ENTRY
    }

    /// Sum, sum of squares and number of the times of a phase, 1 to 3.
    pub(super) fn phase(&self, entry: usize, phase: usize) -> usize {
        self.completions(entry) + 3 * phase - 2
    }

    /// Sum and number of the response times of open arrivals.
    pub(super) fn open(&self, entry: usize) -> usize {
        self.completions(entry) + 10
    }

    /// Sum, sum of squares and number of the times that tokens or locks were held.
    pub(super) fn holding(&self, entry: usize) -> usize {
        self.completions(entry) + 12
    }

    /// Open arrivals lost, and all of them.
    pub(super) fn open_lost(&self, entry: usize) -> usize {
        self.completions(entry) + 15
    }

    /// Sum, sum of squares and number of the response times.
    pub(super) fn response(&self, entry: usize) -> usize {
        self.completions(entry) + 17
    }

    /// Sum and number of the service times of an activity.
    pub(super) fn activity(&self, activity: usize) -> usize {
        self.first_activity + 2 * activity
    }

    /// Sum, sum of squares and number of the waits of a call.
    pub(super) fn waiting(&self, call: usize) -> usize {
        self.first_call + CALL * call
    }

    /// Requests lost of a call, and all of them.
    pub(super) fn lost(&self, call: usize) -> usize {
        self.waiting(call) + 3
    }

    /// Sum, sum of squares and number of the delays of a join.
    pub(super) fn join(&self, join: usize) -> usize {
        self.first_join + JOIN * join
    }

    /// Asynchronous requests and open arrivals lost at a bounded queue of a task, and all of them.
    pub(super) fn task_lost(&self, task: usize) -> usize {
        self.first_lost + 2 * task
    }

    /// Numbers in a row.
    pub(super) fn width(&self) -> usize {
        self.width
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    value: f64,
    since: f64,
    integral: f64,
}

/// The present row, and what the integrals in it integrate.
#[derive(Debug)]
pub(super) struct Statistics {
    /// Where in the row what is kept.
    pub(super) layout: Layout,
    row: Vec<f64>,
    levels: Vec<Level>,
    /// The present block of times.
    pub(super) times: Times,
    watches: Vec<Watch>,
    /// Places that are added, at the end of a row, to other places.
    sums: Vec<(usize, usize)>,
}

impl Statistics {
    /// An empty row.
    pub(super) fn new(origins: &Origins) -> Self {
        let layout = Layout::new(origins);
        let mut sums = Vec::new();
        for (e, entry) in origins.entries.iter().enumerate() {
            let task = &origins.tasks[entry.task];
            sums.extend(task.sums_levels.then(|| (layout.entry_level(e), layout.task_level(entry.task))));
            sums.extend(task.sums_cycles.then(|| (layout.completions(e), layout.cycles(entry.task))));
        }
        Self {
            layout,
            row: vec![0.0; layout.width()],
            levels: vec![Level::default(); layout.n_levels()],
            times: Times::new(origins.entries.len(), &origins.watches),
            watches: origins.watches.clone(),
            sums,
        }
    }

    /// Changes the number that is integrated at `level` by `change`.
    #[inline]
    pub(super) fn shift(&mut self, level: usize, now: f64, change: f64) {
        let l = &mut self.levels[level];
        l.integral += l.value * (now - l.since);
        l.value += change;
        l.since = now;
    }

    /// Counts one.
    #[inline]
    pub(super) fn count(&mut self, place: usize) {
        self.row[place] += 1.0;
    }

    /// Adds a time to the sum at `place` and counts it.
    #[inline]
    pub(super) fn tally(&mut self, place: usize, time: f64) {
        self.row[place] += time;
        self.row[place + 1] += 1.0;
    }

    /// Adds a time to the sum at `place`, its square to the sum after that, and counts it.
    #[inline]
    pub(super) fn tally_with_square(&mut self, place: usize, time: f64) {
        self.row[place] += time;
        self.row[place + 1] += time * time;
        self.row[place + 2] += 1.0;
    }

    /// Adds the time of a phase to its sums and counts it.
    #[inline]
    pub(super) fn tally_phase(&mut self, entry: usize, phase: usize, time: f64) {
        self.tally_with_square(self.layout.phase(entry, phase), time);
        #[expect(clippy::cast_possible_truncation, reason = "1 to 3")]
        self.watch(Watched::Phase { entry, phase: phase as u8 }, time);
    }

    /// Counts a time in what the model asks for, if it does.
    #[inline]
    pub(super) fn watch(&mut self, of: Watched, time: f64) {
        if !self.watches.is_empty() {
            self.times.watch(&self.watches, of, time);
        }
    }

    /// Adds a response time to the sums and the distribution of its entry.
    #[inline]
    pub(super) fn tally_response(&mut self, entry: usize, time: f64) {
        self.tally_with_square(self.layout.response(entry), time);
        self.times.responses[entry].add(time);
    }

    /// Adds the delay of a join to its sums and counts it.
    #[inline]
    pub(super) fn tally_join(&mut self, join: usize, time: f64) {
        self.tally_with_square(self.layout.join(join), time);
        self.watch(Watched::Join { join }, time);
    }

    /// The number that is integrated as [`Layout::population`].
    pub(super) fn population(&self) -> f64 {
        self.levels[self.layout.population()].value
    }

    /// Ends the row at `now`: adds it to `rows` and begins the next.
    pub(super) fn cut(&mut self, now: f64, rows: &mut Vec<f64>) {
        for level in 0..self.levels.len() {
            self.shift(level, now, 0.0);
            self.row[level] = std::mem::take(&mut self.levels[level].integral);
        }
        for &(from, to) in &self.sums {
            self.row[to] += self.row[from];
        }
        rows.extend_from_slice(&self.row);
        self.row.fill(0.0);
    }
}
