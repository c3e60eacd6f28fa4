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

use crate::collective::Collective;
use crate::{Phase, Schedule, Sequence, Shape};
use sizes::Misfit;
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

impl Request<'_> {
    /// The notation that asks for this: the name of the schedule.
    fn notation(&self, name: &str) -> String {
        self.argument.map_or_else(|| name.to_owned(), |argument| format!("{name}:{argument}"))
    }

    /// The shape of a schedule that works in place.
    fn shape(&self, name: &str, chunks: u32, slots: u32) -> Shape {
        Shape::in_place(self.notation(name), self.collective, self.ranks, chunks, slots)
    }

    /// The error of an argument that does not fit at byte `at`.
    fn refuse(&self, name: &'static str, at: usize, problem: impl Into<String>) -> AlgorithmError {
        let argument = self.argument.unwrap_or_default().to_owned();
        AlgorithmError::Argument { name, argument, at, problem: problem.into() }
    }

    /// The same for a misfit.
    fn misfit(&self, name: &'static str, misfit: Misfit) -> AlgorithmError {
        self.refuse(name, misfit.at, misfit.problem)
    }

    /// The error of a rank count that the algorithm does not work for.
    fn wrong_ranks(&self, name: &'static str, needs: impl Into<String>) -> AlgorithmError {
        AlgorithmError::WrongRanks { name, ranks: self.ranks, needs: needs.into() }
    }

    /// Two sizes that make up the ranks and are as alike as they can be, the smaller first.
    fn two_alike(&self, name: &'static str) -> Result<Vec<u32>, AlgorithmError> {
        let needs = || self.wrong_ranks(name, "a product of two sizes of at least 2");
        sizes::two_alike(self.ranks).ok_or_else(needs)
    }

    /// Reads an argument that is a whole number of at least `least`: `default` without one. The problems are
    /// those of a number below, and of what is no number.
    fn number(
        &self,
        name: &'static str,
        default: u32,
        least: u32,
        [below, no_number]: [&str; 2],
    ) -> Result<u32, AlgorithmError> {
        let Some(argument) = self.argument else { return Ok(default) };
        let problem = match argument.trim().parse::<u32>() {
            Ok(number) if number >= least => return Ok(number),
            Ok(_) => below,
            Err(_) => no_number,
        };
        Err(self.refuse(name, argument.len() - argument.trim_start().len(), problem))
    }

    /// Reads an argument that is one of these words: the first without one.
    fn one_of<T: Copy>(
        &self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Result<T, AlgorithmError> {
        let asked = self.argument.unwrap_or(words[0].0);
        let found = words.iter().find(|(word, _)| *word == asked);
        found.map(|&(_, meaning)| meaning).ok_or_else(|| {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let (last, others) = known.split_last().expect("there is a word to choose");
            self.refuse(name, 0, format!("expected {} or {last}", others.join(", ")))
        })
    }

    /// Lays out algorithms one after the other on the ranks of the request, each with its default argument.
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
        let whole = Sequence::new(self.notation(name), self.collective, phases);
        Ok(Arc::new(whole.expect("all phases have the same ranks and shards, and work in place")))
    }

    /// The stages of such a sequence, where each phase has a closed form.
    fn stages_in_sequence(&self, phases: &[(&Entry, Collective)]) -> Option<Vec<Stage>> {
        let stages = phases.iter().map(|&(entry, collective)| {
            (entry.critical_path)(&Request { collective, ranks: self.ranks, argument: None })
        });
        Some(stages.collect::<Option<Vec<_>>>()?.concat())
    }
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "AlgorithmError")]
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
    let request = Request { collective, ranks, argument };
    if argument.is_some() && entry.argument.is_empty() {
        return Err(request.refuse(entry.name, 0, "it takes no argument"));
    }
    Ok((entry, request))
}
