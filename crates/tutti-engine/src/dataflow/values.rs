//! The values of one rank's chunks: where each was produced, and what uses it.

use super::DataflowError;
use super::compile::index_of;
use tutti_schedule::{ChunkRange, Local, Mark, Message, MessageRange, Schedule, Slot, Step};
use tutti_units::ids::RankId;

/// No value.
const NONE: u32 = u32::MAX;

/// A use of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A send of the rank, by index.
    Send(u32),
    /// A reduction, or the result.
    Local,
}

/// A value of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Value {
    /// The phase in which it was produced; None for initial values.
    pub(super) phase: Option<u32>,
    pub(super) reduced: bool,
    /// The receives of that phase that it depends on.
    pub(super) after: Vec<u32>,
    /// Its first use with the phase, and whether there are others.
    pub(super) first: Option<(Use, u32)>,
    pub(super) more: bool,
    /// Whether it is part of the result.
    pub(super) is_result: bool,
    /// The last phase in which it was sent, and that it was counted to enter.
    sent: Option<u32>,
    entered: Option<u32>,
    /// The reduction of a received value at its receipt.
    product: Option<u32>,
}

/// A send or receive as the schedule has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) peer: RankId,
    pub(super) chunks: u32,
    pub(super) phase: u32,
    pub(super) channel: u32,
    /// In an ordered step, the receives of the previous step and phase, which a send awaits.
    pub(super) follows: (u32, u32),
    /// The multicast that the send belongs to, or the combine that the receive belongs to.
    pub(super) mark: Option<u32>,
}

/// The values of a rank.
pub(super) struct Values<'a> {
    schedule: &'a dyn Schedule,
    rank: RankId,
    values: Vec<Value>,
    /// The value in each place: slot x chunks + chunk.
    places: Vec<u32>,
    pub(super) sends: Vec<Side>,
    pub(super) recvs: Vec<Side>,
    /// The receives of the last step that has any.
    last: (u32, u32),
    /// The values that each send reads, each with whether the phase has not sent it before; the
    /// values that each receive produces.
    reads: Vec<Vec<(u32, bool)>>,
    received: Vec<Vec<u32>>,
    /// Chunks that enter each phase.
    pub(super) entries: Vec<u32>,
    /// Initial values that are used.
    pub(super) loaded: u32,
    /// Values of the result.
    pub(super) results: u32,
    /// Marks of the steps so far.
    marks: u32,
}

impl<'a> Values<'a> {
    /// Traces the steps of a rank.
    pub(super) fn of(
        schedule: &'a dyn Schedule,
        rank: RankId,
    ) -> Result<Values<'a>, DataflowError> {
        let shape = schedule.shape();
        let mut values = Values {
            schedule,
            rank,
            values: Vec::new(),
            places: vec![NONE; (shape.slots as usize) * shape.chunks as usize],
            sends: Vec::new(),
            recvs: Vec::new(),
            last: (0, 0),
            reads: Vec::new(),
            received: Vec::new(),
            entries: vec![0; schedule.phases() as usize],
            loaded: 0,
            results: 0,
            marks: 0,
        };
        for chunk in 0..shape.chunks {
            let initial = shape.collective.before(rank, chunk, shape.ranks, shape.chunks);
            if initial.is_some() {
                values.places[chunk as usize] = values.add(Value::default());
            }
        }
        let mut content = Step::new();
        for step in 0..schedule.steps(rank) {
            content.clear();
            schedule.step(rank, step, &mut content);
            values.trace(step, &content)?;
        }
        values.end();
        Ok(values)
    }

    /// Whether the collective reduces.
    pub(super) fn reduces(&self) -> bool {
        self.schedule.shape().collective.reduces()
    }

    /// The values that a send reads, each with whether the phase has not sent it before.
    pub(super) fn read_by(&self, send: usize) -> impl Iterator<Item = (&Value, bool)> {
        self.reads[send].iter().map(|&(value, first)| (&self.values[value as usize], first))
    }

    /// The values that a receive produces, after the reduction at its receipt.
    pub(super) fn produced_by(&self, recv: usize) -> impl Iterator<Item = &Value> {
        self.received[recv].iter().map(|&value| {
            let product = self.values[value as usize].product.unwrap_or(value);
            &self.values[product as usize]
        })
    }

    fn add(&mut self, value: Value) -> u32 {
        self.values.push(value);
        u32::try_from(self.values.len() - 1).expect("a rank has fewer than 2^32 values")
    }

    fn place(&self, slot: Slot, chunk: u32) -> usize {
        slot.0 as usize * self.schedule.shape().chunks as usize + chunk as usize
    }

    fn at(&self, slot: Slot, chunk: u32) -> Result<u32, DataflowError> {
        match self.places[self.place(slot, chunk)] {
            NONE => Err(DataflowError::NoValue {
                name: self.schedule.shape().name.clone(),
                rank: self.rank,
                slot: slot.0,
                chunk,
            }),
            value => Ok(value),
        }
    }

    fn trace(&mut self, step: u32, content: &Step) -> Result<(), DataflowError> {
        let phase = self.schedule.phase(self.rank, step);
        let follows = self.follows(step, phase);
        for (index, send) in (0..).zip(&content.sends) {
            let channel = self.schedule.channel(self.rank, step, index);
            let (peer, chunks) = (send.peer, send.chunks.len());
            let mark = multicast_with(content, index).map(|nth| self.marks + nth);
            self.send(send, Side { peer, chunks, phase, channel, follows, mark })?;
        }
        let (before, first) = (self.values.len(), self.recvs.len());
        for (index, recv) in (0..).zip(&content.recvs) {
            let mark = combine_with(content, index).map(|nth| self.marks + nth);
            self.receive(recv, phase, mark);
        }
        self.marks += index_of(content.marks().len());
        if !content.recvs.is_empty() {
            self.last = (index_of(first), index_of(self.recvs.len()));
        }
        for &local in &content.locals {
            match local {
                Local::Reduce { into, operands, chunks } => {
                    let operands = content.operands(operands);
                    self.reduce((into, chunks), operands, phase, before)?;
                }
                Local::Copy { from, into, chunks, to } => {
                    self.copy((from, chunks), into, to, phase)?
                }
                Local::Compute { .. } | Local::Sleep { .. } => {
                    let name = self.schedule.shape().name.clone();
                    return Err(DataflowError::Computes { name, rank: self.rank });
                }
            }
        }
        Ok(())
    }

    /// The receives that the sends of a step await by order.
    fn follows(&self, step: u32, phase: u32) -> (u32, u32) {
        let (first, end) = self.last;
        let same_phase = first < end && self.recvs[first as usize].phase == phase;
        let ordered = same_phase && self.schedule.is_ordered(self.rank, step);
        if ordered { (first, end) } else { (0, 0) }
    }

    fn send(&mut self, send: &Message, side: Side) -> Result<(), DataflowError> {
        let (index, phase) = (index_of(self.sends.len()), side.phase);
        let mut read = Vec::with_capacity(send.chunks.len() as usize);
        for chunk in send.chunks.iter() {
            let value = self.at(send.slot, chunk)?;
            self.use_value(value, Use::Send(index), phase);
            let before = self.values[value as usize].sent.replace(phase);
            read.push((value, before != Some(phase)));
        }
        self.sends.push(side);
        self.reads.push(read);
        Ok(())
    }

    fn receive(&mut self, recv: &Message, phase: u32, mark: Option<u32>) {
        let index = index_of(self.recvs.len());
        let mut produced = Vec::with_capacity(recv.chunks.len() as usize);
        for chunk in recv.chunks.iter() {
            let value = Value { phase: Some(phase), after: vec![index], ..Value::default() };
            let value = self.add(value);
            let place = self.place(recv.slot, chunk);
            self.places[place] = value;
            produced.push(value);
        }
        let (chunks, follows) = (recv.chunks.len(), (0, 0));
        self.recvs.push(Side { peer: recv.peer, chunks, phase, channel: 0, follows, mark });
        self.received.push(produced);
    }

    /// Folds operands. Those received in this step, after `before`, are reduced at their receipt.
    fn reduce(
        &mut self,
        (into, chunks): (Slot, ChunkRange),
        operands: &[Slot],
        phase: u32,
        before: usize,
    ) -> Result<(), DataflowError> {
        for chunk in chunks.iter() {
            let mut sum = Value { phase: Some(phase), reduced: true, ..Value::default() };
            let mut fresh = Vec::new();
            for &slot in operands {
                let operand = self.at(slot, chunk)?;
                let value = &self.values[operand as usize];
                if value.phase == Some(phase) {
                    sum.after.extend(&value.after);
                }
                if operand as usize >= before && !value.reduced {
                    fresh.push(operand);
                } else {
                    self.use_value(operand, Use::Local, phase);
                }
            }
            sum.after.sort_unstable();
            sum.after.dedup();
            let sum = self.add(sum);
            for operand in fresh {
                self.values[operand as usize].product = Some(sum);
            }
            let place = self.place(into, chunk);
            self.places[place] = sum;
        }
        Ok(())
    }

    /// The copy is the same value at another place.
    fn copy(
        &mut self,
        (from, chunks): (Slot, ChunkRange),
        into: Slot,
        to: u32,
        phase: u32,
    ) -> Result<(), DataflowError> {
        let mut copied = Vec::with_capacity(chunks.len() as usize);
        for chunk in chunks.iter() {
            let value = self.at(from, chunk)?;
            self.enter(value, phase);
            copied.push(value);
        }
        for (chunk, value) in (to..).zip(copied) {
            let place = self.place(into, chunk);
            self.places[place] = value;
        }
        Ok(())
    }

    fn use_value(&mut self, value: u32, by: Use, phase: u32) {
        self.enter(value, phase);
        let value = &mut self.values[value as usize];
        if value.first.is_some() {
            value.more = true;
        } else {
            value.first = Some((by, phase));
        }
    }

    /// Counts a value that enters a phase.
    fn enter(&mut self, value: u32, phase: u32) {
        let value = &mut self.values[value as usize];
        if value.phase == Some(phase) || value.entered == Some(phase) {
            return;
        }
        if value.phase.is_none() && value.entered.is_none() {
            self.loaded += 1;
        }
        value.entered = Some(phase);
        self.entries[phase as usize] += 1;
    }

    /// The values of the result are used after the last step.
    fn end(&mut self) {
        let shape = self.schedule.shape();
        for chunk in 0..shape.chunks {
            let required = shape.collective.after(self.rank, chunk, shape.ranks, shape.chunks);
            let value = self.places[self.place(shape.result, chunk)];
            if required == tutti_schedule::collective::Postcondition::Anything {
                continue;
            }
            self.results += 1;
            if let Some(value) = self.values.get_mut(value as usize) {
                value.more |= value.first.is_some();
                value.first = value.first.or(Some((Use::Local, u32::MAX)));
                value.is_result = true;
            }
        }
    }
}

/// The number among the marks of a step of the multicast with a send.
fn multicast_with(content: &Step, send: u32) -> Option<u32> {
    let with = |mark: &Mark| matches!(mark, Mark::Multicast(run) if contains(*run, send));
    content.marks().iter().position(with).map(index_of)
}

/// The number among the marks of a step of the combine with a receive.
fn combine_with(content: &Step, recv: u32) -> Option<u32> {
    let with = |mark: &Mark| matches!(mark, Mark::Combine(run, _) if contains(*run, recv));
    content.marks().iter().position(with).map(index_of)
}

fn contains(run: MessageRange, index: u32) -> bool {
    run.start <= index && index < run.end
}
