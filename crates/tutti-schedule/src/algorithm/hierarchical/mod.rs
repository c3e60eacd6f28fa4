//! Hierarchical: one algorithm per level of a hierarchical machine, composed into one schedule.
//!
//! Ranks are numbered innermost level first: with levels `8x16`, ranks 0 to 7 form the first of 16
//! inner groups, and ranks 0, 8, 16, ... one of 8 groups across. Four styles:
//!
//! - `hierarchical`, for bandwidth: all_reduce is a reduce_scatter within the groups, an all_reduce
//!   across them on each rank's shard, and an all_gather within. The levels above decompose this
//!   all_reduce likewise. Each level carries only its share of the payload.
//! - `blue_connect` also decomposes the all_reduce of the outermost level: reduce_scatters along
//!   every factor of the rank count, then all_gathers in reverse order.
//! - `hierarchical_local`, for tori whose innermost links are the fastest: only the innermost level
//!   divides the payload, and every other level in turn performs an all_reduce of the shard.
//! - `hierarchical_leader`, for latency: all_reduce is a reduce to each group's leader, an
//!   all_reduce among the leaders, and a broadcast within the groups; only leaders communicate
//!   across. The leaders have the same position in their groups as the root, or the first position
//!   without a root.
//!
//! all_to_all, in `hierarchical`, goes along the levels sequentially, with all parts for the same
//! member of a group together; see [`exchange`](super::exchange). A separate reduce_scatter or
//! all_gather uses an order of shards in which every level's part is contiguous, and copies to and
//! from rank order. On a machine with free copies this costs nothing. [`argument`] defines the text
//! after the colon. Sources: hierarchical all_reduce as in Horovod; BlueConnect: Cho et al., MLSys
//! 2019; leaders as in MVAPICH and SMP-aware MPICH collectives.

mod argument;
mod plan;
mod reorder;

use std::sync::Arc;

use super::exchange::Exchange;
use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{Embedded, Phase, Schedule, Sequence, Slot};
use plan::{HierarchicalPlan, Style};
use reorder::{Reorder, WORK};

const ARGUMENT: &str = "level sizes, innermost first, then algorithms, such as `8x16:ring/direct/ring`: one for \
                        all, one per level or, for all_reduce, one per phase; in parentheses if it contains `/`";

pub(super) const SHARDED: Entry = Entry {
    name: "hierarchical",
    summary: "reduce_scatter within groups, all_reduce of the shards across, all_gather within; any levels",
    source: "Horovod; Cho et al. 2019 (BlueConnect)",
    argument: ARGUMENT,
    collectives: &["all_reduce", "reduce_scatter", "all_gather", "all_to_all"],
    ranks: "the product of the level sizes; any composite number without an argument, in two levels",
    claims: |request| build(Style::Sharded, request).is_ok(),
    build: |request| build(Style::Sharded, request),
    critical_path: |request| critical_path(Style::Sharded, request),
};

pub(super) const DECOMPOSED: Entry = Entry {
    name: "blue_connect",
    summary: "reduce_scatter along each factor of the rank count, then all_gathers in reverse; any levels",
    source: "Cho et al. 2019 (BlueConnect)",
    argument: ARGUMENT,
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "the product of the level sizes; any composite number without an argument, in two levels",
    claims: |request| build(Style::Decomposed, request).is_ok(),
    build: |request| build(Style::Decomposed, request),
    critical_path: |request| critical_path(Style::Decomposed, request),
};

pub(super) const LOCAL: Entry = Entry {
    name: "hierarchical_local",
    summary: "reduce_scatter on the innermost level, all_reduce on each other level, all_gather on the innermost",
    source: "Rashidi et al. 2021; ASTRA-sim (local bandwidth aware)",
    argument: ARGUMENT,
    collectives: &["all_reduce"],
    ranks: "the product of the level sizes; any composite number without an argument, in two levels",
    claims: |request| build(Style::Local, request).is_ok(),
    build: |request| build(Style::Local, request),
    critical_path: |request| critical_path(Style::Local, request),
};

pub(super) const LEADER: Entry = Entry {
    name: "hierarchical_leader",
    summary: "reduce to a leader per group, all_reduce among leaders, broadcast within groups; any levels",
    source: "MVAPICH; SMP-aware collectives of MPICH",
    argument: ARGUMENT,
    collectives: &["all_reduce", "broadcast", "reduce", "gather", "scatter", "barrier"],
    ranks: "the product of the level sizes; any composite number without an argument, in two levels",
    claims: |request| build(Style::Leader, request).is_ok(),
    build: |request| build(Style::Leader, request),
    critical_path: |request| critical_path(Style::Leader, request),
};

fn build(style: Style, request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let plan = HierarchicalPlan::new(style, request)?;
    let ranks = request.ranks;
    let inners = plan.inner_schedules()?;
    let chunks = plan.chunks(&inners)?;
    let name = request.notation(style.name());
    if request.collective == Collective::AllToAll {
        let names = (0..inners.len()).map(|level| format!("all_to_all on level {level}"));
        let exchange = Exchange::new(name, &plan.sizes, names.zip(inners).collect());
        return Ok(Arc::new(exchange.expect("every level was laid out for its size")));
    }
    let reorders = style != Style::Leader && request.collective.has_shards();
    let reorder = |name: &str, out| {
        let reorder = Reorder::new(request.collective, &plan.sizes, chunks, out);
        Phase::new(name, Arc::new(reorder))
    };
    let mut phases = Vec::new();
    if reorders {
        phases.push(reorder("order by level", false));
    }
    for (phase, inner) in plan.phases.iter().zip(inners) {
        let mut place = plan.place(phase, chunks);
        if reorders {
            (place.data, place.scratch) = (WORK, Slot(WORK.0 + 1));
        }
        let name = format!("{} on level {}", phase.collective, phase.level);
        let embedded = Embedded::new(inner, ranks, chunks, place);
        let embedded = embedded.map_err(|error| plan.refuse(phase, 0, error.to_string()))?;
        phases.push(Phase::new(name, Arc::new(embedded)));
    }
    if reorders {
        phases.push(reorder("order by rank", true));
    }
    let sequence = Sequence::new(name, request.collective, phases);
    Ok(Arc::new(sequence.expect("every phase was put on the same ranks and chunks")))
}

/// The phases in sequence. This is exact because all groups of a level act alike: the members of a
/// group start a phase together or, under a root or a leader, all wait for the one that starts
/// last.
fn critical_path(style: Style, request: &Request) -> Option<Vec<Stage>> {
    let plan = HierarchicalPlan::new(style, request).ok()?;
    let mut stages = Vec::new();
    for phase in &plan.phases {
        let size = plan.sizes[phase.level];
        let inner = super::critical_path(phase.notation, phase.collective, size).ok()??;
        for stage in inner {
            stages.push(Stage { of: stage.of.checked_mul(plan.share(phase))?, ..stage });
        }
    }
    Some(stages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use tutti_units::ids::RankId;

    const ONE: &[&str] = &["all_reduce"];
    const THREE: &[&str] = DECOMPOSED.collectives;
    const FOUR: &[&str] = SHARDED.collectives;
    const SIX: &[&str] = LEADER.collectives;

    /// Nested algorithms of all styles, and the collectives they perform.
    const CASES: &[(&str, u32, &[&str])] = &[
        ("blue_connect:4x8:direct/ring", 32, THREE),
        ("blue_connect:2x4x3:ring/direct/ring/direct/ring/direct", 24, ONE),
        ("blue_connect:8x4x2:recursive_halving_doubling/ring/direct", 64, THREE),
        ("blue_connect:4x6:ring/(blue_connect:2x3:direct/ring)", 24, THREE),
        ("hierarchical_local:2x4x3:ring/direct/recursive_halving_doubling/ring", 24, ONE),
        ("hierarchical_local:3x2x4:direct/ring/direct", 24, ONE),
        ("hierarchical_local:2x2x2x3", 24, ONE),
        ("hierarchical:4x8:ring/recursive_halving_doubling/direct", 32, ONE),
        ("hierarchical:3x2:direct", 6, FOUR),
        ("hierarchical:4x2:pairwise/ring", 8, &["all_to_all"]),
        ("hierarchical:4x3:ring:blockwise", 12, &["all_to_all"]),
        ("hierarchical:2x3x4:direct/(ring:bidirectional)/pairwise", 24, &["all_to_all"]),
        ("hierarchical:6x2:(hierarchical:2x3:ring/direct)/pairwise", 12, &["all_to_all"]),
        ("hierarchical:2x4x3:ring/direct/recursive_halving_doubling/ring/direct", 24, ONE),
        ("hierarchical:2x4x3:direct/recursive_halving_doubling/ring", 24, THREE),
        ("hierarchical:4x6:ring/(hierarchical:2x3:direct/(direct:two_step)/ring)/ring", 24, ONE),
        ("hierarchical:6x2:(hierarchical:2x3:ring/direct)/ring", 12, THREE),
        ("hierarchical:3x6:ring/(hierarchical_leader:2x3:direct/binomial)/direct", 18, ONE),
        ("hierarchical_leader:4x8:binomial/recursive_halving_doubling/direct", 32, ONE),
        ("hierarchical_leader:3x2:direct", 6, SIX),
        ("hierarchical_leader:3x5:knomial:3/binomial", 15, SIX),
        ("hierarchical_leader:2x4x3:binomial/direct/knomial:3/direct/binomial", 24, ONE),
        ("hierarchical_leader:2x2x3:knomial:2/direct/binomial", 12, SIX),
        ("hierarchical_leader:4x3:(hierarchical_leader:2x2:direct/binomial)/direct", 12, SIX),
    ];

    #[test]
    fn rings_on_all_levels_are_symmetric() {
        let three = "hierarchical_local:4x2x3:ring/ring:backward/ring:backward/ring";
        assert!(check::is_symmetric(three, Collective::AllReduce, 24));
        for collective in [Collective::ReduceScatter, Collective::AllGather] {
            assert!(check::is_symmetric("hierarchical:2x5:ring:backward", collective, 10));
        }
        for notation in ["hierarchical:3x4:ring:blockwise", "hierarchical:2x2x3:direct"] {
            assert!(check::is_symmetric(notation, Collective::AllToAll, 12));
        }
        assert!(!check::is_symmetric("hierarchical:4x4:swing", Collective::AllReduce, 16));
    }

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&SHARDED, "hierarchical", ranks);
            check::claims(&DECOMPOSED, "blue_connect", ranks);
            check::claims(&LOCAL, "hierarchical_local", ranks);
            check::claims(&LEADER, "hierarchical_leader", ranks);
        }
    }

    #[test]
    fn every_nesting_works_from_every_root() {
        for &(notation, ranks, collectives) in CASES {
            for name in collectives {
                for root in 0..ranks {
                    let collective = Collective::from_name(name, RankId(root)).unwrap();
                    if root == 0 || collective.root().is_some() {
                        check::performs(notation, collective, ranks);
                    }
                }
            }
        }
    }

    #[test]
    fn the_critical_path_is_exact_where_the_levels_have_one() {
        let full = [
            ("hierarchical_leader:4x8", 32, SIX),
            ("hierarchical_leader:3x9:knomial:3", 27, SIX),
            ("hierarchical_leader:4x2x3:direct/binomial/direct", 24, SIX),
        ];
        // A binomial tree over 3 ranks or a 3-nomial one over 4 or 5 is not full.
        let ragged =
            ["3x5:knomial:3", "2x4x3:binomial", "2x2x3:knomial", "(hierarchical_leader:2x3"];
        let full_tree = |notation: &str| !ragged.iter().any(|part| notation.contains(part));
        let cases = CASES.iter().copied().filter(|&(notation, ..)| full_tree(notation));
        for (notation, ranks, collectives) in cases.chain(full) {
            for name in collectives {
                let collective = Collective::from_name(name, RankId(0)).unwrap();
                assert!(check::critical_path_is_exact(notation, collective, ranks), "{notation}");
            }
        }
    }

    /// Unlike `hierarchical`, the outermost level is a reduce_scatter and an all_gather too.
    #[test]
    fn blue_connect_takes_the_outermost_all_reduce_apart() {
        let build =
            |notation: &str| crate::algorithm::build(notation, Collective::AllReduce, 24).unwrap();
        let apart = build("blue_connect:4x6:direct");
        check::same_steps(&*apart, &*build("hierarchical:4x6:direct/(direct:two_step)/direct"));
        let error = crate::algorithm::build(
            "blue_connect:4x6:ring/recursive_doubling",
            Collective::AllReduce,
            24,
        );
        let text = error.err().unwrap().to_string();
        assert!(text.contains("recursive_doubling does not perform reduce_scatter"), "{text}");
    }

    /// On two levels there is one all_reduce across, as in `hierarchical`. On three levels each
    /// sends the full shard: 2 (L-1)/L + 2 (V-1)/(V L) + 2 (H-1)/(H L) of the payload.
    #[test]
    fn local_divides_inside_alone() {
        let build = |notation: &str, ranks| {
            crate::algorithm::build(notation, Collective::AllReduce, ranks).unwrap()
        };
        check::same_steps(&*build("hierarchical_local:4x6", 24), &*build("hierarchical:4x6", 24));
        let schedule = build("hierarchical_local:4x2x3", 24);
        let mut out = crate::Step::new();
        let mut sent = 0;
        for step in 0..schedule.steps(RankId(5)) {
            out.clear();
            schedule.step(RankId(5), step, &mut out);
            sent += out.sends.iter().map(|message| message.chunks.len()).sum::<u32>();
        }
        // 3/2 + 1/4 + 1/3 of the payload.
        assert_eq!(12 * sent, 25 * schedule.shape().chunks);
    }

    #[test]
    fn a_prime_has_no_levels() {
        let error = crate::algorithm::build("hierarchical", Collective::AllReduce, 7).err();
        assert!(matches!(error, Some(AlgorithmError::WrongRanks { ranks: 7, .. })));
    }
}
