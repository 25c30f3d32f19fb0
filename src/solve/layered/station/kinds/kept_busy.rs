//! How busy sources keep a processor that is all they share.
//!
//! One server is idle while nobody is there, and whoever waits for a task whose threads are there alone waits for the server
//! ([`super::super::customers`]). So of customers that do nothing else but think, the share `U` of time that the server is busy hardly
//! depends on who waits where: it is that of the chain of the kinds ([`super`]). Equations of mean values find who waits for a thread
//! and who waits for the server apart, as if the one could happen while the other does not, and count such times twice: of seven
//! customers who are all but always at one core, .19 of it was idle. With `L` that wait of `N` sources, `ψ` at the station goes on to
//!
//! ```text
//! ψ ← ψ (1 + (U°/U - 1) N/L)          U° in the network
//! ```
//!
//! until `U° = U`, where some of the sources wait ([`WAIT`]), and some for the server ([`HERE`]), of however many that wait for
//! threads: by so much longer waits, with the rest as it is, it is as busy. How the wait is shared is left to the network, where who is
//! served next is known. Of demands that are not exponential nothing is corrected.

use super::{
    super::super::{
        flow::Flow,
        net::{Discipline, Net},
    },
    WAITS, apart_of,
    by_source::{Classes, by_source},
    ratio::{Known, busy_with},
    sources::ramp,
};
use crate::model::Scalar;

/// The least part of a wait that is left by one correction.
const LEAST_LEFT: f64 = 0.5;
/// Sources that wait for the server itself, over what it serves: up to the one nothing is corrected, from the other in full.
const HERE: [f64; 2] = [0.02, 0.1];
/// Shares of the sources that wait, likewise: what so few change is not worth another solution of the network.
const WAIT: [f64; 2] = [0.02, 0.06];

/// How far `ψ` of what comes to a station is from what it is to be, as a logarithm; none where no chain of all sources tells it.
pub(super) fn far_from_busy<S: Scalar>(
    net: &Net<S>,
    solved: (&Flow<S>, &[S]),
    classes: Classes<'_, S>,
    caps: &[f64],
    station: usize,
) -> Option<S> {
    let (it, layout) = (&net.stations[station], &classes.layouts[station]);
    let is_exponential = |&node: &usize| net.nodes[node].cvsq.value() == 1.0;
    if it.discipline != Discipline::Fcfs || it.servers != 1.0 || !layout.groups.iter().all(is_exponential) {
        return None;
    }
    let sources = layout.sources_apart(net, caps).filter(|_| layout.are_nowhere_else)?;
    let visitors = by_source(net, solved, classes, (caps, sources), station)?;
    let numbers = visitors.sources(net, caps);
    let mut known = Known::nothing();
    let zero = S::from(0.0);
    let (mut then, mut now, mut there) = (zero, zero, zero);
    for (mine, pool) in visitors.pools.iter().enumerate() {
        then += pool.busy * busy_with(apart_of(&visitors.pools, &numbers, mine), &mut known)?;
        now += pool.busy;
        there += pool.there;
    }
    let (then, waiting) = (then / now, there - now);
    let all: f64 = numbers.iter().sum();
    let left = (now / then - 1.0) * all / waiting + 1.0;
    let left = if left > LEAST_LEFT { left } else { S::from(LEAST_LEFT) };
    // Waits for threads follow those for the server, where there are any.
    let here = it.arcs.iter().fold(zero, |sum, &arc| sum + solved.0.arc_rate[arc] * solved.1[arc]);
    let far = left.ln() * ramp(waiting / there, WAITS) * ramp(here / now, HERE) * ramp(waiting / all, WAIT);
    far.value().is_finite().then_some(far)
}
