//! The hardware: routers, links and the clock.

use super::{EnergyError, real};
use tutti_units::{Length, Time};

/// A router, with the parameters that determine energy and area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterHardware {
    ports: u32,
    vcs: u32,
    buffer_flits: u32,
    flit_bits: u32,
}

impl RouterHardware {
    /// Creates a router with as many inputs as outputs.
    ///
    /// `vcs` and `buffer_flits` are those of one input port, all its VCs together. `flit_bits` is
    /// the width of buffers, crossbar and links.
    ///
    /// # Errors
    /// A parameter is zero.
    pub fn new(
        ports: u32,
        vcs: u32,
        buffer_flits: u32,
        flit_bits: u32,
    ) -> Result<RouterHardware, EnergyError> {
        let fields = [
            ("ports", ports),
            ("vcs", vcs),
            ("buffer_flits", buffer_flits),
            ("flit_bits", flit_bits),
        ];
        match fields.iter().find(|(_, count)| *count == 0) {
            Some(&(field, _)) => Err(EnergyError::Zero { field }),
            None => Ok(RouterHardware { ports, vcs, buffer_flits, flit_bits }),
        }
    }

    /// The number of input ports, and of output ports, including the local ones.
    #[must_use]
    pub fn ports(&self) -> u32 {
        self.ports
    }

    /// The VCs of an input port.
    #[must_use]
    pub fn vcs(&self) -> u32 {
        self.vcs
    }

    /// The buffer size of an input port in flits.
    #[must_use]
    pub fn buffer_flits(&self) -> u32 {
        self.buffer_flits
    }

    /// The bits of a flit.
    #[must_use]
    pub fn flit_bits(&self) -> u32 {
        self.flit_bits
    }
}

/// Links of equal length, each in one direction and as wide as a flit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkHardware {
    /// The length of each link.
    pub length: Length,
    /// The number of links.
    pub count: u32,
}

/// Identical routers and the links between them, under one clock. A network of several router types
/// is several of these, and their reports are added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkHardware {
    router: RouterHardware,
    routers: u32,
    links: Vec<LinkHardware>,
    cycle: Time,
}

impl NetworkHardware {
    /// Creates a network of `routers` routers, with links and a cycle time.
    ///
    /// # Errors
    /// The cycle time is zero.
    pub fn new(
        router: RouterHardware,
        routers: u32,
        links: Vec<LinkHardware>,
        cycle: Time,
    ) -> Result<NetworkHardware, EnergyError> {
        if cycle == Time::ZERO {
            return Err(EnergyError::ZeroCycle {});
        }
        Ok(NetworkHardware { router, routers, links, cycle })
    }

    /// The router.
    #[must_use]
    pub fn router(&self) -> RouterHardware {
        self.router
    }

    /// The number of routers.
    #[must_use]
    pub fn routers(&self) -> u32 {
        self.routers
    }

    /// The links, in groups of equal length.
    #[must_use]
    pub fn links(&self) -> &[LinkHardware] {
        &self.links
    }

    /// The cycle time.
    #[must_use]
    pub fn cycle(&self) -> Time {
        self.cycle
    }

    /// The duration of a number of cycles in seconds.
    pub(super) fn seconds(&self, cycles: u64) -> f64 {
        real(cycles) * (real(self.cycle.ps()) * 1e-12)
    }
}
