//! What one collective alone cannot be faster than: the work of its busiest server or link, and the way
//! of its first chunk.
//!
//! Nothing is simulated: pieces are counted. [`TrainingFabric::limit`] is a lower bound of any run, whatever
//! waits for whatever; tests hold the engine to it, and to equality where nothing waits.

use super::plan::{PhaseKind, Shape};
use super::transfers::Cuts;
use super::{TrainingFabric, TrainingRunError};
use crate::endpoint::Handling;
use crate::workload::Transfer;
use tutti_units::{Bytes, Time};

/// What one collective asks of an NPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How long each server of the endpoint works.
    pub servers: Vec<(&'static str, Time)>,
    /// How long of that something waits for it: all but what is done aside.
    pub awaited: Vec<Time>,
    /// How long each link works: two for each ring, one each way round.
    pub links: Vec<Time>,
    /// From the first to the last byte of the shortest chunk, when nothing waits: fetched, through all
    /// phases with a single piece in each step, and put back.
    pub latency: Time,
}

impl Limit {
    /// The least time it can take.
    #[must_use]
    pub fn time(&self) -> Time {
        let work = self.awaited.iter().chain(&self.links).max().copied().unwrap_or(Time::ZERO);
        work.max(self.latency)
    }
}

impl TrainingFabric {
    /// What a collective asks of an NPU, alone.
    ///
    /// # Errors
    /// When it has no plan on the torus, or a chunk fits nowhere.
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

    /// The way of the first piece of each step of a chunk, one after the other.
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

    /// Stops of a handling that a piece waits for.
    fn through(&self, handling: Handling, bytes: Bytes) -> Time {
        let stops = self.endpoint.recipe(handling).iter().filter(|stop| !stop.aside);
        let time = |server: usize, times| {
            self.endpoint.servers[server].per_byte.of(Bytes(bytes.0 * times))
        };
        stops.map(|stop| time(stop.server, stop.times)).fold(Time::ZERO, |sum, time| sum + time)
    }

    /// A piece goes over a link of `ring`.
    fn link(&self, at: usize, bytes: Bytes) -> Time {
        let ring = self.torus.rings()[at];
        let left = ring.per_byte.of(bytes) + ring.latency + self.endpoint.delay;
        left + self.torus.relay(at, bytes)
    }

    /// All steps of a ring.
    fn round(&self, shape: &Shape, piece: Bytes) -> Time {
        let mut time = self.through(shape.sending(), piece);
        for step in shape.first..shape.first + shape.steps {
            time += self.link(shape.phase.ring, piece) + self.through(shape.receiving(step), piece);
        }
        time
    }

    /// The longest way in an all-to-all.
    fn farthest(&self, cuts: &Cuts, shape: &Shape, piece: Bytes) -> Time {
        let torus = &cuts.cuts[0].torus;
        let way = |step: u32| {
            let mut time = self.through(Handling::SendOwn, piece);
            for (hop, (ring, _)) in (0..).map_while(|hop| Some((hop, torus.hop(step + 1, hop)?))) {
                if hop > 0 {
                    time += self.through(Handling::PassOn, piece);
                }
                time += self.link(ring, piece);
            }
            time + self.through(Handling::Keep, piece)
        };
        (0..shape.steps).map(way).max().unwrap_or(Time::ZERO)
    }
}

/// Work added up.
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

    /// A piece is handled.
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

    /// A chunk is fetched or put back, a message at a time.
    fn moved(&mut self, handling: Handling, bytes: Bytes) {
        let message = self.fabric.message.0;
        for at in 0..bytes.0.div_ceil(message) {
            self.handled(handling, Bytes((bytes.0 - at * message).min(message)));
        }
    }

    fn sent(&mut self, ring: usize, way: u8, bytes: Bytes) {
        self.links[2 * ring + usize::from(way)] +=
            self.fabric.torus.rings()[ring].per_byte.of(bytes);
    }

    fn add_round(&mut self, shape: &Shape, chunk: u32, piece: Bytes) {
        let way = shape.phase.way_of(chunk);
        self.handled(shape.sending(), piece);
        for step in shape.first..shape.first + shape.steps {
            self.sent(shape.phase.ring, way, piece);
            self.handled(shape.receiving(step), piece);
        }
    }

    fn add_exchange(&mut self, shape: &Shape, piece: Bytes) {
        let torus = &self.cuts.cuts[0].torus;
        for step in 0..shape.steps {
            self.handled(Handling::SendOwn, piece);
            for (hop, (ring, way)) in (0..).map_while(|hop| Some((hop, torus.hop(step + 1, hop)?)))
            {
                if hop > 0 {
                    self.handled(Handling::PassOn, piece);
                }
                self.sent(ring, way, piece);
            }
            self.handled(Handling::Keep, piece);
        }
    }
}
