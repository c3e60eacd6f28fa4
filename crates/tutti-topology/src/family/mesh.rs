//! Mesh: members on a grid, each linked to its neighbours along every dimension.

use super::grid::Grid;
use super::{Entry, Family, TopologyError};
use crate::{Builder, LinkParameters};
use tutti_units::ids::VertexId;

const NAME: &str = "mesh";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a grid of any number of dimensions",
    argument: "SIZE[xSIZE...]",
    example: "mesh:4x2x2",
    parse,
};

#[derive(Debug)]
struct Mesh(Grid);

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    Ok(Box::new(Mesh(Grid::parse(NAME, argument, false)?)))
}

impl Family for Mesh {
    fn notation(&self) -> String {
        self.0.notation(NAME)
    }

    fn size(&self) -> u64 {
        self.0.members()
    }

    fn link_count(&self) -> u64 {
        self.0.link_count()
    }

    fn link_classes(&self) -> Vec<String> {
        self.0.link_classes()
    }

    fn join(
        &self,
        builder: &mut Builder,
        members: &[VertexId],
        links: &[LinkParameters],
        _prefix: &str,
    ) -> Option<VertexId> {
        self.0.join(builder, members, links);
        None
    }

    fn diameter(&self) -> Option<u32> {
        self.0.diameter()
    }

    fn bisection(&self) -> Option<u64> {
        self.0.bisection()
    }

    fn grid(&self) -> Option<&Grid> {
        Some(&self.0)
    }
}
