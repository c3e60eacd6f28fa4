//! Rings along the dimensions of a grid, sequentially or concurrently: the all_reduce of a torus.
//!
//! Ranks are numbered on a grid as in a `torus`, the first dimension varying fastest. An all_reduce
//! is a reduce_scatter along the first dimension, one along the second on the remaining share, and
//! so on, then all_gathers from the last dimension back to the first. Every message goes to a
//! neighbour. An all_to_all performs that of `ring` along each dimension, with all parts for a row
//! together.
//!
//! By default one dimension is used at a time, in one of its two directions. `all_dimensions`
//! divides the payload into as many parts as there are dimensions, each of which starts with a
//! different dimension. `bidirectional` divides it between the two directions. With both, every
//! link of a torus with equal sides is busy in every step. Sources: Sack and Gropp, "Collective
//! algorithms for multiported torus networks", ACM TOPC 1 (2015); Jain and Sabharwal, "Optimal
//! bucket algorithms for large MPI collectives on torus interconnects", ICS 2010; Ying et al.,
//! "Image classification at supercomputer scale", 2018 (TPU pods).

use std::sync::Arc;

use super::exchange::Exchange;
use super::rings::{Directions, Rings, Walk};
use super::sizes::{self, Misfit, misfit};
use super::{AlgorithmError, Entry, Request, Stage, ring};
use crate::Schedule;
use crate::collective::Collective;

pub(super) const ENTRY: Entry = Entry {
    name: "multi_ring",
    summary: "rings along the dimensions of a torus, sequentially or concurrently",
    source: "Jain and Sabharwal 2010; Sack and Gropp 2015; Ying et al. 2018 (TPU pods)",
    argument: "the grid, fastest dimension first, such as `4x4x2`; then, each after a colon, `all_dimensions` \
               (concurrently, each on a part of the payload) and `bidirectional`",
    collectives: &["all_reduce", "reduce_scatter", "all_gather", "all_to_all"],
    ranks: "the product of the grid's sizes; any composite number without an argument, on the most nearly \
            square grid",
    claims: |request| walk(request).is_ok(),
    build,
    critical_path,
};

fn walk(request: &Request) -> Result<(Walk, u32), AlgorithmError> {
    let ranks = request.ranks;
    let walk = match request.argument {
        Some(argument) => {
            read(argument, ranks).map_err(|misfit| request.misfit(ENTRY.name, misfit))?
        }
        None => {
            let sizes = request.near_square(ENTRY.name)?;
            Walk { sizes, directions: Directions::Forward, all_dimensions: false }
        }
    };
    if let (Some(argument), Collective::AllToAll, true) =
        (request.argument, request.collective, walk.all_dimensions)
    {
        let problem = "all_to_all does not support `all_dimensions`";
        let at = argument.find("all_dimensions").unwrap_or(0);
        return Err(request.refuse(ENTRY.name, at, problem));
    }
    let chunks = walk.chunks().ok_or(AlgorithmError::TooManyRanks { ranks })?;
    Ok((walk, chunks))
}

/// Reads `4x4x2:all_dimensions:bidirectional`.
fn read(argument: &str, ranks: u32) -> Result<Walk, Misfit> {
    let (grid, flags) = match argument.split_once(':') {
        Some((grid, flags)) => (grid, Some(flags)),
        None => (argument, None),
    };
    let sizes = sizes::read(grid, "dimension")?;
    sizes::fits(&sizes, ranks)?;
    let (mut all_dimensions, mut bidirectional) = (false, false);
    let mut at = grid.len() + 1;
    for flag in flags.into_iter().flat_map(|flags| flags.split(':')) {
        let known = match flag.trim() {
            "all_dimensions" => &mut all_dimensions,
            "bidirectional" => &mut bidirectional,
            other => {
                return misfit(
                    at,
                    format!(
                        "unknown option `{other}`: expected `all_dimensions` or `bidirectional`"
                    ),
                );
            }
        };
        if std::mem::replace(known, true) {
            return misfit(at, format!("`{}` appears twice", flag.trim()));
        }
        at += flag.len() + 1;
    }
    let directions = if bidirectional { Directions::Both } else { Directions::Forward };
    Ok(Walk { sizes, directions, all_dimensions })
}

fn rings(request: &Request) -> Result<Rings, AlgorithmError> {
    let (walk, chunks) = walk(request)?;
    Ok(Rings::new(request.notation(ENTRY.name), request.collective, &walk, chunks))
}

/// Returns the request for a ring along each dimension in an all_to_all.
fn along(walk: &Walk) -> impl Iterator<Item = Request<'static>> + '_ {
    let collective = Collective::AllToAll;
    let argument = (walk.directions == Directions::Both).then_some("bidirectional");
    walk.sizes.iter().map(move |&ranks| Request { collective, ranks, argument })
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let rings = rings(request)?;
    if request.collective != Collective::AllToAll {
        return Ok(Arc::new(rings));
    }
    let (walk, _) = walk(request)?;
    let mut inners = Vec::new();
    for (dimension, request) in along(&walk).enumerate() {
        inners.push((format!("dimension {dimension}"), (ring::ENTRY.build)(&request)?));
    }
    let exchange = Exchange::new(rings.shape().name.clone(), &walk.sizes, inners);
    Ok(Arc::new(exchange.expect("every dimension was laid out for its size")))
}

fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    if request.collective != Collective::AllToAll {
        return rings(request).ok()?.stages();
    }
    let (walk, _) = walk(request).ok()?;
    let stages: Option<Vec<_>> =
        along(&walk).map(|request| (ring::ENTRY.critical_path)(&request)).collect();
    Some(stages?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use crate::algorithm::check;
    use tutti_units::ids::RankId;

    const KINDS: [Collective; 3] =
        [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather];
    const FLAGS: [&str; 4] =
        ["", ":all_dimensions", ":bidirectional", ":bidirectional:all_dimensions"];
    const GRIDS: [(&str, u32); 8] = [
        ("2x2", 4),
        ("3x2", 6),
        ("4x4", 16),
        ("2x5x3", 30),
        ("3x3x3", 27),
        ("2x2x2x2", 16),
        ("8x2", 16),
        ("7x7", 49),
    ];

    fn every(mut then: impl FnMut(&str, &str, Collective, u32)) {
        for (grid, ranks) in GRIDS {
            for flags in FLAGS {
                KINDS.iter().for_each(|&kind| then(grid, flags, kind, ranks));
            }
        }
    }

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, ENTRY.name, ranks);
        }
    }

    #[test]
    fn all_to_all_goes_along_every_dimension() {
        for (grid, ranks) in GRIDS {
            for flags in ["", ":bidirectional"] {
                let notation = format!("multi_ring:{grid}{flags}");
                check::performs(&notation, Collective::AllToAll, ranks);
                let exact = check::critical_path_is_exact(&notation, Collective::AllToAll, ranks);
                let keep_step = |size: &str| size == "2" || size.parse::<u32>().unwrap() % 2 == 1;
                assert_eq!(exact, flags.is_empty() || grid.split('x').all(keep_step), "{notation}");
            }
        }
        let error =
            crate::algorithm::build("multi_ring:4x2:all_dimensions", Collective::AllToAll, 8);
        let text = error.err().unwrap().to_string();
        assert!(text.contains("all_to_all does not support `all_dimensions`"), "{text}");
    }

    #[test]
    fn every_grid_and_variant_is_proved() {
        every(|grid, flags, kind, ranks| {
            check::performs(&format!("multi_ring:{grid}{flags}"), kind, ranks);
        });
    }

    #[test]
    fn the_critical_path_is_exact_if_the_parts_are_in_lockstep() {
        every(|grid, flags, kind, ranks| {
            let exact =
                check::critical_path_is_exact(&format!("multi_ring:{grid}{flags}"), kind, ranks);
            let mut sides = grid.split('x');
            let first = sides.next();
            let equal = sides.all(|side| Some(side) == first);
            assert_eq!(exact, equal || !flags.contains("all"), "{grid}{flags}");
        });
    }

    /// Without flags the ops are those of nested rings.
    #[test]
    fn an_all_reduce_without_flags_is_that_of_nested_rings() {
        for (grid, ranks) in GRIDS {
            let build = |name: &str| {
                let notation = format!("{name}:{grid}");
                crate::algorithm::build(&notation, Collective::AllReduce, ranks).unwrap()
            };
            let rings = build("multi_ring");
            check::same_steps(&*rings, &*build("blue_connect"));
            check::same_steps(&*rings, &*build("hierarchical"));
        }
    }

    #[test]
    fn with_both_flags_every_link_of_a_cube_is_busy_in_every_step() {
        let notation = "multi_ring:3x3x3:all_dimensions:bidirectional";
        let schedule = crate::algorithm::build(notation, Collective::AllReduce, 27).unwrap();
        let mut out = Step::new();
        for (rank, step) in (0..27).flat_map(|rank| (0..12).map(move |step| (rank, step))) {
            out.clear();
            schedule.step(RankId(rank), step, &mut out);
            let mut peers: Vec<u32> = out.sends.iter().map(|message| message.peer.0).collect();
            peers.sort_unstable();
            let (x, y, z) = (rank % 3, rank / 3 % 3, rank / 9);
            let moved = |x: u32, y: u32, z: u32| x % 3 + 3 * (y % 3) + 9 * (z % 3);
            let mut neighbours = [
                moved(x + 1, y, z),
                moved(x + 2, y, z),
                moved(x, y + 1, z),
                moved(x, y + 2, z),
                moved(x, y, z + 1),
                moved(x, y, z + 2),
            ];
            neighbours.sort_unstable();
            assert_eq!(peers, neighbours);
        }
    }

    #[test]
    fn errors_point_at_the_byte() {
        let cases = [
            ("4", 1, "only one dimension"),
            ("4x", 2, "`` is not a dimension size"),
            ("2x1", 2, "a dimension has at least 2 ranks"),
            ("4x4", 0, "4x4 is 16 ranks: expected sizes whose product is 8"),
            ("4x2:", 4, "unknown option ``"),
            ("4x2:both", 4, "unknown option `both`: expected `all_dimensions` or `bidirectional`"),
            ("4x2:bidirectional:bidirectional", 18, "`bidirectional` appears twice"),
        ];
        for (argument, place, part) in cases {
            let notation = format!("multi_ring:{argument}");
            match crate::algorithm::build(&notation, Collective::AllReduce, 8).err() {
                Some(AlgorithmError::Argument { at, problem, .. }) => {
                    assert!(at == place && problem.contains(part), "{argument}: {at}: {problem}");
                }
                other => panic!("{argument}: {other:?}"),
            }
        }
        let prime = crate::algorithm::build("multi_ring", Collective::AllReduce, 7).err();
        assert!(matches!(prime, Some(AlgorithmError::WrongRanks { ranks: 7, .. })));
    }
}
