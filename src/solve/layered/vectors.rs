//! Sums over vectors of equal length.

/// `‖a‖₂`.
pub(super) fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// Sums that are kept side by side, as an addition takes longer than the processor has to wait for the next one to begin.
const SUMS: usize = 4;

/// `Σ a b`.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (these, those) = (a.chunks_exact(SUMS), b.chunks_exact(SUMS));
    let rest: f64 = these.remainder().iter().zip(those.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; SUMS];
    for (x, y) in these.zip(those) {
        for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
            *sum += x * y;
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// `a ← a + factor b`.
pub(super) fn add_times(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}

/// `a ← a + factor b`; returns `Σ a c` with the new `a`.
pub(super) fn add_times_dot(a: &mut [f64], factor: f64, b: &[f64], c: &[f64]) -> f64 {
    let mut sums = [0.0; SUMS];
    let mut these = a.chunks_exact_mut(SUMS);
    let (those, with) = (b.chunks_exact(SUMS), c.chunks_exact(SUMS));
    let (last_b, last_c) = (those.remainder(), with.remainder());
    for ((a, b), c) in these.by_ref().zip(those).zip(with) {
        for (((sum, a), b), c) in sums.iter_mut().zip(a).zip(b).zip(c) {
            *a += factor * b;
            *sum += *a * c;
        }
    }
    let mut rest = 0.0;
    for ((a, b), c) in these.into_remainder().iter_mut().zip(last_b).zip(last_c) {
        *a += factor * b;
        rest += *a * c;
    }
    sums.iter().sum::<f64>() + rest
}
