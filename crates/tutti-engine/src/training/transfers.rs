//! The chunks of each collective of a program and their shapes, computed before the run.

use super::plan::{self, Phase, PhaseKind, Shape, Torus};
use super::{TrainingFabric, TrainingRunError};
use crate::endpoint::{Admission, Endpoint, EndpointError};
use crate::workload::Transfer;
use tutti_units::Bytes;

/// A collective, divided into chunks.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) level: u8,
    /// The part of the torus that participates.
    pub(super) torus: Torus,
    /// The number of its first chunk, and its number of chunks.
    pub(super) first: u32,
    pub(super) chunks: u32,
    /// Shapes of every chunk but the last, and of the last.
    full: Vec<Shape>,
    rest: Vec<Shape>,
    /// Result bytes of a full chunk and of the last one.
    done: (Bytes, Bytes),
}

impl Cut {
    /// The shapes of a chunk by its number in the run.
    #[inline]
    pub(super) fn shapes(&self, chunk: u32) -> &[Shape] {
        if self.is_last(chunk) { &self.rest } else { &self.full }
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
    /// The collective of each chunk.
    of: Vec<u32>,
}

impl Cuts {
    /// Divides `transfers` into chunks, by size or number.
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
            check_partitions(endpoint, &cut)?;
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

    /// The next partition of a chunk after a phase, and its size there; `done` is the partition of
    /// results.
    #[inline]
    pub(super) fn after(&self, chunk: u32, phase: usize, done: usize) -> (usize, Bytes) {
        match self.shapes(chunk).get(phase + 1) {
            Some(shape) => (shape.phase.class, shape.entry),
            None => (done, self.cuts[self.transfer_of(chunk)].done(chunk)),
        }
    }

    /// The shape and the index of the phase of a step.
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
    let full = if chunks > 1 { chunk } else { transfer.bytes };
    let rest = Bytes(transfer.bytes.0 - u64::from(chunks - 1) * chunk.0);
    let shapes = |bytes| plan::shapes(&torus, &phases, bytes, endpoint.piece);
    Ok(Cut {
        level: transfer.level,
        first,
        chunks,
        full: shapes(full),
        rest: shapes(rest),
        done: (done(&torus, &phases, full), done(&torus, &phases, rest)),
        torus,
    })
}

/// Result bytes of a chunk: a shard after a reduce-scatter, else the complete chunk.
fn done(torus: &Torus, phases: &[Phase], chunk: Bytes) -> Bytes {
    let scattered = phases.iter().all(|phase| phase.kind == PhaseKind::ReduceScatter);
    if scattered { Bytes(chunk.0.div_ceil(u64::from(torus.npus()))) } else { chunk }
}

/// Checks that every chunk fits into the partitions that it passes.
fn check_partitions(endpoint: &Endpoint, cut: &Cut) -> Result<(), TrainingRunError> {
    let Admission::Partitions(partitions) = &endpoint.admission else { return Ok(()) };
    let last = partitions.sizes.len() - 1;
    let entries = cut.full.iter().map(|shape| (shape.phase.class, shape.entry));
    for (partition, chunk) in entries.chain([(last, cut.done.0)]) {
        let bytes = partitions.sizes[partition];
        if bytes < chunk {
            return Err(EndpointError::PartitionTooSmall { partition, size: bytes, chunk }.into());
        }
    }
    Ok(())
}
