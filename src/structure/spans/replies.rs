//! Requests over one queue with the reply over another: two asynchronous messages that are one synchronous call.
//!
//! Input: a [`Forest`]; output: the same with such pairs joined. Occurrence A sends a message by producer p, which occurrence
//! R of another task handles; R sends a message by producer q, which occurrence K handles. It is the reply to p if
//!
//! 1. K is of A's task, and A is still at work when K starts;
//! 2. no conversation ids contradict: p's (or R's) and q's (or K's), where both are said, are equal;
//! 3. one of: both are said and equal; q or K links to p; A makes no other request between p's end and K's start (it waits).
//!
//! Then A waits from p's start to K's start, R replies when q ends (what it does after that is its second phase), and K is
//! part of A. An occurrence replies once, by its first such message. Without times nothing tells that A waits: nothing is joined.

use super::{
    forest::{Call, Forest},
    quality::Notes,
    tree::{NOBODY, Tree},
};

/// A request and its reply (indices into [`Forest::calls`]).
#[derive(Clone, Copy, Debug)]
struct Pair {
    request: usize,
    reply: usize,
}

/// Joins requests and replies over queues.
pub fn join_replies(forest: &mut Forest, tree: &Tree, notes: &mut Notes) {
    if tree.is_timeless {
        return;
    }
    let pairs: Vec<Pair> = (0..forest.calls.len()).filter_map(|request| find_reply(forest, tree, request)).collect();
    if pairs.is_empty() {
        return;
    }
    // A reply that carries a request of its own stays with the outermost.
    let mut taken = vec![false; forest.calls.len()];
    for Pair { request, reply } in pairs {
        if taken[request] || taken[reply] {
            continue;
        }
        (taken[request], taken[reply]) = (true, true);
        notes.count("reply_over_queue", || tree.name(forest.calls[reply].piece as usize));
        join(forest, request, reply);
    }
    forest.sort_calls();
}

fn find_reply(forest: &Forest, tree: &Tree, request: usize) -> Option<Pair> {
    let call = forest.calls[request];
    if !call.is_async || !call.has_server {
        return None;
    }
    let (asker, server) = (forest.occs[call.from as usize], forest.occs[call.to as usize]);
    if server.task == asker.task {
        return None;
    }
    forest.calls_of(call.to as usize).find_map(|reply| {
        let answer = forest.calls[reply];
        let consumer = forest.occs[answer.to as usize];
        let is_back = answer.is_async && answer.has_server && consumer.task == asker.task;
        let in_time = consumer.start_ns >= call.start_ns && consumer.start_ns <= asker.work_end_ns;
        let answers = is_back && in_time && is_answer(forest, tree, &call, &answer);
        answers.then_some(Pair { request, reply })
    })
}

fn is_answer(forest: &Forest, tree: &Tree, call: &Call, answer: &Call) -> bool {
    let conversation = |piece: u32| tree.pieces.get(piece as usize).map_or(0, |p| p.conversation);
    let said = |call: &Call| match conversation(call.piece) {
        0 => conversation(forest.occs[call.to as usize].piece),
        known => known,
    };
    let (asked, answered) = (said(call), said(answer));
    if asked != 0 && answered != 0 {
        return asked == answered;
    }
    let consumer = forest.occs[answer.to as usize];
    let links_back = |piece: u32| tree.links.binary_search(&(piece, call.piece)).is_ok();
    if links_back(answer.piece) || links_back(consumer.piece) {
        return true;
    }
    let waits = |other: &Call| other.start_ns >= consumer.start_ns || other.end_ns <= call.end_ns || other.piece == call.piece;
    forest.calls_of(call.from as usize).all(|other| waits(&forest.calls[other]))
}

fn join(forest: &mut Forest, request: usize, reply: usize) {
    let (answer, asker) = (forest.calls[reply], forest.calls[request].from);
    let consumer = forest.occs[answer.to as usize];
    let call = &mut forest.calls[request];
    call.is_async = false;
    call.end_ns = consumer.start_ns;
    let server = &mut forest.occs[call.to as usize];
    server.reply_ns = answer.end_ns.min(consumer.start_ns).clamp(server.start_ns, server.end_ns.max(server.start_ns));
    for index in forest.calls_of(answer.to as usize) {
        forest.calls[index].from = asker;
    }
    for work in forest.late_work.iter_mut().filter(|work| work.0 == answer.to) {
        work.0 = asker;
    }
    if consumer.end_ns > forest.occs[asker as usize].end_ns {
        forest.late_work.push((asker, consumer.start_ns, consumer.end_ns));
    }
    forest.occs[answer.to as usize].is_gone = true;
    let gone = &mut forest.calls[reply];
    (gone.is_gone, gone.branch) = (true, None);
    debug_assert_ne!(asker, NOBODY);
}
