//! Concentrated mesh: routers on a mesh, several NPUs on each.
//!
//! After Balfour and Dally, "Design tradeoffs for tiled CMP on-chip networks", ICS 2006. `express`
//! adds their express channels to the routers on the edge, where a mesh has unused ports. If x is 0
//! or largest, row y is joined to row y + half of the rows. If y is 0 or largest, column x is
//! joined to column x + half of the columns.
//!
//! With `distance`, latency and length apply per NPU position. A mesh link is as long as its block
//! has NPUs along it, an express link as long as half of the grid.

use super::concentrated::Concentrated;
use super::dimensions::{Dimensions, among_routers};
use super::grid::Grid;
use super::{Entry, Family, Join, TopologyError, wrong};
use crate::{Builder, LinkParameters};
use tutti_units::ids::VertexId;

const NAME: &str = "cmesh";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "concentrated mesh: routers on a grid, several NPUs on each",
    argument: "SIZE[xSIZE...]:NPUS|BLOCKxBLOCK[x...][,express][,distance]",
    example: "cmesh:4x4:2x2",
    parse,
};

#[derive(Debug)]
struct ConcentratedMesh {
    routers: Concentrated,
    grid: Grid,
    express: bool,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let (routers, words) = Concentrated::parse(NAME, argument, &["express"], false)?;
    let express = words.iter().find(|&&word| word == "express");
    if let Some(word) = express
        && !matches!(routers.sizes[..], [x, y] if x % 2 == 0 && y % 2 == 0)
    {
        let problem = "express links join the halves of an edge; expected two dimensions of even \
                       sizes, such as `4x4`";
        return Err(wrong(NAME, argument, word, problem.to_owned()));
    }
    let grid = Grid::new(routers.sizes.clone(), false);
    Ok(Box::new(ConcentratedMesh { express: express.is_some(), routers, grid }))
}

impl ConcentratedMesh {
    /// Columns and rows, if there are express links.
    fn rim(&self) -> Option<(u32, u32)> {
        match self.grid.sizes() {
            &[columns, rows] if self.express => Some((columns, rows)),
            _ => None,
        }
    }

    fn join_express(&self, builder: &mut Builder, routers: &[VertexId], link: LinkParameters) {
        let Some((columns, rows)) = self.rim() else { return };
        let at = |x: u32, y: u32| routers[(x + columns * y) as usize];
        let upwards = self.routers.along(1, (rows / 2) as usize, link);
        let sideways = self.routers.along(0, (columns / 2) as usize, link);
        for y in 0..rows / 2 {
            for x in [0, columns - 1] {
                builder.cable(at(x, y), at(x, y + rows / 2), upwards);
            }
        }
        for x in 0..columns / 2 {
            for y in [0, rows - 1] {
                builder.cable(at(x, y), at(x + columns / 2, y), sideways);
            }
        }
    }

    /// The router at the other end of the express link that a message takes, if any.
    fn shortcut(&self, at: u32, destination: u32) -> Option<u32> {
        let (columns, rows) = self.rim()?;
        let ((x, y), (to_x, to_y)) =
            ((at % columns, at / columns), (destination % columns, destination / columns));
        if x != to_x {
            let along_rim = y == 0 || y == rows - 1;
            return Some(across(x, to_x, columns).filter(|_| along_rim)? + columns * y);
        }
        let along_rim = x == 0 || x == columns - 1;
        Some(x + columns * across(y, to_y, rows).filter(|_| along_rim)?)
    }
}

/// The other end of an express link, if the destination is at least as far. Paths then never
/// overshoot, and dimension order stays deadlock-free.
fn across(here: u32, there: u32, size: u32) -> Option<u32> {
    let half = size / 2;
    let other = if here < half { here + half } else { here - half };
    (here.abs_diff(there) >= half).then_some(other)
}

impl Family for ConcentratedMesh {
    fn notation(&self) -> String {
        self.routers.notation(NAME, &[(self.express, "express")])
    }

    fn size(&self) -> u64 {
        self.routers.size()
    }

    fn added_vertices(&self) -> u64 {
        self.routers.routers()
    }

    fn link_count(&self) -> u64 {
        let express = self.rim().map_or(0, |(columns, rows)| u64::from(columns) + u64::from(rows));
        self.size().saturating_add(express).saturating_mul(2).saturating_add(self.grid.link_count())
    }

    fn link_classes(&self) -> Vec<String> {
        let mut classes = self.routers.link_classes();
        classes.extend(self.express.then(|| "express".to_owned()));
        classes
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        let routers = self.routers.join_npus(builder, members, links[0], prefix);
        let dimensions = self.grid.sizes().len();
        let along = links[1..=dimensions].iter().enumerate();
        let along: Vec<LinkParameters> =
            along.map(|(dimension, &link)| self.routers.along(dimension, 1, link)).collect();
        let members = &routers[..];
        self.grid.join(Join { builder: &mut *builder, members, links: &along, prefix });
        if let Some(&link) = links.get(dimensions + 1) {
            self.join_express(builder, &routers, link);
        }
        None
    }

    /// Without a closed form for express links.
    fn diameter(&self) -> Option<u32> {
        if self.express { None } else { self.grid.diameter()?.checked_add(2) }
    }

    /// The cut across the longest dimension, if its size is even.
    ///
    /// Suppose every NPU sends one message to every other, lowest dimension first. With C NPUs on
    /// each of P routers and k the longest size, a link carries at most max(C^2 P k / 4, C P)
    /// messages. Halves of the NPUs send each other (C P / 2)^2, so P / k links are needed, except
    /// if C k < 4. Then k is 2, and on a hypercube of single NPUs no cut has fewer than P / 2 links
    /// either (Lindsey 1964, as for a HyperX).
    fn bisection(&self) -> Option<u64> {
        if self.express {
            return None;
        }
        if self.added_vertices() == 1 {
            return Some(self.size() / 2);
        }
        self.grid.bisection()
    }

    /// Express links do not lead to neighbours.
    fn router_grid(&self) -> Option<&Grid> {
        (!self.express).then_some(&self.grid)
    }

    fn member_sizes(&self) -> Option<Vec<u32>> {
        self.routers.member_sizes()
    }

    fn dimensions(&self) -> Option<&dyn Dimensions> {
        Some(self)
    }

    /// One NPU of each router.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        let first = |router| u32::try_from(self.routers.first_npu(router)).ok().map(VertexId);
        (0..self.added_vertices()).map(first).collect()
    }
}

impl Dimensions for ConcentratedMesh {
    fn next_in_order(&self, at: VertexId, destination: VertexId) -> Option<VertexId> {
        among_routers(self.size(), at, destination, |at, destination| {
            let straight = self.grid.next_towards(at, destination)?;
            Some(self.shortcut(at, destination).unwrap_or(straight))
        })
    }
}

#[cfg(test)]
mod tests;
