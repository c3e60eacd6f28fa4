//! What is scheduled for later cycles.

use super::clocks::Clocks;
use super::state::{Flit, NetworkState};
use super::wheel::Wheel;
use crate::settings::Settings;

/// The scheduled events of a network.
pub(super) struct Events {
    pub(super) arrivals: Wheel<(Flit, u32)>,
    pub(super) ejections: Wheel<(Flit, u32)>,
    pub(super) credits: Wheel<u32>,
    /// Input VCs whose heads have been routed and may request a VC.
    pub(super) routed: Wheel<u32>,
    /// Input VCs whose first packet changed in the cycle before.
    pub(super) fresh: Vec<u32>,
}

impl Events {
    /// No events. `serial` states whether a port may send a flit later than it left the switch.
    pub(super) fn new<const W: usize>(
        layout: &NetworkState<W>,
        settings: &Settings,
        serial: bool,
        clocks: Option<&Clocks>,
    ) -> Events {
        let flits = layout.out_ports.iter().map(|port| u64::from(port.after)).max();
        let credits = layout.in_vcs.iter().map(|vc| u64::from(vc.credit_after)).max();
        let ejections = layout.out_ports.iter().map(|port| u64::from(port.credit_after)).max();
        let behind = u64::from(settings.vcs) * u64::from(settings.buffer);
        // Flits that may wait behind a switch, and credits that may wait for earlier credits.
        let queued = if serial { behind } else { 0 };
        let routing = u64::from(settings.routing_delay);
        let [flits, credits, routed] = match clocks {
            // Flits may wait in synchronisers, too.
            Some(clocks) => clocks.longest(behind, routing),
            None => [
                flits.unwrap_or(1) + queued,
                credits.max(ejections).unwrap_or(1) + queued,
                routing + 1,
            ],
        };
        Events {
            arrivals: Wheel::new(flits),
            ejections: Wheel::new(flits),
            credits: Wheel::new(credits),
            routed: Wheel::new(routed),
            fresh: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
            && self.credits.is_empty()
            && self.ejections.is_empty()
            && self.routed.is_empty()
            && self.fresh.is_empty()
    }
}
