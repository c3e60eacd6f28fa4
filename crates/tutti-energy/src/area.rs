//! The silicon area of a network.

use super::{AreaReport, Component, Costs, Interval, NetworkHardware, Technology};

/// Returns the area of all routers and links by component.
#[must_use]
pub fn area(network: &NetworkHardware, technology: &Technology) -> AreaReport {
    let costs = Costs::new(&network.router(), technology);
    let routers = f64::from(network.routers());
    let links: Interval = network
        .links()
        .iter()
        .map(|links| costs.link_area_um2(links.length).times(f64::from(links.count)))
        .sum();
    let of = |component| match component {
        Component::Links => links,
        _ => costs.area_um2(component).times(routers),
    };
    AreaReport::new(of)
}
