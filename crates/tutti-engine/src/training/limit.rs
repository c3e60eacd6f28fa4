//! The lower bound of a single collective: the busy time of its busiest server or link, and the
//! latency of its first chunk.
//!
//! [`TrainingFabric::limit`] counts packets without simulation. Tests check that no run is faster,
//! and that runs without contention are equal to it.

use super::plan::{PhaseKind, Shape};
use super::transfers::Cuts;
use super::{TrainingFabric, TrainingRunError};
use crate::endpoint::Handling;
use crate::workload::Transfer;
use tutti_units::{Bytes, Time};

/// The load of one collective on an NPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Busy time of each server of the endpoint.
    pub servers: Vec<(&'static str, Time)>,
    /// The part of it that packets wait for: all except asynchronous writes.
    pub awaited: Vec<Time>,
    /// Busy time of each link: two per ring, one per direction.
    pub links: Vec<Time>,
    /// Latency of the shortest chunk without contention: loaded, through all phases with one packet
    /// per step, and stored.
    pub latency: Time,
}

impl Limit {
    /// The lower bound.
    #[must_use]
    pub fn time(&self) -> Time {
        let work = self.awaited.iter().chain(&self.links).max().copied().unwrap_or(Time::ZERO);
        work.max(self.latency)
    }
}

impl TrainingFabric {
    /// Returns the load of a single collective on an NPU.
    ///
    /// # Errors
    /// When the torus does not support it, or a chunk does not fit into a partition.
    pub fn limit(&self, transfer: Transfer) -> Result<Limit, TrainingRunError> {
        let cuts = Cuts::new(self, &[transfer])?;
        let servers = vec![Time::ZERO; self.endpoint.servers.len()];
        let links = vec![Time::ZERO; 2 * self.torus.rings().len()];
        let mut sum = Sum { fabric: self, cuts: &cuts, awaited: servers.clone(), servers, links };
        let chunks = u32::try_from(cuts.chunks()).unwrap_or(u32::MAX);
        for chunk in 0..chunks {
            sum.add_chunk(chunk);
        }
        let names = self.endpoint.servers.iter().map(|kind| kind.name);
        Ok(Limit {
            servers: names.zip(sum.servers).collect(),
            awaited: sum.awaited,
            links: sum.links,
            latency: chunks.checked_sub(1).map_or(Time::ZERO, |last| self.latency(&cuts, last)),
        })
    }

    /// Latency of the first packet of each step of a chunk, sequentially.
    fn latency(&self, cuts: &Cuts, chunk: u32) -> Time {
        let shapes = cuts.shapes(chunk);
        let fetched = shapes.first().map_or(Bytes(0), |shape| shape.entry);
        let put = cuts.cuts[0].done(chunk);
        let mut time = self.through(Handling::Load, fetched.min(self.message));
        for shape in shapes {
            let piece = shape.bytes(shape.pieces - 1);
            time += match shape.phase.kind {
                PhaseKind::AllToAll => self.farthest(cuts, shape, piece),
                _ => self.round(shape, piece),
            };
        }
        time + self.through(Handling::Store, put.min(self.message))
    }

    /// Time at the synchronous stops of a handling.
    fn through(&self, handling: Handling, bytes: Bytes) -> Time {
        let stops = self.endpoint.recipe(handling).iter().filter(|stop| !stop.aside);
        let time = |server: usize, times| {
            self.endpoint.servers[server].per_byte.of(Bytes(bytes.0 * times))
        };
        stops.map(|stop| time(stop.server, stop.times)).fold(Time::ZERO, |sum, time| sum + time)
    }

    /// Time of a packet on a link of `ring`.
    fn link(&self, at: usize, bytes: Bytes) -> Time {
        let ring = self.torus.rings()[at];
        let left = ring.per_byte.of(bytes) + ring.latency + self.endpoint.delay;
        left + self.torus.relay(at, bytes)
    }

    /// Time of all steps of a ring.
    fn round(&self, shape: &Shape, piece: Bytes) -> Time {
        let mut time = self.through(shape.sending(), piece);
        for step in shape.first..shape.first + shape.steps {
            time += self.link(shape.phase.ring, piece) + self.through(shape.receiving(step), piece);
        }
        time
    }

    /// Latency of the longest path in an all-to-all.
    fn farthest(&self, cuts: &Cuts, shape: &Shape, piece: Bytes) -> Time {
        let torus = &cuts.cuts[0].torus;
        let path = |step: u32| {
            let mut time = self.through(Handling::SendOwn, piece);
            for (hop, (ring, _)) in (0..).map_while(|hop| Some((hop, torus.hop(step + 1, hop)?))) {
                if hop > 0 {
                    time += self.through(Handling::PassOn, piece);
                }
                time += self.link(ring, piece);
            }
            time + self.through(Handling::Keep, piece)
        };
        (0..shape.steps).map(path).max().unwrap_or(Time::ZERO)
    }
}

/// Accumulated work.
struct Sum<'a> {
    fabric: &'a TrainingFabric,
    cuts: &'a Cuts,
    servers: Vec<Time>,
    awaited: Vec<Time>,
    links: Vec<Time>,
}

impl Sum<'_> {
    fn add_chunk(&mut self, chunk: u32) {
        let cuts = self.cuts;
        let shapes = cuts.shapes(chunk);
        if let Some(first) = shapes.first() {
            self.moved(Handling::Load, first.entry);
        }
        for shape in shapes {
            for piece in 0..shape.pieces {
                match shape.phase.kind {
                    PhaseKind::AllToAll => self.add_exchange(shape, shape.bytes(piece)),
                    _ => self.add_round(shape, chunk, shape.bytes(piece)),
                }
            }
        }
        self.moved(Handling::Store, cuts.cuts[0].done(chunk));
    }

    /// Adds the handling of a packet.
    fn handled(&mut self, handling: Handling, bytes: Bytes) {
        for stop in self.fabric.endpoint.recipe(handling) {
            let per_byte = self.fabric.endpoint.servers[stop.server].per_byte;
            let work = per_byte.of(Bytes(bytes.0 * stop.times));
            self.servers[stop.server] += work;
            if !stop.aside {
                self.awaited[stop.server] += work;
            }
        }
    }

    /// Adds a load or store of a chunk, one message at a time.
    fn moved(&mut self, handling: Handling, bytes: Bytes) {
        let message = self.fabric.message.0;
        for at in 0..bytes.0.div_ceil(message) {
            self.handled(handling, Bytes((bytes.0 - at * message).min(message)));
        }
    }

    fn sent(&mut self, ring: usize, direction: u8, bytes: Bytes) {
        self.links[2 * ring + usize::from(direction)] +=
            self.fabric.torus.rings()[ring].per_byte.of(bytes);
    }

    fn add_round(&mut self, shape: &Shape, chunk: u32, piece: Bytes) {
        let direction = shape.phase.direction_of(chunk);
        self.handled(shape.sending(), piece);
        for step in shape.first..shape.first + shape.steps {
            self.sent(shape.phase.ring, direction, piece);
            self.handled(shape.receiving(step), piece);
        }
    }

    fn add_exchange(&mut self, shape: &Shape, piece: Bytes) {
        let torus = &self.cuts.cuts[0].torus;
        for step in 0..shape.steps {
            self.handled(Handling::SendOwn, piece);
            for (hop, (ring, direction)) in
                (0..).map_while(|hop| Some((hop, torus.hop(step + 1, hop)?)))
            {
                if hop > 0 {
                    self.handled(Handling::PassOn, piece);
                }
                self.sent(ring, direction, piece);
            }
            self.handled(Handling::Keep, piece);
        }
    }
}
