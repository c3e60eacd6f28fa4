//! Training as a program: iterations of forward and backward passes over layers.
//!
//! **Forward**, layer by layer: a layer's pass waits for the collective of its own gradients of the
//! iteration before and for the update that follows it, and for what the layer before handed over.
//! **Backward**, from the last layer: the weight gradient, whose collective is issued and not waited for;
//! then the input gradient, which the layer before waits for. The first layer needs no input gradient
//! unless its costs name one. (The order is that of ASTRA-sim's public training loops, which Rashidi et
//! al. 2021 use.)
//!
//! **Embedding** (DLRM): lookups send an all-to-all before the top layers; its gradients come back by
//! another, after which the tables are updated. Optimised, lookup and update of neighbouring iterations
//! leave the loop for the background (Rashidi et al. 2021, section VI-E): the update of iteration i - 1 and
//! the lookup of iteration i + 1 run beside iteration i.

use super::{Lane, Layer, Pass, Program, ProgramError, Task, TaskId, Transfer, What};
use crate::units::{Bytes, Time};

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
}

/// Why a training loop is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// Gradients of one bucket that no single collective can carry.
    #[error("the gradients of {first} and {second} are in one bucket but not of one kind")]
    MixedBucket { first: String, second: String },
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
    /// When there are no layers or iterations, an embedding leaves no top layer, or gradients of
    /// different kinds meet in a bucket.
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
        let mut builder = Builder::new(self);
        for iteration in 0..self.iterations {
            builder.iteration = iteration;
            builder.forward();
            builder.backward()?;
        }
        let mut names: Vec<String> = self.layers.iter().map(|layer| layer.name.clone()).collect();
        names.push("embedding".to_owned());
        Ok(Program::new(names, builder.tasks)?)
    }
}

/// Gradients that wait to be sent together.
#[derive(Default)]
struct Bucket {
    layers: Vec<usize>,
    after: Vec<TaskId>,
    transfer: Option<Transfer>,
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
    bucket: Bucket,
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
            bucket: Bucket::default(),
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

    fn forward(&mut self) {
        let embedding = self.plan.embedding;
        if let Some(embedding) = embedding {
            self.look_up(embedding);
        }
        for layer in 0..self.plan.layers.len() {
            if embedding.is_some_and(|embedding| embedding.bottom == layer) {
                self.handed.extend(self.looked_up);
            }
            let ready = self.ready[layer].take();
            self.handed.extend(ready);
            let costs = &self.plan.layers[layer];
            if ready.is_some() && costs.update > Time::ZERO {
                self.compute(costs.update, layer, Pass::Update);
            }
            let done = self.compute(costs.forward, layer, Pass::Forward);
            if let Some(transfer) = costs.after_forward {
                let sent = self.send(transfer, layer, Pass::Forward, vec![done]);
                self.handed.push(sent);
            }
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

    fn backward(&mut self) -> Result<(), TrainingError> {
        let embedding = self.plan.embedding;
        for layer in (0..self.plan.layers.len()).rev() {
            let costs = &self.plan.layers[layer];
            let done = self.compute(costs.weight_gradient, layer, Pass::WeightGradient);
            self.gather(layer, done)?;
            if costs.input_gradient > Time::ZERO {
                self.compute(costs.input_gradient, layer, Pass::InputGradient);
            }
            if let (Some(transfer), Some(last)) = (costs.after_input_gradient, self.last) {
                let sent = self.send(transfer, layer, Pass::InputGradient, vec![last]);
                self.handed.push(sent);
            }
            if let Some(embedding) = embedding.filter(|embedding| embedding.bottom == layer) {
                let after = self.last.into_iter().collect();
                let embedded = self.plan.layers.len();
                let sent = self.send(embedding.transfer(), embedded, Pass::InputGradient, after);
                self.gradients = Some(sent);
            }
        }
        self.flush();
        self.end_iteration();
        Ok(())
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

    /// Puts the gradients of `layer`, computed by `done`, into the bucket, and sends it when it is full.
    fn gather(&mut self, layer: usize, done: TaskId) -> Result<(), TrainingError> {
        let Some(transfer) = self.plan.layers[layer].after_weight_gradient else {
            self.ready[layer] = Some(done);
            return Ok(());
        };
        let joined = match self.bucket.transfer {
            None => transfer,
            Some(held) if held == (Transfer { bytes: held.bytes, ..transfer }) => {
                Transfer { bytes: held.bytes + transfer.bytes, ..held }
            }
            Some(_) => return Err(self.mixed(layer)),
        };
        self.bucket.transfer = Some(joined);
        self.bucket.layers.push(layer);
        self.bucket.after.push(done);
        let full = self.plan.bucket.unwrap_or(Bytes(0));
        if self.plan.overlap && joined.bytes >= full {
            self.flush();
        }
        Ok(())
    }

    fn mixed(&self, layer: usize) -> TrainingError {
        let first = self.bucket.layers.first().copied().unwrap_or(layer);
        let name = |layer: usize| self.plan.layers[layer].name.clone();
        TrainingError::MixedBucket { first: name(first), second: name(layer) }
    }

    /// Sends what is in the bucket.
    fn flush(&mut self) {
        let Bucket { layers, after, transfer } = std::mem::take(&mut self.bucket);
        let (Some(transfer), Some(&last)) = (transfer, layers.last()) else { return };
        let sent = self.send(transfer, last, Pass::WeightGradient, after);
        for layer in layers {
            self.ready[layer] = Some(sent);
        }
    }
}

impl Embedding {
    /// Its all-to-all, which goes before everything else.
    fn transfer(&self) -> Transfer {
        Transfer::new(crate::collective::Collective::AllToAll, self.bytes).first()
    }
}
