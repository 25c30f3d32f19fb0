//! The interaction templates (Table 1 of the paper): graph fragments, each found from its first node, the *glue node* e₁.
//!
//! Nodes are `(thread, label / task, counter of the task)`; what stands one below the other is in one thread.
//!
//! | rank | template | nodes |
//! |---|---|---|
//! | 1 | (i) RPC | e₁(k₁,Ac/i₁,v₁) e₂(k₁,next,Ac/i₂) e₃(k₁,Ac/i₂) e₄(k₁,next,Ac/i₁,v₁+1) |
//! | 2 | (iii) RPC with phase two | e₁ e₂ as (i), e₃(k₁,Fk k₂/i₂) e₄(k₂,Be/i₁,v₁+1) |
//! | 3 | (v) RPC from asynchronous messages | e₁(k₁,Fk k₂/i₁,v₁) e₂(k₁,next,Ed/i₁,v₁+1) e₃(k₂,Be/i₂) e₄(k₂,Fk k₃/i₂) e₅(k₃,Be/i₁,v₁+2) |
//! | 4 | (vi) the same, nested | as (v), but e₄ in a thread k₃ that descends from k₂, after e₃; e₅ in the thread k₄ that e₄ forks |
//! | 5 | (iv) forwarding | e₁ e₂ as (i), e₃(k₁,Fk k₂/i₂), for each forwarder Be and Fk of one thread and task, last Be(i₁,v₁+1) |
//! | 5½ | (iv′) the same from a sending that is not blocking | e₁ e₂ as (v), e₃(k₂,Be/i₂) Fk(k₂/i₂), forwarders, last Be(i₁,v₁+2) |
//! | 6 | (ii) asynchronous | e₁(k₁,Fk k₂/i₁) e₂(k₂,Be/i₂) |
//! | 6½ | (i°) request without a reply | e₁ e₂ as (i) |
//! | 7, 8 | (vii) (viii) (ix) | Ac, Ed, Be |
//!
//! A service that was answered by a message goes on in another thread. (iii), (iv) and (iv′) follow it there: the fork that
//! replies or hands on may be made in the thread that the answer to an earlier request of the service began. The paper has
//! this for (v) only, as (vi); its case study has a forwarder that asks by messages (section 7: entry (F,4)).
//!
//! A template is found if all its nodes are there, agree, and are part of no other. Larger ones go first. (iv′) and (i°) are
//! not of the paper and can be left out ([`super::TlcOptions`]).

use serde::{Deserialize, Serialize};

use super::{
    AsyncForwarding, TaskCounters, Unanswered,
    live::{Label, NONE},
    toeg::Toeg,
};

/// Longest chain of forwarders that is looked for, so that hostile input costs no more than linear time.
pub(super) const FORWARDERS_LIMIT: usize = 1024;

/// An interaction template, by its number in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Template {
    /// (i): a blocking request, and its reply.
    #[serde(rename = "i")]
    Rpc,
    /// (ii): a message that is not waited for.
    #[serde(rename = "ii")]
    Async,
    /// (iii): a blocking request whose server goes on after its reply.
    #[serde(rename = "iii")]
    RpcWithSecondPhase,
    /// (iv): a blocking request that others hand on; the last replies.
    #[serde(rename = "iv")]
    Forwarding,
    /// (v): a request and a reply, both messages that are not waited for, of a sender that does nothing between.
    #[serde(rename = "v")]
    AsyncRpc,
    /// (vi): as (v), where the server waits itself in the same way.
    #[serde(rename = "vi")]
    NestedAsyncRpc,
    /// (vii): something that a task does.
    #[serde(rename = "vii")]
    Activity,
    /// (viii): the end of a thread.
    #[serde(rename = "viii")]
    End,
    /// (ix): the begin of a thread.
    #[serde(rename = "ix")]
    Begin,
    /// (iv′), not of the paper: forwarding that starts from a message that is not waited for.
    #[serde(rename = "iv'")]
    AsyncForwarding,
    /// (i°), not of the paper: a blocking request whose reply was not recorded.
    #[serde(rename = "i°")]
    Unanswered,
}

/// A template found, with its nodes in the order of Table 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Match {
    pub(super) template: Option<Template>,
    pub(super) nodes: Vec<u32>,
    /// The sender did not wait as its counters say, but would have by their order.
    pub(super) busy_elsewhere: bool,
    /// An asynchronous forwarding that was not asked for.
    pub(super) chained_forwarding: bool,
    /// The sender goes on with a message of its server, but of another service of it.
    pub(super) ambiguous_reply: bool,
    /// A chain of forwarders was too long.
    pub(super) too_long: bool,
}

/// What templates are looked for in.
pub(super) struct Finder<'t> {
    pub(super) toeg: &'t mut Toeg,
    pub(super) processed: &'t [bool],
    pub(super) counters: TaskCounters,
    pub(super) async_forwarding: AsyncForwarding,
    pub(super) unanswered: Unanswered,
}

impl Finder<'_> {
    /// The first template, in order of rank, whose glue node `e1` is.
    pub(super) fn find(&mut self, e1: u32, found: &mut Match) {
        *found = Match { nodes: std::mem::take(&mut found.nodes), ..Match::default() };
        match self.toeg.node(e1).label {
            Label::Begin if self.toeg.node(e1).thread_node == 1 => self.accept(found, Template::Begin, &[e1]),
            Label::Begin => {}
            Label::End => self.accept(found, Template::End, &[e1]),
            Label::Activity => self.find_from_activity(e1, found),
            Label::Fork => self.find_from_fork(e1, found),
        }
    }

    fn accept(&self, found: &mut Match, template: Template, nodes: &[u32]) {
        found.nodes.clear();
        found.nodes.extend_from_slice(nodes);
        found.template = Some(template);
    }

    fn is(&self, index: u32, label: Label) -> bool {
        self.toeg.node(index).label == label && !self.processed[index as usize]
    }

    fn task(&self, index: u32) -> u32 {
        self.toeg.node(index).task
    }

    fn thread(&self, index: u32) -> u32 {
        self.toeg.node(index).thread
    }

    fn find_from_activity(&mut self, e1: u32, found: &mut Match) {
        let next = self.toeg.next_in_thread(e1).filter(|e2| self.is(*e2, Label::Activity) && self.task(*e2) != self.task(e1));
        let Some(e2) = next else { return self.accept(found, Template::Activity, &[e1]) };
        if self.find_blocking(e1, e2, self.counters, found) {
            return;
        }
        if self.skips(e1) {
            found.busy_elsewhere = self.find_blocking(e1, e2, TaskCounters::WithinRecording, &mut Match::default());
        }
        match self.unanswered {
            Unanswered::Request => self.accept(found, Template::Unanswered, &[e1, e2]),
            Unanswered::Unmatched => self.accept(found, Template::Activity, &[e1]),
        }
    }

    /// Templates (i), (iii) and (iv); e₁ and e₂ are alike in all of them.
    fn find_blocking(&mut self, e1: u32, e2: u32, counters: TaskCounters, found: &mut Match) -> bool {
        let Some(resumed) = self.toeg.later_in_task(e1, 1, counters) else { return false };
        if self.is(resumed, Label::Activity) {
            let e3 = self.toeg.previous_in_thread(resumed);
            let e3 = e3.filter(|e3| *e3 >= e2 && self.is(*e3, Label::Activity) && self.task(*e3) == self.task(e2));
            let Some(e3) = e3.filter(|_| self.thread(resumed) == self.thread(e1)) else { return false };
            self.accept(found, Template::Rpc, &[e1, e2, e3, resumed]);
            return true;
        }
        let Some(anchor) = self.find_chain(resumed, self.thread(e1), counters, found) else { return false };
        if anchor <= e2 || self.task(anchor) != self.task(e2) {
            return false;
        }
        let template = if found.nodes.len() == 1 { Template::RpcWithSecondPhase } else { Template::Forwarding };
        self.accept_chain(template, &[e1, e2], resumed, found)
    }

    fn find_from_fork(&mut self, e1: u32, found: &mut Match) {
        let child = self.toeg.node(e1).child;
        let begin = self.toeg.begin_of(child).filter(|begin| self.is(*begin, Label::Begin) && self.toeg.fork_of[child as usize] == e1);
        let Some(begin) = begin else { return };
        let end = self.toeg.next_in_thread(e1).filter(|end| {
            self.is(*end, Label::End) && self.task(begin) != self.task(e1) && self.toeg.later_in_task(e1, 1, self.counters) == Some(*end)
        });
        if let Some(end) = end {
            if self.find_waiting(e1, end, begin, self.counters, found) {
                return;
            }
            if self.skips(end) {
                found.busy_elsewhere = self.find_waiting(e1, end, begin, TaskCounters::WithinRecording, &mut Match::default());
            }
        }
        self.accept(found, Template::Async, &[e1, begin]);
    }

    /// Templates (v), (vi) and (iv′); e₁, e₂ and e₃ are alike in all of them.
    fn find_waiting(&mut self, e1: u32, e2: u32, e3: u32, counters: TaskCounters, found: &mut Match) -> bool {
        let Some(resumed) = self.toeg.later_in_task(e2, 1, counters) else { return false };
        let Some(reply) = self.fork_to(resumed) else { return false };
        let server = self.thread(e3);
        if self.task(reply) == self.task(e3) {
            let template = if self.thread(reply) == server { Template::AsyncRpc } else { Template::NestedAsyncRpc };
            let is_later = self.toeg.node(reply).task_node > self.toeg.node(e3).task_node;
            if template == Template::NestedAsyncRpc && !(is_later && self.toeg.descends(self.thread(reply), server)) {
                found.ambiguous_reply = true;
                return false;
            }
            self.accept(found, template, &[e1, e2, e3, reply, resumed]);
            return true;
        }
        match self.find_chain(resumed, server, counters, found) {
            Some(anchor) if found.nodes.len() > 1 && self.task(anchor) == self.task(e3) => {}
            _ => return false,
        }
        match self.async_forwarding {
            AsyncForwarding::Forwarded => self.accept_chain(Template::AsyncForwarding, &[e1, e2, e3], resumed, found),
            AsyncForwarding::Chained => {
                found.chained_forwarding = true;
                false
            }
        }
    }

    /// The fork that starts the thread of which `begin` is the begin.
    fn fork_to(&self, begin: u32) -> Option<u32> {
        let is_begin = self.is(begin, Label::Begin) && self.toeg.node(begin).thread_node == 1;
        let fork = self.toeg.fork_of[self.thread(begin) as usize];
        (is_begin && fork != NONE && !self.processed[fork as usize]).then_some(fork)
    }

    /// Walks from `last` back over forwarders, each a service that begins and forks in one task, to a fork of the service
    /// that goes on in `thread`. Leaves that fork and then the Be and Fk of each forwarder in `found.nodes`; returns the node
    /// by which the service left `thread`: that fork, or the request that it made before it.
    fn find_chain(&mut self, last: u32, thread: u32, counters: TaskCounters, found: &mut Match) -> Option<u32> {
        found.nodes.clear();
        let (mut begin, mut left) = (last, None);
        for _ in 0..FORWARDERS_LIMIT {
            let fork = match left {
                None => {
                    let fork = self.fork_to(begin)?;
                    found.nodes.push(fork);
                    fork
                }
                Some(request) => request,
            };
            if self.thread(fork) == thread {
                found.nodes.reverse();
                return Some(fork);
            }
            begin = self.toeg.begin_of(self.thread(fork)).filter(|begin| self.task(*begin) == self.task(fork))?;
            left = self.request_before(begin, counters);
            if left.is_none() {
                found.nodes.push(begin);
            }
        }
        found.too_long = true;
        None
    }

    /// The request after which its task waited until it went on at `resumed`, the begin of another thread: e₁ of (iii), (iv),
    /// (v) or (vi), and of (iv′) where that is looked for.
    fn request_before(&mut self, resumed: u32, counters: TaskCounters) -> Option<u32> {
        let reply = self.fork_to(resumed)?;
        let before = self.unused_before(resumed, counters)?;
        if self.toeg.node(before).label == Label::Activity {
            return self.is_blocking(before, resumed).then_some(before);
        }
        let e1 = self.toeg.previous_in_thread(before).filter(|_| self.is(before, Label::End))?;
        let server = self.toeg.node(e1).child;
        if !(self.is(e1, Label::Fork) && self.task(e1) == self.task(resumed) && self.toeg.fork_of[server as usize] == e1) {
            return None;
        }
        let e3 = self.toeg.begin_of(server).filter(|e3| self.task(*e3) != self.task(e1))?;
        // Where the receiver waited, the message was a reply to it: the task is asked anew.
        let asked = self.unused_before(e3, counters);
        if asked.is_some_and(|asked| self.toeg.node(asked).label == Label::Activity && self.is_blocking(asked, e3)) {
            return None;
        }
        let replied = self.thread(reply);
        let is_later = self.toeg.node(reply).task_node > self.toeg.node(e3).task_node;
        let is_service = self.task(reply) == self.task(e3) && is_later && (replied == server || self.toeg.descends(replied, server));
        let is_forwarded = self.async_forwarding == AsyncForwarding::Forwarded && self.toeg.descends(replied, server);
        (is_service || is_forwarded).then_some(e1)
    }

    /// What the task did just before, if no template holds it.
    fn unused_before(&self, index: u32, counters: TaskCounters) -> Option<u32> {
        self.toeg.earlier_in_task(index, counters).filter(|before| !self.processed[*before as usize])
    }

    /// Whether the activity `before` is a blocking request after which the task went on at `resumed`, the begin of a thread
    /// that comes from there.
    fn is_blocking(&mut self, before: u32, resumed: u32) -> bool {
        let next = self.toeg.next_in_thread(before).filter(|e2| self.is(*e2, Label::Activity));
        let is_request = next.is_some_and(|e2| self.task(e2) != self.task(before) && !self.toeg.is_return(before));
        is_request && self.toeg.descends(self.thread(resumed), self.thread(before))
    }

    fn accept_chain(&self, template: Template, head: &[u32], last: u32, found: &mut Match) -> bool {
        found.nodes.splice(0..0, head.iter().copied());
        found.nodes.push(last);
        found.template = Some(template);
        true
    }

    /// Whether the task recorded something for another scenario before its next node.
    fn skips(&self, index: u32) -> bool {
        self.counters == TaskCounters::AsRecorded
            && self.toeg.later_in_task(index, 1, TaskCounters::WithinRecording).is_some()
            && self.toeg.later_in_task(index, 1, TaskCounters::AsRecorded).is_none()
    }
}
