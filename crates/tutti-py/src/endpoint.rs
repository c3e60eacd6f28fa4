//! The endpoints of NPUs.

use pyo3::prelude::*;
use tutti_engine::endpoint::ace::{Ace, Division, Exchanges, Fsms, Handover};
use tutti_engine::endpoint::agent::Agent;
use tutti_engine::endpoint::baseline::Baseline;
use tutti_engine::endpoint::graph::{Graph, Storage};
use tutti_engine::endpoint::ideal::Ideal;
use tutti_engine::endpoint::{self, Admission, Chunks, ServerKind, Service, Stop};
use tutti_units::{Bytes, Time};

use crate::errors::{OrRaise, refuse};
use crate::schedule::Number;
use crate::step_fabric::StepFabric;
use crate::transfer::{Transfer, transfers as core_transfers};
use crate::units::TimePerByte;

fn chunks((all, phase): (Number, Number)) -> Chunks {
    Chunks { all: all.0, phase: phase.0, by_dimension: false }
}

/// The SRAM and the FSMs of an endpoint.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Scratchpad(endpoint::graph::Scratchpad);

#[pymethods]
impl Scratchpad {
    /// `shares` are the proportions of the partitions; None: by rate and chunk size. A chunk
    /// reserves space in the next partition ahead, or `late`, at the end of its phase. FSMs are
    /// divided among phases `by_time`, `evenly` or `each`, with their numbers. Any FSM processes
    /// all-to-alls, or only those of the phase with their partition.
    #[new]
    #[pyo3(signature = (*, size, shares, late, fsms, any_fsm))]
    fn new(
        size: u64,
        shares: Option<Vec<u32>>,
        late: bool,
        fsms: (String, Vec<u32>),
        any_fsm: bool,
    ) -> PyResult<Scratchpad> {
        Ok(Scratchpad(endpoint::graph::Scratchpad {
            sram: Bytes(size),
            division: shares.map_or(Division::RateTimesChunk, Division::Shares),
            handover: if late { Handover::AtEnd } else { Handover::Ahead },
            fsms: divided(fsms)?,
            exchanges: if any_fsm { Exchanges::AnyFsm } else { Exchanges::OfPhase },
        }))
    }
}

fn divided((division, counts): (String, Vec<u32>)) -> PyResult<Fsms> {
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

/// A server of an endpoint.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct EndpointServer(ServerKind);

#[pymethods]
impl EndpointServer {
    #[new]
    #[pyo3(signature = (name, per_byte, *, per_packet_ps, latency_ps, units))]
    fn new(
        name: String,
        per_byte: TimePerByte,
        per_packet_ps: u64,
        latency_ps: u64,
        units: Number,
    ) -> EndpointServer {
        EndpointServer(ServerKind {
            name: name.into(),
            service: Service {
                per_byte: per_byte.0,
                per_packet: Time::from_ps(per_packet_ps),
                latency: Time::from_ps(latency_ps),
                units: units.0,
            },
        })
    }
}

/// A visit of a packet to a server.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct ServerVisit(Stop);

#[pymethods]
impl ServerVisit {
    /// Each byte visits the server with number `server` this many `times`; the packet continues at
    /// once, `aside`, or when it was served.
    #[new]
    #[pyo3(signature = (server, *, times=1, aside=false))]
    fn new(server: usize, times: u64, aside: bool) -> ServerVisit {
        ServerVisit(Stop { server, times, aside })
    }
}

/// An endpoint: the model between an NPU and its links.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Endpoint(pub(crate) endpoint::Endpoint);

#[pymethods]
impl Endpoint {
    /// The ideal endpoint, which never stalls.
    #[staticmethod]
    #[pyo3(signature = (*, packet, cycle_ps, chunks_at_once))]
    fn ideal(packet: u64, cycle_ps: u64, chunks_at_once: (Number, Number)) -> PyResult<Endpoint> {
        let cycle = Time::from_ps(cycle_ps);
        let ideal = Ideal { packet: Bytes(packet), cycle, chunks: chunks(chunks_at_once) };
        ideal.endpoint().or_raise().map(Endpoint)
    }

    /// The messaging agent of ASTRA-sim, with these chunks of a collective at once.
    #[staticmethod]
    #[pyo3(signature = (*, delay_ps, memory, chunks_at_once))]
    fn agent(delay_ps: u64, memory: TimePerByte, chunks_at_once: Number) -> PyResult<Endpoint> {
        let delay = Time::from_ps(delay_ps);
        let agent = Agent { delay, memory: memory.0, chunks: chunks_at_once.0 };
        agent.endpoint().or_raise().map(Endpoint)
    }

    /// The baseline: the SMs of the NPU.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[pyo3(signature = (*, memory, per_sm, sms, bus, message, chunks_at_once, fused, charge_writes))]
    fn baseline(
        memory: TimePerByte,
        per_sm: TimePerByte,
        sms: Number,
        bus: TimePerByte,
        message: u64,
        chunks_at_once: (Number, Number),
        fused: bool,
        charge_writes: bool,
    ) -> PyResult<Endpoint> {
        let baseline = Baseline {
            memory: memory.0,
            per_sm: per_sm.0,
            sms: sms.0,
            bus: bus.0,
            message: Bytes(message),
            overhead: Time::ZERO,
            chunks: chunks(chunks_at_once),
            fused,
            charge_writes,
        };
        baseline.endpoint().or_raise().map(Endpoint)
    }

    /// ACE, with SRAM partitions for chunks of `chunk` bytes of all-reduces and further
    /// collectives on a fabric. `sram` is the time per byte of reads, and of writes.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    #[pyo3(signature = (fabric, *, chunk, transfers, memory, bus, scratchpad, sram, alu, packet, loads, port, cycle_ps, charge_writes))]
    fn ace(
        fabric: &StepFabric,
        chunk: u64,
        transfers: Vec<Transfer>,
        memory: TimePerByte,
        bus: TimePerByte,
        scratchpad: &Scratchpad,
        sram: TimePerByte,
        alu: TimePerByte,
        packet: u64,
        loads: Number,
        port: Number,
        cycle_ps: u64,
        charge_writes: bool,
    ) -> PyResult<Endpoint> {
        let of = scratchpad.0.clone();
        let ace = Ace {
            memory: memory.0,
            bus: bus.0,
            sram: of.sram,
            division: of.division,
            handover: of.handover,
            sram_read: sram.0,
            sram_write: sram.0,
            fsms: of.fsms,
            exchanges: of.exchanges,
            alu: alu.0,
            packet: Bytes(packet),
            loads: loads.0,
            port: port.0,
            cycle: Time::from_ps(cycle_ps),
            charge_writes,
        };
        let loads = fabric.phase_loads(&core_transfers(&transfers)?, Bytes(chunk), ace.packet)?;
        ace.endpoint(&loads, Bytes(chunk)).or_raise().map(Endpoint)
    }

    /// A graph of servers. A `scratchpad`, in place of `chunks_at_once`, has partitions for chunks
    /// of `chunk` bytes of all-reduces and further collectives on a fabric. `memory` is the number
    /// of the memory server; `visits` are those of each handling.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    #[pyo3(signature = (fabric, *, chunk, transfers, name, packet, delay_ps, servers, memory, visits, chunks_at_once, scratchpad, loads, port))]
    fn graph(
        fabric: &StepFabric,
        chunk: u64,
        transfers: Vec<Transfer>,
        name: String,
        packet: u64,
        delay_ps: u64,
        servers: Vec<PyRef<'_, EndpointServer>>,
        memory: Option<usize>,
        visits: Vec<Vec<PyRef<'_, ServerVisit>>>,
        chunks_at_once: (Number, Number),
        scratchpad: Option<&Scratchpad>,
        loads: Option<u32>,
        port: Option<u32>,
    ) -> PyResult<Endpoint> {
        let phase_loads = match scratchpad {
            None => Vec::new(),
            Some(_) => {
                let carried = core_transfers(&transfers)?;
                fabric.phase_loads(&carried, Bytes(chunk), Bytes(packet))?
            }
        };
        let graph = Graph {
            name: name.into(),
            packet: Bytes(packet),
            delay: Time::from_ps(delay_ps),
            servers: servers.iter().map(|server| server.0.clone()).collect(),
            memory,
            visits: visits.iter().map(|list| list.iter().map(|visit| visit.0).collect()).collect(),
            storage: scratchpad.map_or_else(
                || Storage::Chunks(chunks(chunks_at_once)),
                |scratchpad| Storage::Scratchpad(scratchpad.0.clone()),
            ),
            loads,
            port,
        };
        graph.endpoint(&phase_loads, Bytes(chunk)).or_raise().map(Endpoint)
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
