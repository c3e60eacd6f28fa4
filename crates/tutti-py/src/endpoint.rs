//! The endpoints of NPUs.

use pyo3::prelude::*;
use tutti_engine::endpoint::ace::{Ace, Division, Exchanges, Fsms, Handover};
use tutti_engine::endpoint::agent::Agent;
use tutti_engine::endpoint::baseline::Baseline;
use tutti_engine::endpoint::graph::{Graph, Scratchpad, Storage};
use tutti_engine::endpoint::ideal::Ideal;
use tutti_engine::endpoint::{self, Admission, Chunks, ServerKind, Service, Stop};
use tutti_units::{Bytes, Time};

use crate::errors::{OrRaise, refuse};
use crate::schedule::Number;
use crate::step_fabric::StepFabric;
use crate::training::{GivenTransfer, transfers};
use crate::units::TimePerByte;

/// The settings of an ideal endpoint, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenIdeal {
    packet: u64,
    cycle: u64,
    chunks: (Number, Number),
}

/// The settings of a messaging agent, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenAgent {
    delay: u64,
    memory: TimePerByte,
    chunks: Number,
}

/// The settings of a baseline endpoint, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenBaseline {
    memory: TimePerByte,
    per_sm: TimePerByte,
    sms: Number,
    bus: TimePerByte,
    message: u64,
    overhead: u64,
    chunks: (Number, Number),
    fused: bool,
    charge_writes: bool,
}

/// The settings of an ACE, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenAce {
    memory: TimePerByte,
    bus: TimePerByte,
    sram: u64,
    /// Proportions of the SRAM partitions; None: by rate and chunk size.
    shares: Option<Vec<u32>>,
    /// Whether a chunk reserves space in the next partition only at the end of its phase.
    late: bool,
    sram_read: TimePerByte,
    sram_write: TimePerByte,
    /// How FSMs are divided among phases (`by_time`, `evenly` or `each`), and their numbers.
    fsms: (String, Vec<u32>),
    /// Whether any FSM processes all-to-alls, or only those of the phase with their partition.
    any_fsm: bool,
    alu: TimePerByte,
    packet: u64,
    loads: Number,
    port: Number,
    cycle: u64,
    charge_writes: bool,
}

fn chunks((all, phase): (Number, Number)) -> Chunks {
    Chunks { all: all.0, phase: phase.0, by_dimension: false }
}

fn fsms((division, counts): (String, Vec<u32>)) -> PyResult<Fsms> {
    match (division.as_str(), counts.as_slice()) {
        ("by_time", [sum]) => Ok(Fsms::ByTime(*sum)),
        ("evenly", [sum]) => Ok(Fsms::Evenly(*sum)),
        ("each", _) => Ok(Fsms::Each(counts)),
        _ => {
            let message =
                format!("unknown division `{division}` of FSMs: expected by_time, evenly or each");
            Err(refuse("EndpointError", "wrong_fsms", &message))
        }
    }
}

/// A server by name: its name, time per byte, picoseconds per packet, picoseconds of latency, units.
type GivenServer = (String, TimePerByte, u64, u64, Number);

/// A scratchpad by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenScratchpad {
    sram: u64,
    shares: Option<Vec<u32>>,
    late: bool,
    fsms: (String, Vec<u32>),
    any_fsm: bool,
}

impl GivenScratchpad {
    fn scratchpad(self) -> PyResult<Scratchpad> {
        Ok(Scratchpad {
            sram: Bytes(self.sram),
            division: self.shares.map_or(Division::RateTimesChunk, Division::Shares),
            handover: if self.late { Handover::AtEnd } else { Handover::Ahead },
            fsms: fsms(self.fsms)?,
            exchanges: if self.any_fsm { Exchanges::AnyFsm } else { Exchanges::OfPhase },
        })
    }
}

/// A graph of servers by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenGraph {
    name: String,
    packet: u64,
    delay: u64,
    servers: Vec<GivenServer>,
    /// The number of the memory server.
    memory: Option<usize>,
    /// By handling: the number of each visited server, how often each byte visits it, and whether the
    /// packet continues at once.
    visits: Vec<Vec<(usize, u64, bool)>>,
    chunks: (Number, Number),
    /// In place of `chunks`.
    scratchpad: Option<GivenScratchpad>,
    loads: Option<u32>,
    port: Option<u32>,
}

impl GivenGraph {
    fn graph(self) -> PyResult<Graph> {
        let kind = |(name, per_byte, per_packet, latency, units): GivenServer| ServerKind {
            name: name.into(),
            service: Service {
                per_byte: per_byte.0,
                per_packet: Time::from_ps(per_packet),
                latency: Time::from_ps(latency),
                units: units.0,
            },
        };
        let stop = |(server, times, aside)| Stop { server, times, aside };
        let visits = self.visits.into_iter().map(|list| list.into_iter().map(stop).collect());
        let storage = match self.scratchpad {
            None => Storage::Chunks(chunks(self.chunks)),
            Some(given) => Storage::Scratchpad(given.scratchpad()?),
        };
        Ok(Graph {
            name: self.name.into(),
            packet: Bytes(self.packet),
            delay: Time::from_ps(self.delay),
            servers: self.servers.into_iter().map(kind).collect(),
            memory: self.memory,
            visits: visits.collect(),
            storage,
            loads: self.loads,
            port: self.port,
        })
    }
}

/// An endpoint: the model between an NPU and its links.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Endpoint(pub(crate) endpoint::Endpoint);

#[pymethods]
impl Endpoint {
    /// The ideal endpoint, which never stalls.
    #[staticmethod]
    fn ideal(settings: GivenIdeal) -> PyResult<Endpoint> {
        let GivenIdeal { packet, cycle, chunks: bound } = settings;
        let cycle = Time::from_ps(cycle);
        let ideal = Ideal { packet: Bytes(packet), cycle, chunks: chunks(bound) };
        ideal.endpoint().or_raise().map(Endpoint)
    }

    /// The messaging agent of ASTRA-sim.
    #[staticmethod]
    fn agent(settings: GivenAgent) -> PyResult<Endpoint> {
        let GivenAgent { delay, memory, chunks } = settings;
        let delay = Time::from_ps(delay);
        let agent = Agent { delay, memory: memory.0, chunks: chunks.0 };
        agent.endpoint().or_raise().map(Endpoint)
    }

    /// The baseline: the SMs of the NPU.
    #[staticmethod]
    fn baseline(settings: GivenBaseline) -> PyResult<Endpoint> {
        let given = settings;
        let baseline = Baseline {
            memory: given.memory.0,
            per_sm: given.per_sm.0,
            sms: given.sms.0,
            bus: given.bus.0,
            message: Bytes(given.message),
            overhead: Time::from_ps(given.overhead),
            chunks: chunks(given.chunks),
            fused: given.fused,
            charge_writes: given.charge_writes,
        };
        baseline.endpoint().or_raise().map(Endpoint)
    }

    /// ACE, with SRAM partitions for chunks of `chunk` bytes of all-reduces and further
    /// collectives on a fabric.
    #[staticmethod]
    fn ace(
        settings: GivenAce,
        fabric: &StepFabric,
        chunk: u64,
        given_transfers: Vec<GivenTransfer>,
    ) -> PyResult<Endpoint> {
        let given = settings;
        let ace = Ace {
            memory: given.memory.0,
            bus: given.bus.0,
            sram: Bytes(given.sram),
            division: given.shares.map_or(Division::RateTimesChunk, Division::Shares),
            handover: if given.late { Handover::AtEnd } else { Handover::Ahead },
            sram_read: given.sram_read.0,
            sram_write: given.sram_write.0,
            fsms: fsms(given.fsms)?,
            exchanges: if given.any_fsm { Exchanges::AnyFsm } else { Exchanges::OfPhase },
            alu: given.alu.0,
            packet: Bytes(given.packet),
            loads: given.loads.0,
            port: given.port.0,
            cycle: Time::from_ps(given.cycle),
            charge_writes: given.charge_writes,
        };
        let carried = transfers(given_transfers)?;
        let loads = fabric.phase_loads(&carried, Bytes(chunk), ace.packet)?;
        ace.endpoint(&loads, Bytes(chunk)).or_raise().map(Endpoint)
    }

    /// A graph of servers; a scratchpad has partitions for chunks of `chunk` bytes of all-reduces and
    /// further collectives on a fabric.
    #[staticmethod]
    fn graph(
        settings: GivenGraph,
        fabric: &StepFabric,
        chunk: u64,
        given_transfers: Vec<GivenTransfer>,
    ) -> PyResult<Endpoint> {
        let graph = settings.graph()?;
        let loads = match &graph.storage {
            Storage::Chunks(_) => Vec::new(),
            Storage::Scratchpad(_) => {
                let carried = transfers(given_transfers)?;
                fabric.phase_loads(&carried, Bytes(chunk), graph.packet)?
            }
        };
        graph.endpoint(&loads, Bytes(chunk)).or_raise().map(Endpoint)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// FSMs of each phase; empty without FSMs.
    #[getter]
    fn fsms(&self) -> Vec<u32> {
        match &self.0.admission {
            Admission::Chunks(_) => Vec::new(),
            Admission::Partitions(partitions) => partitions.fsms.clone(),
        }
    }

    /// Bytes of the SRAM partitions; empty without partitions.
    #[getter]
    fn partition_bytes(&self) -> Vec<u64> {
        match &self.0.admission {
            Admission::Chunks(_) => Vec::new(),
            Admission::Partitions(partitions) => {
                partitions.sizes.iter().map(|bytes| bytes.0).collect()
            }
        }
    }
}
