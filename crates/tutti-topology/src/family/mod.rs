//! The families of topologies, one file each and one line in [`REGISTRY`].
//!
//! A topology is requested in the notation `name:argument`, such as `ring:8`, `torus:4x4x4` or
//! `hierarchical:switch:8/ring:16`. The caller gives its link parameters separately: one set of
//! [`LinkParameters`] for all links, or one for each of [`Family::link_classes`].

mod butterfly;
mod bypass;
mod chiplet_mesh;
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

/// The input of [`Family::join`].
pub struct Join<'a> {
    /// Receives the links, and the vertices that the family adds.
    pub builder: &'a mut Builder,
    /// Exactly [`Family::size`] of them.
    pub members: &'a [VertexId],
    /// One set of parameters per link class.
    pub links: &'a [LinkParameters],
    /// The prefix of the names of added vertices.
    pub prefix: &'a str,
}

/// A family with its argument: it joins members, and may know closed forms.
///
/// The members are NPUs or, in the outer levels of a hierarchy, the vertices that represent groups.
pub trait Family: fmt::Debug + Send + Sync {
    /// The notation that builds it again.
    fn notation(&self) -> String;

    /// The number of members; at least one.
    fn size(&self) -> u64;

    /// The number of vertices added to the members.
    fn added_vertices(&self) -> u64 {
        0
    }

    /// The number of links.
    fn link_count(&self) -> u64;

    /// The link classes whose parameters may differ, in the order in which they are given.
    fn link_classes(&self) -> Vec<String> {
        vec!["every link".to_owned()]
    }

    /// Links the members. Returns the vertex that represents the entire group, if there is one.
    fn join(&self, join: Join<'_>) -> Option<VertexId>;

    /// Whether [`Family::join`] returns a vertex.
    fn has_hub(&self) -> bool {
        false
    }

    /// The most hops between two members, if there is a closed form.
    fn diameter(&self) -> Option<u32> {
        None
    }

    /// Links per direction across the bisection of the members, if there is a closed form. Halves
    /// of an odd number of members differ by one.
    fn bisection(&self) -> Option<u64> {
        None
    }

    /// The grid of the members.
    fn grid(&self) -> Option<&Grid> {
        None
    }

    /// The grid of the routers: the members, or the routers they attach to.
    fn router_grid(&self) -> Option<&Grid> {
        self.grid()
    }

    /// The members along each dimension, if they are numbered along the rows of a grid.
    fn member_sizes(&self) -> Option<Vec<u32>> {
        self.grid().map(|grid| grid.sizes().to_vec())
    }

    /// The dimensions for dimension-order routing: those of the members' grid, or of the routers
    /// they attach to.
    fn dimensions(&self) -> Option<&dyn Dimensions> {
        self.grid().map(|grid| grid as &dyn Dimensions)
    }

    /// The routers along each dimension, if every two of a row are joined; the first varies
    /// fastest.
    fn row_sizes(&self) -> Option<&[u32]> {
        None
    }

    /// The groups, for minimal routing.
    fn dragonfly(&self) -> Option<&Dragonfly> {
        None
    }

    /// The levels, for D-mod-K routing.
    fn fat_tree(&self) -> Option<&FatTree> {
        None
    }

    /// Whether some members may be unable to reach others.
    fn may_be_disconnected(&self) -> bool {
        false
    }

    /// Whether routes use parallel links as one bundle: each packet takes the link with the
    /// shortest wait.
    fn shares_bundles(&self) -> bool {
        false
    }

    /// NPUs such that, by symmetry, every distance between two NPUs is a distance from one of them;
    /// `None` stands for all NPUs.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        None
    }
}

/// An entry of the registry.
pub struct Entry {
    /// The name in the notation.
    pub name: &'static str,
    /// A summary for lists.
    pub summary: &'static str,
    /// The syntax of the argument, for lists.
    pub argument: &'static str,
    /// A small instance, for documentation and tests.
    pub example: &'static str,
    /// Parses the argument.
    pub parse: fn(&str) -> Result<Box<dyn Family>, TopologyError>,
}

/// All families.
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
    chiplet_mesh::ENTRY,
    rail_optimized::ENTRY,
    hierarchical::ENTRY,
    edges::ENTRY,
];

/// Returns the entry of that name.
///
/// # Errors
/// The name is unknown.
pub fn find(name: &str) -> Result<&'static Entry, TopologyError> {
    REGISTRY.iter().find(|entry| entry.name == name).ok_or_else(|| TopologyError::UnknownFamily {
        name: name.to_owned(),
        known: REGISTRY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

/// Parses the notation and checks the limits, without building the graph.
///
/// # Errors
/// The family is unknown, its argument is invalid, or the graph exceeds a limit.
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
/// The notation or the link parameters are invalid.
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

/// Places an error at `part`, a slice of `argument`.
fn wrong(family: &'static str, argument: &str, part: &str, problem: String) -> TopologyError {
    // `part` is a slice of `argument`, so their distance in memory is its position.
    let at = (part.as_ptr() as usize).saturating_sub(argument.as_ptr() as usize);
    let at = if at <= argument.len() { at } else { 0 };
    TopologyError::Argument { family, argument: argument.to_owned(), at, problem }
}

/// Parses an integer of at least `least` from `part`, a slice of `argument`.
fn count(
    family: &'static str,
    argument: &str,
    part: &str,
    least: u64,
) -> Result<u64, TopologyError> {
    let problem = |found: String| format!("{found}; expected an integer of at least {least}");
    let text = part.trim();
    if text.is_empty() {
        return Err(wrong(family, argument, part, problem("a number is missing".to_owned())));
    }
    match text.parse::<u32>() {
        Ok(value) if u64::from(value) >= least && text.bytes().all(|b| b.is_ascii_digit()) => {
            Ok(u64::from(value))
        }
        Ok(_) => Err(wrong(family, argument, text, problem(format!("`{text}` is too small")))),
        Err(_) if text.bytes().all(|b| b.is_ascii_digit()) => {
            let problem = format!("`{text}` is too large; expected at most {}", u32::MAX);
            Err(wrong(family, argument, text, problem))
        }
        Err(_) => Err(wrong(family, argument, text, problem(format!("found `{text}`")))),
    }
}

#[cfg(test)]
mod tests;
