//! Times of a tree by one clock.
//!
//! Input: a [`Tree`] and what is known of the clocks ([`super::skew`]); output: the tree with `start_ns` and `end_ns` by the clock
//! of its root's host, and for each request served what the clocks leave open.
//!
//! - All times of a host move by its difference to the host of the root; of one that nothing compares with those before it by what is
//!   assumed ([`super::assume`]), as a rule not at all. Spans whose parents are not there move as if they hung below the first root.
//! - A server half that still is not within its client half moves into it with its subtree, by the mean of both ends, if it fits,
//!   is not on the same host, and nothing better is known; one that begins before its client is moved to begin with it.

use super::{
    assume::Assumed,
    catalog::Catalog,
    quality::Notes,
    skew::{Period, Seen, Skews},
    tree::{NOBODY, Role, Tree},
};
use crate::trace::span::SpanKind;

impl Tree {
    /// The requests with both halves, as read.
    pub fn requests<'t>(&'t self, catalog: &'t Catalog) -> impl Iterator<Item = Seen> + 't {
        let at_ns = self.began_ns();
        let is_known = |i: usize| !self.is_timeless && self.pieces[i].duration_ns >= 0;
        (0..self.len()).filter_map(move |server| {
            let client = self.parent_of(server)?;
            let is_pair = self.role[server] == Role::Entry && self.role[client] == Role::Call;
            let is_sync = self.pieces[client].kind != SpanKind::Producer && self.pieces[server].kind != SpanKind::Consumer;
            let is_sync = is_sync && !self.is_linked[server];
            let times = |i: usize| [self.pieces[i].start_ns, self.pieces[i].start_ns.saturating_add(self.pieces[i].duration_ns)];
            let piece = &self.pieces[server];
            (is_pair && is_sync && is_known(client) && is_known(server)).then(|| Seen {
                clocks: [client, server].map(|i| catalog.label(self.pieces[i].label).clock),
                label: piece.label,
                at_ns,
                identity: (self.traces[piece.trace as usize].0, piece.id.0),
                client_ns: times(client),
                server_ns: times(server),
            })
        })
    }

    /// When it began, by the clock of its first span's host.
    pub fn began_ns(&self) -> i64 {
        self.order.first().map_or(0, |first| self.pieces[*first as usize].start_ns)
    }

    /// Corrects the times of all spans.
    pub fn correct(&mut self, skews: &Skews, catalog: &Catalog, notes: &mut Notes) {
        if self.is_timeless {
            return;
        }
        let clocks = skews.period(self.began_ns());
        let assumed = Assumed::of(self, clocks, &skews.served_only, catalog);
        let mut shift = vec![0_i64; self.len()];
        let mut residual = vec![0_i64; self.len()];
        (self.open_ns, self.admitted_ns) = (vec![[0; 2]; self.len()], vec![[0; 2]; self.len()]);
        (self.is_in_order, self.under_way_ns) = (vec![false; self.len()], vec![0; self.len()]);
        // By what is compared with one another (hosts by numbers of their own where nothing tells): the shift of a clock that is
        // ahead by nothing.
        let mut known: Vec<((bool, u32), i64)> = Vec::new();
        let clock = |i: usize| {
            let host = catalog.label(self.pieces[i].label).clock;
            clocks.clock(host).map_or(((false, host), 0), |(group, ahead)| ((true, group), ahead))
        };
        let is_root = |i: &usize| self.parent[*i] == NOBODY && !self.is_orphan[*i];
        known.extend(self.order.iter().map(|i| *i as usize).find(is_root).map(clock));
        for k in 0..self.order.len() {
            let i = self.order[k] as usize;
            let host = catalog.label(self.pieces[i].label).clock;
            let (group, ahead) = clock(i);
            let of_group =
                |known: &[((bool, u32), i64)]| known.iter().find(|(of, _)| *of == group).map(|(_, base)| base.saturating_sub(ahead));
            let Some(parent) = self.parent_of(i) else {
                let is_lost = self.is_orphan[i] || self.is_lost_link[i];
                self.is_incomparable[i] = is_lost && clocks.disagree && known.first().is_some_and(|(first, _)| *first != group);
                if !self.is_orphan[i] {
                    known.clear();
                }
                match of_group(&known) {
                    Some(moved) => shift[i] = moved,
                    None => known.push((group, ahead)),
                }
                self.start_ns[i] = self.start_ns[i].saturating_add(shift[i]);
                self.end_ns[i] = self.end_ns[i].saturating_add(shift[i]);
                continue;
            };
            let parent_host = catalog.label(self.pieces[parent].label).clock;
            shift[i] = if host == parent_host {
                shift[parent]
            } else if let Some(moved) = of_group(&known) {
                moved
            } else {
                let beyond = assumed.moved_ns.get(&[parent_host, host]).copied().unwrap_or(0);
                let moved = shift[parent].saturating_add(beyond);
                known.push((group, moved.saturating_add(ahead)));
                moved
            };
            residual[i] = residual[parent];
            let moved = shift[i].saturating_add(residual[i]);
            self.start_ns[i] = self.start_ns[i].saturating_add(moved);
            self.end_ns[i] = self.end_ns[i].saturating_add(moved);
            self.is_in_order[i] = host == parent_host || clocks.tells_order(parent_host, host);
            if self.role[i] == Role::Entry && host != parent_host {
                self.open_ns[i] = clocks.left_open(parent_host, host);
                self.under_way_ns[i] = clocks.under_way(parent_host, host);
                self.admitted_ns[i] = self.admitted(i, parent, [parent_host, host], clocks);
            }
            let is_assumed = assumed.spans.contains(&i);
            if is_assumed {
                let hosts = [parent_host, host].map(|host| catalog.names.name(host));
                notes.count("clocks_not_compared", || format!("{} ({} to {})", self.name(i), hosts[0], hosts[1]));
            }
            let nudge = self.nudge(i, parent, [parent_host, host], is_assumed, clocks);
            if nudge != 0 {
                notes.count("clock_residual", || self.name(i));
                residual[i] = residual[i].saturating_add(nudge);
                self.start_ns[i] = self.start_ns[i].saturating_add(nudge);
                self.end_ns[i] = self.end_ns[i].saturating_add(nudge);
            }
        }
    }

    /// What is open of when the client of a served request had its reply: what clocks leave open in this period, and, if they are not the
    /// same and the serving half is no longer than the requesting one, all that the two halves admit, as a clock may have changed by less
    /// than shows.
    fn admitted(&self, i: usize, parent: usize, [client, server]: [u32; 2], clocks: &Period) -> [i64; 2] {
        let [earlier, later] = self.open_ns[i];
        let lasts = |i: usize| self.end_ns[i].saturating_sub(self.start_ns[i]);
        let is_same = clocks.offset(client, server).is_none_or(|offset| offset.offset_ns == 0);
        if is_same || self.role[parent] != Role::Call || lasts(i) > lasts(parent) {
            return [earlier, later];
        }
        let after = |ns: i64| self.start_ns[i].saturating_sub(ns);
        [earlier.min(after(self.end_ns[parent])), later.max(after(self.start_ns[parent]))]
    }

    /// How far a served request has still to move to lie in the request made.
    fn nudge(&self, i: usize, parent: usize, hosts: [u32; 2], is_assumed: bool, clocks: &Period) -> i64 {
        let is_sync = self.pieces[parent].kind != SpanKind::Producer && self.pieces[i].kind != SpanKind::Consumer;
        if self.role[i] != Role::Entry || !is_sync || !self.role[parent].is_used() || self.is_linked[i] {
            return 0;
        }
        let (start, end) = (self.start_ns[i], self.end_ns[i]);
        let (from, to) = (self.start_ns[parent], self.end_ns[parent]);
        let fits = end.saturating_sub(start) <= to.saturating_sub(from);
        let same_host = hosts[0] == hosts[1];
        let is_trusted = || clocks.tells_order(hosts[0], hosts[1]);
        let early = from.saturating_sub(start).max(0);
        if early == 0 && end <= to {
            0
        } else if is_assumed && fits {
            if early > 0 { early } else { to.saturating_sub(end) }
        } else if self.role[parent] == Role::Call && fits && !same_host && (early > 0 || !is_trusted()) {
            from.saturating_sub(start) / 2 + to.saturating_sub(end) / 2
        } else {
            early
        }
    }
}
