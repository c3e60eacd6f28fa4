//! Dragonfly: groups of switches, with global links between every two groups.
//!
//! The letters are those of Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable
//! dragonfly topology", ISCA 2008: p NPUs on each switch (the paper's router), a switches in a
//! group, h global ports on each switch, g groups. In the paper a group is fully connected (`a=4`).
//! In a Cray XC (Faanes et al., "Cray Cascade: a scalable HPC system based on a dragonfly network",
//! SC 2012) a group is a grid, `a=16x6`: 16 columns by 6 rows. A cable joins every two switches of
//! a row (the green links, inside a chassis) and of a column (the black links, between chassis).
//! `k=1x3` gives each of the latter three cables.
//!
//! **Global links.** Every two groups have m = floor(a h / (g - 1)) cables between them. A group
//! thus uses U = m (g - 1) of its a h ports. The ports are numbered 0..U, and port q belongs to
//! switch floor(q a / U), so that no switch has more than h and the numbers differ by at most one.
//! The arrangement selects the destinations:
//!
//! - `palmtree` (default; Camarero, Vallejo and Beivide, ACM TACO 11(4), 2014): port q of group i
//!   leads to group i - 1 - (q mod (g - 1)), modulo g, where it ends at port U - 1 - q. All groups
//!   are equivalent.
//! - `absolute` (Hastings et al., "Comparing global link arrangements for dragonfly networks",
//!   CLUSTER 2015): port q leads to the other group number q mod (g - 1), counted without the group
//!   itself.
//!
//! NPUs are numbered switch by switch, switches group by group; in a grid the column varies
//! fastest.

use super::keyed::{Keyed, crossed};
use super::rows::Rows;
use super::{Entry, Family, Join, TopologyError};
use crate::{Builder, LinkParameters};
use tutti_units::ids::VertexId;

const NAME: &str = "dragonfly";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "groups of switches, every two groups joined by global links",
    argument: "p=NPUS,a=SWITCHES|COLUMNSxROWS,h=GLOBAL[,g=GROUPS][,k=CABLESxCABLES][,absolute]",
    example: "dragonfly:p=2,a=4,h=2,g=9",
    parse,
};

/// The parameters of a dragonfly and the positions of its vertices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dragonfly {
    /// p.
    npus_per_switch: u32,
    /// The switches of a group: one row, or columns and rows.
    local: Rows,
    /// h.
    global_ports: u32,
    /// g.
    groups: u32,
    absolute: bool,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let keyed = Keyed::read(NAME, argument, &["p", "a", "h", "g", "k"], &["absolute"])?;
    let npus_per_switch = keyed.required("p", keyed.number("p", 1)?)?;
    let sizes = keyed.required("a", keyed.sizes("a", 1)?)?;
    let global_ports = keyed.required("h", keyed.number("h", 0)?)?;
    if sizes.len() > 2 {
        let problem = "a group has one or two dimensions; expected its switches, such as `4`, or \
                       its columns and rows, such as `16x6`";
        return Err(keyed.wrong("a", problem.to_owned()));
    }
    let cables = keyed.same_length("k", "a", sizes.len())?;
    let local = Rows { sizes, cables };
    let absolute = keyed.has("absolute");
    let mut made = Dragonfly { npus_per_switch, local, global_ports, groups: 1, absolute };
    let ports = made.ports();
    let most = u32::try_from(ports.saturating_add(1)).unwrap_or(u32::MAX);
    made.groups = keyed.number("g", 1)?.unwrap_or(most);
    if made.groups > most {
        let (groups, a) = (made.groups, crossed(&made.local.sizes));
        let problem = format!(
            "{groups} groups need {} global ports each to be joined directly, but a={a} switches \
             with h={global_ports} have {ports}; expected at most g={most}",
            groups - 1
        );
        return Err(keyed.wrong("g", problem));
    }
    if made.size() < 2 {
        let problem = "a single NPU has no neighbour; expected at least 2".to_owned();
        return Err(keyed.wrong("p", problem));
    }
    Ok(Box::new(made))
}

impl Dragonfly {
    /// g, the groups.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// a, the switches of a group. Saturates, so that `parse` can reject it.
    #[must_use]
    pub fn switches_per_group(&self) -> u64 {
        self.local.switches()
    }

    /// The columns and rows of a group, or the switches of one that is fully connected.
    #[must_use]
    pub fn sizes(&self) -> &[u32] {
        &self.local.sizes
    }

    /// m, the cables between two groups; 0 for a single group.
    #[must_use]
    pub fn cables_between_groups(&self) -> u64 {
        self.ports().checked_div(u64::from(self.groups - 1)).unwrap_or(0)
    }

    /// The group of a vertex, NPU or switch.
    #[must_use]
    pub fn group_of(&self, vertex: VertexId) -> u32 {
        let switches = self.switches_per_group();
        let npus = self.size();
        let group = match u64::from(vertex.0).checked_sub(npus) {
            None => u64::from(vertex.0) / (switches * u64::from(self.npus_per_switch)),
            Some(switch) => switch / switches,
        };
        u32::try_from(group).unwrap_or(u32::MAX)
    }

    /// A switch by its group and its number within the group.
    #[must_use]
    pub fn switch(&self, group: u32, number: u32) -> VertexId {
        let index = u64::from(group) * self.switches_per_group() + u64::from(number);
        VertexId(u32::try_from(self.size() + index).unwrap_or(u32::MAX))
    }

    /// a h, the global ports of a group.
    fn ports(&self) -> u64 {
        self.switches_per_group().saturating_mul(u64::from(self.global_ports))
    }

    /// The number within its group of the switch with a global port.
    fn switch_of_port(&self, port: u64) -> u32 {
        let used = self.cables_between_groups() * u64::from(self.groups - 1);
        u32::try_from(port * self.switches_per_group() / used).unwrap_or(u32::MAX)
    }

    /// The group to which a port of `group` leads, and the port at the other end.
    fn other_end(&self, group: u32, port: u64) -> (u32, u64) {
        let others = u64::from(self.groups - 1);
        let peer = u32::try_from(port % others).unwrap_or(u32::MAX);
        if self.absolute {
            let to = if peer < group { peer } else { peer + 1 };
            let back = if group < to { group } else { group - 1 };
            return (to, port - u64::from(peer) + u64::from(back));
        }
        let to = (group + self.groups - 1 - peer) % self.groups;
        (to, self.cables_between_groups() * others - 1 - port)
    }

    fn join_groups(&self, builder: &mut Builder, switches: &[Vec<VertexId>], link: LinkParameters) {
        for group in 0..self.groups {
            for port in 0..self.cables_between_groups() * u64::from(self.groups - 1) {
                let (to, end) = self.other_end(group, port);
                // Each cable is visited from both ends.
                if group < to {
                    let near = self.switch_of_port(port) as usize;
                    let far = self.switch_of_port(end) as usize;
                    let (near, far) = (switches[group as usize][near], switches[to as usize][far]);
                    builder.cable(near, far, link);
                }
            }
        }
    }

    /// The name: `switch5`, or `row2.switch5` with the column.
    fn switch_name(&self, number: u32) -> String {
        match self.local.sizes[..] {
            [columns, _] => format!("row{}.switch{}", number / columns, number % columns),
            _ => format!("switch{number}"),
        }
    }
}

impl Family for Dragonfly {
    fn notation(&self) -> String {
        let Dragonfly { npus_per_switch, global_ports, groups, .. } = self;
        let a = crossed(&self.local.sizes);
        let mut text = format!("{NAME}:p={npus_per_switch},a={a},h={global_ports},g={groups}");
        text.push_str(&self.local.cables_notation());
        if self.absolute {
            text.push_str(",absolute");
        }
        text
    }

    fn size(&self) -> u64 {
        self.added_vertices().saturating_mul(u64::from(self.npus_per_switch))
    }

    fn added_vertices(&self) -> u64 {
        self.switches_per_group().saturating_mul(u64::from(self.groups))
    }

    fn link_count(&self) -> u64 {
        let groups = u64::from(self.groups);
        let pairs = groups * (groups - 1) / 2;
        let local = self.local.cable_count().saturating_mul(groups);
        let global = self.cables_between_groups().saturating_mul(pairs);
        self.size().saturating_add(local).saturating_add(global).saturating_mul(2)
    }

    fn link_classes(&self) -> Vec<String> {
        let local: &[&str] =
            if self.local.sizes.len() == 1 { &["local"] } else { &["row", "column"] };
        let classes = ["terminal"].iter().chain(local).chain(&["global"]);
        classes.map(|&class| class.to_owned()).collect()
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        let (terminal, global) = (links[0], links[links.len() - 1]);
        let per_group = u32::try_from(self.switches_per_group()).unwrap_or(u32::MAX);
        let mut on_switch = members.chunks(self.npus_per_switch as usize);
        let mut switches = Vec::new();
        for group in 0..self.groups {
            let mut made = Vec::new();
            for number in 0..per_group {
                let name = format!("{prefix}group{group}.{}", self.switch_name(number));
                let switch = builder.switch(name);
                for &npu in on_switch.next().unwrap_or(&[]) {
                    builder.cable(npu, switch, terminal);
                }
                made.push(switch);
            }
            self.local.join(builder, &made, |dimension, _| links[1 + dimension]);
            switches.push(made);
        }
        self.join_groups(builder, &switches, global);
        None
    }

    /// Within a group, one hop per dimension. With the maximum number of groups, three hops between
    /// switches suffice. They are needed if the switches of other groups within two hops, at most
    /// h + 2 h (a - 1) + h (h - 1), are fewer than all a (g - 1) of them.
    fn diameter(&self) -> Option<u32> {
        let (a, h) = (self.switches_per_group(), u64::from(self.global_ports));
        if self.groups == 1 {
            return Some(2 + self.local.diameter());
        }
        let full = self.local.sizes.len() == 1 && self.ports() == u64::from(self.groups - 1);
        (full && a * a > 2 * (a - 1) + h).then_some(5)
    }

    /// In the palmtree arrangement all groups are equivalent, and so are all NPUs of a switch.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        let first = |switch: u64| {
            VertexId(u32::try_from(switch * u64::from(self.npus_per_switch)).unwrap_or(u32::MAX))
        };
        let switches =
            if self.absolute { self.added_vertices() } else { self.switches_per_group() };
        Some((0..switches).map(first).collect())
    }

    fn dragonfly(&self) -> Option<&Dragonfly> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
