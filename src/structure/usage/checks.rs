//! Is the next service chosen by the present one alone, and what must come before what?
//!
//! ```text
//! χ² = Σ_j Σ_ik (n_ijk - n_ij· n_·jk / n_·j·)² / (n_ij· n_·jk / n_·j·)       dof = Σ_j (rows_j - 1)(columns_j - 1)
//! w  = √(χ² / Σ_j n_·j·)                                                      the size of the effect (Cohen 1988)
//! ```
//!
//! n_ijk is how often k (a service or Exit) followed j after i (a service or the start). Rows and columns with fewer than
//! 25 cases are taken together. The assumption is said to fail where p < 0.01 and w > 0.1, the least effect that is called
//! small and not none: with many sessions even a departure that does not matter is significant.
//!
//! Candidates for guards: of the sessions with service B (at least 20), the part in which A came before the first B, if
//! that is at least 0.99 and A is not the first service of all of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::summary::{KeptSession, Step};
use crate::trace::names::Names;

const FEWEST_CASES: f64 = 25.0;
const FEWEST_SESSIONS: u64 = 20;
const SUPPORT: f64 = 0.99;
const SIGNIFICANT: f64 = 0.01;
/// Cohen's small effect.
const MATTERS: f64 = 0.1;

/// Whether sessions behave as a first-order chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderCheck {
    /// χ² of two-step frequencies.
    pub chi_squared: f64,
    /// Degrees of freedom; 0 where there was too little to compare.
    pub dof: u64,
    /// Probability of at least this χ² in a first-order chain; 1 with no degrees of freedom.
    pub p_value: f64,
    /// Size of the effect w, ≥ 0.
    pub effect_size: f64,
    /// Whether the assumption stands.
    pub holds: bool,
}

/// A service that seems to need another before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardCandidate {
    /// The service.
    pub service: String,
    /// What came before its first visit.
    pub requires: String,
    /// Part of the sessions with the service.
    pub support: f64,
    /// Number of those sessions.
    pub n_sessions: u64,
}

/// Checks two-step frequencies of weighted sessions.
pub(super) fn order_check<'s>(sessions: impl Iterator<Item = (&'s KeptSession, f64)>) -> OrderCheck {
    let mut tables: BTreeMap<u32, BTreeMap<Step, f64>> = BTreeMap::new();
    for (session, weight) in sessions {
        for (at, service) in session.services.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| session.services[at]);
            let after = session.services.get(at + 1).copied();
            *tables.entry(*service).or_default().entry((before, after)).or_insert(0.0) += weight;
        }
    }
    let (mut chi_squared, mut dof, mut cases) = (0.0, 0, 0.0);
    for table in tables.values() {
        let (chi, rows, columns, n) = contingency(table);
        if rows > 1 && columns > 1 {
            chi_squared += chi;
            dof += ((rows - 1) * (columns - 1)) as u64;
            cases += n;
        }
    }
    let p_value = ChiSquared::new(dof as f64).map_or(1.0, |law| law.sf(chi_squared));
    let effect_size = if cases > 0.0 { (chi_squared / cases).sqrt() } else { 0.0 };
    OrderCheck { chi_squared, dof, p_value, effect_size, holds: !(p_value < SIGNIFICANT && effect_size > MATTERS) }
}

/// A row or column of its own, or the rare ones.
type Group = Option<Option<u32>>;

/// χ², rows, columns and cases of a table, rare rows and columns taken together.
fn contingency(table: &BTreeMap<Step, f64>) -> (f64, usize, usize, f64) {
    let totals = |key: fn(&Step) -> Option<u32>| {
        let mut totals: BTreeMap<Option<u32>, f64> = BTreeMap::new();
        table.iter().for_each(|(step, n)| *totals.entry(key(step)).or_insert(0.0) += n);
        totals
    };
    let (rows, columns) = (totals(|step| step.0), totals(|step| step.1));
    let group = |totals: &BTreeMap<Option<u32>, f64>, key: Option<u32>| (totals[&key] >= FEWEST_CASES).then_some(key);
    let mut cells: BTreeMap<(Group, Group), f64> = BTreeMap::new();
    for ((before, after), n) in table {
        *cells.entry((group(&rows, *before), group(&columns, *after))).or_insert(0.0) += n;
    }
    let mut row_sums: BTreeMap<_, f64> = BTreeMap::new();
    let mut column_sums: BTreeMap<_, f64> = BTreeMap::new();
    for ((row, column), n) in &cells {
        *row_sums.entry(*row).or_insert(0.0) += n;
        *column_sums.entry(*column).or_insert(0.0) += n;
    }
    let total: f64 = row_sums.values().sum();
    let mut chi = 0.0;
    for (row, row_sum) in &row_sums {
        for (column, column_sum) in &column_sums {
            let expected = row_sum * column_sum / total;
            let seen = cells.get(&(*row, *column)).copied().unwrap_or(0.0);
            chi += if expected > 0.0 { (seen - expected).powi(2) / expected } else { 0.0 };
        }
    }
    (chi, row_sums.len(), column_sums.len(), total)
}

/// Services that others nearly always come before.
pub(super) fn guard_candidates(sessions: &[&KeptSession], services: &Names) -> Vec<GuardCandidate> {
    let mut with: BTreeMap<u32, u64> = BTreeMap::new();
    let mut before: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for session in sessions {
        let mut seen: Vec<u32> = Vec::new();
        for service in &session.services {
            if seen.contains(service) {
                continue;
            }
            *with.entry(*service).or_insert(0) += 1;
            for earlier in &seen {
                let counts = before.entry((*service, *earlier)).or_insert((0, 0));
                counts.0 += 1;
                counts.1 += u64::from(session.services.first() == Some(earlier));
            }
            seen.push(*service);
        }
    }
    let candidate = |((service, requires), (n, as_first)): ((u32, u32), (u64, u64))| {
        let n_sessions = with.get(&service).copied().unwrap_or(0);
        let support = n as f64 / n_sessions.max(1) as f64;
        (n_sessions >= FEWEST_SESSIONS && support >= SUPPORT && as_first < n).then(|| GuardCandidate {
            service: services.name(service).to_owned(),
            requires: services.name(requires).to_owned(),
            support,
            n_sessions,
        })
    };
    before.into_iter().filter_map(candidate).collect()
}
