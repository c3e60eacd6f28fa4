//! Training as a program: iterations of forward and backward passes over layers.
//!
//! **Forward**, layer by layer: the pass of a layer waits for the collective of its gradients of
//! the previous iteration, for the subsequent update, and for the transfer of the previous layer.
//! **Backward**, from the last layer: the weight gradient, with an asynchronous collective; then
//! the input gradient, for which the previous layer waits. The first layer needs no input gradient
//! unless its costs specify one. (The order is that of ASTRA-sim's public training loops, which
//! Rashidi et al. 2021 use.)
//!
//! **Gathered weights** (ZeRO; Rajbhandari et al. 2020): each forward pass waits for them, and each
//! backward pass unless they are stored; their collective is issued a number of passes ahead.
//!
//! **Pipeline**: each NPU holds the layers of one stage, and has the program of its stage. A stage
//! receives the activations or gradients of a micro-batch, processes them, and sends its own to the
//! neighbouring stage, in the order of [`super::Pipeline::slots`]. Gradients are complete, and sent,
//! in the last micro-batch.
//!
//! **Embedding** (DLRM): lookups send an all-to-all before the top layers. Another one returns the
//! gradients, and then the tables are updated. Optimised, lookup and update of adjacent iterations
//! run in the background (Rashidi et al. 2021, section VI-E): the update of iteration i - 1 and the
//! lookup of iteration i + 1 run concurrently with iteration i.

use super::{
    Direction, Embedding, Lane, Layer, Message, Pass, Pipeline, PipelineError, Program, Slot, Task,
    TaskId, TrainingError, TrainingLoop, Transfer, What,
};
use std::ops::Range;
use tutti_units::{Bytes, Time};

impl TrainingLoop {
    /// The program of every NPU, or of the first stage of a pipeline.
    ///
    /// # Errors
    /// As [`TrainingLoop::stage`].
    pub fn program(&self) -> Result<Program, TrainingError> {
        self.stage(0)
    }

    /// The program of the NPUs of a stage; without a pipeline, of every NPU.
    ///
    /// # Errors
    /// When there are no layers or iterations, an embedding leaves no top layer or is in a
    /// pipeline, or the pipeline is invalid.
    pub fn stage(&self, stage: u32) -> Result<Program, TrainingError> {
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
        if let Some(pipeline) = &self.pipeline {
            pipeline.check(layers)?;
            if self.embedding.is_some() {
                return Err(PipelineError::Embedding.into());
            }
        }
        let mut builder = Builder::new(self);
        for iteration in 0..self.iterations {
            builder.iterate(iteration, stage);
        }
        let mut names: Vec<String> = self.layers.iter().map(|layer| layer.name.clone()).collect();
        names.push("embedding".to_owned());
        Ok(Program::new(names, builder.tasks)?)
    }
}

/// A bucket of gradients of one kind.
struct Bucket {
    layers: Vec<usize>,
    after: Vec<TaskId>,
    transfer: Transfer,
}

/// The tasks so far, and the dependencies of the next ones.
struct Builder<'a> {
    plan: &'a TrainingLoop,
    tasks: Vec<(Task, Vec<TaskId>)>,
    iteration: u32,
    /// The last task of the main lane.
    last: Option<TaskId>,
    /// Further dependencies of the next task of the main lane.
    pending: Vec<TaskId>,
    /// The dependencies of each layer's next forward pass.
    ready: Vec<Option<TaskId>>,
    /// The passes so far of this iteration, in their order.
    passes: Vec<TaskId>,
    /// The last task of the main lane before the previous micro-batch: the next message is awaited
    /// from then on.
    expects: Option<TaskId>,
    buckets: Vec<Bucket>,
    /// The all-to-all of lookups that this iteration waits for.
    looked_up: Option<TaskId>,
    /// The one of the next iteration, if lookups run in the background.
    next: Option<TaskId>,
    /// The all-to-all of the gradients of the lookups.
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
            pending: Vec::new(),
            ready: vec![None; plan.layers.len()],
            passes: Vec::new(),
            expects: None,
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
        let mut after = std::mem::take(&mut self.pending);
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

    /// Sends transfers sequentially; the next task of the main lane waits for the last one.
    fn send_all(&mut self, transfers: &[Transfer], layer: usize, pass: Pass) {
        let mut before = self.last;
        for &transfer in transfers {
            let sent = self.send(transfer, layer, pass, before.into_iter().collect());
            before = Some(sent);
        }
        if !transfers.is_empty() {
            self.pending.extend(before);
        }
    }

    /// Computes while transfers run, such as a ring exchange; the next task waits for both.
    fn covered(&mut self, time: Time, transfers: &[Transfer], (layer, pass): (usize, Pass)) {
        if transfers.is_empty() {
            return;
        }
        // What the computation awaits, the transfers await, too.
        let mut before: Vec<TaskId> =
            self.last.into_iter().chain(self.pending.iter().copied()).collect();
        for &transfer in transfers {
            before = vec![self.send(transfer, layer, pass, before)];
        }
        if time > Time::ZERO {
            self.compute(time, layer, pass);
        }
        self.pending.extend(before);
    }

    fn iterate(&mut self, iteration: u32, stage: u32) {
        self.iteration = iteration;
        self.passes.clear();
        let all = 0..self.plan.layers.len();
        match &self.plan.pipeline {
            None => {
                self.forward(all.clone(), true);
                self.backward(all, true);
            }
            Some(pipeline) => {
                for slot in pipeline.slots(stage) {
                    self.micro_batch(pipeline, slot);
                }
                for bucket in std::mem::take(&mut self.buckets) {
                    self.flush(bucket);
                }
            }
        }
        self.end_iteration();
    }

    /// A pass of a micro-batch over a model chunk, between its messages. Weights are gathered before
    /// the first micro-batch of a chunk, and gradients are complete after its last.
    fn micro_batch(&mut self, pipeline: &Pipeline, slot: Slot) {
        let Slot { direction, chunk, micro_batch } = slot;
        let last_chunk = pipeline.ends.len() - 1;
        let layers = pipeline.layers(chunk);
        let (first, last) = (layers.start, layers.end - 1);
        let before = self.last;
        let (next, previous) = (1, pipeline.stages - 1);
        let boundary = |chunk: usize| pipeline.messages[chunk];
        let expects = std::mem::replace(&mut self.expects, before);
        let expects = expects.into_iter().collect::<Vec<_>>();
        let message = |ahead, bytes, tag| Message { rings: pipeline.rings, ahead, bytes, tag };
        if direction == Direction::Forward {
            if chunk > 0 {
                let from = message(previous, boundary(chunk - 1), 0);
                let came = self.add(What::Recv(from), first, Pass::Forward, expects);
                self.pending.push(came);
            }
            self.forward(layers, micro_batch == 0);
            if chunk < last_chunk {
                self.hand_over(message(next, boundary(chunk), 0), last, Pass::Forward);
            }
        } else {
            if chunk < last_chunk {
                let from = message(next, boundary(chunk), 1);
                let came = self.add(What::Recv(from), last, Pass::InputGradient, expects);
                self.pending.push(came);
            }
            self.backward(layers, micro_batch + 1 == pipeline.micro_batches);
            if chunk > 0 {
                let to = message(previous, boundary(chunk - 1), 1);
                self.hand_over(to, first, Pass::InputGradient);
            }
        }
    }

    /// Sends a message after all collectives of the pass; the stage goes on meanwhile.
    fn hand_over(&mut self, message: Message, layer: usize, pass: Pass) {
        let mut after: Vec<TaskId> = self.last.into_iter().collect();
        after.append(&mut self.pending);
        self.add(What::Send(message), layer, pass, after);
    }

    /// A pass over a layer, which waits for its weights.
    fn pass(&mut self, time: Time, layer: usize, pass: Pass) -> TaskId {
        let task = self.compute(time, layer, pass);
        self.passes.push(task);
        task
    }

    /// Gathers the weights of a layer once `after` are done, and not more than `ahead` passes
    /// early.
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
        let gathered = self.send(transfer.of_weights(), layer, pass, after);
        self.pending.push(gathered);
    }

    /// The forward pass over `layers`; `fresh` in the first micro-batch, which uses new weights.
    fn forward(&mut self, layers: Range<usize>, fresh: bool) {
        let embedding = self.plan.embedding;
        if let Some(embedding) = embedding {
            self.look_up(embedding);
        }
        let plan = self.plan;
        for layer in layers {
            let costs = &plan.layers[layer];
            if embedding.is_some_and(|embedding| embedding.bottom == layer) {
                self.pending.extend(self.looked_up);
            }
            self.weights(costs, layer, fresh);
            self.pass(costs.forward, layer, Pass::Forward);
            self.covered(costs.covered_forward, &costs.with_forward, (layer, Pass::Forward));
            self.send_all(&costs.after_forward, layer, Pass::Forward);
        }
    }

    /// The dependencies of a forward pass: gradients of the previous iteration, update, gathered
    /// weights.
    fn weights(&mut self, costs: &Layer, layer: usize, fresh: bool) {
        let ready = self.ready[layer].take();
        let updates = ready.is_some() && costs.update > Time::ZERO;
        if updates {
            self.pending.extend(ready);
            self.compute(costs.update, layer, Pass::Update);
        }
        match costs.before_forward {
            // With sharded weights, each micro-batch gathers; the layer that starts a unit in the
            // forward pass is not the one that starts it in the backward pass.
            Some(transfer) if fresh || self.plan.prefetch.is_some() => {
                let after = if updates { self.last } else { ready };
                let ahead = self.plan.prefetch;
                self.gather_weights(transfer, (layer, Pass::Forward), after, ahead);
            }
            _ => self.pending.extend(ready.filter(|_| !updates)),
        }
    }

    /// The lookup of this iteration, unless it ran in the background of the previous one.
    fn look_up(&mut self, embedding: Embedding) {
        if let Some(done) = self.next.take() {
            self.looked_up = Some(done);
        } else {
            self.pending.extend(self.updated);
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

    /// The background work of an iteration: the update of the previous one, the lookup of the next.
    fn work_behind(&mut self, embedding: Embedding) {
        let start: Vec<TaskId> = self.last.into_iter().collect();
        if let Some(gradients) = self.gradients.take() {
            self.compute_behind(embedding.update, Pass::Update, vec![gradients]);
        }
        if self.iteration + 1 < self.plan.iterations {
            let layer = self.plan.layers.len();
            let done = self.compute_behind(embedding.lookup, Pass::Forward, start);
            let sent = self.send(embedding.transfer(), layer, Pass::Forward, vec![done]);
            self.next = Some(sent);
        }
    }

    /// The backward pass over `layers`; `complete` in the last micro-batch, which completes
    /// gradients.
    fn backward(&mut self, layers: Range<usize>, complete: bool) {
        let plan = self.plan;
        let embedding = plan.embedding;
        for layer in layers.rev() {
            let costs = &plan.layers[layer];
            if let Some(transfer) = costs.before_backward {
                let ahead = Some(plan.prefetch.unwrap_or(1));
                self.gather_weights(transfer, (layer, Pass::WeightGradient), None, ahead);
            }
            self.covered(
                costs.covered_backward,
                &costs.with_backward,
                (layer, Pass::InputGradient),
            );
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
        if complete && plan.pipeline.is_none() {
            for bucket in std::mem::take(&mut self.buckets) {
                self.flush(bucket);
            }
        }
    }

    /// The end of an iteration: without overlap, all gradients must be complete, and the tables are
    /// updated unless the update runs in the background.
    fn end_iteration(&mut self) {
        if !self.plan.overlap || self.plan.barrier {
            self.pending.extend(self.ready.iter().flatten());
            self.pending.sort_unstable();
            self.pending.dedup();
        }
        let Some(embedding) = self.plan.embedding else { return };
        if embedding.background {
            return;
        }
        if let Some(gradients) = self.gradients.take() {
            self.pending.push(gradients);
            let layer = self.plan.layers.len();
            self.updated = Some(self.compute(embedding.update, layer, Pass::Update));
        }
    }

    /// Puts the gradients of `layer`, computed by `done`, into the bucket of their kind, and sends
    /// it when it is full.
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

    /// Sends the gradients in a bucket.
    fn flush(&mut self, bucket: Bucket) {
        let Bucket { layers, after, transfer } = bucket;
        let Some(&last) = layers.last() else { return };
        let sent = self.send(transfer.of_weights(), last, Pass::WeightGradient, after);
        for layer in layers {
            self.ready[layer] = Some(sent);
        }
    }
}
