//! The first guess of what a customer less leaves, before the Linearizer has solved the network without one.
//!
//! At a station that customers of one class come to, and none of whose services goes on after the reply, all else that they do is taken as
//! a delay: they are the `K` sources of a machine-repair queue at the number that is there ([`super::busy`]); of a pool, with the services
//! of its crowd ([`super::crowd`]). Then, of waiting and of service,
//!
//! ```text
//! Q_b(N - 1_c) / Q_b(N) = 1 - d_b ρ_b(c) / N_c
//! ```
//!
//! with `d` of [`super::busy`] (`there`). Of stations that only the threads of such a pool visit, what they have there is known by the
//! number of busy ones ([`super::pool`]): the `K` sources, and one less, keep more or fewer of them busy. Elsewhere `d` is 1 (Schweitzer
//! 1979). The Linearizer's only round starts from solutions with these, and what it finds is as wrong as they are: of 20 threads before a
//! core of their own at 50 customers the queue before the threads, which is hardly ever there, had 14 requests in place of .1, and the
//! response time was 10 % too long; it is .3.
//!
//! | symbol | is |
//! |---|---|
//! | `Q_b` | requests of arc `b` waiting, or in service |
//! | `ρ_b(c)`, `N_c` | share of `b`'s flow that customers of class `c` wait for, and their number |
//! | `d_b` | `busy::Lost` |

use super::{Crowds, Layout, Sweep, crowd::Come};
use crate::model::Scalar;

/// Finds what a customer less leaves at stations; `found` is where it was found last, by station.
pub(in super::super) fn find_lost<S: Scalar>(sweep: &Sweep<'_, S>, layouts: &[Layout], crowds: &mut Crowds<S>, found: &mut [Option<f64>]) {
    for ((station, layout), found) in layouts.iter().enumerate().zip(found) {
        let servers = sweep.net.stations[station].servers;
        let sources = layout.sources(sweep);
        if servers < sources && layout.is_guessed(sweep, sources) {
            let of_arc = |&a: &usize| sweep.flow.arc_rate[a] * (sweep.unknowns[a] + sweep.service(a).1);
            let there = layout.arcs.iter().map(of_arc).fold(S::from(0.0), |sum, there| sum + there);
            crowds.find_lost(station, servers, Come { sources, there, found });
        }
    }
}
