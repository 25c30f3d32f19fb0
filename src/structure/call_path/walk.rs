//! The frames of a request to occurrences of components' services, and the regions of their control flow.
//!
//! A frame in the same component instance as its caller is part of the caller's occurrence; any other is an occurrence of its own.
//! A region is the occurrence itself, or a marked action in it; its steps are calls of other components and further
//! marked actions, each with the time since the step before.

use super::{
    flow::{CallKind, Flow, FlowKey, Flows, Label, SubKind},
    frames::{Frame, FrameKind, Path},
    links::Request,
    live::NONE,
    places::Places,
};
use crate::{structure::interactions::InteractionKind, trace::call_path::Action};

/// What asked for an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requester {
    /// The occurrence; `None` for the world outside.
    pub(super) occurrence: Option<u32>,
    pub(super) kind: InteractionKind,
}

/// An execution of a service by a component.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub(super) location: u32,
    /// Its method.
    pub(super) operation: u32,
    /// The component instance.
    pub(super) instance: u32,
    pub(super) unit: u32,
    pub(super) requester: Requester,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    /// Time without calls of other components.
    pub(super) self_ns: i64,
    /// Time between the caller's side of the call and this one, where that is known.
    pub(super) network_ns: Option<i64>,
    /// Whether it has records of its own, and all times of it and of what it waited for are possible.
    pub(super) measured: bool,
    pub(super) truncated: bool,
    /// The frame with its parameters: path and number.
    pub(super) frame: (u32, u32),
}

impl Execution {
    /// Waits for another, so long; for less than no time if that is not known.
    fn waits(&mut self, duration_ns: i64) {
        self.self_ns -= duration_ns.max(0);
        self.measured &= duration_ns >= 0;
    }
}

/// An execution, or a marked action in one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) execution: u32,
    pub(super) flow: Flow,
    pub(super) action: Option<(Action, u32)>,
    /// Where the last step ended.
    cursor_ns: i64,
    /// Until the region ends.
    pub(super) tail_ns: i64,
    end_ns: i64,
    pub(super) truncated: bool,
}

/// A step of a region: its label, and the time before it.
pub(super) type Step = (u32, (u32, i64));

/// What a walk finds; kept to be used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    pub(super) executions: Vec<Execution>,
    pub(super) regions: Vec<Region>,
    /// Steps by region.
    pub(super) steps: Vec<Step>,
    /// Forks whose requester is not known.
    pub(super) n_unmatched: u64,
    execution_of: Vec<u32>,
    region_of: Vec<u32>,
    queue: Vec<(u32, Requester)>,
    visited: Vec<bool>,
    unsorted: Vec<Step>,
    /// Where the next step of each region goes, shape `(n_regions + 1,)`.
    next_step: Vec<u32>,
}

impl Walk {
    /// Walks over all paths of a request, requesters before those that they request.
    pub(super) fn over(&mut self, request: &Request, places: &mut Places, flows: &mut Flows) {
        self.executions.clear();
        self.regions.clear();
        self.steps.clear();
        self.queue.clear();
        self.n_unmatched = 0;
        let mut visited = std::mem::take(&mut self.visited);
        visited.clear();
        visited.resize(request.paths.len(), false);
        let outside = Requester { occurrence: None, kind: InteractionKind::Sync };
        // The last round is for circles of paths that began each other.
        for round in 0..2 {
            for path in 0..request.paths.len() {
                if visited[path] || (round == 0 && request.begun[path]) {
                    continue;
                }
                let kind =
                    if round == 0 && request.paths[path].received.is_none() { InteractionKind::Sync } else { InteractionKind::Async };
                self.n_unmatched += u64::from(round == 1);
                self.queue.push((path as u32, Requester { kind, ..outside }));
                while let Some((path, requester)) = self.queue.pop() {
                    if !std::mem::replace(&mut visited[path as usize], true) {
                        self.path(request, path, requester, places, flows);
                    }
                }
            }
        }
        self.sort_steps();
        for region in &mut self.regions {
            region.tail_ns = (region.end_ns - region.cursor_ns).max(0);
        }
        self.visited = visited;
    }

    /// Puts steps in order of their regions, those of each in the order in which they were made.
    fn sort_steps(&mut self) {
        self.next_step.clear();
        self.next_step.resize(self.regions.len() + 1, 0);
        for (region, _) in &self.steps {
            self.next_step[*region as usize + 1] += 1;
        }
        for region in 1..self.next_step.len() {
            self.next_step[region] += self.next_step[region - 1];
        }
        self.unsorted.clone_from(&self.steps);
        for step in &self.unsorted {
            let next = &mut self.next_step[step.0 as usize];
            self.steps[*next as usize] = *step;
            *next += 1;
        }
    }

    fn path(&mut self, request: &Request, number: u32, requester: Requester, places: &mut Places, flows: &mut Flows) {
        let path = &request.paths[number as usize];
        let mut execution_of = std::mem::take(&mut self.execution_of);
        let mut region_of = std::mem::take(&mut self.region_of);
        execution_of.clear();
        region_of.clear();
        for (index, frame) in path.frames.iter().enumerate() {
            let parent = (frame.parent != NONE).then(|| (execution_of[frame.parent as usize], region_of[frame.parent as usize]));
            let parent = parent.filter(|(caller, _)| *caller != NONE);
            let (execution, region) = match frame.kind {
                FrameKind::Gone => (NONE, NONE),
                FrameKind::Elsewhere => self.elsewhere(path, frame, parent),
                FrameKind::Fork { transaction, waits } => {
                    self.fork(request, transaction, waits, frame, parent, flows);
                    (NONE, NONE)
                }
                FrameKind::Send { .. } => (self.leaf(number, index, frame, parent, places, flows), NONE),
                FrameKind::Uninstrumented { .. } => (self.leaf(number, index, frame, parent, places, flows), NONE),
                FrameKind::Service => self.service(number, index, frame, parent, requester, path, places, flows),
            };
            execution_of.push(execution);
            region_of.push(region);
        }
        self.execution_of = execution_of;
        self.region_of = region_of;
    }

    /// What is called in an execution that is told elsewhere is called by the execution around it, which waits once.
    fn elsewhere(&mut self, path: &Path, frame: &Frame, parent: Option<(u32, u32)>) -> (u32, u32) {
        let Some((caller, region)) = parent else { return (NONE, NONE) };
        if path.frames[frame.parent as usize].kind != FrameKind::Elsewhere {
            self.executions[caller as usize].waits(frame.end_ns - frame.start_ns);
        }
        (caller, region)
    }

    #[expect(clippy::too_many_arguments, reason = "what a frame is seen with")]
    fn service(
        &mut self,
        number: u32,
        index: usize,
        frame: &Frame,
        parent: Option<(u32, u32)>,
        root_requester: Requester,
        path: &Path,
        places: &mut Places,
        flows: &mut Flows,
    ) -> (u32, u32) {
        let (instance, unit) = places.place(frame.location, frame.server, frame.thread);
        let Some((caller, region)) = parent else {
            let execution = self.execution(number, index, frame, (instance, unit), root_requester, true, places);
            return (execution, self.region_of_execution(execution, frame, flows));
        };
        if self.executions[caller as usize].instance == instance {
            let region = match frame.action {
                Some(action) => self.marked(region, action, frame, flows),
                None => region,
            };
            self.regions[region as usize].truncated |= frame.truncated;
            return (caller, region);
        }
        let requester = Requester { occurrence: Some(caller), kind: InteractionKind::Sync };
        let execution = self.execution(number, index, frame, (instance, unit), requester, true, places);
        let duration = frame.end_ns - frame.start_ns;
        let called = frame.call_ns.map(|(from, to)| to - from);
        // A callee that seems to last longer than its caller is not taken off in full.
        let caller_frame = &path.frames[frame.parent as usize];
        let blocked = called.map_or(duration, |called| called.max(duration)).min(caller_frame.end_ns - caller_frame.start_ns);
        if caller_frame.kind != FrameKind::Elsewhere {
            self.executions[caller as usize].waits(blocked);
        }
        self.executions[execution as usize].network_ns = called.filter(|_| duration >= 0).map(|called| (called - duration).max(0));
        let from = frame.call_ns.map_or(frame.start_ns, |(from, _)| from);
        self.call(region, frame.location, CallKind::Sync, (from, from + blocked), flows);
        (execution, self.region_of_execution(execution, frame, flows))
    }

    /// A service that left no records of its own.
    fn leaf(
        &mut self,
        number: u32,
        index: usize,
        frame: &Frame,
        parent: Option<(u32, u32)>,
        places: &mut Places,
        flows: &mut Flows,
    ) -> u32 {
        let timed = frame.kind == FrameKind::Uninstrumented { timed: true };
        let kind = if matches!(frame.kind, FrameKind::Send { .. }) { CallKind::Async } else { CallKind::Sync };
        // Where it runs is not known: not on the caller's server, in any case not in its thread.
        let place = places.place(frame.location, NONE, NONE);
        let requester = Requester {
            occurrence: parent.map(|(caller, _)| caller),
            kind: if kind == CallKind::Async { InteractionKind::Async } else { InteractionKind::Sync },
        };
        let execution = self.execution(number, index, frame, place, requester, timed, places);
        if let Some((caller, region)) = parent {
            // Of a call without a return nobody knows how long it took: nothing is taken off.
            let end_ns = if timed { frame.end_ns } else { frame.start_ns };
            self.executions[caller as usize].waits(end_ns - frame.start_ns);
            self.call(region, frame.location, kind, (frame.start_ns, end_ns), flows);
        }
        execution
    }

    fn fork(&mut self, request: &Request, transaction: u32, waits: bool, frame: &Frame, parent: Option<(u32, u32)>, flows: &mut Flows) {
        let Some(path) = request.paths.get(transaction as usize) else { return };
        let Some((caller, region)) = parent else {
            self.n_unmatched += 1;
            let requester = Requester { occurrence: None, kind: InteractionKind::Async };
            self.queue.push((transaction, requester));
            return;
        };
        let kind = if waits { InteractionKind::Sync } else { InteractionKind::Async };
        self.queue.push((transaction, Requester { occurrence: Some(caller), kind }));
        let roots = path.frames.iter().filter(|root| root.parent == NONE && root.kind == FrameKind::Service);
        for root in roots {
            let duration = if waits { root.end_ns - root.start_ns } else { 0 };
            self.executions[caller as usize].waits(duration);
            let kind = if waits { CallKind::Sync } else { CallKind::Async };
            self.call(region, root.location, kind, (frame.start_ns, frame.start_ns + duration), flows);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what an execution is made of")]
    fn execution(
        &mut self,
        number: u32,
        index: usize,
        frame: &Frame,
        place: (u32, u32),
        requester: Requester,
        measured: bool,
        places: &Places,
    ) -> u32 {
        self.executions.push(Execution {
            location: frame.location,
            operation: places.operation(frame.location),
            instance: place.0,
            unit: place.1,
            requester,
            start_ns: frame.start_ns,
            end_ns: frame.end_ns,
            self_ns: frame.end_ns - frame.start_ns,
            network_ns: None,
            measured: measured && frame.end_ns >= frame.start_ns,
            truncated: frame.truncated,
            frame: (number, index as u32),
        });
        (self.executions.len() - 1) as u32
    }

    fn region_of_execution(&mut self, execution: u32, frame: &Frame, flows: &mut Flows) -> u32 {
        let flow = flows.flow(FlowKey::Service(frame.location));
        self.region(execution, flow, None, frame)
    }

    fn region(&mut self, execution: u32, flow: Flow, action: Option<(Action, u32)>, frame: &Frame) -> u32 {
        let (cursor_ns, end_ns, truncated) = (frame.start_ns, frame.end_ns, frame.truncated);
        self.regions.push(Region { execution, flow, action, cursor_ns, tail_ns: 0, end_ns, truncated });
        (self.regions.len() - 1) as u32
    }

    /// A marked action inside of `region`.
    fn marked(&mut self, region: u32, action: Action, frame: &Frame, flows: &mut Flows) -> u32 {
        let (kind, index) = match action {
            Action::Internal => (SubKind::Internal, 0),
            Action::Branch(index) => (SubKind::Branch, index),
            Action::Loop => (SubKind::Loop, 0),
            Action::Iteration => (SubKind::Iteration, 0),
        };
        let Region { execution, flow: of, .. } = self.regions[region as usize];
        let label = Label::Sub { kind, location: frame.location };
        self.step(region, label, (frame.start_ns, frame.end_ns), flows);
        let flow = flows.flow(FlowKey::Sub { of, kind, location: frame.location, index });
        self.region(execution, flow, Some((action, frame.location)), frame)
    }

    fn call(&mut self, region: u32, location: u32, kind: CallKind, times: (i64, i64), flows: &mut Flows) {
        self.step(region, Label::Call { location, kind }, times, flows);
    }

    fn step(&mut self, region: u32, label: Label, (start_ns, end_ns): (i64, i64), flows: &mut Flows) {
        let Some(label) = flows.labels.intern(label) else { return };
        let open = &mut self.regions[region as usize];
        let gap_ns = (start_ns - open.cursor_ns).max(0);
        open.cursor_ns = open.cursor_ns.max(end_ns);
        self.steps.push((region, (label, gap_ns)));
    }
}
