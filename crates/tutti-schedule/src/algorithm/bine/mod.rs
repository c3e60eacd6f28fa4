//! Bine trees: binomial trees and butterflies in base -2, whose partners stay close.
//!
//! In step s of a **butterfly** an even rank exchanges with the rank rho(s) to its right, an odd one
//! with the rank rho(s) to its left, rho(s) = (1 - (-2)^(s+1)) / 3: 1, -1, 3, -5, 11, ... (as in
//! [`swing`](super::swing) on a ring). The nearest partner first is distance-doubling, the farthest
//! first distance-halving. A **tree** has edges of the same lengths; see [`tree`].
//!
//! all_reduce, reduce_scatter and all_gather:
//!
//! - **default**: reduce_scatter with distance doubling, all_gather with distance halving. Blocks are
//!   in the order of their labels, so that every message is one range. An all_reduce may number its
//!   blocks freely; the others copy from or to rank order.
//! - **`send`**: no copies; a message per rank delivers the misplaced block. See [`relayed`].
//! - **`two_blocks`**, **`block_by_block`**: no copies; up to two messages per step, or one per
//!   block. See [`blocks`].
//! - **`latency_optimal`**: every step exchanges and folds the full payload.
//!
//! Rooted collectives use the tree. For large payloads, broadcast has `scatter_all_gather` and reduce
//! `reduce_scatter_gather`: see [`rooted`]. all_to_all sends half of the payload in each step: see
//! [`all_to_all`]. `segments=K` divides the exchanges that reduce: see
//! [`segmented`](super::segmented).
//!
//! Source: De Sensi et al., "Bine Trees: Enhancing Collective Operations by Optimizing Communication
//! Locality", SC '25, arXiv 2508.17311, and the authors' library libbine.

mod all_to_all;
mod blocks;
mod relayed;
mod rooted;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::Arc;

use super::segmented::{self, SEGMENTS, Segmented};
use super::sizes::{Misfit, misfit};
use super::swing::halving::Halving;
use super::swing::latency::Latency;
use super::{AlgorithmError, Entry, Request, Stage};
use crate::Schedule;
use crate::collective::Collective;

use all_to_all::AllToAll;
use blocks::Blocks;
use relayed::Relayed;
use rooted::Rooted;
use tree::Tree;

pub(super) const ENTRY: Entry = Entry {
    name: "bine",
    summary: "binomial trees and butterflies in base -2: partners stay close",
    source: "De Sensi et al. 2025",
    argument: "[FORM] [,segments=K]: `latency_optimal` (all_reduce), `block_by_block`, `two_blocks` (all_reduce, \
               reduce_scatter, all_gather), `send` (reduce_scatter, all_gather), `scatter_all_gather` (broadcast) or \
               `reduce_scatter_gather` (reduce); the number of pieces of each exchange that reduces (default 1)",
    collectives: &[
        "all_reduce",
        "reduce_scatter",
        "all_gather",
        "broadcast",
        "reduce",
        "gather",
        "scatter",
        "all_to_all",
    ],
    ranks: "powers of two; any even number with `block_by_block`",
    claims: |request| plan(request).is_ok(),
    build,
    critical_path,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Default,
    LatencyOptimal,
    BlockByBlock,
    TwoBlocks,
    Send,
    ScatterAllGather,
    ReduceScatterGather,
}

/// The forms and the collectives that have them.
const FORMS: [(&str, Form, &[&str]); 6] = [
    ("latency_optimal", Form::LatencyOptimal, &["all_reduce"]),
    ("block_by_block", Form::BlockByBlock, &["all_reduce", "reduce_scatter", "all_gather"]),
    ("two_blocks", Form::TwoBlocks, &["all_reduce", "reduce_scatter", "all_gather"]),
    ("send", Form::Send, &["reduce_scatter", "all_gather"]),
    ("scatter_all_gather", Form::ScatterAllGather, &["broadcast"]),
    ("reduce_scatter_gather", Form::ReduceScatterGather, &["reduce"]),
];

/// The parsed and checked argument.
#[derive(Clone, Copy)]
struct Plan {
    form: Form,
    segments: u32,
}

fn plan(request: &Request) -> Result<Plan, AlgorithmError> {
    let plan = read(request.argument.unwrap_or_default(), request.collective)
        .map_err(|misfit| request.misfit(ENTRY.name, misfit))?;
    let needs = match plan.form {
        Form::BlockByBlock if !request.ranks.is_multiple_of(2) => "an even number",
        Form::BlockByBlock => return Ok(plan),
        _ if !request.ranks.is_power_of_two() || request.ranks < 2 => "a power of two",
        _ => return Ok(plan),
    };
    Err(request.wrong_ranks(ENTRY.name, needs))
}

/// Reads `two_blocks`, `segments=4` or `latency_optimal,segments=4`.
fn read(argument: &str, collective: Collective) -> Result<Plan, Misfit> {
    let (mut form, mut segments, mut at) = (None, None, 0);
    for text in argument.split(',').filter(|_| !argument.is_empty()) {
        let word = text.trim();
        let start = at + text.len() - text.trim_start().len();
        let twice = match word.strip_prefix(SEGMENTS) {
            Some(number) => segments.replace(segmented::pieces(number, start)?).is_some(),
            None => form.replace(named(word, start, collective)?).is_some(),
        };
        if twice {
            return misfit(start, format!("`{word}` is a second form or number of segments"));
        }
        at += text.len() + 1;
    }
    let plan = Plan { form: form.unwrap_or(Form::Default), segments: segments.unwrap_or(1) };
    if plan.segments > 1 && exchanges(plan.form, collective, 2).is_none() {
        let problem = format!(
            "segments need exchanges that reduce: expected the default or `latency_optimal` of all_reduce, \
             the default or `send` of reduce_scatter, or `reduce_scatter_gather`, not this {collective}"
        );
        return misfit(0, problem);
    }
    Ok(plan)
}

fn named(word: &str, at: usize, collective: Collective) -> Result<Form, Misfit> {
    let performs = |of: &[&str]| of.contains(&collective.name());
    let Some((_, form, of)) = FORMS.iter().find(|(name, ..)| *name == word) else {
        let known = FORMS.iter().filter(|(.., of)| performs(of));
        let known: Vec<String> = known.map(|(name, ..)| format!("`{name}`")).collect();
        let expected = if known.is_empty() { "no argument".to_owned() } else { known.join(", ") };
        return misfit(at, format!("unknown form `{word}` of {collective}: expected {expected}"));
    };
    if !performs(of) {
        let problem = format!("{collective} does not support `{word}`: expected {}", of.join(", "));
        return misfit(at, problem);
    }
    Ok(*form)
}

/// Returns the steps that exchange one message and reduce; `None` without such steps.
fn exchanges(form: Form, collective: Collective, ranks: u32) -> Option<std::ops::Range<u32>> {
    let steps = ranks.ilog2();
    match (form, collective) {
        // The first step of a reduce_scatter copies.
        (Form::Default, Collective::ReduceScatter) => Some(1..steps + 1),
        (Form::Default | Form::LatencyOptimal, Collective::AllReduce)
        | (Form::Send, Collective::ReduceScatter)
        | (Form::ReduceScatterGather, _) => Some(0..steps),
        _ => None,
    }
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let Plan { form, segments } = plan(request)?;
    let &Request { collective, ranks, .. } = request;
    let name = request.notation(ENTRY.name);
    let complete: Arc<dyn Schedule> = match (form, collective) {
        (Form::LatencyOptimal, _) => Arc::new(Latency::new(name, &[ranks])),
        (Form::BlockByBlock, _) => Arc::new(Blocks::new(name, collective, ranks, false)),
        (Form::TwoBlocks, _) => Arc::new(Blocks::new(name, collective, ranks, true)),
        (Form::Send, _) => Arc::new(Relayed::new(name, collective, ranks)),
        (Form::ScatterAllGather | Form::ReduceScatterGather, _) => {
            Arc::new(Rooted::new(name, collective, ranks))
        }
        (Form::Default, Collective::AllToAll) => Arc::new(AllToAll::new(name, ranks)),
        (Form::Default, rooted) if rooted.root().is_some() => {
            Arc::new(Tree::new(name, collective, ranks))
        }
        (Form::Default, _) => Arc::new(Halving::new(name, collective, &[ranks])),
    };
    let Some(steps) = exchanges(form, collective, ranks) else { return Ok(complete) };
    Segmented::divide(complete, segments, move |_| steps.clone())
        .map_err(|misfit| request.misfit(ENTRY.name, misfit))
}

/// All ranks of a butterfly act alike. With segments, the overlap depends on the network; with two
/// blocks, ranks differ in their messages.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let Plan { form, .. } = plan(request).ok().filter(|plan| plan.segments == 1)?;
    let &Request { collective, ranks, .. } = request;
    let stage = |chunks, reductions, of| Stage { messages: 1, receives: 1, chunks, reductions, of };
    let steps = ranks.ilog2();
    let there = (0..steps).map(|step| stage(ranks >> (step + 1), 1, ranks));
    let back = (0..steps).map(|step| stage(1 << step, 0, ranks));
    Some(match (form, collective) {
        (Form::TwoBlocks, _) => return None,
        (Form::LatencyOptimal, _) => vec![stage(1, 1, 1); steps as usize],
        (Form::BlockByBlock, _) => blocks::stages(collective, ranks),
        (Form::Send, _) => relayed::stages(collective, ranks),
        (Form::ScatterAllGather | Form::ReduceScatterGather, _) => {
            rooted::stages(collective, ranks)
        }
        (Form::Default, Collective::AllReduce) => there.chain(back).collect(),
        (Form::Default, Collective::ReduceScatter) => there.collect(),
        (Form::Default, Collective::AllGather) => back.collect(),
        (Form::Default, Collective::AllToAll) => vec![stage(ranks / 2, 0, ranks); steps as usize],
        (Form::Default, _) => return tree::stages(collective, ranks),
    })
}
