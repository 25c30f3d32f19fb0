//! From the rows of a run to means with confidence intervals.
//!
//! *Warm-up.* A run of `n` rows loses its first `d` by the marginal standard error rule (MSER): `d <= n/2` minimizes
//! `sum_{i>d} (Y_i - mean)^2 / (n-d)^2`. Each `Y_i` is the mean over a row, which holds many observations (MSER-5 is this
//! with rows of five). It is applied to the customers' cycles and to the busy threads and waiting requests; the longer
//! warm-up counts.
//!
//! *Batch means.* The rows left are put together to `B` batches of about equal length, over all replications. A mean is a
//! ratio `r = sum S_b / sum N_b`: of a sum to a number of times, or of a count or integral to time. Its variance is
//!
//! ```text
//! var r = B / (B-1) * sum (S_b - r N_b)^2 / (sum N_b)^2
//! ```
//!
//! and its half-width `t_{B-1}(1/2 + confidence/2) sqrt(var r)`.
//!
//! Sources: White, Cobb and Spratt 2000 (MSER-5); Law, *Simulation Modeling and Analysis*, chapters 9.5 and 13 (batch means,
//! ratio estimation).

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::statistics::Layout;

/// Batches of all replications together, at least.
const BATCHES: usize = 30;

/// Batches of one replication, at least.
const BATCHES_EACH: usize = 8;

/// Fewest rows of which a warm-up is sought.
const WARM_UP_ROWS: usize = 20;

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

    /// Rows of warm-up, by the number of rows: at most half.
    fn warm_up(&self, cycles: &[usize], levels: &[usize]) -> usize {
        let series = |places: &[usize]| -> Vec<f64> { (0..self.count()).map(|i| places.iter().map(|&p| self.row(i)[p]).sum()).collect() };
        mser(&series(cycles)).max(mser(&series(levels)))
    }
}

/// Length of the warm-up of a series by the marginal standard error rule.
fn mser(series: &[f64]) -> usize {
    let n = series.len();
    if n < WARM_UP_ROWS {
        return 0;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    let centre = series[n - 1];
    for d in (0..n).rev() {
        let x = series[d] - centre;
        sum += x;
        squares += x * x;
        #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
        let left = (n - d) as f64;
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        if 2 * d <= n && error <= best.0 {
            best = (error, d);
        }
    }
    best.1
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
    /// Half-width over mean; infinite where there is none, 0 of a mean that is known to be 0.
    pub(super) fn relative(&self) -> f64 {
        match self.half_width {
            Some(0.0) => 0.0,
            Some(half_width) => (half_width / self.mean).abs(),
            None => f64::INFINITY,
        }
    }
}

/// Batches of all replications, warm-up removed.
#[derive(Debug, Default)]
pub(super) struct Batches {
    batches: Vec<(f64, Vec<f64>)>,
    quantile: f64,
    /// Time measured, over all replications.
    pub(super) time: f64,
    /// Time removed as warm-up, over all replications.
    pub(super) warm_up: f64,
    /// Rows removed from each replication.
    pub(super) warm_up_rows: Vec<usize>,
    /// Whether the warm-up sought was the longest possible in most replications.
    pub(super) is_transient: bool,
}

impl Batches {
    /// Batches of `replications` for intervals at `confidence`.
    pub(super) fn new(replications: &[&Rows], layout: &Layout, references: &[usize], n_tasks: usize, confidence: f64) -> Self {
        let cycles: Vec<usize> = references.iter().map(|&t| layout.cycles(t)).collect();
        let levels: Vec<usize> = (0..n_tasks).map(|t| layout.task_level(t)).chain([layout.population()]).collect();
        let each = BATCHES.div_ceil(replications.len().max(1)).max(BATCHES_EACH);
        let mut this = Self { quantile: f64::NAN, ..Self::default() };
        let mut transient = 0;
        for rows in replications {
            let warm_up = rows.warm_up(&cycles, &levels);
            transient += usize::from(warm_up > 0 && 2 * warm_up + 1 >= rows.count());
            this.gather(rows, warm_up, each);
            this.warm_up_rows.push(warm_up);
        }
        this.is_transient = 2 * transient > replications.len();
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
            let mut batch = vec![0.0; rows.width];
            for i in first..end {
                batch.iter_mut().zip(rows.row(i)).for_each(|(sum, x)| *sum += x);
            }
            self.batches.push(((end - first) as f64 * rows.length, batch));
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
        Self { batches, warm_up_rows: self.warm_up_rows.clone(), ..*self }
    }

    /// The sum at `place` over all batches.
    pub(super) fn total(&self, place: usize) -> f64 {
        self.batches.iter().map(|(_, batch)| batch[place]).sum()
    }

    /// The sum at `place` per time, times `scale`. Where it is 0, nothing happened, and nothing is known of how far off 0 is.
    pub(super) fn rate(&self, place: usize, scale: f64) -> Estimate {
        let found = self.ratio(|(time, batch)| (batch[place], *time)).unwrap_or_default();
        let half_width = found.half_width.filter(|_| found.mean != 0.0);
        Estimate { mean: scale * found.mean, half_width: half_width.map(|h| scale * h) }
    }

    /// The mean of the values that are summed at `place` and counted at `number`; `None` where there are none.
    pub(super) fn mean(&self, place: usize, number: usize) -> Option<Estimate> {
        self.ratio(|(_, batch)| (batch[place], batch[number]))
    }

    /// One sum by another; `None` where that is 0.
    fn ratio(&self, parts: impl Fn(&(f64, Vec<f64>)) -> (f64, f64)) -> Option<Estimate> {
        let (sum, number) = self.batches.iter().map(&parts).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        if number == 0.0 {
            return None;
        }
        let mean = sum / number;
        let squares: f64 = self.batches.iter().map(parts).map(|(s, n)| (s - mean * n).powi(2)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a count of batches")]
        let n_batches = self.batches.len() as f64;
        let variance = n_batches / (n_batches - 1.0) * squares / (number * number);
        let half_width = self.quantile * variance.sqrt();
        Some(Estimate { mean, half_width: half_width.is_finite().then_some(half_width) })
    }
}

/// Standard error of a result from its values without each of the batches; `None` for fewer than 3, and where one batch holds all that
/// was observed of it.
pub(super) fn jackknife(without: &[Option<f64>]) -> Option<f64> {
    let without = without.iter().copied().collect::<Option<Vec<f64>>>().filter(|w| w.len() >= 3)?;
    #[expect(clippy::cast_precision_loss, reason = "a count of batches")]
    let n = without.len() as f64;
    let mean = without.iter().sum::<f64>() / n;
    Some(((n - 1.0) / n * without.iter().map(|x| (x - mean).powi(2)).sum::<f64>()).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::simulate::law::{stream, uniform};

    #[test]
    fn warm_up_is_where_the_series_settles() {
        let mut numbers = stream(3, 0, 0);
        let series: Vec<f64> = (0..200).map(|i| if i < 40 { 5.0 } else { 10.0 } + uniform(&mut numbers)).collect();
        assert_eq!(mser(&series), 40);
        let settled: Vec<f64> = (0..200).map(|_| uniform(&mut numbers)).collect();
        assert!(mser(&settled) <= 100, "{}", mser(&settled));
        assert_eq!(mser(&[1.0; 200]), 0);
        let growing: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(mser(&growing), 100);
    }

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
            let batches = (0..20).map(|_| (1.0, vec![(0..10).map(|_| uniform(&mut numbers)).sum::<f64>(), 10.0])).collect();
            let quantile = 2.093; // t of 19 degrees of freedom at 95 %
            let batches = Batches { batches, quantile, time: 20.0, ..Batches::default() };
            let estimate = batches.mean(0, 1).unwrap();
            (estimate.mean - 0.5).abs() <= estimate.half_width.unwrap()
        });
        let share = f64::from(u32::try_from(covered.count()).unwrap()) / 400.0;
        assert!((0.92..=0.98).contains(&share), "{share}");
    }
}
