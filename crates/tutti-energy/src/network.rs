//! The hardware: what leaks, what the clock reaches, what takes up area.

use super::{EnergyError, real};
use tutti_units::{Length, Time};

/// A router, as far as energy and area depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterHardware {
    ports: u32,
    vcs: u32,
    buffer_flits: u32,
    flit_bits: u32,
}

impl RouterHardware {
    /// A router with as many inputs as outputs.
    ///
    /// `vcs` and `buffer_flits` are those of one input port, all its VCs together; `flit_bits` is the
    /// width of buffers, crossbar and links.
    ///
    /// # Errors
    /// When one of them is zero.
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

    /// Inputs, and as many outputs, the local ones included.
    #[must_use]
    pub fn ports(&self) -> u32 {
        self.ports
    }

    /// Virtual channels of an input port.
    #[must_use]
    pub fn vcs(&self) -> u32 {
        self.vcs
    }

    /// Flits that an input port has room for.
    #[must_use]
    pub fn buffer_flits(&self) -> u32 {
        self.buffer_flits
    }

    /// Bits of a flit.
    #[must_use]
    pub fn flit_bits(&self) -> u32 {
        self.flit_bits
    }
}

/// Links of the same length, each in one direction and as wide as a flit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkHardware {
    /// How long each of them is.
    pub length: Length,
    /// How many there are.
    pub count: u32,
}

/// Equal routers and the links between them, under one clock. A network of several kinds of routers is
/// several of these, whose reports are added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkHardware {
    router: RouterHardware,
    routers: u32,
    links: Vec<LinkHardware>,
    cycle: Time,
}

impl NetworkHardware {
    /// So many routers of this kind, links, and the time of a clock cycle.
    ///
    /// # Errors
    /// When the cycle takes no time.
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

    /// What each router is.
    #[must_use]
    pub fn router(&self) -> RouterHardware {
        self.router
    }

    /// How many there are.
    #[must_use]
    pub fn routers(&self) -> u32 {
        self.routers
    }

    /// The links, in groups of equal length.
    #[must_use]
    pub fn links(&self) -> &[LinkHardware] {
        &self.links
    }

    /// The time of a clock cycle.
    #[must_use]
    pub fn cycle(&self) -> Time {
        self.cycle
    }

    /// The length of so many cycles, in seconds.
    pub(super) fn seconds(&self, cycles: u64) -> f64 {
        real(cycles) * (real(self.cycle.ps()) * 1e-12)
    }
}
