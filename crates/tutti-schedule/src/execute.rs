//! Runs a schedule on data: every rank's buffers, messages and folds, without a network and without time.

use std::collections::BTreeMap;

use super::progress::{self, Side, Store};
use super::verify::{Checker, VerifyError, check_shape, explain};
use super::{At, ChunkRange, Layout, Local, Schedule, Shape, Slot, Step};
use tutti_units::Bytes;
use tutti_units::ids::RankId;

/// Why a schedule cannot be run on this data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ExecuteError {
    /// Not one input per rank.
    #[error("there are {inputs} inputs for {ranks} ranks: one each is needed")]
    WrongInputs { inputs: usize, ranks: u32 },
    /// Inputs of different lengths.
    #[error("{rank}'s input has {elements} elements, rank 0's has {first}: all need the same")]
    UnequalInputs { rank: RankId, elements: usize, first: usize },
    /// A move between chunks of different sizes.
    #[error(
        "{at}: chunks {from} and {to} hold {from_elements} and {to_elements} elements of the payload: \
         this schedule moves chunks to other places and needs a payload that its chunks divide evenly"
    )]
    UnequalChunks {
        at: At,
        from: ChunkRange,
        from_elements: usize,
        to: ChunkRange,
        to_elements: usize,
    },
    /// A schedule that is wrong.
    #[error(transparent)]
    Schedule(#[from] VerifyError),
}

/// Runs `schedule` on one payload per rank and returns what each rank's result slot holds in the end.
///
/// Inputs are whole payloads of equal length, whatever part of them the collective reads; chunk `i` of
/// `C` is its elements `floor(i E / C) .. floor((i + 1) E / C)` (see [`Layout`]). Positions of the result
/// that the collective leaves open hold whatever ended up there, and the default where nothing did. A fold
/// is `operator(operator(x1, x2), x3)` and so on, element by element.
///
/// Nothing is proved here: a wrong schedule may give a wrong result, or one of these errors.
///
/// # Errors
/// When the inputs do not fit, or the schedule cannot be run to its end.
pub fn execute<T: Copy + Default>(
    schedule: &dyn Schedule,
    inputs: &[Vec<T>],
    operator: impl Fn(T, T) -> T,
) -> Result<Vec<Vec<T>>, ExecuteError> {
    let Shape { ranks, chunks, result, .. } = *schedule.shape();
    check_shape(schedule.shape())?;
    if inputs.len() != ranks as usize {
        return Err(ExecuteError::WrongInputs { inputs: inputs.len(), ranks });
    }
    let first = inputs[0].len();
    if let Some((rank, input)) = (0..).zip(inputs).find(|(_, input)| input.len() != first) {
        let (rank, elements) = (RankId(rank), input.len());
        return Err(ExecuteError::UnequalInputs { rank, elements, first });
    }
    let layout = Layout::new(Bytes(first as u64), 1, chunks)
        .map_err(|error| VerifyError::Shape { problem: error.to_string() })?;
    let slots = inputs.iter().map(|input| BTreeMap::from([(Slot::DATA, input.clone())])).collect();
    let checker = Checker::new(schedule.shape());
    let mut memory = Memory { checker, layout, elements: first, slots, operator };
    let outcome = progress::walk(schedule, &mut memory)?;
    explain(&outcome)?;
    let results = memory.slots.iter_mut().map(|slots| slots.remove(&result));
    Ok(results.map(|held| held.unwrap_or_else(|| vec![T::default(); first])).collect())
}

struct Memory<T, F> {
    checker: Checker,
    layout: Layout,
    elements: usize,
    /// Per rank, the slots that have been written to, whole.
    slots: Vec<BTreeMap<Slot, Vec<T>>>,
    operator: F,
}

impl<T: Copy + Default, F: Fn(T, T) -> T> Memory<T, F> {
    fn place(&self, chunks: ChunkRange) -> std::ops::Range<usize> {
        let elements = self.layout.elements(chunks);
        let index = |element| usize::try_from(element).unwrap_or(usize::MAX);
        index(elements.start)..index(elements.end)
    }

    fn read(&self, rank: RankId, slot: Slot, chunks: ChunkRange) -> Vec<T> {
        let place = self.place(chunks);
        match self.slots[rank.index()].get(&slot) {
            Some(held) => held[place].to_vec(),
            None => vec![T::default(); place.len()],
        }
    }

    fn write(&mut self, rank: RankId, slot: Slot, chunks: ChunkRange, values: &[T]) {
        let place = self.place(chunks);
        let empty = || vec![T::default(); self.elements];
        let held = self.slots[rank.index()].entry(slot).or_insert_with(empty);
        held[place].copy_from_slice(values);
    }

    /// Refuses to move values between chunks that differ in size.
    fn same_size(&self, at: At, from: ChunkRange, to: ChunkRange) -> Result<(), ExecuteError> {
        let sizes =
            |chunks: ChunkRange| chunks.iter().map(|one| self.place(ChunkRange::one(one)).len());
        if sizes(from).eq(sizes(to)) {
            return Ok(());
        }
        let [from_elements, to_elements] = [from, to].map(|chunks| self.place(chunks).len());
        Err(ExecuteError::UnequalChunks { at, from, from_elements, to, to_elements })
    }
}

impl<T: Copy + Default, F: Fn(T, T) -> T> Store for Memory<T, F> {
    type Payload = Vec<T>;
    type Error = ExecuteError;

    fn begin(&mut self, at: At, step: &Step) -> Result<(), ExecuteError> {
        Ok(self.checker.check(at, step)?)
    }

    fn transfer(&mut self, send: Side, recv: Side) -> Result<(), ExecuteError> {
        let payload = self.take(send)?;
        self.put(payload, send, recv)
    }

    fn take(&mut self, send: Side) -> Result<Vec<T>, ExecuteError> {
        Ok(self.read(send.at.rank, send.message.slot, send.message.chunks))
    }

    fn put(&mut self, payload: Vec<T>, send: Side, recv: Side) -> Result<(), ExecuteError> {
        let (sent, expected) = (send.message.chunks, recv.message.chunks);
        if sent.len() != expected.len() {
            let (from, to) = (send.at, recv.at);
            return Err(VerifyError::LengthMismatch { from, to, sent, expected }.into());
        }
        self.same_size(recv.at, sent, expected)?;
        self.write(recv.at.rank, recv.message.slot, expected, &payload);
        Ok(())
    }

    fn finish(&mut self, at: At, step: &Step) -> Result<(), ExecuteError> {
        for local in &step.locals {
            match *local {
                Local::Reduce { into, operands, chunks } => {
                    let slots = step.operands(operands);
                    let mut sum = self.read(at.rank, slots[0], chunks);
                    for &slot in &slots[1..] {
                        let next = self.read(at.rank, slot, chunks);
                        let pairs = sum.iter_mut().zip(next);
                        pairs.for_each(|(sum, next)| *sum = (self.operator)(*sum, next));
                    }
                    self.write(at.rank, into, chunks, &sum);
                }
                Local::Copy { from, into, chunks, to } => {
                    let target = ChunkRange::new(to, to + chunks.len());
                    self.same_size(at, chunks, target)?;
                    let values = self.read(at.rank, from, chunks);
                    self.write(at.rank, into, target, &values);
                }
                Local::Compute { .. } | Local::Sleep { .. } => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Explicit;
    use crate::collective::Collective;

    const ALL: ChunkRange = ChunkRange::new(0, 2);

    #[test]
    fn two_ranks_subtract_in_the_order_of_the_operands() {
        let mut builder = Explicit::builder(Collective::AllReduce, 2, 2);
        for (rank, peer) in [(RankId(0), RankId(1)), (RankId(1), RankId(0))] {
            builder.send(rank, peer, Slot::DATA, ALL).recv(rank, peer, Slot(1), ALL);
            builder.reduce(rank, Slot::DATA, &[Slot::DATA, Slot(1)], ALL);
        }
        let schedule = builder.build().unwrap();
        let inputs = [vec![10, 20, 30], vec![1, 2, 3]];
        let results = execute(&schedule, &inputs, |a, b| a - b).unwrap();
        assert_eq!(results, [vec![9, 18, 27], vec![-9, -18, -27]]);
        let error = execute(&schedule, &inputs[..1], |a, b| a - b).unwrap_err();
        assert_eq!(error, ExecuteError::WrongInputs { inputs: 1, ranks: 2 });
    }

    #[test]
    fn a_message_waits_in_a_buffer_with_its_old_content() {
        let [a, b] = [RankId(0), RankId(1)];
        let mut builder = Explicit::builder(Collective::Broadcast { root: a }, 2, 2);
        builder.send(a, b, Slot::DATA, ALL).copy(a, Slot::DATA, ChunkRange::one(0), Slot::DATA, 1);
        builder.send(b, a, Slot::DATA, ALL).recv(a, b, Slot(1), ALL);
        builder.recv(b, a, Slot::DATA, ALL);
        builder.end_step(a).recv(a, b, Slot(1), ALL);
        let error = execute(&builder.build().unwrap(), &[vec![1, 2], vec![0, 0]], |a, _| a);
        assert!(matches!(error, Err(ExecuteError::Schedule(VerifyError::NeverSent { .. }))));
        // Without the receive too many: b's receive comes after its send, so a's message waits.
        let mut builder = Explicit::builder(Collective::Broadcast { root: a }, 2, 2);
        builder.send(a, b, Slot::DATA, ALL).copy(a, Slot::DATA, ChunkRange::one(0), Slot::DATA, 1);
        builder.recv(a, b, Slot(1), ALL).send(b, a, Slot::DATA, ALL).recv(b, a, Slot::DATA, ALL);
        let results =
            execute(&builder.build().unwrap(), &[vec![1, 2], vec![0, 0]], |a, _| a).unwrap();
        assert_eq!(results, [vec![1, 1], vec![1, 2]]);
    }

    #[test]
    fn chunks_of_different_sizes_do_not_change_places() {
        let mut builder = Explicit::builder(Collective::AllReduce, 1, 2);
        builder.copy(RankId(0), Slot::DATA, ChunkRange::one(0), Slot::DATA, 1);
        let schedule = builder.build().unwrap();
        assert!(execute(&schedule, &[vec![1, 2]], |a, _| a).is_ok());
        let error = execute(&schedule, &[vec![1, 2, 3]], |a, _| a).unwrap_err();
        assert!(error.to_string().contains("hold 1 and 2 elements"), "{error}");
    }
}
