//! Fully connected: a cable between every two members.

use super::{Entry, Family, Join, TopologyError, count};
use tutti_units::ids::VertexId;

const NAME: &str = "fully_connected";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a cable between every two NPUs",
    argument: "NPUS",
    example: "fully_connected:4",
    parse,
};

#[derive(Debug)]
struct FullyConnected {
    members: u64,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    Ok(Box::new(FullyConnected { members: count(NAME, argument, argument, 2)? }))
}

impl Family for FullyConnected {
    fn notation(&self) -> String {
        format!("{NAME}:{}", self.members)
    }

    fn size(&self) -> u64 {
        self.members
    }

    fn link_count(&self) -> u64 {
        self.members * (self.members - 1)
    }

    fn join(&self, Join { builder, members, links, .. }: Join<'_>) -> Option<VertexId> {
        for (index, &a) in members.iter().enumerate() {
            for &b in &members[index + 1..] {
                builder.cable(a, b, links[0]);
            }
        }
        None
    }

    fn diameter(&self) -> Option<u32> {
        Some(1)
    }

    fn bisection(&self) -> Option<u64> {
        Some((self.members / 2) * self.members.div_ceil(2))
    }
}
