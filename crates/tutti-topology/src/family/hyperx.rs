//! HyperX: switches on a grid, every two that differ in one dimension joined directly.
//!
//! The letters are those of Ahn, Binkert, Davis, McLaren and Schreiber, "HyperX: topology, routing,
//! and packaging of efficient large-scale networks", SC 2009. S are the sizes of any number of
//! dimensions, T the NPUs (terminals) on each switch, and K the cables between two switches of a
//! dimension. A flattened butterfly (Kim, Dally and Abts, ISCA 2007), the k-ary n-flat, is
//! `s=kxkx...` in n - 1 dimensions with t=k. A group of a Cray XC is `s=16x6,k=1x3`.
//!
//! NPUs are numbered switch by switch; the first dimension of the switches varies fastest.

use super::dimensions::{Dimensions, among_routers};
use super::keyed::{Keyed, crossed};
use super::rows::Rows;
use super::{Entry, Family, Join, TopologyError};
use tutti_units::ids::VertexId;

const NAME: &str = "hyperx";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "switches on a grid, a cable between every two of each row",
    argument: "s=SIZE[xSIZE...][,t=NPUS][,k=CABLES[xCABLES...]]",
    example: "hyperx:s=3x3,t=2",
    parse,
};

#[derive(Debug)]
struct HyperX {
    rows: Rows,
    npus_per_switch: u32,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let keyed = Keyed::read(NAME, argument, &["s", "t", "k"], &[])?;
    let sizes = keyed.required("s", keyed.sizes("s", 1)?)?;
    let npus_per_switch = keyed.number("t", 1)?.unwrap_or(1);
    let cables = keyed.same_length("k", "s", sizes.len())?;
    let made = HyperX { rows: Rows { sizes, cables }, npus_per_switch };
    if made.size() < 2 {
        let problem = "a single NPU has no neighbour; expected at least 2".to_owned();
        return Err(keyed.wrong("s", problem));
    }
    Ok(Box::new(made))
}

impl Family for HyperX {
    fn notation(&self) -> String {
        let (sizes, npus) = (crossed(&self.rows.sizes), self.npus_per_switch);
        format!("{NAME}:s={sizes},t={npus}{}", self.rows.cables_notation())
    }

    fn size(&self) -> u64 {
        self.rows.switches().saturating_mul(u64::from(self.npus_per_switch))
    }

    fn added_vertices(&self) -> u64 {
        self.rows.switches()
    }

    fn link_count(&self) -> u64 {
        self.size().saturating_add(self.rows.cable_count()).saturating_mul(2)
    }

    fn link_classes(&self) -> Vec<String> {
        let dimensions =
            (0..self.rows.sizes.len()).map(|dimension| format!("dimension {dimension}"));
        std::iter::once("terminal".to_owned()).chain(dimensions).collect()
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        let on_switch = members.chunks(self.npus_per_switch as usize);
        let mut switches = Vec::new();
        for (number, npus) in on_switch.enumerate() {
            let switch = builder.switch(format!("{prefix}switch{number}"));
            for &npu in npus {
                builder.cable(npu, switch, links[0]);
            }
            switches.push(switch);
        }
        self.rows.join(builder, &switches, |dimension, _| links[1 + dimension]);
        None
    }

    fn diameter(&self) -> Option<u32> {
        Some(2 + self.rows.diameter())
    }

    fn bisection(&self) -> Option<u64> {
        self.rows.bisection(u64::from(self.npus_per_switch))
    }

    /// Switches are equivalent, and so are the NPUs of a switch.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        Some(vec![VertexId(0)])
    }

    fn row_sizes(&self) -> Option<&[u32]> {
        Some(&self.rows.sizes)
    }

    fn dimensions(&self) -> Option<&dyn Dimensions> {
        Some(self)
    }
}

impl Dimensions for HyperX {
    fn next_in_order(&self, at: VertexId, destination: VertexId) -> Option<VertexId> {
        among_routers(self.size(), at, destination, |at, to| self.rows.next_towards(at, to))
    }
}

#[cfg(test)]
mod tests;
