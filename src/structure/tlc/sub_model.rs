//! The sub-model of one recording, in the paper's terms.

use super::{
    TlcOptions,
    control::{Control, EntryKind},
    live::{Label, Live, NONE, Numbers},
    templates::Template,
    toeg::Toeg,
};
use crate::{
    structure::interactions::InteractionKind,
    trace::{angio::AngioEvent, names::Names},
};

/// A request that an entry makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubRequest {
    /// The requested entry (index into [`SubModel::entries`]).
    pub to: usize,
    /// Phase of the requester, 1 or 2.
    pub phase: u8,
    /// With a reply, without, or handed on.
    pub kind: InteractionKind,
}

/// An entry Eₙ = {type, task, requests, activities} of section 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubEntry {
    /// How it is requested.
    pub kind: EntryKind,
    /// Its task; of the customer the scenario.
    pub task: String,
    /// Its requests Vₙ, in the order found.
    pub requests: Vec<SubRequest>,
    /// Its activities Aₙ by the counters of its task, in phases 1 and 2.
    pub activities: [Vec<u64>; 2],
}

/// A node `(k, m / i, v)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SubNode {
    /// Scenario thread k.
    pub thread: u64,
    /// Its counter m.
    pub thread_node: u32,
    /// Task i.
    pub task: String,
    /// Its counter v.
    pub task_node: u64,
    /// Whether it is of the second phase of its entry.
    pub second_phase: bool,
}

/// What the control algorithm makes of one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubModel {
    /// Entries, the customer's first, each after the one that requests it.
    pub entries: Vec<SubEntry>,
    /// Templates in the order found, with their nodes.
    pub matches: Vec<(Template, Vec<SubNode>)>,
    /// Nodes that no template holds.
    pub unmatched: Vec<SubNode>,
}

/// The sub-model of the events of one recording, in any order; `None` if they have no first node. Of several events of one
/// node of a thread the first counts.
pub fn sub_model(events: &[AngioEvent<'_>], options: &TlcOptions) -> Option<SubModel> {
    let (mut live, mut tasks) = (Live::new(0, 0), Names::default());
    for event in events {
        let numbers = Numbers { task: tasks.intern(event.task), operation: NONE, activity: NONE };
        live.add(event, numbers);
    }
    let mut toeg = Toeg::default();
    toeg.build(&mut live);
    let (first, _) = toeg.first_node()?;
    let mut control = Control::logging();
    control.run(&mut toeg, first, options);
    let scenario = events.first().map_or("", |event| event.scenario);
    Some(Shown { toeg: &toeg, control: &control, tasks: &tasks }.sub_model(scenario))
}

struct Shown<'s> {
    toeg: &'s Toeg,
    control: &'s Control,
    tasks: &'s Names,
}

impl Shown<'_> {
    fn sub_model(&self, scenario: &str) -> SubModel {
        let Self { toeg, control, tasks } = self;
        let mut entries: Vec<SubEntry> = control
            .entries
            .iter()
            .map(|entry| SubEntry {
                kind: entry.kind,
                task: if entry.task == NONE { scenario } else { tasks.name(entry.task) }.to_owned(),
                requests: Vec::new(),
                activities: Default::default(),
            })
            .collect();
        for request in &control.requests {
            let kind = if request.kind == InteractionKind::Async { InteractionKind::Async } else { InteractionKind::Sync };
            entries[request.from as usize].requests.push(SubRequest { to: request.first as usize, phase: request.phase, kind });
            for forwarder in request.first..request.last {
                let to = forwarder as usize + 1;
                entries[to - 1].requests.push(SubRequest { to, phase: 1, kind: InteractionKind::Forward });
            }
        }
        for index in &toeg.task_order {
            let (node, entry) = (toeg.node(*index), control.entry_of[*index as usize]);
            if let Some(entry) = entries.get_mut(entry as usize).filter(|_| node.label == Label::Activity) {
                let phase = control.phase(toeg, *index, control.entry_of[*index as usize]);
                entry.activities[usize::from(phase) - 1].push(node.task_node);
            }
        }
        let matches = control.log.iter().flatten();
        let unmatched = (0..toeg.nodes.len() as u32).filter(|node| !control.processed[*node as usize]);
        SubModel {
            entries,
            matches: matches.map(|(template, nodes)| (*template, nodes.iter().map(|node| self.node(*node)).collect())).collect(),
            unmatched: unmatched.map(|node| self.node(node)).collect(),
        }
    }

    fn node(&self, index: u32) -> SubNode {
        let node = self.toeg.node(index);
        SubNode {
            thread: self.toeg.thread_ids[node.thread as usize],
            thread_node: node.thread_node,
            task: self.tasks.name(node.task).to_owned(),
            task_node: node.task_node,
            second_phase: self.control.phase(self.toeg, index, self.control.entry_of[index as usize]) == 2,
        }
    }
}
