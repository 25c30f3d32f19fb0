//! How many are there at most in a chain whose levels are how many are there.

use std::ops::Range;

use super::sources::{count, number};

/// A level that seems to be reached with less than the `least` chance beside the likeliest one of those at which all servers are busy, or the last: as so many
/// sources of one kind reach it that are served for `odds` of the time that they are away.
pub(super) fn last_level(sources: f64, odds: f64, servers: usize, least: f64) -> usize {
    // The likeliest: with one more there than `N - m/odds`, more go than come.
    let likeliest = (sources + 1.0 - count(servers) / odds).floor();
    let (mut n, mut chance) = (likeliest.max(count(servers)).min(sources), 1.0);
    while n < sources && chance > least {
        n += 1.0;
        chance *= (sources - n + 1.0) * odds / count(servers);
    }
    number(n)
}

/// The chance that so many are there when all servers are busy, of `levels` that begin at such states, each of such a weight.
pub(super) fn chance(levels: &[usize], servers: usize, level: usize, weight: impl Fn(usize) -> f64) -> f64 {
    let of_states = |states: Range<usize>| states.map(&weight).sum::<f64>();
    of_states(levels[level]..levels[level + 1]) / of_states(levels[servers.min(level)]..levels[levels.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Machine repair: `p(n) ∝ N!/(N-n)! x^n / Π min(j, m)`.
    #[test]
    fn levels_beyond_the_last_have_next_to_no_chance() {
        let (sources, odds, servers, least) = (60.0, 0.05, 2, 1e-8);
        let mut chances = vec![1.0];
        while chances.len() <= 60 {
            let n = count(chances.len());
            chances.push(chances[chances.len() - 1] * (sources - n + 1.0) * odds / n.min(2.0));
        }
        let levels: Vec<usize> = (0..=61).collect();
        let of = |level: usize| chance(&levels, servers, level, |state| chances[state]);
        let last = last_level(sources, odds, servers, least);
        let likeliest = (servers..=60).map(of).fold(0.0, f64::max);
        assert!(last < 60 && of(last) <= least * likeliest && of(last - 1) > least * likeliest, "{last}: {} {likeliest}", of(last));
        assert!(((servers..=60).map(of).sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(last_level(5.0, 3.0, 2, least), 5);
        // Nearly all of so many are there, however unlikely that seems beside as many as there are servers.
        assert_eq!(last_level(4e9, 3.0, 2, least), 4_000_000_000);
    }
}
