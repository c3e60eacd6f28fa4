//! Meshes and tori: members in rows along any number of dimensions; in a torus the rows are rings.

use super::keyed::{crossed, product, sizes};
use super::{Entry, Family, Join, TopologyError, wrong};
use tutti_units::ids::VertexId;

pub(super) const MESH: Entry = Entry {
    name: "mesh",
    summary: "a grid of any number of dimensions",
    argument: "SIZE[xSIZE...]",
    example: "mesh:4x2x2",
    parse: |argument| Ok(Box::new(Grid::parse("mesh", argument, false)?)),
};

pub(super) const TORUS: Entry = Entry {
    name: "torus",
    summary: "a grid of any number of dimensions whose rows are rings",
    argument: "SIZE[xSIZE...]",
    example: "torus:4x2x2",
    parse: |argument| Ok(Box::new(Grid::parse("torus", argument, true)?)),
};

/// Members on a grid. Member x0 + k0 (x1 + k1 (x2 + ...)) has the coordinates x0, x1, x2, ...: the
/// first dimension varies fastest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    sizes: Vec<u32>,
    wraps: bool,
}

impl Grid {
    pub(super) fn new(sizes: Vec<u32>, wraps: bool) -> Grid {
        Grid { sizes, wraps }
    }

    /// Parses sizes such as `4x4x2`.
    pub(super) fn parse(
        family: &'static str,
        argument: &str,
        wraps: bool,
    ) -> Result<Grid, TopologyError> {
        let grid = Grid { sizes: sizes(family, argument, argument, 1)?, wraps };
        if grid.members() < 2 {
            let problem = "a single member has no neighbour; expected at least 2".to_owned();
            return Err(wrong(family, argument, argument, problem));
        }
        Ok(grid)
    }

    /// The number of members along each dimension.
    #[must_use]
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Whether the last member of a row is linked to the first.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.wraps
    }

    /// The number of members; saturates, so that the caller can reject it.
    pub(super) fn members(&self) -> u64 {
        product(&self.sizes)
    }

    /// The cables of one row. A wrapped row of two needs one, which serves both directions.
    fn row_cables(&self, size: u32) -> u64 {
        u64::from(if self.wraps && size > 2 { size } else { size - 1 })
    }

    /// The next member from `at` towards `destination`, lowest dimension first. A wrapped row uses
    /// the shorter direction, and the ascending one if both are equal.
    pub fn next_towards(&self, at: u32, destination: u32) -> Option<u32> {
        let mut stride = 1;
        for &size in &self.sizes {
            let (here, there) = (at / stride % size, destination / stride % size);
            if here != there {
                let ascending = if here < there { there - here } else { there + size - here };
                let up = if self.wraps { ascending <= size - ascending } else { here < there };
                let base = at - here * stride;
                let position = match (up, here) {
                    (true, _) if here + 1 == size => 0,
                    (true, _) => here + 1,
                    (false, 0) => size - 1,
                    (false, _) => here - 1,
                };
                return Some(base + position * stride);
            }
            stride *= size;
        }
        None
    }
}

impl Family for Grid {
    fn notation(&self) -> String {
        let family = if self.wraps { TORUS.name } else { MESH.name };
        format!("{family}:{}", crossed(&self.sizes))
    }

    fn size(&self) -> u64 {
        self.members()
    }

    fn link_count(&self) -> u64 {
        let members = self.members();
        let cables = self.sizes.iter().map(|&size| {
            let rows = members / u64::from(size);
            rows.saturating_mul(self.row_cables(size))
        });
        cables.fold(0, |sum: u64, cables| sum.saturating_add(cables.saturating_mul(2)))
    }

    fn link_classes(&self) -> Vec<String> {
        (0..self.sizes.len()).map(|dimension| format!("dimension {dimension}")).collect()
    }

    fn join(&self, Join { builder, members, links, .. }: Join<'_>) -> Option<VertexId> {
        let mut stride = 1;
        for (&size, &parameters) in self.sizes.iter().zip(links) {
            let row = size as usize;
            for (index, &member) in members.iter().enumerate() {
                let position = index / stride % row;
                if position + 1 < row {
                    builder.cable(member, members[index + stride], parameters);
                } else if self.wraps && row > 2 {
                    builder.cable(member, members[index - stride * (row - 1)], parameters);
                }
            }
            stride *= row;
        }
        None
    }

    /// The most hops between two members.
    fn diameter(&self) -> Option<u32> {
        let along = |size: u32| if self.wraps { size / 2 } else { size - 1 };
        self.sizes.iter().try_fold(0_u32, |sum, &size| sum.checked_add(along(size)))
    }

    /// The cut across the longest dimension, which is the bisection if its size is even (Leighton,
    /// "Introduction to Parallel Algorithms and Architectures", 1992, section 1.9).
    fn bisection(&self) -> Option<u64> {
        let longest = *self.sizes.iter().max()?;
        let cut = if self.wraps && longest > 2 { 2 } else { 1 };
        longest.is_multiple_of(2).then(|| cut * (self.members() / u64::from(longest)))
    }

    fn grid(&self) -> Option<&Grid> {
        Some(self)
    }
}
