//! The steady state of an irreducible chain: `pi Q = 0`, `sum pi = 1`.
//!
//! Few states are eliminated one by one by the method of Grassmann, Taksar and Heyman (1985), which subtracts nothing and so
//! loses no digit. For more, the balance equations `pi_j |q_jj| = sum_i pi_i q_ij` are swept over in the order of the states
//! (Gauss-Seidel). A sweep is a linear map `G` with the fixed point `pi = G pi`; `(I - G) d = G x - x` is solved for the
//! correction `d` of an iterate `x` by restarted GMRES (Saad & Schultz 1986), which is Gauss-Seidel as the preconditioner of a
//! Krylov method. `I - G` is singular but consistent, with 1 a simple eigenvalue of `G`, where GMRES finds a solution (Brown &
//! Walker 1997). Plain sweeps between the restarts keep the iterate positive.
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `pi` | probabilities of the states | (n) |
//! | `q_ij` | rate from state i to j; `q_jj` minus the sum of the rates out of j | (n, n), sparse |
//! | `m` | directions before a restart | 20 |
//!
//! The residual is `sum_j |sum_i pi_i q_ij| / sum_i pi_i |q_ii|`: what is out of balance, as a part of all that flows.

use super::chain::Rows;

/// Chains of at most this many states are solved by elimination.
const ELIMINATION_LIMIT: usize = 250;

/// Directions that GMRES keeps before it restarts.
const DIRECTIONS: usize = 20;

/// Plain sweeps after every restart.
const SMOOTHING: usize = 3;

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
    let balance = Balance::new(rates);
    if rates.len() <= ELIMINATION_LIMIT {
        let probabilities = eliminate(rates);
        return Steady { residual: balance.residual(&probabilities), probabilities, sweeps: 0 };
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of states")]
    let mut x = vec![1.0 / rates.len() as f64; rates.len()];
    let mut sweeps = 0;
    loop {
        for _ in 0..SMOOTHING {
            balance.sweep(&mut x);
        }
        normalize(&mut x);
        sweeps += SMOOTHING;
        let residual = balance.residual(&x);
        if residual <= tolerance || sweeps >= max_sweeps {
            return Steady { probabilities: x, sweeps, residual };
        }
        sweeps += balance.correct(&mut x);
        x.iter_mut().for_each(|v| *v = v.abs());
    }
}

fn normalize(x: &mut [f64]) {
    let sum: f64 = x.iter().sum();
    x.iter_mut().for_each(|v| *v /= sum);
}

/// Elimination of the states from the last to the first.
fn eliminate(rates: &Rows) -> Vec<f64> {
    let n = rates.len();
    let mut q = vec![vec![0.0; n]; n];
    for (i, row) in q.iter_mut().enumerate() {
        rates.row(i).for_each(|(j, rate)| row[j] = rate);
    }
    for k in (1..n).rev() {
        let out: f64 = q[k][..k].iter().sum();
        let (above, last) = q.split_at_mut(k);
        for row in above.iter_mut().filter(|row| row[k] > 0.0) {
            row[k] /= out;
            let part = row[k];
            row[..k].iter_mut().zip(&last[0][..k]).for_each(|(a, b)| *a += part * b);
        }
    }
    let mut x = vec![0.0; n];
    x[0] = 1.0;
    for k in 1..n {
        x[k] = (0..k).map(|i| x[i] * q[i][k]).sum();
    }
    normalize(&mut x);
    x
}

/// The balance equations, by the state whose balance it is.
struct Balance {
    incoming: Rows,
    /// Rate out of each state.
    outgoing: Vec<f64>,
}

impl Balance {
    fn new(rates: &Rows) -> Self {
        let n = rates.len();
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
        let mut outgoing = vec![0.0; n];
        for i in 0..n {
            for (j, rate) in rates.row(i) {
                columns[j].push((i, rate));
                outgoing[i] += rate;
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

    fn residual(&self, x: &[f64]) -> f64 {
        let (mut wrong, mut all) = (0.0, 0.0);
        for (j, &v) in x.iter().enumerate() {
            let flow = v * self.outgoing[j];
            wrong += (self.incoming.row(j).map(|(i, rate)| x[i] * rate).sum::<f64>() - flow).abs();
            all += flow;
        }
        if all > 0.0 { wrong / all } else { 0.0 }
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

/// Arnoldi's basis for `I - G` with its least-squares problem, kept triangular by rotations.
struct Krylov {
    basis: Vec<Vec<f64>>,
    /// Columns of the triangular matrix.
    columns: Vec<Vec<f64>>,
    rotations: Vec<(f64, f64)>,
    /// Rotated right-hand side.
    target: Vec<f64>,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Krylov {
    fn new(mut start: Vec<f64>) -> Self {
        let length = dot(&start, &start).sqrt();
        if length > 0.0 {
            start.iter_mut().for_each(|v| *v /= length);
        }
        Self { basis: vec![start], columns: Vec::new(), rotations: Vec::new(), target: vec![length] }
    }

    /// Directions whose image is known.
    fn size(&self) -> usize {
        self.columns.len()
    }

    /// Adds a direction; false when there is none left.
    fn extend(&mut self, apply: impl Fn(&mut Vec<f64>)) -> bool {
        const EXHAUSTED: f64 = 1e-14;
        let k = self.columns.len();
        let mut image = self.basis[k].clone();
        apply(&mut image);
        image.iter_mut().zip(&self.basis[k]).for_each(|(g, v)| *g = v - *g);
        let before = dot(&image, &image).sqrt();
        let mut column = Vec::with_capacity(k + 1);
        for direction in &self.basis {
            let part = dot(&image, direction);
            image.iter_mut().zip(direction).for_each(|(w, v)| *w -= part * v);
            column.push(part);
        }
        let length = dot(&image, &image).sqrt();
        for (i, &(c, s)) in self.rotations.iter().enumerate() {
            (column[i], column[i + 1]) = (c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]);
        }
        let radius = column[k].hypot(length);
        if radius <= EXHAUSTED * before || radius == 0.0 {
            return false;
        }
        let (c, s) = (column[k] / radius, length / radius);
        column[k] = radius;
        self.rotations.push((c, s));
        self.target.push(-s * self.target[k]);
        self.target[k] *= c;
        self.columns.push(column);
        if length <= EXHAUSTED * before {
            return false;
        }
        image.iter_mut().for_each(|w| *w /= length);
        self.basis.push(image);
        true
    }

    /// Adds the combination of the directions that leaves least of the right-hand side.
    fn add_solution(&self, x: &mut [f64]) {
        let mut weights = self.target[..self.size()].to_vec();
        for k in (0..weights.len()).rev() {
            weights[k] /= self.columns[k][k];
            let weight = weights[k];
            weights[..k].iter_mut().zip(&self.columns[k]).for_each(|(w, c)| *w -= weight * c);
        }
        for (weight, direction) in weights.iter().zip(&self.basis) {
            x.iter_mut().zip(direction).for_each(|(x, v)| *x += weight * v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Customers at two queues in a ring with a shared state of speed, `n` states with rates over several powers of ten.
    fn ring(n: usize) -> Rows {
        let mut rates = Rows::default();
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let rate = |i: usize| 10.0_f64.powf(((i * 7919) % 13) as f64 / 4.0 - 1.5);
        for i in 0..n {
            rates.push([((i + 1) % n, rate(i)), ((i + n - 3) % n, rate(i + 5)), ((i * 31 + 7) % n, 0.01 * rate(i + 2))]);
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

    #[test]
    fn sweeps_find_what_elimination_finds() {
        for n in [251, 700] {
            let rates = ring(n);
            let exact = eliminate(&rates);
            let steady = steady_state(&rates, 1e-14, 5000);
            assert!(steady.sweeps > 0 && steady.residual <= 1e-14, "{} {}", steady.sweeps, steady.residual);
            for (got, want) in steady.probabilities.iter().zip(&exact) {
                assert!((got - want).abs() <= 1e-10 * want, "{got} {want}");
            }
        }
    }

    #[test]
    fn too_few_sweeps_leave_a_residual_and_say_so() {
        let steady = steady_state(&ring(700), 1e-14, 6);
        assert!(steady.residual > 1e-14);
    }

    #[test]
    fn a_single_state_is_certain() {
        let mut rates = Rows::default();
        rates.push([]);
        assert_eq!(steady_state(&rates, 1e-12, 10).probabilities, [1.0]);
    }
}
