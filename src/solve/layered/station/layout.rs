//! What is fixed about a station: which arcs meet there, who sends them, and where its unknowns stand.

use super::{
    super::{
        at_once::most_at_once,
        exclusion::{FREE, Pairs},
        net::{Discipline, Net, Source, Work},
    },
    Sweep,
    bounded::{Bounded, callers_by_entry, find_bounded},
    customers::{Set, are_nowhere_else, find_inside, find_sets, most_of_classes},
    follows::Follows,
    interlock::{Interlock, find_interlocks},
    kinds::are_told,
    left_behind::LeftBehind,
    makes_way::find_made_way,
    messages::{Messages, Reach},
    origins::{come_through, origins},
    previous::{Previous, find_previous},
    replied::{Replied, find_replied},
    returns::{Return, find_returns},
    taken_up::{Met, find_met},
    unlike,
};
use crate::model::Scalar;

/// Most classes of customers that are told apart at a processor.
const MOST_CLASSES: usize = 8;

/// Which arcs meet at a station, grouped by who sends them.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Layout {
    pub arcs: Vec<usize>,
    /// Distinct tasks that bound what senders whose threads are held do here.
    pub pools: Vec<usize>,
    /// Tasks that begin what these send ([`super::origins`]).
    pub origins: Vec<usize>,
    pub station: usize,
    /// Most requests of all pools that can be here at once ([`most_at_once`]).
    pub(super) most: f64,
    /// Position in `pools` of what bounds each arc's sender.
    pub pool_of: Vec<Option<usize>>,
    /// Distinct held nodes.
    pub groups: Vec<usize>,
    /// Position in `groups` of each arc's node.
    pub group_of: Vec<Option<usize>>,
    /// The row of each group.
    pub row_of_group: Vec<usize>,
    /// Arrivals that find the same.
    pub rows: Vec<Row>,
    pub row_of: Vec<usize>,
    /// Positions of arcs by row, and where those of each row begin.
    by_row: Vec<usize>,
    from_row: Vec<usize>,
    /// Pairs of kin, `rows × arcs`.
    pub pairs: Vec<u32>,
    /// Pairs of the entry's first phase instead, for rows that begin a second phase; empty where there are none.
    pub late_pairs: Vec<u32>,
    /// Pairs of the first phases of both, where both begin a second phase right after a slice of the first at this station; as long as `late_pairs`.
    pub early_pairs: Vec<Option<u32>>,
    /// Where requests meet of which a pool sends one on, and another pool the other, in `rows × arcs`.
    pub sent_on: Vec<usize>,
    /// Where second phases meet the threads whose requests they were.
    pub(super) interlocks: Vec<Interlock>,
    /// From which calls arrivals return to where those were served, by row.
    pub(super) returns: Vec<Vec<Return>>,
    /// Whom its slices meet as threads take up requests, by row.
    pub(super) met: Vec<Met>,
    /// Where requests were before, by row.
    pub(super) previous: Vec<Vec<Previous>>,
    /// The same where requests make way for more urgent ones ([`super::makes_way`]); empty elsewhere.
    pub(super) made_way: Vec<Vec<Previous>>,
    /// Replies before what comes to a task.
    pub(super) replied: Vec<Replied>,
    /// How second phases may be found by the next request of the same customer.
    pub(super) left_behind: LeftBehind,
    /// Rows of requests that nobody waits for, where what senders find of them is told.
    pub(super) messages: Messages,
    /// What slices follow others at once; none where nobody asks.
    pub(super) follows: Option<Follows>,
    /// Distinct priorities, ascending.
    pub levels: Vec<f64>,
    /// Whether strands of one fork meet here, themselves or what works for them.
    pub siblings: bool,
    /// Whether some of them are left behind by joins.
    pub leaves: bool,
    /// At processors, where a join leaves the row's strand behind or the arc's, in `rows × arcs`; empty where none does.
    pub(super) left_strands: Vec<Option<Left>>,
    /// Whether threads that fork come here.
    pub of_forks: bool,
    /// Whether requests come that no waiting thread bounds.
    pub open: bool,
    /// Whether it is a processor of several tasks, or of one whose threads are as many as its requests, that serves, in order of arrival, requests
    /// of customers alone and what goes on after the reply to them.
    pub(super) of_customers: bool,
    /// Whether it is a processor, or before several classes a task of one thread, that serves requests of customers alone in order of arrival, and nothing that
    /// goes on after the reply to them.
    pub(super) of_classes: bool,
    /// Whether nothing that is served goes on after the reply.
    pub(super) ends_at_reply: bool,
    /// Whether of each source one second phase at most goes on: the next request to the task is served after it at their processor.
    pub(super) late_goes_first: bool,
    /// Whether all that comes is of customers of the only class, and none of it goes on after the reply.
    of_alike_customers: bool,
    /// Most requests of each class that can be here at once, where it is of classes; empty elsewhere.
    pub(super) most_of_classes: Vec<f64>,
    /// Tasks whose threads are nowhere else, where it is of classes, or would be but that it is shared; empty elsewhere.
    pub(super) inside: Vec<bool>,
    /// Whether these threads are all that comes, of customers who call nobody else.
    pub(super) are_nowhere_else: bool,
    /// The pools, those together of which one works for another.
    pub(super) sets: Vec<Set>,
    /// Parts of pools that waiting callers bound.
    pub(super) bounded: Vec<Bounded>,
    /// Whether several pools come that all their callers together could keep busy, and not too many threads to tell apart ([`super::unlike`]).
    pub(super) unlike: bool,
    /// Whether threads come here that work for requests that nobody waits for, or that come from outside.
    pub(super) of_senders: bool,
    /// Whether a chain tells what services change that vary more than exponential ones ([`super::kinds`], `mixed`): those of threads that do not hold each other up.
    pub(super) tells_variation: bool,
    /// Where the station's unknowns begin.
    pub offset: usize,
    /// Where its excess wait stands.
    pub excess: usize,
}

/// Of two strands of a thread the one that a join leaves behind where the other begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Left {
    /// That of the row.
    Behind,
    /// The other, with the place of the two among all.
    Ahead(usize),
}

/// Arrivals of one node (or of none) and one priority.
#[derive(Clone, Debug)]
pub(in super::super) struct Row {
    pub group: Option<usize>,
    pub pool: Option<usize>,
    pub kin: Option<usize>,
    pub priority: f64,
    /// The first arc of the row, by position.
    pub arc: usize,
    /// Whether the first slice starts at the reply of its entry, and so meets what the first phase could have met.
    pub follows_reply: bool,
}

/// Who calls what, at all stations.
#[derive(Debug)]
pub(in super::super) struct Callers {
    /// The arcs of calls to each entry ([`Reach::calls`]).
    calls: Vec<Vec<usize>>,
    /// The tasks that wait for each ([`callers_by_entry`]).
    tasks: Vec<Option<Vec<usize>>>,
    reach: Reach,
}

impl Callers {
    pub fn new<S: Scalar>(net: &Net<S>) -> Self {
        let reach = Reach::new(net);
        Self { calls: reach.calls(net), tasks: callers_by_entry(net), reach }
    }
}

impl Layout {
    /// The layout of `station`, whose unknowns begin at `offset`.
    pub fn new<S: Scalar>(net: &Net<S>, pairs: &Pairs, callers: &Callers, station: usize, offset: usize) -> Self {
        let calls = &callers.calls;
        let arcs = net.stations[station].arcs.clone();
        let mut layout = Self {
            most: f64::INFINITY,
            open: arcs.iter().any(|&a| net.arcs[a].source.held().is_none()),
            ends_at_reply: !arcs.iter().any(|&a| net.arcs[a].target.is_some_and(|entry| net.goes_on_after_reply(entry))),
            late_goes_first: late_goes_first(net, &arcs),
            offset,
            station,
            excess: net.arcs.len() + station,
            arcs,
            ..Self::default()
        };
        layout.group_arcs(net);
        layout.origins = origins(net, pairs, &layout.pools);
        let through = come_through(net, pairs, &layout.pools);
        // Strands that call others are not only those that come here themselves.
        let width = |task: usize| if through[task] { net.tasks[task].width } else { net.width_at(task, station) };
        layout.most = most_at_once(&layout.pools, |task| pairs.begun_by(net, task), |task| net.tasks[task].cap * width(task));
        layout.bounded = find_bounded(net, &layout, &callers.tasks);
        layout.of_customers = layout.is_of_customers(net, station);
        layout.find_sources(net, pairs);
        layout.of_alike_customers = layout.is_of_alike_customers(net);
        layout.unlike = layout.is_of_unlike_pools(net, station);
        layout.of_senders = layout.is_of_senders(net);
        layout.tells_variation = layout.is_of_varied_services(net, station);
        layout.find_pairs(net, pairs);
        layout.interlocks = find_interlocks(net, &layout);
        layout.returns = find_returns(net, &layout, station);
        layout.met = find_met(net, &layout, calls, station);
        layout.left_behind = LeftBehind::find(net, &layout, calls, station);
        layout.replied = find_replied(net, &layout, calls, station);
        layout.find_levels();
        layout.of_forks = layout.groups.iter().any(|&node| net.tasks[net.nodes[node].task].width > 1.0);
        layout.find_strands(net, pairs, callers);
        layout
    }

    /// Finds what a request may have here beside the slice at hand, and which slices follow which.
    fn find_strands<S: Scalar>(&mut self, net: &Net<S>, pairs: &Pairs, callers: &Callers) {
        let calls = &callers.calls;
        self.siblings = self.pairs.iter().any(|&pair| pairs.are_of_strands(pair));
        self.leaves = self.siblings && pairs.leave();
        self.find_left_strands(net, pairs);
        self.previous = find_previous(net, self, calls, self.station);
        self.made_way = find_made_way(net, self, calls);
        self.messages = Messages::find(net, self, &callers.reach, self.station);
        self.follows = Follows::find(net, self, calls, self.station);
    }

    fn group_arcs<S>(&mut self, net: &Net<S>) {
        let mut rows: std::collections::HashMap<(Option<usize>, u64), usize> = std::collections::HashMap::new();
        let place = |list: &mut Vec<usize>, item: usize| {
            list.iter().position(|&x| x == item).unwrap_or_else(|| {
                list.push(item);
                list.len() - 1
            })
        };
        for (position, &a) in self.arcs.iter().enumerate() {
            let held = net.arcs[a].source.held();
            let pool = held.map(|node| place(&mut self.pools, net.tasks[net.nodes[node].task].bounded_by));
            let group = held.map(|node| place(&mut self.groups, node));
            let priority = net.arcs[a].priority;
            let row = *rows.entry((held, priority.to_bits())).or_insert_with(|| {
                let follows_reply = net.arcs[a].target.is_none()
                    && held.is_some_and(|node| {
                        let it = &net.nodes[node];
                        it.phase > 0 && net.tasks[it.task].class.is_none() && matches!(net.entries[it.entry].work, Work::Phases(_))
                    });
                let kin = net.kin_of_arc(a);
                self.rows.push(Row { group, pool, kin, priority, arc: position, follows_reply });
                self.rows.len() - 1
            });
            if let Some(group) = group.filter(|&g| g == self.row_of_group.len()) {
                debug_assert_eq!(group, self.row_of_group.len(), "groups are numbered as they come");
                self.row_of_group.push(row);
            }
            self.pool_of.push(pool);
            self.group_of.push(group);
            self.row_of.push(row);
        }
        self.by_row = (0..self.arcs.len()).collect();
        self.by_row.sort_by_key(|&position| self.row_of[position]);
        self.from_row = (0..=self.rows.len()).map(|row| self.by_row.partition_point(|&position| self.row_of[position] < row)).collect();
    }

    /// The positions of a row's arcs.
    pub fn arcs_of(&self, row: usize) -> &[usize] {
        &self.by_row[self.from_row[row]..self.from_row[row + 1]]
    }

    /// What the sources are of what comes, where it is of classes.
    fn find_sources<S: Scalar>(&mut self, net: &Net<S>, pairs: &Pairs) {
        let discipline = net.stations[self.station].discipline;
        let is_told = matches!(discipline, Discipline::Fcfs | Discipline::Sharing) && self.is_of_classes(net);
        self.of_classes = is_told && discipline == Discipline::Fcfs;
        if is_told {
            self.inside = find_inside(net, self.station);
            self.are_nowhere_else = self.station < net.n_processors && are_nowhere_else(net, self);
        }
        if self.of_classes {
            self.most_of_classes = most_of_classes(net, pairs, self, self.station);
            if self.station < net.n_processors {
                self.sets = find_sets(net, pairs, &self.pools, self.station);
            }
        }
    }

    /// Finds where a slice at a processor is of a strand that the other's join leaves behind, or the reverse.
    fn find_left_strands<S>(&mut self, net: &Net<S>, pairs: &Pairs) {
        if !self.leaves || self.station >= net.n_processors {
            return;
        }
        let node = |group: Option<usize>| group.map(|group| self.groups[group]);
        let found = self.rows.iter().flat_map(|row| {
            self.group_of.iter().map(move |&other| {
                let (mine, other) = (node(row.group)?, node(other)?);
                let behind = pairs.left_behind(mine, other).map(|_| Left::Behind);
                behind.or_else(|| pairs.left_behind(other, mine).map(Left::Ahead))
            })
        });
        self.left_strands = found.collect();
    }

    fn is_of_customers<S>(&self, net: &Net<S>, station: usize) -> bool {
        let goes_on = |task: usize| {
            let it = &net.tasks[task];
            net.is_closed() && it.width <= 1.0 && it.entries.iter().all(|&entry| matches!(net.entries[entry].work, Work::Phases(_)))
        };
        let has_a_thread_each = |node: usize| {
            let it = &net.nodes[node];
            net.tasks[it.task].threads.is_infinite() && !net.goes_on_after_reply(it.entry)
        };
        station < net.n_processors
            && net.stations[station].discipline == Discipline::Fcfs
            && !self.open
            && (self.pools.len() > 1 || self.groups.iter().all(|&node| has_a_thread_each(node)))
            && self.origins.iter().all(|&task| net.tasks[task].class.is_some() || goes_on(task))
    }

    /// Whether a processor, or the only thread of a task that several classes call, serves requests of customers alone, and nothing that goes on after the
    /// reply to them.
    fn is_of_classes<S>(&self, net: &Net<S>) -> bool {
        let is_one_thread = || net.stations[self.station].servers == 1.0 && self.ends_at_reply && self.origins.len() > 1;
        (self.station < net.n_processors || is_one_thread())
            && !self.open
            && !self.rows.iter().any(|row| row.follows_reply)
            && self.origins.len() <= MOST_CLASSES
            && self.origins.iter().all(|&task| net.tasks[task].class.is_some())
    }

    fn is_of_alike_customers<S: Scalar>(&self, net: &Net<S>) -> bool {
        !self.open && self.ends_at_reply && net.classes.len() == 1 && self.origins.iter().all(|&task| net.tasks[task].class.is_some())
    }

    fn is_of_unlike_pools<S>(&self, net: &Net<S>, station: usize) -> bool {
        let servers = net.stations[station].servers;
        let strands = |tasks: &[usize]| tasks.iter().map(|&task| net.tasks[task].cap * net.width_at(task, station)).sum::<f64>();
        let threads = strands(&self.pools);
        let are_whole = self.pools.iter().all(|&task| net.tasks[task].cap.fract() == 0.0);
        let may_wait = servers > 1.0 && servers < threads;
        !self.open
            && self.pools.len() > 1
            && may_wait
            && are_whole
            && threads <= unlike::MOST
            && threads <= strands(&self.origins).min(self.most)
    }

    fn find_levels(&mut self) {
        self.levels = self.rows.iter().map(|r| r.priority).collect();
        self.levels.sort_by(f64::total_cmp);
        self.levels.dedup();
    }

    fn is_of_senders<S>(&self, net: &Net<S>) -> bool {
        let is_sent = |&arc: &usize| net.arcs[arc].source.held().is_none_or(|node| !net.tasks[net.nodes[node].task].is_of_customers());
        let mut stations = self.pools.iter().filter_map(|&task| net.tasks[task].station);
        stations.any(|station| net.stations[station].arcs.iter().any(is_sent))
    }

    fn is_of_varied_services<S>(&self, net: &Net<S>, station: usize) -> bool {
        let it = &net.stations[station];
        let strands = |tasks: &[usize]| tasks.iter().map(|&task| net.tasks[task].cap * net.width_at(task, station)).sum::<f64>();
        let threads = strands(&self.pools);
        // Where others than the pools are the sources nothing is multiplied ([`super::At::kinds`]).
        let are_sources = self.pools.len() == 1 || self.of_classes || threads <= strands(&self.origins).min(self.most);
        // Threads that hold each other up end as often as what holds them up lets them, however their services vary.
        let task = self.arcs.first().and_then(|&arc| net.arcs[arc].target).map(|entry| net.entries[entry].task);
        let is_of = |source: Source, task: usize| source.held().is_some_and(|node| net.tasks[net.nodes[node].task].bounded_by == task);
        let never_meet = |task: usize| {
            let mut sent = net.arcs.iter().filter(|arc| is_of(arc.source, task));
            sent.all(|arc| net.stations[arc.station].servers >= net.tasks[task].cap * net.width_at(task, arc.station))
        };
        !self.open
            && are_sources
            && task.is_none_or(never_meet)
            && self.ends_at_reply
            && it.discipline == Discipline::Fcfs
            && it.servers > 1.0
            && it.servers < threads
            && threads.is_finite()
            && are_told(threads, it.servers)
    }

    fn find_pairs<S>(&mut self, net: &Net<S>, pairs: &Pairs) {
        let kins: Vec<Option<usize>> = self.arcs.iter().map(|&a| net.kin_of_arc(a)).collect();
        let find = |row: Option<usize>, other: Option<usize>| match (row, other) {
            (Some(i), Some(j)) => pairs.of(net, i, j),
            _ => FREE,
        };
        for row in &self.rows {
            self.pairs.extend(kins.iter().map(|&other| find(row.kin, other)));
        }
        if self.rows.iter().any(|r| r.follows_reply) {
            // A second phase whose first one ends with a slice here.
            let follow_slice = self.rows.iter().map(|row| {
                let node = row.group.filter(|_| row.follows_reply).map(|group| &net.nodes[self.groups[group]]);
                let first = node.filter(|node| node.phase == 1).and_then(|node| net.phases(node.entry)[0]);
                first.and_then(|first| net.nodes[first].host_arc).is_some_and(|arc| self.arcs.contains(&arc))
            });
            let follow_slice: Vec<bool> = follow_slice.collect();
            let entry_of = |position: usize| self.group_of[position].map(|g| net.nodes[self.groups[g]].entry);
            for (r, row) in self.rows.iter().enumerate() {
                let entry = entry_of(row.arc);
                self.late_pairs.extend(kins.iter().map(|&other| find(if row.follows_reply { entry } else { row.kin }, other)));
                let are_late = |x: usize| follow_slice[r] && follow_slice[self.row_of[x]];
                self.early_pairs.extend((0..kins.len()).map(|x| are_late(x).then(|| find(entry, entry_of(x)))));
            }
        }
        let n = self.arcs.len();
        let is_of_one_pool = |at: usize| self.rows[at / n].pool.is_some() && self.rows[at / n].pool == self.pool_of[at % n];
        let is_sent_on = |list: &[u32], at: usize| list.get(at).is_some_and(|&pair| pairs.is_sent_on(pair));
        let is_sent_on_early = |at: usize| self.early_pairs.get(at).copied().flatten().is_some_and(|pair| pairs.is_sent_on(pair));
        let all = 0..self.pairs.len();
        self.sent_on = all
            .filter(|&at| (is_sent_on(&self.pairs, at) || is_sent_on(&self.late_pairs, at) || is_sent_on_early(at)) && !is_of_one_pool(at))
            .collect();
    }

    /// How many may be here together.
    pub(super) fn sources<S: Scalar>(&self, sweep: &Sweep<'_, S>) -> f64 {
        let pools = || self.pools.iter().map(|&task| sweep.populations.strands_at(sweep.net, task, self.station)).sum::<f64>();
        if self.open { f64::INFINITY } else { self.begun(sweep).min(pools()).min(self.most) }
    }

    /// How many may begin what comes here, but for what comes from outside.
    pub(super) fn begun<S: Scalar>(&self, sweep: &Sweep<'_, S>) -> f64 {
        self.origins.iter().map(|&task| sweep.populations.strands(sweep.net, task)).sum()
    }

    /// Whether all that comes is of one pool, and nothing goes on after the reply.
    pub(super) fn is_of_one_pool(&self) -> bool {
        !self.open && self.ends_at_reply && self.pools.len() == 1
    }

    /// Whether so many sources are all customers there are, and what one of them less leaves is still to be guessed ([`super::first_guess`]).
    pub(super) fn is_guessed<S: Scalar>(&self, sweep: &Sweep<'_, S>, sources: f64) -> bool {
        let populations = sweep.populations;
        // Of fewer threads in between, one customer less does not take one away.
        let are_all = |&task: &usize| populations.strands_at(sweep.net, task, self.station) >= sources;
        self.of_alike_customers
            && !populations.changes.are_known
            && populations.customers.iter().sum::<f64>() == sources
            && self.pools.iter().all(are_all)
    }

    /// Where the station's unknowns stand in the row of all.
    pub fn places(&self) -> Places {
        let removal = self.offset + self.rows.len();
        let boost = removal + self.groups.len() * self.rows.len();
        let contention = boost + self.groups.len() * self.pools.len();
        let left = contention + if self.siblings { self.rows.len() } else { 0 };
        let end = left + if self.leaves { self.rows.len() } else { 0 };
        Places { probability: self.offset, removal, boost, contention, left, end, excess: self.excess }
    }

    /// Where the shares stand of an arc's wait that other strands of its fork cause, by its position; none where none meet.
    pub fn contention_of(&self, position: usize) -> Option<Contention> {
        let (places, row) = (self.places(), self.row_of[position]);
        self.siblings.then(|| Contention { place: places.contention + row, left: self.leaves.then(|| places.left + row) })
    }
}

/// Whether all entries that are called begin at a processor of one server, in order of arrival, and do nothing else after the reply.
fn late_goes_first<S: Scalar>(net: &Net<S>, arcs: &[usize]) -> bool {
    let is_served_in_order = |node: usize| {
        let it = &net.nodes[node];
        let host = it.host_arc.map(|arc| &net.stations[net.arcs[arc].station]);
        let in_order = host.is_some_and(|host| host.servers <= 1.0 && host.discipline == Discipline::Fcfs);
        it.uses_processor && in_order
    };
    let does_nothing_else = |node: usize| {
        let it = &net.nodes[node];
        it.calls.is_empty() && it.think_time.value() == 0.0
    };
    let mut entries = arcs.iter().filter_map(|&a| net.arcs[a].target);
    entries.all(|entry| {
        let [first, later @ ..] = net.phases(entry);
        first.is_some_and(is_served_in_order) && later.into_iter().flatten().all(|node| is_served_in_order(node) && does_nothing_else(node))
    })
}

/// Where the shares stand of a wait that other strands of the same fork cause: before joins that leave any behind, and after.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Contention {
    pub place: usize,
    pub left: Option<usize>,
}

/// Where the unknowns of a station begin.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Places {
    /// Chance to wait, by row.
    pub probability: usize,
    /// `R`, in [0, 1], `groups × rows`.
    pub removal: usize,
    /// `φ`, `groups × pools`.
    pub boost: usize,
    /// Share of the wait that other strands of the same fork cause, by row; none where none meet.
    pub contention: usize,
    /// The same, of those that a join has left behind, or for which it has left these; none where none is left.
    pub left: usize,
    pub end: usize,
    /// `e ≥ 0`: wait added to every arc so that the load does not exceed the servers. It stands beside the waits.
    pub excess: usize,
}
