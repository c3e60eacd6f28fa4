//! Joules and square micrometres, component by component.

use std::ops::Add;

use super::{Costs, Interval, Network, real};

/// What takes energy and area.
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

impl Component {
    fn place(self) -> usize {
        self as usize
    }
}

type PerComponent = [Interval; Component::ALL.len()];

/// What a window cost, in joules: by events, and by leakage for as long as it was.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EnergyReport {
    dynamic: PerComponent,
    leakage: PerComponent,
}

impl EnergyReport {
    /// What the events of a component cost.
    #[must_use]
    pub fn dynamic(&self, component: Component) -> Interval {
        self.dynamic[component.place()]
    }

    /// What the leakage of a component cost.
    #[must_use]
    pub fn leakage(&self, component: Component) -> Interval {
        self.leakage[component.place()]
    }

    /// Of all components.
    #[must_use]
    pub fn total_dynamic(&self) -> Interval {
        self.dynamic.into_iter().sum()
    }

    /// Of all components.
    #[must_use]
    pub fn total_leakage(&self) -> Interval {
        self.leakage.into_iter().sum()
    }

    /// Everything.
    #[must_use]
    pub fn total(&self) -> Interval {
        self.total_dynamic() + self.total_leakage()
    }

    pub(super) fn add_dynamic(&mut self, component: Component, each_pj: Interval, count: u64) {
        let place = &mut self.dynamic[component.place()];
        *place = *place + each_pj.times(real(count) * 1e-12);
    }

    pub(super) fn add_leakage(&mut self, costs: &Costs<'_>, network: &Network, cycles: u64) {
        let seconds = real(cycles) * (real(network.cycle().ps()) * 1e-12);
        let routers = f64::from(network.routers());
        for component in Component::ALL {
            let router_uw = costs.leakage_uw(component);
            self.leakage[component.place()] = router_uw.times(routers * seconds * 1e-6);
        }
        for links in network.links() {
            let links_uw = costs.link_leakage_uw(links.length).times(f64::from(links.count));
            let place = &mut self.leakage[Component::Links.place()];
            *place = *place + links_uw.times(seconds * 1e-6);
        }
    }
}

impl Add for EnergyReport {
    type Output = EnergyReport;
    /// Two windows of a network, or two networks side by side.
    fn add(self, other: EnergyReport) -> EnergyReport {
        EnergyReport {
            dynamic: both(self.dynamic, other.dynamic),
            leakage: both(self.leakage, other.leakage),
        }
    }
}

/// What a network takes up, in square micrometres.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct AreaReport(PerComponent);

impl AreaReport {
    pub(super) fn new(um2: PerComponent) -> AreaReport {
        AreaReport(um2)
    }

    /// Of a component of all routers, or of all links.
    #[must_use]
    pub fn um2(&self, component: Component) -> Interval {
        self.0[component.place()]
    }

    /// Everything.
    #[must_use]
    pub fn total_um2(&self) -> Interval {
        self.0.into_iter().sum()
    }
}

impl Add for AreaReport {
    type Output = AreaReport;
    fn add(self, other: AreaReport) -> AreaReport {
        AreaReport(both(self.0, other.0))
    }
}

fn both(one: PerComponent, other: PerComponent) -> PerComponent {
    std::array::from_fn(|place| one[place] + other[place])
}
