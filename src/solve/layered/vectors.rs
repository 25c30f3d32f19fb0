//! Sums over vectors of equal length.

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
}
