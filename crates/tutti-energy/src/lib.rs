//! Energy and area: what counted events cost in joules, and what the hardware behind them takes up.
//!
//! [`EventCounts`] say what happened in a window, [`NetworkHardware`] on which routers and links, [`Technology`] what
//! each costs: every constant with its unit in its name, its source and its bounds. [`energy`] puts them
//! together, dynamic and leakage apart, component by component; [`area`] needs no events. Nothing here
//! knows who counted, but [`mesh_energy`], which is for the counts of meshes of several hops per cycle. Scaling laws: [`Costs`]. Energies are real numbers, summed in one fixed order.
#![deny(unsafe_code)]

mod area;
mod costs;
mod error;
mod events;
mod interval;
mod link;
mod mesh;
mod network;
mod parameter;
mod registry;
mod report;
mod router;
mod technology;
#[cfg(test)]
mod tests;

pub use area::area;
pub use costs::Costs;
pub use error::EnergyError;
pub use events::EventCounts;
pub use interval::Interval;
pub use mesh::{MeshComponent, MeshHardware, mesh_energy, mesh_technology};
pub use network::{LinkHardware, NetworkHardware, RouterHardware};
pub use parameter::{Constant, Parameter, Part};
pub use registry::{Entry, LINKS, ROUTERS, find, registry};
pub use report::{AreaReport, Component, EnergyReport};
pub use technology::Technology;

/// What the events of a window on a network cost.
///
/// # Errors
/// When the events do not fit the network: flits on other links, or traversals to more outputs than a
/// router has.
pub fn energy(
    network: &NetworkHardware,
    events: &EventCounts,
    technology: &Technology,
) -> Result<EnergyReport, EnergyError> {
    events.check(network)?;
    let costs = Costs::new(&network.router(), technology);
    let mut report = EnergyReport::default();
    report.add_dynamic(Component::Buffers, costs.buffer_write_pj(), events.buffer_writes);
    report.add_dynamic(Component::Buffers, costs.buffer_read_pj(), events.buffer_reads);
    for (outputs, &traversals) in (1..).zip(&events.crossbar_traversals) {
        report.add_dynamic(Component::Crossbar, costs.crossbar_pj(outputs), traversals);
    }
    let switch = costs.switch_allocation_pj();
    report.add_dynamic(Component::SwitchAllocator, switch, events.switch_allocations);
    report.add_dynamic(Component::VcAllocator, costs.vc_allocation_pj(), events.vc_allocations);
    for (links, &flits) in network.links().iter().zip(&events.link_flits) {
        report.add_dynamic(Component::Links, costs.link_pj(links.length), flits);
    }
    report.add_dynamic(Component::Links, costs.signal_pj_per_bit_um(), events.signal_bit_um);
    let clock = costs.clock_pj_per_cycle().times(f64::from(network.routers()));
    report.add_dynamic(Component::Clock, clock, events.cycles);
    let seconds = network.seconds(events.cycles);
    let routers = f64::from(network.routers());
    for component in Component::ALL {
        let router_uw = costs.leakage_uw(component);
        report.add_leakage(component, router_uw.times(routers * seconds * 1e-6));
    }
    for links in network.links() {
        let links_uw = costs.link_leakage_uw(links.length).times(f64::from(links.count));
        report.add_leakage(Component::Links, links_uw.times(seconds * 1e-6));
    }
    Ok(report)
}

/// A count as a real number; exact up to 2^53, and to 16 digits beyond.
#[expect(clippy::cast_precision_loss, reason = "energies have three digits")]
fn real(count: u64) -> f64 {
    count as f64
}
