//! Whether a routing can deadlock: the graph of which VC waits for which.
//!
//! A VC of a channel depends on another if a packet that has the one may ask for the other. A routing is
//! free of deadlock if no VCs depend on each other in a circle (Dally and Seitz 1987). Where packets have
//! several ways, only those of the lowest priority, the escape, must be free of circles: a packet that
//! waits can always take it (Duato 1993). A VC of the escape then depends also on those that its packet
//! comes to ask for after other channels.

use std::collections::BTreeSet;

use super::{Place, Routing, Way};
use crate::network::flit::packet::Head;
use crate::network::flit::{End, Settings, Wiring};
use crate::network::noise::{random_bits, split_words};

/// A VC of a channel.
pub type ChannelVc = (u32, u32);

/// Packets whose ways are followed for each pair of nodes, where routings draw at random.
const DRAWS: u64 = 8;

/// VCs that depend on each other in a circle, each on the next and the last on the first; empty if there
/// are none. Random choices are followed for some packets of every pair, not for all.
#[must_use]
pub fn circle(wiring: &Wiring, settings: &Settings, routing: &dyn Routing) -> Vec<ChannelVc> {
    let vcs = settings.vcs as usize;
    let mut explorer = Explorer {
        wiring,
        settings,
        routing,
        edges: vec![BTreeSet::new(); wiring.channels().len() * vcs],
        seen: BTreeSet::new(),
    };
    for class in 0..settings.classes.len() {
        for source in 0..wiring.nodes() {
            for destination in 0..wiring.nodes() {
                for draw in 0..if routing.fixed(0, 0).is_some() { 1 } else { DRAWS } {
                    let serial = u64::from(destination) * DRAWS + draw;
                    explorer.follow(source, destination, class, serial);
                }
            }
        }
    }
    find_circle(&explorer.edges)
        .into_iter()
        .map(|place| (count(place / vcs), count(place % vcs)))
        .collect()
}

struct Explorer<'a> {
    wiring: &'a Wiring,
    settings: &'a Settings,
    routing: &'a dyn Routing,
    /// Per VC of a channel, those that it depends on.
    edges: Vec<BTreeSet<usize>>,
    /// Where packets of this pair have been: VC, what they noted, and the escape VC they hold.
    seen: BTreeSet<(usize, u8, u32, Option<usize>)>,
}

/// A packet that has a VC of a channel.
#[derive(Clone, Copy)]
struct Visit {
    channel: u32,
    vc: u32,
    head: Head,
    /// The last VC of the escape that it has.
    held: Option<usize>,
}

impl Explorer<'_> {
    /// All the ways of a packet.
    fn follow(&mut self, source: u32, destination: u32, class: usize, serial: u64) {
        let Ok(class_id) = u8::try_from(class) else { return };
        let head = Head {
            serial,
            source,
            destination,
            intermediate: destination,
            hops: 0,
            class: class_id,
            phase: 0,
        };
        self.seen.clear();
        let channel = self.wiring.injects(source);
        let vcs = self.routing.injects(&head, self.settings.classes[class]);
        let mut visits: Vec<Visit> =
            (vcs.first..=vcs.last).map(|vc| Visit { channel, vc, head, held: None }).collect();
        while let Some(visit) = visits.pop() {
            self.visit(visit, &mut visits);
        }
    }

    fn visit(&mut self, visit: Visit, visits: &mut Vec<Visit>) {
        let End::Router { router, port: input } = self.wiring.channels()[visit.channel as usize].to
        else {
            return;
        };
        let mut head = visit.head;
        let mut ways = Vec::new();
        let from = self.wiring.channels()[visit.channel as usize].from;
        let serial = visit.head.serial;
        let place = Place {
            router,
            input,
            vc: visit.vc,
            injected: matches!(from, End::Node(_)),
            vcs: self.settings.classes[usize::from(head.class)],
            seed: self.settings.seed,
            used: &|port| used(serial, router, port),
        };
        self.routing.route(&place, &mut head, &mut ways);
        head.hops += 1;
        let lowest = ways.iter().map(|way| way.priority).min();
        for way in &ways {
            let escape = Some(way.priority) == lowest;
            self.take(way, router, escape, Visit { head, ..visit }, visits);
        }
    }

    /// A packet asks for the VCs of a way, and has each of them in turn.
    fn take(
        &mut self,
        way: &Way,
        router: u32,
        escape: bool,
        visit: Visit,
        visits: &mut Vec<Visit>,
    ) {
        let channel = self.wiring.outputs(router)[way.port as usize];
        for vc in way.vcs.first..=way.vcs.last {
            let place = (channel * self.settings.vcs + vc) as usize;
            if let (true, Some(held)) = (escape, visit.held) {
                self.edges[held].insert(place);
            }
            let held = if escape { Some(place) } else { visit.held };
            let Head { phase, intermediate, .. } = visit.head;
            if self.seen.insert((place, phase, intermediate, held)) {
                visits.push(Visit { channel, vc, head: visit.head, held });
            }
        }
    }
}

/// Credits in use of an output port, as a packet may find them: none for every other packet, else drawn.
fn used(serial: u64, router: u32, port: u32) -> u32 {
    let [low, high] = split_words(serial);
    let drawn = random_bits(0, [low, high, router, port]) >> 48;
    u32::try_from(if serial.is_multiple_of(2) { 0 } else { drawn }).unwrap_or(0)
}

/// A circle in a graph, by depth-first search without recursion.
fn find_circle(edges: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut done = vec![false; edges.len()];
    let mut on_path = vec![false; edges.len()];
    for start in 0..edges.len() {
        if done[start] {
            continue;
        }
        let mut path = vec![(start, edges[start].iter())];
        on_path[start] = true;
        while let Some((at, next)) = path.last_mut() {
            let at = *at;
            match next.next() {
                Some(&to) if on_path[to] => {
                    let path: Vec<usize> = path.iter().map(|step| step.0).collect();
                    let begin = path.iter().position(|&step| step == to).unwrap_or(0);
                    return path[begin..].to_vec();
                }
                Some(&to) if !done[to] => {
                    on_path[to] = true;
                    path.push((to, edges[to].iter()));
                }
                Some(_) => {}
                None => {
                    done[at] = true;
                    on_path[at] = false;
                    path.pop();
                }
            }
        }
    }
    Vec::new()
}

/// Counts are bounded by what a graph may hold.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 of anything")
}
