//! Streams of spans: what exporters send is summed up by system, and a structure stored as it changes.
//!
//! Spans are held no longer than their traces take to end (bounded, see [`crate::structure::live`]); what is kept is the
//! mergeable summary, in memory. A structure is stored at most once an interval, and only when something new was found; a
//! restart of the service begins a new summary, the structures stored before stay.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch},
    task,
};
use tracing::{error, info};

use crate::{
    store::{ContentHash, Store, StoreError, SystemId, receptions::NewReception},
    structure::{ExtractOptions, Extraction, live::Live, usage::UsageSummary},
    trace::span::{Span, SpanTexts},
};

/// How receptions are run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Shortest time between two structures of a system.
    pub refresh_interval: Duration,
    /// Time without new spans after which traces are taken to have ended.
    pub idle_time: Duration,
    /// Structures of receptions kept for each system.
    pub n_kept: u32,
    /// Systems that may be received for.
    pub n_systems: usize,
    /// How structures are extracted.
    pub extract: ExtractOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // Often enough for a person who watches, seldom enough for a database of structures.
            refresh_interval: Duration::from_secs(30),
            // Exporters send every few seconds; late spans of slower ones are joined to their trace within this time.
            idle_time: Duration::from_secs(60),
            // Half a year at one deployment a week, or ten minutes at the shortest interval.
            n_kept: 20,
            // Each holds a window of spans: a bound on the memory that names in requests can take.
            n_systems: 64,
            // Interactions one by one are for a trace that somebody looks at, not for a stream.
            extract: ExtractOptions { records_kept: 1000, ..ExtractOptions::default() },
        }
    }
}

/// Why spans were not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReceptionError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Too many systems send.
    #[error("spans of {n} systems are being received already, and with {n_new} more they would be above {n_most}: nothing is taken")]
    TooManySystems {
        /// How many there are.
        n: usize,
        /// How many more were sent.
        n_new: usize,
        /// How many there may be.
        n_most: usize,
    },
}

/// What one system has sent since the service started.
struct Reception {
    live: Live,
    /// What came since a structure was stored last.
    unstored: Content,
    /// The part of it that came since the structure was extracted that is being stored.
    later: Option<Content>,
    received_at: Instant,
    stored_at: Option<Instant>,
    /// Interactions that the structure stored last rests on.
    n_stored: u64,
}

/// What spans came in.
#[derive(Clone, Debug, Default)]
struct Content {
    hash: ContentHash,
    n_bytes: i64,
}

impl Content {
    fn add(&mut self, content: &[u8]) {
        self.hash.update(content);
        self.n_bytes = self.n_bytes.saturating_add(i64::try_from(content.len()).unwrap_or(i64::MAX));
    }
}

/// A structure that is to be stored.
struct Extracted {
    extraction: Extraction,
    content: Content,
    n_found: u64,
}

/// The streams of all systems: cheap to clone, shared by all.
#[derive(Clone)]
pub struct Receptions {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    options: Options,
    systems: Mutex<HashMap<SystemId, Arc<AsyncMutex<Reception>>>>,
    names: Mutex<HashMap<String, SystemId>>,
}

impl std::fmt::Debug for Receptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receptions").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Receptions {
    /// No spans so far.
    pub fn new(store: Store, options: Options) -> Self {
        Self { shared: Arc::new(Shared { store, options, systems: Mutex::default(), names: Mutex::default() }) }
    }

    /// Stores structures as they change, until `stopping` becomes `true`; then once more.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        let tick = (self.shared.options.refresh_interval / 4).max(Duration::from_millis(50));
        loop {
            let stop = tokio::select! {
                stopped = stopping.wait_for(|stop| *stop) => { drop(stopped); true }
                () = tokio::time::sleep(tick) => false,
            };
            self.refresh(if stop { Refresh::All } else { Refresh::Due }).await;
            if stop {
                return;
            }
        }
    }

    /// The systems of these names, made where there are none; none is made where all together are too many.
    ///
    /// # Errors
    /// [`ReceptionError`].
    pub async fn systems_called(&self, names: &[&str]) -> Result<Vec<SystemId>, ReceptionError> {
        {
            let (known, systems) = (lock(&self.shared.names), lock(&self.shared.systems));
            let n_new = names.iter().filter(|name| known.get(**name).is_none_or(|id| !systems.contains_key(id))).count();
            self.check_room(&systems, n_new)?;
        }
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.push(self.system_called(name).await?);
        }
        // Others may have come meanwhile.
        let mut systems = lock(&self.shared.systems);
        let n_new = found.iter().filter(|id| !systems.contains_key(id)).count();
        self.check_room(&systems, n_new)?;
        for id in &found {
            systems.entry(*id).or_insert_with(|| self.new_reception());
        }
        Ok(found)
    }

    fn check_room(&self, systems: &HashMap<SystemId, Arc<AsyncMutex<Reception>>>, n_new: usize) -> Result<(), ReceptionError> {
        match n_new > 0 && systems.len() + n_new > self.shared.options.n_systems {
            true => Err(ReceptionError::TooManySystems { n: systems.len(), n_new, n_most: self.shared.options.n_systems }),
            false => Ok(()),
        }
    }

    fn new_reception(&self) -> Arc<AsyncMutex<Reception>> {
        Arc::new(AsyncMutex::new(Reception::new(&self.shared.options.extract)))
    }

    async fn system_called(&self, name: &str) -> Result<SystemId, StoreError> {
        if let Some(known) = lock(&self.shared.names).get(name) {
            return Ok(*known);
        }
        let system = self.shared.store.system_called(name).await?.id;
        lock(&self.shared.names).insert(name.to_owned(), system);
        Ok(system)
    }

    /// The streams of systems that [`Self::systems_called`] gave, for spans that have come; waits while a structure of one is extracted.
    pub async fn hold(&self, systems: &[SystemId]) -> HeldReceptions {
        // In one order, so that no two requests wait for each other.
        let ordered: BTreeSet<SystemId> = systems.iter().copied().collect();
        let mut held = HashMap::new();
        for system in ordered {
            let reception = Arc::clone(lock(&self.shared.systems).entry(system).or_insert_with(|| self.new_reception()));
            held.insert(system, reception.lock_owned().await);
        }
        HeldReceptions(held)
    }

    /// The stream of a system, where it has sent something since the service started; waits as [`Self::hold`].
    pub async fn hold_known(&self, system: SystemId) -> Option<HeldReceptions> {
        let reception = lock(&self.shared.systems).get(&system).map(Arc::clone)?;
        Some(HeldReceptions([(system, reception.lock_owned().await)].into()))
    }

    /// Forgets a system's spans, as when it was deleted.
    pub fn forget(&self, system: SystemId) {
        lock(&self.shared.systems).remove(&system);
        lock(&self.shared.names).retain(|_, known| *known != system);
    }

    /// Stores the structure of every system that has something new.
    pub async fn refresh(&self, which: Refresh) {
        let systems: Vec<_> = lock(&self.shared.systems).iter().map(|(id, reception)| (*id, Arc::clone(reception))).collect();
        for (system, reception) in systems {
            let options = self.shared.options.clone();
            let mut extracting = Arc::clone(&reception).lock_owned().await;
            let extracted = task::spawn_blocking(move || extracting.extract(&options, which)).await;
            let Ok(Some(Extracted { extraction, content, n_found })) = extracted else { continue };
            let options = &self.shared.options.extract;
            let new =
                NewReception { system, options, received_bytes: content.n_bytes, sha256: content.hash.hex(), extraction: &extraction };
            match self.shared.store.insert_reception(new, self.shared.options.n_kept).await {
                Ok(structure) => {
                    reception.lock().await.note_stored(n_found);
                    info!(%system, %structure, interactions = extraction.interactions.total(), "structure of received spans stored")
                }
                Err(StoreError::MissingReference) => self.forget(system),
                Err(failed) => {
                    error!(%system, error = crate::error_chain::chain(&failed), "the structure of received spans is not stored yet")
                }
            }
        }
    }
}

/// Streams that nobody else feeds or extracts from meanwhile. What is done with them takes CPU time: not for the async threads.
pub struct HeldReceptions(HashMap<SystemId, OwnedMutexGuard<Reception>>);

impl HeldReceptions {
    /// Takes spans of a system that is held, whose texts `texts` holds; `content` is what they came in, for the record.
    pub fn receive(&mut self, system: SystemId, spans: &[Span], texts: &SpanTexts, content: &[u8]) {
        let Some(reception) = self.0.get_mut(&system) else { return };
        for span in spans {
            reception.live.feed(span, texts);
        }
        reception.add(content);
    }

    /// The sessions in what a system that is held has sent since the service started, in traces that have ended.
    pub fn sessions(&self, system: SystemId) -> Option<Box<UsageSummary>> {
        self.0.get(&system)?.live.sessions()
    }
}

/// Which structures are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Those whose interval is over; traces count once they have ended.
    Due,
    /// All that have something new; what is there of unfinished traces counts.
    All,
}

impl Reception {
    fn new(options: &ExtractOptions) -> Self {
        Self {
            live: Live::new(options),
            unstored: Content::default(),
            later: None,
            received_at: Instant::now(),
            stored_at: None,
            n_stored: 0,
        }
    }

    fn add(&mut self, content: &[u8]) {
        self.unstored.add(content);
        if let Some(later) = &mut self.later {
            later.add(content);
        }
        self.received_at = Instant::now();
    }

    /// What all spans so far give, where that is due and new. It stays so until [`Self::note_stored`].
    fn extract(&mut self, options: &Options, which: Refresh) -> Option<Extracted> {
        let is_due = self.stored_at.is_none_or(|at| at.elapsed() >= options.refresh_interval);
        if which == Refresh::Due && !is_due {
            return None;
        }
        if which == Refresh::All || self.received_at.elapsed() >= options.idle_time {
            self.live.end_traces();
        }
        let n_found = self.live.n_interactions();
        if n_found == self.n_stored || self.unstored.n_bytes == 0 {
            return None;
        }
        let extraction = self.live.extraction()?;
        self.later = Some(Content::default());
        Some(Extracted { extraction, content: self.unstored.clone(), n_found })
    }

    /// Notes that what was extracted last is stored.
    fn note_stored(&mut self, n_found: u64) {
        self.n_stored = n_found;
        self.stored_at = Some(Instant::now());
        self.unstored = self.later.take().unwrap_or_default();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{BadRows, diagnostics::Diagnostics, otlp, spans::SpanReadOptions};

    const SPANS: &[u8] = br#"{"resourceSpans": [
        {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "web"}}]}, "scopeSpans": [{"spans": [
            {"traceId": "00000000000000000000000000000001", "spanId": "0000000000000001", "name": "page", "kind": 2,
             "startTimeUnixNano": "1000000000", "endTimeUnixNano": "1010000000"},
            {"traceId": "00000000000000000000000000000001", "spanId": "0000000000000002", "parentSpanId": "0000000000000001",
             "name": "get", "kind": 3, "startTimeUnixNano": "1002000000", "endTimeUnixNano": "1008000000"}]}]},
        {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}, "scopeSpans": [{"spans": [
            {"traceId": "00000000000000000000000000000001", "spanId": "0000000000000003", "parentSpanId": "0000000000000002",
             "name": "get", "kind": 2, "startTimeUnixNano": "1003000000", "endTimeUnixNano": "1007000000"}]}]}]}"#;

    #[test]
    fn what_was_not_stored_is_extracted_again() {
        let options = Options::default();
        let mut reception = Reception::new(&options.extract);
        let (mut texts, mut diagnostics) = (SpanTexts::default(), Diagnostics::default());
        let read = SpanReadOptions { bad_rows: BadRows::Count, ..SpanReadOptions::default() };
        let mut sink = |span: Span, texts: &mut SpanTexts| {
            reception.live.feed(&span, texts);
            std::ops::ControlFlow::Continue(())
        };
        otlp::decode_otlp_json("spans", SPANS, &read, &mut texts, &mut diagnostics, &mut sink).unwrap();
        reception.add(SPANS);
        let first = reception.extract(&options, Refresh::All).expect("it is new");
        reception.add(b"more");
        let again = reception.extract(&options, Refresh::All).expect("it was not stored");
        assert_eq!((first.n_found, first.content.n_bytes), (again.n_found, SPANS.len() as i64));
        assert_eq!(again.content.n_bytes, SPANS.len() as i64 + 4);
        reception.add(b"last");
        reception.note_stored(again.n_found);
        assert!(reception.extract(&options, Refresh::All).is_none(), "nothing is new");
        assert_eq!((reception.unstored.n_bytes, reception.unstored.hash.clone().hex()), (4, crate::store::content_hash(b"last")));
    }
}
