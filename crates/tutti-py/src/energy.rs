//! Energy and area: what counted events cost on a network, in a technology.

use pyo3::prelude::*;
use tutti_core::energy::{
    self, Component, Constant, Costs, Events, Interval, Links, Network, Parameter, Part, Router,
    registry,
};
use tutti_core::units::{Length, Time};

use crate::errors::OrRaise;

/// Lower bound, value, upper bound.
type Bounds = (f64, f64, f64);

fn bounds(interval: Interval) -> Bounds {
    (interval.low, interval.nominal, interval.high)
}

/// The constants of routers and of links.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct Technology(energy::Technology);

/// Name, part, meaning, value, factors of the lower and upper bound, source, and whether it is inferred.
type ConstantRow = (&'static str, &'static str, &'static str, f64, f64, f64, String, bool);

#[pymethods]
impl Technology {
    #[new]
    fn new(router: &str, link: &str) -> PyResult<Technology> {
        energy::Technology::build(router, link).or_raise().map(Technology)
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
    fn constants(&self) -> Vec<ConstantRow> {
        let row = |parameter: &Parameter| {
            let c = self.0.constant(*parameter);
            let (name, part) = (parameter.name(), parameter.part().name());
            let source = c.source.to_string();
            let meaning = parameter.meaning();
            (name, part, meaning, c.value, c.low_factor, c.high_factor, source, c.inferred)
        };
        Parameter::ALL.iter().map(row).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Technology {} {}>", self.0.router(), self.0.link())
    }
}

/// Every technology: what it is of, its name, and a sentence on it.
#[pyfunction]
pub(crate) fn technologies() -> Vec<(&'static str, &'static str, &'static str)> {
    let of = |part: Part| {
        registry(part).iter().map(move |entry| (part.name(), entry.name, entry.summary))
    };
    of(Part::Router).chain(of(Part::Link)).collect()
}

/// A kind of router, checked.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EnergyRouter(Router);

#[pymethods]
impl EnergyRouter {
    #[new]
    #[pyo3(signature = (*, ports, vcs, buffer_flits, flit_bits))]
    fn new(ports: u32, vcs: u32, buffer_flits: u32, flit_bits: u32) -> PyResult<EnergyRouter> {
        Router::new(ports, vcs, buffer_flits, flit_bits).or_raise().map(EnergyRouter)
    }

    /// What each event costs, in picojoules; crossbars to 1, 2, ... outputs, and links by length.
    fn costs(&self, technology: &Technology, lengths_um: Vec<u64>) -> Vec<(String, Bounds)> {
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
        rows.into_iter().map(|(name, pj)| (name, bounds(pj))).collect()
    }
}

/// Routers, links and the time of a cycle.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EnergyNetwork(Network);

#[pymethods]
impl EnergyNetwork {
    /// Links are given as length in micrometres and number.
    #[new]
    #[pyo3(signature = (*, router, routers, links, cycle_ps))]
    fn new(
        router: &EnergyRouter,
        routers: u32,
        links: Vec<(u64, u32)>,
        cycle_ps: u64,
    ) -> PyResult<EnergyNetwork> {
        let group = |(um, count)| Links { length: Length::from_um(um), count };
        let links = links.into_iter().map(group).collect();
        let network = Network::new(router.0, routers, links, Time::from_ps(cycle_ps));
        network.or_raise().map(EnergyNetwork)
    }

    /// Of each component its name, and what its events and its leakage cost, in joules.
    fn energy(
        &self,
        events: &EnergyEvents,
        technology: &Technology,
    ) -> PyResult<Vec<(&'static str, Bounds, Bounds)>> {
        let report = energy::energy(&self.0, &events.0, &technology.0).or_raise()?;
        let row = |component: Component| {
            let (dynamic, leakage) = (report.dynamic(component), report.leakage(component));
            (component.name(), bounds(dynamic), bounds(leakage))
        };
        Ok(Component::ALL.map(row).to_vec())
    }

    /// Of each component its name and what it takes up, in square micrometres.
    fn area(&self, technology: &Technology) -> Vec<(&'static str, Bounds)> {
        let report = energy::area(&self.0, &technology.0);
        let row = |component: Component| (component.name(), bounds(report.um2(component)));
        Component::ALL.map(row).to_vec()
    }
}

/// Counts over a window.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EnergyEvents(Events);

#[pymethods]
impl EnergyEvents {
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
    ) -> EnergyEvents {
        EnergyEvents(Events {
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

    /// Those of two windows on one network: cycles, buffer writes and reads, crossbar traversals, VC and
    /// switch allocations, flits of links, signals.
    #[expect(clippy::type_complexity, reason = "the counts, in the order of the constructor")]
    fn plus(
        &self,
        other: &EnergyEvents,
    ) -> PyResult<(u64, u64, u64, Vec<u64>, u64, u64, Vec<u64>, u64)> {
        let sum = self.0.plus(&other.0).or_raise()?;
        Ok((
            sum.cycles,
            sum.buffer_writes,
            sum.buffer_reads,
            sum.crossbar_traversals,
            sum.vc_allocations,
            sum.switch_allocations,
            sum.link_flits,
            sum.signal_bit_um,
        ))
    }
}
