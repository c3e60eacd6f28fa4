//! The schedules of the collectives of a step: chosen ones, or rings along each dimension.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::network::StepNetwork;
use super::rounds::InNetwork;
use super::{Detail, TrainingFabric, TrainingRunError};
use crate::dataflow::Dataflow;
use crate::workload::{Content, Rings, Transfer};
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::Time;
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
    /// Lower bounds of the times of collectives as flows, such as a library's predictions. Level and
    /// content of the keys are the defaults.
    pub least: BTreeMap<Transfer, Time>,
}

impl Algorithms {
    /// The time that a collective takes at least.
    pub(super) fn least(&self, transfer: Transfer) -> Time {
        let key = Transfer { level: 0, content: Content::default(), ..transfer };
        self.least.get(&key).copied().unwrap_or(Time::ZERO)
    }

    /// Whether collectives like this one have a least time, which contains their steps.
    pub(super) fn has_least(&self, transfer: Transfer) -> bool {
        let alike = |one: &Transfer| {
            one.collective.name() == transfer.collective.name() && one.rings == transfer.rings
        };
        self.least.keys().any(alike)
    }

    /// The schedules of a collective on groups along `rings`, whose sizes are `sizes`.
    pub(super) fn of(
        &self,
        kind: Collective,
        rings: Rings,
        sizes: &[u32],
    ) -> Result<Vec<Arc<dyn Schedule>>, TrainingRunError> {
        let group = sizes.iter().product();
        let collective = kind.name();
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

/// A message: rank 0 sends its payload to rank 1.
pub(super) struct Hop(Shape);

impl Hop {
    pub(super) fn new() -> Hop {
        let collective = Collective::Broadcast { root: RankId(0) };
        let (name, result) = ("message".to_owned(), Slot::DATA);
        Hop(Shape { name, collective, ranks: 2, chunks: 1, slots: 1, result })
    }
}

impl Schedule for Hop {
    fn shape(&self) -> &Shape {
        &self.0
    }

    fn steps(&self, _rank: RankId) -> u32 {
        1
    }

    fn step(&self, rank: RankId, _step: u32, out: &mut Step) {
        let all = ChunkRange::new(0, 1);
        if rank == RankId(0) {
            out.send(RankId(1), Slot::DATA, all);
        } else {
            out.recv(RankId(0), Slot::DATA, all);
        }
    }
}

/// Rejects multicasts and combines in the network, of which switches would relieve the endpoints.
pub(super) fn check_marks(
    fabric: &TrainingFabric,
    schedules: &[Arc<dyn Schedule>],
    flows: &[Arc<Dataflow>],
) -> Result<(), TrainingRunError> {
    let is_plain = fabric.network.in_network() == InNetwork::default();
    let is_mesh = matches!(fabric.network, StepNetwork::Mesh(_));
    if is_plain || is_mesh || fabric.detail == Detail::Flows {
        return Ok(());
    }
    match schedules.iter().zip(flows).find(|(_, flow)| flow.is_marked()) {
        Some((schedule, _)) => {
            Err(TrainingRunError::InNetwork { name: schedule.shape().name.clone() })
        }
        None => Ok(()),
    }
}
