//! Steps further along the last change, in the passes that find what slices find.
//!
//! Slices of two rows that follow each other by turns have a pass leave as much of an error with one sign as with the other, so that only two passes together shrink it by the same
//! ratio. After every second pass, with `d` the change in the two and `d'` in the two before,
//!
//! ```text
//! x ← T(T(x)) + μ/(1 - μ) d        μ = d·d' / d'·d'
//! ```
//!
//! over values and derivatives, where `μ` is between [`RATIOS`]; the next two are not led on. ([`super::super::super::anderson`] learns from values alone, which have settled where derivatives are sought.)

use crate::model::Scalar;

/// Of changes, those that are led on.
const RATIOS: std::ops::Range<f64> = 0.05..0.995;

/// The passes since the last step further.
#[derive(Debug)]
pub(super) struct Further<S> {
    /// Where the first of two passes began; empty before it.
    before: Vec<S>,
    /// What the last two changed, if they were not led on.
    changed: Vec<S>,
}

impl<S: Scalar> Further<S> {
    pub fn new() -> Self {
        Self { before: Vec::new(), changed: Vec::new() }
    }

    /// Goes from `x` to where a pass leads, and every second time further.
    pub fn go_on(&mut self, x: &mut [S], image: &[S]) {
        if self.before.is_empty() {
            self.before.extend_from_slice(x);
            x.copy_from_slice(image);
            return;
        }
        let changes: Vec<S> = image.iter().zip(&self.before).map(|(&image, &before)| image - before).collect();
        self.before.clear();
        let (along, all) = changes
            .iter()
            .zip(&self.changed)
            .fold((0.0, 0.0), |(along, all), (change, last)| (along + product(change, last), all + product(last, last)));
        let ratio = if all > 0.0 { along / all } else { 0.0 };
        if !RATIOS.contains(&ratio) {
            x.copy_from_slice(image);
            self.changed = changes;
            return;
        }
        self.changed.clear();
        for ((x, &image), &change) in x.iter_mut().zip(image).zip(&changes) {
            let further = image + change * (ratio / (1.0 - ratio));
            *x = if further >= 0.0 { further } else { image };
        }
    }
}

/// Of values and of derivatives.
fn product<S: Scalar>(a: &S, b: &S) -> f64 {
    a.derivatives().iter().zip(b.derivatives()).fold(a.value() * b.value(), |sum, (a, b)| sum + a * b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors that shrink by `±p` in a pass are as good as gone after six; by plain passes `p⁶` is left.
    #[test]
    fn what_goes_to_and_fro_is_led_on() {
        let p = 0.96;
        let (mut x, mut further) = (vec![3.0, 0.5], Further::new());
        for _ in 0..6 {
            let image = vec![1.0 + p * (x[1] - 2.0), 2.0 + p * (x[0] - 1.0)];
            further.go_on(&mut x, &image);
        }
        assert!((x[0] - 1.0_f64).abs() < 1e-9 && (x[1] - 2.0_f64).abs() < 1e-9, "{x:?}");
    }
}
