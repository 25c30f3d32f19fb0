//! How far an iteration follows an extrapolation: each unknown to no more than [`TRUST_FACTOR`] times its image and no less than that part
//! of it.

use crate::model::Scalar;

/// How far an extrapolated unknown may be from its image, as a factor.
const TRUST_FACTOR: f64 = 2.0;
/// Unknowns this much nearer to the middle of what is allowed than its ends are taken as they are, many at once.
const WELL_WITHIN: f64 = 0.999;
/// How many.
const BLOCK: usize = 8;
/// Waits above this fraction of the longest one decide whether an extrapolation was held back.
const CONSIDERABLE_WAIT: f64 = 1e-2;

/// Whether an extrapolation was held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Back,
    Not,
}

/// Sets `x` to `next`, held near the `image` from which it was extrapolated; an excess wait (`n_waits..n_times`), which may come from nothing,
/// only above zero.
pub(super) fn follow<S: Scalar>(x: &mut [S], next: &[S], image: &[S], n_waits: usize, n_times: usize) -> Held {
    let longest = image[..n_waits].iter().fold(0.0_f64, |m, w| m.max(w.value()));
    let mut held = Held::Not;
    let blocks = x.chunks_mut(BLOCK).zip(next.chunks(BLOCK)).zip(image.chunks(BLOCK));
    for (from, ((x, next), image)) in (0..).step_by(BLOCK).zip(blocks) {
        if are_well_within(next, image) {
            x.copy_from_slice(next);
            continue;
        }
        for (i, ((unknown, &next), &image)) in (from..).zip(x.iter_mut().zip(next).zip(image)) {
            let kept = if (n_waits..n_times).contains(&i) { above_zero(next) } else { trusted(next, image) };
            *unknown = kept.unwrap_or(next);
            if kept.is_some() && i < n_waits && image.value() > CONSIDERABLE_WAIT * longest {
                held = Held::Back;
            }
        }
    }
    held
}

/// Whether all values are numbers and none is near the ends of what is allowed.
fn are_well_within<S: Scalar>(next: &[S], image: &[S]) -> bool {
    let (middle, reach) = (f64::midpoint(TRUST_FACTOR, TRUST_FACTOR.recip()), WELL_WITHIN * (TRUST_FACTOR - TRUST_FACTOR.recip()) / 2.0);
    let within = next.iter().zip(image).map(|(next, image)| {
        let (next, image) = (next.value(), image.value());
        usize::from((next - middle * image).abs() <= reach * image.abs())
    });
    within.sum::<usize>() == next.len()
}

/// What stands for `next`, if it is not above zero.
fn above_zero<S: Scalar>(next: S) -> Option<S> {
    (next.value() < 0.0).then(|| S::from(0.0))
}

/// What stands for `next`, if it is too far from `image`.
fn trusted<S: Scalar>(next: S, image: S) -> Option<S> {
    let (least, most) = (image / TRUST_FACTOR, image * TRUST_FACTOR);
    let (least, most) = if image.value() < 0.0 { (most, least) } else { (least, most) };
    match next.value() {
        value if value < least.value() => Some(least),
        value if value > most.value() => Some(most),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits but for one excess, the last; one unknown changed of a row that is left as it is.
    fn followed(at: usize, next: f64, image: f64) -> (f64, Held) {
        let n = 2 * BLOCK + 3;
        let mut images = vec![1.0; n];
        let mut nexts = vec![1.1; n];
        (nexts[at], images[at]) = (next, image);
        let mut x = vec![0.0; n];
        let held = follow(&mut x, &nexts, &images, n - 1, n);
        assert!(x.iter().enumerate().all(|(i, v)| i == at || *v == 1.1));
        (x[at], held)
    }

    #[test]
    fn what_is_too_far_is_held_at_the_end_of_what_is_allowed() {
        for at in [0, BLOCK - 1, BLOCK, 2 * BLOCK + 1] {
            assert_eq!(followed(at, 3.0, 1.0), (2.0, Held::Back));
            assert_eq!(followed(at, -1.0, 1.0), (0.5, Held::Back));
            assert_eq!(followed(at, -3.0, -1.0).0, -2.0);
            assert_eq!(followed(at, 0.1, -1.0).0, -0.5);
            assert_eq!(followed(at, 1e-9, 0.0).0, 0.0);
            for near in [2.0, 1.999_999, 1.0, 0.500_001, 0.5] {
                assert_eq!(followed(at, near, 1.0), (near, Held::Not));
            }
        }
    }

    #[test]
    fn a_wait_beside_which_others_are_long_is_not_called_held_back() {
        assert_eq!(followed(0, 1.0, 1e-3), (2e-3, Held::Not));
    }

    #[test]
    fn an_excess_may_come_from_nothing_but_not_fall_below() {
        let excess = 2 * BLOCK + 2;
        assert_eq!(followed(excess, 5.0, 0.0), (5.0, Held::Not));
        assert_eq!(followed(excess, -5.0, 1.0), (0.0, Held::Not));
    }

    #[test]
    fn no_number_is_passed_on() {
        assert!(followed(3, f64::NAN, 1.0).0.is_nan());
    }
}
