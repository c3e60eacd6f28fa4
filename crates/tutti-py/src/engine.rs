//! Runs of the engine: one with its record, or many in threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use tutti_analysis::bound::{Exchange, Folding, GraphBound, Ports, Query, bound, in_network};
use tutti_analysis::closed_form;
use tutti_engine::results;
use tutti_engine::{
    self, EngineError, Loaded, LocalCosts, Routed, Silent, Simulation, TimelineProbe,
};
use tutti_network::flow::{FlowLevel, FlowNetwork, FlowRouting};
use tutti_network::packet::{self, Choice, Ends, PacketNetwork, Packets};
use tutti_network::{
    BackgroundFlow, Carrier, MessageModel, Model, Switches, Uncontended, classes_of_switches,
    dispatch,
};
use tutti_schedule::Layout;
use tutti_schedule::algorithm::critical_path;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

use crate::algorithm::collective_named;
use crate::errors::{OrRaise, raised, refuse};
use crate::flits::Flits;
use crate::mesh_flits::MeshFlits;
use crate::network::{self, Conditions, LinkLoad};
use crate::run::{Left, Run, Used};
use crate::schedule::{Number, Schedule};
use crate::threads::{each_in_threads, watched};
use crate::topology::{Choosing, GraphBounds, Routes};

/// All inputs of a run.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct Case {
    schedule: Schedule,
    model: Model,
    size: Bytes,
    element: u64,
    costs: LocalCosts,
    conditions: Conditions,
    routes: Option<Arc<tutti_topology::Routes>>,
    graph_bounds: Option<Arc<GraphBounds>>,
    flow: Option<FlowLevel>,
    packets: Option<Packets>,
    flits: Option<Flits>,
    mesh: Option<MeshFlits>,
    /// The routing algorithm of packets, and its seed.
    choosing: Option<(Choosing, u64)>,
    load: Option<Arc<tutti_network::LinkLoad>>,
    flows: Vec<BackgroundFlow>,
}

#[pymethods]
impl Case {
    #[new]
    #[pyo3(signature = (schedule, model, *, size, element, conditions=None, routes=None, flow=None, packets=None, flits=None, mesh=None, load=None, flows=None, seed=0))]
    #[expect(clippy::too_many_arguments, reason = "all are keyword arguments")]
    fn new(
        schedule: &Schedule,
        model: &network::Model,
        size: u64,
        element: u64,
        conditions: Option<&Conditions>,
        routes: Option<&Routes>,
        flow: Option<&network::FlowLevel>,
        packets: Option<&network::Packets>,
        flits: Option<&Flits>,
        mesh: Option<&MeshFlits>,
        load: Option<&LinkLoad>,
        flows: Option<Vec<Flow>>,
        seed: u64,
    ) -> PyResult<Case> {
        let choosing = routes.and_then(|routes| routes.choosing.clone());
        match (flits, flow) {
            (Some(flits), _) => flits.check(routes)?,
            (None, Some(flow)) => check_flow(routes, choosing.as_ref(), &flow.0)?,
            (None, None) => {
                check_packets(packets.map(|packets| &packets.0), routes, choosing.as_ref())?;
            }
        }
        if let Some(routes) = routes {
            // If the last rank exists, all do.
            let last = RankId(schedule.inner.shape().ranks - 1);
            routes.inner.try_pair(last, last).or_raise()?;
        }
        if let Some(mesh) = mesh {
            mesh.check(schedule.inner.shape().ranks)?;
        }
        Layout::of_schedule(&*schedule.inner, Bytes(size), element).or_raise()?;
        Ok(Case {
            schedule: schedule.clone(),
            model: model.0,
            size: Bytes(size),
            element,
            costs: model.1,
            conditions: conditions.cloned().unwrap_or_default(),
            routes: routes.map(|routes| Arc::clone(&routes.inner)),
            graph_bounds: routes.map(|routes| Arc::clone(&routes.graph_bounds)),
            flow: flow.map(|flow| flow.0.clone()),
            packets: packets.map(|packets| packets.0.clone()),
            flits: flits.map(|flits| flits.with_seed(seed)),
            mesh: mesh.cloned(),
            choosing: choosing.map(|choosing| (choosing, seed)),
            load: load.map(|load| Arc::clone(&load.0)),
            flows: checked_flows(flows.unwrap_or_default(), routes)?,
        })
    }

    /// The completion time by the closed form, if there is one: for an algorithm of the registry
    /// without noise, topology or copy costs.
    fn closed_form_ps(&self) -> PyResult<Option<u64>> {
        let Some(notation) = &self.schedule.algorithm else { return Ok(None) };
        let has_distance = self.routes.is_some() || self.mesh.is_some();
        if has_distance
            || !self.conditions.0.is_quiet()
            || self.costs.copy != tutti_units::TimePerByte::ZERO
        {
            return Ok(None);
        }
        let shape = self.schedule.inner.shape();
        let path = critical_path(notation, shape.collective, shape.ranks).or_raise()?;
        let reduce = |operands, bytes| self.costs.reduce(operands, bytes);
        let time = |stages: Vec<_>| {
            closed_form::time(&self.model, &stages, self.size, self.element, reduce)
        };
        Ok(path.and_then(time).map(|time| (self.costs.launch + time).ps()))
    }

    /// The lower bound of the collective on this model and graph. A single phase has none; its
    /// graph need not connect all ranks.
    fn bound(&self, py: Python<'_>) -> LowerBound {
        if self.schedule.inner.is_part() {
            return LowerBound::NONE;
        }
        let shape = self.schedule.inner.shape();
        let (collective, ranks) = (shape.collective, shape.ranks);
        let found = py.detach(|| {
            let (size, element, layout) = (self.size, self.element, self.layout());
            let exchange = Exchange::of(&layout);
            let query = Query { collective, ranks, size, element, exchange };
            let graph = self.routes.as_deref().zip(self.graph_bounds.as_deref()).map_or(
                GraphBound::NONE,
                // Without contention, the links' rates are not a bound.
                |(routes, graph_bounds)| {
                    let topology = routes.topology();
                    let (shared, vertices) = (self.is_contended(), self.in_network_on(topology));
                    let graph = graph_bounds.of(topology, collective, ranks, (shared, vertices));
                    graph.with_blocks(topology, &layout, shared)
                },
            );
            let of_flow = self.flow.as_ref().map(|flow| (flow.injection, flow.ejection));
            let of_packets = self.packets.as_ref().map(|p| (p.injection, p.ejection));
            let declared = of_packets.or(of_flow);
            let of_links = declared.map(|ports| Ports::of(ports, &self.model));
            let of_flits = self.flits.as_ref().map(|flits| flits.ports(&self.model));
            let of_mesh = self.mesh.as_ref().map(MeshFlits::ports);
            let ports = of_flits.or(of_mesh).or(of_links);
            let graph = GraphBound { ports, ..graph };
            let bound = if self.is_in_network() {
                in_network(&query, &self.model, graph)
            } else {
                bound(&query, &self.model, self.folding(), graph)
            };
            bound.after(self.costs.launch)
        });
        LowerBound {
            latency_ps: found.latency.ps(),
            bandwidth_ps: found.bandwidth.ps(),
            links_ps: found.links.ps(),
            folding_ps: found.folding.ps(),
        }
    }
}

/// The parts of a lower bound; each is itself a lower bound.
#[pyclass(frozen, get_all, eq, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LowerBound {
    /// The latency bound.
    latency_ps: u64,
    /// The bandwidth bound of the ranks' ports.
    bandwidth_ps: u64,
    /// The bandwidth bound of the links, if messages share them.
    links_ps: u64,
    /// The reduction bound.
    folding_ps: u64,
}

impl LowerBound {
    const NONE: LowerBound =
        LowerBound { latency_ps: 0, bandwidth_ps: 0, links_ps: 0, folding_ps: 0 };
}

#[pymethods]
impl LowerBound {
    /// The lower bound: the largest part.
    #[getter]
    fn at_least_ps(&self) -> u64 {
        self.latency_ps.max(self.bandwidth_ps).max(self.links_ps).max(self.folding_ps)
    }

    fn __repr__(&self) -> String {
        format!("<LowerBound: at least {}>", Time::from_ps(self.at_least_ps()))
    }
}

/// A background flow: source, destination, bytes, start and period in ps, and count.
type Flow = (u32, u32, u64, u64, u64, u64);

/// Checks that flows connect NPUs of the topology.
fn checked_flows(flows: Vec<Flow>, routes: Option<&Routes>) -> PyResult<Vec<BackgroundFlow>> {
    let flow = |(source, destination, bytes, start, period, count)| {
        let (source, destination) = (RankId(source), RankId(destination));
        if let Some(routes) = routes {
            routes.inner.try_pair(source, destination).or_raise()?;
        }
        let (start, period) = (Time::from_ps(start), Time::from_ps(period));
        Ok(BackgroundFlow { source, destination, bytes: Bytes(bytes), start, period, count })
    };
    flows.into_iter().map(flow).collect()
}

/// Rejects flows without a topology, routing that depends on queues, and trees without fixed routes.
pub(crate) fn check_flow(
    routes: Option<&Routes>,
    choosing: Option<&Choosing>,
    flow: &FlowLevel,
) -> PyResult<()> {
    let message = match choosing {
        _ if routes.is_none() => {
            "the platform has flows but no topology: expected links that they share".to_owned()
        }
        Some((_, choice)) if *choice != Choice::Adaptive => {
            format!("routing `{}` depends on queues: expected packets or flits", choice.name())
        }
        _ => return check_switches(routes, choosing, [&flow.multicast, &flow.reduce]),
    };
    Err(refuse("TopologyError", "argument", &message))
}

/// Rejects names of switches that the topology lacks, and trees without fixed routes.
pub(crate) fn check_switches(
    routes: Option<&Routes>,
    choosing: Option<&Choosing>,
    switches: [&Switches; 2],
) -> PyResult<()> {
    let Some(routes) = routes.filter(|_| switches.into_iter().any(Switches::is_some)) else {
        return Ok(());
    };
    let topology = routes.inner.topology();
    let unknown = |switches: &&Switches| switches.unknown_on(topology).map(str::to_owned);
    let message = if let Some((_, choice)) = choosing {
        format!(
            "routing `{}` has several routes per pair of ranks, but switches that multicast or \
             reduce need one: expected another routing",
            choice.name()
        )
    } else if let Some(name) = switches.iter().find_map(unknown) {
        format!(
            "topology {} has no switch `{name}` to multicast or reduce: expected one of {}",
            topology.name(),
            classes_of_switches(topology).join(", ")
        )
    } else {
        return Ok(());
    };
    Err(refuse("TopologyError", "argument", &message))
}

/// Rejects packets without a topology, per-packet routing without packets, and trees without fixed
/// routes.
pub(crate) fn check_packets(
    packets: Option<&Packets>,
    routes: Option<&Routes>,
    choosing: Option<&Choosing>,
) -> PyResult<()> {
    let message = match (choosing, packets) {
        (Some((_, choice)), None) => {
            format!("routing `{}` is per packet, but the platform has no packets", choice.name())
        }
        (_, Some(_)) if routes.is_none() => {
            "the platform has packets but no topology: expected links on which packets queue"
                .to_owned()
        }
        (_, Some(packets)) => {
            return check_switches(routes, choosing, [&packets.multicast, &packets.reduce]);
        }
        _ => return Ok(()),
    };
    Err(refuse("TopologyError", "argument", &message))
}

impl Case {
    fn layout(&self) -> Layout<'_> {
        let layout = Layout::of_schedule(&*self.schedule.inner, self.size, self.element);
        layout.expect("the constructor has checked it")
    }

    /// Whether messages share links.
    fn is_contended(&self) -> bool {
        self.flow.is_some() || self.packets.is_some() || self.flits.is_some() || self.mesh.is_some()
    }

    /// The multicasting and the reducing switches.
    fn switches(&self) -> [&Switches; 2] {
        let of_flow = self.flow.as_ref().map(|flow| [&flow.multicast, &flow.reduce]);
        let of_packets = self.packets.as_ref().map(|packets| [&packets.multicast, &packets.reduce]);
        of_flow.or(of_packets).unwrap_or([&Switches::None; 2])
    }

    /// By vertex, whether it multicasts or reduces; None if none does.
    fn in_network_on(&self, topology: &tutti_topology::Topology) -> Option<Vec<bool>> {
        let switches = self.switches();
        let [multicast, reduce] = switches.map(|switches| switches.on(topology));
        let either = || multicast.into_iter().zip(reduce).map(|(a, b)| a || b).collect();
        switches.into_iter().any(Switches::is_some).then(either)
    }

    /// Whether the network performs multicasts or combines.
    fn is_in_network(&self) -> bool {
        let by_switches = self.switches().into_iter().any(Switches::is_some);
        by_switches || self.mesh.iter().any(MeshFlits::is_in_network)
    }

    /// The reduction cost on the fastest rank.
    fn folding(&self) -> Folding {
        if self.conditions.0.speeds.iter().any(|&speed| speed > 1.0) {
            return Folding::FREE;
        }
        Folding { gamma: self.costs.gamma, overhead: self.costs.reduce_overhead }
    }

    /// Runs with the engine compiled for the concrete model.
    fn run(&self, record: bool, stop: &AtomicBool) -> Result<Left, EngineError> {
        dispatch!(&self.model, model => self.run_on(model, record, stop))
    }

    fn run_on<M: MessageModel>(
        &self,
        model: &M,
        record: bool,
        stop: &AtomicBool,
    ) -> Result<Left, EngineError> {
        let ranks = &self.conditions.0;
        let loaded = self.load.as_deref().zip(self.routes.as_deref());
        let loaded = loaded.map(|(load, routes)| Loaded { ranks, routes, load });
        let disturbance: Option<&dyn tutti_engine::Disturbance> = match &loaded {
            Some(loaded) => Some(loaded),
            None if ranks.is_quiet() => None,
            None => Some(ranks),
        };
        let included = self.model.serialization();
        let alone = self.routes.as_deref().filter(|_| !self.is_contended());
        let routed = alone.map(|routes| Routed { routes, included });
        let distance = routed.as_ref().map(|routed| routed as &dyn tutti_engine::Distance);
        let simulation = Simulation {
            schedule: &*self.schedule.inner,
            layout: self.layout(),
            model,
            costs: self.costs,
            conditions: tutti_engine::Conditions { disturbance, distance },
        };
        self.run_over(&simulation, record, stop)
    }

    /// Runs over the network with contention, if there is one.
    fn run_over<M: MessageModel>(
        &self,
        simulation: &Simulation<'_, M>,
        record: bool,
        stop: &AtomicBool,
    ) -> Result<Left, EngineError> {
        let ends = Ends::of(&self.model);
        if let Some(flits) = &self.flits {
            let mut carrier = flits.carrier(ends, stop);
            let left = run_through(simulation, &mut carrier, record, stop)?;
            return Ok(Left { used: flits.used(&carrier), ..left });
        }
        if let Some(mesh) = &self.mesh {
            let mut carrier = mesh.carrier(ends, stop).expect("the check has built it");
            let left = run_through(simulation, &mut carrier, record, stop)?;
            return Ok(Left { used: MeshFlits::used(&carrier), ..left });
        }
        if let Some((routes, flow)) = self.routes.as_deref().zip(self.flow.clone()) {
            let network = FlowNetwork::new(self.flow_routing(routes), flow, ends);
            let mut network = network.with_background(&self.flows);
            let left = run_through(simulation, &mut network, record, stop)?;
            return Ok(Left { used: Used::ByFlows(network.link_use()), ..left });
        }
        let Some((routes, packets)) = self.routes.as_deref().zip(self.packets.clone()) else {
            return run_through(simulation, &mut Uncontended, record, stop);
        };
        let mut fabric = PacketNetwork::new(self.packet_routing(routes), packets, ends)
            .with_background(&self.flows);
        let left = run_through(simulation, &mut fabric, record, stop)?;
        Ok(Left { used: Used::ByPackets(fabric.link_use().collect()), ..left })
    }

    fn flow_routing<'a>(&'a self, routes: &'a tutti_topology::Routes) -> FlowRouting<'a> {
        match &self.choosing {
            Some(((distances, _), _)) => FlowRouting::Spread(distances),
            None => FlowRouting::Routed(routes),
        }
    }

    fn packet_routing<'a>(
        &'a self,
        routes: &'a tutti_topology::Routes,
    ) -> packet::PacketRouting<'a> {
        match &self.choosing {
            Some(((distances, choice), seed)) => {
                packet::PacketRouting::PerPacket { distances, choice: *choice, seed: *seed }
            }
            None => packet::PacketRouting::Routed(routes),
        }
    }
}

fn run_through<M: MessageModel, C: Carrier>(
    simulation: &Simulation<'_, M>,
    carrier: &mut C,
    record: bool,
    stop: &AtomicBool,
) -> Result<Left, EngineError> {
    let used = Used::Nothing;
    if record {
        let mut probe = TimelineProbe::default();
        let outcome = simulation.run_through(carrier, stop, &mut probe)?;
        Ok(Left { outcome, used, timeline: Some(probe.into_timeline()) })
    } else {
        let outcome = simulation.run_through(carrier, stop, &mut Silent)?;
        Ok(Left { outcome, used, timeline: None })
    }
}

/// Algorithm bandwidth in bytes per second: the collective's size over its completion time.
#[pyfunction]
pub(crate) fn algbw(size: u64, completion_ps: u64) -> f64 {
    results::algbw(Bytes(size), Time::from_ps(completion_ps))
}

/// Bus bandwidth in bytes per second: algbw x the collective's factor.
#[pyfunction]
pub(crate) fn busbw(collective: &str, ranks: u32, size: u64, completion_ps: u64) -> PyResult<f64> {
    let collective = collective_named(collective, 0)?;
    Ok(results::busbw(collective, ranks, Bytes(size), Time::from_ps(completion_ps)))
}

/// Runs one case; other threads may run others in the meantime.
#[pyfunction]
#[pyo3(signature = (case, *, record=false))]
pub(crate) fn simulate(py: Python<'_>, case: &Case, record: bool) -> PyResult<Run> {
    let left = watched(py, |stop| case.run(record, stop))?.or_raise()?;
    Ok(Run(left))
}

/// Runs cases in `threads` threads (0: one per core) and passes each result to
/// `done(index, result)` as soon as it is complete, in completion order; a result is either
/// (completion_ps, messages, message_bytes) or an exception. Stops early when `done` raises or
/// Ctrl-C is pressed. The results do not depend on the number of threads.
#[pyfunction]
#[pyo3(signature = (cases, done, *, threads=Number(0)))]
#[pyo3(text_signature = "(cases, done, *, threads=0)")]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub(crate) fn simulate_many(
    py: Python<'_>,
    cases: Vec<PyRef<'_, Case>>,
    done: Bound<'_, PyAny>,
    threads: Number,
) -> PyResult<()> {
    let cases: Vec<Case> = cases.iter().map(|case| Case::clone(case)).collect();
    let done = done.unbind();
    let run = |case: &Case, stop: &AtomicBool| case.run(false, stop).map(|left| left.outcome);
    each_in_threads(py, &cases, threads, run, |py, index, result| {
        match result {
            Ok(outcome) => {
                let time = outcome.completion_time().ps();
                done.call1(py, (index, (time, outcome.messages, outcome.bytes)))?;
            }
            Err(error) => _ = done.call1(py, (index, raised(&error)))?,
        }
        Ok(())
    })
}
