//! Runs of training programs: one, or many in threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::PyIterator;
use tutti_engine::training::{TrainingFabric, TrainingOutcome, TrainingRun, TrainingRunError};
use tutti_engine::workload::Program;
use tutti_units::Time;

use crate::endpoint::Endpoint;
use crate::errors::{OrRaise, raised};
use crate::fabric_settings::FabricSettings;
use crate::schedule::Number;
use crate::step_fabric::StepFabric;
use crate::threads::{each_of, watched};
use crate::training::TrainingProgram;
use crate::training_record::TrainingRecord;

/// All inputs of a training run.
struct Inputs {
    programs: Vec<Program>,
    of: Vec<u32>,
    unreserved: Vec<Program>,
    fabric: TrainingFabric,
    window: Time,
}

impl Inputs {
    fn run(&self) -> TrainingRun<'_> {
        let Inputs { programs, of, unreserved, fabric, window } = self;
        TrainingRun { programs, of, unreserved, fabric, window: *window }
    }
}

/// All inputs of a training run: programs on a fabric. `of` is the number of the program of each
/// NPU, empty if there is one. `unreserved` are the programs with the complete memory bandwidth, for
/// a work-conserving memory arbiter; empty for a static reservation.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct TrainingCase {
    inputs: Arc<Inputs>,
    latest: Time,
}

#[pymethods]
impl TrainingCase {
    #[new]
    #[pyo3(signature = (programs, step_fabric, endpoint, settings, of=Vec::new(), unreserved=Vec::new()))]
    fn new(
        programs: Vec<PyRef<'_, TrainingProgram>>,
        step_fabric: &StepFabric,
        endpoint: &Endpoint,
        settings: &FabricSettings,
        of: Vec<u32>,
        unreserved: Vec<PyRef<'_, TrainingProgram>>,
    ) -> TrainingCase {
        let owned = |given: Vec<PyRef<'_, TrainingProgram>>| -> Vec<Program> {
            given.iter().map(|program| program.0.clone()).collect()
        };
        let (programs, unreserved) = (owned(programs), owned(unreserved));
        let (fabric, window) = (settings.fabric(step_fabric, endpoint), settings.window);
        let inputs = Arc::new(Inputs { programs, of, unreserved, fabric, window });
        TrainingCase { inputs, latest: Time::MAX }
    }

    /// The run that ends early, with the error `too_late`, when it certainly takes longer.
    fn before(&self, latest_ps: u64) -> TrainingCase {
        TrainingCase { inputs: Arc::clone(&self.inputs), latest: Time::from_ps(latest_ps) }
    }
}

/// Runs programs on a fabric; the arguments are those of `TrainingCase`.
#[pyfunction]
#[pyo3(signature = (programs, step_fabric, endpoint, settings, of=Vec::new(), unreserved=Vec::new()))]
pub(crate) fn simulate_training(
    py: Python<'_>,
    programs: Vec<PyRef<'_, TrainingProgram>>,
    step_fabric: &StepFabric,
    endpoint: &Endpoint,
    settings: &FabricSettings,
    of: Vec<u32>,
    unreserved: Vec<PyRef<'_, TrainingProgram>>,
) -> PyResult<TrainingRecord> {
    let case = TrainingCase::new(programs, step_fabric, endpoint, settings, of, unreserved);
    let outcome = watched(py, |stop| case.inputs.run().run_until(stop))?;
    outcome.map(TrainingRecord).or_raise()
}

/// An item of `simulate_steps`.
enum Item {
    Case(Arc<Inputs>, Time),
    /// Why there is no case.
    Failed(Py<PyAny>),
}

/// What an item gives.
enum Given {
    Outcome(Result<TrainingOutcome, TrainingRunError>),
    Failed(Py<PyAny>),
}

/// Runs the cases of an iterator in `threads` threads (0: one per core) and passes each result to
/// `done(index, result)` as soon as it is complete, in completion order. A thread that is ready for a
/// case takes the next one, so that as many cases exist as threads. A result is a record or an
/// exception. An exception in place of a case is its result. Stops early when the iterator or `done`
/// raises or Ctrl-C is pressed. The results do not depend on the number of threads.
#[pyfunction]
#[pyo3(signature = (cases, done, *, threads=Number(0)))]
#[pyo3(text_signature = "(cases, done, *, threads=0)")]
pub(crate) fn simulate_steps(
    py: Python<'_>,
    cases: &Bound<'_, PyAny>,
    done: Bound<'_, PyAny>,
    threads: Number,
) -> PyResult<()> {
    let (cases, done) = (cases.try_iter()?.unbind(), done.unbind());
    let run = |item: Item, stop: &AtomicBool| match item {
        Item::Case(inputs, latest) => Given::Outcome(inputs.run().run_before(latest, stop)),
        Item::Failed(error) => Given::Failed(error),
    };
    each_of(
        py,
        || next(&cases),
        threads,
        run,
        |py, index, given| {
            let result = match given {
                Given::Outcome(Ok(outcome)) => Py::new(py, TrainingRecord(outcome))?.into_any(),
                Given::Outcome(Err(error)) => raised(&error).into_value(py).into_any(),
                Given::Failed(error) => error,
            };
            done.call1(py, (index, result)).map(drop)
        },
    )
}

/// The next item of an iterator.
fn next(cases: &Py<PyIterator>) -> PyResult<Option<Item>> {
    Python::attach(|py| {
        let Some(item) = cases.bind(py).clone().next().transpose()? else { return Ok(None) };
        Ok(Some(match item.cast::<TrainingCase>() {
            Ok(case) => Item::Case(Arc::clone(&case.get().inputs), case.get().latest),
            Err(_) => Item::Failed(item.unbind()),
        }))
    })
}
