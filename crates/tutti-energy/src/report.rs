//! Energy and area by component.

use std::collections::BTreeMap;
use std::ops::Add;

use super::{Interval, real};

/// A component with energy and area.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Component {
    Buffers,
    Crossbar,
    SwitchAllocator,
    VcAllocator,
    Links,
    Clock,
}

/// A quantity of each component.
#[derive(Clone, PartialEq, Debug)]
struct Breakdown<C>(BTreeMap<C, Interval>);

impl<C: Ord> Breakdown<C> {
    fn of(&self, component: C) -> Interval {
        self.0.get(&component).copied().unwrap_or_default()
    }

    fn total(&self) -> Interval {
        self.0.values().copied().sum()
    }

    fn add(&mut self, component: C, more: Interval) {
        let sum = self.0.entry(component).or_default();
        *sum = *sum + more;
    }

    fn join(mut self, other: Breakdown<C>) -> Breakdown<C> {
        other.0.into_iter().for_each(|(component, more)| self.add(component, more));
        self
    }
}

/// The energy of a window in joules: dynamic and leakage.
#[derive(Clone, PartialEq, Debug)]
pub struct EnergyReport<C = Component> {
    dynamic: Breakdown<C>,
    leakage: Breakdown<C>,
}

impl<C> Default for EnergyReport<C> {
    fn default() -> EnergyReport<C> {
        let empty = || Breakdown(BTreeMap::new());
        EnergyReport { dynamic: empty(), leakage: empty() }
    }
}

impl<C: Ord> EnergyReport<C> {
    /// The dynamic energy of a component.
    #[must_use]
    pub fn dynamic(&self, component: C) -> Interval {
        self.dynamic.of(component)
    }

    /// The leakage energy of a component.
    #[must_use]
    pub fn leakage(&self, component: C) -> Interval {
        self.leakage.of(component)
    }

    /// The dynamic energy of all components.
    #[must_use]
    pub fn total_dynamic(&self) -> Interval {
        self.dynamic.total()
    }

    /// The leakage energy of all components.
    #[must_use]
    pub fn total_leakage(&self) -> Interval {
        self.leakage.total()
    }

    /// The total energy.
    #[must_use]
    pub fn total(&self) -> Interval {
        self.total_dynamic() + self.total_leakage()
    }

    pub(super) fn add_dynamic(&mut self, component: C, each_pj: Interval, count: u64) {
        self.dynamic.add(component, each_pj.times(real(count) * 1e-12));
    }

    pub(super) fn add_leakage(&mut self, component: C, joules: Interval) {
        self.leakage.add(component, joules);
    }
}

impl<C: Ord> Add for EnergyReport<C> {
    type Output = EnergyReport<C>;
    /// Adds two windows of a network, or two networks.
    fn add(self, other: EnergyReport<C>) -> EnergyReport<C> {
        EnergyReport {
            dynamic: self.dynamic.join(other.dynamic),
            leakage: self.leakage.join(other.leakage),
        }
    }
}

/// The area of a network in square micrometres.
#[derive(Clone, PartialEq, Debug)]
pub struct AreaReport(Breakdown<Component>);

impl AreaReport {
    pub(super) fn new(um2: impl Fn(Component) -> Interval) -> AreaReport {
        let of = |component| (component, um2(component));
        AreaReport(Breakdown(Component::ALL.into_iter().map(of).collect()))
    }

    /// The area of a component of all routers, or of all links.
    #[must_use]
    pub fn um2(&self, component: Component) -> Interval {
        self.0.of(component)
    }

    /// The total area.
    #[must_use]
    pub fn total_um2(&self) -> Interval {
        self.0.total()
    }
}

impl Add for AreaReport {
    type Output = AreaReport;
    fn add(self, other: AreaReport) -> AreaReport {
        AreaReport(self.0.join(other.0))
    }
}
