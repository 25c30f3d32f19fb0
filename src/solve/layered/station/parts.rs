//! What a row's wait is made of, kept after a sweep to see where it leads.
//!
//! ```text
//! W_b = Σ_x (α_bx f_x W_x + β_bx g_x) + own_b
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `α`, `β`, `own` | the parts that the sweep found at a station, between rows `b` and arcs `x` |
//! | `f` | by how much what is served for requests that wait has grown since: `λ s` |
//! | `g` | the same of the rests of services: `λ s²` |

use super::Layout;
use crate::model::Scalar;

/// The parts of the waits at one station; none where nobody waits.
#[derive(Clone, Debug)]
pub(in super::super) struct Parts<S> {
    alpha: Vec<S>,
    beta: Vec<S>,
    own: Vec<S>,
    /// `f W` and `g` of the arcs.
    waiting: Vec<S>,
    rests: Vec<S>,
    wait: Vec<S>,
}

impl<S: Scalar> Parts<S> {
    pub fn none() -> Self {
        Self { alpha: Vec::new(), beta: Vec::new(), own: Vec::new(), waiting: Vec::new(), rests: Vec::new(), wait: Vec::new() }
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.own.clear();
    }

    /// Takes those of a sweep.
    pub fn take(&mut self, alpha: &[S], beta: &[S], own: &[S]) {
        for (kept, part) in [(&mut self.alpha, alpha), (&mut self.beta, beta), (&mut self.own, own)] {
            part.clone_into(kept);
        }
    }

    /// Sets the `waits` of the station's arcs to what follows from them, with `f` and `g` of each arc.
    pub fn follow(&mut self, layout: &Layout, factors: impl Fn(usize) -> (S, S), waits: &mut [S]) {
        if self.own.is_empty() {
            return;
        }
        self.waiting.clear();
        self.rests.clear();
        for &arc in &layout.arcs {
            let (f, g) = factors(arc);
            self.waiting.push(waits[arc] * f);
            self.rests.push(g);
        }
        let n = layout.arcs.len();
        self.wait.clear();
        for (row, &own) in self.own.iter().enumerate() {
            let terms = row * n..(row + 1) * n;
            let of_waiting = self.alpha[terms.clone()].iter().zip(&self.waiting);
            let of_rests = self.beta[terms].iter().zip(&self.rests);
            let caused = |sum, (&part, &factor): (&S, &S)| sum + part * factor;
            self.wait.push(of_rests.fold(of_waiting.fold(own, caused), caused));
        }
        for (&arc, &row) in layout.arcs.iter().zip(&layout.row_of) {
            waits[arc] = self.wait[row];
        }
    }
}
