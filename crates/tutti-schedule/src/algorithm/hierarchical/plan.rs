//! The phases of a hierarchical collective, and the placement of each.

use std::sync::Arc;

use super::argument::{self, Named};
use crate::algorithm::sizes::{self, Misfit};
use crate::algorithm::{self, AlgorithmError, Request};
use crate::collective::Collective;
use crate::{Digit, Placement, Schedule, Slot};
use tutti_units::gcd;
use tutti_units::ids::RankId;

/// How the levels cooperate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    /// Each level works on the shard that the level inside it left.
    Sharded,
    /// As `Sharded`, but the all_reduce of every level is decomposed, including the outermost.
    Decomposed,
    /// Only the innermost level divides the payload; each other level works on the shard that it
    /// left.
    Local,
    /// Only one rank of each group takes part in the level above.
    Leader,
}

impl Style {
    pub(super) fn name(self) -> &'static str {
        match self {
            Style::Sharded => super::SHARDED.name,
            Style::Decomposed => super::DECOMPOSED.name,
            Style::Local => super::LOCAL.name,
            Style::Leader => super::LEADER.name,
        }
    }

    fn default_algorithm(self) -> &'static str {
        match self {
            Style::Sharded | Style::Decomposed | Style::Local => "ring",
            Style::Leader => "binomial",
        }
    }
}

/// One collective on one level.
pub(super) struct Step<'a> {
    pub(super) collective: Collective,
    pub(super) level: usize,
    pub(super) notation: &'a str,
    /// The position of the notation in the argument.
    at: usize,
}

pub(super) struct HierarchicalPlan<'a> {
    style: Style,
    request: Request<'a>,
    /// Innermost first.
    pub(super) sizes: Vec<u32>,
    pub(super) phases: Vec<Step<'a>>,
}

impl<'a> HierarchicalPlan<'a> {
    pub(super) fn new(
        style: Style,
        request: &Request<'a>,
    ) -> Result<HierarchicalPlan<'a>, AlgorithmError> {
        let &Request { collective, ranks, argument } = request;
        let text = argument.unwrap_or_default();
        let refuse = |misfit: Misfit| request.misfit(style.name(), misfit);
        let (sizes, named) = match argument {
            Some(argument) => {
                let levels = argument::read(argument).map_err(refuse)?;
                sizes::fits(&levels.sizes, ranks).map_err(refuse)?;
                (levels.sizes, levels.algorithms)
            }
            None => (request.near_square(style.name())?, Vec::new()),
        };
        let order = phases(style, collective, &sizes);
        let named = argument::one_per_phase(named, &order, sizes.len(), text).map_err(refuse)?;
        let phases = order.into_iter().enumerate().map(|(i, (collective, level))| {
            let default = Named { text: style.default_algorithm(), at: 0 };
            let Named { text: notation, at } = named.get(i).copied().unwrap_or(default);
            Step { collective, level, notation, at }
        });
        let phases = phases.collect();
        Ok(HierarchicalPlan { style, request: *request, sizes, phases })
    }

    /// Returns the schedule of each phase, inside one of its groups.
    pub(super) fn inner_schedules(&self) -> Result<Vec<Arc<dyn Schedule>>, AlgorithmError> {
        let build = |phase: &Step| {
            algorithm::build(phase.notation, phase.collective, self.sizes[phase.level]).map_err(
                |error| {
                    let within = match &error {
                        // The argument of a level's algorithm follows its name and the colon.
                        AlgorithmError::Argument { at, argument, .. } => {
                            phase.notation.len().saturating_sub(argument.len()) + at
                        }
                        _ => 0,
                    };
                    self.refuse(phase, within, error.to_string())
                },
            )
        };
        self.phases.iter().map(build).collect()
    }

    /// Returns an error in the notation of a phase, `within` bytes from its start.
    pub(super) fn refuse(&self, phase: &Step, within: usize, problem: String) -> AlgorithmError {
        let problem = format!("level {}: {problem}", phase.level);
        self.request.refuse(self.style.name(), phase.at + within, problem)
    }

    /// Returns the smallest number of chunks that every phase can divide.
    pub(super) fn chunks(&self, inners: &[Arc<dyn Schedule>]) -> Result<u32, AlgorithmError> {
        let mut chunks = 1u128;
        for (phase, inner) in self.phases.iter().zip(inners) {
            let needed = u128::from(self.share(phase)) * u128::from(inner.shape().chunks);
            chunks = chunks / gcd(chunks, needed) * needed;
            if chunks > u128::from(u32::MAX) {
                let problem =
                    format!("the payload would have {chunks} chunks: expected fewer than 2^32");
                return Err(self.refuse(phase, 0, problem));
            }
        }
        Ok(u32::try_from(chunks).unwrap_or(u32::MAX))
    }

    /// Returns the divisor of the payload for a phase: its part is one in this many.
    pub(super) fn share(&self, phase: &Step) -> u32 {
        match self.style {
            _ if self.request.collective == Collective::AllToAll => 1,
            Style::Sharded | Style::Decomposed => self.stride(phase.level),
            Style::Local => self.stride(phase.level.min(1)),
            Style::Leader if self.request.collective.has_shards() => {
                self.request.ranks / self.stride(phase.level + 1)
            }
            Style::Leader => 1,
        }
    }

    /// Returns the placement of a phase for a payload of this many chunks.
    pub(super) fn place(&self, phase: &Step, chunks: u32) -> Placement {
        let stride = self.stride(phase.level);
        let digit = |level: usize| Digit { stride: self.stride(level), size: self.sizes[level] };
        let root = self.request.collective.root().unwrap_or_default().0;
        let first = match self.style {
            Style::Sharded | Style::Decomposed => {
                let weight = |level| chunks / self.stride(level + 1);
                (0..phase.level).map(|level| (digit(level), weight(level))).collect()
            }
            Style::Local if phase.level == 0 => Vec::new(),
            Style::Local => vec![(digit(0), chunks / self.stride(1))],
            // The parts of a level's groups are in the order of their ranks.
            Style::Leader => match self.share(phase) {
                1 => Vec::new(),
                size => vec![(Digit { stride: self.stride(phase.level + 1), size }, chunks / size)],
            },
        };
        Placement {
            group: digit(phase.level),
            only: (self.style == Style::Leader && stride > 1).then(|| root % stride),
            part: chunks / self.share(phase),
            first,
            data: Slot::DATA,
            scratch: Slot(1),
        }
    }

    /// Returns the distance of neighbours on a level: the number of ranks of the levels inside it.
    fn stride(&self, level: usize) -> u32 {
        self.sizes[..level].iter().product()
    }
}

/// Returns the collectives to perform, each with its level, in order.
fn phases(style: Style, collective: Collective, sizes: &[u32]) -> Vec<(Collective, usize)> {
    let top = sizes.len() - 1;
    let mut stride = 1;
    let mut roots = Vec::new();
    for size in sizes {
        roots.push(RankId(collective.root().unwrap_or_default().0 / stride % size));
        stride *= size;
    }
    let on = |level: usize, kind: Collective| (kind.with_root(roots[level]), level);
    let root = RankId(0);
    let (up, down) = match style {
        Style::Sharded | Style::Decomposed | Style::Local => {
            (Collective::ReduceScatter, Collective::AllGather)
        }
        Style::Leader => (Collective::Reduce { root }, Collective::Broadcast { root }),
    };
    match collective {
        Collective::AllReduce if style == Style::Decomposed => (0..=top)
            .map(|level| on(level, up))
            .chain((0..=top).rev().map(|l| on(l, down)))
            .collect(),
        Collective::AllReduce if style == Style::Local => {
            let across = (1..=top).map(|level| on(level, collective));
            [on(0, up)].into_iter().chain(across).chain([on(0, down)]).collect()
        }
        Collective::AllReduce | Collective::Barrier => {
            let there = (0..top).map(|level| on(level, up));
            let back = (0..top).rev().map(|level| on(level, down));
            there.chain([on(top, collective)]).chain(back).collect()
        }
        Collective::AllGather | Collective::Broadcast { .. } | Collective::Scatter { .. } => {
            (0..=top).rev().map(|level| on(level, collective)).collect()
        }
        _ => (0..=top).map(|level| on(level, collective)).collect(),
    }
}
