//! The families of topologies: an argument in, links out. One file each, one line in [`REGISTRY`].
//!
//! A topology is asked for in the notation `name:argument`, such as `ring:8`, `torus:4x4x4` or
//! `hierarchical:switch:8/ring:16`. What its links are like is given beside it: one set of
//! [`LinkParameters`] for all, or one for each of [`Family::link_classes`].

mod butterfly;
mod bypass;
mod cmesh;
mod concentrated;
mod dimensions;
mod dragonfly;
mod edges;
mod fat_tree;
mod flattened_butterfly;
mod fully_connected;
mod grid;
mod hierarchical;
mod hyperx;
mod keyed;
mod rail_optimized;
mod ring;
mod rows;
mod switch;

use std::fmt;
use std::sync::Arc;

pub use dimensions::Dimensions;
pub use dragonfly::Dragonfly;
pub use fat_tree::{FatTree, TreePosition};
pub use grid::Grid;

use super::builder::{Builder, check_counts};
use super::error::TopologyError;
use super::graph::{LinkParameters, Topology};
use tutti_units::ids::VertexId;

/// What a family joins, and where.
pub struct Join<'a> {
    /// Gets the links, and the vertices that the family adds.
    pub builder: &'a mut Builder,
    /// Exactly [`Family::size`] of them.
    pub members: &'a [VertexId],
    /// One set of parameters per link class.
    pub links: &'a [LinkParameters],
    /// How the names of added vertices begin.
    pub prefix: &'a str,
}

/// A family with its argument: how it joins members, and what is known of it in closed form.
///
/// The members are NPUs, or, in the outer levels of a hierarchy, whatever stands for a group.
pub trait Family: fmt::Debug + Send + Sync {
    /// The notation that builds it again.
    fn notation(&self) -> String;

    /// How many members it joins; at least one.
    fn size(&self) -> u64;

    /// How many vertices it adds to its members.
    fn added_vertices(&self) -> u64 {
        0
    }

    /// How many links it makes.
    fn link_count(&self) -> u64;

    /// The kinds of link whose parameters may differ, in the order in which they are given.
    fn link_classes(&self) -> Vec<String> {
        vec!["every link".to_owned()]
    }

    /// Links the members. The vertex that stands for the whole group towards the outside is returned, if it
    /// has one.
    fn join(&self, join: Join<'_>) -> Option<VertexId>;

    /// Whether [`Family::join`] returns a vertex.
    fn has_hub(&self) -> bool {
        false
    }

    /// The most hops between two members, where there is a closed form.
    fn diameter(&self) -> Option<u32> {
        None
    }

    /// The fewest links, counted in one direction, that join two halves of the members (which differ
    /// by one where their number is odd), where there is a closed form.
    fn bisection(&self) -> Option<u64> {
        None
    }

    /// The grid that its members are on.
    fn grid(&self) -> Option<&Grid> {
        None
    }

    /// The grid that routers are on: the members' own, or that of the routers beside them.
    fn router_grid(&self) -> Option<&Grid> {
        self.grid()
    }

    /// The members along each dimension, where they count along the rows of a grid.
    fn member_sizes(&self) -> Option<Vec<u32>> {
        self.grid().map(|grid| grid.sizes().to_vec())
    }

    /// Its dimensions, for dimension-order routing: of the members' grid, or of the routers beside them.
    fn dimensions(&self) -> Option<&dyn Dimensions> {
        self.grid().map(|grid| grid as &dyn Dimensions)
    }

    /// The routers along each dimension, where every two of a row are joined; the first is the fastest.
    fn row_sizes(&self) -> Option<&[u32]> {
        None
    }

    /// Where its groups are, for what routes by groups.
    fn dragonfly(&self) -> Option<&Dragonfly> {
        None
    }

    /// Its levels, for D-mod-K.
    fn fat_tree(&self) -> Option<&FatTree> {
        None
    }

    /// Whether some members may be out of reach of others.
    fn may_be_disconnected(&self) -> bool {
        false
    }

    /// Whether routes take all links between the same two vertices as one bundle: each packet crosses the
    /// one with the shortest wait.
    fn shares_bundles(&self) -> bool {
        false
    }

    /// NPUs such that every distance between two NPUs is one from them, by symmetry. All NPUs where
    /// there is no symmetry to use.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        None
    }
}

/// A line of the registry.
pub struct Entry {
    /// Its name in the notation.
    pub name: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    /// What follows the colon, as shown to people.
    pub argument: &'static str,
    /// A small instance, for documentation and tests.
    pub example: &'static str,
    /// Reads the argument.
    pub parse: fn(&str) -> Result<Box<dyn Family>, TopologyError>,
}

/// Every family there is.
pub const REGISTRY: &[Entry] = &[
    fully_connected::ENTRY,
    ring::ENTRY,
    grid::MESH,
    grid::TORUS,
    switch::ENTRY,
    fat_tree::ENTRY,
    dragonfly::ENTRY,
    hyperx::ENTRY,
    cmesh::ENTRY,
    flattened_butterfly::ENTRY,
    butterfly::ENTRY,
    bypass::ENTRY,
    rail_optimized::ENTRY,
    hierarchical::ENTRY,
    edges::ENTRY,
];

/// The entry of that name.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> Result<&'static Entry, TopologyError> {
    REGISTRY.iter().find(|entry| entry.name == name).ok_or_else(|| TopologyError::UnknownFamily {
        name: name.to_owned(),
        known: REGISTRY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

/// Reads the notation without building anything; sizes are within the limits.
///
/// # Errors
/// When there is no such family, its argument does not fit, or it would be too large.
pub fn parse(notation: &str) -> Result<Box<dyn Family>, TopologyError> {
    let (name, argument) = notation.split_once(':').unwrap_or((notation, ""));
    let family = (find(name.trim())?.parse)(argument.trim())?;
    let (npus, links) = (family.size(), family.link_count());
    let vertices = npus.saturating_add(family.added_vertices());
    check_counts(npus, vertices, links)?;
    Ok(family)
}

/// Builds `notation` with one set of link parameters for all links, or one for each link class.
///
/// # Errors
/// When the notation or the link parameters do not fit.
pub fn build(notation: &str, links: &[LinkParameters]) -> Result<Topology, TopologyError> {
    let family: Arc<dyn Family> = parse(notation)?.into();
    let classes = family.link_classes();
    let links = match links {
        [one] => vec![*one; classes.len()],
        many if many.len() == classes.len() => many.to_vec(),
        _ => {
            return Err(TopologyError::WrongLinks {
                topology: family.notation(),
                given: links.len(),
                expected: classes.len(),
                classes,
            });
        }
    };
    let npus = u32::try_from(family.size()).unwrap_or(u32::MAX);
    let mut builder = Builder::new(family.notation(), npus);
    let members: Vec<VertexId> = (0..npus).map(VertexId).collect();
    family.join(Join { builder: &mut builder, members: &members, links: &links, prefix: "" });
    builder.set_family(family);
    builder.build()
}

/// Points at what is wrong with an argument; `part` is the piece of `argument` it is about.
fn wrong(family: &'static str, argument: &str, part: &str, problem: String) -> TopologyError {
    // `part` is a slice of `argument`, so their distance in memory is its position.
    let at = (part.as_ptr() as usize).saturating_sub(argument.as_ptr() as usize);
    let at = if at <= argument.len() { at } else { 0 };
    TopologyError::Argument { family, argument: argument.to_owned(), at, problem }
}

/// Reads a whole number of at least `least` from `part`, a piece of `argument`.
fn count(
    family: &'static str,
    argument: &str,
    part: &str,
    least: u64,
) -> Result<u64, TopologyError> {
    let problem = |found: String| format!("{found}; expected a whole number of at least {least}");
    let text = part.trim();
    if text.is_empty() {
        return Err(wrong(family, argument, part, problem("a number is missing".to_owned())));
    }
    match text.parse::<u32>() {
        Ok(value) if u64::from(value) >= least && text.bytes().all(|b| b.is_ascii_digit()) => {
            Ok(u64::from(value))
        }
        Ok(_) => Err(wrong(family, argument, text, problem(format!("`{text}` is too small")))),
        Err(_) => Err(wrong(family, argument, text, problem(format!("found `{text}`")))),
    }
}

#[cfg(test)]
mod tests;
