//! Processors, threads and workloads of the tasks seen.
//!
//! | task | threads | processor |
//! |---|---|---|
//! | with spans of its own | most occurrences open at once, summed over the instances alive at the same time (said to be seen only) | its host, shared with others there; if it was seen on several, one of its own, with as many cores at least as were alive at the same time |
//! | database or cache seen from clients | most requests open at once | of its own |
//! | queue, third party | without limit | of its own, without limit |
//! | kept internal spans | without limit | that of their service |
//!
//! Alive is an instance or a host from its first start to its last end. Occurrences that are known from their clients, or concluded,
//! tell no instance: they are of none where others of their task do.

use std::collections::HashMap;

use super::{
    Spans,
    account::TaskSums,
    catalog::{Catalog, PeerKind},
    forest::Origin,
    load::Load,
};
use crate::{
    model::ProcessorScheduling,
    structure::interactions::{Hints, ProcessHints, ProcessorHints, SeenThreads},
    trace::hashed::HashSet,
};

/// A first start and a last end, nanoseconds.
pub type Life = (i64, i64);

/// Both lives as one.
pub fn joined(a: Life, b: Life) -> Life {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Instances of a task.
#[derive(Clone, Debug, Default)]
pub struct Instances {
    /// How many were seen.
    pub seen: u64,
    /// Most of them alive at the same time.
    pub at_once: u64,
    /// Most occurrences open at once, summed over those alive at the same time.
    pub concurrency: u64,
}

/// The most of what is alive at the same time, each counting as much as is said.
pub fn most_alive(lives: impl Iterator<Item = (Life, u64)>) -> u64 {
    let mut events: Vec<(i64, bool, u64)> = lives.flat_map(|((first, last), n)| [(first, false, n), (last, true, n)]).collect();
    events.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, is_end, n) in events {
        now = if is_end { now - n } else { now + n };
        most = most.max(now);
    }
    most
}

/// Instances by task.
pub fn instances(catalog: &Catalog, load: &Load) -> HashMap<u32, Instances> {
    let told: HashSet<u32> = (0..catalog.labels.len()).map(|label| catalog.label(label as u32).instance).collect();
    let mut of_tasks: HashMap<u32, Vec<(u32, u64, Option<Life>)>> = HashMap::new();
    for (instance, most, life) in load.instances() {
        if let Some((task, _)) = catalog.instances.get_index(instance as usize) {
            of_tasks.entry(*task).or_default().push((instance, most, life));
        }
    }
    let of_task = |(task, mut all): (u32, Vec<(u32, u64, Option<Life>)>)| {
        if all.iter().any(|(instance, ..)| told.contains(instance)) {
            all.retain(|(instance, ..)| told.contains(instance));
        }
        let n_timeless = all.iter().filter(|(.., life)| life.is_none()).count() as u64;
        let lives = || all.iter().filter_map(|(_, most, life)| Some((*life.as_ref()?, *most)));
        let at_once = n_timeless + most_alive(lives().map(|(life, _)| (life, 1)));
        (task, Instances { seen: all.len() as u64, at_once, concurrency: most_alive(lives()) })
    };
    of_tasks.into_iter().map(of_task).collect()
}

impl Spans {
    /// Processors, threads and workloads of the tasks seen so far.
    pub fn hints(&self) -> Hints {
        let load = self.load.finished();
        let mut hints = Hints::default();
        let instances = instances(&self.catalog, &load);
        let mut tasks: Vec<u32> = self.account.tasks.keys().copied().collect();
        tasks.sort_by_key(|task| self.catalog.names.name(*task));
        for task in tasks {
            let (sums, name) = (&self.account.tasks[&task], self.catalog.names.name(task));
            let mut process = ProcessHints::default();
            let bounded = sums.is_served || matches!(sums.origin, Some(Origin::Client(PeerKind::Store) | Origin::Implied));
            process.infinite = !bounded;
            process.threads = instances.get(&task).map(|of| of.concurrency).filter(|n| bounded && *n > 0);
            let wait_s = (sums.wait_s.count > 0).then_some(sums.wait_s.mean.max(0.0));
            process.seen_threads = process.threads.map(|_| SeenThreads { wait_s });
            process.processor = self.processor(name, sums, bounded, &mut hints);
            hints.processes.insert(name.to_owned(), process);
        }
        let internal: Vec<(String, String)> =
            hints.processes.keys().filter_map(|name| Some((name.clone(), name.strip_suffix("(internal)")?.to_owned()))).collect();
        for (name, service) in internal {
            let Some(of_service) = hints.processes.get_mut(&service) else { continue };
            let processor = of_service.processor.get_or_insert_with(|| format!("{service}_cpu")).clone();
            hints.processes[&name].processor = Some(processor);
        }
        let mut workloads: Vec<_> = load.workloads().collect();
        workloads.sort_by_key(|(process, _)| self.catalog.names.name(*process));
        for (process, (workload, seen)) in workloads {
            let hints = hints.processes.entry(self.catalog.names.name(process).to_owned()).or_default();
            (hints.workload, hints.seen) = (Some(workload), Some(seen));
        }
        hints
    }

    /// The processor of a task, where anything tells; its own are noted in `hints`.
    fn processor(&self, name: &str, sums: &TaskSums, bounded: bool, hints: &mut Hints) -> Option<String> {
        let own = || format!("{name}_cpu");
        match sums.hosts.len() {
            // What nobody else waits for either: a third party's own machines.
            0 if !bounded && !name.ends_with("(internal)") => {
                let scheduling = Some(ProcessorScheduling::Inf);
                hints.processors.insert(own(), ProcessorHints { scheduling, ..ProcessorHints::default() });
                Some(own())
            }
            0 => None,
            1 => sums.hosts.keys().next().map(|host| self.catalog.names.name(*host).to_owned()),
            _ => {
                let machines = Some(sums.hosts_at_once());
                hints.processors.insert(own(), ProcessorHints { machines, ..ProcessorHints::default() });
                Some(own())
            }
        }
    }
}
