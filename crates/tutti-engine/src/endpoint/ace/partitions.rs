//! The SRAM, divided among the phases, and the FSMs that process chunks.

use crate::endpoint::EndpointError;
use tutti_units::{Bytes, Time, TimePerByte};

/// The load of a phase on the SRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseLoad {
    /// Time per byte of all links of the phase together: one or both directions of its ring.
    pub links: TimePerByte,
    /// The size of a chunk when it enters the phase.
    pub chunk: Bytes,
    /// Time of the phase for a chunk without contention.
    pub time: Time,
    /// Time of a chunk of an all-to-all that shares the partition; zero without.
    pub exchange: Time,
}

/// When a chunk reserves space in the partition of its next phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// Before a phase starts: results are written there as they are produced, and the chunk has
    /// space in both partitions until the phase ends.
    #[default]
    Ahead,
    /// When a phase ends: results overwrite the chunk in place, and the complete chunk then moves.
    AtEnd,
}

/// The FSMs that process chunks of all-to-alls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exchanges {
    /// Any FSM, in addition to its phase of an all-reduce.
    #[default]
    AnyFsm,
    /// The FSMs of the phase that shares its partition; its time is the longer of the two.
    OfPhase,
}

/// The partitions of the SRAM and the FSMs of each phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    /// Bytes of each partition: one per phase, and one for results.
    pub sizes: Vec<Bytes>,
    /// FSMs of each phase.
    pub fsms: Vec<u32>,
    /// When a chunk reserves space in the next partition.
    pub handover: Handover,
    /// The FSMs that process all-to-alls.
    pub exchanges: Exchanges,
}

/// How the SRAM is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// By the rates of the phases' links and their chunk sizes; results get as much as the last
    /// phase (Rashidi et al. 2021, section IV; the formula is inferred from its words).
    RateTimesChunk,
    /// In these proportions: one number per phase, and one for results.
    Shares(Vec<u32>),
}

/// How FSMs are divided among the phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fsms {
    /// A total, divided by the time of a chunk in each phase: the number of chunks in a phase at
    /// equal rates (Little's law). At least two per phase if there are enough, so that one can
    /// start a chunk while the other completes one.
    ByTime(u32),
    /// A total, divided evenly; the remainder goes to the first phases.
    Evenly(u32),
    /// A number per phase.
    Each(Vec<u32>),
}

impl Fsms {
    /// FSMs of each phase.
    ///
    /// # Errors
    /// When there are fewer FSMs than phases, or a phase has none.
    pub fn of(&self, phases: &[PhaseLoad]) -> Result<Vec<u32>, EndpointError> {
        let count = phases.len();
        match self {
            Fsms::Each(each) => check_fsms(each, count).map(|()| each.clone()),
            Fsms::Evenly(sum) | Fsms::ByTime(sum) if (*sum as usize) < count => {
                Err(EndpointError::TooFewFsms { fsms: *sum, phases: count })
            }
            Fsms::Evenly(sum) => Ok(apportioned(*sum, &vec![1; count], 1)),
            Fsms::ByTime(sum) => {
                let times: Vec<u64> = phases.iter().map(|phase| phase.time.ps().max(1)).collect();
                let least = if *sum as usize >= 2 * count { 2 } else { 1 };
                Ok(apportioned(*sum, &times, least))
            }
        }
    }
}

/// Divides `sum` by `weights`, with at least `least` each: each unit goes to the part with the
/// fewest per weight, at ties the first.
fn apportioned(sum: u32, weights: &[u64], least: u32) -> Vec<u32> {
    let mut parts = vec![least; weights.len()];
    let given: u32 = parts.iter().sum();
    for _ in given..sum {
        // Compares (parts + 1) / weight without dividing.
        let by_weight = |a: &usize, b: &usize| {
            let of =
                |at: usize, other: usize| u128::from(parts[at] + 1) * u128::from(weights[other]);
            of(*a, *b).cmp(&of(*b, *a))
        };
        if let Some(next) = (0..weights.len()).min_by(by_weight) {
            parts[next] += 1;
        }
    }
    parts
}

impl Partitions {
    /// Divides `sram` among `phases`.
    ///
    /// # Errors
    /// When a phase has no FSM, or a partition no space for a chunk; `done` is the size of a
    /// chunk after its last phase.
    pub fn new(
        sram: Bytes,
        division: &Division,
        fsms: &Fsms,
        phases: &[PhaseLoad],
        done: Bytes,
    ) -> Result<Partitions, EndpointError> {
        let fsms = fsms.of(phases)?;
        let weights = weights(division, phases)?;
        let sum: u128 = weights.iter().sum();
        let size = |weight: u128| {
            let share = (u128::from(sram.0) * weight).checked_div(sum).unwrap_or(0);
            Bytes(u64::try_from(share).unwrap_or(u64::MAX))
        };
        let sizes: Vec<Bytes> = weights.into_iter().map(size).collect();
        let chunks = phases.iter().map(|phase| phase.chunk).chain([done]);
        for (partition, (&size, chunk)) in sizes.iter().zip(chunks).enumerate() {
            if size < chunk {
                return Err(EndpointError::PartitionTooSmall { partition, size, chunk });
            }
        }
        let (handover, exchanges) = (Handover::default(), Exchanges::default());
        Ok(Partitions { sizes, fsms, handover, exchanges })
    }
}

fn check_fsms(fsms: &[u32], phases: usize) -> Result<(), EndpointError> {
    let sum = fsms.iter().sum();
    if (sum as usize) < phases {
        return Err(EndpointError::TooFewFsms { fsms: sum, phases });
    }
    if fsms.len() != phases {
        return Err(EndpointError::WrongFsms { given: fsms.len(), phases });
    }
    match fsms.iter().position(|count| *count == 0) {
        Some(phase) => Err(EndpointError::NoFsm { phase }),
        None => Ok(()),
    }
}

fn weights(division: &Division, phases: &[PhaseLoad]) -> Result<Vec<u128>, EndpointError> {
    match division {
        Division::RateTimesChunk => {
            let mut weights: Vec<u128> = phases.iter().map(weight).collect();
            weights.extend(weights.last().copied());
            Ok(weights)
        }
        Division::Shares(shares) if shares.len() == phases.len() + 1 => {
            Ok(shares.iter().map(|share| u128::from(*share)).collect())
        }
        Division::Shares(shares) => {
            Err(EndpointError::WrongShares { given: shares.len(), partitions: phases.len() + 1 })
        }
    }
}

/// Rate x chunk, in bytes per millisecond times bytes.
fn weight(phase: &PhaseLoad) -> u128 {
    let (ps, bytes) = phase.links.fraction();
    let rate = (u128::from(bytes) * 1_000_000_000).checked_div(u128::from(ps)).unwrap_or(0);
    rate * u128::from(phase.chunk.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_RATE: Division = Division::RateTimesChunk;

    fn phases() -> [PhaseLoad; 4] {
        let phase = |rate: &str, chunk, ns: u64| PhaseLoad {
            links: TimePerByte::parse(rate).unwrap(),
            chunk: Bytes(chunk),
            time: Time::from_ps(1000 * ns),
            exchange: Time::ZERO,
        };
        let (full, quarter) = (64 << 10, 16 << 10);
        [
            phase("400 GB/s", full, 335),
            phase("50 GB/s", quarter, 2640),
            phase("50 GB/s", quarter, 2640),
            phase("400 GB/s", quarter, 335),
        ]
    }

    /// 4x4x4, 64 KiB: weights 25600, 800, 800, 6400 and again 6400 of 40000.
    #[test]
    fn the_sram_is_divided_by_rate_and_chunk() {
        let partitions = Partitions::new(
            Bytes(4 << 20),
            &BY_RATE,
            &Fsms::Evenly(16),
            &phases(),
            Bytes(64 << 10),
        )
        .unwrap();
        let sram = 4u64 << 20;
        let share = |weight: u64| Bytes(sram * weight / 40_000);
        let expected = [25_600, 800, 800, 6_400, 6_400].map(share);
        assert_eq!(partitions.sizes, expected);
        let chunks: Vec<u64> = partitions
            .sizes
            .iter()
            .zip([64u64, 16, 16, 16, 64])
            .map(|(size, chunk)| size.0 / (chunk << 10))
            .collect();
        assert_eq!(chunks, [40, 5, 5, 40, 10]);
    }

    #[test]
    fn a_partition_must_hold_a_chunk() {
        let error = Partitions::new(
            Bytes(256 << 10),
            &BY_RATE,
            &Fsms::Evenly(16),
            &phases(),
            Bytes(64 << 10),
        )
        .unwrap_err();
        assert!(matches!(error, EndpointError::PartitionTooSmall { partition: 1, .. }), "{error}");
    }

    #[test]
    fn every_phase_has_an_fsm() {
        let new = |fsms: &[u32]| Fsms::Each(fsms.to_vec()).of(&phases()).unwrap_err();
        assert_eq!(new(&[1, 1, 1]), EndpointError::TooFewFsms { fsms: 3, phases: 4 });
        assert_eq!(new(&[4, 4, 4]), EndpointError::WrongFsms { given: 3, phases: 4 });
        assert_eq!(new(&[4, 0, 4, 4]), EndpointError::NoFsm { phase: 1 });
    }

    /// 335 : 2640 : 2640 : 335, two at least.
    #[test]
    fn fsms_follow_the_time_of_the_phases() {
        let of = |fsms: Fsms| fsms.of(&phases()).unwrap();
        assert_eq!(of(Fsms::ByTime(16)), [2, 6, 6, 2]);
        assert_eq!(of(Fsms::ByTime(24)), [2, 10, 10, 2]);
        assert_eq!(of(Fsms::ByTime(7)), [1, 3, 2, 1]);
        assert_eq!(of(Fsms::Evenly(18)), [5, 5, 4, 4]);
        let too_few = EndpointError::TooFewFsms { fsms: 3, phases: 4 };
        assert_eq!(Fsms::ByTime(3).of(&phases()).unwrap_err(), too_few);
    }

    #[test]
    fn shares_are_used_unchanged() {
        let divide = |shares: &[u32]| {
            let division = Division::Shares(shares.to_vec());
            Partitions::new(
                Bytes(1 << 20),
                &division,
                &Fsms::Evenly(16),
                &phases(),
                Bytes(64 << 10),
            )
        };
        let sizes = divide(&[2, 2, 2, 1, 1]).unwrap().sizes;
        assert_eq!(sizes, [256, 256, 256, 128, 128].map(|kib| Bytes(kib << 10)));
        let wrong = EndpointError::WrongShares { given: 4, partitions: 5 };
        assert_eq!(divide(&[1, 1, 1, 1]).unwrap_err(), wrong);
    }
}
