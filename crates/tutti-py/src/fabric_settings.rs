//! How the collectives of a training run are executed.

use pyo3::prelude::*;
use tutti_engine::training::{Detail, Order, Population, TrainingFabric};
use tutti_units::{Bytes, Time};

use crate::endpoint::Endpoint;
use crate::errors::refuse;
use crate::step_fabric::StepFabric;

/// How collectives of a training run are executed.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct FabricSettings {
    chunk: Bytes,
    message: Bytes,
    parts: Option<u32>,
    order: Order,
    population: Population,
    detail: Detail,
    launch: Time,
    /// Length of a window; 0 without time series.
    pub(crate) window: Time,
}

#[pymethods]
impl FabricSettings {
    /// Chunks and messages of at most `chunk` and `message` bytes, or `parts` chunks of a
    /// collective of any size; the newest collective first (`lifo`) or the oldest (`fifo`).
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[pyo3(signature = (*, chunk, message, parts=None, order="lifo", every_npu=false, detail="packets", window_ps=0, launch_ps=0))]
    fn new(
        chunk: u64,
        message: u64,
        parts: Option<u32>,
        order: &str,
        every_npu: bool,
        detail: &str,
        window_ps: u64,
        launch_ps: u64,
    ) -> PyResult<FabricSettings> {
        Ok(FabricSettings {
            chunk: Bytes(chunk),
            message: Bytes(message),
            parts,
            order: order_named(order)?,
            population: if every_npu { Population::All } else { Population::One },
            detail: detail_named(detail)?,
            launch: Time::from_ps(launch_ps),
            window: Time::from_ps(window_ps),
        })
    }
}

impl FabricSettings {
    pub(crate) fn fabric(&self, fabric: &StepFabric, endpoint: &Endpoint) -> TrainingFabric {
        let sizes = (self.chunk, self.message, self.parts);
        let fabric = fabric.fabric(endpoint.0.clone(), sizes, self.order, self.population);
        TrainingFabric { detail: self.detail, launch: self.launch, ..fabric }
    }
}

fn detail_named(name: &str) -> PyResult<Detail> {
    match name {
        "packets" => Ok(Detail::Packets),
        "flows" => Ok(Detail::Flows),
        other => {
            let message = format!("unknown detail `{other}`: expected `packets` or `flows`");
            Err(refuse("WorkloadError", "unknown_detail", &message))
        }
    }
}

fn order_named(name: &str) -> PyResult<Order> {
    match name {
        "fifo" => Ok(Order::Fifo),
        "lifo" => Ok(Order::Lifo),
        other => {
            let message = format!("unknown order `{other}`: expected `lifo` or `fifo`");
            Err(refuse("WorkloadError", "unknown_order", &message))
        }
    }
}
