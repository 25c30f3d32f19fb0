//! Message logs, as SAME reads them.

use std::io::{self, Write};

use super::{Asked, Numbers, Parts, requests};

/// Customers who are at work at once, each with threads of its own.
const CLIENTS: u64 = 50;
/// Data bases behind the web server.
const STORES: u64 = 3;
/// Ticks from one message of a client to its next, and from its sending to its reception.
const STEP: u64 = 150;
const ON_ITS_WAY: u64 = 100;

/// One recording of three layers: clients ask threads of `web`, which read, and half of the time write, in a data base each.
pub(super) fn clients(asked: &Asked, out: &mut Parts<'_>, ends: bool) -> io::Result<u64> {
    out.header(if ends {
        "time,kind,process,thread,message_type,msg_id"
    } else {
        "sender,sender_thread,receiver,receiver_thread,sent,time,message_type"
    })?;
    let mut numbers = Numbers(asked.seed);
    let (mut n, mut start) = (0, 1_000_000);
    let mut rows: Vec<(u64, String)> = Vec::new();
    loop {
        for client in 0..CLIENTS {
            let of_store = |what, number| (what, format!("store{number}"));
            let mut messages = vec![(("user".to_owned(), "web".to_owned()), "browse")];
            for (what, reply) in [("read", "rows"), ("write", "done")].into_iter().take(1 + numbers.below(2) as usize) {
                let (what, store) = of_store(what, numbers.below(STORES));
                messages.push((("web".to_owned(), store.clone()), what));
                messages.push(((store, "web".to_owned()), reply));
            }
            messages.push((("web".to_owned(), "user".to_owned()), "page"));
            for (step, ((from, to), what)) in messages.into_iter().enumerate() {
                let received = start + STEP * step as u64 + 2 * client + numbers.below(2);
                let sent = received - ON_ITS_WAY;
                if ends {
                    rows.push((sent, format!("{sent},send,{from},{client},{what},{n}")));
                    rows.push((received, format!("{received},receive,{to},{client},{what},{n}")));
                } else {
                    rows.push((received, format!("{from},{client},{to},{client},{sent},{received},{what}")));
                }
                n += 1;
            }
        }
        rows.sort_by_key(|(time, _)| *time);
        for (_, row) in rows.drain(..) {
            writeln!(out, "{row}")?;
        }
        if !out.goes_on(n) {
            return Ok(n);
        }
        start += 8 * STEP;
    }
}

/// A recording for each request.
pub(super) fn recordings(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    out.header("sender,receiver,sent,time,message_type,trace,scenario")?;
    requests(asked, out, |out, request| {
        let name = |at: usize| if at == 0 { "client".to_owned() } else { format!("s{}", request.path[at - 1]) };
        let mut row = |from: usize, to: usize, time: u64, what: &str, of: usize| {
            let (from, to, operation) = (name(from), name(to), request.path[of - 1]);
            writeln!(out, "{from},{to},{time},{time},op{operation}{what},{},all", request.number)
        };
        let n_hops = request.path.len();
        for hop in 1..=n_hops {
            row(hop - 1, hop, request.times_us(hop).0, "", hop)?;
        }
        for hop in (1..=n_hops).rev() {
            row(hop, hop - 1, request.times_us(hop).1, ":reply", hop)?;
        }
        Ok(2 * n_hops as u64)
    })
}
