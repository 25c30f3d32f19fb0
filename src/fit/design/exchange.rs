//! The search for the best set of trials.
//!
//! Where there are few sets, all are tried. Otherwise a set is built greedily, trial by trial (by gain, by gain for its cost, and from
//! seeded random sets), and then improved: one trial, or two where a budget binds, is taken out and the set filled up again with what
//! gains most, as long as that helps. The criterion is concave in the numbers of trials, so that its slopes bound what any other set
//! could reach: `efficiency` is the share of that bound. Sources: V. Fedorov, Theory of Optimal Experiments (1972), section 3.2;
//! R. Cook and C. Nachtsheim, Technometrics 22 (1980); J. Kiefer and J. Wolfowitz (1960) for the bound.

use nalgebra::DMatrix;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::criterion::Objective;

/// Most sets that are all tried.
const MOST_SETS: usize = 20_000;

/// Random starts beside the greedy ones.
const RANDOM_STARTS: usize = 6;

/// Seed of the random starts.
const SEED: u64 = 1;

/// Improvement that counts as one.
const BETTER: f64 = 1e-10;

/// Most improvements of one set.
const MOST_MOVES: usize = 1000;

/// Most trials chosen for which pairs are taken out together.
const MOST_PAIRED: usize = 12;

/// What a set is chosen from, and how.
pub(super) struct Choice<'a> {
    pub(super) objective: &'a Objective,
    /// Information there is, positive definite, `(n, n)`.
    pub(super) start: DMatrix<f64>,
    /// Information of each candidate.
    pub(super) information: &'a [DMatrix<f64>],
    /// Cost of each; `None` where trials are only counted.
    pub(super) costs: Option<&'a [f64]>,
    /// Most trials: exactly so many without a budget.
    pub(super) most: usize,
    /// What they may cost together.
    pub(super) budget: Option<f64>,
    /// Most times of one candidate.
    pub(super) most_of_one: usize,
    /// Whether the search goes on: asked between its steps.
    pub(super) keep: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Choice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Choice").field("objective", self.objective).field("most", &self.most).finish_non_exhaustive()
    }
}

/// The set that was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// How often each candidate is taken.
    pub(super) counts: Vec<usize>,
    /// Whether all sets were tried.
    pub(super) exhaustive: bool,
}

struct State {
    counts: Vec<usize>,
    s: DMatrix<f64>,
    cost: f64,
    size: usize,
    score: f64,
}

impl Choice<'_> {
    /// The best set found; `None` where it is not to go on.
    pub(super) fn best(&self) -> Option<Found> {
        if self.n_sets() <= MOST_SETS {
            return Some(self.all());
        }
        self.exchange()
    }

    fn cost(&self, j: usize) -> f64 {
        self.costs.map_or(1.0, |c| c[j])
    }

    fn empty(&self) -> State {
        State { counts: vec![0; self.information.len()], s: self.start.clone(), cost: 0.0, size: 0, score: f64::NEG_INFINITY }
    }

    fn fits(&self, state: &State, j: usize) -> bool {
        let paid = self.budget.is_none_or(|b| state.cost + self.cost(j) <= b * (1.0 + 1e-12));
        state.size < self.most && state.counts[j] < self.most_of_one && paid
    }

    fn add(&self, state: &mut State, j: usize, n: isize) {
        state.counts[j] = state.counts[j].saturating_add_signed(n);
        state.size = state.size.saturating_add_signed(n);
        state.cost += n as f64 * self.cost(j);
        state.s += &self.information[j] * n as f64;
    }

    /// What is made large: the criterion, or where costs stand against no budget, its gain for the cost.
    fn score(&self, state: &State) -> f64 {
        let value = self.objective.value(&state.s);
        match (self.costs, self.budget) {
            (Some(_), None) if state.cost > 0.0 => (value - self.objective.value(&self.start)) / state.cost,
            _ => value,
        }
    }

    /// Number of sets, saturating.
    fn n_sets(&self) -> usize {
        let n = self.information.len();
        let pick = |k: usize| -> f64 {
            let (top, k) = if self.most_of_one > 1 { (n + k - 1, k) } else { (n, k) };
            (0..k).map(|i| (top.saturating_sub(i)) as f64 / (i + 1) as f64).product()
        };
        let sizes = if self.budget.is_some() { 0..=self.most.min(64) } else { self.most..=self.most };
        let total: f64 = sizes.map(pick).sum();
        if self.most > 64 || total > MOST_SETS as f64 { usize::MAX } else { total as usize }
    }

    fn all(&self) -> Found {
        let mut best: Option<(f64, Vec<usize>)> = None;
        self.descend(&mut self.empty(), 0, &mut best);
        let counts = best.map_or_else(|| vec![0; self.information.len()], |(_, counts)| counts);
        Found { counts, exhaustive: true }
    }

    fn descend(&self, state: &mut State, from: usize, best: &mut Option<(f64, Vec<usize>)>) {
        let is_whole = self.budget.is_some() || state.size == self.most;
        if is_whole {
            let score = self.score(state);
            if best.as_ref().is_none_or(|(b, _)| score > *b + BETTER) {
                *best = Some((score, state.counts.clone()));
            }
        }
        for j in from..self.information.len() {
            if self.fits(state, j) {
                let kept = state.s.clone();
                self.add(state, j, 1);
                self.descend(state, j, best);
                self.add(state, j, -1);
                // Subtracting would leave rounding behind.
                state.s = kept;
            }
        }
    }

    /// Greedy starts, each improved by exchanges; the best end. `None` where it is not to go on.
    pub(super) fn exchange(&self) -> Option<Found> {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut starts = vec![self.filled(self.empty(), false)?, self.filled(self.empty(), true)?];
        for _ in 0..RANDOM_STARTS {
            starts.push(self.random(&mut rng)?);
        }
        let mut best: Option<State> = None;
        for start in starts {
            let end = self.improved(start)?;
            best = Some(match best {
                Some(best) if end.score <= best.score + BETTER => best,
                _ => end,
            });
        }
        Some(Found { counts: best.map_or_else(Vec::new, |b| b.counts), exhaustive: false })
    }

    fn random(&self, rng: &mut ChaCha8Rng) -> Option<State> {
        let mut state = self.empty();
        let n = self.information.len();
        for _ in 0..4 * self.most.min(1000) {
            let j = rng.random_range(0..n);
            if self.fits(&state, j) {
                self.add(&mut state, j, 1);
            }
        }
        self.filled(state, false)
    }

    /// The set with what gains most added until it is full; by gain for the cost where `by_cost`.
    /// `None` where it is not to go on.
    fn filled(&self, mut state: State, by_cost: bool) -> Option<State> {
        loop {
            if !(self.keep)() {
                return None;
            }
            let here = self.objective.value(&state.s);
            let mut best: Option<(f64, usize)> = None;
            for j in (0..self.information.len()).filter(|&j| self.fits(&state, j)) {
                let gain = self.objective.value(&(&state.s + &self.information[j])) - here;
                let gain = if by_cost || (self.costs.is_some() && self.budget.is_none()) { gain / self.cost(j) } else { gain };
                if best.is_none_or(|(b, _)| gain > b + BETTER) {
                    best = Some((gain, j));
                }
            }
            let Some((_, j)) = best else { break };
            self.add(&mut state, j, 1);
        }
        state.score = self.score(&state);
        Some(state)
    }

    /// The set after all moves that better it; `None` where it is not to go on.
    fn improved(&self, mut state: State) -> Option<State> {
        for _ in 0..MOST_MOVES {
            let Some(better) = self.move_one(&state)? else { break };
            state = better;
        }
        Some(state)
    }

    /// The best set that taking out one trial (or two) and filling up leads to, if it is better; `None` where it is not to go on.
    fn move_one(&self, state: &State) -> Option<Option<State>> {
        let taken: Vec<usize> = (0..state.counts.len()).filter(|&j| state.counts[j] > 0).collect();
        let mut removals: Vec<Vec<usize>> = taken.iter().map(|&j| vec![j]).collect();
        if self.costs.is_some() && state.size <= MOST_PAIRED {
            for (place, &i) in taken.iter().enumerate() {
                let from = if state.counts[i] > 1 { place } else { place + 1 };
                removals.extend(taken[from..].iter().map(|&j| vec![i, j]));
            }
        }
        let after = |removal: &Vec<usize>| {
            let mut rest = self.empty();
            for (j, &n) in state.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
                let gone = removal.iter().filter(|r| **r == j).count();
                self.add(&mut rest, j, (n - gone) as isize);
            }
            self.filled(rest, false)
        };
        let mut best: Option<State> = None;
        for removal in &removals {
            let end = after(removal)?;
            if best.as_ref().is_none_or(|best| end.score > best.score) {
                best = Some(end);
            }
        }
        Some(best.filter(|best| best.score > state.score + BETTER))
    }

    /// Share of the best possible value that the set with `counts` reaches at least; `None` where the criterion has no bound.
    pub(super) fn efficiency(&self, counts: &[usize]) -> Option<f64> {
        if self.costs.is_some() && self.budget.is_none() {
            return None;
        }
        let mut s = self.start.clone();
        counts.iter().zip(self.information).for_each(|(&n, m)| s += m * n as f64);
        let slopes = self.objective.slopes(&s, self.information)?;
        let here: f64 = counts.iter().zip(&slopes).map(|(&n, g)| n as f64 * g).sum();
        Some(self.objective.efficiency(self.most_of(&slopes) - here))
    }

    /// The largest sum of slopes over all sets, numbers of trials taken as real.
    fn most_of(&self, slopes: &[f64]) -> f64 {
        let fractional = |amount: f64, cost: &dyn Fn(usize) -> f64| {
            let mut order: Vec<usize> = (0..slopes.len()).collect();
            order.sort_by(|&a, &b| (slopes[b] / cost(b)).total_cmp(&(slopes[a] / cost(a))));
            let (mut left, mut sum) = (amount, 0.0);
            for j in order {
                let n = (left / cost(j)).min(self.most_of_one as f64);
                sum += n * slopes[j];
                left -= n * cost(j);
            }
            sum
        };
        let by_number = fractional(self.most as f64, &|_| 1.0);
        self.budget.map_or(by_number, |b| by_number.min(fractional(b, &|j| self.cost(j))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random information of rank 2 in three parameters.
    fn candidates(n: usize, seed: u64) -> Vec<DMatrix<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut one = || {
            let rows = DMatrix::from_fn(2, 3, |_, _| rng.random_range(-1.0..1.0));
            rows.transpose() * rows
        };
        (0..n).map(|_| one()).collect()
    }

    fn value(choice: &Choice<'_>, counts: &[usize]) -> f64 {
        let mut s = choice.start.clone();
        counts.iter().zip(choice.information).for_each(|(&n, m)| s += m * n as f64);
        choice.objective.value(&s)
    }

    fn objectives() -> [Objective; 3] {
        let v = nalgebra::DVector::from_row_slice(&[1.0, 0.5, 2.0]);
        [Objective::Determinant, Objective::Variances(v.clone()), Objective::Combination(v)]
    }

    #[test]
    fn exchanges_end_at_the_best_of_all_sets() {
        for (seed, most_of_one) in [(1, 1), (2, 4), (3, 1), (4, 4)] {
            let information = candidates(9, seed);
            for objective in &objectives() {
                let start = DMatrix::identity(3, 3) * 1e-12;
                let choice =
                    Choice { objective, start, information: &information, costs: None, most: 4, budget: None, most_of_one, keep: &|| true };
                let (all, found) = (choice.all(), choice.exchange().unwrap());
                assert_eq!(all.counts.iter().sum::<usize>(), 4);
                assert!((value(&choice, &all.counts) - value(&choice, &found.counts)).abs() < 1e-9, "{seed} {objective:?}");
                let efficiency = choice.efficiency(&all.counts).unwrap();
                assert!((0.0..=1.0).contains(&efficiency), "{efficiency}");
            }
        }
    }

    #[test]
    fn a_budget_is_kept_and_used_as_well_as_can_be() {
        let costs = [1.0, 2.0, 3.0, 1.5, 2.5, 4.0];
        for seed in 5..10 {
            let information = candidates(6, seed);
            let objective = &Objective::Determinant;
            let start = DMatrix::identity(3, 3) * 0.1;
            let choice = Choice {
                objective,
                start,
                information: &information,
                costs: Some(&costs),
                most: 6,
                budget: Some(6.0),
                most_of_one: 1,
                keep: &|| true,
            };
            let (all, found) = (choice.all(), choice.exchange().unwrap());
            let cost: f64 = found.counts.iter().zip(costs).map(|(&n, c)| n as f64 * c).sum();
            assert!(cost <= 6.0 && (value(&choice, &all.counts) - value(&choice, &found.counts)).abs() < 1e-9, "{seed}: {all:?} {found:?}");
        }
    }

    #[test]
    fn the_bound_is_reached_where_one_candidate_is_best_for_ever() {
        // With one parameter the design repeats the candidate of the largest information.
        let information = [1.0, 3.0, 2.0].map(|m| DMatrix::from_element(1, 1, m));
        let objective = &Objective::Determinant;
        let start = DMatrix::from_element(1, 1, 1e-12);
        let choice =
            Choice { objective, start, information: &information, costs: None, most: 5, budget: None, most_of_one: 5, keep: &|| true };
        let found = choice.exchange().unwrap();
        assert_eq!(found.counts, [0, 5, 0]);
        assert!((choice.efficiency(&found.counts).unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_search_ends_when_nobody_waits_for_it() {
        let information = candidates(200, 11);
        let asked = std::cell::Cell::new(0);
        let keep = || asked.replace(asked.get() + 1) < 100;
        let objective = &Objective::Determinant;
        let start = DMatrix::identity(3, 3) * 1e-12;
        let choice =
            Choice { objective, start, information: &information, costs: None, most: 50, budget: None, most_of_one: 50, keep: &keep };
        assert_eq!((choice.best(), asked.get()), (None, 101), "it is asked at every step, and no more after the answer is no");
    }
}
