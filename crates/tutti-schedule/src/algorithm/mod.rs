//! The algorithms: parameters in, a [`Schedule`] out. One file each, one line each in [`REGISTRY`].
//!
//! An algorithm is asked for in the notation `name` or `name:argument`, for example `ring`,
//! `knomial:4` or `recursive_multiplying:a8,a4`.

mod binomial;
pub mod bound;
mod bruck;
#[cfg(test)]
mod check;
mod choice;
mod concentrated_multi_tree;
mod direct;
mod dissemination;
mod divide;
mod double_binary_tree;
mod elimination;
mod exchange;
mod forest;
mod grid;
mod hierarchical;
mod in_network;
mod knomial;
mod mirrored_ring;
mod multi_ring;
mod multi_tree;
mod on_graph;
mod pairwise;
mod recursive_doubling;
mod recursive_halving_doubling;
mod recursive_multiplying;
mod reduce_scatter_gather;
mod ring;
mod rings;
mod scatter_all_gather;
mod scatter_destination;
pub mod search;
mod sizes;
mod swing;

use std::sync::Arc;

pub use recursive_multiplying::stage_bound;

use crate::Schedule;
use crate::collective::Collective;
use tutti_topology::Routes;

pub use crate::MAX_RANKS;

/// What is asked of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The collective to perform.
    pub collective: Collective,
    /// How many ranks take part; at least two.
    pub ranks: u32,
    /// What follows the colon in `name:argument`.
    pub argument: Option<&'a str>,
}

/// One stage of an algorithm's critical path: what its slowest rank does between two waits.
///
/// This is the algorithm's closed form with the network left out; a network model turns each stage
/// into time. Bytes are given as chunks of the payload, `of` in all. In an exchange every rank sends and
/// receives as many messages; in a fan-out (broadcast) the sender sends b and the slowest receiver takes
/// one; in a fan-in (gather) each sender sends one and the receiver takes b. A stage without messages is
/// work alone, which goes on after the stage before: a second fold, of other chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Messages that one rank sends in this stage, one after the other (b in the models).
    pub messages: u32,
    /// Messages that the rank which ends the stage takes in it: receiving costs time in LogP and its kin.
    pub receives: u32,
    /// Chunks in each message.
    pub chunks: u32,
    /// How many pieces of that size are folded in after the receives.
    pub reductions: u32,
    /// Chunks in the payload.
    pub of: u32,
}

/// A line of the registry.
pub struct Entry {
    /// Its name in the notation.
    pub name: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What may follow the colon, as shown to people; empty when nothing may.
    pub argument: &'static str,
    /// The collectives it can perform.
    pub collectives: &'static [&'static str],
    /// For which rank counts, in words.
    pub ranks: &'static str,
    /// Whether it claims this collective on this many ranks, with its default argument.
    pub claims: fn(&Request) -> bool,
    /// Lays it out.
    pub build: fn(&Request) -> Result<Arc<dyn Schedule>, AlgorithmError>,
    /// Its closed form; `None` for requests where no simple one exists.
    pub critical_path: fn(&Request) -> Option<Vec<Stage>>,
}

/// Every algorithm there is.
pub const REGISTRY: &[Entry] = &[
    binomial::ENTRY,
    hierarchical::DECOMPOSED,
    bruck::ENTRY,
    concentrated_multi_tree::ENTRY,
    direct::ENTRY,
    dissemination::ENTRY,
    double_binary_tree::ENTRY,
    elimination::ENTRY,
    forest::ENTRY,
    hierarchical::SHARDED,
    hierarchical::LEADER,
    hierarchical::LOCAL,
    in_network::ENTRY,
    knomial::ENTRY,
    mirrored_ring::ENTRY,
    multi_ring::ENTRY,
    multi_tree::ENTRY,
    pairwise::ENTRY,
    recursive_doubling::ENTRY,
    recursive_halving_doubling::ENTRY,
    recursive_multiplying::ENTRY,
    reduce_scatter_gather::ENTRY,
    ring::ENTRY,
    scatter_all_gather::ENTRY,
    scatter_destination::ENTRY,
    swing::ENTRY,
];

/// Lays an algorithm out on a graph that its notation does not name.
type BuildOn = fn(&Request, &Routes) -> Result<Arc<dyn Schedule>, AlgorithmError>;

/// The algorithms that are made for a graph.
const ON_GRAPH: &[(&str, BuildOn)] =
    &[("forest", forest::build_on), ("multi_tree", multi_tree::build_on)];

/// Why an algorithm cannot be laid out as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum AlgorithmError {
    /// No algorithm has that name.
    #[error("there is no algorithm `{name}`: expected one of {known}")]
    Unknown { name: String, known: String },
    /// Fewer than two ranks.
    #[error("a collective needs at least 2 ranks, not {ranks}")]
    TooFewRanks { ranks: u32 },
    /// More ranks than an algorithm's ids can count.
    #[error("{ranks} ranks are too many: at most {MAX_RANKS}")]
    TooManyRanks { ranks: u32 },
    /// The algorithm does not perform this collective.
    #[error("{name} does not perform {collective}: it performs {performs}")]
    WrongCollective { name: &'static str, collective: &'static str, performs: String },
    /// The algorithm does not work for this many ranks.
    #[error("{name} does not work on {ranks} ranks: it needs {needs}")]
    WrongRanks { name: &'static str, ranks: u32, needs: String },
    /// The root is not one of the ranks.
    #[error("root {root} is not one of the ranks 0 to {last}")]
    WrongRoot { root: u32, last: u32 },
    /// The argument cannot be read or does not fit; `at` is the byte of `argument` where it fails.
    #[error("`{argument}` does not fit {name}: {problem}")]
    Argument { name: &'static str, argument: String, at: usize, problem: String },
}

/// The entry of that name.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> Result<&'static Entry, AlgorithmError> {
    REGISTRY.iter().find(|entry| entry.name == name).ok_or_else(|| AlgorithmError::Unknown {
        name: name.to_owned(),
        known: REGISTRY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

/// Lays out `notation` (`name` or `name:argument`) for a collective on `ranks` ranks.
///
/// # Errors
/// When the name, the argument, the collective or the number of ranks does not fit.
pub fn build(
    notation: &str,
    collective: Collective,
    ranks: u32,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let (entry, request) = resolve(notation, collective, ranks)?;
    (entry.build)(&request)
}

/// Lays out `notation` on a graph, if it is an algorithm that is made for one and names none itself; the
/// first NPUs are the ranks, and messages take the routes. `None` for any other: [`build`] is for those.
///
/// # Errors
/// When the name, the argument, the collective or the number of ranks does not fit.
pub fn build_on(
    notation: &str,
    collective: Collective,
    ranks: u32,
    routes: &Routes,
) -> Result<Option<Arc<dyn Schedule>>, AlgorithmError> {
    let (entry, request) = resolve(notation, collective, ranks)?;
    let made_for_one = ON_GRAPH.iter().find(|(name, _)| *name == entry.name);
    match made_for_one.filter(|_| !on_graph::names_one(request.argument)) {
        Some((_, build)) => build(&request, routes).map(Some),
        None => Ok(None),
    }
}

/// Whether the algorithm of that name is made for a graph.
#[must_use]
pub fn is_for_graphs(name: &str) -> bool {
    ON_GRAPH.iter().any(|(known, _)| *known == name)
}

/// The closed form of `notation`, where it has one.
///
/// # Errors
/// As [`build`].
pub fn critical_path(
    notation: &str,
    collective: Collective,
    ranks: u32,
) -> Result<Option<Vec<Stage>>, AlgorithmError> {
    let (entry, request) = resolve(notation, collective, ranks)?;
    (entry.build)(&request)?;
    Ok((entry.critical_path)(&request))
}

/// Splits the notation and checks what every algorithm needs.
fn resolve(
    notation: &str,
    collective: Collective,
    ranks: u32,
) -> Result<(&'static Entry, Request<'_>), AlgorithmError> {
    let (name, argument) = match notation.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (notation, None),
    };
    let entry = find(name.trim())?;
    if !entry.collectives.contains(&collective.name()) {
        return Err(AlgorithmError::WrongCollective {
            name: entry.name,
            collective: collective.name(),
            performs: entry.collectives.join(", "),
        });
    }
    if ranks < 2 {
        return Err(AlgorithmError::TooFewRanks { ranks });
    }
    if ranks > MAX_RANKS {
        return Err(AlgorithmError::TooManyRanks { ranks });
    }
    if let Some(root) = collective.root().filter(|root| root.0 >= ranks) {
        return Err(AlgorithmError::WrongRoot { root: root.0, last: ranks - 1 });
    }
    if let (Some(argument), true) = (argument, entry.argument.is_empty()) {
        return Err(AlgorithmError::Argument {
            name: entry.name,
            argument: argument.to_owned(),
            at: 0,
            problem: "it takes no argument".to_owned(),
        });
    }
    Ok((entry, Request { collective, ranks, argument }))
}
