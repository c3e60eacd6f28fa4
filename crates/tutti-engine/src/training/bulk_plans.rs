//! How bulk transfers are executed: the rounds and pieces of each collective, and what is known of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::TrainingRunError;
use super::fabric::TrainingFabric;
use super::flows::Flows;
use super::group::Groups;
use super::operations::{Operation, Operations};
use super::rounds::Rounds;
use super::routes::check_paths;
use super::transfers::Plans;
use crate::workload::Rings;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// The most pieces of a collective.
const PIECES: u64 = 8;

/// How a collective is executed: the rounds of each channel.
pub(super) type Plan = Arc<Vec<Rounds>>;

/// The rounds of a collective on a communicator.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The first rounds of all channels as one batch.
    pub(super) batch: FirstBatch,
    /// The latency of a round, by channel and round.
    pub(super) latencies: Vec<((usize, usize), Time)>,
}

/// The first rounds of all channels as one batch.
#[derive(Clone, Debug, Default)]
pub(super) enum FirstBatch {
    /// Not examined yet.
    #[default]
    Unknown,
    /// They are not a batch.
    Separate,
    /// They are one.
    Batch(FirstRounds),
}

/// The messages of the first rounds of all channels.
#[derive(Clone, Debug)]
pub(super) struct FirstRounds {
    pub(super) pattern: u32,
    /// By channel.
    pub(super) messages: Vec<u32>,
    pub(super) chunks: u32,
}

impl FirstRounds {
    /// The messages of a group, if they have equal sizes and the network has a pattern for them.
    /// Multicasts and combines are no pattern.
    pub(super) fn of<T: Copy>(
        plan: &Plan,
        groups: &Groups,
        group: u32,
        flows: &mut Flows<T>,
    ) -> Option<FirstRounds> {
        let (mut pairs, mut messages, mut sizes) = (Vec::new(), Vec::new(), BTreeSet::new());
        for rounds in plan.iter() {
            let before = pairs.len();
            for rank in 0..groups.size {
                if rounds.trees(0, rank).next().is_some() {
                    return None;
                }
                for (to, chunks) in rounds.sends(0, rank) {
                    pairs.push((RankId(groups.npu(group, rank)), RankId(groups.npu(group, to))));
                    sizes.insert((chunks, rounds.flow.chunks));
                }
            }
            messages.push(u32::try_from(pairs.len() - before).ok().filter(|&count| count > 0)?);
        }
        let (chunks, _) = sizes.pop_first().filter(|_| sizes.is_empty())?;
        Some(FirstRounds { pattern: flows.pattern(&pairs)?, messages, chunks })
    }
}

/// The place of the first group of each operation among what is known of rounds.
pub(super) fn places(
    fabric: &TrainingFabric,
    operations: &Operations,
    plans: &[Option<Plan>],
) -> Vec<u32> {
    let (mut next, mut bases, mut places) = (0, BTreeMap::new(), Vec::with_capacity(plans.len()));
    for (plan, groups) in plans.iter().zip(&operations.groups) {
        let Some(plan) = plan else {
            places.push(0);
            continue;
        };
        let base = *bases.entry(Arc::as_ptr(plan) as usize).or_insert(next);
        if base == next {
            next += fabric.network.npus() / groups.size;
        }
        places.push(base);
    }
    places
}

/// The rounds of each collective; equal collectives share them.
pub(super) fn plans(
    fabric: &TrainingFabric,
    operations: &Operations,
) -> Result<Vec<Option<Plan>>, TrainingRunError> {
    let mut schedules = Plans::default();
    let mut made: BTreeMap<(&'static str, Rings), Plan> = BTreeMap::new();
    let mut plans = Vec::with_capacity(operations.all.len());
    for (&operation, groups) in operations.all.iter().zip(&operations.groups) {
        let Operation::Collective(transfer) = operation else {
            if let Some((_, ahead)) = operation.side() {
                for npu in 0..fabric.network.npus() {
                    fabric.network.check_path(npu, groups.ahead(npu, ahead))?;
                }
            }
            plans.push(None);
            continue;
        };
        let key = (transfer.collective.name(), transfer.rings);
        let plan = match made.get(&key) {
            Some(plan) => Arc::clone(plan),
            None => {
                let channels = schedules.of(fabric, transfer)?;
                let in_network = fabric.network.in_network();
                let has_least = fabric.algorithms.has_least(transfer);
                let rounds = channels.flows.iter().map(|flow| Rounds::of(flow, in_network));
                let rounds = rounds.map(|one| if has_least { one.merged() } else { one });
                let rounds = rounds.collect::<Vec<_>>();
                for rounds in &rounds {
                    check_paths(&fabric.network, groups, &rounds.flow)?;
                }
                Arc::clone(made.entry(key).or_insert(Arc::new(rounds)))
            }
        };
        plans.push(Some(plan));
    }
    Ok(plans)
}

/// The number of pieces of a collective: one of a single round.
pub(super) fn pieces(fabric: &TrainingFabric, operation: Operation, plan: &Option<Plan>) -> usize {
    let single = |rounds: &Rounds| rounds.rounds.len() < 2;
    if plan.as_ref().is_none_or(|plan| plan.iter().all(single)) {
        return 1;
    }
    let chunks = fabric.parts.map_or(operation.bytes().0.div_ceil(fabric.chunk.0), u64::from);
    usize::try_from(chunks.clamp(1, PIECES)).unwrap_or(1)
}

/// The bytes of a part of a payload.
pub(super) fn share(bytes: Bytes, part: usize, parts: usize) -> Bytes {
    let (part, parts) = (part as u64, parts as u64);
    Bytes(bytes.0 / parts + u64::from(part < bytes.0 % parts))
}
