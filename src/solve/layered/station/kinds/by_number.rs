//! How busy servers are that are known to be so busy with each number of customers there.
//!
//! Customers of classes that are served alike, whoever else is there, have a product form (Baskett, Chandy, Muntz, and Palacios 1975),
//! in which only matters how much work each class brings for the time that it is away:
//!
//! ```text
//! p(n) ∝ Π_c C(N_c, n_c) a_c^n_c · Π_j j/U(j)        j = 1 to Σ_c n_c
//! U    = Σ_n p(n) U(Σ_c n_c)
//! ```
//!
//! All classes as one, as a network's mean values have them, keep servers 0 to 4 % less busy: who is away for long or works little is away
//! while others are there. Of many customers that is no more (nine pairs of classes of 1,200 in all: .7 % at most, mostly none), and they are told as one.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `N` | [`Customers`] | customers of a class |
//! | `a` | `busy / away` | servers busy with them in the network, over those of them that are away: work of each over the time that it is away |
//! | `U(j)` | `by_number` | mean busy servers while `j` are there |

use super::ratio::at_least;
use crate::model::Scalar;

/// The most customers of one class that are told one by one; of more there are as many, away for as much shorter.
const MOST: f64 = 3_000.0;
/// The most of several classes that are told apart.
const MOST_OF_CLASSES: f64 = 400.0;
/// Chances that are left out beside all before them.
const NEGLIGIBLE: f64 = 1e-16;
/// Sums are scaled beyond this.
const LARGE: f64 = 1e100;
/// Weights beside the largest of their class that are 0.
const SMALLEST: f64 = 1e-290;

/// Customers of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Customers<S> {
    pub number: f64,
    /// Servers busy with them, and how many of them are away.
    pub busy: S,
    pub away: S,
}

impl<S: Scalar> Customers<S> {
    /// `a`.
    fn work(&self) -> S {
        self.busy / at_least(self.away, self.busy)
    }
}

/// Chances of a chain from its lowest state on, and the mean of what is busy in its states.
pub(super) struct Mean<S> {
    /// The chance of the last state, of all and what is busy, over the same.
    last: S,
    all: S,
    busy: S,
}

impl<S: Scalar> Mean<S> {
    /// Of the lowest state alone.
    pub fn of(busy: S) -> Self {
        Self { last: S::from(1.0), all: S::from(1.0), busy }
    }

    /// With the next state, so many times as likely as the last.
    pub fn add(&mut self, times: S, busy: S) {
        self.last *= times;
        self.all += self.last;
        self.busy += self.last * busy;
        if self.all > LARGE {
            (self.last, self.busy, self.all) = (self.last / self.all, self.busy / self.all, S::from(1.0));
        }
    }

    /// Whether the last state is next to never.
    pub fn is_negligible(&self) -> bool {
        self.last < self.all * NEGLIGIBLE
    }

    pub fn value(self) -> S {
        self.busy / self.all
    }
}

/// Mean busy servers, with customers of such classes, where `by_number` is how many are with 1, 2 and so on there, without end.
pub(super) fn busy_servers<S: Scalar>(classes: &[Customers<S>], by_number: impl Iterator<Item = S>) -> S {
    let (mut known, mut by_number) = (Vec::new(), by_number);
    let mut at = |j: usize| {
        known.extend(by_number.by_ref().take(j.saturating_sub(known.len())));
        known[j - 1]
    };
    let sum = |of: fn(&Customers<S>) -> S| classes.iter().fold(S::from(0.0), |sum, it| sum + of(it));
    let number = classes.iter().map(|it| it.number).sum();
    match classes {
        [_, _, ..] if number <= MOST_OF_CLASSES => of_classes(classes, &mut at),
        _ => of_one(Customers { number, busy: sum(|it| it.busy), away: sum(|it| it.away) }, &mut at),
    }
}

fn of_one<S: Scalar>(it: Customers<S>, at: &mut impl FnMut(usize) -> S) -> S {
    let number = f64::min(it.number, MOST);
    let work = it.work() * (it.number / number);
    let mut mean = Mean::of(S::from(0.0));
    let mut j = 0.0;
    while j < number {
        j += 1.0;
        let busy = at(j as usize);
        mean.add(work / busy * (number - j + 1.0), busy);
        if mean.is_negligible() && (number - j) * work.value() < busy.value() {
            break;
        }
    }
    mean.value()
}

fn of_classes<S: Scalar>(classes: &[Customers<S>], at: &mut impl FnMut(usize) -> S) -> S {
    let zero = S::from(0.0);
    let number = classes.iter().map(|it| it.number as usize).sum::<usize>();
    // By so much all weights are scaled for each that is there, so that none of them is too large.
    let scale = number as f64 / at(number).value();
    let mut together = vec![S::from(1.0)];
    for it in classes {
        let own = weights(it, scale);
        let mut next = vec![zero; together.len() + own.len() - 1];
        for (i, &a) in together.iter().enumerate().filter(|(_, a)| **a > 0.0) {
            own.iter().enumerate().for_each(|(n, &b)| next[i + n] += a * b);
        }
        together = next;
    }
    let (mut all, mut busy, mut served) = (together[0], zero, S::from(1.0));
    for (j, &weight) in together.iter().enumerate().skip(1) {
        let servers = at(j);
        served *= servers.recip() * (j as f64 / scale);
        all += weight * served;
        busy += weight * served * servers;
    }
    busy / all
}

/// `C(N, n) (a scale)^n` over the largest of them.
fn weights<S: Scalar>(it: &Customers<S>, scale: f64) -> Vec<S> {
    let number = it.number as usize;
    let work = it.work();
    let times = |n: usize| work * (scale * (number - n + 1) as f64 / n as f64);
    let peak = (1..=number).take_while(|&n| times(n) >= 1.0).count();
    let mut weights = vec![S::from(0.0); number + 1];
    weights[peak] = S::from(1.0);
    for n in peak + 1..=number {
        weights[n] = weights[n - 1] * times(n);
        if weights[n] < SMALLEST {
            weights[n] = S::from(0.0);
            break;
        }
    }
    for n in (0..peak).rev() {
        weights[n] = weights[n + 1] / times(n + 1);
        if weights[n] < SMALLEST {
            weights[n] = S::from(0.0);
            break;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Customers that work for so long after each time away, which half of them are at any time.
    fn class(number: f64, away: f64, work: f64) -> Customers<f64> {
        Customers { number, busy: number / 2.0 * work / away, away: number / 2.0 }
    }

    fn of_servers(classes: &[Customers<f64>], servers: f64) -> f64 {
        busy_servers(classes, (1_u32..).map(|j| f64::min(j.into(), servers)))
    }

    /// All states, one by one.
    #[test]
    fn two_classes_have_the_product_form() {
        let classes = [class(5.0, 3.0, 0.7), class(3.0, 0.5, 1.1)];
        let choose = |n: f64, k: u32| (0..k).fold(1.0, |c, i| c * (n - f64::from(i)) / f64::from(i + 1));
        for servers in [1.0, 2.0, 3.0] {
            let (mut all, mut busy) = (0.0, 0.0);
            for (a, b) in (0..=5_u32).flat_map(|a| (0..=3_u32).map(move |b| (a, b))) {
                let of = |class: &Customers<f64>, n: u32| choose(class.number, n) * class.work().powi(n as i32);
                let served: f64 = (1..=a + b).map(|j| f64::from(j) / f64::min(f64::from(j), servers)).product();
                let weight = of(&classes[0], a) * of(&classes[1], b) * served;
                all += weight;
                busy += weight * f64::min(f64::from(a + b), servers);
            }
            assert!((of_servers(&classes, servers) / (busy / all) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn alike_classes_are_one() {
        for (servers, factor) in [(1.0, 1.0), (4.0, 3.0), (2.0, 20.0)] {
            let [a, b, both] = [12.0, 7.0, 19.0].map(|n| class(n * factor, 4.0 * factor, 0.9));
            assert!((of_servers(&[a, b], servers) / of_servers(&[both], servers) - 1.0).abs() < 1e-12);
        }
    }

    /// More than are told one by one: on either side of the bound servers are as busy.
    #[test]
    fn many_customers_are_told_in_proportion() {
        let at = |n: f64| of_servers(&[class(n, n * 5.0, 95.0)], 20.0);
        assert!((at(3_000.0) / at(3_300.0) - 1.0).abs() < 1e-3, "{} {}", at(3_000.0), at(3_300.0));
        let never_away = [class(300.0, 1e-12, 1.0), class(4.0, 1.0, 1e-3)];
        assert!((of_servers(&never_away, 5.0) - 5.0).abs() < 1e-9);
    }

    /// The sums over all states of 1,200 customers, and who is away by them.
    #[test]
    fn many_classes_are_one() {
        let of = |classes: [(f64, f64, f64); 2], servers| {
            let classes = classes.map(|(number, work, away)| Customers { number, busy: work * away, away });
            of_servers(&classes, servers)
        };
        let found = of([(700.0, 0.002, 698.249_638_459_5), (500.0, 0.01, 493.821_778_977_2)], 8.0);
        assert!((found / 6.334_717_066_7 - 1.0).abs() < 1e-4, "{found}");
        let found = of([(1_100.0, 0.0002, 1_098.247_314_023_7), (100.0, 0.02, 86.795_174_904_6)], 2.0);
        assert!((found / 1.955_552_960_9 - 1.0).abs() < 0.008, "{found}");
    }
}
