//! Work in threads while Python handles Ctrl-C: one item, or many with each result passed to Python
//! as soon as it is complete.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use pyo3::prelude::*;

use crate::schedule::Number;

/// The interval at which a long computation checks for Ctrl-C.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Processes all items in `threads` threads (0: one per core), in order, and passes each result
/// with its index to `deliver`, in completion order. Stops early when `deliver` fails or Ctrl-C is
/// pressed; `work` must then return when its second argument is set.
pub(crate) fn each_in_threads<T: Sync, R: Send>(
    py: Python<'_>,
    items: &[T],
    Number(threads): Number,
    work: impl Fn(&T, &AtomicBool) -> R + Sync,
    deliver: impl Fn(Python<'_>, usize, R) -> PyResult<()> + Sync,
) -> PyResult<()> {
    // Avoids starting idle threads.
    let most = u32::try_from(items.len().max(1)).unwrap_or(u32::MAX);
    let at = AtomicUsize::new(0);
    let next = || Ok(items.get(at.fetch_add(1, Ordering::Relaxed)));
    each_of(py, next, Number(threads.min(most)), work, deliver)
}

/// As [`each_in_threads`], for the items that `next` returns until it returns None. Threads call it
/// one at a time, when they are ready for an item; if it fails, no further item is processed.
pub(crate) fn each_of<T, R: Send>(
    py: Python<'_>,
    next: impl Fn() -> PyResult<Option<T>> + Sync,
    Number(threads): Number,
    work: impl Fn(T, &AtomicBool) -> R + Sync,
    deliver: impl Fn(Python<'_>, usize, R) -> PyResult<()> + Sync,
) -> PyResult<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build();
    let pool = pool.map_err(|error| {
        pyo3::exceptions::PyOSError::new_err(format!("cannot start threads: {error}"))
    })?;
    let stop = &AtomicBool::new(false);
    let items = &Items { taken: Mutex::new(Some(0)), next };
    let work = &work;
    py.detach(|| {
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // Parallel iterators split the items, so that a thread would start in the middle.
                pool.broadcast(|_| {
                    while let Some(taken) = items.take(stop) {
                        let result = taken.map(|(index, item)| (index, work(item, stop)));
                        // The receiver is dropped only after it has stopped all work.
                        _ = sender.send(result);
                    }
                });
                drop(sender);
            });
            let result = deliver_all(&receiver, &deliver);
            stop.store(true, Ordering::Relaxed);
            result
        })
    })
}

/// The items that threads take.
struct Items<F> {
    /// The number of items taken; None after the last one.
    taken: Mutex<Option<usize>>,
    next: F,
}

impl<F> Items<F> {
    /// The next item with its index; None after the last one, after an error, and when all stop.
    fn take<T>(&self, stop: &AtomicBool) -> Option<PyResult<(usize, T)>>
    where
        F: Fn() -> PyResult<Option<T>>,
    {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let index = taken.filter(|_| !stop.load(Ordering::Relaxed))?;
        let item = (self.next)().transpose();
        *taken = matches!(item, Some(Ok(_))).then_some(index + 1);
        item.map(|item| item.map(|item| (index, item)))
    }
}

/// Passes on results until all are complete.
fn deliver_all<R>(
    receiver: &mpsc::Receiver<PyResult<(usize, R)>>,
    deliver: &impl Fn(Python<'_>, usize, R) -> PyResult<()>,
) -> PyResult<()> {
    loop {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(result) => {
                let (index, result) = result?;
                Python::attach(|py| deliver(py, index, result))?;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
        Python::attach(|py| py.check_signals())?;
    }
}

/// Runs `work` in a separate thread, and stops it when Ctrl-C is pressed.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let stop = &AtomicBool::new(false);
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(1);
            // The receiver is dropped only after it has stopped all work.
            scope.spawn(move || _ = sender.send(work(stop)));
            loop {
                match receiver.recv_timeout(POLL_INTERVAL) {
                    Ok(done) => return Ok(done),
                    Err(mpsc::RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())
                        .inspect_err(|_| stop.store(true, Ordering::Relaxed))?,
                    Err(mpsc::RecvTimeoutError::Disconnected) => {
                        // The thread has panicked; the scope propagates the panic.
                        return Err(pyo3::exceptions::PyRuntimeError::new_err("no result"));
                    }
                }
            }
        })
    })
}
