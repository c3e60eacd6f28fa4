//! Rings through the nodes of a machine, one per channel, as in NCCL.
//!
//! Ranks are numbered node by node, G per node. Each of C channels is a ring on 1/C of every shard.
//! Ring c visits the nodes in order. In even nodes it starts at rank c and goes forward, cyclically;
//! in odd nodes it starts at rank c - 1 and goes backward. It thus leaves a node where it enters the
//! next one: it stays on a rail. If the number of nodes is odd, the last node but one is left at rank
//! c + 1, and the last one is traversed forward from there to c. Rings through nodes of two ranks
//! cannot do that, and change rails behind the last node. The C messages of a rank and step are sent
//! in the order of the channels. Source: NCCL, `src/graph/connect.cc`, where the rings of odd nodes
//! are exchanged for those through the same network interfaces.

use crate::algorithm::Stage;
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step, concurrent};
use tutti_units::ids::RankId;

/// The maximum number of channels.
pub(super) const MOST_CHANNELS: u32 = 1 << 10;

/// The size of a node, and the number of channels.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    pub(super) node: u32,
    pub(super) channels: u32,
}

/// How a ring that starts at rank c in the first node traverses a node.
enum Traversal {
    /// From c to c - 1.
    Forward,
    /// From c - 1 to c.
    Backward,
    /// From c - 1 backward to c + 2, then c and c + 1.
    Turn,
    /// From c + 1 to c.
    Last,
}

pub(super) struct Channels {
    shape: Shape,
    lanes: Lanes,
}

impl Channels {
    pub(super) fn new(name: String, collective: Collective, ranks: u32, lanes: Lanes) -> Channels {
        let slots = if collective == Collective::AllGather { 1 } else { 2 };
        let shape = Shape::in_place(name, collective, ranks, ranks * lanes.channels, slots);
        Channels { shape, lanes }
    }

    /// Returns the rank at a position of a ring.
    fn rank(&self, channel: u32, position: u32) -> RankId {
        let node = self.lanes.node;
        let (at, after, first) = (position / node, position % node, channel % node);
        let local = match self.traversal(at) {
            Traversal::Forward => first + after,
            Traversal::Backward => first + 2 * node - 1 - after,
            Traversal::Turn if after < node - 2 => first + 2 * node - 1 - after,
            Traversal::Turn => first + after + 2 - node,
            Traversal::Last => first + 1 + after,
        };
        RankId(at * node + local % node)
    }

    /// Returns the position of a rank in a ring.
    fn position(&self, channel: u32, rank: RankId) -> u32 {
        let node = self.lanes.node;
        let (at, first) = (rank.0 / node, channel % node);
        // The rank relative to the one where the ring enters even nodes.
        let local = (rank.0 + node - first) % node;
        let after = match self.traversal(at) {
            Traversal::Forward => local,
            Traversal::Backward => node - 1 - local,
            Traversal::Turn if local > 1 => node - 1 - local,
            Traversal::Turn => local + node - 2,
            Traversal::Last => (local + node - 1) % node,
        };
        at * node + after
    }

    /// Returns how the rings traverse a node.
    fn traversal(&self, at: u32) -> Traversal {
        let node = self.lanes.node;
        let nodes = self.shape.ranks / node;
        let turns = node > 2 && nodes > 1 && !nodes.is_multiple_of(2);
        match at {
            _ if turns && at + 1 == nodes => Traversal::Last,
            _ if turns && at + 2 == nodes => Traversal::Turn,
            _ if at.is_multiple_of(2) => Traversal::Forward,
            _ => Traversal::Backward,
        }
    }

    /// Adds the ops of a rank in a step of a ring.
    fn act(&self, channel: u32, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let (step, reducing) = self.locate(step);
        let at = self.position(channel, rank);
        let behind = |by: u32| self.rank(channel, (at + 2 * n - by) % n);
        let (right, left) = (self.rank(channel, (at + 1) % n), behind(1));
        // The reduction of a shard ends at its rank, whose predecessor's shard it sends first.
        let first = step + u32::from(reducing);
        let chunk = |shard: RankId| ChunkRange::one(shard.0 * self.lanes.channels + channel);
        let (sent, received) = (chunk(behind(first)), chunk(behind(first + 1)));
        out.send(right, Slot::DATA, sent);
        if reducing {
            out.fold_in(left, received);
        } else {
            out.recv(left, Slot::DATA, received);
        }
    }

    /// Returns the step within the reduce_scatter or all_gather, and whether it reduces.
    fn locate(&self, step: u32) -> (u32, bool) {
        let around = self.shape.ranks - 1;
        match self.shape.collective {
            Collective::AllGather => (step, false),
            _ if step < around => (step, true),
            _ => (step - around, false),
        }
    }
}

/// All ranks stay synchronised.
pub(super) fn stages(collective: Collective, ranks: u32, channels: u32) -> Vec<Stage> {
    let stage = |messages, reductions| Stage {
        messages,
        receives: messages,
        chunks: 1,
        reductions,
        of: ranks * channels,
    };
    let fold = std::iter::repeat_n(stage(0, 1), channels as usize - 1);
    let reduce: Vec<Stage> = std::iter::once(stage(channels, 1)).chain(fold).collect();
    let reduce = std::iter::repeat_n(reduce, ranks as usize - 1).flatten();
    let gather = std::iter::repeat_n(stage(channels, 0), ranks as usize - 1);
    match collective {
        Collective::ReduceScatter => reduce.collect(),
        Collective::AllGather => gather.collect(),
        _ => reduce.chain(gather).collect(),
    }
}

impl Schedule for Channels {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        let phases = 1 + u32::from(self.shape.collective == Collective::AllReduce);
        phases * (self.shape.ranks - 1)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        (0..self.lanes.channels).for_each(|channel| self.act(channel, rank, step, out));
    }

    fn step_of_channel(
        &self,
        (rank, step): (RankId, u32),
        channels: concurrent::Channels,
        channel: u32,
        out: &mut Step,
    ) {
        if channels.run == 1 && channels.count == self.lanes.channels {
            return self.act(channel, rank, step, out);
        }
        self.step(rank, step, out);
        out.keep_channel(channels, channel);
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        match self.locate(step) {
            (step, true) => format!("reduce_scatter {step}"),
            (step, false) => format!("all_gather {step}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{build, check};

    const KINDS: [Collective; 3] =
        [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather];

    #[test]
    fn every_node_and_number_of_channels_is_proved() {
        for (ranks, node) in [(2, 1), (6, 2), (8, 8), (8, 4), (12, 4), (15, 3), (24, 8)] {
            for channels in [1, 2, 3, 8, 11] {
                let notation = format!("ring:node={node},channels={channels}");
                for collective in KINDS {
                    check::performs(&notation, collective, ranks);
                    assert!(check::critical_path_is_exact(&notation, collective, ranks));
                }
            }
        }
    }

    #[test]
    fn one_channel_of_single_ranks_is_the_ring() {
        for (collective, ranks) in KINDS.into_iter().flat_map(|kind| [(kind, 2), (kind, 7)]) {
            let [ring, named] = ["ring", "ring:node=1,channels=1"]
                .map(|notation| build(notation, collective, ranks).unwrap());
            check::same_steps(&*ring, &*named);
        }
    }

    /// Between nodes, every channel connects equal positions, and every rank sends in one channel.
    #[test]
    fn channels_leave_a_node_at_different_ranks() {
        for (ranks, node) in [(16, 4), (20, 4), (9, 3), (24, 8)] {
            let notation = format!("ring:node={node},channels={node}");
            let schedule = build(&notation, Collective::AllGather, ranks).unwrap();
            let mut out = Step::new();
            for rank in 0..ranks {
                out.clear();
                schedule.step(RankId(rank), 0, &mut out);
                let peers = out.sends.iter().map(|send| send.peer.0);
                let between: Vec<u32> = peers.filter(|to| to / node != rank / node).collect();
                assert_eq!(between, [(rank + node) % ranks]);
            }
        }
    }

    #[test]
    fn invalid_lanes_are_refused() {
        let problem = |argument: &str, collective| {
            build(&format!("ring:{argument}"), collective, 8).err().unwrap().to_string()
        };
        for (argument, part) in [
            ("node=3", "8 ranks are not nodes of 3 ranks"),
            ("channels=0", "expected 1 to 1024"),
            ("node=4,segments=2", "`segments=2`: expected"),
        ] {
            let text = problem(argument, Collective::AllReduce);
            assert!(text.contains(part), "{text}");
        }
        let text = problem("channels=2", Collective::AllToAll);
        assert!(text.contains("all_to_all does not support `node` and `channels`"), "{text}");
    }
}
