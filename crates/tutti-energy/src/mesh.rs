//! What happened in a mesh of several hops per cycle, in joules.
//!
//! Its routers have five ports everywhere and no VC allocator: a free VC is taken as the switch is
//! allocated. Requests for paths are wires of their own, heard over as many hops as a flit can make:
//! ceil(log2(1 + HPC_max)) bits, one more where routers know of multicasts, and for answers one more and
//! the number of their flow (Krishna and Peh, NOCS 2014, sections III-C and IV-A). Deciding between
//! requests costs what deciding in the switch does, and is counted there; NIC links cost nothing.

use super::{Component, Costs, EnergyError, Interval, Links, Network, Router, Technology, real};
use tutti_noc::smart::{Counts, FanIn, FanOut, Settings};
use tutti_units::{Length, Time};

/// What takes energy in such a mesh.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub enum MeshComponent {
    /// Flits into buffers; what these leak is [`MeshComponent::Buffers`].
    BufferWrites,
    /// Flits out of buffers.
    BufferReads,
    /// What buffers leak.
    Buffers,
    /// Passages of the crossbar, those of flits that do not stop too.
    Crossbar,
    /// Arbitrations at inputs and outputs.
    Allocation,
    /// Hops over links.
    Links,
    /// Requests for paths, over their wires.
    Requests,
    /// Looks into tables of reductions.
    Tables,
    /// The clock trees of the routers.
    Clock,
}

/// Routers, links and the wires of requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeshHardware {
    network: Network,
    /// Bits of a request, and of an answer's.
    request_bits: (u32, u32),
    tile: Length,
}

impl MeshHardware {
    /// What these settings need, with flits of so many bits, a router every `tile`, and a clock cycle of
    /// this time.
    ///
    /// # Errors
    /// When a flit has no bits, or a cycle takes no time.
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
        let router = Router::new(5, vcs, flits, flit_bits)?;
        let links = vec![Links { length: tile, count }];
        let network = Network::new(router, settings.nodes(), links, cycle)?;
        Ok(MeshHardware { network, request_bits: request_bits(settings), tile })
    }

    /// Its routers and links.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Bits of a request for a path, and of one of an answer that can be combined.
    #[must_use]
    pub fn request_bits(&self) -> (u32, u32) {
        self.request_bits
    }
}

/// The technologies of routers and links that fit such a mesh: with muxes and repeaters where flits make
/// several hops in a cycle.
#[must_use]
pub fn mesh_technology(settings: &Settings) -> (&'static str, &'static str) {
    if settings.hops_per_cycle > 1 {
        ("smart_45nm", "smart_45nm")
    } else {
        ("dsent_45nm", "dsent_45nm_spaced")
    }
}

/// Bits of a request, and of one of an answer.
fn request_bits(settings: &Settings) -> (u32, u32) {
    let hops = bits(1 + settings.hops_per_cycle);
    let multicast = u32::from(matches!(settings.fan_out, FanOut::Greedy(_)));
    let flow = match settings.fan_in {
        FanIn::Unicasts => return (hops + multicast, hops + multicast),
        // With one reduction per destination under way, that is its number.
        FanIn::Greedy => bits(settings.nodes()),
        FanIn::Complete => bits(settings.art_entries),
    };
    // Whether it is an answer is said of all; that it is a multicast, of those only that can be.
    (hops + multicast + 1, hops + 1 + flow)
}

/// Bits that tell so many things apart.
fn bits(things: u32) -> u32 {
    u32::BITS - things.saturating_sub(1).leading_zeros()
}

/// What a window cost, in joules: by events, and by leakage for as long as it was.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MeshReport {
    dynamic: [Interval; MeshComponent::ALL.len()],
    leakage: [Interval; MeshComponent::ALL.len()],
}

impl MeshReport {
    /// What the events of a component cost.
    #[must_use]
    pub fn dynamic(&self, component: MeshComponent) -> Interval {
        self.dynamic[component as usize]
    }

    /// What the leakage of a component cost.
    #[must_use]
    pub fn leakage(&self, component: MeshComponent) -> Interval {
        self.leakage[component as usize]
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

    fn add(&mut self, component: MeshComponent, each_pj: Interval, count: u64) {
        let place = &mut self.dynamic[component as usize];
        *place = *place + each_pj.times(real(count) * 1e-12);
    }
}

/// What happened in a mesh cost.
#[must_use]
pub fn mesh_energy(
    hardware: &MeshHardware,
    counts: &Counts,
    technology: &Technology,
) -> MeshReport {
    use MeshComponent::{
        Allocation, BufferReads, BufferWrites, Clock, Crossbar, Links, Requests, Tables,
    };
    let network = &hardware.network;
    let costs = Costs::new(&network.router(), technology);
    let mut report = MeshReport::default();
    report.add(BufferWrites, costs.buffer_write_pj(), counts.buffer_writes);
    report.add(BufferReads, costs.buffer_read_pj(), counts.buffer_reads);
    for (outputs, &crossings) in (1..).zip(&counts.crossings) {
        report.add(Crossbar, costs.crossbar_pj(outputs), crossings);
    }
    report.add(Allocation, costs.input_arbitration_pj(), counts.input_arbitrations);
    report.add(Allocation, costs.output_arbitration_pj(), counts.output_arbitrations);
    report.add(Links, costs.link_pj(hardware.tile), counts.link_hops);
    let (plain, answer) = hardware.request_bits;
    let hop = costs.signal_pj_per_bit_um().times(real(hardware.tile.um()));
    report.add(Requests, hop.times(f64::from(plain)), counts.request_hops);
    report.add(Requests, hop.times(f64::from(answer)), counts.answer_request_hops);
    report.add(Tables, costs.table_read_pj(), counts.table_reads);
    let clock = costs.clock_pj_per_cycle().times(f64::from(network.routers()));
    report.add(Clock, clock, counts.cycles);
    report.leakage = leakage(&costs, network, counts.cycles);
    report
}

fn leakage(
    costs: &Costs<'_>,
    network: &Network,
    cycles: u64,
) -> [Interval; MeshComponent::ALL.len()] {
    let seconds = real(cycles) * (real(network.cycle().ps()) * 1e-12);
    let routers = |component| {
        costs.leakage_uw(component).times(f64::from(network.routers()) * seconds * 1e-6)
    };
    MeshComponent::ALL.map(|component| match component {
        MeshComponent::Buffers => routers(Component::Buffers),
        MeshComponent::Crossbar => routers(Component::Crossbar),
        MeshComponent::Allocation => routers(Component::SwitchAllocator),
        MeshComponent::Clock => routers(Component::Clock),
        MeshComponent::Links => {
            let each = |links: &Links| {
                costs.link_leakage_uw(links.length).times(f64::from(links.count) * seconds * 1e-6)
            };
            network.links().iter().map(each).sum()
        }
        MeshComponent::BufferWrites
        | MeshComponent::BufferReads
        | MeshComponent::Requests
        | MeshComponent::Tables => Interval::default(),
    })
}
