//! Collectives as rounds: the messages of a schedule that depend on equally many earlier ones.
//!
//! A round is a flow per pair of ranks. Consecutive rounds among the same pairs are one round of
//! longer flows: all steps of a ring are one flow per link. [`Rounds::of`] derives them from the
//! data flow of the schedule.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::dataflow::{Dataflow, Incoming, Messages};
use tutti_units::ids::RankId;

/// The flows of a collective.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    pub(super) flow: Arc<Dataflow>,
    pub(super) rounds: Vec<Round>,
}

/// Flows that start together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// By rank, or for all ranks of a symmetric schedule: the receivers as in
    /// [`crate::dataflow::Outgoing::peer`], and the chunks that they receive.
    sends: Vec<BTreeMap<RankId, u32>>,
    /// Likewise by root: its multicasts and combines in the network, and their chunks.
    trees: Vec<BTreeMap<Tree, u32>>,
    /// How many messages follow each other.
    pub(super) steps: u32,
}

/// A multicast or a combine of a root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tree {
    /// Whether it is a combine.
    inwards: bool,
    /// The other ranks, as in [`crate::dataflow::Outgoing::peer`].
    leaves: Vec<RankId>,
}

/// Whether the network multicasts, and whether it reduces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InNetwork {
    pub(super) multicasts: bool,
    pub(super) reduces: bool,
}

impl Rounds {
    /// The rounds of a schedule.
    pub(super) fn of(flow: &Arc<Dataflow>, network: InNetwork) -> Rounds {
        let lists = if flow.symmetry.is_some() { 1 } else { flow.ranks };
        let mut rounds: Vec<Round> = Vec::new();
        for phase in 0..flow.phases.len() {
            for round in of_phase(flow, lists, phase, network) {
                match rounds.last_mut() {
                    Some(last) if last.has_pairs_of(&round) => last.extend(&round),
                    _ => rounds.push(round),
                }
            }
        }
        Rounds { flow: Arc::clone(flow), rounds }
    }

    /// The same flows in one round, for a collective whose least time contains its steps.
    pub(super) fn merged(mut self) -> Rounds {
        let mut all = std::mem::take(&mut self.rounds).into_iter();
        if let Some(mut first) = all.next() {
            for round in all {
                first.extend(&round);
            }
            first.steps = 1;
            self.rounds = vec![first];
        }
        self
    }

    /// The sends of a rank in a round: receivers and chunks.
    pub(super) fn sends(&self, round: usize, rank: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let sends = &self.rounds[round].sends;
        let list = if sends.len() == 1 { &sends[0] } else { &sends[rank as usize] };
        list.iter().map(move |(&peer, &chunks)| (self.flow.peer(rank, peer), chunks))
    }

    /// The multicasts and combines of a root in a round: whether it is a combine, the other ranks, and
    /// the chunks.
    pub(super) fn trees(
        &self,
        round: usize,
        root: u32,
    ) -> impl Iterator<Item = (bool, Vec<u32>, u32)> + '_ {
        let trees = &self.rounds[round].trees;
        let list = if trees.len() == 1 { &trees[0] } else { &trees[root as usize] };
        list.iter().map(move |(tree, &chunks)| {
            let leaves = tree.leaves.iter().map(|&leaf| self.flow.peer(root, leaf)).collect();
            (tree.inwards, leaves, chunks)
        })
    }

    /// The pairs of ranks of all messages of a round.
    pub(super) fn pairs(&self, round: usize) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        for rank in 0..self.flow.ranks {
            pairs.extend(self.sends(round, rank).map(|(to, _)| (rank, to)));
            for (inwards, leaves, _) in self.trees(round, rank) {
                let pair = |leaf| if inwards { (leaf, rank) } else { (rank, leaf) };
                pairs.extend(leaves.into_iter().map(pair));
            }
        }
        pairs
    }
}

impl Round {
    /// A round without messages.
    fn of(lists: u32) -> Round {
        let lists = lists as usize;
        Round { sends: vec![BTreeMap::new(); lists], trees: vec![BTreeMap::new(); lists], steps: 1 }
    }

    fn has_pairs_of(&self, other: &Round) -> bool {
        let mut lists = self.sends.iter().zip(&other.sends);
        let mut trees = self.trees.iter().zip(&other.trees);
        lists.all(|(a, b)| a.keys().eq(b.keys())) && trees.all(|(a, b)| a.keys().eq(b.keys()))
    }

    fn extend(&mut self, by: &Round) {
        for (list, more) in self.sends.iter_mut().zip(&by.sends) {
            for (peer, chunks) in more {
                *list.entry(*peer).or_default() += chunks;
            }
        }
        for (list, more) in self.trees.iter_mut().zip(&by.trees) {
            for (tree, chunks) in more {
                *list.entry(tree.clone()).or_default() += chunks;
            }
        }
        self.steps += by.steps;
    }
}

/// The rounds of a phase: a message is one round after the latest message that it awaits.
fn of_phase(flow: &Dataflow, lists: u32, phase: usize, network: InNetwork) -> Vec<Round> {
    let list = |rank: u32| flow.messages(rank);
    let mut awaits: Vec<Vec<u32>> =
        (0..lists).map(|rank| list(rank).sends.iter().map(|send| send.awaits).collect()).collect();
    let none_awaited = |&(rank, send): &(u32, u32)| awaits[rank as usize][send as usize] == 0;
    let all = (0..lists).flat_map(|rank| list(rank).sends_of(phase).map(move |send| (rank, send)));
    let mut ready: Vec<(u32, u32)> = all.filter(none_awaited).collect();
    let mut rounds = Vec::new();
    while !ready.is_empty() {
        let mut round = Round::of(lists);
        let mut branches = Branches::default();
        let mut next = Vec::new();
        for (rank, send) in ready {
            let sent = &list(rank).sends[send as usize];
            let chunks = flow.chunks_of(sent.length);
            let to = if lists == 1 { 0 } else { flow.peer(rank, sent.peer) };
            let recv = &list(to).recvs[sent.arrives_as as usize];
            if let Some(nth) = recv.combine.filter(|_| network.reduces) {
                branches.add((to, true, nth), recv.peer, chunks);
            } else if let Some(nth) = sent.multicast.filter(|_| network.multicasts) {
                branches.add((rank, false, nth), sent.peer, chunks);
            } else {
                *round.sends[rank as usize].entry(sent.peer).or_default() += chunks;
            }
            for follower in after(list(to), recv) {
                let awaits = &mut awaits[to as usize][follower as usize];
                *awaits -= 1;
                if *awaits == 0 {
                    next.push((to, follower));
                }
            }
        }
        ready = next;
        branches.end(&mut round);
        rounds.push(round);
    }
    rounds
}

/// The multicasts and combines of a round, by root, whether it is a combine, and number: the other ranks and
/// the chunks.
#[derive(Default)]
struct Branches(BTreeMap<(u32, bool, u32), (Vec<RankId>, u32)>);

impl Branches {
    fn add(&mut self, key: (u32, bool, u32), leaf: RankId, chunks: u32) {
        let (leaves, each) = self.0.entry(key).or_default();
        leaves.push(leaf);
        *each = chunks;
    }

    /// Adds them to a round.
    fn end(self, round: &mut Round) {
        for ((root, inwards, _), (mut leaves, chunks)) in self.0 {
            leaves.sort_unstable();
            let tree = Tree { inwards, leaves };
            *round.trees[root as usize].entry(tree).or_default() += chunks;
        }
    }
}

/// The sends that await a receive.
fn after<'a>(list: &'a Messages, recv: &'a Incoming) -> impl Iterator<Item = u32> + 'a {
    let followers = list.followers(recv).iter().map(|follower| follower.send);
    recv.forward.into_iter().chain(followers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_schedule::algorithm::build;
    use tutti_schedule::collective::Collective;

    fn rounds(notation: &str, collective: Collective, ranks: u32) -> Rounds {
        let schedule = build(notation, collective, ranks).unwrap();
        Rounds::of(&Arc::new(Dataflow::of(&*schedule).unwrap()), InNetwork::default())
    }

    /// (steps, chunks that rank 0 sends) of each round.
    fn listed(rounds: &Rounds) -> Vec<(u32, u32)> {
        let sent = |round| rounds.sends(round, 0).map(|(_, chunks)| chunks).sum();
        (0..rounds.rounds.len()).map(|at| (rounds.rounds[at].steps, sent(at))).collect()
    }

    #[test]
    fn a_ring_is_one_round() {
        let ring = rounds("ring", Collective::AllReduce, 8);
        assert_eq!(listed(&ring), [(14, 14)]);
        assert_eq!(ring.sends(0, 7).collect::<Vec<_>>(), [(0, 14)]);
    }

    #[test]
    fn a_direct_all_to_all_is_one_round() {
        let direct = rounds("direct", Collective::AllToAll, 8);
        assert_eq!(listed(&direct), [(1, 7)]);
        assert_eq!(direct.sends(0, 3).count(), 7);
    }

    #[test]
    fn merged_rounds_have_all_chunks() {
        let halving = rounds("recursive_halving_doubling", Collective::AllReduce, 8).merged();
        assert_eq!(listed(&halving), [(1, 14)]);
        assert_eq!(halving.sends(0, 0).count(), 3);
    }

    /// The middle exchanges of both halves are among the same pairs.
    #[test]
    fn halving_and_doubling_has_a_round_per_partner() {
        let halving = rounds("recursive_halving_doubling", Collective::AllReduce, 8);
        assert_eq!(listed(&halving), [(1, 4), (1, 2), (2, 2), (1, 2), (1, 4)]);
    }

    #[test]
    fn a_network_reduces_in_one_round_and_multicasts_in_the_next() {
        let schedule = build("in_network:all", Collective::AllReduce, 4).unwrap();
        let flow = Arc::new(Dataflow::of(&*schedule).unwrap());
        let rounds = Rounds::of(&flow, InNetwork { multicasts: true, reduces: true });
        assert_eq!(listed(&rounds), [(1, 0), (1, 0)]);
        assert_eq!(rounds.trees(0, 2).collect::<Vec<_>>(), [(true, vec![0, 1, 3], 1)]);
        assert_eq!(rounds.trees(1, 2).collect::<Vec<_>>(), [(false, vec![0, 1, 3], 1)]);
        // Without multicast, a message per receiver.
        let rounds = Rounds::of(&flow, InNetwork { multicasts: false, reduces: true });
        assert_eq!(listed(&rounds), [(1, 0), (1, 3)]);
    }

    #[test]
    fn a_tree_has_a_round_per_level() {
        let tree = rounds("knomial", Collective::Broadcast { root: RankId(0) }, 8);
        let steps: Vec<u32> = tree.rounds.iter().map(|round| round.steps).collect();
        assert_eq!(steps.iter().sum::<u32>() as usize, tree.rounds.len());
        let all: usize = (0..8)
            .map(|rank| {
                (0..tree.rounds.len()).map(|at| tree.sends(at, rank).count()).sum::<usize>()
            })
            .sum();
        assert_eq!(all, 7);
    }
}
