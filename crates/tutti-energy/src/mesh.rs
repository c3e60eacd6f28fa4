//! Energy of SMART meshes, in which flits make several hops per cycle.
//!
//! Routers have five ports everywhere and no VC allocator: VCs are taken from a queue during switch
//! allocation. Path requests (SSRs) use separate wires and are driven for as many hops as a flit
//! can make. They have ceil(log2(1 + HPC_max)) bits, one more if routers distinguish multicasts;
//! requests of responses have one more and a flow number (Krishna and Peh, NOCS 2014, sections
//! III-C and IV-A). Arbitration between requests costs as much as in the switch allocator and is
//! counted there. NIC links are not charged.

use super::{
    Component, Costs, EnergyError, EnergyReport, LinkHardware, NetworkHardware, RouterHardware,
    Technology, real,
};
use tutti_noc::smart::{Counts, FanIn, FanOut, Settings};
use tutti_units::{Length, Time};

/// A component of the energy of a SMART mesh.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub enum MeshComponent {
    /// Buffer writes; the leakage of buffers is [`MeshComponent::Buffers`].
    BufferWrites,
    /// Buffer reads.
    BufferReads,
    /// Leakage of buffers.
    Buffers,
    /// Crossbar traversals, including those of bypassing flits.
    Crossbar,
    /// Arbitrations at inputs and outputs.
    Allocation,
    /// Link hops.
    Links,
    /// Path requests on their wires.
    Requests,
    /// Reduction table lookups.
    Tables,
    /// The clock trees of the routers.
    Clock,
}

/// Routers, links and request wires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeshHardware {
    network: NetworkHardware,
    /// Bits of a request, and of the request of a response.
    request_bits: (u32, u32),
    tile: Length,
}

impl MeshHardware {
    /// Returns the hardware for the settings, with `flit_bits` per flit, a router every `tile`, and
    /// a clock cycle of `cycle`.
    ///
    /// # Errors
    /// A flit has no bits, or the cycle time is zero.
    pub fn new(
        settings: &Settings,
        flit_bits: u32,
        tile: Length,
        cycle: Time,
    ) -> Result<MeshHardware, EnergyError> {
        let pools = settings.classes.iter().map(|class| {
            let vcs = settings.stages(class).iter().sum::<u32>();
            (vcs, vcs * class.depth)
        });
        let (vcs, flits) = pools.fold((0, 0), |(vcs, flits), pool| (vcs + pool.0, flits + pool.1));
        let Settings { columns, rows, .. } = *settings;
        let count = 2 * ((columns - 1) * rows + columns * (rows - 1));
        let router = RouterHardware::new(5, vcs, flits, flit_bits)?;
        let links = vec![LinkHardware { length: tile, count }];
        let network = NetworkHardware::new(router, settings.nodes(), links, cycle)?;
        Ok(MeshHardware { network, request_bits: request_bits(settings), tile })
    }

    /// The routers and links.
    #[must_use]
    pub fn network(&self) -> &NetworkHardware {
        &self.network
    }

    /// Bits of a path request, and of the request of a response that can be combined.
    #[must_use]
    pub fn request_bits(&self) -> (u32, u32) {
        self.request_bits
    }
}

/// The technologies of routers and links for a mesh: with bypass multiplexers and repeaters if
/// flits make several hops per cycle.
#[must_use]
pub fn mesh_technology(settings: &Settings) -> (&'static str, &'static str) {
    if settings.hops_per_cycle > 1 {
        ("smart_45nm", "smart_45nm")
    } else {
        ("dsent_45nm", "dsent_45nm_spaced")
    }
}

/// Bits of a request, and of the request of a response.
fn request_bits(settings: &Settings) -> (u32, u32) {
    let hops = bits(1 + settings.hops_per_cycle);
    let multicast = u32::from(matches!(settings.fan_out, FanOut::Greedy(_)));
    let flow = match settings.fan_in {
        FanIn::Unicasts => return (hops + multicast, hops + multicast),
        // With one reduction in flight per destination, the flow number is that of the destination.
        FanIn::Greedy => bits(settings.nodes()),
        FanIn::Complete => bits(settings.art_entries),
    };
    // Every request has a response bit; only requests of possible multicasts have a multicast bit.
    (hops + multicast + 1, hops + 1 + flow)
}

/// The bits that distinguish `things` values.
fn bits(things: u32) -> u32 {
    u32::BITS - things.saturating_sub(1).leading_zeros()
}

/// Returns the energy of the events of a mesh.
#[must_use]
pub fn mesh_energy(
    hardware: &MeshHardware,
    counts: &Counts,
    technology: &Technology,
) -> EnergyReport<MeshComponent> {
    use MeshComponent::{
        Allocation, BufferReads, BufferWrites, Clock, Crossbar, Links, Requests, Tables,
    };
    let network = &hardware.network;
    let costs = Costs::new(&network.router(), technology);
    let mut report = EnergyReport::default();
    report.add_dynamic(BufferWrites, costs.buffer_write_pj(), counts.buffer_writes);
    report.add_dynamic(BufferReads, costs.buffer_read_pj(), counts.buffer_reads);
    for (outputs, &crossings) in (1..).zip(&counts.crossings) {
        report.add_dynamic(Crossbar, costs.crossbar_pj(outputs), crossings);
    }
    report.add_dynamic(Allocation, costs.input_arbitration_pj(), counts.input_arbitrations);
    report.add_dynamic(Allocation, costs.output_arbitration_pj(), counts.output_arbitrations);
    report.add_dynamic(Links, costs.link_pj(hardware.tile), counts.link_hops);
    let (plain, answer) = hardware.request_bits;
    let hop = costs.signal_pj_per_bit_um().times(real(hardware.tile.um()));
    report.add_dynamic(Requests, hop.times(f64::from(plain)), counts.request_hops);
    report.add_dynamic(Requests, hop.times(f64::from(answer)), counts.response_request_hops);
    report.add_dynamic(Tables, costs.table_read_pj(), counts.table_reads);
    let clock = costs.clock_pj_per_cycle().times(f64::from(network.routers()));
    report.add_dynamic(Clock, clock, counts.cycles);
    add_leakage(&mut report, network, &costs, network.seconds(counts.cycles));
    report
}

/// Adds what routers and links leak.
fn add_leakage(
    report: &mut EnergyReport<MeshComponent>,
    network: &NetworkHardware,
    costs: &Costs<'_>,
    seconds: f64,
) {
    use MeshComponent::{Allocation, Buffers, Clock, Crossbar, Links};
    for (mesh, router) in [
        (Buffers, Component::Buffers),
        (Crossbar, Component::Crossbar),
        (Allocation, Component::SwitchAllocator),
        (Clock, Component::Clock),
    ] {
        let routers = f64::from(network.routers());
        report.add_leakage(mesh, costs.leakage_uw(router).times(routers * seconds * 1e-6));
    }
    for links in network.links() {
        let each = costs.link_leakage_uw(links.length);
        report.add_leakage(Links, each.times(f64::from(links.count) * seconds * 1e-6));
    }
}
