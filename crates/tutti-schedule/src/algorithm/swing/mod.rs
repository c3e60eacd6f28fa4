//! Swing: an all_reduce in log2 n steps between nearby partners on a ring or a torus.
//!
//! In step s an even rank exchanges with the rank rho(s) to its right, an odd one with the rank
//! rho(s) to its left, rho(s) = 1 - 2 + 4 - ... = (1 - (-2)^(s+1)) / 3. The distances are 1, -1, 3,
//! -5, 11, ..., each close to two thirds of those of recursive doubling. On a torus the steps use
//! the dimensions in turn, with a separate step count for each.
//!
//! - **Bandwidth-optimal**, the default: a reduce_scatter in which every step halves a rank's
//!   range, then an all_gather in reverse. See [`halving`] for powers of two and [`packed`] for
//!   other even rank counts.
//! - **`latency_optimal`**: every step exchanges and folds the full payload, as in recursive
//!   doubling.
//!
//! Odd rank counts are not supported. Source: De Sensi, Bonato, Saam and Hoefler, "Swing:
//! short-cutting rings for higher bandwidth allreduce", NSDI 2024. The blocks of a step for even
//! rank counts other than powers of two follow libswing, the authors' library.

pub(super) mod halving;
pub(super) mod latency;
pub(super) mod packed;
pub(super) mod path;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::sizes::{self, Misfit, misfit};
use super::{AlgorithmError, Entry, Request, Stage};
use crate::Schedule;
use crate::collective::Collective;

use halving::Halving;
use latency::Latency;
use packed::Packed;

const LATENCY_OPTIMAL: &str = "latency_optimal";

pub(super) const ENTRY: Entry = Entry {
    name: "swing",
    summary: "recursive halving and doubling between nearby partners on a ring or torus",
    source: "De Sensi, Bonato, Saam and Hoefler 2024",
    argument: "a torus with sides that are powers of two, fastest dimension first, such as `4x8` (default: one \
               ring); `latency_optimal`, after a colon if both, exchanges the full payload in every step",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "even; powers of two with a torus or `latency_optimal` (all_reduce only)",
    claims: |request| plan(request).is_ok(),
    build,
    critical_path,
};

/// The parsed and checked argument.
struct SwingPlan {
    /// One size for a ring.
    sizes: Vec<u32>,
    latency: bool,
}

fn plan(request: &Request) -> Result<SwingPlan, AlgorithmError> {
    let &Request { collective, ranks, argument } = request;
    let plan = match argument {
        Some(argument) => read(argument, ranks, collective)
            .map_err(|misfit| request.misfit(ENTRY.name, misfit))?,
        None => SwingPlan { sizes: vec![ranks], latency: false },
    };
    let needs = match () {
        () if !ranks.is_multiple_of(2) || ranks < 2 => "an even number",
        () if plan.latency && !ranks.is_power_of_two() => "a power of two for `latency_optimal`",
        () => return Ok(plan),
    };
    Err(request.wrong_ranks(ENTRY.name, needs))
}

/// Reads `4x8`, `latency_optimal` or `4x8:latency_optimal`.
fn read(argument: &str, ranks: u32, collective: Collective) -> Result<SwingPlan, Misfit> {
    let (grid, word) = match argument.rsplit_once(':') {
        Some((grid, word)) => (Some(grid), Some(word)),
        None if argument.trim() == LATENCY_OPTIMAL => (None, Some(argument)),
        None => (Some(argument), None),
    };
    let at = argument.len() - word.unwrap_or_default().len();
    if let Some(other) = word.map(str::trim).filter(|&word| word != LATENCY_OPTIMAL) {
        return misfit(at, format!("unknown option `{other}`: expected `{LATENCY_OPTIMAL}`"));
    }
    if word.is_some() && collective != Collective::AllReduce {
        return misfit(
            at,
            format!("{collective} does not support `{LATENCY_OPTIMAL}`: expected all_reduce"),
        );
    }
    let sizes = match grid {
        Some(grid) => {
            let sizes = sizes::read(grid, "dimension")?;
            sizes::fits(&sizes, ranks)?;
            if let Some(size) = sizes.iter().find(|size| !size.is_power_of_two()) {
                let problem = format!(
                    "{size} is not a power of two: expected a power of two for every side of a torus"
                );
                return misfit(0, problem);
            }
            sizes
        }
        None => vec![ranks],
    };
    Ok(SwingPlan { sizes, latency: word.is_some() })
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let SwingPlan { sizes, latency } = plan(request)?;
    let name = request.notation(ENTRY.name);
    Ok(if latency {
        Arc::new(Latency::new(name, &sizes))
    } else if request.ranks.is_power_of_two() {
        Arc::new(Halving::new(name, request.collective, &sizes))
    } else {
        Arc::new(Packed::new(name, request.collective, request.ranks))
    })
}

/// Partners start every step together, and all ranks act alike.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let plan = plan(request).ok()?;
    let n = request.ranks;
    let stage = |chunks, reductions, of| Stage { messages: 1, receives: 1, chunks, reductions, of };
    if plan.latency {
        return Some(vec![stage(1, 1, 1); n.ilog2() as usize]);
    }
    let sent = packed::blocks_per_step(n);
    let there = sent.iter().map(|&blocks| stage(blocks, 1, n));
    let back = sent.iter().rev().map(|&blocks| stage(blocks, 0, n));
    Some(match request.collective {
        Collective::ReduceScatter => there.collect(),
        Collective::AllGather => back.collect(),
        _ => there.chain(back).collect(),
    })
}
