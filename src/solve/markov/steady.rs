//! The steady state of an irreducible chain: `pi Q = 0`, `sum pi = 1`.
//!
//! Where it is not too much work, the states are eliminated one by one (`direct`). Else the balance equations
//! `pi_j |q_jj| = sum_i pi_i q_ij` are swept over, from one edge of the chain on as its states follow each other (Gauss-Seidel: what flows on in a cycle comes as far as the cycle goes in one sweep), and two
//! corrections are made between the sweeps:
//!
//! - *aggregation* (Takahashi 1975; Koury, McAllister & Stewart 1984): with blocks `B` of neighbouring states, the chain of the
//!   blocks with rates `sum_{i in B, j in C} pi_i q_ij / sum_{i in B} pi_i` is solved and the blocks are given its probabilities;
//!   this moves probability over long ways, which sweeps do slowly; where it leaves more out of balance than there was, it is not made any more (states that are next to each other may be unlike,
//!   as in long cycles, and then it undoes what the others do);
//! - *GMRES* (Saad & Schultz 1986): a sweep is a linear map `G` with the fixed point `pi = G pi`, and `(I - G) d = G x - x` is solved for the
//!   correction `d` of the iterate `x`. `I - G` is singular but consistent, with 1 a simple eigenvalue of `G`, where GMRES
//!   finds a solution (Brown & Walker 1997). A correction that does not lower the residual is not taken.
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `pi` | probabilities of the states | (n) |
//! | `q_ij` | rate from state i to j; `q_jj` minus the sum of the rates out of j | (n, n), sparse |
//!
//! The residual is `sum_j |sum_i pi_i q_ij| / sum_i pi_i |q_ii|`: what is out of balance, as a part of all that flows.

use super::{
    chain::Rows,
    direct::{by_flow, eliminate},
    krylov::Krylov,
};

/// Directions that GMRES keeps before it restarts.
const DIRECTIONS: usize = 20;

/// Plain sweeps after every correction.
const SMOOTHING: usize = 3;

/// Blocks of states that are aggregated.
const BLOCKS: usize = 200;

/// The probabilities of a chain's states, and how they were got.
#[derive(Debug)]
pub(super) struct Steady {
    pub(super) probabilities: Vec<f64>,
    /// Sweeps over the balance equations; 0 where they were eliminated.
    pub(super) sweeps: usize,
    /// Flow out of balance, as a part of all flow.
    pub(super) residual: f64,
}

/// The steady state of an irreducible chain with these rates, to `tolerance` if `max_sweeps` allow it.
pub(super) fn steady_state(rates: &Rows, tolerance: f64, max_sweeps: usize) -> Steady {
    if let Some(probabilities) = eliminate(rates) {
        let residual = Balance::new(rates, &(0..rates.len()).collect::<Vec<_>>()).residual(&probabilities);
        return Steady { probabilities, sweeps: 0, residual };
    }
    iterate(rates, tolerance, max_sweeps)
}

fn iterate(rates: &Rows, tolerance: f64, max_sweeps: usize) -> Steady {
    let order = by_flow(rates);
    let balance = Balance::new(rates, &order);
    #[expect(clippy::cast_precision_loss, reason = "a count of states")]
    let mut x = vec![1.0 / order.len() as f64; order.len()];
    let (mut sweeps, mut aggregates, mut least) = (0, true, f64::INFINITY);
    let residual = loop {
        let mut smoothed = x.clone();
        balance.smooth(&mut smoothed);
        if aggregates {
            balance.aggregate(&mut smoothed);
            balance.smooth(&mut smoothed);
        }
        sweeps += 2 * SMOOTHING;
        let residual = balance.residual(&smoothed);
        if aggregates && residual > least {
            aggregates = false;
            continue;
        }
        x = smoothed;
        if residual <= tolerance || sweeps >= max_sweeps {
            break residual;
        }
        let mut corrected = x.clone();
        sweeps += balance.correct(&mut corrected) + SMOOTHING;
        corrected.iter_mut().for_each(|v| *v = v.abs());
        balance.smooth(&mut corrected);
        let of_corrected = balance.residual(&corrected);
        if of_corrected < residual {
            x = corrected;
        }
        least = residual.min(of_corrected);
    };
    let mut probabilities = vec![0.0; x.len()];
    order.iter().zip(x).for_each(|(&state, v)| probabilities[state] = v);
    Steady { probabilities, sweeps, residual }
}

fn normalize(x: &mut [f64]) {
    let sum: f64 = x.iter().sum();
    x.iter_mut().for_each(|v| *v /= sum);
}

/// The balance equations, each of one state, in an order of the states.
struct Balance {
    incoming: Rows,
    /// Rate out of each state.
    outgoing: Vec<f64>,
}

impl Balance {
    fn new(rates: &Rows, order: &[usize]) -> Self {
        let n = rates.len();
        let mut place = vec![0; n];
        order.iter().enumerate().for_each(|(k, &s)| place[s] = k);
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
        let mut outgoing = vec![0.0; n];
        for i in 0..n {
            for (j, rate) in rates.row(i) {
                columns[place[j]].push((place[i], rate));
                outgoing[place[i]] += rate;
            }
        }
        let mut incoming = Rows::default();
        columns.into_iter().for_each(|column| incoming.push(column));
        Self { incoming, outgoing }
    }

    /// One sweep of Gauss-Seidel.
    fn sweep(&self, x: &mut [f64]) {
        for j in 0..x.len() {
            x[j] = self.incoming.row(j).map(|(i, rate)| x[i] * rate).sum::<f64>() / self.outgoing[j];
        }
    }

    /// A few sweeps of probabilities.
    fn smooth(&self, x: &mut [f64]) {
        (0..SMOOTHING).for_each(|_| self.sweep(x));
        normalize(x);
    }

    fn residual(&self, x: &[f64]) -> f64 {
        let (mut wrong, mut all) = (0.0, 0.0);
        for (j, &v) in x.iter().enumerate() {
            let flow = v * self.outgoing[j];
            wrong += (self.incoming.row(j).map(|(i, rate)| x[i] * rate).sum::<f64>() - flow).abs();
            all += flow;
        }
        if all > 0.0 { wrong / all } else { 0.0 }
    }

    /// Gives blocks of neighbouring states the probabilities of the chain that they make.
    fn aggregate(&self, x: &mut [f64]) {
        let size = x.len().div_ceil(BLOCKS);
        let n_blocks = x.len().div_ceil(size);
        let mut weights = vec![0.0; n_blocks];
        x.iter().enumerate().for_each(|(i, v)| weights[i / size] += v);
        let mut flows = vec![vec![0.0; n_blocks]; n_blocks];
        for j in 0..x.len() {
            self.incoming.row(j).filter(|(i, _)| i / size != j / size).for_each(|(i, rate)| flows[i / size][j / size] += x[i] * rate);
        }
        let mut blocks = Rows::default();
        for (b, row) in flows.iter().enumerate() {
            blocks.push(row.iter().enumerate().filter(|r| *r.1 > 0.0).map(|(c, flow)| (c, flow / weights[b])));
        }
        let Some(blocks) = eliminate(&blocks).filter(|found| found.len() == n_blocks) else { return };
        x.iter_mut().enumerate().for_each(|(i, v)| *v *= blocks[i / size] / weights[i / size]);
    }

    /// Adds the correction that [`DIRECTIONS`] steps of GMRES find; returns the sweeps it took.
    fn correct(&self, x: &mut [f64]) -> usize {
        let mut start = x.to_vec();
        self.sweep(&mut start);
        start.iter_mut().zip(&*x).for_each(|(g, x)| *g -= x);
        let mut krylov = Krylov::new(start);
        while krylov.size() < DIRECTIONS && krylov.extend(|v| self.sweep(v)) {}
        krylov.add_solution(x);
        krylov.size() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring with shortcuts, its rates over several powers of ten.
    fn ring(n: usize) -> Rows {
        let mut rates = Rows::default();
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let rate = |i: usize| 10.0_f64.powf(((i * 7919) % 13) as f64 / 4.0 - 1.5);
        for i in 0..n {
            let links = [((i + 1) % n, rate(i)), ((i + n - 3) % n, rate(i + 5)), ((i * 31 + 7) % n, 0.01 * rate(i + 2))];
            rates.push(links.into_iter().filter(|link| link.0 != i));
        }
        rates
    }

    #[test]
    fn birth_and_death_has_its_closed_form() {
        let mut rates = Rows::default();
        rates.push([(1, 2.0)]);
        rates.push([(2, 2.0), (0, 3.0)]);
        rates.push([(1, 3.0)]);
        let x = steady_state(&rates, 1e-14, 100).probabilities;
        for (got, want) in x.iter().zip([9.0 / 19.0, 6.0 / 19.0, 4.0 / 19.0]) {
            assert!((got - want).abs() < 1e-15, "{x:?}");
        }
    }

    /// Two queues in series before a saturated one that holds `n`: probability moves slowly.
    fn queue(n: usize) -> Rows {
        let number = |a: usize, b: usize, c: usize| (a * 3 + b) * n + c;
        let mut rates = Rows::default();
        for (a, b, c) in (0..3).flat_map(|a| (0..3).flat_map(move |b| (0..n).map(move |c| (a, b, c)))) {
            let mut row = Vec::new();
            if a < 2 {
                row.push((number(a + 1, b, c), 1.0));
            }
            if a > 0 && b < 2 {
                row.push((number(a - 1, b + 1, c), 1.5));
            }
            if b > 0 && c + 1 < n {
                row.push((number(a, b - 1, c + 1), 1.5));
            }
            if c > 0 {
                row.push((number(a, b, c - 1), 0.8));
            }
            rates.push(row);
        }
        rates
    }

    #[test]
    fn sweeps_find_what_elimination_finds() {
        for rates in [ring(251), ring(700), queue(70)] {
            let exact = eliminate(&rates).unwrap();
            let steady = iterate(&rates, 1e-14, 5000);
            assert!(steady.sweeps > 0 && steady.residual <= 1e-14, "{} {}", steady.sweeps, steady.residual);
            for (got, want) in steady.probabilities.iter().zip(&exact) {
                assert!((got - want).abs() <= 1e-9 * want + 1e-14, "{got} {want}");
            }
        }
    }

    #[test]
    fn too_few_sweeps_leave_a_residual_and_say_so() {
        let steady = iterate(&queue(70), 1e-14, 6);
        assert!(steady.residual > 1e-6, "{}", steady.residual);
    }

    #[test]
    fn a_single_state_is_certain() {
        let mut rates = Rows::default();
        rates.push([]);
        assert_eq!(steady_state(&rates, 1e-12, 10).probabilities, [1.0]);
    }
}
