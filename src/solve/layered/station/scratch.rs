//! Room for the work at one station, kept from one to the next.

use super::{
    follows::Followed,
    left_behind::Found,
    makes_way::Begun,
    messages::{Outlines, Room},
    parts::Parts,
    replied::Way,
    since::Absences,
    visit::{Inside, Visit},
};
use crate::model::Scalar;

/// What a station's work needs and leaves; by row, arc or pool of the one at hand where nothing else is said.
#[derive(Debug)]
pub(in super::super) struct Scratch<S> {
    pub(super) visits: Vec<Visit<S>>,
    /// `K` of those who wait, `rows × arcs`.
    pub(super) keep: Vec<S>,
    /// The same of those in service.
    pub(super) served: Vec<S>,
    /// Where the waits come from: `W_row = Σ_x (α_x W_x + β_x) + own`.
    pub(super) alpha: Vec<S>,
    pub(super) beta: Vec<S>,
    /// The parts of both that are the own thread's other strands.
    pub(super) alpha_own: Vec<S>,
    pub(super) beta_own: Vec<S>,
    /// Second phases that the arrival's own thread left behind, and service to more urgent ones.
    pub(super) own: Vec<S>,
    /// Load in service that a row sees of an arc.
    pub(super) load: Vec<S>,
    /// Of that of all, second phases.
    pub(super) late: Vec<S>,
    /// Waits of the rows.
    pub(super) wait: Vec<S>,
    /// What each arc adds to the wait of a row: `α W + β`.
    pub(super) caused: Vec<S>,
    /// The same, of each processor; empty where nobody waits.
    pub caused_at: Vec<Vec<S>>,
    /// What the waits at each station are made of.
    pub parts_at: Vec<Parts<S>>,
    /// Requests of a thread of each pool in each row, a unit of time.
    pub(super) weights: Vec<S>,
    pub(super) without: Vec<S>,
    /// `K'` of each group, by arc.
    pub(super) apart: Vec<S>,
    /// `K' B` of the group at hand, by arc.
    pub(super) kept: Vec<S>,
    pub(super) groups: Vec<Inside<S>>,
    /// `φ` of what is served of each row ([`super::scarce`]).
    pub(super) scarcity: Vec<S>,
    /// `B` of each pool, for the row at hand.
    pub(super) boosts: Vec<S>,
    /// `F` of each pool, for the row at hand; empty where it is 1.
    pub(super) unmet: Vec<S>,
    /// Requests that wait for each unit of `α`, by arc ([`super::servers`]).
    pub(super) queues: Vec<S>,
    /// `c_n` of the row at hand.
    pub(super) coming: Vec<S>,
    /// Room for the terms of sums.
    pub(super) terms: Vec<S>,
    pub(super) absences: Absences<S>,
    pub(super) found: Found<S>,
    /// What slices find of what their own request sent, `rows × arcs`; empty where nothing is sent to. And what they wait for those of them that wait at several servers, by row.
    pub(super) messages: Vec<S>,
    pub(super) messages_wait: Vec<S>,
    pub(super) course: Room<S>,
    pub(super) outlines: Outlines<S>,
    /// Of each place, whether something is there that goes on for a request without it.
    pub(super) goes_on: Vec<bool>,
    pub(super) followed: Followed<S>,
    /// `w` of each reply ([`super::replied`]), and what rows found without them.
    pub(super) after_replies: Vec<S>,
    pub(super) found_before: Vec<S>,
    pub(super) ways: Vec<Way<S>>,
    /// `p`, by row, and `e` of each ([`super::makes_way`]).
    pub(super) begun: Vec<Begun<S>>,
    pub(super) from_elsewhere: Vec<S>,
    /// Where the chances to wait were found last ([`super::busy`]), by their places among the unknowns, and then the numbers of busy servers, and
    /// of all that are there, by station.
    pub last_found: Vec<Option<f64>>,
}

impl<S: Scalar> Scratch<S> {
    /// Room for a network of so many unknowns, stations and, among these, processors.
    pub fn new(n_unknowns: usize, n_stations: usize, n_processors: usize) -> Self {
        Self {
            visits: Vec::new(),
            keep: Vec::new(),
            served: Vec::new(),
            alpha: Vec::new(),
            beta: Vec::new(),
            alpha_own: Vec::new(),
            beta_own: Vec::new(),
            own: Vec::new(),
            load: Vec::new(),
            late: Vec::new(),
            wait: Vec::new(),
            caused: Vec::new(),
            caused_at: std::iter::repeat_with(Vec::new).take(n_processors).collect(),
            parts_at: std::iter::repeat_with(Parts::none).take(n_stations).collect(),
            weights: Vec::new(),
            kept: Vec::new(),
            without: Vec::new(),
            apart: Vec::new(),
            groups: Vec::new(),
            scarcity: Vec::new(),
            boosts: Vec::new(),
            unmet: Vec::new(),
            queues: Vec::new(),
            coming: Vec::new(),
            terms: Vec::new(),
            absences: Absences::new(),
            found: Found::new(),
            messages: Vec::new(),
            messages_wait: Vec::new(),
            course: Room::new(),
            outlines: Outlines::default(),
            goes_on: Vec::new(),
            after_replies: Vec::new(),
            found_before: Vec::new(),
            ways: Vec::new(),
            begun: Vec::new(),
            from_elsewhere: Vec::new(),
            followed: Followed::new(n_processors),
            last_found: vec![None; n_unknowns + 2 * n_stations],
        }
    }
}
