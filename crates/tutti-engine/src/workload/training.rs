//! Training as a program: iterations of forward and backward passes over layers.
//!
//! **Forward**, layer by layer: a layer's pass waits for the collective of its own gradients of the
//! iteration before and for the update that follows it, and for what the layer before handed over.
//! **Backward**, from the last layer: the weight gradient, whose collective is issued and not waited for;
//! then the input gradient, which the layer before waits for. The first layer needs no input gradient
//! unless its costs name one. (The order is that of ASTRA-sim's public training loops, which Rashidi et
//! al. 2021 use.)
//!
//! **Weights that are gathered** (ZeRO; Rajbhandari et al. 2020): each forward pass, and where they are not
//! kept each backward pass, waits for them; their collective is issued a number of passes ahead.
//!
//! **Pipeline** (`GPipe`; Huang et al. 2019): each NPU holds the layers of one stage. What is simulated is
//! a stage that hands on both ways and has all of its wait before the last backward passes, as the first
//! one has: forward passes of all micro-batches, the wait until gradients have come back, backward passes.
//! Other stages are taken to be as long as this one, so the wait is `stages - 1` times what a micro-batch
//! takes each way, and the whole (micro-batches + stages - 1) times. Gradients are complete, and leave, in
//! the last micro-batch.
//!
//! **Embedding** (DLRM): lookups send an all-to-all before the top layers; its gradients come back by
//! another, after which the tables are updated. Optimised, lookup and update of neighbouring iterations
//! leave the loop for the background (Rashidi et al. 2021, section VI-E): the update of iteration i - 1 and
//! the lookup of iteration i + 1 run beside iteration i.

use super::{Bubble, Lane, Layer, Pass, Program, ProgramError, Task, TaskId, Transfer, What};
use tutti_units::{Bytes, Time};

/// Embedding tables that are divided among the NPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// How many layers come before what is looked up is needed (the bottom layers).
    pub bottom: usize,
    /// Time to look up.
    pub lookup: Time,
    /// Time to look up for the first iteration, before which the background has nothing to hide behind.
    pub first_lookup: Time,
    /// Time to update the tables.
    pub update: Time,
    /// Bytes of the all-to-all of lookups, by its convention; that of gradients is as large.
    pub bytes: Bytes,
    /// Whether lookup and update leave the loop for the background.
    pub background: bool,
}

/// Stages of layers, one behind the other on a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// How many stages.
    pub stages: u32,
    /// Into how many parts a batch is cut, which follow one another.
    pub micro_batches: u32,
    /// What a stage hands on of a micro-batch; gradients that come back are as large.
    pub handed: Transfer,
}

/// Layers, and how iterations over them go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingLoop {
    /// The layers, first to last.
    pub layers: Vec<Layer>,
    /// How many iterations.
    pub iterations: u32,
    /// Whether gradients are on their way while the backward pass goes on; otherwise one collective at
    /// its end carries all of them, and nothing is computed meanwhile.
    pub overlap: bool,
    /// Gradients wait until so many bytes have gathered and go as one; none: each layer's go at once.
    pub bucket: Option<Bytes>,
    /// Embedding tables beside the layers.
    pub embedding: Option<Embedding>,
    /// How many passes ahead of their use weights are gathered; none: as soon as they are there, and one
    /// pass ahead in the backward pass.
    pub prefetch: Option<u32>,
    /// The pipeline of which the layers are a stage; their times are those of a micro-batch.
    pub pipeline: Option<Pipeline>,
}

impl Default for TrainingLoop {
    /// One iteration over no layers, gradients on their way at once.
    fn default() -> TrainingLoop {
        TrainingLoop {
            layers: Vec::new(),
            iterations: 1,
            overlap: true,
            bucket: None,
            embedding: None,
            prefetch: None,
            pipeline: None,
        }
    }
}

/// Why a training loop is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "WorkloadError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TrainingError {
    /// No layers.
    #[error("a training loop has no layers: expected at least one")]
    NoLayers,
    /// No iterations.
    #[error("a training loop of 0 iterations does nothing: expected at least 1")]
    NoIterations,
    /// Top layers that are not there.
    #[error("{bottom} bottom layers leave no top layer: there are {layers} layers")]
    NoTop { bottom: usize, layers: usize },
    /// A pipeline that is none.
    #[error(
        "a pipeline of {stages} stages and {micro_batches} micro-batches: expected at least 2 and 1"
    )]
    NoPipeline { stages: u32, micro_batches: u32 },
    /// Embedding tables of a stage.
    #[error("embedding tables are looked up once an iteration, not in the stages of a pipeline")]
    EmbeddingInPipeline,
    /// Tasks that make no program.
    #[error(transparent)]
    Program {
        #[from]
        source: ProgramError,
    },
}

impl TrainingLoop {
    /// The program of every NPU.
    ///
    /// # Errors
    /// When there are no layers or iterations, an embedding leaves no top layer or is in a pipeline, or a
    /// pipeline has no second stage.
    pub fn program(&self) -> Result<Program, TrainingError> {
        if self.layers.is_empty() {
            return Err(TrainingError::NoLayers);
        }
        if self.iterations == 0 {
            return Err(TrainingError::NoIterations);
        }
        let layers = self.layers.len();
        if let Some(Embedding { bottom, .. }) = self.embedding
            && bottom >= layers
        {
            return Err(TrainingError::NoTop { bottom, layers });
        }
        self.check_pipeline()?;
        let mut builder = Builder::new(self);
        for iteration in 0..self.iterations {
            builder.iterate(iteration);
        }
        let mut names: Vec<String> = self.layers.iter().map(|layer| layer.name.clone()).collect();
        names.push("embedding".to_owned());
        Ok(Program::new(names, builder.tasks)?)
    }

    fn check_pipeline(&self) -> Result<(), TrainingError> {
        match self.pipeline {
            Some(Pipeline { stages, micro_batches, .. }) if stages < 2 || micro_batches == 0 => {
                Err(TrainingError::NoPipeline { stages, micro_batches })
            }
            Some(_) if self.embedding.is_some() => Err(TrainingError::EmbeddingInPipeline),
            _ => Ok(()),
        }
    }
}

/// Gradients of one kind that wait to be sent together.
struct Bucket {
    layers: Vec<usize>,
    after: Vec<TaskId>,
    transfer: Transfer,
}

/// The tasks so far, and what the next ones wait for.
struct Builder<'a> {
    plan: &'a TrainingLoop,
    tasks: Vec<(Task, Vec<TaskId>)>,
    iteration: u32,
    /// The last task of the main lane.
    last: Option<TaskId>,
    /// What the next task of the main lane waits for besides.
    handed: Vec<TaskId>,
    /// What each layer's next forward pass waits for.
    ready: Vec<Option<TaskId>>,
    /// The passes so far of this iteration, in their order.
    passes: Vec<TaskId>,
    /// What has been handed to the next stage, of every micro-batch.
    handed_on: Vec<TaskId>,
    buckets: Vec<Bucket>,
    /// The all-to-all of lookups that this iteration waits for.
    looked_up: Option<TaskId>,
    /// That of the next one, where the background looks up.
    next: Option<TaskId>,
    /// The all-to-all of the gradients of what was looked up.
    gradients: Option<TaskId>,
    /// The last update of the tables.
    updated: Option<TaskId>,
    /// The last task of the background.
    behind: Option<TaskId>,
}

impl<'a> Builder<'a> {
    fn new(plan: &'a TrainingLoop) -> Builder<'a> {
        Builder {
            plan,
            tasks: Vec::new(),
            iteration: 0,
            last: None,
            handed: Vec::new(),
            ready: vec![None; plan.layers.len()],
            passes: Vec::new(),
            handed_on: Vec::new(),
            buckets: Vec::new(),
            looked_up: None,
            next: None,
            gradients: None,
            updated: None,
            behind: None,
        }
    }

    fn add(&mut self, what: What, layer: usize, pass: Pass, after: Vec<TaskId>) -> TaskId {
        let id = |n: usize| u32::try_from(n).expect("a program has fewer than 2^32 tasks");
        let task = TaskId(id(self.tasks.len()));
        let (layer, iteration) = (id(layer), self.iteration);
        self.tasks.push((Task { what, layer, pass, iteration }, after));
        task
    }

    /// The next task of the main lane.
    fn compute(&mut self, time: Time, layer: usize, pass: Pass) -> TaskId {
        let mut after = std::mem::take(&mut self.handed);
        after.extend(self.last);
        let task = self.add(What::Compute { time, lane: Lane::Main }, layer, pass, after);
        self.last = Some(task);
        task
    }

    /// The next task of the background, which also waits for `after`.
    fn compute_behind(&mut self, time: Time, pass: Pass, mut after: Vec<TaskId>) -> TaskId {
        after.extend(self.behind);
        let layer = self.plan.layers.len();
        let task = self.add(What::Compute { time, lane: Lane::Background }, layer, pass, after);
        self.behind = Some(task);
        task
    }

    fn send(&mut self, transfer: Transfer, layer: usize, pass: Pass, after: Vec<TaskId>) -> TaskId {
        self.add(What::Collective(transfer), layer, pass, after)
    }

    /// One after the other, each when the one before it is done; the next task of the main lane waits for
    /// the last of them.
    fn send_all(&mut self, transfers: &[Transfer], layer: usize, pass: Pass) {
        let mut before = self.last;
        for &transfer in transfers {
            let sent = self.send(transfer, layer, pass, before.into_iter().collect());
            before = Some(sent);
        }
        if !transfers.is_empty() {
            self.handed.extend(before);
        }
    }

    fn iterate(&mut self, iteration: u32) {
        self.iteration = iteration;
        self.passes.clear();
        let Some(pipeline) = self.plan.pipeline else {
            self.forward(true);
            self.backward(true);
            return self.end_iteration();
        };
        let mut ahead = self.micro_batch(pipeline, true, true);
        for _ in 1..pipeline.micro_batches {
            ahead = self.micro_batch(pipeline, true, false);
        }
        self.bubble(pipeline, ahead);
        let back = self.micro_batch(pipeline, false, pipeline.micro_batches == 1);
        self.bubble(pipeline, back);
        for micro_batch in 1..pipeline.micro_batches {
            self.micro_batch(pipeline, false, micro_batch + 1 == pipeline.micro_batches);
        }
        self.end_iteration();
    }

    /// A micro-batch one way, and what is handed on of it: its first and its last task. `whole` says
    /// whether weights are to be gathered first, or gradients are complete afterwards.
    fn micro_batch(&mut self, pipeline: Pipeline, ahead: bool, whole: bool) -> (TaskId, TaskId) {
        let before = self.passes.len();
        // What has been handed on is kept until it is there; two may be on their way.
        if let Some(&held) = self.handed_on.iter().rev().nth(1) {
            self.handed.push(held);
        }
        let (layer, pass) = if ahead {
            self.forward(whole);
            (self.plan.layers.len() - 1, Pass::Forward)
        } else {
            self.backward(whole);
            (0, Pass::InputGradient)
        };
        let mut after: Vec<TaskId> = self.last.into_iter().collect();
        after.append(&mut self.handed);
        let sent = self.send(pipeline.handed, layer, pass, after);
        self.handed_on.push(sent);
        (self.passes[before], sent)
    }

    /// Waits as long as the other stages take, each as long as this one did.
    fn bubble(&mut self, pipeline: Pipeline, (from, to): (TaskId, TaskId)) {
        let since = self.last.unwrap_or(from);
        let bubble = Bubble { from, to, since, times: pipeline.stages - 1 };
        let waited = self.add(What::Bubble(bubble), 0, Pass::Forward, vec![since, to]);
        self.handed_on.clear();
        self.handed.push(waited);
    }

    /// A pass over a layer, which waits for its weights.
    fn pass(&mut self, time: Time, layer: usize, pass: Pass) -> TaskId {
        let task = self.compute(time, layer, pass);
        self.passes.push(task);
        task
    }

    /// Gathers the weights of a layer once `after` are done, and not more than `ahead` passes early.
    fn gather_weights(
        &mut self,
        transfer: Transfer,
        (layer, pass): (usize, Pass),
        after: Option<TaskId>,
        ahead: Option<u32>,
    ) {
        let mut after: Vec<TaskId> = after.into_iter().collect();
        let earlier = ahead.and_then(|ahead| self.passes.iter().rev().nth(ahead as usize));
        after.extend(earlier);
        let gathered = self.send(transfer, layer, pass, after);
        self.handed.push(gathered);
    }

    /// Over all layers; `fresh` in the first micro-batch, whose weights are new.
    fn forward(&mut self, fresh: bool) {
        let embedding = self.plan.embedding;
        if let Some(embedding) = embedding {
            self.look_up(embedding);
        }
        let plan = self.plan;
        for (layer, costs) in plan.layers.iter().enumerate() {
            if embedding.is_some_and(|embedding| embedding.bottom == layer) {
                self.handed.extend(self.looked_up);
            }
            self.weights(costs, layer, fresh);
            self.pass(costs.forward, layer, Pass::Forward);
            self.send_all(&costs.after_forward, layer, Pass::Forward);
        }
    }

    /// What a forward pass waits for: gradients of the iteration before, the update, the gathering.
    fn weights(&mut self, costs: &Layer, layer: usize, fresh: bool) {
        let ready = self.ready[layer].take();
        let updates = ready.is_some() && costs.update > Time::ZERO;
        if updates {
            self.handed.extend(ready);
            self.compute(costs.update, layer, Pass::Update);
        }
        match costs.before_forward {
            Some(transfer) if fresh || costs.before_backward.is_some() => {
                let after = if updates { self.last } else { ready };
                let ahead = self.plan.prefetch;
                self.gather_weights(transfer, (layer, Pass::Forward), after, ahead);
            }
            _ => self.handed.extend(ready.filter(|_| !updates)),
        }
    }

    /// The lookup of this iteration, unless the background has done it during the one before.
    fn look_up(&mut self, embedding: Embedding) {
        if let Some(done) = self.next.take() {
            self.looked_up = Some(done);
        } else {
            self.handed.extend(self.updated);
            let layer = self.plan.layers.len();
            let time = if self.iteration == 0 { embedding.first_lookup } else { embedding.lookup };
            let done = self.compute(time, layer, Pass::Forward);
            let sent = self.send(embedding.transfer(), layer, Pass::Forward, vec![done]);
            self.looked_up = Some(sent);
        }
        if embedding.background {
            self.work_behind(embedding);
        }
    }

    /// In the background of an iteration: the update of the one before, the lookup for the next.
    fn work_behind(&mut self, embedding: Embedding) {
        let begin: Vec<TaskId> = self.last.into_iter().collect();
        if let Some(gradients) = self.gradients.take() {
            self.compute_behind(embedding.update, Pass::Update, vec![gradients]);
        }
        if self.iteration + 1 < self.plan.iterations {
            let layer = self.plan.layers.len();
            let done = self.compute_behind(embedding.lookup, Pass::Forward, begin);
            let sent = self.send(embedding.transfer(), layer, Pass::Forward, vec![done]);
            self.next = Some(sent);
        }
    }

    /// Over all layers, last to first; `complete` in the last micro-batch, which completes gradients.
    fn backward(&mut self, complete: bool) {
        let plan = self.plan;
        let embedding = plan.embedding;
        for (layer, costs) in plan.layers.iter().enumerate().rev() {
            if let Some(transfer) = costs.before_backward {
                let ahead = Some(plan.prefetch.unwrap_or(1));
                self.gather_weights(transfer, (layer, Pass::WeightGradient), None, ahead);
            }
            let done = self.pass(costs.weight_gradient, layer, Pass::WeightGradient);
            if complete {
                self.gather(layer, done);
            }
            if costs.input_gradient > Time::ZERO {
                self.compute(costs.input_gradient, layer, Pass::InputGradient);
            }
            self.send_all(&costs.after_input_gradient, layer, Pass::InputGradient);
            if let Some(embedding) = embedding.filter(|embedding| embedding.bottom == layer) {
                let after = self.last.into_iter().collect();
                let embedded = plan.layers.len();
                let sent = self.send(embedding.transfer(), embedded, Pass::InputGradient, after);
                self.gradients = Some(sent);
            }
        }
        if complete {
            for bucket in std::mem::take(&mut self.buckets) {
                self.flush(bucket);
            }
        }
    }

    /// The end of an iteration: without overlap nothing goes on before all gradients are there, and tables
    /// that are updated in the loop are updated now.
    fn end_iteration(&mut self) {
        if !self.plan.overlap {
            self.handed.extend(self.ready.iter().flatten());
            self.handed.sort_unstable();
            self.handed.dedup();
        }
        let Some(embedding) = self.plan.embedding else { return };
        if embedding.background {
            return;
        }
        if let Some(gradients) = self.gradients.take() {
            self.handed.push(gradients);
            let layer = self.plan.layers.len();
            self.updated = Some(self.compute(embedding.update, layer, Pass::Update));
        }
    }

    /// Puts the gradients of `layer`, computed by `done`, into the bucket of their kind, and sends it when
    /// it is full.
    fn gather(&mut self, layer: usize, done: TaskId) {
        let Some(transfer) = self.plan.layers[layer].after_weight_gradient else {
            self.ready[layer] = Some(done);
            return;
        };
        let kind = Transfer { bytes: Bytes(0), ..transfer };
        let of_kind = |bucket: &Bucket| Transfer { bytes: Bytes(0), ..bucket.transfer } == kind;
        let at = self.buckets.iter().position(of_kind).unwrap_or_else(|| {
            self.buckets.push(Bucket { layers: Vec::new(), after: Vec::new(), transfer: kind });
            self.buckets.len() - 1
        });
        let bucket = &mut self.buckets[at];
        bucket.transfer.bytes = bucket.transfer.bytes + transfer.bytes;
        bucket.layers.push(layer);
        bucket.after.push(done);
        if self.plan.overlap && bucket.transfer.bytes >= self.plan.bucket.unwrap_or(Bytes(0)) {
            let full = self.buckets.remove(at);
            self.flush(full);
        }
    }

    /// Sends what is in a bucket.
    fn flush(&mut self, bucket: Bucket) {
        let Bucket { layers, after, transfer } = bucket;
        let Some(&last) = layers.last() else { return };
        let sent = self.send(transfer, last, Pass::WeightGradient, after);
        for layer in layers {
            self.ready[layer] = Some(sent);
        }
    }
}

impl Embedding {
    /// Its all-to-all, which goes before everything else.
    fn transfer(&self) -> Transfer {
        Transfer::new(tutti_schedule::collective::Collective::AllToAll, self.bytes).first()
    }
}
