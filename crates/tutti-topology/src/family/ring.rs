//! Ring: every member is linked to the next, and the last to the first.

use super::{Entry, Family, Join, TopologyError, count, wrong};
use tutti_units::ids::VertexId;

const NAME: &str = "ring";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "every NPU is linked to the next, in both directions unless `unidirectional`",
    argument: "NPUS[,unidirectional]",
    example: "ring:8",
    parse,
};

#[derive(Debug)]
struct Ring {
    members: u64,
    unidirectional: bool,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let (size, option) = match argument.split_once(',') {
        Some((size, option)) => (size, Some(option)),
        None => (argument, None),
    };
    let unidirectional = match option.map(str::trim) {
        None | Some("bidirectional") => false,
        Some("unidirectional") => true,
        Some(other) => {
            let problem = format!("found `{other}`; expected unidirectional or bidirectional");
            return Err(wrong(NAME, argument, other, problem));
        }
    };
    Ok(Box::new(Ring { members: count(NAME, argument, size, 2)?, unidirectional }))
}

impl Ring {
    /// Two members need one cable.
    fn cables(&self) -> u64 {
        if self.members == 2 { 1 } else { self.members }
    }
}

impl Family for Ring {
    fn notation(&self) -> String {
        let option = if self.unidirectional { ",unidirectional" } else { "" };
        format!("{NAME}:{}{option}", self.members)
    }

    fn size(&self) -> u64 {
        self.members
    }

    fn link_count(&self) -> u64 {
        if self.unidirectional { self.members } else { 2 * self.cables() }
    }

    fn join(&self, Join { builder, members, links, .. }: Join<'_>) -> Option<VertexId> {
        let next = members.iter().cycle().skip(1);
        for (&member, &next) in members.iter().zip(next) {
            builder.link(member, next, links[0]);
            if !self.unidirectional && self.members > 2 {
                builder.link(next, member, links[0]);
            }
        }
        None
    }

    fn diameter(&self) -> Option<u32> {
        let hops = if self.unidirectional { self.members - 1 } else { self.members / 2 };
        u32::try_from(hops).ok()
    }

    fn bisection(&self) -> Option<u64> {
        Some(if self.unidirectional || self.members == 2 { 1 } else { 2 })
    }
}
