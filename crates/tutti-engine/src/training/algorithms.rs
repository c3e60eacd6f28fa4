//! The schedules of the collectives of a step: chosen ones, or rings along each dimension.

use std::fmt;
use std::sync::Arc;

use super::TrainingRunError;
use crate::workload::{Exchange, Rings};
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// The schedules of a collective on the groups along some dimensions.
#[derive(Clone)]
pub struct Chosen {
    /// The name of the collective.
    pub collective: &'static str,
    /// The dimensions.
    pub rings: Rings,
    /// One per channel: chunks use the channels in turn.
    pub channels: Vec<Arc<dyn Schedule>>,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.channels.iter().map(|schedule| &schedule.shape().name);
        f.debug_list().entry(&self.collective).entries(names).finish()
    }
}

/// The schedules of the collectives of a step.
#[derive(Clone, Debug, Default)]
pub struct Algorithms {
    /// The chosen schedules; other collectives use rings.
    pub chosen: Vec<Chosen>,
}

impl Algorithms {
    /// The schedules of an exchange on groups along `rings`, whose sizes are `sizes`.
    pub(super) fn of(
        &self,
        exchange: Exchange,
        rings: Rings,
        sizes: &[u32],
    ) -> Result<Vec<Arc<dyn Schedule>>, TrainingRunError> {
        let group = sizes.iter().product();
        let collective = exchange.name();
        let found =
            self.chosen.iter().find(|one| one.collective == collective && one.rings == rings);
        if let Some(chosen) = found {
            for shape in chosen.channels.iter().map(|schedule| schedule.shape()) {
                if shape.ranks != group {
                    let (name, ranks) = (shape.name.clone(), shape.ranks);
                    return Err(TrainingRunError::WrongGroup { name, ranks, group });
                }
            }
            return Ok(chosen.channels.clone());
        }
        let Exchange::Collective(kind) = exchange else {
            let last = sizes.last().copied().unwrap_or(1);
            return Ok(vec![Arc::new(Shift::new(group, last))]);
        };
        let none = TrainingRunError::NoPlan { collective };
        let notations = default_rings(kind, sizes).ok_or_else(|| none.clone())?;
        let schedules = notations.iter().map(|notation| build(notation, kind, group));
        schedules.collect::<Result<_, _>>().map_err(|_| none)
    }
}

/// The notations of rings along each dimension: chunks alternate between the directions. An
/// all_reduce over several dimensions is a reduce_scatter along the innermost, an all_reduce of the
/// shard along each other, and an all_gather along the innermost, where directions do not alternate
/// (Rashidi et al. 2021, section V; ASTRA-sim's "localBWAware" of 2020).
fn default_rings(collective: Collective, sizes: &[u32]) -> Option<Vec<String>> {
    let texts: Vec<String> = sizes.iter().map(u32::to_string).collect();
    let (grid, across) = (texts.join("x"), sizes.len().checked_sub(1)?);
    let local = |ring: &str| {
        let across = format!("/{ring}").repeat(across);
        format!("hierarchical_local:{grid}:ring{across}/ring:backward")
    };
    let both = ["ring", "ring:backward"];
    match collective {
        Collective::AllToAll if across == 0 => Some(vec!["direct".to_owned()]),
        Collective::AllToAll => Some(vec![format!("direct:{grid}")]),
        Collective::AllReduce | Collective::ReduceScatter | Collective::AllGather
            if across == 0 =>
        {
            Some(both.map(str::to_owned).to_vec())
        }
        Collective::AllReduce => Some(both.map(local).to_vec()),
        Collective::ReduceScatter | Collective::AllGather => {
            Some(both.map(|ring| format!("hierarchical:{grid}:{ring}")).to_vec())
        }
        _ => None,
    }
}

/// Each rank sends its payload to the next one along the last dimension: stages of a pipeline.
struct Shift {
    shape: Shape,
    digit: Digit,
}

impl Shift {
    /// Of `ranks` ranks, of which `size` are along the last dimension.
    fn new(ranks: u32, size: u32) -> Shift {
        // Each rank holds one part, and ends with one part of another rank.
        let (name, collective) = ("shift".to_owned(), Collective::AllToAll);
        let shape = Shape { name, collective, ranks, chunks: ranks, slots: 2, result: Slot(1) };
        Shift { shape, digit: Digit { stride: ranks / size.max(1), size } }
    }

    fn neighbour(&self, rank: RankId, ahead: u32) -> RankId {
        let Digit { stride, size } = self.digit;
        let place = self.digit.of(rank);
        RankId(rank.0 - place * stride + (place + ahead) % size * stride)
    }
}

impl Schedule for Shift {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        1
    }

    fn step(&self, rank: RankId, _step: u32, out: &mut Step) {
        let all = ChunkRange::new(0, self.shape.ranks);
        out.send(self.neighbour(rank, 1), Slot::DATA, all);
        out.recv(self.neighbour(rank, self.digit.size - 1), Slot(1), all);
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        Some(vec![self.digit])
    }
}
