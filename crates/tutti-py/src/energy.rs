//! Energy and area: what counted events cost on a network, in a technology.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tutti_energy::{
    self, Component, Constant, Costs, Interval, LinkHardware, MeshComponent, MeshHardware,
    Parameter, Part, mesh_technology, registry,
};
use tutti_noc::smart::{Class, Counts, FanIn, FanOut, Settings, Tree};
use tutti_units::{Length, Time};

use crate::errors::{OrRaise, refuse};

/// A value with its bounds.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone, Copy)]
pub(crate) struct Bounded {
    /// The lower bound.
    low: f64,
    /// The value.
    nominal: f64,
    /// The upper bound.
    high: f64,
}

impl From<Interval> for Bounded {
    fn from(Interval { low, nominal, high }: Interval) -> Bounded {
        Bounded { low, nominal, high }
    }
}

/// The energy of a component, in joules.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct ComponentEnergy {
    /// Its name.
    name: &'static str,
    /// That of its events.
    dynamic: Bounded,
    /// That of its leakage.
    leakage: Bounded,
}

/// A constant of a technology.
#[pyclass(frozen, get_all, eq, module = "tutti._core")]
#[derive(PartialEq)]
pub(crate) struct TechnologyConstant {
    /// Its name, with the unit.
    name: &'static str,
    /// `router` or `link`.
    part: &'static str,
    /// What it describes.
    meaning: &'static str,
    /// Its value.
    value: f64,
    /// The lower bound, as a factor.
    low_factor: f64,
    /// The upper bound, as a factor.
    high_factor: f64,
    /// Its origin.
    source: String,
    /// Whether the value is inferred.
    inferred: bool,
}

/// A technology of routers or links.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct TechnologyEntry {
    /// `router` or `link`.
    part: &'static str,
    /// Its name.
    name: &'static str,
    /// One sentence for lists.
    summary: &'static str,
}

/// The constants of routers and of links.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct Technology(tutti_energy::Technology);

#[pymethods]
impl Technology {
    #[new]
    fn new(router: &str, link: &str) -> PyResult<Technology> {
        tutti_energy::Technology::build(router, link).or_raise().map(Technology)
    }

    /// The same with another value of a constant.
    #[pyo3(signature = (name, value, *, source, low_factor, high_factor))]
    fn with_value(
        &self,
        name: &str,
        value: f64,
        source: String,
        low_factor: f64,
        high_factor: f64,
    ) -> PyResult<Technology> {
        let parameter = Parameter::find(name).or_raise()?;
        let source = source.into();
        let constant = Constant { value, low_factor, high_factor, source, inferred: false };
        self.0.clone().with(parameter, constant).or_raise().map(Technology)
    }

    /// The name of the routers' technology.
    #[getter]
    fn router(&self) -> &'static str {
        self.0.router()
    }

    /// The name of the links' technology.
    #[getter]
    fn link(&self) -> &'static str {
        self.0.link()
    }

    /// Every constant.
    fn constants(&self) -> Vec<TechnologyConstant> {
        let named = |parameter: &Parameter| {
            let Constant { value, low_factor, high_factor, ref source, inferred } =
                *self.0.constant(*parameter);
            TechnologyConstant {
                name: parameter.name(),
                part: parameter.part().name(),
                meaning: parameter.meaning(),
                value,
                low_factor,
                high_factor,
                source: source.to_string(),
                inferred,
            }
        };
        Parameter::ALL.iter().map(named).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Technology {} {}>", self.0.router(), self.0.link())
    }
}

/// Every technology of routers, then of links.
#[pyfunction]
pub(crate) fn technologies() -> Vec<TechnologyEntry> {
    let of = |part: Part| {
        registry(part).iter().map(move |entry| TechnologyEntry {
            part: part.name(),
            name: entry.name,
            summary: entry.summary,
        })
    };
    of(Part::Router).chain(of(Part::Link)).collect()
}

/// A kind of router, checked.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouterHardware(tutti_energy::RouterHardware);

#[pymethods]
impl RouterHardware {
    #[new]
    #[pyo3(signature = (*, ports, vcs, buffer_flits, flit_bits))]
    fn new(ports: u32, vcs: u32, buffer_flits: u32, flit_bits: u32) -> PyResult<RouterHardware> {
        tutti_energy::RouterHardware::new(ports, vcs, buffer_flits, flit_bits)
            .or_raise()
            .map(RouterHardware)
    }

    /// What each event costs, in picojoules; crossbars to 1, 2, ... outputs, and links by length.
    fn costs(&self, technology: &Technology, lengths_um: Vec<u64>) -> Vec<(String, Bounded)> {
        let costs = Costs::new(&self.0, &technology.0);
        let mut rows = vec![
            ("buffer_write".to_owned(), costs.buffer_write_pj()),
            ("buffer_read".to_owned(), costs.buffer_read_pj()),
        ];
        for outputs in 1..=self.0.ports() {
            rows.push((format!("crossbar_to_{outputs}"), costs.crossbar_pj(outputs)));
        }
        rows.push(("switch_allocation".to_owned(), costs.switch_allocation_pj()));
        rows.push(("vc_allocation".to_owned(), costs.vc_allocation_pj()));
        rows.push(("clock_cycle".to_owned(), costs.clock_pj_per_cycle()));
        for length in lengths_um.into_iter().map(Length::from_um) {
            rows.push((format!("link of {length}"), costs.link_pj(length)));
        }
        rows.into_iter().map(|(name, pj)| (name, pj.into())).collect()
    }
}

/// Routers, links and the time of a cycle.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct NetworkHardware(tutti_energy::NetworkHardware);

#[pymethods]
impl NetworkHardware {
    /// Links are given as length in micrometres and number.
    #[new]
    #[pyo3(signature = (*, router, routers, links, cycle_ps))]
    fn new(
        router: &RouterHardware,
        routers: u32,
        links: Vec<(u64, u32)>,
        cycle_ps: u64,
    ) -> PyResult<NetworkHardware> {
        let group = |(um, count)| LinkHardware { length: Length::from_um(um), count };
        let links = links.into_iter().map(group).collect();
        let network =
            tutti_energy::NetworkHardware::new(router.0, routers, links, Time::from_ps(cycle_ps));
        network.or_raise().map(NetworkHardware)
    }

    /// The energy of each component.
    fn energy(
        &self,
        events: &EventCounts,
        technology: &Technology,
    ) -> PyResult<Vec<ComponentEnergy>> {
        let report = tutti_energy::energy(&self.0, &events.0, &technology.0).or_raise()?;
        let spent = |component: Component| ComponentEnergy {
            name: component.name(),
            dynamic: report.dynamic(component).into(),
            leakage: report.leakage(component).into(),
        };
        Ok(Component::ALL.into_iter().map(spent).collect())
    }

    /// The area of each component by name, in square micrometres.
    fn area(&self, technology: &Technology) -> Vec<(&'static str, Bounded)> {
        let report = tutti_energy::area(&self.0, &technology.0);
        let area = |component: Component| (component.name(), report.um2(component).into());
        Component::ALL.into_iter().map(area).collect()
    }
}

/// Counts over a window.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EventCounts(tutti_energy::EventCounts);

#[pymethods]
impl EventCounts {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each count, by name")]
    #[pyo3(signature = (*, cycles, buffer_writes, buffer_reads, crossbar_traversals, vc_allocations, switch_allocations, link_flits, signal_bit_um))]
    fn new(
        cycles: u64,
        buffer_writes: u64,
        buffer_reads: u64,
        crossbar_traversals: Vec<u64>,
        vc_allocations: u64,
        switch_allocations: u64,
        link_flits: Vec<u64>,
        signal_bit_um: u64,
    ) -> EventCounts {
        EventCounts(tutti_energy::EventCounts {
            cycles,
            buffer_writes,
            buffer_reads,
            crossbar_traversals,
            vc_allocations,
            switch_allocations,
            link_flits,
            signal_bit_um,
        })
    }

    /// The counts of two windows on one network.
    fn plus(&self, other: &EventCounts) -> PyResult<EventCounts> {
        self.0.plus(&other.0).or_raise().map(EventCounts)
    }

    /// Clock cycles.
    #[getter]
    fn cycles(&self) -> u64 {
        self.0.cycles
    }

    /// Flits written.
    #[getter]
    fn buffer_writes(&self) -> u64 {
        self.0.buffer_writes
    }

    /// Flits read.
    #[getter]
    fn buffer_reads(&self) -> u64 {
        self.0.buffer_reads
    }

    /// Flits to one output, to two, and so on.
    #[getter]
    fn crossbar_traversals(&self) -> Vec<u64> {
        self.0.crossbar_traversals.clone()
    }

    /// Packets.
    #[getter]
    fn vc_allocations(&self) -> u64 {
        self.0.vc_allocations
    }

    /// Flits.
    #[getter]
    fn switch_allocations(&self) -> u64 {
        self.0.switch_allocations
    }

    /// Flits per group of links.
    #[getter]
    fn link_flits(&self) -> Vec<u64> {
        self.0.link_flits.clone()
    }

    /// Control signals, bits times micrometres.
    #[getter]
    fn signal_bit_um(&self) -> u64 {
        self.0.signal_bit_um
    }
}

/// What a mesh of several hops per cycle is, as far as energy depends on it.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EnergyMesh {
    settings: Settings,
    hardware: MeshHardware,
}

/// The same from Python, by name; classes as VCs, their depth, and whether multicasts travel there.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenHardware {
    columns: u32,
    rows: u32,
    hpc_max: u32,
    fan_out: String,
    fan_in: String,
    split_vcs: bool,
    art_entries: u32,
    classes: Vec<(u32, u32, bool)>,
    flit_bits: u32,
    tile_um: u64,
    cycle_ps: u64,
}

impl GivenHardware {
    fn settings(&self) -> PyResult<Settings> {
        let class = |&(vcs, depth, multicasts): &(u32, u32, bool)| Class { vcs, depth, multicasts };
        let interval = self.fan_out.strip_prefix("complete:").map(str::parse);
        let fan_out = match (self.fan_out.as_str(), interval) {
            ("unicasts", _) => FanOut::Unicasts,
            ("greedy:svt", _) => FanOut::Greedy(Tree::Shared),
            ("greedy:pvt", _) => FanOut::Greedy(Tree::Private),
            (_, Some(Ok(interval))) => FanOut::Complete { interval },
            (other, _) => return Err(refuse("EnergyError", "mesh", &unknown("fan_out", other))),
        };
        let fan_in = match self.fan_in.as_str() {
            "unicasts" => FanIn::Unicasts,
            "greedy" => FanIn::Greedy,
            "complete" => FanIn::Complete,
            other => return Err(refuse("EnergyError", "mesh", &unknown("fan_in", other))),
        };
        let settings = Settings {
            hops_per_cycle: self.hpc_max,
            fan_out,
            fan_in,
            split_vcs: self.split_vcs,
            art_entries: self.art_entries,
            classes: self.classes.iter().map(class).collect(),
            ..Settings::new(self.columns, self.rows)
        };
        settings.check().or_raise()?;
        Ok(settings)
    }
}

fn unknown(key: &str, text: &str) -> String {
    format!("there is no {key} `{text}`: expected one of a SmartMesh")
}

/// Event counts of a mesh, by name; missing ones are 0.
fn counts_of(given: &Bound<'_, PyDict>) -> PyResult<Counts> {
    let mut counts = Counts::default();
    for (name, count) in counts.scalars() {
        if let Some(value) = given.get_item(name)? {
            *count = value.extract()?;
        }
    }
    if let Some(crossings) = given.get_item("crossings")? {
        counts.crossings = crossings.extract()?;
    }
    Ok(counts)
}

#[pymethods]
impl EnergyMesh {
    #[new]
    fn new(given: GivenHardware) -> PyResult<EnergyMesh> {
        let settings = given.settings()?;
        let tile = Length::from_um(given.tile_um);
        let cycle = Time::from_ps(given.cycle_ps);
        let hardware = MeshHardware::new(&settings, given.flit_bits, tile, cycle).or_raise()?;
        Ok(EnergyMesh { settings, hardware })
    }

    /// The names of the technologies that fit it, of routers and of links.
    fn technology(&self) -> (&'static str, &'static str) {
        mesh_technology(&self.settings)
    }

    /// Bits of a request for a path, and of an answer's.
    fn request_bits(&self) -> (u32, u32) {
        self.hardware.request_bits()
    }

    /// The energy of each component.
    fn energy(
        &self,
        counts: &Bound<'_, PyDict>,
        technology: &Technology,
    ) -> PyResult<Vec<ComponentEnergy>> {
        let counts = counts_of(counts)?;
        let report = tutti_energy::mesh_energy(&self.hardware, &counts, &technology.0);
        let spent = |component: MeshComponent| ComponentEnergy {
            name: component.name(),
            dynamic: report.dynamic(component).into(),
            leakage: report.leakage(component).into(),
        };
        Ok(MeshComponent::ALL.into_iter().map(spent).collect())
    }
}
