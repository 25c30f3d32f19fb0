//! Sums over all requests, mergeable.

use crate::trace::hashed::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    dependencies::Dependence,
    flow::{Flow, Flows, Label, Labels},
    frames::FrameKind,
    links::Request,
    live::NONE,
    options::{CallPathOptions, DependentAction},
    outside::Outside,
    places::Places,
    walk::{Execution, Region, Step, Walk},
};
use crate::trace::call_path::Action;

/// Most numbers that the classes of call paths may take up.
const MOST_CLASS_NUMBERS: usize = 1 << 20;
/// Most frames of a call path whose class is noted.
const LONGEST_CLASS: usize = 4096;

/// Where the records went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCounts {
    /// Records that came in, those of [`RecordCounts::not_sampled`] too.
    pub seen: u64,
    /// Entries and exits of frames.
    pub in_frames: u64,
    /// Whole executions.
    pub executions: u64,
    /// Calls and returns.
    pub calls: u64,
    /// Messages sent and received.
    pub messages: u64,
    /// What was told of call paths.
    pub begins: u64,
    /// Exits and returns without a beginning.
    pub orphans: u64,
    /// Executions and records that were there twice.
    pub duplicates: u64,
    /// Records of contexts that were not to be used.
    pub not_sampled: u64,
}

impl RecordCounts {
    /// What the fields besides `seen` add up to: `seen`, when all requests are finished.
    pub fn accounted(&self) -> u64 {
        let used = self.in_frames + self.executions + self.calls + self.messages + self.begins;
        used + self.orphans + self.duplicates + self.not_sampled
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.seen += other.seen;
        self.in_frames += other.in_frames;
        self.executions += other.executions;
        self.calls += other.calls;
        self.messages += other.messages;
        self.begins += other.begins;
        self.orphans += other.orphans;
        self.duplicates += other.duplicates;
        self.not_sampled += other.not_sampled;
    }
}

/// What became of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCounts {
    /// Requests (contexts).
    pub contexts: u64,
    /// Call paths (transactions).
    pub paths: u64,
    /// Requests of which records are missing.
    pub partial: u64,
    /// Requests that were cut because there was no room.
    pub cut: u64,
    /// Executions of building blocks.
    pub frames: u64,
    /// Frames without an exit, or with executions missing inside.
    pub truncated: u64,
    /// Executions of components' services: frames that are not inside of one component.
    pub occurrences: u64,
}

impl PathCounts {
    fn merge(&mut self, other: &Self) {
        self.contexts += other.contexts;
        self.paths += other.paths;
        self.partial += other.partial;
        self.cut += other.cut;
        self.frames += other.frames;
        self.truncated += other.truncated;
        self.occurrences += other.occurrences;
    }
}

/// Sums over the executions of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ServiceSums {
    /// Frames, also those inside of one component.
    pub(super) frames: u64,
    /// Executions as a service of its component, whole ones.
    pub(super) n: u64,
    /// What they stand for.
    pub(super) weight: f64,
    pub(super) truncated: u64,
    /// Of those with records of their own.
    pub(super) measured: u64,
    pub(super) duration_ns: i128,
    pub(super) self_ns: i128,
    /// The place of the connection by which it was called last.
    last_connection: usize,
}

/// Calls between two services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionSums {
    pub(super) n: u64,
    pub(super) network_ns: i128,
    pub(super) n_network: u64,
}

/// What connects two services: caller (instance and service; [`NONE`] for the world outside) and callee, and whether it waits.
pub(super) type Connection = ((u32, u32), (u32, u32), bool);

/// Sums over all requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    pub(super) records: RecordCounts,
    pub(super) paths: PathCounts,
    pub(super) flows: Flows,
    pub(super) services: Vec<ServiceSums>,
    pub(super) connections: IndexMap<Connection, ConnectionSums>,
    /// Call paths by what is in them: depth, service and server of each frame.
    pub(super) classes: IndexMap<Box<[u32]>, u64>,
    n_class_numbers: usize,
    pub(super) n_unclassed: u64,
    pub(super) dependencies: Vec<Dependence>,
    /// Requests from outside that wait.
    pub(super) outside: Outside,
    /// First beginning and last end.
    span_ns: Option<(i64, i64)>,
    scratch: Vec<(u32, i64)>,
    key: Vec<u32>,
    depths: Vec<u32>,
    /// The flow of the service, of whole executions of the request at hand; shape `(n_executions,)`.
    flow_of_execution: Vec<Option<Flow>>,
}

impl Summary {
    /// Adds a request, and the walk over it.
    pub(super) fn add(&mut self, request: &Request, walk: &Walk, weight: f64, places: &Places, options: &CallPathOptions) {
        self.paths.contexts += 1;
        self.paths.partial += u64::from(request.partial);
        self.paths.cut += u64::from(request.cut);
        self.services.resize(places.texts.n_locations(), ServiceSums::default());
        self.dependencies.resize(options.dependencies.len(), Dependence::default());
        self.add_frames(request);
        for execution in &walk.executions {
            self.add_execution(execution, &walk.executions, weight);
        }
        self.flow_of_execution.clear();
        self.flow_of_execution.resize(walk.executions.len(), None);
        for region in walk.regions.iter().filter(|region| region.action.is_none() && !region.truncated) {
            self.flow_of_execution[region.execution as usize] = Some(region.flow);
        }
        let mut steps = walk.steps.as_slice();
        for (number, region) in walk.regions.iter().enumerate() {
            let n_own = steps.iter().take_while(|(of, _)| *of as usize == number).count();
            let (own, rest) = steps.split_at(n_own);
            steps = rest;
            if !region.truncated {
                self.add_region(region, own);
            }
            self.add_calls(region, own);
        }
        if options.dependencies.is_empty() {
            return;
        }
        self.add_dependencies(request, walk, places, options);
    }

    /// Executions of each service on each instance.
    pub(super) fn by_instance(&self) -> IndexMap<(u32, u32), u64> {
        let mut by_instance = IndexMap::default();
        for ((_, called, _), sums) in &self.connections {
            *by_instance.entry(*called).or_insert(0) += sums.n;
        }
        by_instance
    }

    /// Seconds from the first beginning to the last end.
    pub(super) fn span_s(&self) -> f64 {
        self.span_ns.map_or(0.0, |(from, to)| (i128::from(to) - i128::from(from)) as f64 / 1e9)
    }

    /// Adds where the records of a request went.
    pub(super) fn add_records(&mut self, request: &Request) {
        request.paths.iter().for_each(|path| self.records.merge(&path.records));
    }

    fn add_frames(&mut self, request: &Request) {
        self.add_records(request);
        for path in &request.paths {
            self.paths.paths += 1;
            for frame in path.frames.iter().filter(|frame| frame.kind == FrameKind::Service) {
                self.paths.frames += 1;
                self.paths.truncated += u64::from(frame.truncated);
                self.services[frame.location as usize].frames += 1;
                self.span_ns = match self.span_ns {
                    Some((from, to)) => Some((from.min(frame.start_ns), to.max(frame.end_ns))),
                    None => Some((frame.start_ns, frame.end_ns)),
                };
            }
            if !request.partial {
                self.add_class(path);
            }
        }
    }

    fn add_class(&mut self, path: &super::frames::Path) {
        if path.frames.len() > LONGEST_CLASS {
            self.n_unclassed += 1;
            return;
        }
        // Depths are looked up where the frames' own are noted.
        self.key.clear();
        self.depths.clear();
        for frame in &path.frames {
            let depth = if frame.parent == NONE { 0 } else { self.depths[frame.parent as usize] + 1 };
            self.depths.push(depth);
            if frame.kind == FrameKind::Service {
                self.key.extend([depth, frame.location, frame.server]);
            }
        }
        if let Some(n) = self.classes.get_mut(self.key.as_slice()) {
            *n += 1;
        } else if self.n_class_numbers + self.key.len() <= MOST_CLASS_NUMBERS {
            self.n_class_numbers += self.key.len();
            self.classes.insert(self.key.as_slice().into(), 1);
        } else {
            self.n_unclassed += 1;
        }
    }

    fn add_execution(&mut self, execution: &Execution, all: &[Execution], weight: f64) {
        self.paths.occurrences += 1;
        let service = &mut self.services[execution.location as usize];
        if execution.truncated {
            service.truncated += 1;
        } else {
            service.n += 1;
            service.weight += weight;
            if execution.measured {
                service.measured += 1;
                service.duration_ns += i128::from(execution.end_ns - execution.start_ns);
                service.self_ns += i128::from(execution.self_ns.max(0));
            }
        }
        let caller = execution.requester.occurrence.and_then(|caller| all.get(caller as usize));
        let caller = caller.map_or((NONE, NONE), |caller| (caller.instance, caller.location));
        let waits = execution.requester.kind != crate::structure::interactions::InteractionKind::Async;
        if waits && execution.requester.occurrence.is_none() && execution.measured && !execution.truncated {
            self.outside.add(execution.start_ns, execution.end_ns, weight);
        }
        let key = (caller, (execution.instance, execution.location), waits);
        // A service is mostly called by the one that called it last.
        let last = &mut service.last_connection;
        let connection = match self.connections.get_index_mut(*last) {
            Some((known, sums)) if *known == key => sums,
            _ => {
                let entry = self.connections.entry(key);
                *last = entry.index();
                entry.or_default()
            }
        };
        connection.n += 1;
        connection.network_ns += i128::from(execution.network_ns.unwrap_or(0));
        connection.n_network += u64::from(execution.network_ns.is_some());
    }

    fn add_region(&mut self, region: &Region, steps: &[Step]) {
        self.scratch.clear();
        self.scratch.extend(steps.iter().map(|(_, step)| *step));
        let Some((stats, labels, n_kept)) = self.flows.stats(region.flow) else { return };
        stats.add(&self.scratch, region.tail_ns, labels, n_kept);
    }

    /// Adds the calls of a region to those of the execution that it is in.
    fn add_calls(&mut self, region: &Region, steps: &[Step]) {
        let flow = self.flow_of_execution[region.execution as usize];
        let Some((stats, labels, _)) = flow.and_then(|flow| self.flows.stats(flow)) else { return };
        for (_, (label, _)) in steps {
            if let Some(Label::Call { location, kind }) = labels.get(*label) {
                stats.add_call((*location, *kind));
            }
        }
    }

    fn add_dependencies(&mut self, request: &Request, walk: &Walk, places: &Places, options: &CallPathOptions) {
        let frame = |execution: &Execution| request.paths[execution.frame.0 as usize].frames.get(execution.frame.1 as usize);
        let has_params = |execution: &Execution| !execution.truncated && frame(execution).is_some_and(|frame| frame.params.is_some());
        if !walk.executions.iter().any(has_params) {
            return;
        }
        let mut regions: Vec<(u32, u32)> = walk.regions.iter().zip(0..).map(|(region, number)| (region.execution, number)).collect();
        regions.sort_unstable();
        for (number, execution) in walk.executions.iter().enumerate().filter(|(_, execution)| has_params(execution)) {
            let first = regions.partition_point(|(of, _)| (*of as usize) < number);
            let own: Vec<u32> = regions[first..].iter().take_while(|(of, _)| *of as usize == number).map(|(_, region)| *region).collect();
            for (dependency, rendering) in frame(execution).and_then(|frame| frame.params.as_deref()).unwrap_or_default() {
                let Some(spec) = options.dependencies.get(*dependency as usize) else { continue };
                for outcome in outcomes(&spec.action, execution, &own, walk, places, &self.flows.labels) {
                    self.dependencies[*dependency as usize].add_rendering(rendering, spec.characterisation, outcome);
                }
            }
        }
    }

    /// Adds the sums of `other`, whose services, servers and instances are renumbered.
    pub(super) fn merge(&mut self, other: Self, location: &[u32], server: &[u32], instance: &[u32]) {
        let renumbered = |numbers: &[u32], number: u32| numbers.get(number as usize).copied().unwrap_or(number);
        self.records.merge(&other.records);
        self.paths.merge(&other.paths);
        self.n_unclassed += other.n_unclassed;
        self.flows.merge(other.flows, location);
        for (sums, location) in other.services.iter().zip(location) {
            let at = *location as usize;
            self.services.resize(self.services.len().max(at + 1), ServiceSums::default());
            let here = &mut self.services[at];
            here.frames += sums.frames;
            here.n += sums.n;
            here.weight += sums.weight;
            here.truncated += sums.truncated;
            here.measured += sums.measured;
            here.duration_ns += sums.duration_ns;
            here.self_ns += sums.self_ns;
        }
        let end = |(at, service): (u32, u32)| (renumbered(instance, at), renumbered(location, service));
        for ((from, to, waits), sums) in other.connections {
            let here = self.connections.entry((end(from), end(to), waits)).or_default();
            here.n += sums.n;
            here.network_ns += sums.network_ns;
            here.n_network += sums.n_network;
        }
        for (key, n) in other.classes {
            let key: Box<[u32]> =
                key.chunks_exact(3).flat_map(|frame| [frame[0], renumbered(location, frame[1]), renumbered(server, frame[2])]).collect();
            if let Some(here) = self.classes.get_mut(&key) {
                *here += n;
            } else if self.n_class_numbers + key.len() <= MOST_CLASS_NUMBERS {
                self.n_class_numbers += key.len();
                self.classes.insert(key, n);
            } else {
                self.n_unclassed += n;
            }
        }
        self.outside.merge(other.outside);
        self.dependencies.resize_with(self.dependencies.len().max(other.dependencies.len()), Dependence::default);
        self.dependencies.iter_mut().zip(other.dependencies).for_each(|(here, more)| here.merge(more));
        self.span_ns = match (self.span_ns, other.span_ns) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (a, b) => a.or(b),
        };
    }
}

/// What one execution says of an action.
fn outcomes(action: &DependentAction, execution: &Execution, regions: &[u32], walk: &Walk, places: &Places, labels: &Labels) -> Vec<u64> {
    let method = |location: u32| places.operations.name(places.operation(location));
    let steps = |region: u32| {
        let first = walk.steps.partition_point(|(of, _)| *of < region);
        walk.steps[first..].iter().take_while(move |(of, _)| *of == region).filter_map(|(_, (label, _))| labels.get(*label))
    };
    let actions = regions.iter().filter_map(|region| Some((*region, walk.regions.get(*region as usize)?.action?)));
    match action {
        DependentAction::SelfTime => vec![execution.self_ns.max(0) as u64],
        DependentAction::Branch(name) => actions
            .filter_map(|(_, (action, location))| match action {
                Action::Branch(index) if method(location) == name => Some(u64::from(index)),
                _ => None,
            })
            .collect(),
        DependentAction::Loop(name) => {
            let loops: Vec<u32> = actions
                .filter(|(_, (action, location))| *action == Action::Loop && method(*location) == name)
                .map(|(region, _)| region)
                .collect();
            let is_iteration = |label: &&Label| matches!(label, Label::Sub { kind: super::flow::SubKind::Iteration, .. });
            if loops.is_empty() {
                // Iterations that no loop as a whole is around.
                let named = |label: &&Label| matches!(label, Label::Sub { kind: super::flow::SubKind::Iteration, location } if method(*location) == name);
                return vec![regions.iter().flat_map(|region| steps(*region)).filter(named).count() as u64];
            }
            loops.into_iter().map(|region| steps(region).filter(is_iteration).count() as u64).collect()
        }
        DependentAction::Calls(service) => {
            let is_called = |label: &&Label| match label {
                Label::Call { location, .. } => {
                    let (component, method) = super::flow::Naming::service(places, *location);
                    service.strip_prefix(component).and_then(|rest| rest.strip_prefix('.')) == Some(method)
                }
                _ => false,
            };
            vec![regions.iter().flat_map(|region| steps(*region)).filter(is_called).count() as u64]
        }
    }
}
