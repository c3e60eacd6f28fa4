//! Energy and area of counted events and of the hardware.
//!
//! [`EventCounts`] are the counts of a window and [`NetworkHardware`] is the hardware. A [`Technology`] has the
//! constants, each with a unit in its name, a source and bounds. The function [`energy`] combines them
//! into dynamic and leakage energy by component; [`area`] needs no events. The counts may come from any
//! source; only [`mesh_energy`] takes the counts of SMART meshes. See [`Costs`] for the scaling laws.
//! Energies are real numbers, summed in a fixed order.
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

/// Returns the energy of the events of a window on a network.
///
/// # Errors
/// The link groups differ, or a traversal has more outputs than a router has ports.
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

/// A count as a real number; exact up to 2^53, to 16 digits beyond.
#[expect(clippy::cast_precision_loss, reason = "energies have three digits")]
fn real(count: u64) -> f64 {
    count as f64
}
