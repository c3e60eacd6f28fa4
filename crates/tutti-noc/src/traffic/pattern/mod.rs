//! Destination patterns by name. One line of [`REGISTRY`] per pattern, one file per family.

mod call;
mod chosen;
mod grid;
mod permutation;
mod shifted;
mod skewed;
#[cfg(test)]
mod tests;
mod uniform;

use std::fmt;
use std::sync::Arc;

use super::TrafficError;
use super::draw::{Stream, Weighted, below, bits};
use call::Call;

/// Every pattern there is.
pub const REGISTRY: &[Entry] = &[
    uniform::UNIFORM,
    uniform::OTHERS,
    uniform::BACKGROUND,
    shifted::TRANSPOSE,
    shifted::COMPLEMENT,
    shifted::REVERSE,
    shifted::SHUFFLE,
    grid::TORNADO,
    grid::NEIGHBOUR,
    grid::BAD_YARC,
    skewed::DIAGONAL,
    skewed::ASYMMETRIC,
    skewed::TAPER64,
    skewed::BAD_DRAGONFLY,
    permutation::RANDOM,
    permutation::GIVEN,
    permutation::DESTINATIONS,
    chosen::HOTSPOT,
    chosen::ONE_TO_MANY,
    chosen::MANY_TO_ONE,
    chosen::MATRIX,
];

/// Names of BookSim 2 for patterns of [`REGISTRY`].
const ALIASES: &[(&str, &str)] = &[
    ("neighbor", "neighbour"),
    ("bitcomp", "bit_complement"),
    ("bitrev", "bit_reverse"),
    ("shuffle", "bit_shuffle"),
];

/// A line of the registry.
pub struct Entry {
    /// Its name in configuration files and results.
    pub name: &'static str,
    /// What follows the name and a colon; empty where nothing does.
    pub argument: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    build: fn(&Call<'_>) -> Result<Rule, TrafficError>,
}

/// Where the packets of each node go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    nodes: u32,
    rule: Rule,
}

/// What a destination is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// One destination for each node, or none.
    Fixed(Arc<[Option<u32>]>),
    /// Any node.
    Uniform,
    /// Any node but the source.
    Others,
    /// Any of these.
    Among(Arc<Weighted>),
    /// Any of these, from one node only.
    From(u32, Arc<Weighted>),
    /// For each node, any of these, or none.
    Rows(Arc<[Option<Weighted>]>),
    Diagonal,
    Asymmetric,
    Taper64,
    /// Any node of the next group of so many.
    NextGroup(u32),
    /// Any node of the column of so many that has the number of the source's row.
    Yarc(u32),
}

impl Pattern {
    /// A pattern from its notation, `name` or `name:argument`, as [`REGISTRY`] lists them. `grid`
    /// gives the nodes along each dimension, nearest neighbours first, concentration included.
    ///
    /// # Errors
    /// When there is no such pattern, its argument cannot be read, or it is not defined for these
    /// nodes.
    pub fn parse(text: &str, nodes: u32, grid: Option<&[u32]>) -> Result<Pattern, TrafficError> {
        let text = text.trim();
        let (name, argument) = match text.split_once(':') {
            None => (text, None),
            Some((name, argument)) => (name.trim(), Some(argument.trim())),
        };
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        let name = alias.map_or(name, |(_, name)| name);
        let named = |name: &str| REGISTRY.iter().find(|entry| entry.name == name);
        let entry = named(name).ok_or_else(|| {
            if let Some(entry) = name.split_once('(').and_then(|(name, _)| named(name)) {
                return Call { text, entry, argument, nodes, grid }.malformed();
            }
            let known: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
            TrafficError::UnknownPattern { name: name.to_owned(), known: known.join(", ") }
        })?;
        let call = Call { text, entry, argument, nodes, grid };
        call.at_least(1, "at least one")?;
        if entry.argument.is_empty() && argument.is_some() {
            return Err(call.malformed());
        }
        Ok(Pattern { text: text.to_owned(), nodes, rule: (entry.build)(&call)? })
    }

    /// For how many nodes it is defined.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Whether a node sends packets at all.
    #[must_use]
    pub fn sends(&self, source: u32) -> bool {
        match &self.rule {
            Rule::Fixed(destinations) => destinations[source as usize].is_some(),
            Rule::From(only, _) => source == *only,
            Rule::Rows(rows) => rows[source as usize].is_some(),
            _ => true,
        }
    }

    /// Where the packet of that number from `source` goes; nowhere from a node that does not send.
    ///
    /// # Panics
    /// When there is no such source.
    #[inline]
    #[must_use]
    pub fn destination(&self, seed: u64, source: u32, serial: u64) -> Option<u32> {
        assert!(source < self.nodes, "source {source} is not below {} nodes", self.nodes);
        let bits = |stream| bits(seed, stream, source, serial);
        Some(match &self.rule {
            Rule::Fixed(destinations) => return destinations[source as usize],
            Rule::From(only, _) if source != *only => return None,
            Rule::Rows(rows) => rows[source as usize].as_ref()?.draw(bits(Stream::Destination)),
            Rule::Among(nodes) | Rule::From(_, nodes) => nodes.draw(bits(Stream::Destination)),
            Rule::Uniform => below(bits(Stream::Destination), self.nodes),
            Rule::Others => uniform::other(bits(Stream::Destination), source, self.nodes),
            Rule::Diagonal => skewed::diagonal(bits(Stream::Destination), source, self.nodes),
            Rule::Asymmetric => skewed::asymmetric(bits(Stream::Destination), source, self.nodes),
            Rule::Taper64 => skewed::taper64(bits(Stream::Near), bits(Stream::Destination), source),
            Rule::NextGroup(group) => {
                skewed::next_group(bits(Stream::Destination), source, self.nodes, *group)
            }
            Rule::Yarc(side) => below(bits(Stream::Destination), *side) * side + source / side,
        })
    }

    /// The probability of each destination.
    #[must_use]
    pub fn shares(&self) -> Shares<'_> {
        let weights = match &self.rule {
            Rule::Among(nodes) | Rule::From(_, nodes) => nodes.shares(self.nodes),
            _ => Vec::new(),
        };
        Shares { pattern: self, weights }
    }

    fn fixed(nodes: u32, destination: impl Fn(u32) -> u32) -> Rule {
        Rule::Fixed((0..nodes).map(|source| Some(destination(source))).collect())
    }
}

/// The probabilities of the destinations of a pattern.
pub struct Shares<'a> {
    pattern: &'a Pattern,
    /// By destination, where sources share them.
    weights: Vec<f64>,
}

impl Shares<'_> {
    /// The fraction of the packets of `source` for a destination; 0 from a node that does not send.
    #[must_use]
    pub fn of(&self, source: u32, destination: u32) -> f64 {
        let nodes = self.pattern.nodes;
        let of_several = |is_one: bool, several: u32| {
            if is_one { 1.0 / f64::from(several) } else { 0.0 }
        };
        match &self.pattern.rule {
            Rule::Fixed(all) => of_several(all[source as usize] == Some(destination), 1),
            Rule::Uniform => 1.0 / f64::from(nodes),
            Rule::Others => of_several(source != destination, nodes - 1),
            Rule::From(only, _) if source != *only => 0.0,
            Rule::Among(_) | Rule::From(..) => self.weights[destination as usize],
            Rule::Rows(rows) => {
                rows[source as usize].as_ref().map_or(0.0, |row| row.share(destination))
            }
            Rule::Diagonal => skewed::diagonal_share(source, destination, nodes),
            Rule::Asymmetric => of_several(
                destination % (nodes / 2) == source % (nodes / 2) && destination < nodes / 2 * 2,
                2,
            ),
            Rule::Taper64 => skewed::taper64_share(source, destination),
            Rule::NextGroup(group) => {
                let next = (source / group + 1) % (nodes / group);
                of_several(destination / group == next, *group)
            }
            Rule::Yarc(side) => of_several(destination % side == source / side, *side),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
