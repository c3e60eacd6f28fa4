//! The scratchpad, divided among the phases, and who carries chunks through them.

use crate::endpoint::EndpointError;
use crate::units::{Bytes, TimePerByte};

/// What a phase asks of the scratchpad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseLoad {
    /// What a byte takes over all links of the phase together.
    pub links: TimePerByte,
    /// The size of a chunk when it enters the phase.
    pub chunk: Bytes,
}

/// Room of each phase, that of what is done last, and state machines of each phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    /// Bytes of each partition: one for each phase, and one for what is done.
    pub rooms: Vec<Bytes>,
    /// State machines of each phase.
    pub fsms: Vec<u32>,
}

/// How the scratchpad is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// By the rates of the phases' links and their chunks; what is done gets as much as the last phase
    /// (Rashidi et al. 2021, section IV; the formula is inferred from its words).
    RateTimesChunk,
    /// In these proportions: a number for each phase, and one for what is done.
    Shares(Vec<u32>),
}

impl Partitions {
    /// Divides `sram` among `phases`.
    ///
    /// # Errors
    /// When a phase has no state machine, or a partition no room for a chunk; `done` is the size of a
    /// chunk after its last phase.
    pub fn new(
        sram: Bytes,
        division: &Division,
        fsms: &[u32],
        phases: &[PhaseLoad],
        done: Bytes,
    ) -> Result<Partitions, EndpointError> {
        check_fsms(fsms, phases.len())?;
        let weights = weights(division, phases)?;
        let sum: u128 = weights.iter().sum();
        let room = |weight: u128| {
            let share = (u128::from(sram.0) * weight).checked_div(sum).unwrap_or(0);
            Bytes(u64::try_from(share).unwrap_or(u64::MAX))
        };
        let rooms: Vec<Bytes> = weights.into_iter().map(room).collect();
        let chunks = phases.iter().map(|phase| phase.chunk).chain([done]);
        for (partition, (&room, chunk)) in rooms.iter().zip(chunks).enumerate() {
            if room < chunk {
                return Err(EndpointError::PartitionTooSmall { partition, room, chunk });
            }
        }
        Ok(Partitions { rooms, fsms: fsms.to_vec() })
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
        let phase = |rate: &str, chunk| PhaseLoad {
            links: TimePerByte::parse(rate).unwrap(),
            chunk: Bytes(chunk),
        };
        let (whole, quarter) = (64 << 10, 16 << 10);
        [
            phase("400 GB/s", whole),
            phase("50 GB/s", quarter),
            phase("50 GB/s", quarter),
            phase("400 GB/s", quarter),
        ]
    }

    /// 4x4x4, 64 KiB: weights 25600, 800, 800, 6400 and again 6400 of 40000.
    #[test]
    fn the_scratchpad_is_divided_by_rate_and_chunk() {
        let partitions =
            Partitions::new(Bytes(4 << 20), &BY_RATE, &[4; 4], &phases(), Bytes(64 << 10)).unwrap();
        let sram = 4u64 << 20;
        let share = |weight: u64| Bytes(sram * weight / 40_000);
        let wanted = [25_600, 800, 800, 6_400, 6_400].map(share);
        assert_eq!(partitions.rooms, wanted);
        let chunks: Vec<u64> = partitions
            .rooms
            .iter()
            .zip([64u64, 16, 16, 16, 64])
            .map(|(room, chunk)| room.0 / (chunk << 10))
            .collect();
        assert_eq!(chunks, [40, 5, 5, 40, 10]);
    }

    #[test]
    fn a_partition_must_hold_a_chunk() {
        let error =
            Partitions::new(Bytes(256 << 10), &BY_RATE, &[4; 4], &phases(), Bytes(64 << 10))
                .unwrap_err();
        assert!(matches!(error, EndpointError::PartitionTooSmall { partition: 1, .. }), "{error}");
    }

    #[test]
    fn every_phase_has_a_state_machine() {
        let new = |fsms: &[u32]| {
            Partitions::new(Bytes(4 << 20), &BY_RATE, fsms, &phases(), Bytes(64 << 10)).unwrap_err()
        };
        assert_eq!(new(&[1, 1, 1]), EndpointError::TooFewFsms { fsms: 3, phases: 4 });
        assert_eq!(new(&[4, 4, 4]), EndpointError::WrongFsms { given: 3, phases: 4 });
        assert_eq!(new(&[4, 0, 4, 4]), EndpointError::NoFsm { phase: 1 });
    }

    #[test]
    fn shares_are_taken_as_they_are() {
        let divide = |shares: &[u32]| {
            let division = Division::Shares(shares.to_vec());
            Partitions::new(Bytes(1 << 20), &division, &[4; 4], &phases(), Bytes(64 << 10))
        };
        let rooms = divide(&[2, 2, 2, 1, 1]).unwrap().rooms;
        assert_eq!(rooms, [256, 256, 256, 128, 128].map(|kib| Bytes(kib << 10)));
        let wrong = EndpointError::WrongShares { given: 4, partitions: 5 };
        assert_eq!(divide(&[1, 1, 1, 1]).unwrap_err(), wrong);
    }
}
