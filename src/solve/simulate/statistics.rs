//! What a run counts and integrates, in one flat row of numbers that is cut off at the end of every batch.
//!
//! | kept | per | numbers in a row |
//! |---|---|---|
//! | integral of the busy servers, threads | processor, task, entry | 1 each |
//! | integral of the asynchronous and open requests in the model | model | 1 |
//! | cycles | task | 1 |
//! | completions; phases; open response; holding; offered, lost | entry | 16 |
//! | sum and number of service times | activity | 2 |
//! | sum and number of waits; offered, lost | call | 4 |

use super::network::Origins;

/// Numbers of an entry in a row.
const ENTRY: usize = 16;
/// Numbers of a call in a row.
const CALL: usize = 4;

/// Where in a row what is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    processors: usize,
    tasks: usize,
    entries: usize,
    activities: usize,
    calls: usize,
}

impl Layout {
    /// The layout for these elements.
    pub(super) fn new(origins: &Origins) -> Self {
        Self {
            processors: origins.processors.len(),
            tasks: origins.tasks.len(),
            entries: origins.entries.len(),
            activities: origins.activities.len(),
            calls: origins.calls.len(),
        }
    }

    /// Integral of the busy threads of a task.
    pub(super) fn task_level(&self, task: usize) -> usize {
        self.processors + task
    }

    /// Integral of the busy threads of an entry.
    pub(super) fn entry_level(&self, entry: usize) -> usize {
        self.processors + self.tasks + entry
    }

    /// Integral of the asynchronous and open requests in the model.
    pub(super) fn population(&self) -> usize {
        self.processors + self.tasks + self.entries
    }

    fn n_levels(&self) -> usize {
        self.population() + 1
    }

    /// Cycles of a task.
    pub(super) fn cycles(&self, task: usize) -> usize {
        self.n_levels() + task
    }

    /// Completions of an entry.
    pub(super) fn completions(&self, entry: usize) -> usize {
        self.n_levels() + self.tasks + entry * ENTRY
    }

    /// Sum, sum of squares and number of the times of a phase, 1 to 3.
    pub(super) fn phase(&self, entry: usize, phase: usize) -> usize {
        self.completions(entry) + 3 * phase - 2
    }

    /// Sum and number of the response times of open arrivals.
    pub(super) fn open(&self, entry: usize) -> usize {
        self.completions(entry) + 10
    }

    /// Sum and number of the times that tokens or locks were held.
    pub(super) fn holding(&self, entry: usize) -> usize {
        self.completions(entry) + 12
    }

    /// Open arrivals lost, and all of them.
    pub(super) fn open_lost(&self, entry: usize) -> usize {
        self.completions(entry) + 14
    }

    /// Sum and number of the service times of an activity.
    pub(super) fn activity(&self, activity: usize) -> usize {
        self.completions(self.entries) + 2 * activity
    }

    /// Sum and number of the waits of a call.
    pub(super) fn waiting(&self, call: usize) -> usize {
        self.activity(self.activities) + CALL * call
    }

    /// Requests lost of a call, and all of them.
    pub(super) fn lost(&self, call: usize) -> usize {
        self.waiting(call) + 2
    }

    /// Numbers in a row.
    pub(super) fn width(&self) -> usize {
        self.waiting(self.calls)
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
        Self { layout, row: vec![0.0; layout.width()], levels: vec![Level::default(); layout.n_levels()], sums }
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

    /// Adds the time of a phase to its sums and counts it.
    #[inline]
    pub(super) fn tally_phase(&mut self, entry: usize, phase: usize, time: f64) {
        let place = self.layout.phase(entry, phase);
        self.row[place] += time;
        self.row[place + 1] += time * time;
        self.row[place + 2] += 1.0;
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
