//! Switch: every member is cabled to one switch in the middle.

use super::{Entry, Family, Join, TopologyError, count};
use tutti_units::ids::VertexId;

const NAME: &str = "switch";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "every NPU is cabled to one switch",
    argument: "NPUS",
    example: "switch:8",
    parse,
};

#[derive(Debug)]
struct Switch {
    members: u64,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    Ok(Box::new(Switch { members: count(NAME, argument, argument, 2)? }))
}

impl Family for Switch {
    fn notation(&self) -> String {
        format!("{NAME}:{}", self.members)
    }

    fn size(&self) -> u64 {
        self.members
    }

    fn added_vertices(&self) -> u64 {
        1
    }

    fn link_count(&self) -> u64 {
        2 * self.members
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        let switch = builder.switch(format!("{prefix}switch"));
        for &member in members {
            builder.cable(member, switch, links[0]);
        }
        Some(switch)
    }

    fn has_hub(&self) -> bool {
        true
    }

    fn diameter(&self) -> Option<u32> {
        Some(2)
    }

    fn bisection(&self) -> Option<u64> {
        Some(self.members / 2)
    }
}
