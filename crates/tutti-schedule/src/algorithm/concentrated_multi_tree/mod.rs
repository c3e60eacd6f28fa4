//! Concentrated MultiTree: 2x2 blocks of ranks of a grid act as one node of MultiTree's trees.
//!
//! **Within blocks.** K of the four ranks of a block accumulate: all of them, the two on the
//! diagonal that both border on other blocks, or the innermost. The contributions of the others
//! reach them along rows and columns. Half of the payload travels along the row first and half
//! along the column first, so that both directions are in use in both steps. Contributions are
//! folded where they meet ([`local`]).
//!
//! **Between blocks.** Mirror images, as in a level of [`mirrored_ring`](super::mirrored_ring),
//! hold the same part of the payload. They reduce and gather it along the trees that
//! [`multi_tree`](super::multi_tree) builds on the mesh of the blocks, the same for each of the K
//! parts. With N/4 trees a message has 1/N of the payload if all ranks accumulate.
//!
//! **Phases.** Within blocks, between blocks, within blocks: the network may be reconfigured
//! between phases.
//!
//! Source: Yin, Ghazizadeh, Louri and Zheng, "ARIES: Accelerating distributed training in
//! chiplet-based systems via flexible interconnects", ICCAD 2023 (concentrated multi-tree). In the
//! paper the ranks of a block accumulate at one or two ranks; it does not specify which ranks, nor
//! the routes to them.

mod local;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::grid::Grid;
use super::on_graph::{self, Move, Timetable};
use super::sizes::{Misfit, misfit};
use super::{AlgorithmError, Entry, Request, multi_tree};
use crate::collective::Collective;
use crate::{Explicit, Phase, Schedule, Sequence};
use local::{Groups, Local};

pub(super) const ENTRY: Entry = Entry {
    name: "concentrated_multi_tree",
    summary: "2x2 blocks of ranks reduce locally, then along spanning trees between the blocks; few steps",
    source: "Yin et al., ICCAD 2023 (ARIES); Huang et al., ISCA 2021",
    argument: "the grid, columns first, such as `4x4`, both sides even and at least 4; then `,accumulators=K`, the \
               number of accumulators among the four ranks of a block: 1, 2 or 4 (default)",
    collectives: &["all_reduce"],
    ranks: "columns times rows, at most 1024; the square of an even number of at least 4 without an argument",
    claims: |request| groups(request).is_ok(),
    build,
    critical_path: |_| None,
};

fn groups(request: &Request) -> Result<Groups, AlgorithmError> {
    let found = match request.argument {
        Some(argument) => read(argument, request.ranks),
        None => {
            let side = request.ranks.isqrt();
            let square = Grid { columns: side, rows: side };
            square.fits(request.ranks).and_then(|()| checked(square)).map(|()| (square, 4))
        }
    };
    match found {
        Ok((grid, accumulators)) => Ok(Groups::new(grid, accumulators)),
        Err(misfit) if request.argument.is_some() => Err(request.misfit(ENTRY.name, misfit)),
        Err(_) => Err(request.wrong_ranks(
            ENTRY.name,
            "the square of an even number from 4 to 32, or a grid such as `concentrated_multi_tree:8x4`",
        )),
    }
}

/// Reads `4x4,accumulators=2`.
fn read(argument: &str, ranks: u32) -> Result<(Grid, u32), Misfit> {
    let (text, option) = match argument.split_once(',') {
        Some((grid, option)) => (grid, Some(option)),
        None => (argument, None),
    };
    let grid = Grid::read(text)?;
    checked(grid)?;
    grid.fits(ranks)?;
    let accumulators = match option.map(|option| option.trim().split_once('=')) {
        None => Some(4),
        Some(Some(("accumulators", "1"))) => Some(1),
        Some(Some(("accumulators", "2"))) => Some(2),
        Some(Some(("accumulators", "4"))) => Some(4),
        Some(_) => None,
    };
    let accumulators = accumulators.ok_or_else(|| Misfit {
        at: text.len() + 1,
        problem: format!(
            "unknown option `{}`: expected accumulators=K with K = 1, 2 or 4",
            option.unwrap_or_default().trim()
        ),
    })?;
    Ok((grid, accumulators))
}

fn checked(grid: Grid) -> Result<(), Misfit> {
    let fits = |side: u32| side >= 4 && side.is_multiple_of(2);
    if !fits(grid.columns) || !fits(grid.rows) {
        let problem =
            format!("{grid} does not divide into 2x2 blocks: expected even sides of at least 4");
        return misfit(0, problem);
    }
    if u64::from(grid.columns) * u64::from(grid.rows) > u64::from(on_graph::MOST_RANKS) {
        let most = on_graph::MOST_RANKS;
        return misfit(0, format!("{grid} is too large: expected at most {most} ranks"));
    }
    Ok(())
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let groups = Arc::new(groups(request)?);
    let name = request.notation(ENTRY.name);
    let between = between(&name, &groups)?;
    let local = |gathers| Arc::new(Local::new(name.clone(), Arc::clone(&groups), gathers));
    let phases = vec![
        Phase::new("reduce in blocks", local(false)),
        Phase::new("between blocks", Arc::new(between)),
        Phase::new("gather in blocks", local(true)),
    ];
    let sequence = Sequence::new(name, Collective::AllReduce, phases);
    Ok(Arc::new(sequence.expect("all phases are on the same ranks and chunks")))
}

/// Builds MultiTree on the mesh of the blocks, for each accumulator of a block.
fn between(name: &str, groups: &Groups) -> Result<Explicit, AlgorithmError> {
    let Grid { columns, rows } = groups.mesh();
    let mesh = format!("mesh:{columns}x{rows}");
    let collective = Collective::AllReduce;
    let request = Request { collective, ranks: columns * rows, argument: Some(&mesh) };
    let routes = on_graph::routes(ENTRY.name, &request, &on_graph::read(request.argument))?;
    let trees = multi_tree::timetable(collective, request.ranks, &routes, u32::MAX);
    let mut moves = Vec::new();
    for &seat in groups.accumulators() {
        moves.extend(trees.moves.iter().map(|&one| Move {
            chunk: groups.chunk(seat, one.chunk),
            from: groups.member(one.from, seat),
            to: groups.member(one.to, seat),
            ..one
        }));
    }
    let all = Timetable { ranks: groups.ranks(), chunks: groups.chunks(), moves, ..trees };
    Ok(all.lay_out(name, collective).expect("blocks consist of ranks of the grid"))
}
