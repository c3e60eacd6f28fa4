//! What a training loop consists of: layers, embedding tables, and the stages of a pipeline.

use pyo3::prelude::*;
use tutti_engine::workload::{Embedding, Layer, Pipeline, PipelineOrder, Rings};
use tutti_units::{Bytes, Time};

use crate::errors::refuse;
use crate::schedule::Number;
use crate::transfer::{Transfer, transfers};

/// A layer; times in picoseconds.
#[pyclass(get_all, set_all, module = "tutti._core")]
pub(crate) struct TrainingLayer {
    /// Its name.
    name: String,
    /// Its forward pass.
    forward_ps: u64,
    /// The gradient of its input.
    input_gradient_ps: u64,
    /// The gradient of its weights.
    weight_gradient_ps: u64,
    /// The update of its weights.
    update_ps: u64,
    /// The forward pass waits for it.
    before_forward: Option<Transfer>,
    /// The backward pass waits for it.
    before_backward: Option<Transfer>,
    /// In turn after the forward pass; the next layer waits for them.
    after_forward: Vec<Transfer>,
    /// The end of the forward pass that runs during `with_forward`.
    covered_forward_ps: u64,
    /// In turn during the end of the forward pass.
    with_forward: Vec<Transfer>,
    /// The start of the backward pass that runs during `with_backward`.
    covered_backward_ps: u64,
    /// In turn during the start of the backward pass.
    with_backward: Vec<Transfer>,
    /// After the input gradient; the previous layer waits for them.
    after_input_gradient: Vec<Transfer>,
    /// After the weight gradient; the next forward pass waits for it.
    after_weight_gradient: Option<Transfer>,
}

#[pymethods]
impl TrainingLayer {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[pyo3(signature = (name, *, forward_ps=0, input_gradient_ps=0, weight_gradient_ps=0, update_ps=0, before_forward=None, before_backward=None, after_forward=Vec::new(), covered_forward_ps=0, with_forward=Vec::new(), covered_backward_ps=0, with_backward=Vec::new(), after_input_gradient=Vec::new(), after_weight_gradient=None))]
    fn new(
        name: String,
        forward_ps: u64,
        input_gradient_ps: u64,
        weight_gradient_ps: u64,
        update_ps: u64,
        before_forward: Option<Transfer>,
        before_backward: Option<Transfer>,
        after_forward: Vec<Transfer>,
        covered_forward_ps: u64,
        with_forward: Vec<Transfer>,
        covered_backward_ps: u64,
        with_backward: Vec<Transfer>,
        after_input_gradient: Vec<Transfer>,
        after_weight_gradient: Option<Transfer>,
    ) -> TrainingLayer {
        TrainingLayer {
            name,
            forward_ps,
            input_gradient_ps,
            weight_gradient_ps,
            update_ps,
            before_forward,
            before_backward,
            after_forward,
            covered_forward_ps,
            with_forward,
            covered_backward_ps,
            with_backward,
            after_input_gradient,
            after_weight_gradient,
        }
    }
}

impl TrainingLayer {
    pub(crate) fn core(&self) -> PyResult<Layer> {
        let optional = |given: &Option<Transfer>| given.as_ref().map(Transfer::core).transpose();
        Ok(Layer {
            name: self.name.clone(),
            forward: Time::from_ps(self.forward_ps),
            input_gradient: Time::from_ps(self.input_gradient_ps),
            weight_gradient: Time::from_ps(self.weight_gradient_ps),
            update: Time::from_ps(self.update_ps),
            before_forward: optional(&self.before_forward)?,
            before_backward: optional(&self.before_backward)?,
            after_forward: transfers(&self.after_forward)?,
            covered_forward: Time::from_ps(self.covered_forward_ps),
            with_forward: transfers(&self.with_forward)?,
            covered_backward: Time::from_ps(self.covered_backward_ps),
            with_backward: transfers(&self.with_backward)?,
            after_input_gradient: transfers(&self.after_input_gradient)?,
            after_weight_gradient: optional(&self.after_weight_gradient)?,
        })
    }
}

/// The embedding tables of a step; times in picoseconds.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct EmbeddingTables {
    /// The layers that precede the use of the lookups.
    bottom: usize,
    /// A lookup.
    lookup_ps: u64,
    /// The lookup of the first iteration, which does not overlap with an earlier one.
    first_lookup_ps: u64,
    /// An update of the tables.
    update_ps: u64,
    /// Bytes of the all-to-all of lookups.
    size: u64,
    /// Whether lookup and update run in the background.
    background: bool,
}

#[pymethods]
impl EmbeddingTables {
    #[new]
    #[pyo3(signature = (*, bottom, lookup_ps, first_lookup_ps, update_ps, size, background))]
    fn new(
        bottom: usize,
        lookup_ps: u64,
        first_lookup_ps: u64,
        update_ps: u64,
        size: u64,
        background: bool,
    ) -> EmbeddingTables {
        EmbeddingTables { bottom, lookup_ps, first_lookup_ps, update_ps, size, background }
    }
}

impl EmbeddingTables {
    pub(crate) fn core(&self) -> Embedding {
        Embedding {
            bottom: self.bottom,
            lookup: Time::from_ps(self.lookup_ps),
            first_lookup: Time::from_ps(self.first_lookup_ps),
            update: Time::from_ps(self.update_ps),
            bytes: Bytes(self.size),
            background: self.background,
        }
    }
}

/// A stage of a pipeline.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct PipelineStage {
    pub(crate) stage: u32,
    pub(crate) pipeline: Pipeline,
}

#[pymethods]
impl PipelineStage {
    /// The stages are along the dimensions of `mask`; `ends` are the layers that end stages, and
    /// `messages` the bytes that leave them.
    #[new]
    #[pyo3(signature = (*, stage, stages, micro_batches, order, mask, ends, messages))]
    fn new(
        stage: Number,
        stages: Number,
        micro_batches: Number,
        order: &str,
        mask: u8,
        ends: Vec<usize>,
        messages: Vec<u64>,
    ) -> PyResult<PipelineStage> {
        let order = match order {
            "gpipe" => PipelineOrder::GPipe,
            "1f1b" => PipelineOrder::OneForwardOneBackward,
            other => {
                let message =
                    format!("unknown pipeline order `{other}`: expected `1f1b` or `gpipe`");
                return Err(refuse("WorkloadError", "unknown_order", &message));
            }
        };
        let pipeline = Pipeline {
            stages: stages.0,
            micro_batches: micro_batches.0,
            order,
            rings: Rings(mask),
            ends,
            messages: messages.into_iter().map(Bytes).collect(),
        };
        Ok(PipelineStage { stage: stage.0, pipeline })
    }
}
