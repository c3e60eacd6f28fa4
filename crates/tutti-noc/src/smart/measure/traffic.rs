//! Who sends what, cycle by cycle.
//!
//! Draws are pure functions of the seed, the load, the source and the number of the message.

use super::{Kind, Load, Members, Sources};
use crate::smart::message::NodeSet;
use crate::smart::settings::Settings;
use crate::traffic::{Created, Injectors, Stream, below, bits, load_seed};

/// Messages of a load, in order of time.
pub(super) struct Generator {
    pub(super) load: Load,
    seed: u64,
    /// Of each node that sends; of reductions, of each process.
    injectors: Injectors,
    /// The cycle of the next message of all sources.
    next: u64,
    nodes: u32,
}

/// The generators of the loads of a run.
pub(super) fn generators(settings: &Settings, loads: &[Load], seed: u64) -> Vec<Generator> {
    let generator = |(index, load): (usize, &Load)| {
        Generator::new(load, settings.columns, settings.rows, load_seed(seed, index))
    };
    loads.iter().enumerate().map(generator).collect()
}

/// What is to be sent.
pub(super) enum Order {
    /// A packet to one node.
    Unicast { source: u32, destination: u32, flits: u32 },
    /// A flit to these.
    Multicast { source: u32, members: NodeSet },
    /// A flit from every other node to this node.
    Reduction { destination: u32 },
}

impl Generator {
    pub(super) fn new(load: &Load, columns: u32, rows: u32, seed: u64) -> Generator {
        let nodes = columns * rows;
        let corners = [0, columns - 1, nodes - columns, nodes - 1];
        let sources: Vec<u32> = match &load.kind {
            Kind::Unicast { pattern, .. } => {
                (0..nodes).filter(|&node| pattern.sends(node)).collect()
            }
            Kind::Broadcast { from: Sources::Corners }
            | Kind::Multicast { from: Sources::Corners, .. } => corners.to_vec(),
            Kind::Broadcast { .. } | Kind::Multicast { .. } => (0..nodes).collect(),
            &Kind::Reduction { streams } => (0..streams).collect(),
        };
        let injectors = Injectors::new(load.process, &sources, seed);
        let next = injectors.earliest();
        Generator { load: load.clone(), seed, injectors, next, nodes }
    }

    /// The cycle of the next message.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The messages of a cycle, in order of their sources.
    pub(super) fn take(&mut self, cycle: u64, mut give: impl FnMut(Order)) {
        if self.next > cycle {
            return;
        }
        for source in 0..self.injectors.sources() {
            if self.injectors.next_at(source) <= cycle {
                let Created { serial, .. } = self.injectors.take(source);
                give(self.order(source, serial));
            }
        }
        self.next = self.injectors.earliest();
    }

    fn order(&self, source: u32, serial: u64) -> Order {
        match &self.load.kind {
            Kind::Unicast { pattern, size } => Order::Unicast {
                source,
                destination: pattern.destination(self.seed, source, serial).unwrap_or(source),
                flits: size.draw(self.seed, source, serial),
            },
            Kind::Broadcast { .. } => {
                Order::Multicast { source, members: NodeSet::all_but(self.nodes, source) }
            }
            Kind::Multicast { to: Members::AnyNumber, .. } => {
                Order::Multicast { source, members: self.any_number(source, serial) }
            }
            Kind::Multicast { to: Members::Half, .. } => {
                Order::Multicast { source, members: self.half(source, serial) }
            }
            Kind::Reduction { .. } => {
                let drawn = bits(self.seed, Stream::Root, source, serial);
                Order::Reduction { destination: below(drawn, self.nodes) }
            }
        }
    }

    /// A random number of the other nodes, by the first steps of a shuffle.
    fn any_number(&self, source: u32, serial: u64) -> NodeSet {
        let draw = |number: u64| {
            let number = serial.wrapping_mul(u64::from(self.nodes)).wrapping_add(number);
            bits(self.seed, Stream::Members, source, number)
        };
        let mut others: Vec<u32> = (0..self.nodes).filter(|&node| node != source).collect();
        let all = self.nodes - 1;
        let count = 1 + below(draw(0), all);
        (0..count)
            .map(|index| {
                let chosen = index + below(draw(u64::from(index) + 1), all - index);
                others.swap(index as usize, chosen as usize);
                others[index as usize]
            })
            .collect()
    }

    /// Each of the others or not.
    fn half(&self, source: u32, serial: u64) -> NodeSet {
        let words = u64::from(self.nodes.div_ceil(64));
        // Draws of one message number up to 2^20: a mesh has 64 words, and is drawn again seldom.
        let mut number = serial << 20;
        loop {
            let drawn: Vec<u64> = (number..number + words)
                .map(|number| bits(self.seed, Stream::Members, source, number))
                .collect();
            let is_in = |node: &u32| drawn[*node as usize / 64] >> (node % 64) & 1 == 1;
            let set: NodeSet =
                (0..self.nodes).filter(|&node| node != source).filter(is_in).collect();
            if !set.is_empty() {
                return set;
            }
            number += words;
        }
    }
}
