//! Flit networks: their components, and measurements in threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use tutti_noc::credits::{self, Throttled};
use tutti_noc::deadlock::{self, Verdict};
use tutti_noc::measure::{
    self, Ending, Load, Measurement, MeasurementPlan, Phases, Reply, Requests, Traffic,
};
use tutti_noc::routing::{self, Routing};
use tutti_noc::traffic::{PacketSize, Pattern, Process, Trace};
use tutti_noc::{
    ChannelParameters, Clock, End, FlitError, Flow, Network, PortBuffers, Settings, Speculation,
    VcRange, Wiring,
};
use tutti_topology::Family;
use tutti_units::{Bytes, Length, Time};

use crate::errors::{OrRaise, raised};
use crate::flit_result::FlitResult;
use crate::measure::{MeasurementCase, Outcome};
use crate::network::{Texts, pairs};
use crate::schedule::Number;
use crate::topology::Topology;

/// The routers of a network: their parameters, those of speculation, the VCs of each class, a seed,
/// and the buffers and clocks of each router, none if they do not differ. Buffers are a bit
/// for each VC, and depth; clocks are a number, the period in ps and the cycles of the synchroniser.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenSettings {
    router: Texts,
    speculation: Option<Texts>,
    classes: Vec<(Number, Number)>,
    seed: u64,
    buffers: Vec<(u64, Number)>,
    clocks: Vec<(Number, u64, Number)>,
}

impl GivenSettings {
    fn settings(self) -> PyResult<Settings> {
        let vcs = |&(Number(first), Number(last)): &(Number, Number)| VcRange { first, last };
        let buffers = |&(vcs, Number(buffer)): &(u64, Number)| PortBuffers { vcs, buffer };
        let clock = |&(Number(domain), period, Number(synchroniser)): &(Number, u64, Number)| {
            Clock { domain, period: Time::from_ps(period), synchroniser }
        };
        let speculation = self.speculation.as_ref();
        let speculation = speculation.map(|given| Speculation::from_texts(pairs(given)));
        let read = || -> Result<Settings, FlitError> {
            Ok(Settings {
                classes: self.classes.iter().map(vcs).collect(),
                speculation: speculation.transpose()?,
                seed: self.seed,
                buffers: self.buffers.iter().map(buffers).collect(),
                clocks: self.clocks.iter().map(clock).collect(),
                ..Settings::from_texts(pairs(&self.router))?
            })
        };
        read().or_raise()
    }
}

/// Routers, wires and a routing: everything but traffic.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct FlitNetwork {
    pub(crate) wiring: Arc<Wiring>,
    pub(crate) settings: Settings,
    pub(crate) routing: Arc<dyn Routing>,
    /// The routing in its notation.
    named: String,
    pub(crate) flit: Bytes,
    /// The nodes along each dimension, for patterns along a grid.
    grid: Option<Vec<u32>>,
}

/// An end of a channel.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone, Copy)]
pub(crate) struct ChannelEnd {
    /// Whether it is a router, or a node.
    is_router: bool,
    /// The number of the router or node.
    number: u32,
    /// The port of a router.
    port: Option<u32>,
}

impl From<End> for ChannelEnd {
    fn from(end: End) -> ChannelEnd {
        match end {
            End::Router { router, port } => {
                ChannelEnd { is_router: true, number: router, port: Some(port) }
            }
            End::Node(node) => ChannelEnd { is_router: false, number: node, port: None },
        }
    }
}

/// A channel between routers, or between a router and a node.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct FlitChannel {
    /// Where flits enter it.
    source: ChannelEnd,
    /// Where they leave it.
    target: ChannelEnd,
    /// Cycles from sending a flit to its arrival.
    latency: u32,
    /// Cycles of a credit.
    credit_latency: u32,
    /// How long it is busy with a flit; at least a cycle of its slower end.
    flit_time_ps: u64,
    /// Its length, where it is known.
    length_um: Option<u64>,
    /// VCs at its target, their numbers, and the flits that the buffer of each holds.
    vcs: u32,
    vc_numbers: Vec<u32>,
    buffer: u32,
    /// The period of the clock there.
    period_ps: u64,
}

impl FlitChannel {
    fn of(channel: &tutti_noc::Channel, settings: &Settings, cycle: Time) -> FlitChannel {
        let ChannelParameters { latency, credit_latency, length, .. } = channel.parameters;
        let [_, clock] = settings.clocks_of(channel, cycle);
        let PortBuffers { vcs, buffer } = settings.buffers_behind(channel);
        FlitChannel {
            source: channel.from.into(),
            target: channel.to.into(),
            latency,
            credit_latency,
            flit_time_ps: settings.flit_time(channel, cycle).ps(),
            length_um: length.map(Length::um),
            vcs: vcs.count_ones(),
            vc_numbers: (0..u64::BITS).filter(|vc| vcs >> vc & 1 == 1).collect(),
            buffer,
            period_ps: clock.period.ps(),
        }
    }
}

/// The link that the buffers of a class throttle most.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct ThrottledLink {
    /// The name of its source.
    source: String,
    /// The name of its destination.
    target: String,
    /// Cycles of a credit round trip.
    round_trip: u64,
    /// Flits of buffer space that the class has there.
    slots: u64,
    /// Flits that fill the link in a round trip.
    needs: u64,
    /// Flits that a VC there holds, and the depth of VCs with which it could be busy.
    depth: u64,
    buffer: u64,
    /// The number of throttled links.
    links: usize,
}

#[pymethods]
impl FlitNetwork {
    #[new]
    #[pyo3(signature = (topology, routing, settings, *, cycle_ps, flit, narrow_links, grid=None))]
    #[pyo3(
        text_signature = "(topology, routing, settings, *, cycle_ps, flit, narrow_links, grid=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords, most of them")]
    fn new(
        py: Python<'_>,
        topology: &Topology,
        routing: &str,
        settings: GivenSettings,
        cycle_ps: u64,
        flit: u64,
        narrow_links: bool,
        grid: Option<Vec<u32>>,
    ) -> PyResult<FlitNetwork> {
        let settings = settings.settings()?;
        let named = routing;
        let topology = Arc::clone(&topology.inner);
        let of_family = || topology.family().and_then(Family::member_sizes);
        let grid = grid.or_else(of_family);
        let build = || -> Result<_, FlitError> {
            settings.check()?;
            let cycle = Time::from_ps(cycle_ps);
            let (ports, into, out) = settings.ports(cycle);
            let port = port_channel(&settings, cycle);
            let mut wiring = Wiring::with_ports(topology, cycle, Bytes(flit), port, ports)?;
            if !narrow_links {
                wiring.check_widths(Bytes(flit), &settings)?;
            }
            wiring.limit_ports(into, out);
            let wiring = Arc::new(wiring);
            let found = routing::parse(routing, &wiring)?;
            routing::check_vcs(routing, &*found, &settings.classes)?;
            // Whatever else cannot be is found out by building one.
            Network::new(&wiring, &settings, Arc::clone(&found))?;
            Ok((wiring, found))
        };
        let (wiring, routing) = py.detach(build).or_raise()?;
        let (named, flit) = (named.to_owned(), Bytes(flit));
        Ok(FlitNetwork { wiring, settings, routing, named, flit, grid })
    }

    /// Rejects a routing that can deadlock; false if the dependency graph is too large to check.
    fn check_deadlock(&self, py: Python<'_>) -> PyResult<bool> {
        let found = py.detach(|| deadlock::verdict(&self.wiring, &self.settings, &*self.routing));
        match found {
            Verdict::Free => Ok(true),
            Verdict::TooLarge => Ok(false),
            Verdict::Cycle(cycle) => {
                let dependency_cycle = cycle.iter().map(ToString::to_string).collect();
                let routing = self.named.clone();
                Err(raised(&FlitError::CanDeadlock { routing, dependency_cycle }))
            }
        }
    }

    /// The link that buffers throttle most, for packets of at most `longest` flits; None if buffers
    /// suffice.
    fn throttled(&self, longest: Number) -> Option<ThrottledLink> {
        let found = credits::throttled(&self.wiring, &self.settings, longest.0)?;
        let Throttled { from: source, to: target, round_trip, slots, depth, needs, buffer, links } =
            found;
        Some(ThrottledLink { source, target, round_trip, slots, needs, depth, buffer, links })
    }

    /// How many nodes there are.
    #[getter]
    fn nodes(&self) -> u32 {
        self.wiring.nodes()
    }

    /// The names of the nodes, in order.
    fn node_names(&self) -> Vec<&str> {
        let topology = self.wiring.topology().map(|topology| &**topology);
        let names = topology.map(|graph| graph.vertices().map(|vertex| graph.vertex_name(vertex)));
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let name = |node| names.get(self.wiring.npu(node) as usize).copied();
        (0..self.wiring.nodes()).filter_map(name).collect()
    }

    /// The names of the vertices with routers, in order.
    fn router_names(&self) -> Vec<&str> {
        let name = |router| Some(self.wiring.topology()?.vertex_name(self.wiring.vertex(router)?));
        (0..self.wiring.routers()).filter_map(name).collect()
    }

    /// The flits per cycle that the routing sends over each channel in an empty network; `None` if
    /// there are too many routes to follow. Loads that need replies have them in the next class.
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn channel_loads(&self, loads: Vec<PyRef<'_, FlitLoad>>) -> PyResult<Option<Vec<f64>>> {
        let (nodes, grid) = (self.wiring.nodes(), self.grid.as_deref());
        let mut flows = Vec::new();
        for load in &loads {
            let pattern = Pattern::parse(&load.pattern, nodes, grid).or_raise()?;
            if let Some((packet, _)) = &load.reply {
                let size = PacketSize::parse(&load.packet).or_raise()?.mean();
                let reply = PacketSize::parse(packet).or_raise()?.mean();
                flows.push((pattern.clone(), load.rate, false));
                flows.push((pattern, load.rate / size * reply, true));
            } else {
                flows.push((pattern, load.rate, false));
            }
        }
        let flows: Vec<Flow<'_>> = flows
            .iter()
            .map(|&(ref pattern, rate, is_reply)| Flow { pattern, rate, is_reply })
            .collect();
        Ok(tutti_noc::channel_loads(&self.wiring, &self.settings, &*self.routing, &flows))
    }

    /// Whether routes depend on the state of the network.
    #[getter]
    fn is_adaptive(&self) -> bool {
        self.routing.is_adaptive()
    }

    /// Every channel.
    fn channels(&self) -> Vec<FlitChannel> {
        let of = |channel| FlitChannel::of(channel, &self.settings, self.wiring.cycle());
        self.wiring.channels().iter().map(of).collect()
    }

    /// For each input port, by router, the channel that ends there.
    fn inputs(&self) -> Vec<u32> {
        let routers = 0..self.wiring.routers();
        routers.flat_map(|router| self.wiring.inputs(router).iter().copied()).collect()
    }
}

/// The channel between a node and its router.
fn port_channel(settings: &Settings, cycle: Time) -> ChannelParameters {
    let latency = settings.port_latency;
    ChannelParameters { latency, credit_latency: latency, flit_time: cycle, length: None }
}

/// Where packets come from.
#[derive(Clone)]
enum Supply {
    Synthetic(Vec<Load>),
    Requests(Vec<Requests>),
    Recorded(Arc<Trace>),
}

/// A network, its traffic, and how long to watch it.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct FlitCase {
    wiring: Arc<Wiring>,
    settings: Settings,
    routing: Arc<dyn Routing>,
    supply: Supply,
    plan: MeasurementPlan,
}

/// Synthetic traffic of a class.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct FlitLoad {
    pattern: String,
    process: String,
    rate: f64,
    packet: String,
    priority: i64,
    reply: Option<(String, u64)>,
    outstanding: Option<u32>,
    requests: Option<u64>,
    queue: Option<String>,
}

#[pymethods]
impl FlitLoad {
    /// `rate` flits per node and cycle, in packets of the sizes `packet`. `reply` has the sizes and
    /// the delay of replies, `outstanding` and `requests` limit the packets of a node. Loads with
    /// the same `queue` share an injection queue of each node, with their replies.
    #[new]
    #[pyo3(signature = (pattern, process, *, rate, packet, priority, reply=None, outstanding=None,
                        requests=None, queue=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        pattern: String,
        process: String,
        rate: f64,
        packet: String,
        priority: i64,
        reply: Option<(String, u64)>,
        outstanding: Option<u32>,
        requests: Option<u64>,
        queue: Option<String>,
    ) -> FlitLoad {
        FlitLoad { pattern, process, rate, packet, priority, reply, outstanding, requests, queue }
    }
}

impl FlitLoad {
    fn core(&self, network: &FlitNetwork) -> PyResult<Load> {
        let size = PacketSize::parse(&self.packet).or_raise()?;
        let (nodes, grid) = (network.wiring.nodes(), network.grid.as_deref());
        let pattern = Pattern::parse(&self.pattern, nodes, grid).or_raise()?;
        let process = Process::parse(&self.process, self.rate / size.mean()).or_raise()?;
        Ok(Load { pattern, process, size, priority: self.priority })
    }

    /// The load, where `names` are the shared queues of loads before it.
    fn requests(&self, network: &FlitNetwork, names: &mut Vec<String>) -> PyResult<Requests> {
        let reply = match &self.reply {
            None => None,
            Some((packet, delay)) => {
                Some(Reply { size: PacketSize::parse(packet).or_raise()?, delay: *delay })
            }
        };
        let load = self.core(network)?;
        let queue = self.queue.as_ref().map(|name| {
            let known = names.iter().position(|other| other == name);
            known.unwrap_or_else(|| {
                names.push(name.clone());
                names.len() - 1
            })
        });
        let queue = queue.and_then(|number| u32::try_from(number).ok());
        Ok(Requests { load, reply, outstanding: self.outstanding, count: self.requests, queue })
    }

    /// Whether packets have replies, are limited in number, or share a queue.
    fn is_closed(&self) -> bool {
        let is_limited = self.outstanding.is_some() || self.requests.is_some();
        self.reply.is_some() || is_limited || self.queue.is_some()
    }
}

/// How long a network is measured; times in cycles.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct FlitPlan(MeasurementPlan);

#[pymethods]
impl FlitPlan {
    /// `sample` is the interval of samples, and `keep_vcs` whether they have VCs.
    #[new]
    #[pyo3(signature = (*, warmup, measure, batches, drain, patience, sample, keep_vcs))]
    fn new(
        warmup: u64,
        measure: u64,
        batches: Number,
        drain: u64,
        patience: u64,
        sample: u64,
        keep_vcs: bool,
    ) -> FlitPlan {
        let (phases, Number(batches)) = (Phases { warmup, measure, drain }, batches);
        FlitPlan(MeasurementPlan { phases, batches, patience, sample, keep_vcs })
    }
}

#[pymethods]
impl FlitCase {
    /// Synthetic traffic: a load for each class.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn new(
        network: &FlitNetwork,
        loads: Vec<PyRef<'_, FlitLoad>>,
        plan: &FlitPlan,
    ) -> PyResult<FlitCase> {
        if loads.iter().any(|load| load.is_closed()) {
            let mut names = Vec::new();
            let loads = loads.iter().map(|load| load.requests(network, &mut names));
            let loads = loads.collect::<PyResult<_>>()?;
            return FlitCase::of(network, Supply::Requests(loads), plan);
        }
        let loads = loads.iter().map(|load| load.core(network)).collect::<PyResult<_>>()?;
        FlitCase::of(network, Supply::Synthetic(loads), plan)
    }

    /// The packets of a trace.
    #[staticmethod]
    fn trace(network: &FlitNetwork, text: &str, plan: &FlitPlan) -> PyResult<FlitCase> {
        let trace = Trace::parse(text, network.wiring.nodes()).or_raise()?;
        FlitCase::of(network, Supply::Recorded(Arc::new(trace)), plan)
    }
}

impl FlitCase {
    fn of(network: &FlitNetwork, supply: Supply, plan: &FlitPlan) -> PyResult<FlitCase> {
        let queues = match &supply {
            Supply::Requests(loads) => Requests::queues(loads),
            Supply::Synthetic(_) | Supply::Recorded(_) => Vec::new(),
        };
        let case = FlitCase {
            wiring: Arc::clone(&network.wiring),
            settings: Settings { queues, ..network.settings.clone() },
            routing: Arc::clone(&network.routing),
            supply,
            plan: plan.0,
        };
        // Runs no cycle: errors are detected before the first one.
        match case.measured(&AtomicBool::new(true)) {
            Ok(_) | Err(FlitError::Stopped) => Ok(case),
            Err(error) => Err(raised(&error)),
        }
    }

    fn measured(&self, stop: &AtomicBool) -> Result<Found, FlitError> {
        let FlitCase { wiring, settings, plan, .. } = self;
        let mut network = Network::new(wiring, settings, Arc::clone(&self.routing))?;
        let traffic = match &self.supply {
            Supply::Synthetic(loads) => Traffic::Synthetic(loads),
            Supply::Requests(loads) => Traffic::Requests(loads),
            Supply::Recorded(trace) => Traffic::Recorded(trace),
        };
        let measurement = measure::measure(wiring, settings, &mut network, traffic, plan, stop)?;
        let cycle = match measurement.ending {
            Ending::Deadlocked => deadlock::waiting(wiring, &network.deadlock_cycle()),
            Ending::Stable | Ending::Saturated | Ending::Undecided => Vec::new(),
        };
        Ok(Found { measurement, deadlock_cycle: cycle.iter().map(ToString::to_string).collect() })
    }
}

impl MeasurementCase for FlitCase {
    fn run(&self, stop: &AtomicBool) -> Outcome {
        let found = self.measured(stop);
        Box::new(move |py| {
            let Found { measurement, deadlock_cycle } = found.or_raise()?;
            let result = FlitResult::new(py, &measurement, deadlock_cycle);
            Ok(Py::new(py, result)?.into_any())
        })
    }
}

/// A measurement, and the VCs of a deadlock cycle.
struct Found {
    measurement: Measurement,
    deadlock_cycle: Vec<String>,
}
