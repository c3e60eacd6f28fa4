//! Lower bounds of training steps.

use std::sync::Arc;

use pyo3::prelude::*;
use tutti_engine::training::Torus;
use tutti_engine::workload::Program;
use tutti_simulation::{BoundedNetwork, BoundedStep, Dimension};
use tutti_units::Time;

use crate::errors::OrRaise;
use crate::platform::Platform;
use crate::schedule::Number;
use crate::step_fabric::{TorusRing, torus_of};
use crate::threads::watched;
use crate::training::TrainingProgram;
use crate::units::TimePerByte;

/// The servers between memory and links of an NPU, as far as every schedule uses them.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct EndpointCosts(tutti_simulation::EndpointCosts);

#[pymethods]
impl EndpointCosts {
    /// No servers.
    #[staticmethod]
    fn ideal() -> EndpointCosts {
        EndpointCosts(tutti_simulation::EndpointCosts::Ideal)
    }

    /// SMs read memory and write to the bus, for each message.
    #[staticmethod]
    #[pyo3(signature = (*, memory, per_sm, sms, bus))]
    fn baseline(
        memory: TimePerByte,
        per_sm: TimePerByte,
        sms: Number,
        bus: TimePerByte,
    ) -> EndpointCosts {
        let (memory, per_sm, sms, bus) = (memory.0, per_sm.0, sms.0, bus.0);
        EndpointCosts(tutti_simulation::EndpointCosts::Baseline { memory, per_sm, sms, bus })
    }

    /// ACE reads the data of a collective once, and writes its result once.
    #[staticmethod]
    #[pyo3(signature = (*, memory, bus))]
    fn ace(memory: TimePerByte, bus: TimePerByte) -> EndpointCosts {
        EndpointCosts(tutti_simulation::EndpointCosts::Ace { memory: memory.0, bus: bus.0 })
    }
}

/// A lower bound of the time of a step.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct StepBound(tutti_simulation::StepBound);

#[pymethods]
impl StepBound {
    /// The bound: the largest part.
    #[getter]
    fn time_ps(&self) -> u64 {
        self.0.at_least().ps()
    }

    /// The name of the largest part; the critical path if several are equal.
    #[getter]
    fn by(&self) -> &str {
        self.0.by()
    }

    /// The bound by the critical path, and by each resource.
    #[getter]
    fn parts_ps(&self) -> Vec<(&str, u64)> {
        self.0.parts().iter().map(|(name, time)| (name.as_str(), time.ps())).collect()
    }
}

/// The network of a step: the rings of a torus, or a platform.
#[derive(FromPyObject)]
pub(crate) enum GivenNetwork<'py> {
    Platform(PyRef<'py, Platform>),
    Rings(Vec<PyRef<'py, TorusRing>>),
}

/// A network that outlives the interpreter's lock.
enum Network {
    Platform(Arc<tutti_simulation::Platform>),
    Torus(Torus),
}

/// The lower bound of the time of programs, for any algorithms of their collectives. `dimensions` are
/// those of the NPU numbers, innermost first; `of` is the number of the program of each NPU, empty if
/// there is one; `is_alike`: whether the NPUs of each group compute alike.
#[pyfunction]
#[pyo3(signature = (programs, network, dimensions, endpoint, *, launch_ps, of, is_alike))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
pub(crate) fn step_bound(
    py: Python<'_>,
    programs: Vec<PyRef<'_, TrainingProgram>>,
    network: GivenNetwork<'_>,
    dimensions: Vec<(String, Number)>,
    endpoint: &EndpointCosts,
    launch_ps: u64,
    of: Vec<u32>,
    is_alike: bool,
) -> PyResult<StepBound> {
    let programs: Vec<Program> = programs.iter().map(|program| program.0.clone()).collect();
    let network = match network {
        GivenNetwork::Platform(platform) => Network::Platform(Arc::clone(&platform.0)),
        GivenNetwork::Rings(rings) => Network::Torus(torus_of(&rings)?),
    };
    let dimension = |(name, npus): (String, Number)| Dimension { name, npus: npus.0 };
    let dimensions: Vec<Dimension> = dimensions.into_iter().map(dimension).collect();
    let step = BoundedStep {
        dimensions: &dimensions,
        network: match &network {
            Network::Platform(platform) => BoundedNetwork::Platform(platform),
            Network::Torus(torus) => BoundedNetwork::Torus(torus),
        },
        endpoint: endpoint.0,
        launch: Time::from_ps(launch_ps),
        programs: &programs,
        of: &of,
        is_alike,
    };
    watched(py, |stop| step.bound_until(stop))?.or_raise().map(StepBound)
}
