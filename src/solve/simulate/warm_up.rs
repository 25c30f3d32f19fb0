//! How much of a run is warm-up.
//!
//! A series `Y_i` is the sum over all replications of what happened in their row `i`, of `n` rows. Its warm-up is the smaller of
//!
//! ```text
//! the d <= n/2 that minimizes  sum_{i > d} (Y_i - mean_{i > d})^2 / (n - d)^2         (MSER)
//! the row at which Y has crossed its mean over the rows after n/2 for the second time    (crossings)
//! ```
//!
//! MSER takes rows for independent. Those of a queue are not: it goes on to cut until only a quiet part is left, whose mean is too small (figures
//! in docs/SOLVER.md). A series that has been on both sides of the level it keeps to later has no start to be cut any more; that is what the
//! crossings tell. The start is the same in all replications and the noise is not, so that it shows best in their sum.
//!
//! Sources: White, Cobb and Spratt 2000 (MSER-5); Fishman 1973 (crossings of the mean); Welch 1983 (means over replications).

/// Fewest rows of which a warm-up is sought.
const FEWEST_ROWS: usize = 20;

/// Crossings of the later mean after which a start is over.
const CROSSINGS: usize = 2;

/// As near to the later mean, relatively, is at it.
const AT_MEAN: f64 = 1e-9;

/// Rows of warm-up of a series: at most half of it.
pub(super) fn of(series: &[f64]) -> usize {
    if series.len() < FEWEST_ROWS {
        return 0;
    }
    mser(series).min(crossing(series))
}

/// The cut of least marginal standard error.
fn mser(series: &[f64]) -> usize {
    let n = series.len();
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

/// The row after the last of [`CROSSINGS`] of the mean of the second half; half of the rows where there are fewer in the first half.
fn crossing(series: &[f64]) -> usize {
    let half = series.len() / 2;
    let later = &series[half..];
    #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
    let level = later.iter().sum::<f64>() / later.len() as f64;
    let is_above = |y: f64| (y - level).abs() > AT_MEAN * level.abs() && y > level;
    let is_below = |y: f64| (y - level).abs() > AT_MEAN * level.abs() && y < level;
    let has_crossed = |i: &usize| {
        let (before, y) = (series[i - 1], series[*i]);
        !(is_above(before) && is_above(y) || is_below(before) && is_below(y))
    };
    (1..half).filter(has_crossed).nth(CROSSINGS - 1).unwrap_or(half)
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
        assert!((39..=40).contains(&of(&series)), "{}", of(&series));
        assert_eq!(of(&[1.0; 200]), 0);
    }

    #[test]
    fn a_series_that_only_grows_is_all_warm_up() {
        let growing: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(of(&growing), 100);
    }

    #[test]
    fn a_series_that_ends_up_constant_has_settled_there() {
        let series: Vec<f64> = (0..200).map(|i| if i < 30 { 0.0 } else { 0.1 }).collect();
        assert_eq!(of(&series), 30);
    }

    #[test]
    fn a_peak_of_a_settled_series_is_not_cut() {
        let mut numbers = stream(4, 0, 0);
        let series: Vec<f64> = (0..200).map(|i| if (20..60).contains(&i) { 3.0 } else { 0.0 } + 2.0 * uniform(&mut numbers)).collect();
        assert_eq!(mser(&series), 60);
        assert!(of(&series) < 20, "{}", of(&series));
    }
}
