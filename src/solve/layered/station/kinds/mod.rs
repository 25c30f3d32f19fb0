//! Sources of two kinds before one server: short services and long ones.
//!
//! While a long service lasts, those that have short ones come and wait behind it, and so are not away, as they would have to be to find it;
//! whoever had it finds them when it comes back, as they have not all gone yet. No product form knows of this: with services of one length and of
//! fifteen times that, waits are twice or half as long. Of a station of one server in order of arrival, with `N_a` sources of services `s_a`, each
//! away for `y_a`, and `N_b` of `s_b` and `y_b`, all exponential, a chain tells them:
//!
//! ```text
//! states     nobody there, or (k, n_a, n_b): a service of kind k, and how many are there, with it
//! come       (N_a - n_a)/y_a, (N_b - n_b)/y_b
//! goes       1/s_k; who is next is of kind a with chance n_a/(n_a + n_b), of those that are left
//! ```
//!
//! where the last line stands for the order of arrival, of which states would be too many: of four stations waits are up to 3.5 % long where services
//! are short, and up to 5 % short where they are long. With `L(j)` waiting and `U(j)` in service of kind `j`, of the chain and, as `L⁻` and `U⁻`, of that
//! with one of kind `a` less, the waits are, and would be by equations of mean values,
//!
//! ```text
//! W_a  = L(a) s_a/U(a)
//! W_a° = Σ_j s_j L⁻(j) + U⁻(j) (y_a + s̄) s_j/(y_a + s_j)        s̄ the mean service
//! ψ_a  = W_a/W_a°
//! ```
//!
//! `ψ_a` multiplies all that arrivals of the kind wait for. It is 1 where services are alike, however long sources are away: that is a product form.
//! Of more kinds, all but that which comes are one. What services vary beyond their kind's exponential time is [`super::scarce`]'s. `ψ` is a number
//! of the Linearizer's: it follows from how long sources are away in a network that is solved, which it changes little, and is the same
//! until the next is.
//!
//! Chains of many states are solved with fewer sources, in the same proportion and with times away shorter by as much, twice: how `ψ - 1` falls from
//! the fewer to the more, as a power of their number, is taken to go on. That is chosen, not derived: at 20 and 10 sources 1 - ψ is .24 for .16, and
//! .42 in the chain itself; at 50 and 20 .56 for .51, and .76.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `N`, `y`, `s` | [`Kind`] | sources of a kind, how long each is away, and its mean service |
//! | `L`, `U` | [`chain::There`] | those that wait, and the chance that one is in service |

mod chain;

use self::chain::{Kind, there};
use super::{
    super::{
        flow::Flow,
        net::{Discipline, Net},
    },
    At,
    layout::Layout,
};
use crate::model::Scalar;

/// Most products of a chain's elimination.
const MOST_WORK: f64 = 20_000.0;
/// Part of it that the chain of still fewer sources may take.
const LESS_WORK: f64 = 0.4;
/// Sources of a kind that are not left out.
const LAST_SOURCES: f64 = 3.0;
/// The most that are left out.
const LEAST_PART: f64 = 1e-7;
/// What sources change is less by this power of their number at most.
const MOST_POWER: f64 = 2.0;
/// Times away are no shorter than this part of a service.
const SHORTEST_AWAY: f64 = 1e-6;
/// Logarithms of the ratio of services: up to the one they are as good as alike, from the other they count in full.
const ALIKE: f64 = 0.05;
const UNLIKE: f64 = 0.3;

/// What comes of a pool to a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool<S> {
    sources: f64,
    rate: S,
    /// Services in progress in the mean, and requests there.
    busy: S,
    there: S,
}

impl<S: Scalar> Pool<S> {
    fn new(sources: f64) -> Self {
        let zero = S::from(0.0);
        Self { sources, rate: zero, busy: zero, there: zero }
    }

    fn add(&mut self, rate: S, wait: S, held: S) {
        self.rate += rate;
        self.busy += rate * held;
        self.there += rate * (wait + held);
    }

    fn kind(&self) -> Kind<S> {
        Kind { sources: self.sources, away: (-self.there + self.sources) / self.rate, service: self.busy / self.rate }
    }
}

/// A pool and all others as one.
pub(super) fn apart<S: Scalar>(pools: &[Pool<S>], mine: usize) -> [Kind<S>; 2] {
    let mut others = Pool::new(0.0);
    for (_, pool) in pools.iter().enumerate().filter(|&(pool, _)| pool != mine) {
        others.sources += pool.sources;
        others.rate += pool.rate;
        others.busy += pool.busy;
        others.there += pool.there;
    }
    [pools[mine].kind(), others.kind()]
}

impl<S: Scalar> At<'_, S> {
    /// What comes of each pool; none where there is one, where two sources are all ([`super::super::residual`]), or where they are not all there are.
    pub(super) fn kinds(&self) -> Option<Vec<Pool<S>>> {
        let (Layout { pools, pool_of, .. }, populations) = (self.layout, self.sweep.populations);
        if pools.len() < 2 || self.sources <= 2.0 || !self.is_in_order() {
            return None;
        }
        let mut found: Vec<Pool<S>> = pools.iter().map(|&task| Pool::new(populations.strands(self.sweep.net, task))).collect();
        if found.iter().map(|pool| pool.sources).sum::<f64>() > self.sources {
            return None;
        }
        for (v, &pool) in self.visits.iter().zip(pool_of) {
            found[pool?].add(v.rate, v.wait, v.first + v.late);
        }
        found.iter().all(|pool| pool.busy > 0.0).then_some(found)
    }
}

/// `ψ` at the stations of a network.
#[derive(Clone, Debug)]
pub(in super::super) struct Unlike<S> {
    /// By arc; empty where it is 1 for all.
    pub by_arc: Vec<S>,
    /// Of each station that several pools come to: their sources, and `ψ` of each.
    found: Vec<(Vec<f64>, Vec<S>)>,
}

impl<S: Scalar> Unlike<S> {
    /// Where nothing is known.
    pub fn none() -> Self {
        Self { by_arc: Vec::new(), found: Vec::new() }
    }

    /// From how long each pool is away from each station and is served there, of a network with such flow and waits and at most `caps` busy threads
    /// of each task, for at most `less` of them; `same` is what was found of the same network, and holds where its sources were as many.
    pub fn new(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), (caps, less): (&[f64], &[f64]), same: &Self) -> Self {
        let mut it = Self::none();
        for (s, station) in net.stations.iter().enumerate() {
            if station.servers != 1.0 || station.discipline != Discipline::Fcfs {
                continue;
            }
            let Some((tasks, pools)) = pools_at(net, (flow, waits), caps, s) else { continue };
            let sources: Vec<f64> = tasks.iter().map(|&task| strands(net, less, task)).collect();
            let ratios = match same.found.get(it.found.len()) {
                Some((as_many, ratios)) if *as_many == sources => ratios.clone(),
                _ => ratios(&pools, &sources),
            };
            for (&task, &ratio) in tasks.iter().zip(&ratios).filter(|(_, ratio)| **ratio != 1.0) {
                it.by_arc.resize(net.arcs.len(), S::from(1.0));
                station.arcs.iter().filter(|&&arc| pool_of(net, arc) == Some(task)).for_each(|&arc| it.by_arc[arc] = ratio);
            }
            it.found.push((sources, ratios));
        }
        it
    }
}

/// `ψ` of each of several pools, of so many sources each.
fn ratios<S: Scalar>(pools: &[Pool<S>], sources: &[f64]) -> Vec<S> {
    let kinds = |mine: usize| {
        let others = sources.iter().enumerate().filter(|&(pool, _)| pool != mine).map(|(_, sources)| sources).sum();
        let [a, b] = apart(pools, mine);
        let kinds = [Kind { sources: sources[mine], ..a }, Kind { sources: others, ..b }];
        (kinds[0].sources >= 1.0 && others >= 1.0 && kinds[0].sources + others > 2.0).then_some(kinds)
    };
    let one = S::from(1.0);
    match sources.len() {
        // All chains of the one are those of the other.
        2 => kinds(0).map_or([one; 2], longer_waits).to_vec(),
        n => (0..n).map(|mine| kinds(mine).map_or(one, |kinds| longer_waits::<S, 1>(kinds)[0])).collect(),
    }
}

/// Strands of a task's threads.
fn strands<S>(net: &Net<S>, caps: &[f64], task: usize) -> f64 {
    caps[task] * net.tasks[task].width
}

/// The task that bounds what sends over an arc.
fn pool_of<S>(net: &Net<S>, arc: usize) -> Option<usize> {
    net.arcs[arc].source.held().map(|node| net.tasks[net.nodes[node].task].bounded_by)
}

/// The tasks that bound what comes to a station, and what comes of each; none where others come, too, or not several.
fn pools_at<S: Scalar>(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), caps: &[f64], station: usize) -> Option<(Vec<usize>, Vec<Pool<S>>)> {
    let (mut tasks, mut pools) = (Vec::new(), Vec::new());
    for &arc in &net.stations[station].arcs {
        let task = pool_of(net, arc)?;
        let place = tasks.iter().position(|&other| other == task).unwrap_or_else(|| {
            tasks.push(task);
            pools.push(Pool::new(strands(net, caps, task)));
            pools.len() - 1
        });
        let held = match (net.arcs[arc].target, net.arcs[arc].source.held()) {
            (Some(entry), _) => flow.held(entry),
            (None, Some(node)) => net.nodes[node].demand / net.nodes[node].slices,
            (None, None) => return None,
        };
        pools[place].add(flow.arc_rate[arc], waits[arc], held);
    }
    let are_known = pools.len() > 1 && pools.iter().all(|pool| pool.busy > 0.0 && pool.sources.is_finite());
    are_known.then_some((tasks, pools))
}

/// `ψ` of the first `N` of both kinds.
fn longer_waits<S: Scalar, const N: usize>(kinds: [Kind<S>; 2]) -> [S; N] {
    let longer = kinds[1].service / kinds[0].service;
    let alike = longer.ln();
    let alike = if alike < 0.0 { -alike } else { alike };
    if alike <= ALIKE {
        return [S::from(1.0); N];
    }
    let counts = if alike < UNLIKE {
        let part = (alike - ALIKE) / (UNLIKE - ALIKE);
        part * part * (-part * 2.0 + 3.0)
    } else {
        S::from(1.0)
    };
    of_kinds(kinds).map(|ratio| (ratio - 1.0) * counts + 1.0)
}

/// The same, of services that are not alike.
fn of_kinds<S: Scalar, const N: usize>(kinds: [Kind<S>; 2]) -> [S; N] {
    let [a, b] = kinds.map(|kind| {
        let least = kind.service * SHORTEST_AWAY;
        Kind { away: if kind.away > least { kind.away } else { least }, ..kind }
    });
    of_ratios([a.sources, b.sources], [b.service / a.service, a.service / a.away, b.service / b.away])
}

/// The same, by `s_b/s_a`, `s_a/y_a` and `s_b/y_b`.
fn of_ratios<S: Scalar, const N: usize>(sources: [f64; 2], ratios: [S; 3]) -> [S; N] {
    let many = fewer(sources, MOST_WORK);
    let found: [S; N] = of_chain(sources, many, ratios);
    let few = fewer(sources, MOST_WORK * LESS_WORK);
    if many == sources || many == few {
        return found;
    }
    let of_few: [S; N] = of_chain(sources, few, ratios);
    // Of all sources over those of the chain, and of these over the fewer.
    let [more, again] = [(sources, many), (many, few)].map(|(more, less)| ((more[0] + more[1]) / (less[0] + less[1])).ln());
    std::array::from_fn(|of| beyond(found[of] - 1.0, of_few[of] - 1.0, more / again, more) + 1.0)
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

/// `ψ`, by the chain of `fewer` sources.
fn of_chain<S: Scalar, const N: usize>(sources: [f64; 2], fewer: [f64; 2], [longer, of_a, of_b]: [S; 3]) -> [S; N] {
    let kind = |of: usize, service: S, ratio: S| Kind { sources: fewer[of], away: service / ratio * (fewer[of] / sources[of]), service };
    let kinds = [kind(0, S::from(1.0), of_a), kind(1, longer, of_b)];
    let all = there(kinds);
    let served = |of: usize| all.busy[of] / kinds[of].service;
    let mean = (all.busy[0] + all.busy[1]) / (served(0) + served(1));
    std::array::from_fn(|of| {
        let mut less = kinds;
        less[of].sources -= 1.0;
        let found = there(less);
        let part = |j: usize| {
            let (service, away) = (kinds[j].service, kinds[of].away);
            service * found.waiting[j] + found.busy[j] * (away + mean) * service / (away + service)
        };
        all.waiting[of] / served(of) / (part(0) + part(1))
    })
}

/// So many sources of each kind that their chain takes so much work at most: in proportion, but for the last few of the fewer.
fn fewer(sources: [f64; 2], most_work: f64) -> [f64; 2] {
    let work = |[a, b]: [f64; 2]| {
        let (levels, width) = (a.max(b) + 1.0, 2.0 * a.min(b) + 1.0);
        levels * width * (width + 1.0) * (width + 1.0)
    };
    let mut part = 1.0;
    let mut n = sources;
    while work(n) > most_work && n != [1.0, 1.0] {
        part *= 0.95;
        n = sources.map(|all| (all * part).round().max(all.min(LAST_SOURCES)));
        if part < LEAST_PART {
            n = n.map(|n| n.min(LAST_SOURCES));
            break;
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tangent;

    fn kind(sources: f64, away: f64, service: f64) -> Kind<f64> {
        Kind { sources, away, service }
    }

    #[test]
    fn services_alike_have_a_product_form() {
        for (a, b, service) in [((1.0, 3.0), (2.0, 0.4), 0.7), ((5.0, 1e3), (4.0, 1.0), 1.0), ((9.0, 0.0), (2.0, 5.0), 2.0)] {
            for ratio in of_kinds::<f64, 2>([kind(a.0, a.1, service), kind(b.0, b.1, service)]) {
                assert!((ratio - 1.0).abs() < 1e-9, "{a:?} {b:?}: {ratio}");
            }
        }
    }

    #[test]
    fn slopes_are_those_of_differences() {
        let at = |x: [f64; 4]| -> [f64; 2] { longer_waits([kind(6.0, x[0], x[1]), kind(3.0, x[2], x[3])]) };
        let x = [2.0, 0.3, 5.0, 1.7];
        let mut direction = 0..;
        let [a, b, c, d] = x.map(|x| Tangent::<4>::variable(x, direction.next().unwrap()));
        let found: [Tangent<4>; 2] = longer_waits([Kind { sources: 6.0, away: a, service: b }, Kind { sources: 3.0, away: c, service: d }]);
        for (of, found) in found.into_iter().enumerate() {
            assert_eq!(found.value(), at(x)[of], "to the last bit");
            for (direction, &slope) in found.derivatives().iter().enumerate() {
                let (mut more, mut less) = (x, x);
                more[direction] += 1e-5;
                less[direction] -= 1e-5;
                let difference = (at(more)[of] - at(less)[of]) / 2e-5;
                assert!((slope - difference).abs() < 1e-7, "{direction}: {slope} {difference}");
            }
        }
    }

    /// Many sources, near saturation, without overflow; those of a chain that is too long are taken to be fewer.
    #[test]
    fn many_sources_are_fewer_in_proportion() {
        assert_eq!(fewer([50.0, 2.0], MOST_WORK), [50.0, 2.0]);
        let [a, b] = fewer([100.0, 10.0], MOST_WORK);
        assert!(a / b > 7.0 && a / b < 13.0 && b >= 3.0, "{a} {b}");
        assert_eq!(fewer([1e9, 2.0], MOST_WORK)[1], 2.0);
        for (sources, away) in [(60.0, 1e-3), (3_000.0, 1.0), (3_000.0, 1e5)] {
            let found: [f64; 2] = longer_waits([kind(sources, away, 0.2), kind(sources / 6.0, away, 3.0)]);
            assert!(found.iter().all(|ratio| (0.1..4.0).contains(ratio)), "{sources} {away}: {found:?}");
        }
    }
}
