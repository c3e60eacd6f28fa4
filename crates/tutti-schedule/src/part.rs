//! One phase of a schedule: the steps between two reconfigurations of the network.

use std::sync::Arc;

use super::compose::ComposeError;
use super::{Blocks, Channels, Digit, Schedule, Shape, Step};
use tutti_units::ids::RankId;

/// The steps of one phase of a schedule. It can be timed and drawn like any other schedule. If
/// there are other phases it is not a complete collective, and [`verify`](super::verify()) refuses
/// it.
pub struct OnlyPhase {
    shape: Shape,
    inner: Arc<dyn Schedule>,
    phase: u32,
}

impl OnlyPhase {
    /// Returns phase `phase`, counted from 0.
    ///
    /// # Errors
    /// If there is no such phase.
    pub fn new(inner: Arc<dyn Schedule>, phase: u32) -> Result<OnlyPhase, ComposeError> {
        let (mut shape, phases) = (inner.shape().clone(), inner.phases());
        if phase >= phases {
            return Err(ComposeError::NoSuchPhase { name: shape.name, phase, phases });
        }
        if phases > 1 {
            shape.name = format!("{} phase {phase}", shape.name);
        }
        Ok(OnlyPhase { shape, inner, phase })
    }

    /// Returns the first step of a rank in `phase` or a later one: phases never decrease.
    fn first(&self, rank: RankId, phase: u32) -> u32 {
        let (mut low, mut high) = (0, self.inner.steps(rank));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.inner.phase(rank, middle) < phase {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl Schedule for OnlyPhase {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.first(rank, self.phase + 1) - self.first(rank, self.phase)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        self.inner.step(rank, self.first(rank, self.phase) + step, out);
    }

    fn moves_chunks(&self) -> bool {
        self.inner.moves_chunks()
    }

    fn blocks(&self) -> Option<&Blocks> {
        self.inner.blocks()
    }

    fn is_ordered(&self, rank: RankId, step: u32) -> bool {
        self.inner.is_ordered(rank, self.first(rank, self.phase) + step)
    }

    fn is_part(&self) -> bool {
        self.inner.phases() > 1 || self.inner.is_part()
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        self.inner.symmetry()
    }

    fn channel(&self, rank: RankId, step: u32, send: u32) -> u32 {
        self.inner.channel(rank, self.first(rank, self.phase) + step, send)
    }

    fn channels(&self) -> Option<Channels> {
        self.inner.channels()
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        self.inner.step_name(rank, self.first(rank, self.phase) + step)
    }
}
