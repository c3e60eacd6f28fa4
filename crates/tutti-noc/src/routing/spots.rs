//! VCs of a channel that are alike, which of them depend on which, and where packets have been.

use super::circle::circle;
use super::dependencies::ChannelVc;
use crate::VcRange;

/// VCs of a channel that one way offers, by number.
pub(super) type Spot = u32;

/// All that ways offer.
pub(super) struct Spots {
    /// Per channel, those that there are.
    of_channel: Vec<Vec<Spot>>,
    all: Vec<(u32, VcRange)>,
    /// Per spot those that it depends on, in order.
    after: Vec<Vec<Spot>>,
}

impl Spots {
    pub(super) fn new(channels: usize) -> Spots {
        Spots { of_channel: vec![Vec::new(); channels], all: Vec::new(), after: Vec::new() }
    }

    /// The spot of these VCs of a channel.
    pub(super) fn spot(&mut self, channel: u32, vcs: VcRange) -> Spot {
        let known = &mut self.of_channel[channel as usize];
        if let Some(&spot) = known.iter().find(|&&spot| self.all[spot as usize].1 == vcs) {
            return spot;
        }
        let spot = count(self.all.len());
        known.push(spot);
        self.all.push((channel, vcs));
        self.after.push(Vec::new());
        spot
    }

    /// The channel and the VCs of a spot.
    pub(super) fn of(&self, spot: Spot) -> (u32, VcRange) {
        self.all[spot as usize]
    }

    /// A packet that has a VC of one spot may ask for those of another.
    pub(super) fn depends(&mut self, spot: Spot, on: Spot) {
        let after = &mut self.after[spot as usize];
        if let Err(place) = after.binary_search(&on) {
            after.insert(place, on);
        }
    }

    /// VCs that depend on each other in a circle.
    ///
    /// Spots may share VCs, so that the graph has three kinds of vertices: a spot that is held leads to
    /// those that are asked for, these to their VCs, and a VC to all spots that it may be held for.
    pub(super) fn circle(&self, vcs: u32) -> Vec<ChannelVc> {
        let spots = count(self.all.len());
        let vc_of = |channel: u32, vc: u32| 2 * spots + channel * vcs + vc;
        let mut graph: Vec<Vec<u32>> = Vec::new();
        for after in &self.after {
            graph.push(after.iter().map(|spot| spots + spot).collect());
        }
        for &(channel, range) in &self.all {
            graph.push((range.first..=range.last).map(|vc| vc_of(channel, vc)).collect());
        }
        for of_channel in &self.of_channel {
            for vc in 0..vcs {
                let holds = |spot: &&Spot| {
                    let range = self.all[**spot as usize].1;
                    range.first <= vc && vc <= range.last
                };
                graph.push(of_channel.iter().filter(holds).copied().collect());
            }
        }
        let found = circle(&graph).into_iter().filter_map(|vertex| vertex.checked_sub(2 * spots));
        found.map(|place| (place / vcs, place % vcs)).collect()
    }

    /// Each VC and one that it depends on, in order.
    pub(super) fn pairs(&self) -> Vec<(ChannelVc, ChannelVc)> {
        let mut pairs = Vec::new();
        for (&(channel, vcs), after) in self.all.iter().zip(&self.after) {
            for (other, others) in after.iter().map(|&spot| self.of(spot)) {
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

/// What is noted of a packet at a spot: its phase, the node it goes by way of, what it holds.
type Note = (u8, u32, Option<Spot>);

/// Which packets have been where.
#[derive(Default)]
pub(super) struct Marks {
    notes: Vec<Vec<Note>>,
    /// Spots with notes.
    used: Vec<Spot>,
}

impl Marks {
    pub(super) fn clear(&mut self) {
        for spot in self.used.drain(..) {
            self.notes[spot as usize].clear();
        }
    }

    /// Notes a packet at a spot; false where that was noted before.
    pub(super) fn is_new(&mut self, spot: Spot, note: Note) -> bool {
        if self.notes.len() <= spot as usize {
            self.notes.resize(spot as usize + 1, Vec::new());
        }
        let notes = &mut self.notes[spot as usize];
        if notes.contains(&note) {
            return false;
        }
        if notes.is_empty() {
            self.used.push(spot);
        }
        notes.push(note);
        true
    }
}

/// There are fewer than 2^32 of anything.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 of anything")
}
