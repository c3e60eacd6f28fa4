//! Flit networks: their components, and measurements in threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tutti_noc::allocator::AllocatorKind;
use tutti_noc::credits::{self, Throttled};
use tutti_noc::deadlock::{self, Verdict};
use tutti_noc::measure::{
    self, Ending, Estimate, Load, Measured, Measurement, MeasurementPlan, Phases, Traffic,
};
use tutti_noc::routing::{self, Routing};
use tutti_noc::traffic::{self, PacketSize, Pattern, Process, Trace};
use tutti_noc::{
    ChannelParameters, End, FlitError, Network, Settings, Speculation, VcRange, Wiring,
};
use tutti_topology::Family;
use tutti_units::{Bytes, Length, Time};

use crate::errors::{OrRaise, raised};
use crate::measure::{MeasurementCase, Outcome, column, dict_of};
use crate::network::{Texts, pairs};
use crate::schedule::Number;
use crate::topology::Topology;

/// A line of a registry.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct FlitRegistryEntry {
    /// Its name in the notation `name:argument`.
    name: &'static str,
    /// What follows the colon; empty where nothing does.
    argument: &'static str,
    /// One sentence for lists.
    summary: &'static str,
}

/// Every routing of flit networks.
#[pyfunction]
pub(crate) fn flit_routings() -> Vec<FlitRegistryEntry> {
    let line = |entry: &routing::Entry| FlitRegistryEntry {
        name: entry.name,
        argument: entry.argument,
        summary: entry.summary,
    };
    routing::REGISTRY.iter().map(line).collect()
}

/// Every pattern of traffic.
#[pyfunction]
pub(crate) fn flit_patterns() -> Vec<FlitRegistryEntry> {
    let line = |entry: &traffic::Entry| FlitRegistryEntry {
        name: entry.name,
        argument: entry.argument,
        summary: entry.summary,
    };
    traffic::REGISTRY.iter().map(line).collect()
}

/// The names of all allocators.
#[pyfunction]
pub(crate) fn flit_allocators() -> Vec<&'static str> {
    AllocatorKind::ALL.map(AllocatorKind::name).to_vec()
}

/// The routers of a network: their parameters, those of speculation, the VCs of each class, and a
/// seed.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenSettings {
    router: Texts,
    speculation: Option<Texts>,
    classes: Vec<(Number, Number)>,
    seed: u64,
}

impl GivenSettings {
    fn settings(self) -> PyResult<Settings> {
        let vcs = |&(Number(first), Number(last)): &(Number, Number)| VcRange { first, last };
        let speculation = self.speculation.as_ref();
        let speculation = speculation.map(|given| Speculation::from_texts(pairs(given)));
        let read = || -> Result<Settings, FlitError> {
            Ok(Settings {
                classes: self.classes.iter().map(vcs).collect(),
                speculation: speculation.transpose()?,
                seed: self.seed,
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

/// What kind of vertex it is at, which, and the port there.
type GivenEnd = (&'static str, u32, Option<u32>);

/// Both ends, latency and latency of credits in cycles, time of a flit in ps, length in um.
type GivenChannel = (GivenEnd, GivenEnd, u32, u32, u64, Option<u64>);

/// Source, destination, round trip in cycles, credits, required credits, required buffer, number of
/// links.
type GivenThrottled = (String, String, u64, u64, u64, u64, usize);

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
                wiring.check_widths(Bytes(flit))?;
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
    fn throttled(&self, longest: Number) -> Option<GivenThrottled> {
        let found = credits::throttled(&self.wiring, &self.settings, longest.0)?;
        let Throttled { from, to, round_trip, slots, needs, buffer, links } = found;
        Some((from, to, round_trip, slots, needs, buffer, links))
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

    /// Every channel.
    fn channels(&self) -> Vec<GivenChannel> {
        let end = |end| match end {
            End::Router { router, port } => ("router", router, Some(port)),
            End::Node(node) => ("node", node, None),
        };
        let channel = |channel: &tutti_noc::Channel| {
            let ChannelParameters { latency, credit_latency, flit_time, length } =
                channel.parameters;
            let (from, to) = (end(channel.from), end(channel.to));
            (from, to, latency, credit_latency, flit_time.ps(), length.map(Length::um))
        };
        self.wiring.channels().iter().map(channel).collect()
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

/// Pattern, process, flits per node and cycle, sizes of packets, priority.
type GivenLoad = (String, String, f64, String, i64);

/// Warm-up, window, batches, drain, patience, sample, whether to keep VCs.
type GivenMeasurementPlan = (u64, u64, Number, u64, u64, u64, bool);

#[pymethods]
impl FlitCase {
    /// Synthetic traffic: a load for each class.
    #[new]
    fn new(
        network: &FlitNetwork,
        loads: Vec<GivenLoad>,
        plan: GivenMeasurementPlan,
    ) -> PyResult<FlitCase> {
        let nodes = network.wiring.nodes();
        let grid = network.grid.as_deref();
        let load = |(pattern, process, rate, size, priority): GivenLoad| {
            let size = PacketSize::parse(&size).or_raise()?;
            let pattern = Pattern::parse(&pattern, nodes, grid).or_raise()?;
            let process = Process::parse(&process, rate / size.mean()).or_raise()?;
            Ok(Load { pattern, process, size, priority })
        };
        let loads = loads.into_iter().map(load).collect::<PyResult<_>>()?;
        FlitCase::of(network, Supply::Synthetic(loads), plan)
    }

    /// The packets of a trace.
    #[staticmethod]
    fn trace(network: &FlitNetwork, text: &str, plan: GivenMeasurementPlan) -> PyResult<FlitCase> {
        let trace = Trace::parse(text, network.wiring.nodes()).or_raise()?;
        FlitCase::of(network, Supply::Recorded(Arc::new(trace)), plan)
    }
}

impl FlitCase {
    fn of(network: &FlitNetwork, supply: Supply, plan: GivenMeasurementPlan) -> PyResult<FlitCase> {
        let (warmup, measure, Number(batches), drain, patience, sample, keep_vcs) = plan;
        let case = FlitCase {
            wiring: Arc::clone(&network.wiring),
            settings: network.settings.clone(),
            routing: Arc::clone(&network.routing),
            supply,
            plan: MeasurementPlan {
                phases: Phases { warmup, measure, drain },
                batches,
                patience,
                sample,
                keep_vcs,
            },
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
            Supply::Recorded(trace) => Traffic::Recorded(trace),
        };
        let measurement = measure::measure(wiring, settings, &mut network, traffic, plan, stop)?;
        let cycle = match measurement.ending {
            Ending::Deadlocked => deadlock::waiting(wiring, &network.deadlock_cycle()),
            Ending::Stable | Ending::Saturated => Vec::new(),
        };
        Ok(Found { measurement, deadlock_cycle: cycle.iter().map(ToString::to_string).collect() })
    }
}

impl MeasurementCase for FlitCase {
    fn run(&self, stop: &AtomicBool) -> Outcome {
        let found = self.measured(stop);
        Box::new(move |py| {
            let found = found.or_raise()?;
            Ok(described(py, &found)?.unbind())
        })
    }
}

/// A measurement, and the VCs of a deadlock cycle.
struct Found {
    measurement: Measurement,
    deadlock_cycle: Vec<String>,
}

/// A measurement as plain data; lists as little-endian numbers.
fn described<'py>(py: Python<'py>, found: &Found) -> PyResult<Bound<'py, PyDict>> {
    let Found { measurement, .. } = found;
    let given = dict_of!(py, measurement, [cycles, window, vc_grants]);
    given.set_item("deadlock_cycle", &found.deadlock_cycle)?;
    given.set_item("ending", measurement.ending.name())?;
    given.set_item("all", of_class(py, &measurement.all)?)?;
    let classes = measurement.classes.iter().map(|class| of_class(py, class));
    given.set_item("classes", classes.collect::<PyResult<Vec<_>>>()?)?;
    let wide = |values: &[u64]| column(py, values.iter().map(|value| value.to_le_bytes()));
    let short = |values: &[u16]| column(py, values.iter().map(|value| value.to_le_bytes()));
    let means = measurement.occupancy.iter().map(|mean| mean.to_le_bytes());
    given.set_item("sent", wide(&measurement.sent))?;
    given.set_item("sent_by_vc", wide(&measurement.sent_by_vc))?;
    given.set_item("occupancy", column(py, means))?;
    given.set_item("buffered", wide(&measurement.buffered))?;
    given.set_item("buffered_by_vc", wide(&measurement.buffered_by_vc))?;
    given.set_item("vc_occupancy", short(&measurement.series.occupancy))?;
    given.set_item("vc_sent", short(&measurement.series.sent))?;
    let stalls = dict_of!(py, measurement.stalls, [busy, routing, no_vc, no_credit, switch]);
    given.set_item("stalls", stalls)?;
    Ok(given)
}

fn of_class<'py>(py: Python<'py>, measured: &Measured) -> PyResult<Bound<'py, PyDict>> {
    let given =
        dict_of!(py, measured, [offered, accepted_extremes, latency_extremes, packets, quantiles]);
    let estimate = |Estimate { mean, half_width }| (mean, half_width);
    given.set_item("accepted", estimate(measured.accepted))?;
    given.set_item("latency", estimate(measured.latency))?;
    given.set_item("network_latency", estimate(measured.network_latency))?;
    given.set_item("hops", estimate(measured.hops))?;
    Ok(given)
}
