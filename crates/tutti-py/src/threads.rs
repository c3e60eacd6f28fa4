//! Work in threads while Python handles Ctrl-C: one item, or many with each result passed to Python
//! as soon as it is complete.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
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
    let threads = (threads as usize).min(items.len().max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| {
        pyo3::exceptions::PyOSError::new_err(format!("cannot start threads: {error}"))
    })?;
    let stop = &AtomicBool::new(false);
    let next = &AtomicUsize::new(0);
    let work = &work;
    py.detach(|| {
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // Parallel iterators split the items, so that a thread would start in the middle.
                pool.broadcast(|_| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(index) else { break };
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        // The receiver is dropped only after it has stopped all work.
                        _ = sender.send((index, work(item, stop)));
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

/// Passes on results until all are complete.
fn deliver_all<R>(
    receiver: &mpsc::Receiver<(usize, R)>,
    deliver: &impl Fn(Python<'_>, usize, R) -> PyResult<()>,
) -> PyResult<()> {
    loop {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok((index, result)) => Python::attach(|py| deliver(py, index, result))?,
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
