//! Flattened butterfly: routers on a grid, every two of a row joined directly, several NPUs on
//! each. Without the number of NPUs per router, the routers are the NPUs, and there are no terminal
//! links.
//!
//! After Kim, Balfour and Dally, "Flattened butterfly topology for on-chip networks", MICRO 2007.
//! Each router of a row of k has k - 1 links along it, where a mesh has 2. `equal_pins` gives a
//! router the bandwidth of one in a mesh with the given rates: the links along a row share the rate
//! of two mesh links, each 2 / (k - 1) of it. A row of two has one link, in a mesh too.
//!
//! With `distance`, latency and length apply per NPU position. A link between routers d apart spans
//! d times the NPUs of a block along it. A terminal link spans the distance of the NPU from the
//! middle of its block.
//!
//! Off-chip, with several cables between two switches, this is a HyperX.

use super::concentrated::Concentrated;
use super::dimensions::{Dimensions, among_routers};
use super::rows::Rows;
use super::{Entry, Family, Join, TopologyError};
use crate::LinkParameters;
use tutti_units::ids::VertexId;
use tutti_units::{TimePerByte, gcd};

const NAME: &str = "flattened_butterfly";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "routers on a grid, a cable between every two of each row, several NPUs on each",
    argument: "SIZE[xSIZE...][:NPUS|BLOCKxBLOCK[x...]][,equal_pins][,distance]",
    example: "flattened_butterfly:4x4:2x2",
    parse,
};

#[derive(Debug)]
struct FlattenedButterfly {
    routers: Concentrated,
    rows: Rows,
    equal_pins: bool,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let (routers, words) = Concentrated::parse(NAME, argument, &["equal_pins"], true)?;
    let sizes = routers.sizes.clone();
    let rows = Rows { cables: vec![1; sizes.len()], sizes };
    Ok(Box::new(FlattenedButterfly { routers, rows, equal_pins: words.contains(&"equal_pins") }))
}

impl FlattenedButterfly {
    /// The parameters of a link along a dimension, narrowed for `equal_pins`.
    fn along(&self, dimension: usize, link: LinkParameters) -> LinkParameters {
        let others = u64::from(self.rows.sizes[dimension]) - 1;
        if !self.equal_pins || others <= 2 {
            return link;
        }
        LinkParameters { rate: slower(link.rate, others, 2), ..link }
    }
}

/// The time per byte multiplied by `times / over`; exact unless its fraction has more than 64 bits.
fn slower(rate: TimePerByte, times: u64, over: u64) -> TimePerByte {
    let (ps, bytes) = rate.fraction();
    let (ps, bytes) = (u128::from(ps) * u128::from(times), u128::from(bytes) * u128::from(over));
    let common = gcd(ps, bytes);
    let (ps, bytes) = (ps / common, bytes / common);
    let excess = 64 - ps.max(bytes).leading_zeros().min(64);
    let narrow = |value: u128| u64::try_from(value >> excess).unwrap_or(u64::MAX);
    TimePerByte::new(narrow(ps), narrow(bytes).max(1)).unwrap_or(rate)
}

impl Family for FlattenedButterfly {
    fn notation(&self) -> String {
        self.routers.notation(NAME, &[(self.equal_pins, "equal_pins")])
    }

    fn size(&self) -> u64 {
        self.routers.size()
    }

    fn added_vertices(&self) -> u64 {
        if self.routers.are_npus() { 0 } else { self.routers.routers() }
    }

    fn link_count(&self) -> u64 {
        let terminal = if self.routers.are_npus() { 0 } else { self.size() };
        terminal.saturating_add(self.rows.cable_count()).saturating_mul(2)
    }

    fn link_classes(&self) -> Vec<String> {
        self.routers.link_classes()
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        let routers = self.routers.join_npus(builder, members, links[0], prefix);
        self.rows.join(builder, &routers, |dimension, further| {
            let terminal = usize::from(!self.routers.are_npus());
            let link = self.along(dimension, links[terminal + dimension]);
            self.routers.along(dimension, further, link)
        });
        None
    }

    fn diameter(&self) -> Option<u32> {
        let terminal = if self.routers.are_npus() { 0 } else { 2 };
        Some(terminal + self.rows.diameter())
    }

    fn bisection(&self) -> Option<u64> {
        if self.routers.are_npus() {
            return self.rows.bisection_of_switches();
        }
        self.rows.bisection(self.routers.npus_per_router())
    }

    /// Routers are equivalent, and so are the NPUs of a router.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        Some(vec![VertexId(0)])
    }

    fn member_sizes(&self) -> Option<Vec<u32>> {
        self.routers.member_sizes()
    }

    fn row_sizes(&self) -> Option<&[u32]> {
        Some(&self.rows.sizes)
    }

    fn dimensions(&self) -> Option<&dyn Dimensions> {
        Some(self)
    }
}

impl Dimensions for FlattenedButterfly {
    fn next_in_order(&self, at: VertexId, destination: VertexId) -> Option<VertexId> {
        let npus = if self.routers.are_npus() { 0 } else { self.size() };
        among_routers(npus, at, destination, |at, to| self.rows.next_towards(at, to))
    }
}

#[cfg(test)]
mod tests;
