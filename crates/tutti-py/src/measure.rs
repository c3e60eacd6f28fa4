//! Measurements in threads: one entry for flit networks, meshes of several hops per cycle, and
//! chips.

use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tutti_noc::smart::Counts;

use crate::coherence::CoherenceCase;
use crate::noc::FlitCase;
use crate::schedule::Number;
use crate::smart_measure::SmartCase;
use crate::threads::each_in_threads;

/// A result that becomes an object, or the exception that a run ended with, once Python is
/// attached.
pub(crate) type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A network or a chip, its load, and how long to run.
pub(crate) trait MeasurementCase: Send + Sync {
    /// Runs it to its end, or until `stop` is set.
    fn run(&self, stop: &AtomicBool) -> Outcome;
}

/// A case of any kind.
#[derive(FromPyObject)]
pub(crate) enum AnyCase<'py> {
    Flit(PyRef<'py, FlitCase>),
    Smart(PyRef<'py, SmartCase>),
    Coherence(PyRef<'py, CoherenceCase>),
}

impl AnyCase<'_> {
    fn case(&self) -> Box<dyn MeasurementCase> {
        match self {
            AnyCase::Flit(case) => Box::new(FlitCase::clone(case)),
            AnyCase::Smart(case) => Box::new(SmartCase::clone(case)),
            AnyCase::Coherence(case) => Box::new(CoherenceCase::clone(case)),
        }
    }
}

/// Measures cases in `threads` threads (0: as many as there are cores) and hands each result to
/// `done(index, result)` when it is complete, in no particular order; a result is either that
/// of the kind of network or an exception. Stops early when `done` raises or Ctrl-C is pressed. The results do not depend on
/// the number of threads.
#[pyfunction]
#[pyo3(signature = (cases, done, *, threads=Number(0)))]
#[pyo3(text_signature = "(cases, done, *, threads=0)")]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
pub(crate) fn measure(
    py: Python<'_>,
    cases: Vec<AnyCase<'_>>,
    done: Bound<'_, PyAny>,
    threads: Number,
) -> PyResult<()> {
    let cases: Vec<Box<dyn MeasurementCase>> = cases.iter().map(AnyCase::case).collect();
    let done = done.unbind();
    let run = |case: &&dyn MeasurementCase, stop: &AtomicBool| case.run(stop);
    let cases: Vec<&dyn MeasurementCase> = cases.iter().map(|case| &**case).collect();
    each_in_threads(py, &cases, threads, run, |py, index, outcome| {
        match outcome(py) {
            Ok(found) => done.call1(py, (index, found))?,
            Err(error) => done.call1(py, (index, error))?,
        };
        Ok(())
    })
}

/// The counters of a mesh, by name.
pub(crate) fn counts_dict<'py>(py: Python<'py>, counts: &Counts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("crossings", counts.crossings)?;
    for (name, count) in counts.clone().scalars() {
        dict.set_item(name, *count)?;
    }
    Ok(dict)
}

/// A column of numbers as little-endian bytes.
pub(crate) fn column<'py, const N: usize>(
    py: Python<'py>,
    values: impl Iterator<Item = [u8; N]>,
) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &values.flatten().collect::<Vec<u8>>())
}
