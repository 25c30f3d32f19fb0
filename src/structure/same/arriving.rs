//! Logs that are read on one thread while what was read is put in order and analysed on another.

use crate::{structure::steps::in_steps, trace::same::Arrival};

/// What is handed on together.
const ARRIVALS: usize = 1024;

/// Hands what `read` hands over to `take`, in its order; `apart`: `take` on this thread, while `read` runs on one of its own.
pub(super) fn arriving<R: Send>(
    apart: bool,
    read: impl FnOnce(&mut dyn FnMut(Arrival<&str>)) -> R + Send,
    mut take: impl FnMut(Arrival<&str>),
) -> R {
    if !apart {
        return read(&mut take);
    }
    let make = |send: &mut dyn FnMut(Vec<Arrival<Box<str>>>)| {
        let mut batch = Vec::with_capacity(ARRIVALS);
        let outcome = read(&mut |arrival| {
            batch.push(arrival.map(|text| Box::from(*text)));
            if batch.len() == ARRIVALS {
                send(std::mem::replace(&mut batch, Vec::with_capacity(ARRIVALS)));
            }
        });
        send(batch);
        outcome
    };
    in_steps(make, |batch| batch.iter().for_each(|arrival| take(arrival.map(|text| &**text))))
}
