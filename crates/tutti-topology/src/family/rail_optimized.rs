//! Rail-optimised: hosts with a scale-up switch each, and a leaf switch for every NPU index.
//!
//! The scale-up switch of a host joins its NPUs (an NVLink domain). Each NPU also has a port into
//! the scale-out network: in a pod of hosts, the NPUs of index i are on leaf i, their rail. Every
//! leaf is joined to every spine. So NPUs of one index in one pod are two hops apart. Others are
//! four hops apart: over a spine, or along the rail after a change of index inside one of the two
//! hosts; the path with the least latency is used. This is the cabling of Nvidia's DGX SuperPOD,
//! where a pod is called a scalable unit (reference architecture RA-11333-001).
//!
//! NPU i of host j has the number j n + i, for n NPUs per host; hosts are numbered pod by pod.

use super::keyed::Keyed;
use super::{Entry, Family, Join, TopologyError};
use crate::{Builder, LinkParameters};
use tutti_units::ids::VertexId;

const NAME: &str = "rail_optimized";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "hosts with a scale-up switch, a leaf switch per NPU index, spines over the leaves",
    argument: "npus=PER_HOST,hosts=PER_POD[,pods=PODS][,spines=SPINES][,uplinks=CABLES]",
    example: "rail_optimized:npus=4,hosts=2,pods=2,spines=2",
    parse,
};

#[derive(Debug)]
struct RailOptimized {
    npus_per_host: u32,
    hosts_per_pod: u32,
    pods: u32,
    spines: u32,
    /// Cables between a leaf and a spine.
    uplinks: u32,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let keys = ["npus", "hosts", "pods", "spines", "uplinks"];
    let keyed = Keyed::read(NAME, argument, &keys, &[])?;
    let made = RailOptimized {
        npus_per_host: keyed.required("npus", keyed.number("npus", 2)?)?,
        hosts_per_pod: keyed.required("hosts", keyed.number("hosts", 1)?)?,
        pods: keyed.number("pods", 1)?.unwrap_or(1),
        spines: keyed.number("spines", 0)?.unwrap_or(0),
        uplinks: keyed.number("uplinks", 1)?.unwrap_or(1),
    };
    if made.pods > 1 && made.spines == 0 {
        let problem = format!("{} pods meet at spines only; expected at least spines=1", made.pods);
        return Err(keyed.wrong("pods", problem));
    }
    if keyed.has("uplinks") && made.spines == 0 {
        let problem =
            "without spines there is nothing above a leaf; expected spines=...".to_owned();
        return Err(keyed.wrong("uplinks", problem));
    }
    Ok(Box::new(made))
}

impl RailOptimized {
    fn hosts(&self) -> u64 {
        u64::from(self.hosts_per_pod) * u64::from(self.pods)
    }

    fn leaves(&self) -> u64 {
        u64::from(self.npus_per_host) * u64::from(self.pods)
    }

    fn join_hosts(
        &self,
        builder: &mut Builder,
        members: &[VertexId],
        link: LinkParameters,
        prefix: &str,
    ) {
        for (host, npus) in members.chunks(self.npus_per_host as usize).enumerate() {
            let switch = builder.switch(format!("{prefix}host{host}.switch"));
            for &npu in npus {
                builder.cable(npu, switch, link);
            }
        }
    }

    fn join_rails(
        &self,
        builder: &mut Builder,
        members: &[VertexId],
        link: LinkParameters,
        prefix: &str,
    ) -> Vec<VertexId> {
        let (npus, hosts) = (self.npus_per_host as usize, self.hosts_per_pod as usize);
        let mut leaves = Vec::new();
        for (pod, inside) in members.chunks(npus * hosts).enumerate() {
            for rail in 0..npus {
                let leaf = builder.switch(format!("{prefix}pod{pod}.leaf{rail}"));
                for &npu in inside.iter().skip(rail).step_by(npus) {
                    builder.cable(npu, leaf, link);
                }
                leaves.push(leaf);
            }
        }
        leaves
    }
}

impl Family for RailOptimized {
    fn notation(&self) -> String {
        let RailOptimized { npus_per_host, hosts_per_pod, pods, spines, uplinks } = self;
        let mut text = format!("{NAME}:npus={npus_per_host},hosts={hosts_per_pod}");
        for (key, value, left_out) in
            [("pods", pods, 1), ("spines", spines, 0), ("uplinks", uplinks, 1)]
        {
            if *value != left_out {
                text.push_str(&format!(",{key}={value}"));
            }
        }
        text
    }

    fn size(&self) -> u64 {
        self.hosts().saturating_mul(u64::from(self.npus_per_host))
    }

    fn added_vertices(&self) -> u64 {
        self.hosts().saturating_add(self.leaves()).saturating_add(u64::from(self.spines))
    }

    fn link_count(&self) -> u64 {
        let spine = self.leaves().saturating_mul(u64::from(self.spines));
        let spine = spine.saturating_mul(u64::from(self.uplinks));
        self.size().saturating_mul(2).saturating_add(spine).saturating_mul(2)
    }

    fn link_classes(&self) -> Vec<String> {
        ["scale-up", "rail", "spine"].map(str::to_owned).to_vec()
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        self.join_hosts(builder, members, links[0], prefix);
        let leaves = self.join_rails(builder, members, links[1], prefix);
        for number in 0..self.spines {
            let spine = builder.switch(format!("{prefix}spine{number}"));
            for &leaf in &leaves {
                for _ in 0..self.uplinks {
                    builder.cable(leaf, spine, links[2]);
                }
            }
        }
        None
    }

    fn diameter(&self) -> Option<u32> {
        Some(if self.hosts() == 1 { 2 } else { 4 })
    }

    /// NPUs are equivalent.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        Some(vec![VertexId(0)])
    }
}

#[cfg(test)]
mod tests;
