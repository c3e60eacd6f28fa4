//! A flit network that runs: the fast engine, in the size that its routers need.

use std::sync::Arc;

use super::fast;
use super::measure::Stalls;
use super::packet::Source;
use super::routing::Routing;
use super::settings::Settings;
use super::{FlitError, Wiring};

/// A running flit network. Packets come from a [`Source`], which is notified of deliveries.
pub struct Network(Size);

/// How many words hold a bit for each VC of a router.
enum Size {
    One(Box<fast::Network<1>>),
    Four(Box<fast::Network<4>>),
    Most(Box<fast::Network<32>>),
}

macro_rules! each {
    ($self:expr, $network:ident => $value:expr) => {
        match $self {
            Size::One($network) => $value,
            Size::Four($network) => $value,
            Size::Most($network) => $value,
        }
    };
}

impl Network {
    /// The limit on VCs of all ports of a router on one side.
    pub const MOST_VCS: u32 = 32 * 64;

    /// An empty network.
    ///
    /// # Errors
    /// When settings are out of range or clash, or a router is too large.
    pub fn new(
        wiring: &Wiring,
        settings: &Settings,
        routing: Arc<dyn Routing>,
    ) -> Result<Network, FlitError> {
        settings.check()?;
        for (class, vcs) in settings.classes.iter().enumerate() {
            if vcs.count() < routing.least_vcs() {
                return Err(FlitError::TooFewVcs {
                    routing: routing.name().to_owned(),
                    needs: routing.least_vcs(),
                    class,
                    has: vcs.count(),
                });
            }
        }
        settings.check_buffers(wiring.routers(), routing.least_vcs())?;
        settings.check_clocks(wiring)?;
        let ports = |router| wiring.inputs(router).len().max(wiring.outputs(router).len());
        let ports = (0..wiring.routers()).map(ports).max().unwrap_or(0);
        let vcs = ports * settings.vcs as usize;
        let size = match vcs {
            0..=64 => Size::One(Box::new(fast::Network::new(wiring, settings, routing)?)),
            65..=256 => Size::Four(Box::new(fast::Network::new(wiring, settings, routing)?)),
            257..=2048 => Size::Most(Box::new(fast::Network::new(wiring, settings, routing)?)),
            _ => {
                return Err(FlitError::OutOfRange {
                    what: "VCs of all ports of a router",
                    value: vcs as u64,
                    expected: format!("at most {}", Network::MOST_VCS),
                });
            }
        };
        Ok(Network(size))
    }

    /// Runs one cycle.
    pub fn step<S: Source>(&mut self, source: &mut S) {
        each!(&mut self.0, network => network.step(source));
    }

    /// Runs cycles up to, but not including, `end`, for a source that gets no packets in between.
    pub fn run_until<S: Source>(&mut self, end: u64, source: &mut S) {
        each!(&mut self.0, network => {
            while network.now() < end {
                network.step(source);
                network.rest(Some(end));
            }
        });
    }

    /// Skips cycles without events, up to, but not including, `end` if given. Ignores packets that
    /// the source got since it was last polled.
    pub fn rest(&mut self, end: Option<u64>) {
        each!(&mut self.0, network => network.rest(end));
    }

    /// The next cycle.
    #[must_use]
    pub fn now(&self) -> u64 {
        each!(&self.0, network => network.now())
    }

    /// Packets that have been taken from the source and have not arrived.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        each!(&self.0, network => network.in_flight())
    }

    /// Flits sent over each channel of the wiring.
    #[must_use]
    pub fn sent(&self) -> Vec<u64> {
        each!(&self.0, network => network.sent())
    }

    /// Flits sent by each VC of each channel of the wiring, by channel, then VC; modulo 2^32.
    #[must_use]
    pub fn sent_by_vc(&self) -> Vec<u32> {
        each!(&self.0, network => network.sent_by_vc())
    }

    /// Flits sent over all channels, of routers and nodes.
    #[must_use]
    pub fn moves(&self) -> u64 {
        each!(&self.0, network => network.moves())
    }

    /// Flits in the buffer of each input VC: by router, then input port, then VC.
    #[must_use]
    pub fn occupancy(&self) -> Vec<u32> {
        each!(&self.0, network => network.occupancy())
    }

    /// Counts, for the flits that are first in their VC now, why they are stalled.
    pub fn count_stalls(&self, stalls: &mut Stalls) {
        each!(&self.0, network => network.count_stalls(stalls));
    }

    /// Input VCs in a deadlock cycle, each waiting for the next and the last for the first; empty
    /// without one.
    #[must_use]
    pub fn deadlock_cycle(&self) -> Vec<Waiting> {
        each!(&self.0, network => network.deadlock_cycle())
    }
}

/// An input VC that cannot advance before another does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Its router.
    pub router: u32,
    /// Its input port.
    pub input: u32,
    /// Its number.
    pub vc: u32,
    /// What it waits for.
    pub reason: Reason,
}

/// What an input VC waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A VC that the packet of the next input VC holds.
    Vc,
    /// A credit, which the next input VC must free.
    Credit,
}
