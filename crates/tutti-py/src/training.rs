//! Training: programs, and runs of them.

use std::num::NonZeroU64;

use pyo3::prelude::*;
use tutti_engine::training::{Detail, Order, Population, TrainingFabric};
use tutti_engine::workload::{
    Content, Dataflow, Embedding, Gemm, Lane, Layer, Message, Pass, Pipeline, PipelineOrder,
    Program, Rings, Roofline, SystolicArray, SystolicError, Task, TaskId, TrainingLoop, Transfer,
    What, Work,
};
use tutti_units::{Bytes, OpRate, Time};

use crate::algorithm::collective_named;
use crate::endpoint::Endpoint;
use crate::errors::{OrRaise, refuse};
use crate::schedule::Number;
use crate::step_fabric::StepFabric;
use crate::training_record::CollectiveLimit;
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

/// A collective of a pass: its name, rings (a bit each), bytes, and level.
pub(crate) type GivenTransfer = (String, u8, u64, u8);

pub(crate) fn transfer((name, rings, bytes, level): GivenTransfer) -> PyResult<Transfer> {
    let collective = collective_named(&name, 0)?;
    let content = Content::default();
    Ok(Transfer { collective, rings: Rings(rings), bytes: Bytes(bytes), level, content })
}

pub(crate) fn transfers(given: Vec<GivenTransfer>) -> PyResult<Vec<Transfer>> {
    given.into_iter().map(transfer).collect()
}

/// A layer by name; times in picoseconds.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenLayer {
    name: String,
    forward: u64,
    input_gradient: u64,
    weight_gradient: u64,
    update: u64,
    before_forward: Option<GivenTransfer>,
    before_backward: Option<GivenTransfer>,
    after_forward: Vec<GivenTransfer>,
    covered_forward: u64,
    with_forward: Vec<GivenTransfer>,
    covered_backward: u64,
    with_backward: Vec<GivenTransfer>,
    after_input_gradient: Vec<GivenTransfer>,
    after_weight_gradient: Option<GivenTransfer>,
}

impl GivenLayer {
    fn layer(self) -> PyResult<Layer> {
        Ok(Layer {
            name: self.name,
            forward: Time::from_ps(self.forward),
            input_gradient: Time::from_ps(self.input_gradient),
            weight_gradient: Time::from_ps(self.weight_gradient),
            update: Time::from_ps(self.update),
            before_forward: self.before_forward.map(transfer).transpose()?,
            before_backward: self.before_backward.map(transfer).transpose()?,
            after_forward: transfers(self.after_forward)?,
            covered_forward: Time::from_ps(self.covered_forward),
            with_forward: transfers(self.with_forward)?,
            covered_backward: Time::from_ps(self.covered_backward),
            with_backward: transfers(self.with_backward)?,
            after_input_gradient: transfers(self.after_input_gradient)?,
            after_weight_gradient: self.after_weight_gradient.map(transfer).transpose()?,
        })
    }
}

/// Embedding tables by name; times in picoseconds.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenEmbedding {
    bottom: usize,
    lookup: u64,
    first_lookup: u64,
    update: u64,
    bytes: u64,
    background: bool,
}

/// A pipeline, and the stage of the program.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenPipeline {
    stage: Number,
    stages: Number,
    micro_batches: Number,
    order: String,
    rings: u8,
    ends: Vec<usize>,
    messages: Vec<u64>,
}

impl GivenPipeline {
    fn pipeline(self) -> PyResult<(u32, Pipeline)> {
        let order = match self.order.as_str() {
            "gpipe" => PipelineOrder::GPipe,
            "1f1b" => PipelineOrder::OneForwardOneBackward,
            other => {
                let message =
                    format!("unknown pipeline order `{other}`: expected `1f1b` or `gpipe`");
                return Err(refuse("WorkloadError", "unknown_order", &message));
            }
        };
        let pipeline = Pipeline {
            stages: self.stages.0,
            micro_batches: self.micro_batches.0,
            order,
            rings: Rings(self.rings),
            ends: self.ends,
            messages: self.messages.into_iter().map(Bytes).collect(),
        };
        Ok((self.stage.0, pipeline))
    }
}

/// The transfer of a task: a collective, or a message (`send` or `recv`, rings, ranks ahead, bytes,
/// tag).
#[derive(FromPyObject)]
pub(crate) enum GivenExchange {
    Collective(GivenTransfer),
    Message((String, u8, Number, u64, u32)),
}

impl GivenExchange {
    fn what(self) -> PyResult<What> {
        match self {
            GivenExchange::Collective(given) => transfer(given).map(What::Collective),
            GivenExchange::Message((name, rings, ahead, bytes, tag)) => {
                let (rings, bytes) = (Rings(rings), Bytes(bytes));
                let message = Message { rings, ahead: ahead.0, bytes, tag };
                match name.as_str() {
                    "send" => Ok(What::Send(message)),
                    "recv" => Ok(What::Recv(message)),
                    other => {
                        let message =
                            format!("unknown message `{other}`: expected `send` or `recv`");
                        Err(refuse("WorkloadError", "unknown_message", &message))
                    }
                }
            }
        }
    }
}

/// A task: (kind, layer, pass, iteration, picoseconds, bytes or times).
type TaskRow<'a> = (&'static str, &'a str, &'static str, u32, u64);

/// A task: its name, picoseconds and whether in the background, or its transfer, and its
/// dependencies.
type GivenTask = (String, (u64, bool), Option<GivenExchange>, Vec<u32>);

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
        layers: Vec<GivenLayer>,
        iterations: Number,
        overlap: bool,
        barrier: bool,
        bucket: Option<u64>,
        embedding: Option<GivenEmbedding>,
        prefetch: Option<Number>,
        pipeline: Option<GivenPipeline>,
    ) -> PyResult<TrainingProgram> {
        let layers = layers.into_iter().map(GivenLayer::layer).collect::<PyResult<_>>()?;
        let embedding = embedding.map(|given| Embedding {
            bottom: given.bottom,
            lookup: Time::from_ps(given.lookup),
            first_lookup: Time::from_ps(given.first_lookup),
            update: Time::from_ps(given.update),
            bytes: Bytes(given.bytes),
            background: given.background,
        });
        let pipeline = pipeline.map(GivenPipeline::pipeline).transpose()?;
        let (stage, pipeline) = pipeline.map_or((0, None), |(stage, of)| (stage, Some(of)));
        let plan = TrainingLoop {
            layers,
            iterations: iterations.0,
            overlap,
            barrier,
            bucket: bucket.map(Bytes),
            embedding,
            prefetch: prefetch.map(|passes| passes.0),
            pipeline,
        };
        made(py, &plan, stage)
    }

    /// A single collective.
    #[staticmethod]
    fn alone(py: Python<'_>, requested: GivenTransfer) -> PyResult<TrainingProgram> {
        let transfer = transfer(requested)?;
        let name = "alone".to_owned();
        let plan = TrainingLoop {
            layers: vec![Layer { name, after_weight_gradient: Some(transfer), ..Layer::default() }],
            ..TrainingLoop::default()
        };
        made(py, &plan, 0)
    }

    /// A program from tasks with their dependencies and names.
    #[staticmethod]
    fn of_tasks(tasks: Vec<GivenTask>) -> PyResult<TrainingProgram> {
        let mut names = Vec::with_capacity(tasks.len());
        let mut made = Vec::with_capacity(tasks.len());
        for (layer, (name, work, handed, after)) in (0..).zip(tasks) {
            let what = match handed {
                Some(given) => given.what()?,
                None => {
                    let lane = if work.1 { Lane::Background } else { Lane::Main };
                    What::Compute { time: Time::from_ps(work.0), lane }
                }
            };
            names.push(name);
            let after = after.into_iter().map(TaskId).collect();
            made.push((Task { what, layer, pass: Pass::Forward, iteration: 0 }, after));
        }
        Program::new(names, made).or_raise().map(TrainingProgram)
    }

    /// Its collectives, without duplicates: name, dimensions (a bit each), bytes, level.
    #[getter]
    fn transfers(&self) -> Vec<(&'static str, u8, u64, u8)> {
        let mut found = Vec::new();
        for task in self.0.tasks() {
            if let What::Collective(Transfer { collective, rings, bytes, level, .. }) = task.what {
                found.push((collective.name(), rings.0, bytes.0, level));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Its transfers in the order of issue: task, name, dimensions (a bit each), bytes.
    #[getter]
    fn issued(&self) -> Vec<(u32, &'static str, u8, u64)> {
        let issued = |(index, task): (u32, &Task)| {
            let rings = match task.what {
                What::Compute { .. } => return None,
                What::Collective(transfer) => transfer.rings,
                What::Send(message) | What::Recv(message) => message.rings,
            };
            let (kind, amount) = kind(task);
            Some((index, kind, rings.0, amount))
        };
        (0..).zip(self.0.tasks()).filter_map(issued).collect()
    }

    /// Its tasks.
    #[getter]
    fn tasks(&self) -> Vec<TaskRow<'_>> {
        let row = |task: &Task| {
            let name = self.0.names().get(task.layer as usize).map_or("", String::as_str);
            let (kind, amount) = kind(task);
            (kind, name, task.pass.name(), task.iteration, amount)
        };
        self.0.tasks().iter().map(row).collect()
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

/// How collectives of a training run are executed, by name; sizes in bytes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenFabric {
    chunk: u64,
    message: u64,
    /// The number of chunks of a collective of any size.
    parts: Option<u32>,
    order: String,
    every_npu: bool,
    /// `packets` or `flows`.
    detail: String,
    /// Length of a window in picoseconds; 0 without time series.
    window: u64,
    /// Time from the issue of a collective until its start, in picoseconds.
    launch: u64,
}

impl GivenFabric {
    pub(crate) fn window(&self) -> Time {
        Time::from_ps(self.window)
    }

    pub(crate) fn fabric(
        &self,
        fabric: &StepFabric,
        endpoint: &Endpoint,
    ) -> PyResult<TrainingFabric> {
        let population = if self.every_npu { Population::All } else { Population::One };
        let sizes = (Bytes(self.chunk), Bytes(self.message), self.parts);
        let detail = match self.detail.as_str() {
            "packets" => Detail::Packets,
            "flows" => Detail::Flows,
            other => {
                let message = format!("unknown detail `{other}`: expected `packets` or `flows`");
                return Err(refuse("WorkloadError", "unknown_detail", &message));
            }
        };
        let order = order(&self.order)?;
        let fabric = fabric.fabric(endpoint.0.clone(), sizes, order, population);
        Ok(TrainingFabric { detail, launch: Time::from_ps(self.launch), ..fabric })
    }
}

fn order(name: &str) -> PyResult<Order> {
    match name {
        "fifo" => Ok(Order::Fifo),
        "lifo" => Ok(Order::Lifo),
        other => {
            let message = format!("unknown order `{other}`: expected `lifo` or `fifo`");
            Err(refuse("WorkloadError", "unknown_order", &message))
        }
    }
}

/// The lower bound of a collective alone.
#[pyfunction]
pub(crate) fn collective_limit(
    requested: GivenTransfer,
    step_fabric: &StepFabric,
    endpoint: &Endpoint,
    fabric_settings: GivenFabric,
) -> PyResult<CollectiveLimit> {
    let fabric = fabric_settings.fabric(step_fabric, endpoint)?;
    fabric.limit(transfer(requested)?).or_raise().map(CollectiveLimit)
}
