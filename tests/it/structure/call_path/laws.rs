//! What holds for any events: every record is accounted for, and halves merged are the whole.

use layerfit::{
    structure::{
        ExtractOptions,
        call_path::{CallPathOptions, CallPaths, Partial},
        interactions::{InteractionKind, Interactions},
        to_model,
    },
    trace::call_path::{Action, Event, Key, Kind, Parent, Texts},
};
use proptest::prelude::*;

use super::technique;

/// Half of the entries are marked.
const ACTIONS: [Option<Action>; 8] =
    [None, None, None, None, Some(Action::Internal), Some(Action::Branch(1)), Some(Action::Loop), Some(Action::Iteration)];

/// Arbitrary events of a few contexts.
type Drawn = (u8, u8, u8, u32, i64, u8);

fn events() -> impl Strategy<Value = Vec<Drawn>> {
    prop::collection::vec((0..4_u8, 0..3_u8, 0..10_u8, 0..4_u32, 0..1000_i64, 0..3_u8), 0..200)
}

fn feed_all(technique: &mut CallPaths, texts: &Texts, events: &[(usize, Drawn)], all: &mut Interactions) {
    let mut out = |batch: Interactions| all.merge(batch);
    for (n, (context, transaction, kind, location, time_ns, extra)) in events {
        // Halves by context have parents and children together.
        let parent = Parent { context: Key::Number(i64::from((context + 2) % 4)), order: *n as u64 / 2, waits: *extra > 1 };
        let kind = match kind {
            0 | 1 => Kind::Entry { location: *location, action: ACTIONS[(time_ns % 8) as usize], params: &[] },
            2 | 3 => Kind::Exit { location: *location },
            4 => Kind::Call { location: *location, returns: *extra > 0 },
            5 => Kind::Return { location: *location },
            6 => Kind::Send { location: *location, message: (*extra > 1).then_some(Key::Number(1)) },
            7 => Kind::Receive { location: *location, message: (*extra > 1).then_some(Key::Number(1)) },
            8 => Kind::Begin { parent: (*extra > 0).then_some(parent) },
            _ => Kind::Execution {
                location: *location,
                until_ns: time_ns + 5,
                order_index: u32::from(*extra),
                depth: u32::from(*transaction),
                is_elsewhere: location % 4 == 3,
            },
        };
        let event = Event {
            context: Key::Number(i64::from(*context)),
            transaction: (*transaction > 0).then(|| Key::Number(i64::from(*transaction))),
            order: (*extra > 0).then_some(*n as u64),
            time_ns: *time_ns,
            server: None,
            thread: (*extra > 1).then_some(0),
            session: None,
            kind,
        };
        technique.feed(texts, &event, &mut out);
    }
}

fn some_texts() -> Texts {
    let mut texts = Texts::default();
    texts.names.intern("7");
    for (component, method) in [("A", "x"), ("A", "y"), ("B", "x"), ("C", "z")] {
        texts.location(component, method);
    }
    texts
}

proptest! {
    #[test]
    fn whatever_comes_every_record_is_accounted_for(events in events(), quiet_records in 0..50_u64, most_live_records in 8..64_usize) {
        let (texts, mut all) = (some_texts(), Interactions::default());
        let mut technique = technique(&CallPathOptions { quiet_records, most_live_records, ..CallPathOptions::default() });
        let events: Vec<(usize, Drawn)> = events.into_iter().enumerate().collect();
        feed_all(&mut technique, &texts, &events, &mut all);
        let finished = technique.finish(&mut |batch| all.merge(batch));
        prop_assert_eq!(finished.report.records.seen, events.len() as u64);
        prop_assert_eq!(finished.report.records.accounted(), events.len() as u64);
        for interaction in &all.interactions {
            prop_assert!(interaction.from < interaction.to, "requesters come first");
        }
        let mut requested: Vec<usize> = all.interactions.iter().map(|i| i.to).collect();
        requested.sort_unstable();
        prop_assert!(requested.windows(2).all(|pair| pair[0] < pair[1]), "requested once");
        to_model("any", all, &ExtractOptions::default()).unwrap();
    }

    #[test]
    fn halves_dealt_by_context_and_merged_are_the_whole(events in events()) {
        let texts = some_texts();
        let options = CallPathOptions { quiet_records: 1 << 40, partial: Partial::Keep, ..CallPathOptions::default() };
        let (mut whole_all, mut halves_all) = (Interactions::default(), Interactions::default());
        let mut whole = technique(&options);
        let events: Vec<(usize, Drawn)> = events.into_iter().enumerate().collect();
        feed_all(&mut whole, &texts, &events, &mut whole_all);
        let (first, second): (Vec<_>, Vec<_>) = events.iter().copied().partition(|(_, event)| event.0 % 2 == 0);
        let fed = |half: &[(usize, Drawn)]| {
            let (mut technique, mut all) = (technique(&options), Interactions::default());
            feed_all(&mut technique, &texts, half, &mut all);
            (technique, all)
        };
        let (mut merged, all) = fed(&first);
        halves_all.merge(all);
        let (other, all) = fed(&second);
        halves_all.merge(all);
        merged.merge(other, &mut |batch| halves_all.merge(batch));
        let merged = merged.finish(&mut |batch| halves_all.merge(batch)).report;
        let whole = whole.finish(&mut |batch| whole_all.merge(batch)).report;
        prop_assert_eq!(&merged.services, &whole.services);
        prop_assert_eq!(&merged.components, &whole.components);
        prop_assert_eq!(&merged.connections, &whole.connections);
        prop_assert_eq!(&merged.classes, &whole.classes);
        prop_assert_eq!((merged.records, merged.paths), (whole.records, whole.paths));
        prop_assert_eq!(halves_all.occurrences.len(), whole_all.occurrences.len());
        prop_assert_eq!(halves_all.count(InteractionKind::Async), whole_all.count(InteractionKind::Async));
    }
}
