//! Training: programs, and runs of them.

use std::num::NonZeroU64;

use pyo3::prelude::*;
use tutti_engine::workload::{
    self, Dataflow, Gemm, Lane, Layer, Pass, Program, Roofline, SystolicArray, SystolicError, Task,
    TaskId, TrainingLoop, What, Work,
};
use tutti_units::{Bytes, OpRate};

use crate::endpoint::Endpoint;
use crate::errors::{OrRaise, refuse};
use crate::fabric_settings::FabricSettings;
use crate::schedule::Number;
use crate::step_fabric::StepFabric;
use crate::training_layer::{EmbeddingTables, PipelineStage, TrainingLayer};
use crate::training_record::CollectiveLimit;
use crate::transfer::{TraceTask, Transfer};
use crate::units::TimePerByte;

/// The roofline time of work in picoseconds, and whether arithmetic or memory bounds it.
#[pyfunction]
pub(crate) fn roofline_time(
    flops: u64,
    size: u64,
    flops_per_second: u64,
    memory: &TimePerByte,
) -> (u64, &'static str) {
    let arithmetic = OpRate::per_second(flops_per_second);
    let roofline = Roofline { arithmetic, memory: memory.0 };
    let work = Work { flops, bytes: Bytes(size) };
    let bound = if roofline.is_memory_bound(work) { "memory" } else { "arithmetic" };
    (roofline.time(work).ps(), bound)
}

/// Cycles of an m x k by k x n product on systolic arrays that deal its folds out among them.
#[pyfunction]
pub(crate) fn systolic_cycles(
    array: (u64, u64),
    gemm: (u64, u64, u64),
    dataflow: &str,
    arrays: u64,
) -> PyResult<u64> {
    let dataflow = match dataflow {
        "output_stationary" => Dataflow::OutputStationary,
        "weight_stationary" => Dataflow::WeightStationary,
        "input_stationary" => Dataflow::InputStationary,
        other => {
            let known = "output_stationary, weight_stationary, input_stationary";
            let message = format!("unknown dataflow `{other}`: expected one of {known}");
            return Err(refuse("WorkloadError", "unknown_dataflow", &message));
        }
    };
    let (m, n, k) = gemm;
    let array = SystolicArray::new(array.0, array.1).or_raise()?;
    let arrays = NonZeroU64::new(arrays).ok_or(SystolicError::NoArrays).or_raise()?;
    Ok(array.shared_cycles(Gemm { m, n, k }, dataflow, arrays))
}

/// A task of a program.
#[pyclass(frozen, get_all, eq, module = "tutti._core")]
#[derive(PartialEq, Eq)]
pub(crate) struct ProgramTask {
    /// `compute`, `background`, `send`, `recv`, or a collective.
    kind: &'static str,
    /// Its layer.
    layer: String,
    /// Its pass.
    during: &'static str,
    /// Its iteration.
    iteration: u32,
    /// Picoseconds of computation, or bytes.
    amount: u64,
}

/// A collective or message of a program.
#[pyclass(frozen, get_all, eq, module = "tutti._core")]
#[derive(PartialEq, Eq)]
pub(crate) struct IssuedTransfer {
    /// The number of its task.
    task: u32,
    /// `send`, `recv`, or a collective.
    kind: &'static str,
    /// The dimensions of its ranks, a bit each.
    mask: u8,
    /// Its size.
    size: u64,
}

/// The program of every NPU, or of the NPUs of a stage.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct TrainingProgram(pub(crate) Program);

#[pymethods]
impl TrainingProgram {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[pyo3(signature = (layers, *, iterations, overlap, barrier=false, bucket=None, embedding=None, prefetch=None, pipeline=None))]
    fn new(
        py: Python<'_>,
        layers: Vec<PyRef<'_, TrainingLayer>>,
        iterations: Number,
        overlap: bool,
        barrier: bool,
        bucket: Option<u64>,
        embedding: Option<&EmbeddingTables>,
        prefetch: Option<Number>,
        pipeline: Option<&PipelineStage>,
    ) -> PyResult<TrainingProgram> {
        let plan = TrainingLoop {
            layers: layers.iter().map(|layer| layer.core()).collect::<PyResult<_>>()?,
            iterations: iterations.0,
            overlap,
            barrier,
            bucket: bucket.map(Bytes),
            embedding: embedding.map(EmbeddingTables::core),
            prefetch: prefetch.map(|passes| passes.0),
            pipeline: pipeline.map(|of| of.pipeline.clone()),
        };
        made(py, &plan, pipeline.map_or(0, |of| of.stage))
    }

    /// A single collective.
    #[staticmethod]
    fn alone(py: Python<'_>, transfer: &Transfer) -> PyResult<TrainingProgram> {
        let transfer = transfer.core()?;
        let name = "alone".to_owned();
        let plan = TrainingLoop {
            layers: vec![Layer { name, after_weight_gradient: Some(transfer), ..Layer::default() }],
            ..TrainingLoop::default()
        };
        made(py, &plan, 0)
    }

    /// A program from the tasks of a trace.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn of_tasks(tasks: Vec<PyRef<'_, TraceTask>>) -> PyResult<TrainingProgram> {
        let mut names = Vec::with_capacity(tasks.len());
        let mut made = Vec::with_capacity(tasks.len());
        for (layer, task) in (0..).zip(&tasks) {
            let what = task.what()?;
            names.push(task.name.clone());
            let after = task.after.iter().copied().map(TaskId).collect();
            made.push((Task { what, layer, pass: Pass::Forward, iteration: 0 }, after));
        }
        Program::new(names, made).or_raise().map(TrainingProgram)
    }

    /// Its collectives, sorted, without duplicates.
    #[getter]
    fn transfers(&self) -> Vec<Transfer> {
        let mut found = Vec::new();
        for task in self.0.tasks() {
            if let What::Collective(transfer) = task.what {
                let workload::Transfer { collective, rings, bytes, level, .. } = transfer;
                found.push((collective.name(), rings.0, bytes.0, level));
            }
        }
        found.sort_unstable();
        found.dedup();
        let named = |(name, mask, size, level): (&str, u8, u64, u8)| {
            let collective = name.to_owned();
            Transfer { collective, mask, size, level }
        };
        found.into_iter().map(named).collect()
    }

    /// Its collectives and messages in the order of issue.
    #[getter]
    fn issued(&self) -> Vec<IssuedTransfer> {
        let issued = |(index, task): (u32, &Task)| {
            let rings = match task.what {
                What::Compute { .. } => return None,
                What::Collective(transfer) => transfer.rings,
                What::Send(message) | What::Recv(message) => message.rings,
            };
            let (kind, size) = kind(task);
            Some(IssuedTransfer { task: index, kind, mask: rings.0, size })
        };
        (0..).zip(self.0.tasks()).filter_map(issued).collect()
    }

    /// Its tasks.
    #[getter]
    fn tasks(&self) -> Vec<ProgramTask> {
        let named = |task: &Task| {
            let layer = self.0.names().get(task.layer as usize).cloned().unwrap_or_default();
            let (kind, amount) = kind(task);
            ProgramTask { kind, layer, during: task.pass.name(), iteration: task.iteration, amount }
        };
        self.0.tasks().iter().map(named).collect()
    }
}

/// The kind of a task, and its picoseconds or bytes.
fn kind(task: &Task) -> (&'static str, u64) {
    match task.what {
        What::Compute { time, lane: Lane::Main } => ("compute", time.ps()),
        What::Compute { time, lane: Lane::Background } => ("background", time.ps()),
        What::Collective(transfer) => (transfer.collective.name(), transfer.bytes.0),
        What::Send(message) => ("send", message.bytes.0),
        What::Recv(message) => ("recv", message.bytes.0),
    }
}

fn made(py: Python<'_>, plan: &TrainingLoop, stage: u32) -> PyResult<TrainingProgram> {
    py.detach(|| plan.stage(stage)).or_raise().map(TrainingProgram)
}

/// The lower bound of a collective alone.
#[pyfunction]
pub(crate) fn collective_limit(
    transfer: &Transfer,
    step_fabric: &StepFabric,
    endpoint: &Endpoint,
    settings: &FabricSettings,
) -> PyResult<CollectiveLimit> {
    let fabric = settings.fabric(step_fabric, endpoint);
    fabric.limit(transfer.core()?).or_raise().map(CollectiveLimit)
}
