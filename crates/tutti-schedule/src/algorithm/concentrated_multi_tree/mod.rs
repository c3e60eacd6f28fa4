//! Concentrated MultiTree: blocks of 2x2 ranks of a grid act as one, and MultiTree's trees span the blocks.
//!
//! **In the groups.** K of the four members of a group accumulate: all of them, the two on the diagonal of which both
//! border on other groups, or the innermost. The contributions of the others come to them along rows and
//! columns, half of the payload along the row first and half along the column first, so that both directions are in
//! use in both steps; what meets on the way is folded ([`local`]).
//!
//! **Between the groups.** Members that are each other's mirror images, as in a level of
//! [`mirrored_ring`](super::mirrored_ring), hold the same part of the payload. They reduce and gather it along
//! the trees that [`multi_tree`](super::multi_tree) grows on the mesh of the groups, the same for each of
//! the K parts; with N/4 trees a message has 1/N of the payload where all accumulate.
//!
//! **Phases.** The groups, between them, the groups again: the network may be set up anew in between.
//!
//! Source: Yin, Ghazizadeh, Louri and Zheng, "ARIES: Accelerating distributed training in chiplet-based systems via
//! flexible interconnects", ICCAD 2023 (concentrated multi-tree). There the members of a group accumulate at
//! one, or two; which, and the way there, are not said.

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
    summary: "blocks of 2x2 ranks reduce among themselves, then along trees between the blocks; few steps",
    source: "Yin et al., ICCAD 2023 (ARIES); Huang et al., ISCA 2021",
    argument: "the grid, columns first, as in `4x4`, both sides even and at least 4; then `,accumulators=K`, how \
               many of the four members of a group accumulate: 1, 2 or 4; 4 without",
    collectives: &["all_reduce"],
    ranks: "columns times rows, at most 1024; without an argument the square of an even number from 4 on",
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
            "the square of an even number from 4 to 32, or a grid, as in `concentrated_multi_tree:8x4`",
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
            "`{}` is no option; expected accumulators=K, how many of a group accumulate: 1, 2 or 4",
            option.unwrap_or_default().trim()
        ),
    })?;
    Ok((grid, accumulators))
}

fn checked(grid: Grid) -> Result<(), Misfit> {
    let fits = |side: u32| side >= 4 && side.is_multiple_of(2);
    if !fits(grid.columns) || !fits(grid.rows) {
        let problem =
            format!("{grid} is not made of groups of 2x2: expected even sides of at least 4");
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
        Phase::new("reduce in the groups", local(false)),
        Phase::new("between the groups", Arc::new(between)),
        Phase::new("gather in the groups", local(true)),
    ];
    let whole = Sequence::new(name, Collective::AllReduce, phases);
    Ok(Arc::new(whole.expect("all phases are on the same ranks and chunks")))
}

/// MultiTree on the mesh of the groups, for each of the accumulators of a group.
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
    Ok(all.lay_out(name, collective).expect("groups have their members among the ranks"))
}
