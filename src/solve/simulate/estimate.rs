//! From the rows of a run to means with confidence intervals.
//!
//! *Batch means.* The rows left after the warm-up ([`super::warm_up`]) are put together to `B` batches of about equal length, over all replications. A mean is a
//! ratio `r = sum S_b / sum N_b`: of a sum to a number of times, or of a count or integral to time. Its variance is
//!
//! ```text
//! var r = A B / (B-1) * sum z_b^2 / (sum N_b)^2          z_b = S_b - r N_b
//! A = (1 + c) / (1 - c)
//! ```
//!
//! and its half-width `t_{B-1}(1/2 + confidence/2) sqrt(var r)`. `c` is the correlation of the `z` of batches that follow one another, where it
//! is positive: batches of a short run are not independent, and those around a peak of a queue are all large.
//!
//! Sources: Law, *Simulation Modeling and Analysis*, chapters 9.5 and 13 (batch means, ratio estimation); Tafazzoli, Steiger and Wilson 2011
//! (Skart: the factor `A`).

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{statistics::Layout, warm_up};

/// Batches of all replications together, at least.
const BATCHES: usize = 30;

/// Batches of one replication, at least.
const BATCHES_EACH: usize = 8;

/// Part of the time of customers under way by which that of phases which ended may be off.
const UNSETTLED_TIMES: f64 = 0.02;

/// Standard deviations of what begins before, or ends after, that do not count.
const AT_ENDS: f64 = 4.0;

/// Largest correlation of batches that is made up for.
const LARGEST_CORRELATION: f64 = 0.9;

/// The rows of one replication: each the statistics over the same time.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Time that a row covers.
    pub(super) length: f64,
    /// Numbers in a row.
    pub(super) width: usize,
    /// The rows, one after another.
    pub(super) values: Vec<f64>,
}

impl Rows {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    /// Puts every two rows together to one of twice the length; an odd last row is dropped.
    pub(super) fn halve(&mut self) {
        let n = self.count() / 2;
        for i in 0..n {
            for k in 0..self.width {
                self.values[i * self.width + k] = self.values[2 * i * self.width + k] + self.values[(2 * i + 1) * self.width + k];
            }
        }
        self.values.truncate(n * self.width);
        self.length *= 2.0;
    }
}

/// Rows of warm-up of each of the replications, by what happened in all of them together.
fn warm_up(replications: &[&Rows], cycles: &[usize], levels: &[usize]) -> usize {
    let n = replications.iter().map(|rows| rows.count()).min().unwrap_or(0);
    let at = |i: usize, places: &[usize]| -> f64 { replications.iter().flat_map(|rows| places.iter().map(move |&p| rows.row(i)[p])).sum() };
    let series = |places: &[usize]| -> Vec<f64> { (0..n).map(|i| at(i, places)).collect() };
    warm_up::of(&series(cycles)).max(warm_up::of(&series(levels)))
}

/// A mean with the half-width of its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    /// The mean.
    pub(super) mean: f64,
    /// Half-width, where there are batches enough, and something happened in them.
    pub(super) half_width: Option<f64>,
}

impl Estimate {
    /// The same, without the half-width of a mean that was 0 throughout: nothing is known of how far off 0 is.
    pub(super) fn unless_never(self) -> Self {
        Self { half_width: self.half_width.filter(|_| self.mean != 0.0), ..self }
    }

    /// Half-width over mean; infinite where there is none, 0 of a mean that is known to be 0.
    pub(super) fn relative(&self) -> f64 {
        match self.half_width {
            Some(0.0) => 0.0,
            Some(half_width) => (half_width / self.mean).abs(),
            None => f64::INFINITY,
        }
    }
}

/// The sums over some rows of a replication.
#[derive(Clone, Debug, Default)]
struct Batch {
    /// Time that it covers.
    time: f64,
    sums: Vec<f64>,
    /// Whether it is the first of its replication.
    is_first: bool,
}

/// What is kept of the customers of a reference task.
#[derive(Clone, Debug)]
pub(super) struct Customers {
    /// Integral of those that are under way.
    pub(super) level: usize,
    /// Sums of the times of phases that ended.
    pub(super) times: Vec<usize>,
    /// Cycles.
    pub(super) cycles: usize,
}

impl Customers {
    /// Whether the times of the phases that ended in the rows from `first` on, of `replications`, are not those of the customers under way (Little's law), by more
    /// than what begins before these rows and ends after them makes of it. So it is where many wait whose waits grow while their number and
    /// the throughput stand.
    #[expect(clippy::cast_precision_loss, reason = "counts of rows and replications")]
    fn are_not_settled(&self, replications: &[&Rows], first: usize) -> bool {
        let rows = || replications.iter().flat_map(|rows| (first..rows.count()).map(|i| rows.row(i)));
        let total = |places: &[usize]| -> f64 { rows().map(|row| places.iter().map(|&p| row[p]).sum::<f64>()).sum() };
        let (under_way, ended, cycles) = (total(&[self.level]), total(&self.times), total(&[self.cycles]));
        let time = replications.iter().map(|rows| rows.length).sum::<f64>() * rows().count() as f64 / replications.len() as f64;
        let at_ends = under_way / cycles * (under_way / time * replications.len() as f64).sqrt();
        cycles > 0.0 && (under_way - ended).abs() > AT_ENDS * at_ends + UNSETTLED_TIMES * under_way
    }

    /// Mean time of a cycle in each row; that of the row before where none ended.
    fn mean_times(&self, replications: &[&Rows]) -> Vec<f64> {
        let n = replications.iter().map(|rows| rows.count()).min().unwrap_or(0);
        let at = |i: usize, place: usize| -> f64 { replications.iter().map(|rows| rows.row(i)[place]).sum() };
        let mut last = 0.0;
        let mean = |i: usize| {
            let cycles = at(i, self.cycles);
            if cycles > 0.0 {
                last = self.times.iter().map(|&p| at(i, p)).sum::<f64>() / cycles;
            }
            last
        };
        (0..n).map(mean).collect()
    }
}

/// Batches of all replications, warm-up removed.
#[derive(Debug, Default)]
pub(super) struct Batches {
    batches: Vec<Batch>,
    quantile: f64,
    /// Time measured, over all replications.
    pub(super) time: f64,
    /// Time removed as warm-up, over all replications.
    pub(super) warm_up: f64,
    /// Rows removed from each replication.
    pub(super) warm_up_rows: usize,
    /// Whether the warm-up is the longest possible.
    pub(super) is_transient: bool,
}

impl Batches {
    /// Batches of `replications` for intervals at `confidence`.
    pub(super) fn new(replications: &[&Rows], layout: &Layout, references: &[Customers], n_tasks: usize, confidence: f64) -> Self {
        let cycles: Vec<usize> = references.iter().map(|customers| customers.cycles).collect();
        let levels: Vec<usize> = (0..n_tasks).map(|t| layout.task_level(t)).chain([layout.population()]).collect();
        let each = BATCHES.div_ceil(replications.len().max(1)).max(BATCHES_EACH);
        let mut warm_up_rows = warm_up(replications, &cycles, &levels);
        let fewest = replications.iter().map(|rows| rows.count()).min().unwrap_or(0);
        let behind: Vec<&Customers> = references.iter().filter(|c| c.are_not_settled(replications, warm_up_rows)).collect();
        for customers in &behind {
            warm_up_rows = warm_up_rows.max(warm_up::of(&customers.mean_times(replications)));
        }
        let is_transient = warm_up_rows > 0 && 2 * warm_up_rows + 1 >= fewest
            || behind.iter().any(|customers| customers.are_not_settled(replications, warm_up_rows));
        let mut this = Self { quantile: f64::NAN, warm_up_rows, is_transient, ..Self::default() };
        for rows in replications {
            this.gather(rows, warm_up_rows, each);
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of batches")]
        let freedom = this.batches.len() as f64 - 1.0;
        if let Ok(student) = StudentsT::new(0.0, 1.0, freedom) {
            this.quantile = student.inverse_cdf(0.5 + 0.5 * confidence);
        }
        this
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of rows")]
    fn gather(&mut self, rows: &Rows, warm_up: usize, each: usize) {
        let n = rows.count() - warm_up;
        let n_batches = each.min(n);
        for b in 0..n_batches {
            let (first, end) = (warm_up + b * n / n_batches, warm_up + (b + 1) * n / n_batches);
            let mut sums = vec![0.0; rows.width];
            for i in first..end {
                sums.iter_mut().zip(rows.row(i)).for_each(|(sum, x)| *sum += x);
            }
            self.batches.push(Batch { time: (end - first) as f64 * rows.length, sums, is_first: b == 0 });
        }
        self.time += n as f64 * rows.length;
        self.warm_up += warm_up as f64 * rows.length;
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.batches.len()
    }

    /// All but batch `b`.
    pub(super) fn without(&self, b: usize) -> Self {
        let mut batches = self.batches.clone();
        batches.remove(b);
        Self { batches, ..*self }
    }

    /// The sum at `place` over all batches.
    pub(super) fn total(&self, place: usize) -> f64 {
        self.batches.iter().map(|batch| batch.sums[place]).sum()
    }

    /// The sum at `place` per time, times `scale`. Where it is 0, nothing happened, and nothing is known of how far off 0 is.
    pub(super) fn rate(&self, place: usize, scale: f64) -> Estimate {
        let found = self.ratio(|batch| (batch.sums[place], batch.time)).unwrap_or_default().unless_never();
        Estimate { mean: scale * found.mean, half_width: found.half_width.map(|h| scale * h) }
    }

    /// The mean of the values that are summed at `place` and counted at `number`; `None` where there are none.
    pub(super) fn mean(&self, place: usize, number: usize) -> Option<Estimate> {
        self.ratio(|batch| (batch.sums[place], batch.sums[number]))
    }

    /// One sum by another; `None` where that is 0.
    fn ratio(&self, parts: impl Fn(&Batch) -> (f64, f64)) -> Option<Estimate> {
        let (sum, number) = self.batches.iter().map(&parts).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        if number == 0.0 {
            return None;
        }
        let mean = sum / number;
        let deviations: Vec<f64> = self.batches.iter().map(parts).map(|(s, n)| s - mean * n).collect();
        #[expect(clippy::cast_precision_loss, reason = "a count of batches")]
        let n_batches = self.batches.len() as f64;
        let variance = n_batches / (n_batches - 1.0) * self.squares(&deviations) / (number * number);
        let half_width = self.quantile * variance.sqrt();
        Some(Estimate { mean, half_width: half_width.is_finite().then_some(half_width) })
    }

    /// Sum of the squares of the batches' deviations from their mean, and of what those of neighbours have in common: `A sum z_b^2`.
    fn squares(&self, deviations: &[f64]) -> f64 {
        let squares: f64 = deviations.iter().map(|z| z * z).sum();
        let neighbours = || self.batches.iter().skip(1).zip(deviations.windows(2)).filter(|(batch, _)| !batch.is_first).map(|(_, z)| z);
        let products: f64 = neighbours().map(|z| z[0] * z[1]).sum();
        #[expect(clippy::cast_precision_loss, reason = "a count of batches")]
        let correlation = products / neighbours().count() as f64 * deviations.len() as f64 / squares;
        // Of batches that have no neighbours or do not differ it is no number, and so not above 0.
        let correlation = if correlation > 0.0 { correlation.min(LARGEST_CORRELATION) } else { 0.0 };
        squares * (1.0 + correlation) / (1.0 - correlation)
    }

    /// Deviations of a result, from its values without each of the batches, whose sum of squares is the square of its standard error; `None`
    /// for fewer than 3 batches, and where one holds all that was observed of it.
    pub(super) fn jackknife(&self, without: &[Option<f64>]) -> Option<Vec<f64>> {
        let without = without.iter().copied().collect::<Option<Vec<f64>>>().filter(|w| w.len() >= 3)?;
        #[expect(clippy::cast_precision_loss, reason = "a count of batches")]
        let n = without.len() as f64;
        let mean = without.iter().sum::<f64>() / n;
        let deviations: Vec<f64> = without.iter().map(|x| x - mean).collect();
        let squares: f64 = deviations.iter().map(|z| z * z).sum();
        let scale = if squares > 0.0 { ((n - 1.0) / n * self.squares(&deviations) / squares).sqrt() } else { 0.0 };
        // Without a batch that is above the mean the result is below it.
        Some(deviations.iter().map(|z| -z * scale).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::simulate::law::{stream, uniform};

    #[test]
    fn halving_keeps_the_sums() {
        let mut rows = Rows { length: 1.0, width: 2, values: (0..10).map(f64::from).collect() };
        rows.halve();
        assert_eq!(rows.values, [2.0, 4.0, 10.0, 12.0]);
        assert!((rows.length - 2.0).abs() < 1e-12);
    }

    #[test]
    fn intervals_cover_the_mean_as_often_as_they_say() {
        let mut numbers = stream(5, 0, 0);
        let covered = (0..400).filter(|_| {
            let sums = |_| vec![(0..10).map(|_| uniform(&mut numbers)).sum::<f64>(), 10.0];
            let batches = (0..20).map(sums).map(|sums| Batch { time: 1.0, sums, is_first: false }).collect();
            let quantile = 2.093; // t of 19 degrees of freedom at 95 %
            let batches = Batches { batches, quantile, time: 20.0, ..Batches::default() };
            let estimate = batches.mean(0, 1).unwrap();
            (estimate.mean - 0.5).abs() <= estimate.half_width.unwrap()
        });
        let share = f64::from(u32::try_from(covered.count()).unwrap()) / 400.0;
        assert!((0.92..=0.98).contains(&share), "{share}");
    }
}
