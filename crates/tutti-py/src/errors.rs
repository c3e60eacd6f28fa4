//! The mapping from errors of the core to the exceptions of `tutti.errors`.
//!
//! Each variant has a class and a kind, which its enum names (`#[derive(Refusal)]`). Its fields
//! become attributes.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tutti_coherence::CoherenceError;
use tutti_coherence::program::ProgramError as KernelError;
use tutti_energy::EnergyError;
use tutti_engine::EngineError;
use tutti_engine::endpoint::EndpointError;
use tutti_engine::trace::TraceError;
use tutti_engine::training::{TorusError, TrainingRunError};
use tutti_engine::workload::{PipelineError, ProgramError, SystolicError, TrainingError};
use tutti_network::packet::PacketError;
use tutti_network::{ModelError, NoiseError};
use tutti_noc::FlitError;
use tutti_noc::allocator::AllocatorError;
use tutti_noc::traffic::TrafficError;
use tutti_schedule::algorithm::AlgorithmError;
use tutti_schedule::text::TextError;
use tutti_schedule::{BlocksError, ExplicitError, LayoutError, VerifyError};
use tutti_simulation::SimulationError;
use tutti_topology::TopologyError;
use tutti_topology::bypass::BypassError;
use tutti_units::UnitError;
use tutti_units::parameter::ParameterError;
use tutti_units::refusal::{Refusal, Value};

/// Every class and kind of error that the core raises; the reference page has an anchor for each.
#[pyfunction]
pub(crate) fn error_kinds() -> Vec<(&'static str, &'static str)> {
    [
        UnitError::KINDS,
        LayoutError::KINDS,
        BlocksError::KINDS,
        TopologyError::KINDS,
        BypassError::KINDS,
        ExplicitError::KINDS,
        TextError::KINDS,
        AlgorithmError::KINDS,
        ParameterError::KINDS,
        ModelError::KINDS,
        PacketError::KINDS,
        NoiseError::KINDS,
        AllocatorError::KINDS,
        FlitError::KINDS,
        TrafficError::KINDS,
        EnergyError::KINDS,
        EngineError::KINDS,
        ProgramError::KINDS,
        PipelineError::KINDS,
        TraceError::KINDS,
        TrainingError::KINDS,
        SystolicError::KINDS,
        EndpointError::KINDS,
        KernelError::KINDS,
        CoherenceError::KINDS,
        TorusError::KINDS,
        TrainingRunError::KINDS,
        VerifyError::KINDS,
        SimulationError::KINDS,
    ]
    .concat()
}

/// Turns the core's errors into Python's.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception of the error's class.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Refusal> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| raised(&error))
    }
}

/// An exception of `tutti.errors`.
pub(crate) fn raised<E: Refusal>(error: &E) -> PyErr {
    raised_with(error, |_| Ok(()))
}

/// The same about a byte of a text, which a mark will point at.
pub(crate) fn raised_at<E: Refusal>(error: &E, text: &str, at: usize) -> PyErr {
    raised_with(error, |fields| {
        fields.set_item("argument", text)?;
        fields.set_item("at", at)
    })
}

fn raised_with<E: Refusal>(
    error: &E,
    more: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    Python::attach(|py| {
        let fields = PyDict::new(py);
        for (name, value) in error.fields() {
            fields.set_item(name, python(py, value)?)?;
        }
        more(&fields)?;
        let (class, kind) = error.kind();
        exception(py, class, kind, &error.to_string(), &fields)
    })
    .unwrap_or_else(|failure| failure)
}

/// A field as Python sees it.
fn python(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    let all = |values: Vec<Value>| -> PyResult<Vec<Py<PyAny>>> {
        values.into_iter().map(|value| python(py, value)).collect()
    };
    match value {
        Value::None => Ok(py.None()),
        Value::Text(text) => text.into_py_any(py),
        Value::Integer(number) => number.into_py_any(py),
        Value::Real(number) => number.into_py_any(py),
        Value::List(values) => all(values)?.into_py_any(py),
        Value::Tuple(values) => PyTuple::new(py, all(values)?)?.into_py_any(py),
    }
}

/// The exception `tutti.errors.<class>(message, kind=kind, **fields)`.
fn exception(
    py: Python<'_>,
    class: &str,
    kind: &str,
    message: &str,
    fields: &Bound<'_, PyDict>,
) -> PyResult<PyErr> {
    let class = py.import("tutti.errors")?.getattr(class)?;
    let arguments = PyDict::new(py);
    arguments.set_item("kind", kind)?;
    arguments.set_item("fields", fields)?;
    Ok(PyErr::from_value(class.call((message,), Some(&arguments))?))
}

/// An exception for a mistake that only Python can make, such as a rank beyond the last.
pub(crate) fn refuse(class: &str, kind: &str, message: &str) -> PyErr {
    Python::attach(|py| exception(py, class, kind, message, &PyDict::new(py)))
        .unwrap_or_else(|failure| failure)
}
