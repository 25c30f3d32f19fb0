//! Logs that are read on one thread while what was read is put in order and analysed on another.

use std::sync::mpsc::channel;

use crate::{
    structure::steps::in_steps,
    trace::same::{Arrival, Recordings, Sink, Taker},
};

/// What is handed on together, in room that goes back to be filled again.
const ARRIVALS: usize = 4096;

/// Hands what `read` hands over to `recordings`, in its order; `apart`: on this thread, while `read` runs on one of its own.
pub(super) fn arriving<R: Send>(
    apart: bool,
    read: impl FnOnce(&mut Taker<'_>) -> R + Send,
    recordings: &mut Recordings,
    sink: &mut Sink<'_>,
) -> R {
    if !apart {
        return read(&mut |arrival| recordings.take(arrival, sink));
    }
    let (back, emptied) = channel::<Vec<Arrival<Box<str>>>>();
    let make = move |send: &mut dyn FnMut(Vec<Arrival<Box<str>>>)| {
        let mut batch = Vec::with_capacity(ARRIVALS);
        let outcome = read(&mut |arrival| {
            batch.push(arrival.kept());
            if batch.len() == ARRIVALS {
                let next = emptied.try_recv().unwrap_or_else(|_| Vec::with_capacity(ARRIVALS));
                send(std::mem::replace(&mut batch, next));
            }
        });
        send(batch);
        outcome
    };
    in_steps(make, |mut batch| {
        batch.iter().for_each(|arrival| recordings.take(arrival, sink));
        batch.clear();
        // Once all is read nobody needs it.
        drop(back.send(batch));
    })
}
