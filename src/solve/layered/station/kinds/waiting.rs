//! Those that wait in a state of [`super::moments`], as two moments of the law of how many of them are of the first kind.

/// `x` is no nearer to the least and the most that there can be, as a share of what is between.
const NEAREST_END: f64 = 1e-6;
/// Most numbers of the first kind whose chances are added up.
const MOST_NUMBERS: f64 = 64.0;
/// A chance beside the largest that is none.
const NEVER: f64 = 1e-18;
/// How near to `x` the mean of the law is, as a share of what is between the ends; the rest follows from its slope.
const NEAR: f64 = 1e-6;
/// Steps to the odds, and the longest of them, in their logarithm.
const MOST_STEPS: usize = 30;
const MOST_STEP: f64 = 2.0;

/// Those that wait in a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// All of them.
    pub all: f64,
    /// Sources of each kind that are not in service.
    pub left: [f64; 2],
}

impl Waiting {
    /// The least and the most of the first kind.
    pub fn ends(&self) -> [f64; 2] {
        [(self.all - self.left[1]).max(0.0), self.all.min(self.left[0])]
    }

    /// Whether there can be more of the first kind or fewer.
    pub fn is_free(&self) -> bool {
        let [least, most] = self.ends();
        most > least
    }

    /// A mean within what can be.
    pub fn within(&self, mean: f64) -> f64 {
        let [least, most] = self.ends();
        let margin = NEAREST_END * (most - least);
        mean.clamp(least + margin, most - margin)
    }

    /// `x` as it is first: as those who wait came if nothing but how long sources are away told who.
    pub fn first_mean(&self, away: [f64; 2]) -> f64 {
        let [a, b] = self.left;
        let square = away[0] - away[1];
        let linear = away[0] * (b - self.all) + away[1] * (self.all + a);
        let product = away[1] * self.all * a;
        if self.is_free() {
            self.within(product * 2.0 / (linear + (linear * linear + square * product * 4.0).sqrt()))
        } else {
            self.ends()[1]
        }
    }

    /// The odds of one of the first kind that give such a mean, nearly (Cornfield).
    fn first_odds(&self, x: f64) -> f64 {
        let Self { all: w, left: [a, b] } = *self;
        x * (b - w + x) / ((a - x) * (w - x))
    }

    /// `h` and `g` at `x`; `odds` are those of an `x` near by, if known, and are those of this one then.
    pub fn square(&self, x: f64, odds: &mut Option<f64>) -> [f64; 2] {
        let Self { all: w, left: [a, b] } = *self;
        if !self.is_free() {
            return [0.0, x];
        }
        // One of two numbers.
        if w == 1.0 || a == 1.0 {
            return [0.0, 1.0];
        }
        if b == 1.0 {
            return [w - w * w, 2.0 * w - 1.0];
        }
        if w == a + b - 1.0 {
            return [a - a * a, 2.0 * a - 1.0];
        }
        let [least, most] = self.ends();
        if most - least > MOST_NUMBERS {
            return self.square_of_many(x);
        }
        let mut of = odds.unwrap_or_else(|| self.first_odds(x));
        let mut law = self.law(x, of);
        for _ in 0..MOST_STEPS {
            if (x - law.mean).abs() < NEAR * (most - least) {
                break;
            }
            of *= ((x - law.mean) / law.variance).clamp(-MOST_STEP, MOST_STEP).exp();
            law = self.law(x, of);
        }
        *odds = Some(of);
        let g = 2.0 * law.mean + law.third / law.variance;
        [law.mean * law.mean + law.variance - g * law.mean, g]
    }

    /// The law with such odds, from its number next to `x`.
    fn law(&self, x: f64, odds: f64) -> Law {
        let Self { all: w, left: [a, b] } = *self;
        let [least, most] = self.ends();
        let start = x.round().clamp(least, most);
        let mut sums = [1.0, 0.0, 0.0, 0.0];
        let mut add = |chance: f64, v: f64| {
            let d = v - start;
            for (sum, power) in sums.iter_mut().zip([1.0, d, d * d, d * d * d]) {
                *sum += chance * power;
            }
        };
        let (mut chance, mut v) = (1.0, start);
        while v < most && chance > NEVER {
            chance *= odds * (a - v) * (w - v) / ((v + 1.0) * (b - w + v + 1.0));
            v += 1.0;
            add(chance, v);
        }
        (chance, v) = (1.0, start);
        while v > least && chance > NEVER {
            chance *= v * (b - w + v) / ((a - v + 1.0) * (w - v + 1.0) * odds);
            v -= 1.0;
            add(chance, v);
        }
        let [first, second, third] = [1, 2, 3].map(|power| sums[power] / sums[0]);
        Law { mean: start + first, variance: second - first * first, third: third - 3.0 * first * second + 2.0 * first * first * first }
    }

    /// `h` and `g` where so many numbers are possible that a law without ends says it.
    fn square_of_many(&self, x: f64) -> [f64; 2] {
        let Self { all: w, left: [a, b] } = *self;
        let sources = a + b;
        let parts = [x, w - x, a - x, x + (b - w)].map(f64::recip);
        let sum: f64 = parts.iter().sum();
        let slope = parts[1] * parts[1] + parts[2] * parts[2] - parts[0] * parts[0] - parts[3] * parts[3];
        let fewer = (sources - 1.0) / sources;
        let variance = (sum * fewer).recip();
        let g = x * 2.0 - variance * variance * slope * fewer;
        [x * x + variance - g * x, g]
    }
}

/// Mean, variance and third central moment of a law.
struct Law {
    mean: f64,
    variance: f64,
    third: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Q` of all numbers by their chances `C(A, v) C(B, w - v) ω^v`.
    #[test]
    fn the_square_is_that_of_the_law() {
        for (all, left, odds) in [(5.0, [7.0, 4.0], 0.3), (6.0, [3.0, 9.0], 4.0), (3.0, [2.0, 2.0], 80.0), (9.0, [6.0, 6.0], 1e-4)] {
            let it = Waiting { all, left };
            let choose = |n: f64, k: f64| {
                let (mut product, mut at) = (1.0, 0.0);
                while at < k {
                    product *= (n - at) / (at + 1.0);
                    at += 1.0;
                }
                product
            };
            let [mut v, most] = it.ends();
            let mut sums = [0.0; 3];
            while v <= most {
                let chance = choose(left[0], v) * choose(left[1], all - v) * f64::powf(odds, v);
                sums = [sums[0] + chance, sums[1] + chance * v, sums[2] + chance * v * v];
                v += 1.0;
            }
            let (mean, square) = (sums[1] / sums[0], sums[2] / sums[0]);
            let q = |x: f64| {
                let [h, g] = it.square(x, &mut None);
                (h + g * x, g)
            };
            assert!((q(mean).0 / square - 1.0).abs() < 1e-9, "{it:?}: {} {square}", q(mean).0);
            let step = 1e-5 * mean;
            let slope = (q(mean + step).0 - q(mean - step).0) / (2.0 * step);
            assert!((q(mean).1 / slope - 1.0).abs() < 1e-5, "{it:?}: {} {slope}", q(mean).1);
        }
    }

    #[test]
    fn of_many_it_is_near_that_of_the_law() {
        let it = Waiting { all: 30.0, left: [40.0, 25.0] };
        for x in [12.0, 18.0, 24.0] {
            let [exact, many] = [it.square(x, &mut None), it.square_of_many(x)].map(|[h, g]| h + g * x);
            assert!((exact / many - 1.0).abs() < 2e-4, "{x}: {exact} {many}");
        }
    }
}
