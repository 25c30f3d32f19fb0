//! Many sources on all cores.

use std::{
    collections::BTreeMap,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// What has been done, in the order of the items.
struct Done<T, E> {
    /// The first `n_merged` items.
    merged: Option<T>,
    n_merged: usize,
    /// Later ones that wait for those before them.
    waiting: BTreeMap<usize, T>,
    /// The failure of the earliest item that failed.
    failed: Option<(usize, E)>,
    /// Whether a thread panicked, so that its item will never be merged.
    has_panicked: bool,
}

/// Tells those who wait when its thread panics.
struct Told<'d, T, E> {
    done: &'d Mutex<Done<T, E>>,
    moved_on: &'d Condvar,
}

impl<T, E> Drop for Told<'_, T, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.done.lock().unwrap_or_else(PoisonError::into_inner).has_panicked = true;
            self.moved_on.notify_all();
        }
    }
}

/// Items for each thread that may be begun beyond the last one merged: what waits for an earlier item is held in memory.
const AHEAD: usize = 2;

/// Runs `work` on every item on up to `n_threads` threads and merges the results in the order of the items, whichever was
/// ready first: the result is the same for any number of threads. `None` without items.
///
/// # Errors
/// That of the earliest item that failed; no further item is begun after a failure.
pub(super) fn on_all_cores<I: Send, T: Send, E: Send>(
    items: Vec<I>,
    n_threads: usize,
    work: impl Fn(usize, I) -> Result<T, E> + Sync,
    merge: impl Fn(&mut T, T) + Sync,
) -> Result<Option<T>, E> {
    let n_threads = n_threads.clamp(1, items.len().max(1));
    let items: Vec<Mutex<Option<I>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Done { merged: None, n_merged: 0, waiting: BTreeMap::new(), failed: None, has_panicked: false });
    let moved_on = Condvar::new();
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let is_far = |done: &mut Done<T, E>| !done.ends_before(index) && index >= done.n_merged + AHEAD * n_threads;
            let waited = moved_on.wait_while(done.lock().unwrap_or_else(PoisonError::into_inner), is_far);
            if waited.unwrap_or_else(PoisonError::into_inner).ends_before(index) {
                return;
            }
            let Some(slot) = items.get(index) else { return };
            let Some(item) = slot.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
            let _told = Told { done: &done, moved_on: &moved_on };
            let result = work(index, item);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok(result) => done.add(index, result, &merge),
                Err(error) => {
                    next.store(items.len(), Ordering::Relaxed);
                    if done.failed.as_ref().is_none_or(|(earliest, _)| index < *earliest) {
                        done.failed = Some((index, error));
                    }
                }
            }
            moved_on.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(run);
        }
        run();
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    match done.failed {
        Some((_, error)) => Err(error),
        None => Ok(done.merged),
    }
}

impl<T, E> Done<T, E> {
    /// Whether item `index` is not wanted any more.
    fn ends_before(&self, index: usize) -> bool {
        self.has_panicked || self.failed.as_ref().is_some_and(|(earliest, _)| *earliest < index)
    }

    fn add(&mut self, index: usize, result: T, merge: &impl Fn(&mut T, T)) {
        self.waiting.insert(index, result);
        while let Some(result) = self.waiting.remove(&self.n_merged) {
            match &mut self.merged {
                Some(merged) => merge(merged, result),
                None => self.merged = Some(result),
            }
            self.n_merged += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_merged_in_order_for_any_number_of_threads() {
        for n_threads in 1..5 {
            let items: Vec<usize> = (0..50).collect();
            let slow_first = |index: usize, item: usize| {
                (0..if index.is_multiple_of(7) { 300 } else { 10 }).for_each(|_| std::thread::yield_now());
                Ok::<_, ()>(vec![item])
            };
            let merged = on_all_cores(items.clone(), n_threads, slow_first, |all, more| all.extend(more));
            assert_eq!(merged, Ok(Some(items)));
        }
        assert_eq!(on_all_cores(Vec::<u8>::new(), 3, |_, _| Ok::<u8, ()>(0), |_, _| ()), Ok(None));
    }

    #[test]
    fn little_is_done_before_what_it_is_merged_after() {
        let n_begun = AtomicUsize::new(0);
        let ahead = AtomicUsize::new(0);
        let work = |index: usize, (): ()| {
            n_begun.fetch_add(1, Ordering::SeqCst);
            if index == 0 {
                while n_begun.load(Ordering::SeqCst) < AHEAD * 3 {
                    std::thread::yield_now();
                }
                (0..10_000).for_each(|_| std::thread::yield_now());
                ahead.store(n_begun.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            Ok::<_, ()>(1)
        };
        assert_eq!(on_all_cores(vec![(); 100], 3, work, |all, more| *all += more), Ok(Some(100)));
        assert_eq!(ahead.into_inner(), AHEAD * 3);
    }

    #[test]
    fn a_panic_does_not_leave_others_waiting() {
        let work = |index: usize, (): ()| {
            assert!(index != 0, "the first item");
            Ok::<_, ()>(())
        };
        let run = || on_all_cores(vec![(); 100], 2, work, |(), ()| ());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        let run = || on_all_cores(vec![(); 100], 2, |_, ()| Ok::<_, ()>(()), |(), ()| panic!("in merging"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }

    #[test]
    fn a_failure_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let work = |index: usize, (): ()| {
            begun.fetch_add(1, Ordering::Relaxed);
            if index == 3 { Err("third") } else { Ok(()) }
        };
        assert_eq!(on_all_cores(vec![(); 1000], 2, work, |(), ()| ()), Err("third"));
        assert!(begun.load(Ordering::Relaxed) < 1000);
    }
}
