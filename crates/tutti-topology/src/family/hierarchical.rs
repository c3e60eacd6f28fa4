//! Hierarchical: families inside families, innermost first, to any depth.
//!
//! `switch:8/ring:16` is 16 groups of 8 NPUs. Each group is a switch; the groups form a ring. NPUs
//! are numbered inside out: the members of one group have consecutive ranks. A level joins the
//! groups below it by gateways or by rails.
//!
//! **Gateway** (`ring:16`, or `gateway:ring:16`): one vertex represents each group, and the family
//! of the level joins these. If the outermost level of a group is a switch, that switch represents
//! it. Any other group gets an additional switch, named `...gateway`, with a cable to each vertex
//! that its outermost level joins (for a rail level: each of its NPUs). These cables have the
//! parameters of the first link class of the level that needs the gateway.
//!
//! **Rail** (`rail:ring:16`): the family of the level is built once for every index within a group,
//! and joins the NPUs that have this index in their groups. A message between NPUs of different
//! index changes rails inside a group, through an NPU.

use super::{Entry, Family, Join, TopologyError, find, wrong};
use crate::{Builder, LinkParameters};
use tutti_units::ids::VertexId;

const NAME: &str = "hierarchical";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "families inside families, innermost first; outer levels join gateways or rails",
    argument: "FAMILY:ARGUMENT/[rail:|gateway:]FAMILY:ARGUMENT[/...]",
    example: "hierarchical:switch:4/ring:4",
    parse,
};

#[derive(Debug)]
struct Level {
    family: Box<dyn Family>,
    rail: bool,
}

#[derive(Debug)]
struct Hierarchical {
    levels: Vec<Level>,
}

/// A group while the hierarchy is built from the inside; initially each NPU is a group.
struct Group {
    npus: Vec<VertexId>,
    /// The vertices that a gateway would be cabled with.
    joined: Vec<VertexId>,
    /// The vertex that represents the group.
    hub: Option<VertexId>,
}

/// Totals of the levels below a level, counted without building them.
struct Counts {
    npus: u64,
    /// Vertices and links added within one group.
    added: u64,
    links: u64,
    /// The number of vertices that a gateway would be cabled with; `None` if the group needs no
    /// gateway.
    gateway_cables: Option<u64>,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let mut levels = Vec::new();
    for part in argument.split('/') {
        let part = part.trim();
        let (rail, rest) = match part.split_once(':') {
            Some(("rail", rest)) => (true, rest),
            Some(("gateway", rest)) => (false, rest),
            _ => (false, part),
        };
        if levels.is_empty() && rest.len() != part.len() {
            let problem = "the innermost level joins NPUs: it has no gateways or rails".to_owned();
            return Err(wrong(NAME, argument, part, problem));
        }
        let (name, inner) = rest.split_once(':').unwrap_or((rest, ""));
        if name == NAME {
            let problem = "levels are written in sequence, not nested".to_owned();
            return Err(wrong(NAME, argument, part, problem));
        }
        let family = find(name).and_then(|entry| (entry.parse)(inner)).map_err(|error| {
            wrong(NAME, argument, inner_part(&error, rest, inner), error.to_string())
        })?;
        levels.push(Level { family, rail });
    }
    Ok(Box::new(Hierarchical { levels }))
}

/// The part of a level that an error refers to.
fn inner_part<'a>(error: &TopologyError, rest: &'a str, inner: &'a str) -> &'a str {
    match error {
        TopologyError::Argument { at, .. } => inner.get(*at..).unwrap_or(inner),
        _ => rest,
    }
}

impl Hierarchical {
    fn counts(&self) -> Counts {
        let mut below = Counts { npus: 1, added: 0, links: 0, gateway_cables: None };
        for level in &self.levels {
            let groups = level.family.size();
            let copies = if level.rail { below.npus } else { 1 };
            let gateways = below.gateway_cables.filter(|_| !level.rail);
            let added = below.added.saturating_add(u64::from(gateways.is_some()));
            let links = below.links.saturating_add(gateways.unwrap_or(0).saturating_mul(2));
            let npus = below.npus.saturating_mul(groups);
            let joined = if level.rail { npus } else { groups };
            let own = level.family.added_vertices().saturating_mul(copies);
            let own_links = level.family.link_count().saturating_mul(copies);
            below = Counts {
                npus,
                added: added.saturating_mul(groups).saturating_add(own),
                links: links.saturating_mul(groups).saturating_add(own_links),
                gateway_cables: (level.rail || !level.family.has_hub()).then_some(joined),
            };
        }
        below
    }
}

impl Level {
    /// Joins `groups` to one group.
    fn join(
        &self,
        builder: &mut Builder,
        groups: Vec<Group>,
        links: &[LinkParameters],
        prefix: &str,
    ) -> Group {
        if self.rail {
            for index in 0..groups[0].npus.len() {
                let members: Vec<VertexId> = groups.iter().map(|group| group.npus[index]).collect();
                let (members, prefix) = (&members[..], &format!("{prefix}rail{index}.")[..]);
                self.family.join(Join { builder: &mut *builder, members, links, prefix });
            }
            let npus: Vec<VertexId> = groups.into_iter().flat_map(|group| group.npus).collect();
            return Group { joined: npus.clone(), npus, hub: None };
        }
        let mut npus = Vec::new();
        let mut members = Vec::new();
        for (index, group) in groups.into_iter().enumerate() {
            let hub = group.hub.unwrap_or_else(|| {
                let gateway = builder.switch(format!("{prefix}group{index}.gateway"));
                for &vertex in &group.joined {
                    builder.cable(vertex, gateway, links[0]);
                }
                gateway
            });
            members.push(hub);
            npus.extend(group.npus);
        }
        let hub = self.family.join(Join { builder, members: &members, links, prefix });
        Group { npus, joined: members, hub }
    }
}

impl Family for Hierarchical {
    fn notation(&self) -> String {
        let level = |level: &Level| {
            let kind = if level.rail { "rail:" } else { "" };
            format!("{kind}{}", level.family.notation())
        };
        format!("{NAME}:{}", self.levels.iter().map(level).collect::<Vec<_>>().join("/"))
    }

    fn size(&self) -> u64 {
        self.counts().npus
    }

    fn added_vertices(&self) -> u64 {
        self.counts().added
    }

    fn link_count(&self) -> u64 {
        self.counts().links
    }

    fn link_classes(&self) -> Vec<String> {
        let mut classes = Vec::new();
        for (index, level) in self.levels.iter().enumerate() {
            let inner = level.family.link_classes();
            let name = format!("level {index} ({})", level.family.notation());
            match inner.len() {
                1 => classes.push(name),
                _ => classes.extend(inner.iter().map(|class| format!("{name} {class}"))),
            }
        }
        classes
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        let single = |&npu| Group { npus: vec![npu], joined: vec![npu], hub: Some(npu) };
        let mut groups: Vec<Group> = members.iter().map(single).collect();
        let mut links = links;
        for (number, level) in self.levels.iter().enumerate() {
            let (own, outer) = links.split_at(level.family.link_classes().len());
            let size = usize::try_from(level.family.size()).unwrap_or(usize::MAX);
            let mut below = groups.into_iter();
            groups = Vec::new();
            for index in 0.. {
                let members: Vec<Group> = below.by_ref().take(size).collect();
                if members.is_empty() {
                    break;
                }
                let name = format!("{prefix}level{number}.{index}.");
                groups.push(level.join(builder, members, own, &name));
            }
            links = outer;
        }
        groups.pop().and_then(|group| group.hub)
    }

    fn has_hub(&self) -> bool {
        self.counts().gateway_cables.is_none()
    }
}
