//! Deadlock cycles, with each VC named by both ends of its channel.
//!
//! The dependency graph is over channels or VCs, not over the vertices of a `Topology`.

use std::fmt;

use super::routing::{Routing, dependencies, find_cycle};
use super::{End, Reason, Settings, Waiting, Wiring};

/// A VC of a channel in a cyclic dependency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The source of the channel.
    pub from: String,
    /// The destination.
    pub to: String,
    /// The VC; none where all of the channel are alike.
    pub vc: Option<u32>,
    /// What it waits for, if it waits.
    pub reason: Option<Reason>,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(vc) = self.vc {
            write!(f, "VC {vc} of ")?;
        }
        if self.from == self.to {
            // An NPU and its dedicated router have one name.
            write!(f, "{} into its router", self.from)?;
        } else {
            write!(f, "{} > {}", self.from, self.to)?;
        }
        match self.reason {
            None => Ok(()),
            Some(Reason::Vc) => f.write_str(" (for a VC)"),
            Some(Reason::Credit) => f.write_str(" (for a credit)"),
        }
    }
}

/// Whether a routing can deadlock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It cannot.
    Free,
    /// It may deadlock: packets that hold these VCs can form a cyclic dependency.
    Cycle(Vec<Held>),
    /// There are too many routes to follow them all.
    TooLarge,
}

/// Routers times nodes up to which the table of ports is searched.
const MOST_PORTS: u64 = 1 << 26;

/// Searches the channel dependency graph for a cycle.
#[must_use]
pub fn verdict(wiring: &Wiring, settings: &Settings, routing: &dyn Routing) -> Verdict {
    let nodes = u64::from(wiring.nodes());
    if routing.fixed(0, 0).is_some() {
        if nodes * u64::from(wiring.routers()) > MOST_PORTS {
            return Verdict::TooLarge;
        }
        let cycle = among_channels(wiring, routing);
        return verdict_of(
            cycle.iter().map(|&channel| named(wiring, channel, None, None)).collect(),
        );
    }
    let Some(cycle) = dependencies::find_cycle(wiring, settings, routing) else {
        return Verdict::TooLarge;
    };
    verdict_of(cycle.iter().map(|&(channel, vc)| named(wiring, channel, Some(vc), None)).collect())
}

/// The input VCs of a deadlock cycle, by name.
#[must_use]
pub fn waiting(wiring: &Wiring, cycle: &[Waiting]) -> Vec<Held> {
    let held = |at: &Waiting| {
        let channel = wiring.inputs(at.router)[at.input as usize];
        named(wiring, channel, Some(at.vc), Some(at.reason))
    };
    cycle.iter().map(held).collect()
}

fn verdict_of(cycle: Vec<Held>) -> Verdict {
    if cycle.is_empty() { Verdict::Free } else { Verdict::Cycle(cycle) }
}

fn named(wiring: &Wiring, channel: u32, vc: Option<u32>, reason: Option<Reason>) -> Held {
    let channel = wiring.channels()[channel as usize];
    Held { from: wiring.name(channel.from), to: wiring.name(channel.to), vc, reason }
}

/// A cycle of channels, for a routing in which the port depends on router and destination alone.
/// All VCs of a channel are then alike: a packet in one of them may request any of the next
/// channel.
fn among_channels(wiring: &Wiring, routing: &dyn Routing) -> Vec<u32> {
    let mut after = vec![Vec::new(); wiring.channels().len()];
    // Which destination a channel was last inspected for.
    let mut seen = vec![u32::MAX; wiring.channels().len()];
    for destination in 0..wiring.nodes() {
        for source in 0..wiring.nodes() {
            let mut channel = wiring.injects(source);
            while seen[channel as usize] != destination {
                seen[channel as usize] = destination;
                let End::Router { router, .. } = wiring.channels()[channel as usize].to else {
                    break;
                };
                let Some(port) = routing.fixed(router, destination) else { break };
                let next = wiring.outputs(router)[port as usize];
                after[channel as usize].push(next);
                channel = next;
            }
        }
    }
    for next in &mut after {
        next.sort_unstable();
        next.dedup();
    }
    find_cycle(&after)
}
