//! Random layered models, with what a round trip through a trace can tell of them: calls of all kinds in both phases,
//! random and exact numbers of calls, forwarding, branches, loops and and-forks.
//!
//! A model depends on its features and its seed alone. Every activity takes time, so that no two messages of one execution
//! are sent at the same instant.

use layerfit::model::{
    Activity, Call, CallKind, CallOrder, Entry, Forwarding, Model, Phase, Post, Pre, Precedence, Processor, ProcessorScheduling, Reply,
    Task, TaskScheduling, Weighted,
};

/// What drawn models may have beside synchronous calls.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    pub asynchronous: bool,
    pub forwarding: bool,
    pub second_phases: bool,
    /// Second phases of entries that may forward.
    pub after_forwarding: bool,
    /// Activity graphs with or-forks and loops.
    pub graphs: bool,
    pub and_forks: bool,
    pub open_arrivals: bool,
}

impl Features {
    pub const ALL: Self = Self {
        asynchronous: true,
        forwarding: true,
        second_phases: true,
        after_forwarding: true,
        graphs: true,
        and_forks: true,
        open_arrivals: true,
    };
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

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n - 1)
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Milliseconds of demand, in seconds.
    fn demand(&mut self) -> f64 {
        self.of(&[0.001, 0.002, 0.005, 0.01])
    }
}

/// A drawn entry.
struct Drawn {
    name: String,
    task: usize,
    layer: usize,
    /// Whether it is called without a reply.
    is_async: bool,
    forwards: Option<(usize, f64)>,
}

struct Draw {
    numbers: Numbers,
    features: Features,
    entries: Vec<Drawn>,
    /// Activities of the graph at hand.
    n_activities: usize,
}

/// Draws a model of two to eight tasks below one or two classes of customers.
pub fn draw(features: Features, seed: u64) -> Model {
    let mut numbers = Numbers(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let n_tasks = 2 + numbers.below(7);
    let n_layers = (2 + numbers.below(3)).min(n_tasks);
    let layers: Vec<usize> = (0..n_tasks).map(|t| if t < n_layers { t } else { numbers.below(n_layers) }).collect();
    let mut draw = Draw { numbers, features, entries: Vec::new(), n_activities: 0 };
    draw.entries(&layers);
    let mut model = Model { name: format!("drawn-{seed}"), ..Model::default() };
    model.processors.push(Processor { scheduling: ProcessorScheduling::Inf, ..Processor::new("pc") });
    let n_classes = 1 + draw.numbers.below(2);
    for class in 0..n_classes {
        model.tasks.push(draw.customers(class));
    }
    for task in 0..n_tasks {
        let processor = format!("p{task}");
        let scheduling = draw.numbers.of(&[ProcessorScheduling::Fcfs, ProcessorScheduling::Ps, ProcessorScheduling::Inf]);
        model.processors.push(Processor { scheduling, ..Processor::new(&processor) });
        model.tasks.push(draw.task(task, &processor));
    }
    draw.call_the_uncalled(&mut model);
    model
}

impl Draw {
    fn entries(&mut self, layers: &[usize]) {
        for (task, &layer) in layers.iter().enumerate() {
            for e in 0..self.numbers.of(&[1, 1, 2, 2, 3]) {
                let is_async = self.features.asynchronous && self.numbers.chance(0.25);
                self.entries.push(Drawn { name: format!("t{task}e{e}"), task, layer, is_async, forwards: None });
            }
        }
        for from in 0..self.entries.len() {
            if self.entries[from].is_async || !self.features.forwarding || !self.numbers.chance(0.25) {
                continue;
            }
            let targets: Vec<usize> = self.below(from).filter(|e| !self.entries[*e].is_async).collect();
            if !targets.is_empty() {
                let probability = self.numbers.of(&[1.0, 0.5, 0.25]);
                self.entries[from].forwards = Some((self.numbers.of(&targets), probability));
            }
        }
    }

    /// Entries of deeper layers.
    fn below(&self, entry: usize) -> impl Iterator<Item = usize> {
        (0..self.entries.len()).filter(move |e| self.entries[*e].layer > self.entries[entry].layer)
    }

    fn call(&self, to: usize, mean: f64) -> Call {
        let kind = if self.entries[to].is_async { CallKind::Async } else { CallKind::Sync };
        Call { kind, dest: self.entries[to].name.clone(), mean: mean.into() }
    }

    /// An activity that makes up to `most` calls to `targets`.
    fn work(&mut self, name: String, targets: &[usize], most: usize) -> Activity {
        let demand = self.numbers.demand();
        let mut work = Activity::new(name, demand);
        work.host_demand_cvsq = self.numbers.of(&[1.0, 1.0, 0.5]).into();
        let is_exact = self.numbers.chance(0.4);
        if is_exact {
            work.call_order = CallOrder::Deterministic;
        }
        for _ in 0..if targets.is_empty() { 0 } else { self.numbers.below(most + 1) } {
            let to = self.numbers.of(targets);
            if work.calls.iter().all(|c| c.dest != self.entries[to].name) {
                let mean = if is_exact { self.numbers.of(&[1.0, 1.0, 2.0]) } else { self.numbers.of(&[0.3, 0.5, 1.0, 1.7]) };
                let call = self.call(to, mean);
                work.calls.push(call);
            }
        }
        work
    }

    fn customers(&mut self, class: usize) -> Task {
        let targets: Vec<usize> = (0..self.entries.len()).filter(|e| self.entries[*e].layer == 0).collect();
        let mut work = self.work(format!("c{class}_1"), &targets, 3);
        if work.calls.is_empty() {
            let call = self.call(targets[0], 1.0);
            work.calls.push(call);
        }
        Task {
            scheduling: TaskScheduling::Ref,
            multiplicity: ((1 + self.numbers.below(4)) as f64).into(),
            think_time: self.numbers.of(&[0.05, 0.2, 1.0]).into(),
            entries: vec![Entry { phases: vec![Phase { phase: 1, activity: work }], ..Entry::new(format!("c{class}e")) }],
            ..Task::new(format!("c{class}"), "pc")
        }
    }

    fn task(&mut self, number: usize, processor: &str) -> Task {
        let mut task = Task::new(format!("t{number}"), processor);
        match self.numbers.below(4) {
            0 | 1 => {}
            2 => task.multiplicity = 2.0.into(),
            _ => task.scheduling = TaskScheduling::Inf,
        }
        for e in 0..self.entries.len() {
            if self.entries[e].task == number {
                let entry = self.entry(e, &mut task);
                task.entries.push(entry);
            }
        }
        task
    }

    fn entry(&mut self, e: usize, task: &mut Task) -> Entry {
        let mut entry = Entry::new(&self.entries[e].name);
        if let Some((to, probability)) = self.entries[e].forwards {
            entry.forwarding.push(Forwarding { dest: self.entries[to].name.clone(), probability: probability.into() });
        }
        if self.features.open_arrivals && self.entries[e].is_async && self.numbers.chance(0.3) {
            entry.open_arrival_rate = Some(2.0.into());
        }
        let targets: Vec<usize> = self.below(e).collect();
        if self.features.graphs && !targets.is_empty() && self.numbers.chance(0.3) {
            self.graph(e, &mut entry, task, &targets);
            return entry;
        }
        let has_second = self.may_go_on(e) && self.numbers.chance(0.3);
        for phase in 1..=if has_second { 2 } else { 1 } {
            let activity = self.work(format!("{}_{phase}", entry.name), &targets, 2);
            entry.phases.push(Phase { phase, activity });
        }
        entry
    }

    /// Work, then one to three blocks of branches, loops and forks, each followed by work; the reply after the last but one.
    fn graph(&mut self, e: usize, entry: &mut Entry, task: &mut Task, targets: &[usize]) {
        self.n_activities = 0;
        let mut last = self.activity(entry, task, targets);
        entry.start_activity = Some(last.clone());
        let mut reply = last.clone();
        for _ in 0..=self.numbers.below(3) {
            let next = match self.numbers.below(3) {
                0 if self.features.and_forks && !self.entries[e].is_async => self.fork(entry, task, targets, &last),
                1 => self.repeat(entry, task, targets, &last),
                _ => self.choose(entry, task, targets, &last),
            };
            reply = next.clone();
            last = next;
        }
        if self.may_go_on(e) && self.numbers.chance(0.3) {
            let next = self.activity(entry, task, targets);
            task.precedences.push(Precedence { pre: Pre::Single(last), post: Some(Post::Single(next)) });
        }
        if !self.entries[e].is_async {
            task.replies.push(Reply { entry: entry.name.clone(), activity: reply });
        }
    }

    /// Whether an entry may have a second phase.
    fn may_go_on(&self, e: usize) -> bool {
        self.features.second_phases && (self.features.after_forwarding || self.entries[e].forwards.is_none())
    }

    fn activity(&mut self, entry: &Entry, task: &mut Task, targets: &[usize]) -> String {
        self.n_activities += 1;
        let name = format!("{}_a{}", entry.name, self.n_activities);
        let work = self.work(name.clone(), targets, 2);
        task.activities.push(work);
        name
    }

    fn choose(&mut self, entry: &Entry, task: &mut Task, targets: &[usize], last: &str) -> String {
        let names: Vec<String> = (0..2).map(|_| self.activity(entry, task, targets)).collect();
        let end = self.activity(entry, task, targets);
        let share = self.numbers.of(&[0.25, 0.5]);
        let branches =
            names.iter().zip([share, 1.0 - share]).map(|(name, p)| Weighted { activity: name.clone(), value: p.into() }).collect();
        task.precedences.push(Precedence { pre: Pre::Single(last.to_owned()), post: Some(Post::Or(branches)) });
        task.precedences.push(Precedence { pre: Pre::Or(names), post: Some(Post::Single(end.clone())) });
        end
    }

    fn repeat(&mut self, entry: &Entry, task: &mut Task, targets: &[usize], last: &str) -> String {
        let (body, end) = (self.activity(entry, task, targets), self.activity(entry, task, targets));
        let count = self.numbers.of(&[0.5, 1.5]);
        let bodies = vec![Weighted { activity: body, value: count.into() }];
        task.precedences.push(Precedence { pre: Pre::Single(last.to_owned()), post: Some(Post::Loop { bodies, end: Some(end.clone()) }) });
        end
    }

    fn fork(&mut self, entry: &Entry, task: &mut Task, targets: &[usize], last: &str) -> String {
        let names: Vec<String> = (0..2 + self.numbers.below(2)).map(|_| self.activity(entry, task, targets)).collect();
        let end = self.activity(entry, task, targets);
        task.precedences.push(Precedence { pre: Pre::Single(last.to_owned()), post: Some(Post::And(names.clone())) });
        let join = Pre::And { activities: names, quorum: 0.0.into() };
        task.precedences.push(Precedence { pre: join, post: Some(Post::Single(end.clone())) });
        end
    }

    /// Entries that nothing calls are called by customers.
    fn call_the_uncalled(&mut self, model: &mut Model) {
        let called: Vec<String> = model
            .tasks
            .iter()
            .flat_map(|task| {
                let phases = task.entries.iter().flat_map(|e| e.phases.iter().map(|p| &p.activity));
                let calls = phases.chain(&task.activities).flat_map(|a| a.calls.iter().map(|c| c.dest.clone()));
                calls.chain(task.entries.iter().flat_map(|e| e.forwarding.iter().map(|f| f.dest.clone()))).collect::<Vec<_>>()
            })
            .collect();
        for e in 0..self.entries.len() {
            if !called.contains(&self.entries[e].name) {
                let call = self.call(e, 1.0);
                model.tasks[0].entries[0].phases[0].activity.calls.push(call);
            }
        }
    }
}
