//! Who leads to whom, and what may go on without those who begin it.

use super::{
    super::{
        super::net::{Net, Source, reached},
        layout::Layout,
    },
    outline::Errand,
};
use crate::model::Scalar;

/// By which ways requests lead to entries.
#[derive(Debug)]
pub(in super::super) struct Reach {
    /// The arcs to each entry.
    into: Vec<Vec<usize>>,
    /// The places of entries in an order of callers before callees.
    rank: Vec<usize>,
    /// What may go on for requests without them, by entry.
    errands: Vec<Errand>,
}

impl Reach {
    pub fn new<S: Scalar>(net: &Net<S>) -> Self {
        let mut into = vec![Vec::new(); net.entries.len()];
        for (a, arc) in net.arcs.iter().enumerate() {
            arc.target.iter().for_each(|&entry| into[entry].push(a));
        }
        let mut rank = vec![usize::MAX; net.entries.len()];
        let entries = net.order.iter().flat_map(|&task| &net.tasks[task].entries);
        entries.enumerate().for_each(|(at, &entry)| rank[entry] = at);
        let mut errands = Vec::new();
        for entry in 0..net.entries.len() {
            if into[entry].iter().any(|&arc| is_sent(net, arc)) {
                errands.push(Errand::Sent(entry));
            }
            if net.entries[entry].is_followed {
                errands.push(Errand::AfterReply(entry));
            }
        }
        Self { into, rank, errands }
    }

    pub(super) fn errands(&self) -> &[Errand] {
        &self.errands
    }

    /// The arcs of calls to each entry, those that forwarding adds left out.
    pub fn calls<S>(&self, net: &Net<S>) -> Vec<Vec<usize>> {
        let calls = |arcs: &Vec<usize>| arcs.iter().copied().filter(|&arc| net.arcs[arc].via.is_none()).collect();
        self.into.iter().map(calls).collect()
    }

    /// Whether each entry comes to a station, itself or with what it calls.
    pub fn comes<S>(&self, net: &Net<S>, layout: &Layout) -> Vec<bool> {
        self.above(net, layout.groups.iter().map(|&node| net.nodes[node].entry).collect(), |_| true)
    }

    /// Whether each entry calls or sends to a task whose queue that is, itself or in what it calls.
    pub(super) fn comes_to_queue<S>(&self, net: &Net<S>, layout: &Layout) -> Vec<bool> {
        let nodes = layout.arcs.iter().filter_map(|&arc| net.arcs[arc].source.node());
        self.above(net, nodes.map(|node| net.nodes[node].entry).collect(), |_| true)
    }

    /// Whether each entry leads over `these` arcs to one that is `open`, or is one.
    fn above<S>(&self, net: &Net<S>, open: Vec<usize>, these: impl Fn(usize) -> bool) -> Vec<bool> {
        reached(self.into.len(), open, |entry, open| open.extend(self.callers(net, entry, &these)))
    }

    /// The entries from which such arcs lead to an entry.
    fn callers<'a, S>(&'a self, net: &'a Net<S>, entry: usize, these: impl Fn(usize) -> bool + 'a) -> impl Iterator<Item = usize> + 'a {
        let arcs = self.into[entry].iter().filter(move |&&arc| these(arc));
        arcs.filter_map(|&arc| net.arcs[arc].source.node()).map(|node| net.nodes[node].entry)
    }

    /// Some entries, callers before callees.
    pub fn in_order(&self, these: &[bool]) -> Vec<usize> {
        let mut entries: Vec<usize> = (0..these.len()).filter(|&entry| these[entry] && self.rank[entry] != usize::MAX).collect();
        entries.sort_unstable_by_key(|&entry| self.rank[entry]);
        entries
    }

    /// Entries on the way of an errand to a station that some of them come to: those where it begins, and those that are reached from there and come, too; callers before callees,
    /// and whether it may be met there.
    pub(super) fn path<S: Scalar>(&self, net: &Net<S>, errand: Errand, comes: &[bool]) -> Vec<(usize, bool)> {
        let is_call = |arc: usize| net.arcs[arc].source.held().is_some() && net.arcs[arc].via.is_none();
        let first = match errand {
            Errand::Sent(entry) => self.callers(net, entry, |arc| is_sent(net, arc)).collect(),
            Errand::AfterReply(entry) => self.callers(net, entry, is_call).collect(),
        };
        let begins = self.above(net, first, is_call);
        let open = (0..begins.len()).filter(|&entry| begins[entry]).collect();
        let met = reached(begins.len(), open, |entry, open| {
            let called = net.nodes_of(entry).into_iter().flat_map(|node| net.called_by(node));
            open.extend(called.filter(|&entry| comes[entry]));
        });
        self.in_order(&met).into_iter().map(|entry| (entry, comes[entry])).collect()
    }
}

/// Whether nobody waits for what is sent over an arc.
fn is_sent<S>(net: &Net<S>, arc: usize) -> bool {
    matches!(net.arcs[arc].source, Source::Detached(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Bindings, lqn_text},
        solve::layered::{compile::compile, structure::Structure},
    };

    /// Two classes with a way of their own to a store; the one sends to a log on the store's processor, and the other waits for what goes on after its reply.
    #[test]
    fn an_errand_is_met_where_who_begins_it_goes_and_nowhere_else() {
        let text = "P 0 p uu i p web f p db f -1
            T 0 t c1 r e1 -1 uu z 3 m 5 t c2 r e2 -1 uu z 1 m 2 t t1 n a1 -1 web t t2 n a2 -1 web t store n s1 s2 -1 db t log n l1 -1 db -1
            E 0 s e1 0.1 -1 y e1 a1 1 -1 s e2 0.2 -1 y e2 a2 1 -1 s a1 0.1 -1 y a1 s1 1 -1 z a1 l1 1 -1 s a2 0.1 -1 y a2 s2 2 -1
            s s1 0.2 -1 s s2 0.1 0.3 -1 s l1 0.1 -1 -1";
        let model = lqn_text::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let net: Net<f64> = compile(&model, &Bindings::new()).unwrap();
        let reach = Reach::new(&net);
        let entry = |name: &str| (0..net.entries.len()).find(|&entry| net.entries[entry].name == name).unwrap();
        let station = |name: &str| net.stations.iter().position(|it| it.name == name).unwrap();
        let structure = Structure::new(&net);
        let comes = reach.comes(&net, &structure.layouts[station("db")]);
        assert_eq!(reach.in_order(&comes).len(), 7, "all come there");
        let path = |errand, comes: &[bool]| {
            let names = reach.path(&net, errand, comes).into_iter().map(|(entry, _)| net.entries[entry].name.clone());
            names.collect::<Vec<String>>()
        };
        let sent = Errand::Sent(entry("l1"));
        assert!(reach.errands().contains(&sent));
        let mut met = path(sent, &comes);
        assert_eq!(met[..2], ["e1", "a1"], "callers before callees");
        met.sort_unstable();
        assert_eq!(met, ["a1", "e1", "l1", "s1"]);
        assert_eq!(path(sent, &reach.comes_to_queue(&net, &structure.layouts[station("log")])), ["e1", "a1"]);
        let mut met = path(Errand::AfterReply(entry("s2")), &comes);
        met.sort_unstable();
        assert_eq!(met, ["a2", "e2", "s2"]);
        // What does not come is passed by.
        let others: Vec<bool> = (0..comes.len()).map(|other| other != entry("s1")).collect();
        assert_eq!(path(sent, &others), ["e1", "a1", "l1"]);
    }
}
