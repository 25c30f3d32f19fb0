//! A closed network of short and long executions, by how many of each there are: mean value analysis, exact where stations share (M. Reiser and S. S. Lavenberg, J. ACM 27 (1980)).
//!
//! ```text
//! X_c(n) = n_c/(Z_c + Σ_k (R_ck(n) - l_ck))
//! shared             R_ck = w_ck Σ_j p_k(j | n - 1_c) (j + 1)/α_k(j + 1)
//! in order           R_ck = w_ck Σ_j p_k(j | n - 1_c) b_k(j) + v_ck Σ_d s_dk (Q_dk + U_dk A_k (ρ_k - 1)) Σ_j p_k(j | n - 1_c) d_k(j)/Σ_j j p_k(j | n - 1_c)
//! p_k(j + 1 | n) = Σ_c X_c w_ck p_k(j | n - 1_c)/α_k(j + 1),    Q_ck = X_c R_ck
//! b_k(j) = m/α_k(m),   d_k(j) = (j + 1 - m)/α_k(m),   m = min(j + 1, servers)
//! ```
//!
//! `Q`, `U` without one of the kind, too. The second is chosen so that it is right for one server whose services differ by kind, and is the first where they do not; `A`, the share of the others that is not at
//! the station, as in [`super::super::super::scarce`]: who comes while all are there comes when a service begins.
//!
//! | symbol | is |
//! |---|---|
//! | `p_k(j)` | chance of `j` at a station |
//! | `Q`, `U` | how many of a kind are there; `X w` |
//! | `s_dk` | one service of a kind |
//! | `l_ck` | what of `w_ck` is after replies, and keeps a station busy, but nobody waiting |
//! | `ρ_k` | what is left of a service that is found, over what would be left if the services of each kind were exponential |
//!
//! Others are in [`super`].

use super::{Kind, Met};
use crate::{model::Scalar, solve::layered::station::kinds::sources::count};

/// Who is at a station.
#[derive(Clone, Debug)]
struct There<S> {
    /// `Q` of each kind.
    there: [S; 2],
    /// `p`.
    chances: Vec<S>,
}

/// Executions that end with so many of each kind in all.
#[derive(Clone, Debug)]
struct Point<S> {
    ends: [S; 2],
    there: Vec<There<S>>,
}

struct Lattice<'a, S> {
    met: &'a [Met<S>],
    kinds: &'a [Kind<S>; 2],
    /// `ρ`.
    rests: Vec<S>,
    /// By how many short ones there are, and long ones.
    points: Vec<Vec<Point<S>>>,
}

/// `X` of both kinds, by how many short ones there are, and long ones, up to so many in all; such a share of what begins is `short`.
pub(super) fn throughputs<S: Scalar>(met: &[Met<S>], kinds: &[Kind<S>; 2], short: S, threads: usize) -> Vec<Vec<[S; 2]>> {
    let mut lattice = Lattice::new(met, kinds, short);
    for n_short in 0..=threads {
        lattice.points.push(Vec::new());
        for n_long in 0..=threads - n_short {
            let point = lattice.point([n_short, n_long]);
            lattice.points[n_short].push(point);
        }
    }
    lattice.points.into_iter().map(|points| points.into_iter().map(|point| point.ends).collect()).collect()
}

/// `R_k/w_k` with so many executions of one kind.
pub(super) fn longer<S: Scalar>(met: &[Met<S>], kind: &Kind<S>, threads: usize) -> Vec<S> {
    let kinds = [kind.clone(), kind.clone()];
    let mut lattice = Lattice::new(met, &kinds, S::from(1.0));
    for n in 0..threads {
        let point = lattice.point([n, 0]);
        lattice.points.push(vec![point]);
    }
    let over = |(place, stay): (usize, S)| if kind.at[place].time > 0.0 { stay / kind.at[place].time } else { S::from(1.0) };
    lattice.stays(0, [threads - 1, 0]).into_iter().enumerate().map(over).collect()
}

impl<'a, S: Scalar> Lattice<'a, S> {
    fn new(met: &'a [Met<S>], kinds: &'a [Kind<S>; 2], short: S) -> Self {
        let rests = met.iter().enumerate().map(|(place, met)| {
            let Some(left) = met.rest else { return S::from(1.0) };
            let (mut time, mut squares) = (S::from(0.0), S::from(0.0));
            for (kind, share) in kinds.iter().zip([short, -short + 1.0]) {
                let work = kind.at[place];
                time += share * work.time;
                squares += share * work.time * work.service();
            }
            if squares > 0.0 { left * time / squares } else { S::from(1.0) }
        });
        Self { met, kinds, rests: rests.collect(), points: Vec::new() }
    }

    /// `R` of a kind that finds so many others.
    fn stays(&self, of: usize, others: [usize; 2]) -> Vec<S> {
        let zero = S::from(0.0);
        let found = &self.points[others[0]][others[1]];
        let n_others = others[0] + others[1];
        let at = self.met.iter().zip(&found.there).enumerate();
        let stay = |(place, (met, there)): (usize, (&Met<S>, &There<S>))| {
            let work = self.kinds[of].at[place];
            let (mut served, mut waits, mut people) = (zero, zero, zero);
            for (j, &chance) in there.chances.iter().enumerate() {
                let (beside, before) = met.beside_and_before(j);
                served += chance * beside;
                waits += chance * before;
                people += chance * count(j);
            }
            if met.shared || people <= 0.0 {
                return work.time * (served + waits) * met.slower;
            }
            let away = -people / count(n_others) + 1.0;
            let ahead = (0..2).fold(zero, |sum, kind| {
                let of_kind = self.kinds[kind].at[place];
                let busy = found.ends[kind] * of_kind.time * away;
                sum + (there.there[kind] + busy * (self.rests[place] - 1.0)) * of_kind.service()
            });
            (work.time * served + work.visits * ahead * (waits / people)) * met.slower
        };
        at.map(stay).collect()
    }

    fn point(&self, n: [usize; 2]) -> Point<S> {
        let zero = S::from(0.0);
        let total = n[0] + n[1];
        let mut there = vec![There { there: [zero; 2], chances: vec![zero; total + 1] }; self.met.len()];
        let mut ends = [zero; 2];
        for of in (0..2).filter(|&of| n[of] > 0) {
            let mut others = n;
            others[of] -= 1;
            let stays = self.stays(of, others);
            let kind = &self.kinds[of];
            let late = kind.at.iter().zip(self.met).fold(zero, |sum, (work, met)| sum + work.late * met.slower);
            let cycle = stays.iter().fold(kind.elsewhere - late, |sum, &stay| sum + stay);
            if cycle <= 0.0 {
                continue;
            }
            ends[of] = cycle.recip() * count(n[of]);
            for (place, (there, met)) in there.iter_mut().zip(self.met).enumerate() {
                there.there[of] = ends[of] * stays[place];
                let busy = ends[of] * kind.at[place].time * met.slower;
                for (j, &chance) in self.points[others[0]][others[1]].there[place].chances.iter().enumerate() {
                    there.chances[j + 1] += busy * chance / met.pace(j + 1);
                }
            }
        }
        for it in &mut there {
            let busy = it.chances.iter().fold(zero, |sum, &chance| sum + chance);
            if busy > 1.0 {
                it.chances.iter_mut().for_each(|chance| *chance /= busy);
            } else {
                it.chances[0] = -busy + 1.0;
            }
        }
        Point { ends, there }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Work, *};

    fn kind(work: &[f64], elsewhere: f64) -> Kind<f64> {
        Kind { at: work.iter().map(|&time| Work { time, visits: 1.0, late: 0.0 }).collect(), elsewhere }
    }

    fn shared(paces: &[f64]) -> Met<f64> {
        Met { shared: true, ..Met::of_cores(0, paces.to_vec()) }
    }

    /// Sum over all states of a product form (F. Baskett, K. M. Chandy, R. R. Muntz and F. G. Palacios, J. ACM 22 (1975)), station by station.
    fn states(met: &[Met<f64>], kinds: &[Kind<f64>; 2], [short, long]: [usize; 2]) -> f64 {
        let several = |n: usize| (1..=n).map(count).product::<f64>();
        let Some((place, first)) = met.iter().enumerate().next_back() else {
            let of = |kind: usize, n: usize| kinds[kind].elsewhere.powi(i32::try_from(n).unwrap()) / several(n);
            return of(0, short) * of(1, long);
        };
        let mut sum = 0.0;
        for a in 0..=short {
            for b in 0..=long {
                let of = |kind: usize, n: usize| kinds[kind].at[place].time.powi(i32::try_from(n).unwrap()) / several(n);
                let pace: f64 = (1..=a + b).map(|n| first.pace(n)).product();
                sum += several(a + b) * of(0, a) * of(1, b) / pace * states(&met[..place], kinds, [short - a, long - b]);
            }
        }
        sum
    }

    #[test]
    fn shared_stations_have_a_product_form() {
        let met = [shared(&[1.0]), shared(&[1.0, 2.0, 2.7])];
        let kinds = [kind(&[0.2, 0.9], 0.4), kind(&[1.3, 0.1], 0.0)];
        let found = throughputs(&met, &kinds, 0.6, 6);
        for short in 0..=6 {
            for long in 0..=6 - short {
                let all = states(&met, &kinds, [short, long]);
                let of_short = if short > 0 { states(&met, &kinds, [short - 1, long]) / all } else { 0.0 };
                let of_long = if long > 0 { states(&met, &kinds, [short, long - 1]) / all } else { 0.0 };
                let [a, b] = found[short][long];
                assert!((a - of_short).abs() < 1e-9 && (b - of_long).abs() < 1e-9, "{short} {long}: {a} {b}, not {of_short} {of_long}");
            }
        }
    }

    #[test]
    fn services_that_are_alike_and_exponential_are_served_in_order_as_if_shared() {
        let in_order = |met: Met<f64>| Met { shared: false, rest: Some(0.3), ..met };
        let kinds = [kind(&[0.3, 0.3], 1.0), kind(&[0.3, 0.3], 0.2)];
        let met = [shared(&[1.0]), shared(&[1.0, 2.0])];
        let found = throughputs(&met.clone().map(in_order), &kinds, 0.4, 5);
        for (found, expected) in found.iter().flatten().flatten().zip(throughputs(&met, &kinds, 0.4, 5).iter().flatten().flatten()) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    /// Two executions at one station: constant services keep each other waiting less, and no more than it can do ends.
    #[test]
    fn what_is_left_of_services_counts_as_far_as_not_all_are_there() {
        let ends = |rest: f64, elsewhere: f64, threads: usize| {
            let met = [Met { rest: Some(rest), ..Met::of_cores(0, vec![1.0]) }];
            let kinds = [kind(&[1.0], elsewhere), kind(&[1.0], elsewhere)];
            throughputs(&met, &kinds, 1.0, threads)[threads][0][0]
        };
        assert!(ends(0.5, 2.0, 2) > ends(1.0, 2.0, 2) && ends(3.0, 2.0, 2) < ends(1.0, 2.0, 2));
        assert!((ends(0.5, 0.0, 8) - 1.0).abs() < 1e-12 && (ends(3.0, 0.0, 8) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_stays_as_long_as_with_all_others() {
        let met = [shared(&[1.0])];
        let (of, threads) = (kind(&[0.5], 1.0), 4);
        let mut queue = 0.0;
        for n in 1..threads {
            let stay = 0.5 * (1.0 + queue);
            queue = count(n) / (stay + 1.0) * stay;
        }
        assert!((longer(&met, &of, threads)[0] - 1.0 - queue).abs() < 1e-12);
    }
}
