//! Random models of a shape that systems have: two classes of customers before layers of tasks with one to three entries, on
//! half as many processors as tasks, each entry calling up to three entries below it.
//!
//! Shared by the tests and the benchmarks. A model depends on its kind, size and seed alone.

use layerfit::model::{
    Activity, Call, CallKind, CallOrder, Entry, Forwarding, Model, Number, Phase, Post, Pre, Precedence, Processor, ProcessorScheduling,
    Reply, Task, TaskScheduling,
};

/// What the model has beside synchronous calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: single threads, FCFS processors.
    Sync,
    /// Tasks of one, two to eight or any number of threads; so have all that follow.
    Multi,
    /// Processor sharing.
    Ps,
    /// Second phases, some of them calling.
    Phase2,
    /// Forwarding instead of some calls.
    Forward,
    /// Some of the entries that call nothing are called asynchronously.
    Async,
    /// All of these, and priorities, and-forks, open arrivals, laws that are not exponential, exact numbers of calls.
    Mixed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [Self::Sync, Self::Multi, Self::Ps, Self::Phase2, Self::Forward, Self::Async, Self::Mixed];
}

/// Uniform numbers (splitmix64: Steele, Lea & Flood 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of `0..n`.
    fn below(&mut self, n: usize) -> usize {
        (self.between(0.0, n as f64) as usize).min(n - 1)
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.between(0.0, 1.0) < probability
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// A mean number of calls, in thousandths.
    fn calls_mean(&mut self) -> f64 {
        (self.between(0.3, 2.0) * 1000.0).round() / 1000.0
    }
}

/// An entry as it is drawn.
struct Drawn {
    task: usize,
    layer: usize,
    name: String,
    demands: [f64; 2],
    /// Entries called, in phase 1 or 2, with means.
    calls: Vec<(usize, usize, f64)>,
    forwards: Option<(usize, f64)>,
    is_async: bool,
    open_rate: f64,
    is_graph: bool,
}

/// Demands of phase 1 before they are scaled.
const DEMANDS: (f64, f64) = (0.2, 1.0);
/// Classes of customers.
const N_CLASSES: usize = 2;

/// Draws a model of `n_tasks` tasks beside the customers.
pub fn draw(kind: Kind, n_tasks: usize, seed: u64) -> Model {
    let mut numbers = Numbers(seed.wrapping_mul(1_000_003).wrapping_add(n_tasks as u64).wrapping_mul(7).wrapping_add(kind as u64));
    let mut entries = entries(&mut numbers, kind, n_tasks);
    let classes = classes(&mut numbers, &mut entries);
    flavour(&mut numbers, kind, &mut entries);
    let n_processors = (n_tasks / 2).max(1);
    let on: Vec<usize> = (0..n_tasks).map(|t| if t < n_processors { t } else { numbers.below(n_processors) }).collect();
    let servers: Vec<f64> = (0..n_processors).map(|_| numbers.of(&[1.0, 1.0, 1.0, 2.0, 4.0])).collect();
    let tightest = loads(&entries, &classes, &on, &servers).into_iter().fold(0.0, f64::max);
    let has_open_load = matches!(kind, Kind::Async | Kind::Mixed);
    let load = if has_open_load { numbers.between(0.3, 0.7) } else { numbers.between(0.5, 1.6) };
    entries.iter_mut().for_each(|e| e.demands.iter_mut().for_each(|d| *d *= load / tightest));
    let mut model = Model { name: format!("{kind:?}-{n_tasks}-{seed}"), ..Model::default() };
    model.processors = processors(&mut numbers, kind, &servers);
    model.tasks.extend(classes.iter().enumerate().map(|(c, class)| class.task(c, &entries)));
    model.tasks.extend((0..n_tasks).map(|t| task(&mut numbers, kind, t, on[t], &entries)));
    model
}

fn n_layers(n_tasks: usize) -> usize {
    match n_tasks {
        0..=5 => 2,
        6..=15 => 3,
        16..=40 => 4,
        41..=80 => 5,
        _ => 6,
    }
}

fn entries(numbers: &mut Numbers, kind: Kind, n_tasks: usize) -> Vec<Drawn> {
    let n_layers = n_layers(n_tasks).min(n_tasks);
    let layers: Vec<usize> = (0..n_tasks).map(|t| if t < n_layers { t } else { numbers.below(n_layers) }).collect();
    let mut entries = Vec::new();
    for (task, &layer) in layers.iter().enumerate() {
        for e in 0..numbers.of(&[1, 1, 2, 2, 3]) {
            let first = numbers.between(DEMANDS.0, DEMANDS.1);
            let second = if matches!(kind, Kind::Phase2) && numbers.chance(0.65) || kind == Kind::Mixed && numbers.chance(0.2) {
                first * numbers.between(0.4, 0.6)
            } else {
                0.0
            };
            entries.push(Drawn {
                task,
                layer,
                name: format!("t{task}e{e}"),
                demands: [first, second],
                calls: Vec::new(),
                forwards: None,
                is_async: false,
                open_rate: 0.0,
                is_graph: false,
            });
        }
    }
    for e in 0..entries.len() {
        let below: Vec<usize> = (0..entries.len()).filter(|&f| entries[f].layer > entries[e].layer).collect();
        if below.is_empty() {
            continue;
        }
        for _ in 0..numbers.of(&[0, 1, 1, 1, 2, 2, 3]) {
            let to = numbers.of(&below);
            if !entries[e].calls.iter().any(|c| c.0 == to) {
                let phase = usize::from(entries[e].demands[1] > 0.0 && numbers.chance(0.25));
                let mean = numbers.calls_mean();
                entries[e].calls.push((to, phase, mean));
            }
        }
    }
    entries
}

/// A class of customers.
struct Class {
    customers: f64,
    think_time: f64,
    calls: Vec<(usize, f64)>,
}

impl Class {
    fn task(&self, c: usize, entries: &[Drawn]) -> Task {
        let mut work = Activity::new(format!("c{c}e_1"), 0.0);
        work.calls = self.calls.iter().map(|&(to, mean)| call(entries, to, mean)).collect();
        Task {
            scheduling: TaskScheduling::Ref,
            multiplicity: self.customers.into(),
            think_time: self.think_time.into(),
            entries: vec![Entry { phases: vec![Phase { phase: 1, activity: work }], ..Entry::new(format!("c{c}e")) }],
            ..Task::new(format!("c{c}"), "pc")
        }
    }
}

fn call(entries: &[Drawn], to: usize, mean: f64) -> Call {
    let kind = if entries[to].is_async { CallKind::Async } else { CallKind::Sync };
    Call { kind, dest: entries[to].name.clone(), mean: mean.into() }
}

/// The customers, who call some entries of the first layer, and every entry that nobody calls gets a caller.
fn classes(numbers: &mut Numbers, entries: &mut [Drawn]) -> Vec<Class> {
    let first: Vec<usize> = (0..entries.len()).filter(|&e| entries[e].layer == 0).collect();
    let mut classes: Vec<Class> = (0..N_CLASSES)
        .map(|_| {
            let customers = numbers.between(2.0, 26.0).floor();
            let think_time = (numbers.between(0.8, 10.0) * 1000.0).round() / 1000.0;
            let mut calls: Vec<(usize, f64)> = Vec::new();
            for _ in 0..3 {
                let to = numbers.of(&first);
                if !calls.iter().any(|c| c.0 == to) {
                    calls.push((to, numbers.calls_mean()));
                }
            }
            Class { customers, think_time, calls }
        })
        .collect();
    for e in 0..entries.len() {
        let is_called =
            entries.iter().any(|f| f.calls.iter().any(|c| c.0 == e)) || classes.iter().any(|c| c.calls.iter().any(|c| c.0 == e));
        if is_called {
            continue;
        }
        let mean = numbers.calls_mean();
        let above: Vec<usize> = (0..entries.len()).filter(|&f| entries[f].layer < entries[e].layer).collect();
        if above.is_empty() || numbers.chance(0.2) {
            let c = numbers.below(N_CLASSES);
            classes[c].calls.push((e, mean));
        } else {
            let from = numbers.of(&above);
            entries[from].calls.push((e, 0, mean));
        }
    }
    classes
}

/// What the kind adds to the calls.
fn flavour(numbers: &mut Numbers, kind: Kind, entries: &mut [Drawn]) {
    for e in 0..entries.len() {
        let is_forward = kind == Kind::Forward && numbers.chance(0.5) || kind == Kind::Mixed && numbers.chance(0.15);
        if is_forward && let Some(at) = entries[e].calls.iter().position(|c| c.1 == 0) {
            let (to, _, _) = entries[e].calls.remove(at);
            entries[e].forwards = Some((to, numbers.of(&[1.0, 1.0, 0.5])));
        }
    }
    let is_forwarded_to: Vec<bool> = (0..entries.len()).map(|e| entries.iter().any(|f| f.forwards.is_some_and(|w| w.0 == e))).collect();
    for e in 0..entries.len() {
        let is_leaf = entries[e].calls.is_empty() && entries[e].forwards.is_none() && !is_forwarded_to[e];
        entries[e].is_async = is_leaf && matches!(kind, Kind::Async | Kind::Mixed) && numbers.chance(0.4);
        if kind == Kind::Mixed {
            let can_fork = !entries[e].calls.is_empty() && entries[e].forwards.is_none() && entries[e].demands[1] == 0.0;
            entries[e].is_graph = can_fork && numbers.chance(0.2);
            if entries[e].is_async && numbers.chance(0.3) {
                entries[e].open_rate = numbers.between(0.05, 0.5);
            }
        }
    }
}

/// Load of every processor by customers that only think, in servers' worth.
fn loads(entries: &[Drawn], classes: &[Class], on: &[usize], servers: &[f64]) -> Vec<f64> {
    let mut rates: Vec<f64> = entries.iter().map(|e| e.open_rate).collect();
    for class in classes {
        class.calls.iter().for_each(|&(to, mean)| rates[to] += mean * class.customers / class.think_time);
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&e| entries[e].layer);
    let mut loads = vec![0.0; servers.len()];
    for e in order {
        let rate = rates[e];
        entries[e].calls.iter().for_each(|&(to, _, mean)| rates[to] += rate * mean);
        entries[e].forwards.iter().for_each(|&(to, probability)| rates[to] += rate * probability);
        let p = on[entries[e].task];
        loads[p] += rate * (entries[e].demands[0] + entries[e].demands[1]) / servers[p];
    }
    loads
}

fn processors(numbers: &mut Numbers, kind: Kind, servers: &[f64]) -> Vec<Processor> {
    let delay = Processor { scheduling: ProcessorScheduling::Inf, ..Processor::new("pc") };
    let others = servers.iter().enumerate().map(|(p, &servers)| {
        use ProcessorScheduling::{Fcfs, Hol, Pri, Ps};
        let scheduling = match kind {
            Kind::Ps => Ps,
            Kind::Mixed => numbers.of(&[Fcfs, Fcfs, Ps, Hol, Pri]),
            _ => Fcfs,
        };
        Processor { scheduling, multiplicity: servers.into(), ..Processor::new(format!("p{p}")) }
    });
    std::iter::once(delay).chain(others).collect()
}

fn task(numbers: &mut Numbers, kind: Kind, t: usize, processor: usize, entries: &[Drawn]) -> Task {
    let mut task = Task::new(format!("t{t}"), format!("p{processor}"));
    if kind != Kind::Sync {
        match numbers.below(20) {
            0..=9 => {}
            10..=16 => task.multiplicity = (numbers.between(2.0, 9.0).floor()).into(),
            _ => task.scheduling = TaskScheduling::Inf,
        }
    }
    if kind == Kind::Mixed {
        task.priority = Number::Value(numbers.below(3) as f64);
    }
    for drawn in entries.iter().filter(|e| e.task == t) {
        let work: Vec<Activity> = (0..2).map(|phase| work(numbers, kind, drawn, phase, entries)).collect();
        let mut entry = Entry::new(&drawn.name);
        entry.open_arrival_rate = (drawn.open_rate > 0.0).then(|| drawn.open_rate.into());
        entry
            .forwarding
            .extend(drawn.forwards.map(|(to, probability)| Forwarding { dest: entries[to].name.clone(), probability: probability.into() }));
        if drawn.is_graph {
            fork(&mut task, &mut entry, &work[0]);
        } else {
            let n_phases = if drawn.demands[1] > 0.0 { 2 } else { 1 };
            entry.phases = (1..).zip(work).take(n_phases).map(|(phase, activity)| Phase { phase, activity }).collect();
        }
        task.entries.push(entry);
    }
    task
}

/// The work of a phase.
fn work(numbers: &mut Numbers, kind: Kind, drawn: &Drawn, phase: usize, entries: &[Drawn]) -> Activity {
    let mut work = Activity::new(format!("{}_{}", drawn.name, phase + 1), drawn.demands[phase]);
    let calls = drawn.calls.iter().filter(|c| c.1 == phase);
    work.calls = calls.map(|&(to, _, mean)| call(entries, to, mean)).collect();
    if kind == Kind::Mixed {
        work.host_demand_cvsq = numbers.of(&[1.0, 1.0, 0.0, 0.5, 2.0]).into();
        if numbers.chance(0.2) && work.calls.iter().all(|c| c.kind == CallKind::Sync) {
            work.call_order = CallOrder::Deterministic;
            work.calls.iter_mut().for_each(|c| c.mean = c.mean.literal().unwrap_or(1.0).max(1.0).round().into());
        }
    }
    work
}

/// Makes an entry fork: half of its demand beside its calls, then the reply.
fn fork(task: &mut Task, entry: &mut Entry, work: &Activity) {
    let name = |part: &str| format!("{}_{part}", entry.name);
    let demand = work.host_demand.literal().unwrap_or(0.0);
    let part = |name: String, share: f64| Activity { name, host_demand: (demand * share).into(), calls: Vec::new(), ..work.clone() };
    let mut calling = part(name("calls"), 0.25);
    calling.calls.clone_from(&work.calls);
    let branches = vec![name("calls"), name("works")];
    task.activities.extend([part(name("begins"), 0.125), calling, part(name("works"), 0.5), part(name("ends"), 0.125)]);
    task.precedences.push(Precedence { pre: Pre::Single(name("begins")), post: Some(Post::And(branches.clone())) });
    let join = Pre::And { activities: branches, quorum: 0.0.into() };
    task.precedences.push(Precedence { pre: join, post: Some(Post::Single(name("ends"))) });
    task.replies.push(Reply { entry: entry.name.clone(), activity: name("ends") });
    entry.start_activity = Some(name("begins"));
}
