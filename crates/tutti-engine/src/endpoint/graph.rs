//! An endpoint as a graph of servers: what each handling of a packet visits, and what limits chunks.
//!
//! [`super::ideal`], [`super::baseline`], [`super::agent`] and [`super::ace`] are such graphs.

use std::sync::Arc;

use super::ace::{Division, Exchanges, Fsms, Handover, Partitions, PhaseLoad};
use super::{Admission, Chunks, Endpoint, EndpointError, Handling, ServerKind, Stop};
use tutti_units::{Bytes, Time};

/// A graph of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Its name.
    pub name: Arc<str>,
    /// Maximum bytes of a packet, the unit of handling and sending.
    pub packet: Bytes,
    /// Fixed time of every received packet.
    pub delay: Time,
    /// The servers.
    pub servers: Vec<ServerKind>,
    /// The server that uses the memory bandwidth reserved for communication.
    pub memory: Option<usize>,
    /// By handling, in the order of [`Handling::ALL`]: the servers that it visits.
    pub visits: Vec<Vec<Stop>>,
    /// What limits the chunks in flight.
    pub storage: Storage,
    /// Messages of loads in flight; None: unlimited.
    pub loads: Option<u32>,
    /// Capacity of the buffer of a link, in packets; None: unlimited.
    pub port: Option<u32>,
}

/// What limits the chunks in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A number of chunks.
    Chunks(Chunks),
    /// A scratchpad.
    Scratchpad(Scratchpad),
}

/// An SRAM with a partition per phase of a collective, and FSMs that process its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratchpad {
    /// The size of the SRAM.
    pub sram: Bytes,
    /// How it is divided among the phases.
    pub division: Division,
    /// When a chunk reserves space in the partition of its next phase.
    pub handover: Handover,
    /// The FSMs.
    pub fsms: Fsms,
    /// Which of them process all-to-alls.
    pub exchanges: Exchanges,
}

impl Scratchpad {
    /// The partitions for collectives of these phases; `done` is the size of a completed chunk.
    fn partitions(&self, phases: &[PhaseLoad], done: Bytes) -> Result<Partitions, EndpointError> {
        let time = |phase: &PhaseLoad| match self.exchanges {
            Exchanges::AnyFsm => phase.time,
            Exchanges::OfPhase => phase.time.max(phase.exchange),
        };
        let phases: Vec<PhaseLoad> =
            phases.iter().map(|phase| PhaseLoad { time: time(phase), ..*phase }).collect();
        Ok(Partitions {
            handover: self.handover,
            exchanges: self.exchanges,
            ..Partitions::new(self.sram, &self.division, &self.fsms, &phases, done)?
        })
    }
}

impl Graph {
    /// The endpoint for collectives of these phases; `done` is the size of a completed chunk. Without a
    /// scratchpad neither matters.
    ///
    /// # Errors
    /// When packets or buffers are empty, a server or a visit is invalid, or the limit of chunks or the
    /// scratchpad is too small.
    pub fn endpoint(self, phases: &[PhaseLoad], done: Bytes) -> Result<Endpoint, EndpointError> {
        self.check()?;
        let admission = match &self.storage {
            Storage::Chunks(chunks) => chunks.check()?,
            Storage::Scratchpad(scratchpad) => {
                Admission::Partitions(scratchpad.partitions(phases, done)?)
            }
        };
        Ok(Endpoint {
            name: self.name,
            piece: self.packet,
            delay: self.delay,
            servers: self.servers,
            memory: self.memory,
            admission,
            loads: self.loads,
            port: self.port,
            recipes: self.visits,
        })
    }

    fn check(&self) -> Result<(), EndpointError> {
        let empty = |what| Err(EndpointError::Empty { what });
        match self {
            Graph { packet: Bytes(0), .. } => return empty("packets"),
            Graph { port: Some(0), .. } => return empty("port buffers"),
            Graph { loads: Some(0), .. } => return empty("DMA slots"),
            _ => {}
        }
        if let Some(kind) = self.servers.iter().find(|kind| kind.service.units == 0) {
            return Err(EndpointError::NoUnits { server: kind.name.to_string() });
        }
        let memory = self.memory.and_then(|memory| self.servers.get(memory));
        if let Some(kind) = memory.filter(|kind| kind.service.units > 1) {
            let (server, units) = (kind.name.to_string(), kind.service.units);
            return Err(EndpointError::MemoryUnits { server, units });
        }
        let servers = self.servers.len();
        let lists = self.visits.len();
        if lists != Handling::ALL.len()
            || self.visits.iter().flatten().any(|stop| stop.server >= servers)
            || self.memory.is_some_and(|memory| memory >= servers)
        {
            return Err(EndpointError::WrongVisits { lists, servers });
        }
        Ok(())
    }
}
