//! The algorithms: each turns a [`Request`] into a [`Schedule`], has a file and an entry in
//! [`REGISTRY`].
//!
//! The notation of an algorithm is `name` or `name:argument`, for example `ring`, `knomial:4` or
//! `recursive_multiplying:a8,a4`.

mod binary_tree;
mod bine;
mod binomial;
pub mod bound;
mod bruck;
mod chain;
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
mod k_ring;
mod kary_tree;
mod knomial;
mod mirrored_ring;
mod multi_ring;
mod multi_tree;
mod neighbor_exchange;
mod on_graph;
mod pairwise;
mod pat;
mod pipeline;
mod recursive_doubling;
mod recursive_exchange;
mod recursive_halving_doubling;
mod recursive_multiplying;
mod reduce_scatter_gather;
mod ring;
mod rings;
mod scatter_all_gather;
mod scatter_destination;
pub mod search;
mod segmented;
mod sizes;
mod sparbit;
mod split_binary_tree;
mod swing;
mod unequal;

use std::sync::Arc;

pub use recursive_multiplying::stage_bound;

use crate::collective::Collective;
use crate::{Blocks, Phase, Schedule, Sequence, Shape};
use sizes::Misfit;
use tutti_topology::Routes;

pub use crate::MAX_RANKS;

/// The parameters of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The collective to perform.
    pub collective: Collective,
    /// The number of ranks, at least two.
    pub ranks: u32,
    /// The text after the colon in `name:argument`.
    pub argument: Option<&'a str>,
}

impl Request<'_> {
    /// Returns the notation of this request: the name of the schedule.
    fn notation(&self, name: &str) -> String {
        self.argument.map_or_else(|| name.to_owned(), |argument| format!("{name}:{argument}"))
    }

    /// Returns the shape of a schedule that works in place.
    fn shape(&self, name: &str, chunks: u32, slots: u32) -> Shape {
        Shape::in_place(self.notation(name), self.collective, self.ranks, chunks, slots)
    }

    /// Returns the error for an invalid argument, at byte `at`.
    fn refuse(&self, name: &'static str, at: usize, problem: impl Into<String>) -> AlgorithmError {
        let argument = self.argument.unwrap_or_default().to_owned();
        AlgorithmError::Argument { name, argument, at, problem: problem.into() }
    }

    /// Returns the error for a misfit.
    fn misfit(&self, name: &'static str, misfit: Misfit) -> AlgorithmError {
        self.refuse(name, misfit.at, misfit.problem)
    }

    /// Returns the error for an unsupported rank count.
    fn wrong_ranks(&self, name: &'static str, needs: impl Into<String>) -> AlgorithmError {
        AlgorithmError::WrongRanks { name, ranks: self.ranks, needs: needs.into() }
    }

    /// Returns the two sizes closest to each other whose product is the rank count, the smaller
    /// first.
    fn near_square(&self, name: &'static str) -> Result<Vec<u32>, AlgorithmError> {
        let needs = || self.wrong_ranks(name, "a composite number");
        sizes::near_square(self.ranks).ok_or_else(needs)
    }

    /// Reads an argument that is an integer of at least `least`; `default` without one. The
    /// problems are the texts for a smaller number and for anything else.
    fn number(
        &self,
        name: &'static str,
        default: u32,
        least: u32,
        [below, not_a_number]: [&str; 2],
    ) -> Result<u32, AlgorithmError> {
        let Some(argument) = self.argument else { return Ok(default) };
        let problem = match argument.trim().parse::<u32>() {
            Ok(number) if number >= least => return Ok(number),
            Ok(_) => below,
            Err(_) => not_a_number,
        };
        Err(self.refuse(name, argument.len() - argument.trim_start().len(), problem))
    }

    /// Reads an argument that is one of these words; the first is the default.
    fn one_of<T: Copy>(
        &self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Result<T, AlgorithmError> {
        let requested = self.argument.unwrap_or(words[0].0);
        let found = words.iter().find(|(word, _)| *word == requested);
        found.map(|&(_, meaning)| meaning).ok_or_else(|| {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let (last, others) = known.split_last().expect("there is a word to choose");
            self.refuse(name, 0, format!("expected {} or {last}", others.join(", ")))
        })
    }

    /// Builds a sequence of algorithms on the ranks of the request, each with its default argument.
    fn in_sequence(
        &self,
        name: &str,
        phases: &[(&Entry, Collective)],
    ) -> Result<Arc<dyn Schedule>, AlgorithmError> {
        let phase = |&(entry, collective): &(&Entry, Collective)| {
            let request = Request { collective, ranks: self.ranks, argument: None };
            Ok(Phase::new(collective.name(), (entry.build)(&request)?))
        };
        let phases = phases.iter().map(phase).collect::<Result<_, AlgorithmError>>()?;
        let sequence = Sequence::new(self.notation(name), self.collective, phases);
        Ok(Arc::new(
            sequence.expect("all phases have the same ranks and shards, and work in place"),
        ))
    }

    /// Returns the stages of such a sequence if each phase has a closed form.
    fn stages_in_sequence(&self, phases: &[(&Entry, Collective)]) -> Option<Vec<Stage>> {
        let stages = phases.iter().map(|&(entry, collective)| {
            (entry.critical_path)(&Request { collective, ranks: self.ranks, argument: None })
        });
        Some(stages.collect::<Option<Vec<_>>>()?.concat())
    }
}

/// One stage of an algorithm's critical path: the actions of its slowest rank between two waits.
///
/// This is the algorithm's closed form without the network; a network model turns each stage into
/// time. Bytes are given as chunks of the payload, `of` in total. In an exchange every rank sends
/// and receives the same number of messages. In a fan-out (broadcast) the sender sends b messages
/// and the slowest receiver receives one. In a fan-in (gather) each sender sends one message and
/// the receiver receives b. A stage without messages is local work that continues the previous
/// stage: a second fold, of other chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Messages that one rank sends sequentially in this stage (b in the models).
    pub messages: u32,
    /// Messages received by the rank that ends the stage: receiving costs time in LogP and related
    /// models.
    pub receives: u32,
    /// Chunks in each message.
    pub chunks: u32,
    /// Pieces of that size that are folded after the receives.
    pub reductions: u32,
    /// Chunks in the payload.
    pub of: u32,
}

/// An entry of the registry.
pub struct Entry {
    /// The name in the notation.
    pub name: &'static str,
    /// A one-line summary for lists.
    pub summary: &'static str,
    /// The publication.
    pub source: &'static str,
    /// The argument after the colon, for users; empty if none is allowed.
    pub argument: &'static str,
    /// The supported collectives.
    pub collectives: &'static [&'static str],
    /// The supported rank counts, in words.
    pub ranks: &'static str,
    /// Whether the algorithm supports this collective on this many ranks, with its default
    /// argument.
    pub claims: fn(&Request) -> bool,
    /// Builds the schedule.
    pub build: fn(&Request) -> Result<Arc<dyn Schedule>, AlgorithmError>,
    /// Returns the closed form; `None` without a simple one.
    pub critical_path: fn(&Request) -> Option<Vec<Stage>>,
}

/// All algorithms.
pub const REGISTRY: &[Entry] = &[
    binary_tree::ENTRY,
    bine::ENTRY,
    binomial::ENTRY,
    hierarchical::DECOMPOSED,
    bruck::ENTRY,
    chain::ENTRY,
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
    k_ring::ENTRY,
    kary_tree::ENTRY,
    knomial::ENTRY,
    mirrored_ring::ENTRY,
    multi_ring::ENTRY,
    multi_tree::ENTRY,
    neighbor_exchange::ENTRY,
    pairwise::ENTRY,
    pat::ENTRY,
    recursive_doubling::ENTRY,
    recursive_exchange::ENTRY,
    recursive_halving_doubling::ENTRY,
    recursive_multiplying::ENTRY,
    reduce_scatter_gather::ENTRY,
    ring::ENTRY,
    scatter_all_gather::ENTRY,
    scatter_destination::ENTRY,
    sparbit::ENTRY,
    split_binary_tree::ENTRY,
    swing::ENTRY,
];

/// Builds an algorithm on a graph that its notation does not name.
type BuildOn = fn(&Request, &Routes) -> Result<Arc<dyn Schedule>, AlgorithmError>;

/// The algorithms that are built on a graph.
const ON_GRAPH: &[(&str, BuildOn)] =
    &[("forest", forest::build_on), ("multi_tree", multi_tree::build_on)];

/// An invalid request for an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "AlgorithmError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum AlgorithmError {
    /// No algorithm has that name.
    #[error("unknown algorithm `{name}`: expected one of {known}")]
    Unknown { name: String, known: String },
    /// Fewer than two ranks.
    #[error("a collective needs at least 2 ranks, not {ranks}")]
    TooFewRanks { ranks: u32 },
    /// More ranks than an algorithm's ids can count.
    #[error("{ranks} ranks are too many: expected at most {MAX_RANKS}")]
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
    /// The argument is invalid; `at` is the byte of `argument` at which it fails.
    #[error("`{argument}` does not fit {name}: {problem}")]
    Argument { name: &'static str, argument: String, at: usize, problem: String },
}

/// Returns the entry of that name.
///
/// # Errors
/// If the name is unknown.
pub fn find(name: &str) -> Result<&'static Entry, AlgorithmError> {
    REGISTRY.iter().find(|entry| entry.name == name).ok_or_else(|| AlgorithmError::Unknown {
        name: name.to_owned(),
        known: REGISTRY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

/// Builds `notation` (`name` or `name:argument`) for a collective on `ranks` ranks.
///
/// # Errors
/// If the name, the argument, the collective or the number of ranks is invalid.
pub fn build(
    notation: &str,
    collective: Collective,
    ranks: u32,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let (entry, request) = resolve(notation, collective, ranks)?;
    (entry.build)(&request)
}

/// Builds `notation` for an all_to_all_v of these blocks.
///
/// # Errors
/// If the name or the argument is invalid, or the algorithm does not perform it on so many ranks.
pub fn build_blocks(notation: &str, blocks: &Blocks) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let (entry, request) = resolve(notation, Collective::AllToAllV, blocks.ranks())?;
    unequal::build(entry, &request, Some(blocks))
}

/// Builds `notation` on a graph, if the algorithm is built on a graph and its argument names none.
/// The first NPUs are the ranks, and messages follow the routes. Returns `None` for any other
/// algorithm: use [`build`].
///
/// # Errors
/// If the name, the argument, the collective or the number of ranks is invalid.
pub fn build_on(
    notation: &str,
    collective: Collective,
    ranks: u32,
    routes: &Routes,
) -> Result<Option<Arc<dyn Schedule>>, AlgorithmError> {
    let (entry, request) = resolve(notation, collective, ranks)?;
    let on_graph_entry = ON_GRAPH.iter().find(|(name, _)| *name == entry.name);
    match on_graph_entry.filter(|_| !on_graph::names_topology(request.argument)) {
        Some((_, build)) => build(&request, routes).map(Some),
        None => Ok(None),
    }
}

/// Returns whether the algorithm of that name is built on a graph.
#[must_use]
pub fn is_for_graphs(name: &str) -> bool {
    ON_GRAPH.iter().any(|(known, _)| *known == name)
}

/// Returns the closed form of `notation`, if it has one.
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

/// Splits the notation and checks the requirements of all algorithms.
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
    let request = Request { collective, ranks, argument };
    if argument.is_some() && entry.argument.is_empty() {
        return Err(request.refuse(entry.name, 0, "it takes no argument"));
    }
    Ok((entry, request))
}
