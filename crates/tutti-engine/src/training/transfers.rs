//! What is known of each collective of a program before the run: its chunks and their shapes.

use super::plan::{self, Phase, PhaseKind, Shape, Torus};
use super::{TrainingFabric, TrainingRunError};
use crate::endpoint::{Admission, Endpoint, EndpointError};
use crate::workload::Transfer;
use tutti_units::Bytes;

/// A collective, cut into chunks.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) level: u8,
    /// The torus as far as it takes part.
    pub(super) torus: Torus,
    /// The number of its first chunk, and how many it has.
    pub(super) first: u32,
    pub(super) chunks: u32,
    /// Shapes of every chunk but the last, and of the last.
    whole: Vec<Shape>,
    rest: Vec<Shape>,
    /// What a chunk leaves when it is done, whole and last.
    done: (Bytes, Bytes),
}

impl Cut {
    /// The shapes of a chunk by its number in the run.
    #[inline]
    pub(super) fn shapes(&self, chunk: u32) -> &[Shape] {
        if self.is_last(chunk) { &self.rest } else { &self.whole }
    }

    pub(super) fn done(&self, chunk: u32) -> Bytes {
        if self.is_last(chunk) { self.done.1 } else { self.done.0 }
    }

    fn is_last(&self, chunk: u32) -> bool {
        chunk + 1 == self.first + self.chunks
    }
}

/// All collectives of a run.
#[derive(Clone, Debug)]
pub(super) struct Cuts {
    pub(super) cuts: Vec<Cut>,
    /// Which collective each chunk belongs to.
    of: Vec<u32>,
}

impl Cuts {
    /// Cuts `transfers` into chunks, by their size or their number.
    pub(super) fn new(
        fabric: &TrainingFabric,
        transfers: &[Transfer],
    ) -> Result<Cuts, TrainingRunError> {
        let TrainingFabric { torus, endpoint, chunk, parts, message, .. } = fabric;
        if *chunk == Bytes(0) || *message == Bytes(0) || *parts == Some(0) {
            return Err(TrainingRunError::EmptyChunk);
        }
        let (mut cuts, mut of) = (Vec::with_capacity(transfers.len()), Vec::new());
        for (index, transfer) in (0..).zip(transfers) {
            let chunk = parts
                .map_or(*chunk, |parts| Bytes(transfer.bytes.0.div_ceil(u64::from(parts)).max(1)));
            let cut = cut(torus, endpoint, *transfer, chunk, of.len())?;
            check_rooms(endpoint, &cut)?;
            of.resize(of.len() + cut.chunks as usize, index);
            cuts.push(cut);
        }
        Ok(Cuts { cuts, of })
    }

    pub(super) fn chunks(&self) -> usize {
        self.of.len()
    }

    pub(super) fn transfer_of(&self, chunk: u32) -> usize {
        self.of[chunk as usize] as usize
    }

    #[inline]
    pub(super) fn shapes(&self, chunk: u32) -> &[Shape] {
        self.cuts[self.transfer_of(chunk)].shapes(chunk)
    }

    /// The partition that a chunk goes to after a phase, and what it takes there; `done` is that of what
    /// is done.
    #[inline]
    pub(super) fn after(&self, chunk: u32, phase: usize, done: usize) -> (usize, Bytes) {
        match self.shapes(chunk).get(phase + 1) {
            Some(shape) => (shape.phase.class, shape.entry),
            None => (done, self.cuts[self.transfer_of(chunk)].done(chunk)),
        }
    }

    /// The shape of the phase that a step belongs to, and which phase that is.
    #[inline]
    pub(super) fn at(&self, chunk: u32, step: u32) -> (usize, &Shape) {
        let shapes = self.shapes(chunk);
        let after = shapes.iter().position(|shape| step < shape.first + shape.steps);
        let phase = after.unwrap_or(shapes.len() - 1);
        (phase, &shapes[phase])
    }
}

fn cut(
    torus: &Torus,
    endpoint: &Endpoint,
    transfer: Transfer,
    chunk: Bytes,
    first: usize,
) -> Result<Cut, TrainingRunError> {
    let Transfer { exchange, rings, .. } = transfer;
    let none = TrainingRunError::NoPlan { collective: exchange.name() };
    let phases = torus.phases(exchange, rings).ok_or(none)?;
    let torus = torus.within(rings);
    let too_many = TrainingRunError::TooManyChunks { bytes: transfer.bytes, chunk };
    let chunks = u32::try_from(transfer.bytes.0.div_ceil(chunk.0)).map_err(|_| too_many.clone())?;
    let first = u32::try_from(first).map_err(|_| too_many)?;
    let whole = if chunks > 1 { chunk } else { transfer.bytes };
    let rest = Bytes(transfer.bytes.0 - u64::from(chunks - 1) * chunk.0);
    let shapes = |bytes| plan::shapes(&torus, &phases, bytes, endpoint.piece);
    Ok(Cut {
        level: transfer.level,
        first,
        chunks,
        whole: shapes(whole),
        rest: shapes(rest),
        done: (done(&torus, &phases, whole), done(&torus, &phases, rest)),
        torus,
    })
}

/// What a chunk leaves: the part of an NPU after a reduce-scatter, all of it otherwise.
fn done(torus: &Torus, phases: &[Phase], chunk: Bytes) -> Bytes {
    let scattered = phases.iter().all(|phase| phase.kind == PhaseKind::ReduceScatter);
    if scattered { Bytes(chunk.0.div_ceil(u64::from(torus.npus()))) } else { chunk }
}

/// Every chunk must fit into the partitions that it passes.
fn check_rooms(endpoint: &Endpoint, cut: &Cut) -> Result<(), TrainingRunError> {
    let Admission::Partitions(partitions) = &endpoint.admission else { return Ok(()) };
    let last = partitions.rooms.len() - 1;
    let entries = cut.whole.iter().map(|shape| (shape.phase.class, shape.entry));
    for (partition, chunk) in entries.chain([(last, cut.done.0)]) {
        let room = partitions.rooms[partition];
        if room < chunk {
            return Err(EndpointError::PartitionTooSmall { partition, room, chunk }.into());
        }
    }
    Ok(())
}
