//! Sums and distances over vectors of equal length.

use crate::model::Scalar;

/// `‖a‖₂`.
pub(super) fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// Sums that are kept side by side, as an addition takes longer than the processor has to wait for the next one to begin.
const SUMS: usize = 4;
/// Elements that are taken at once.
const BLOCK: usize = 16;

/// `Σ a b`.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((these, last), (those, last_of_those)) = (a.as_chunks::<BLOCK>(), b.as_chunks::<BLOCK>());
    let mut sums = [0.0; SUMS];
    for (x, y) in these.iter().zip(those) {
        for i in 0..BLOCK {
            sums[i % SUMS] += x[i] * y[i];
        }
    }
    let ((these, last), (those, last_of_those)) = (last.as_chunks::<SUMS>(), last_of_those.as_chunks::<SUMS>());
    for (x, y) in these.iter().zip(those) {
        for i in 0..SUMS {
            sums[i] += x[i] * y[i];
        }
    }
    let rest: f64 = last.iter().zip(last_of_those).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// `Σ (a b + c d)`.
pub(super) fn dot_of_two<S: Scalar>((a, b): (&[S], &[S]), (c, d): (&[S], &[S])) -> S {
    let ((a, last_a), (b, last_b)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let ((c, last_c), (d, last_d)) = (c.as_chunks::<SUMS>(), d.as_chunks::<SUMS>());
    let mut sums = [S::from(0.0); SUMS];
    for ((a, b), (c, d)) in a.iter().zip(b).zip(c.iter().zip(d)) {
        for i in 0..SUMS {
            sums[i] += a[i] * b[i] + c[i] * d[i];
        }
    }
    let last = last_a.iter().zip(last_b).zip(last_c.iter().zip(last_d));
    let rest = last.fold(S::from(0.0), |sum, ((&a, &b), (&c, &d))| sum + a * b + c * d);
    sums.into_iter().fold(rest, |sum, part| sum + part)
}

/// Largest `|a - b|` over the `scale` of `b`; not a number, where one is not.
pub(super) fn furthest<S: Scalar>(a: &[S], b: &[S], scale: impl Fn(f64) -> f64) -> f64 {
    let distance = |(a, b): (&S, &S)| (a.value() - b.value()).abs() / scale(b.value());
    let greater = |most: f64, distance: f64| if distance > most { distance } else { most };
    let ((these, last), (those, last_of_those)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let (mut most, mut sums) = ([0.0; SUMS], [0.0; SUMS]);
    for (x, y) in these.iter().zip(those) {
        for i in 0..SUMS {
            let distance = distance((&x[i], &y[i]));
            most[i] = greater(most[i], distance);
            sums[i] += distance;
        }
    }
    let (mut most, mut sum) = (most.into_iter().fold(0.0, greater), sums.iter().sum::<f64>());
    for distance in last.iter().zip(last_of_those).map(distance) {
        most = greater(most, distance);
        sum += distance;
    }
    if sum.is_nan() { sum } else { most }
}

/// `a ← a + factor b`.
pub(super) fn add_times(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}

/// `a ← a + Σ factor b` over the `terms`.
pub(super) fn add_all(a: &mut [f64], terms: &[(f64, &[f64])]) {
    let (blocks, _) = a.as_chunks_mut::<BLOCK>();
    let n_in_blocks = blocks.len() * BLOCK;
    for (block, sums) in blocks.iter_mut().enumerate() {
        for (factor, b) in terms {
            if let Some(b) = b.as_chunks::<BLOCK>().0.get(block) {
                for i in 0..BLOCK {
                    sums[i] += factor * b[i];
                }
            }
        }
    }
    for (factor, b) in terms {
        a.iter_mut().zip(*b).skip(n_in_blocks).for_each(|(a, b)| *a += factor * b);
    }
}

/// `a ← a + factor b`; returns `Σ a c` with the new `a`.
pub(super) fn add_times_dot(a: &mut [f64], factor: f64, b: &[f64], c: &[f64]) -> f64 {
    let (these, last) = a.as_chunks_mut::<SUMS>();
    let ((those, last_of_those), (with, last_with)) = (b.as_chunks::<SUMS>(), c.as_chunks::<SUMS>());
    let mut sums = [0.0; SUMS];
    for ((a, b), c) in these.iter_mut().zip(those).zip(with) {
        for i in 0..SUMS {
            a[i] += factor * b[i];
            sums[i] += a[i] * c[i];
        }
    }
    let mut rest = 0.0;
    for ((a, b), c) in last.iter_mut().zip(last_of_those).zip(last_with) {
        *a += factor * b;
        rest += *a * c;
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_take_every_element_of_any_length() {
        for n in 0..70_usize {
            let ramp = |from: f64| -> Vec<f64> { (0..n).map(|i| from + i as f64).collect() };
            let (a, b, c) = (ramp(1.0), ramp(0.5), ramp(-3.0));
            let plain: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert_eq!(dot(&a, &b), plain);
            assert_eq!(dot_of_two((&a, &b), (&b, &c)), plain + b.iter().zip(&c).map(|(b, c)| b * c).sum::<f64>());
            let added: Vec<f64> = (0..n).map(|i| a[i] + 2.0 * b[i] - 0.5 * c[i]).collect();
            let mut sum = a.clone();
            add_all(&mut sum, &[(2.0, &b), (-0.5, &c)]);
            assert_eq!(sum, added);
            let mut sum = a.clone();
            let product = add_times_dot(&mut sum, 2.0, &b, &c);
            add_times(&mut sum, -0.5, &c);
            assert_eq!(sum, added);
            assert_eq!(product, (0..n).map(|i| (a[i] + 2.0 * b[i]) * c[i]).sum::<f64>());
        }
    }

    #[test]
    fn the_furthest_is_found_wherever_it_stands() {
        for n in 1..20_usize {
            for at in 0..n {
                let a = vec![1.0; n];
                let mut b: Vec<f64> = vec![1.25; n];
                b[at] = -1.0;
                assert_eq!(furthest(&a, &b, |_| 1.0), 2.0);
                assert_eq!(furthest(&a, &b, |v| if v < 0.0 { 100.0 } else { 0.5 }), if n == 1 { 0.02 } else { 0.5 });
                b[at] = f64::NAN;
                assert!(furthest(&a, &b, |_| 1.0).is_nan());
            }
        }
        assert_eq!(furthest::<f64>(&[], &[], |_| 1.0), 0.0);
    }
}
