//! The channel dependency graph over sets of VCs, and the states of packets that a search has
//! visited.
//!
//! Its vertices are sets of VCs, found while packets are followed: a `Topology` has links instead.

use super::cycle::find_cycle;
use super::dependencies::ChannelVc;
use crate::VcRange;

/// A set of VCs of a channel that a candidate offers, by number.
pub(super) type VcSet = u32;

/// Sets of VCs, and which of them depend on which.
pub(super) struct DependencyGraph {
    /// The sets of each channel.
    of_channel: Vec<Vec<VcSet>>,
    all: Vec<(u32, VcRange)>,
    /// The sets that each set depends on, in ascending order.
    after: Vec<Vec<VcSet>>,
}

impl DependencyGraph {
    pub(super) fn new(channels: usize) -> DependencyGraph {
        DependencyGraph {
            of_channel: vec![Vec::new(); channels],
            all: Vec::new(),
            after: Vec::new(),
        }
    }

    /// The set of these VCs of a channel.
    pub(super) fn vc_set(&mut self, channel: u32, vcs: VcRange) -> VcSet {
        let known = &mut self.of_channel[channel as usize];
        if let Some(&vc_set) = known.iter().find(|&&vc_set| self.all[vc_set as usize].1 == vcs) {
            return vc_set;
        }
        let vc_set = count(self.all.len());
        known.push(vc_set);
        self.all.push((channel, vcs));
        self.after.push(Vec::new());
        vc_set
    }

    /// The channel and the VCs of a set.
    pub(super) fn of(&self, vc_set: VcSet) -> (u32, VcRange) {
        self.all[vc_set as usize]
    }

    /// A packet that holds a VC of one set may request those of another.
    pub(super) fn depends(&mut self, vc_set: VcSet, on: VcSet) {
        let after = &mut self.after[vc_set as usize];
        if let Err(place) = after.binary_search(&on) {
            after.insert(place, on);
        }
    }

    /// VCs that form a cyclic dependency; empty without one.
    ///
    /// Sets may share VCs, so that the graph has three kinds of vertices: a held set leads to the
    /// requested sets, these to their VCs, and a VC to all sets that it may be held for.
    pub(super) fn find_cycle(&self, vcs: u32) -> Vec<ChannelVc> {
        let sets = count(self.all.len());
        let vc_of = |channel: u32, vc: u32| 2 * sets + channel * vcs + vc;
        let mut graph: Vec<Vec<u32>> = Vec::new();
        for after in &self.after {
            graph.push(after.iter().map(|vc_set| sets + vc_set).collect());
        }
        for &(channel, range) in &self.all {
            graph.push((range.first..=range.last).map(|vc| vc_of(channel, vc)).collect());
        }
        for of_channel in &self.of_channel {
            for vc in 0..vcs {
                let holds = |vc_set: &&VcSet| {
                    let range = self.all[**vc_set as usize].1;
                    range.first <= vc && vc <= range.last
                };
                graph.push(of_channel.iter().filter(holds).copied().collect());
            }
        }
        let found =
            find_cycle(&graph).into_iter().filter_map(|vertex| vertex.checked_sub(2 * sets));
        found.map(|place| (place / vcs, place % vcs)).collect()
    }

    /// Each VC and one that it depends on, in order.
    pub(super) fn pairs(&self) -> Vec<(ChannelVc, ChannelVc)> {
        let mut pairs = Vec::new();
        for (&(channel, vcs), after) in self.all.iter().zip(&self.after) {
            for (other, others) in after.iter().map(|&vc_set| self.of(vc_set)) {
                for vc in vcs.first..=vcs.last {
                    let to = others.first..=others.last;
                    pairs.extend(to.map(|next| ((channel, vc), (other, next))));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// The state of a packet that holds a VC of a set: its phase, its intermediate node, the escape set
/// it holds.
type State = (u8, u32, Option<VcSet>);

/// States of packets that have been visited.
#[derive(Default)]
pub(super) struct Visited {
    states: Vec<Vec<State>>,
    /// Sets with states.
    used: Vec<VcSet>,
}

impl Visited {
    pub(super) fn clear(&mut self) {
        for vc_set in self.used.drain(..) {
            self.states[vc_set as usize].clear();
        }
    }

    /// Marks a state as visited; false where it was before.
    pub(super) fn is_new(&mut self, vc_set: VcSet, state: State) -> bool {
        if self.states.len() <= vc_set as usize {
            self.states.resize(vc_set as usize + 1, Vec::new());
        }
        let states = &mut self.states[vc_set as usize];
        if states.contains(&state) {
            return false;
        }
        if states.is_empty() {
            self.used.push(vc_set);
        }
        states.push(state);
        true
    }
}

/// There are fewer than 2^32 of anything.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 of anything")
}
