//! Steps further than a pass leads, in the passes that find what slices find.
//!
//! A pass changes `x` by `r`, from which `δ` is known to follow ([`super::lead`]). What that does not know of is learned from the last change: with `δ'` and `x'` of the pass before,
//!
//! ```text
//! x ← x + δ - μ (x + δ - x' - δ')          μ = (δ - δ')·δ / (δ - δ')·(δ - δ')
//! ```
//!
//! over values and derivatives. ([`super::super::super::anderson`] learns from values alone, which have settled where derivatives are sought.)
//!
//! Source: Anderson 1965, of one change.

use super::lead::Lead;
use crate::model::Scalar;

/// Passes under way.
#[derive(Debug)]
pub(super) struct Further<S> {
    lead: Lead,
    /// `δ` of the last pass, and `x + δ`.
    last: Option<(Vec<S>, Vec<S>)>,
}

impl<S: Scalar> Further<S> {
    pub fn new(lead: Lead) -> Self {
        Self { lead, last: None }
    }

    /// Goes from `x` to where a pass leads, and further.
    pub fn go_on(&mut self, x: &mut [S], image: &[S]) {
        let mut change: Vec<S> = image.iter().zip(&*x).map(|(&image, &x)| image - x).collect();
        self.lead.follow(&mut change);
        let led: Vec<S> = x.iter().zip(&change).map(|(&x, &change)| x + change).collect();
        let mut next = led.clone();
        if let Some((last_change, last_led)) = &self.last {
            let (mut along, mut all) = (0.0, 0.0);
            for (&change, &last) in change.iter().zip(last_change) {
                let other = change - last;
                along += product(other, change);
                all += product(other, other);
            }
            if all > 0.0 {
                next.iter_mut().zip(&led).zip(last_led).for_each(|((next, &led), &last)| *next -= (led - last) * (along / all));
            }
        }
        for ((x, &next), &image) in x.iter_mut().zip(&next).zip(image) {
            *x = if next >= 0.0 { next } else { image };
        }
        self.last = Some((change, led));
    }
}

/// Of values and of derivatives.
fn product<S: Scalar>(a: S, b: S) -> f64 {
    a.derivatives().iter().zip(b.derivatives()).fold(a.value() * b.value(), |sum, (a, b)| sum + a * b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of a front and of what it calls follow each other by turns, nine tenths of the former; and what is found of the two is less by `k` of each, which it
    /// does not know.
    #[test]
    fn what_is_known_to_follow_is_not_waited_for() {
        let (rates, follows) = (vec![10.0, 9.0], [0.0, 0.9, 1.0, 0.0]);
        let moved = |f: &[f64], k: f64| {
            let mut moved = [0.0; 4];
            for (j, x) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                for (r, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    moved[j * 2 + x] += follows[j * 2 + r] * f[r * 2 + y] * follows[x * 2 + y] * rates[x] / rates[y];
                }
                moved[j * 2 + x] += 0.3 - k * (f[j * 2] + f[j * 2 + 1]);
            }
            moved
        };
        let passes = |k: f64, lead: Lead| {
            let (mut x, mut further) = (vec![0.1, 0.2, 0.3, 0.4], Further::new(lead));
            let left = |x: &[f64]| moved(x, k).iter().zip(x).map(|(a, b): (&f64, &f64)| (a - b).abs()).fold(0.0, f64::max);
            for pass in 0.. {
                if left(&x) < 1e-9 || pass == 500 {
                    return pass;
                }
                let image = moved(&x, k);
                further.go_on(&mut x, &image);
            }
            unreachable!("it ends by the number of passes")
        };
        let known = || Lead::new(rates.clone(), &follows, &follows);
        let found = [passes(0.0, known()), passes(0.02, known()), passes(0.02, Lead::default())];
        assert!(found[0] <= 3 && found[1] <= 7 && found[2] > 70, "{found:?}");
    }
}
