//! As few NPUs of a step as suffice if each transfer takes a fixed time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use tutti_engine::endpoint::Chunks;
use tutti_engine::endpoint::ideal::Ideal;
use tutti_engine::training::{
    Algorithms, Detail, Isolated, Order, Population, StepNetwork, TrainingFabric, TrainingOutcome,
    TrainingRun, TrainingRunError,
};
use tutti_engine::workload::{Content, Program, Transfer, What};
use tutti_units::{Bytes, Time};

use super::real;

/// A size that no chunk or message exceeds.
const MOST: Bytes = Bytes(1 << 60);

/// Two NPUs along each dimension on which programs do not depend and no message goes, and all NPUs
/// along the others.
pub(super) struct Sample {
    sizes: Vec<u32>,
    /// The number of the program of each NPU; empty if there is one.
    of: Vec<u32>,
}

impl Sample {
    /// The sample of NPUs whose programs have the numbers `of`.
    ///
    /// # Errors
    /// When `of` has another number of NPUs.
    pub(super) fn of(
        sizes: &[u32],
        programs: &[Program],
        of: &[u32],
    ) -> Result<Sample, TrainingRunError> {
        let all = |npus: usize, &size: &u32| npus.saturating_mul(size as usize);
        let (npus, given) = (sizes.iter().fold(1, all), of.len());
        if given != 0 && given != npus {
            return Err(TrainingRunError::WrongPrograms { programs: programs.len(), given, npus });
        }
        let mut few = Vec::with_capacity(sizes.len());
        for (at, &size) in sizes.iter().enumerate() {
            let along = Along::new(sizes, at);
            let is_needed = along.differs(of) || has_messages(programs, at);
            few.push(if is_needed { size } else { size.min(2) });
        }
        let is_among = |npu: usize| {
            let is_below =
                |(at, &most): (usize, &u32)| Along::new(sizes, at).place(npu) < most as usize;
            few.iter().enumerate().all(is_below)
        };
        let of = of.iter().enumerate().filter(|&(npu, _)| is_among(npu)).map(|(_, &n)| n).collect();
        Ok(Sample { sizes: few, of })
    }

    /// The first NPU of a program, and the share of the NPUs that run it; `None` if none does.
    pub(super) fn first_of(&self, number: u32) -> Option<(usize, f64)> {
        let numbers: &[u32] = if self.of.is_empty() { &[0] } else { &self.of };
        let first = numbers.iter().position(|&other| other == number)?;
        let count = numbers.iter().filter(|&&other| other == number).count();
        Some((first, real(count as u128) / real(numbers.len() as u128)))
    }

    /// The key of a collective in the times of [`Sample::run`]: neither level nor content matter.
    pub(super) fn key(&self, transfer: Transfer) -> Transfer {
        let (rings, content) = (transfer.rings.of(&self.sizes), Content::default());
        Transfer { rings, level: 0, content, ..transfer }
    }

    /// Runs the programs with a fixed time for each collective and message, without contention.
    pub(super) fn run(
        &self,
        programs: &[Program],
        collectives: BTreeMap<Transfer, Time>,
        messages: BTreeMap<Bytes, Time>,
        stop: &AtomicBool,
    ) -> Result<TrainingOutcome, TrainingRunError> {
        let npus = self.sizes.iter().fold(1, |npus: u32, &size| npus.saturating_mul(size));
        let network = Isolated { npus, collectives, messages, concurrent: true };
        let chunks = Chunks { all: 1, phase: 1, by_dimension: false };
        let fabric = TrainingFabric {
            network: StepNetwork::Isolated(network),
            sizes: self.sizes.clone(),
            algorithms: Algorithms::default(),
            endpoint: Ideal { packet: MOST, cycle: Time::ZERO, chunks }.endpoint()?,
            chunk: MOST,
            parts: None,
            message: MOST,
            order: Order::Lifo,
            population: Population::All,
            detail: Detail::Packets,
            launch: Time::ZERO,
        };
        let window = Time::ZERO;
        TrainingRun { programs, of: &self.of, unreserved: &[], fabric: &fabric, window }
            .run_until(stop)
    }
}

/// The places of NPUs along a dimension.
struct Along {
    /// The difference of the numbers of two neighbours.
    stride: usize,
    size: usize,
}

impl Along {
    fn new(sizes: &[u32], at: usize) -> Along {
        let stride = sizes[..at].iter().map(|&size| size as usize).product();
        Along { stride, size: sizes[at] as usize }
    }

    fn place(&self, npu: usize) -> usize {
        npu / self.stride % self.size
    }

    /// Whether the number of the program depends on the place.
    fn differs(&self, of: &[u32]) -> bool {
        let first = |npu: usize| npu - self.place(npu) * self.stride;
        of.iter().enumerate().any(|(npu, &number)| of[first(npu)] != number)
    }
}

/// Whether messages go along a dimension: they count the NPUs between sender and receiver.
fn has_messages(programs: &[Program], dimension: usize) -> bool {
    programs.iter().flat_map(Program::tasks).any(|task| match task.what {
        What::Send(message) | What::Recv(message) => message.rings.contains(dimension),
        _ => false,
    })
}
