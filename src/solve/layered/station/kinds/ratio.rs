//! How much longer those of either kind wait than by equations of mean values: `ψ`, from the chain of who is there.
//!
//! A single server before few sources has the chain of [`super::chain`], others that of [`super::moments`]. With `L(j)` waiting and `U(j)` in service of kind
//! `j`, of the chain and, as `L⁻` and `U⁻`, of that with one of kind `a` less, the waits before `m` servers are, and would be by equations of mean values,
//!
//! ```text
//! W_a  = L(a) s_a/U(a)
//! W_a° = [Σ_j s_j L⁻(j) + Π/û Σ_j U⁻(j) ((1 - r_a) (y_a + s̄) s_j/(y_a + s_j) + r_a s̄)]/m        s̄ the mean service, û = Σ_j U⁻(j)
//! ψ_a  = W_a/W_a°
//! ```
//!
//! and, of one kind of sources whose services are of two lengths `j` ([`mixed`]), with one source less, the same for `W = Σ_j L(j)/Σ_j (U(j)/s_j)`; each
//! with the chance `Π` that all servers are busy, as it is found from the load ([`super::super::servers`]; `û` of one server), or, at cores that a pool of more
//! threads has for itself, from how many are there ([`super::super::pool`]).
//!
//! Chains of too many states are solved with fewer sources, in the same proportion and with times away shorter by as much, twice: how `ψ - 1` falls from
//! the fewer to the more, as a power of their number, is taken to go on. Servers are not fewer then; where they are too many for that, `ψ` is 1.

use num_traits::clamp;

use super::{
    super::{
        busy::{Sources, all_busy, chances_of_there},
        unlike::{self, Pool},
    },
    chain,
    mixed::{self, Mixed},
    moments,
    sources::{Kind, There, of_sources, plain, ramp},
};
use crate::model::Scalar;

/// Most products of an elimination in which those who wait are told apart.
const MOST_WORK: f64 = 20_000.0;
/// The same, where they are known in the mean.
const MOST_WORK_OF_MEANS: f64 = 250_000.0;
/// The same, of one kind of sources.
const MOST_WORK_OF_MIXED: f64 = 500_000.0;
/// Part of it that the chain of still fewer sources may take.
const LESS_WORK: f64 = 0.4;
/// Sources of a kind that are not left out.
const LAST_SOURCES: f64 = 3.0;
/// The most that are left out.
const LEAST_PART: f64 = 1e-7;
/// Sources are no fewer than so many times the servers.
const LEAST_OF_A_SERVER: f64 = 2.0;
/// What sources change is less by this power of their number at most.
const MOST_POWER: f64 = 2.0;
/// Waits shorter than this part of a service are as short by mean values.
const LEAST_WAIT: f64 = 1e-7;
/// Bounds on `ψ`: where next to nothing of a kind is served its waits have no number.
pub(super) const RATIOS: [f64; 2] = [1e-6, 1e60];
/// Times away are no shorter than this part of a service.
const SHORTEST_AWAY: f64 = 1e-6;
/// Logarithms of the ratio of services: up to the one they are as good as alike, from the other they count in full.
const UNLIKE: [f64; 2] = [0.05, 0.3];

/// Chains of a station that are solved, of one network: those of the same kinds have the same slopes.
#[derive(Clone, Debug)]
pub(super) struct Known<S, A = Asked, const K: usize = 2>(Vec<(A, Option<There<S, K>>)>);

/// What a chain is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Asked {
    /// Of such kinds, of which those who wait are told apart.
    Marked([Kind<f64>; 2]),
    /// Of such kinds, of which those who wait are known in the mean.
    Means([Kind<f64>; 2]),
    /// Of one kind of sources.
    Mixed(Mixed<f64>),
}

impl<S: Scalar, A: PartialEq, const K: usize> Known<S, A, K> {
    pub fn nothing() -> Self {
        Self(Vec::new())
    }

    pub fn there(&mut self, asked: A, find: impl FnOnce() -> Option<There<S, K>>) -> Option<There<S, K>> {
        if let Some((_, found)) = self.0.iter().find(|(known, _)| *known == asked) {
            return *found;
        }
        let found = find();
        self.0.push((asked, found));
        found
    }
}

/// What equations of mean values know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means<S> {
    /// Whether they find the chance that all servers are busy from how many are there, and not from the load.
    pub by_number: bool,
    /// The chance that one who comes was back at once.
    pub again: S,
}

/// Whether a chain tells of services of two lengths, of so many sources before so many servers.
pub(in super::super) fn are_told(sources: f64, servers: f64) -> bool {
    mixed::work(sources.min(2.0 * LEAST_OF_A_SERVER * servers), servers) <= MOST_WORK_OF_MIXED
}

/// `ψ` of sources whose services are of two lengths.
pub(super) fn of_mixed<S: Scalar>(it: &Mixed<S>, (servers, means): (f64, Means<S>), known: &mut Known<S>) -> S {
    let one = S::from(1.0);
    let counts = ramp((it.services[1] / it.services[0]).ln(), UNLIKE);
    if counts <= 0.0 || it.sources <= servers {
        return one;
    }
    let it = &Mixed { away: at_least(it.away, it.service()), ..*it };
    let mut there = |it: &Mixed<S>| known.there(Asked::Mixed(it.plain()), || mixed::there(it, servers));
    let work = (|[sources, _]: [f64; 2]| mixed::work(sources, servers), MOST_WORK_OF_MIXED);
    let found = of_fewer([it.sources, 0.0], servers, work, |[fewer, _]| {
        let it = Mixed { sources: fewer, away: it.away * (fewer / it.sources), ..*it };
        let all = there(&it)?;
        let others = there(&Mixed { sources: fewer - 1.0, ..it })?;
        let throughput = all.busy[0] / it.services[0] + all.busy[1] / it.services[1];
        let away = it.away * ((-it.again + 1.0) / (-means.again + 1.0));
        let comes = Comes { away, again: means.again, mean: it.service() };
        let busy = others.busy[0] + others.busy[1];
        let busy = if means.by_number {
            chance_by_number(&all, (fewer, servers)) / busy
        } else {
            share_of_busy(busy, Sources { number: fewer - 1.0, coming: &[] }, servers)
        };
        let longer = (all.waiting[0] + all.waiting[1]) / throughput / by_means(&others, it.services, &comes, busy, servers);
        Some([if longer > 0.0 && longer.value().is_finite() { longer } else { one }])
    });
    found.map_or(one, |[longer]| (longer - 1.0) * counts + 1.0)
}

/// `ψ` of the first `N` of both kinds, before so many servers.
pub(super) fn longer_waits<S: Scalar, const N: usize>(kinds: [Kind<S>; 2], servers: f64, known: &mut Known<S>) -> [S; N] {
    let longer = (kinds[1].service / kinds[0].service).ln();
    let counts = ramp(if longer < 0.0 { -longer } else { longer }, UNLIKE);
    if counts <= 0.0 || kinds[0].sources + kinds[1].sources <= servers {
        return [S::from(1.0); N];
    }
    of_kinds(kinds, servers, known).map_or([S::from(1.0); N], |ratios| ratios.map(|ratio| (ratio - 1.0) * counts + 1.0))
}

/// The same, of services that are not alike; none where no chain tells it.
fn of_kinds<S: Scalar, const N: usize>(kinds: [Kind<S>; 2], servers: f64, known: &mut Known<S>) -> Option<[S; N]> {
    let kinds = kinds.map(|kind| Kind { away: at_least(kind.away, kind.service), ..kind });
    let sources = kinds.map(|kind| kind.sources);
    if servers == 1.0 && chain::work(sources) <= MOST_WORK {
        return of_chain(kinds, sources, servers, &mut |kinds| known.there(Asked::Marked(plain(&kinds)), || chain::there(kinds)));
    }
    let mut there = |kinds| known.there(Asked::Means(plain(&kinds)), || moments::there(kinds, servers));
    let work = (|sources: [f64; 2]| moments::work(sources, servers), MOST_WORK_OF_MEANS);
    of_fewer(sources, servers, work, |fewer| of_chain(kinds, fewer, servers, &mut there))
}

/// How busy one server is with both; none where no chain of all sources tells it.
pub(super) fn busy_with<S: Scalar>(kinds: [Kind<S>; 2], known: &mut Known<S>) -> Option<S> {
    let kinds = kinds.map(|kind| Kind { away: at_least(kind.away, kind.service), ..kind });
    let sources = kinds.map(|kind| kind.sources);
    let found = if chain::work(sources) <= MOST_WORK {
        known.there(Asked::Marked(plain(&kinds)), || chain::there(kinds))
    } else if moments::work(sources, 1.0) <= MOST_WORK_OF_MEANS {
        known.there(Asked::Means(plain(&kinds)), || moments::there(kinds, 1.0))
    } else {
        None
    };
    found.map(|it| it.busy[0] + it.busy[1])
}

/// Times away that are long enough beside a service.
pub(super) fn at_least<S: Scalar>(away: S, service: S) -> S {
    let least = service * SHORTEST_AWAY;
    if away > least { away } else { least }
}

/// What is `found` of so many sources, or what it is of fewer leads to where their chain would be more `work` than so much.
pub(super) fn of_fewer<S: Scalar, const N: usize, const K: usize>(
    sources: [f64; K],
    servers: f64,
    (work, most_work): (impl Fn([f64; K]) -> f64, f64),
    mut find: impl FnMut([f64; K]) -> Option<[S; N]>,
) -> Option<[S; N]> {
    let many = fewer(sources, servers, (&work, most_work))?;
    let found = find(many)?;
    let few = fewer(sources, servers, (&work, most_work * LESS_WORK)).filter(|few| many != sources && *few != many);
    let Some((few, of_few)) = few.and_then(|few| Some((few, find(few)?))) else { return Some(found) };
    // Of all sources over those of the chain, and of these over the fewer.
    let [more, again] = [(sources, many), (many, few)].map(|(more, less)| (number_of(more) / number_of(less)).ln());
    Some(std::array::from_fn(|of| beyond(found[of] - 1.0, of_few[of] - 1.0, more / again, more) + 1.0))
}

/// How many sources there are beside streams.
fn number_of<const K: usize>(sources: [f64; K]) -> f64 {
    sources.into_iter().filter(|n| n.is_finite()).sum()
}

/// `ψ - 1` of all sources: `found` of some and `of_few` of fewer fall as a power of the numbers, from 0 to [`MOST_POWER`]. `more` is the logarithm of all
/// sources over the some, `steps` how many times that of these over the fewer.
fn beyond<S: Scalar>(found: S, of_few: S, steps: f64, more: f64) -> S {
    let [size, of_few_size] = [found, of_few].map(|it| if it < 0.0 { -it } else { it });
    if size <= 0.0 {
        return found;
    }
    let least = -MOST_POWER * more;
    let power = if of_few_size * size <= 0.0 || (found < 0.0) != (of_few < 0.0) {
        // Between the two ends, where one of them is 0.
        of_few_size / (size + of_few_size) * least
    } else {
        (size / of_few_size).ln() * steps
    };
    let power = if power > 0.0 {
        S::from(0.0)
    } else if power < least {
        S::from(least)
    } else {
        power
    };
    found * power.exp()
}

/// `ψ`, by the chain of `fewer` sources, of which `there` tells who is there.
fn of_chain<S: Scalar, const N: usize>(
    kinds: [Kind<S>; 2],
    fewer: [f64; 2],
    servers: f64,
    there: &mut impl FnMut([Kind<S>; 2]) -> Option<There<S>>,
) -> Option<[S; N]> {
    let kinds = of_sources(&kinds, fewer);
    let all = there(kinds)?;
    let served = |of: usize| all.busy[of] / kinds[of].service;
    let mean = (all.busy[0] + all.busy[1]) / (served(0) + served(1));
    let mut ratios = [S::from(1.0); N];
    for (of, ratio) in ratios.iter_mut().enumerate() {
        let mut less = kinds;
        less[of].sources -= 1.0;
        let found = there(less)?;
        let comes = Comes { away: kinds[of].away, again: kinds[of].again, mean };
        let share = of_servers(&found, less.map(|kind| kind.sources), servers);
        let services = kinds.map(|kind| kind.service);
        *ratio = waits_of(&all, services, of, by_means(&found, services, &comes, share, servers));
    }
    Some(ratios)
}

/// `ψ` of a kind whose waits would be so long `by_means`, of such services; 1 where it hardly waits.
pub(super) fn waits_of<S: Scalar, const K: usize>(all: &There<S, K>, services: [S; K], of: usize, by_means: S) -> S {
    let served = all.busy[of] / services[of];
    let longer = all.waiting[of] / served / by_means;
    if all.waiting[of] > all.busy[of] * LEAST_WAIT && !longer.value().is_nan() { within(longer, RATIOS) } else { S::from(1.0) }
}

/// Held between two bounds.
pub(super) fn within<S: Scalar>(x: S, [least, most]: [f64; 2]) -> S {
    clamp(x, S::from(least), S::from(most))
}

/// `Π/û` of who finds these there, of so many other `sources` of each kind.
pub(super) fn of_servers<S: Scalar, const K: usize>(found: &There<S, K>, sources: [f64; K], servers: f64) -> S {
    let (busy, number) = (sum(&found.busy), sources.iter().sum::<f64>());
    let (mut coming, mut room) = (Vec::new(), Vec::new());
    if servers > 1.0 && number <= unlike::MOST {
        let pools: Vec<Pool<S>> =
            (0..K).filter(|&j| sources[j] >= 1.0).map(|j| Pool::new(sources[j], found.busy[j], found.waiting[j])).collect();
        unlike::coming(&pools, number, &mut coming, &mut room);
    }
    share_of_busy(busy, Sources { number, coming: &coming }, servers)
}

/// Who comes: how long it was away, the chance that it was not, and the mean service of all.
struct Comes<S> {
    away: S,
    again: S,
    mean: S,
}

/// `W°` of who comes to those that are `found`, with `Π/û`.
fn by_means<S: Scalar>(found: &There<S>, services: [S; 2], comes: &Comes<S>, share_of_busy: S, servers: f64) -> S {
    let waiting = services[0] * found.waiting[0] + services[1] * found.waiting[1];
    let rests = rests(found, services, comes);
    (waiting + (rests[0] + rests[1]) * share_of_busy) / servers
}

/// What is left of the exponential services of those that are `found`, of each kind.
fn rests<S: Scalar, const K: usize>(found: &There<S, K>, services: [S; K], comes: &Comes<S>) -> [S; K] {
    let after_gap = |j: usize| (comes.away + comes.mean) * services[j] / (comes.away + services[j]);
    std::array::from_fn(|j| found.busy[j] * (after_gap(j) + comes.again * (comes.mean - after_gap(j))))
}

/// The sum of numbers.
pub(super) fn sum<S: Scalar>(numbers: &[S]) -> S {
    numbers.iter().fold(S::from(0.0), |sum, &number| sum + number)
}

/// `Π/û`, of the servers that an arrival finds busy and the others that may come.
fn share_of_busy<S: Scalar>(busy: S, others: Sources<'_, S>, servers: f64) -> S {
    if servers == 1.0 {
        return S::from(1.0);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "servers of a chain that is solved")]
    let chance = all_busy(servers as u32, others, busy, &[], &mut None);
    chance / busy
}

/// `Π` for one of so many sources of whom these are there.
fn chance_by_number<S: Scalar>(There { waiting, busy }: &There<S>, (sources, servers): (f64, f64)) -> S {
    let number = waiting[0] + waiting[1] + busy[0] + busy[1];
    let (mut found, mut at_any_time) = (Vec::new(), Vec::new());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "servers of a chain that is solved")]
    chances_of_there(servers as u32, (sources, number), &[], &mut None, (&mut found, &mut at_any_time));
    found.last().copied().unwrap_or(S::from(0.0))
}

/// So many sources of each kind that their chain takes so much work at most: in proportion, but for the last few of the fewer; none where these would be too
/// few for the servers.
fn fewer<const K: usize>(sources: [f64; K], servers: f64, (work, most_work): (impl Fn([f64; K]) -> f64, f64)) -> Option<[f64; K]> {
    let mut part = 1.0;
    let mut n = sources;
    // Streams are as they are.
    while work(n) > most_work && number_of(n) > 0.0 {
        part *= 0.95;
        n = sources.map(|all| (all * part).round().max(all.min(LAST_SOURCES)));
        if n.iter().sum::<f64>() < LEAST_OF_A_SERVER * servers {
            return None;
        }
        if part < LEAST_PART {
            n = n.map(|n| if n.is_finite() { n.min(LAST_SOURCES) } else { n });
            break;
        }
    }
    Some(n)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{chain::tests::kind, mixed::Varied},
        *,
    };
    use crate::model::Tangent;

    #[test]
    fn services_alike_have_a_product_form_at_one_server() {
        for (a, b, service) in [((1.0, 3.0), (2.0, 0.4), 0.7), ((5.0, 1e3), (4.0, 1.0), 1.0), ((9.0, 0.0), (2.0, 5.0), 2.0)] {
            for ratio in of_kinds::<f64, 2>([kind(a.0, a.1, service), kind(b.0, b.1, service)], 1.0, &mut Known::nothing()).unwrap() {
                assert!((ratio - 1.0).abs() < 1e-9, "{a:?} {b:?}: {ratio}");
            }
        }
    }

    #[test]
    fn slopes_are_those_of_differences() {
        for servers in [1.0, 2.0, 4.0] {
            let at = |x: [f64; 4]| -> [f64; 2] {
                longer_waits(
                    [Kind { again: x[0] * 0.1, ..kind(6.0, x[0], x[1]) }, Kind { again: x[3] * 0.3, ..kind(3.0, x[2], x[3]) }],
                    servers,
                    &mut Known::nothing(),
                )
            };
            let x = [2.0, 0.3, 5.0, 1.7];
            let mut direction = 0..;
            let [a, b, c, d] = x.map(|x| Tangent::<4>::variable(x, direction.next().unwrap()));
            let kinds =
                [Kind { sources: 6.0, away: a, service: b, again: a * 0.1 }, Kind { sources: 3.0, away: c, service: d, again: d * 0.3 }];
            let found: [Tangent<4>; 2] = longer_waits(kinds, servers, &mut Known::nothing());
            for (of, found) in found.into_iter().enumerate() {
                assert_eq!(found.value(), at(x)[of], "to the last bit");
                for (direction, &slope) in found.derivatives().iter().enumerate() {
                    let (mut more, mut less) = (x, x);
                    more[direction] += 1e-5;
                    less[direction] -= 1e-5;
                    let difference = (at(more)[of] - at(less)[of]) / 2e-5;
                    assert!((slope - difference).abs() < 1e-6, "{servers} {direction}: {slope} {difference}");
                }
            }
        }
    }

    /// By numbers where directions are more, by directions where they are fewer.
    #[test]
    fn slopes_are_the_same_in_more_directions() {
        fn found<const N: usize>(servers: f64) -> [Tangent<N>; 2] {
            let [a, b, c, d] = std::array::from_fn(|i| Tangent::<N>::variable([2.0, 0.3, 5.0, 1.7][i], i));
            let kinds =
                [Kind { sources: 6.0, away: a, service: b, again: a * 0.1 }, Kind { sources: 3.0, away: c, service: d, again: d * 0.3 }];
            longer_waits(kinds, servers, &mut Known::nothing())
        }
        for servers in [1.0, 2.0] {
            for (few, many) in found::<4>(servers).into_iter().zip(found::<8>(servers)) {
                for (few, many) in few.derivatives().iter().zip(many.derivatives()) {
                    assert!((few - many).abs() < 1e-9 && *few != 0.0, "{servers}: {few} {many}");
                }
            }
        }
    }

    #[test]
    fn slopes_of_services_of_two_lengths_are_those_of_differences() {
        fn at<S: Scalar>(x: [S; 4], sources: f64, by_number: bool) -> S {
            let it = Mixed::new(
                (sources, x[0], x[1]),
                [(x[2], Varied::exponential(S::from(0.2))), (-x[2] + 1.0, Varied::exponential(x[3]))].into_iter(),
            )
            .unwrap();
            of_mixed(&it, (3.0, Means { by_number, again: it.again }), &mut Known::nothing())
        }
        // Of the more sources, the chain is of fewer.
        for (sources, by_number) in [(9.0, false), (9.0, true), (90_000.0, false)] {
            let x = [sources / 2.4, 0.2, 0.8, 3.0];
            let mut direction = 0..;
            let found = at(x.map(|x| Tangent::<4>::variable(x, direction.next().unwrap())), sources, by_number);
            assert_eq!(found.value(), at(x, sources, by_number), "to the last bit");
            let least = if by_number { 0.8 } else { 0.9 };
            assert!((least..0.999).contains(&found.value()), "{}", found.value());
            for (direction, &slope) in found.derivatives().iter().enumerate() {
                let (mut more, mut less) = (x, x);
                more[direction] *= 1.0 + 1e-5;
                less[direction] *= 1.0 - 1e-5;
                let difference = (at(more, sources, by_number) - at(less, sources, by_number)) / (2e-5 * x[direction]);
                assert!((slope - difference).abs() * x[direction] < 1e-6, "{sources} {direction}: {slope} {difference}");
            }
        }
    }

    /// Many sources, near saturation, without overflow; those of a chain that is too long are taken to be fewer.
    #[test]
    fn many_sources_are_fewer_in_proportion() {
        let few = |sources, servers| fewer(sources, servers, (|n| moments::work(n, servers), MOST_WORK_OF_MEANS));
        assert_eq!(few([50.0, 2.0], 1.0), Some([50.0, 2.0]));
        let [a, b] = few([10_000.0, 1_000.0], 1.0).unwrap();
        assert!(a / b > 7.0 && a / b < 13.0 && b >= 3.0, "{a} {b}");
        assert_eq!(few([1e9, 2.0], 1.0).unwrap()[1], 2.0);
        assert_eq!(few([1e9, 1e8], 1e8), None);
        for servers in [1.0, 3.0] {
            for (sources, away) in [(60.0, 1e-3), (3_000.0, 1.0), (3_000.0, 1e5)] {
                let found: [f64; 2] =
                    longer_waits([kind(sources, away, 0.2), kind(sources / 6.0, away, 3.0)], servers, &mut Known::nothing());
                assert!(found.iter().all(|ratio| (0.1..4.0).contains(ratio)), "{servers} {sources} {away}: {found:?}");
            }
        }
    }
}
