//! Work in threads while Python listens for Ctrl-C: one piece, or many at once with each result to Python as
//! soon as it is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use pyo3::prelude::*;
use rayon::prelude::*;

use crate::schedule::Number;

/// How often a long computation looks whether Ctrl-C was pressed.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Works on all items in so many threads (0: as many as there are cores), the first ones first, and hands
/// each result to `tell` with the item's index, in no particular order. Stops early when `tell` fails or
/// Ctrl-C is pressed; `work` is told to by its second argument.
pub(crate) fn each_in_threads<T: Sync, R: Send>(
    py: Python<'_>,
    items: &[T],
    Number(threads): Number,
    work: impl Fn(&T, &AtomicBool) -> R + Sync,
    tell: impl Fn(Python<'_>, usize, R) -> PyResult<()> + Sync,
) -> PyResult<()> {
    // More threads than items would only be started.
    let threads = (threads as usize).min(items.len().max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| {
        pyo3::exceptions::PyOSError::new_err(format!("cannot start threads: {error}"))
    })?;
    let stop = &AtomicBool::new(false);
    let work = &work;
    py.detach(|| {
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pool.install(|| {
                    let items = items.par_iter().enumerate().with_max_len(1);
                    items.for_each_with(sender, |sender, (index, item)| {
                        if !stop.load(Ordering::Relaxed) {
                            // The receiver is gone only when it has stopped everything.
                            _ = sender.send((index, work(item, stop)));
                        }
                    });
                });
            });
            let heard = hear(&receiver, &tell);
            stop.store(true, Ordering::Relaxed);
            heard
        })
    })
}

/// Hands results on until all are there.
fn hear<R>(
    receiver: &mpsc::Receiver<(usize, R)>,
    tell: &impl Fn(Python<'_>, usize, R) -> PyResult<()>,
) -> PyResult<()> {
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok((index, result)) => Python::attach(|py| tell(py, index, result))?,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
        Python::attach(|py| py.check_signals())?;
    }
}

/// Runs something in a thread of its own, and tells it to stop when Ctrl-C is pressed.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let stop = &AtomicBool::new(false);
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(1);
            // The receiver is gone only when it has stopped everything.
            scope.spawn(move || _ = sender.send(work(stop)));
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(done) => return Ok(done),
                    Err(mpsc::RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())
                        .inspect_err(|_| stop.store(true, Ordering::Relaxed))?,
                    Err(mpsc::RecvTimeoutError::Disconnected) => {
                        // The thread has panicked, and the end of the scope passes that on.
                        return Err(pyo3::exceptions::PyRuntimeError::new_err("no result"));
                    }
                }
            }
        })
    })
}
