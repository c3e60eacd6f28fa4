//! Invariants between two cycles.

use super::ReferenceNetwork;
use super::parts::{Output, Wire};
use crate::End;

impl ReferenceNetwork {
    /// Inspects every buffer and every credit.
    ///
    /// # Errors
    /// A buffer that is fuller than it can be, or a channel whose VC has lost or gained credits.
    pub fn audit(&self) -> Result<(), String> {
        for (channel, wire) in self.wires.iter().enumerate() {
            for vc in 0..self.settings.vcs {
                let at = || format!("channel {channel}, VC {vc}, cycle {}", self.now);
                let stored = self.stored(wire, vc);
                let buffers = self.settings.buffers_behind(&wire.channel);
                let capacity = if buffers.vcs >> vc & 1 == 1 { buffers.buffer as usize } else { 0 };
                if stored > capacity {
                    return Err(format!("{}: {stored} flits in the buffer", at()));
                }
                let output = self.upstream(wire);
                let known = output.vcs[vc as usize].credits as usize
                    + self.in_flight(wire, output, vc)
                    + stored;
                if known != buffers.buffer as usize {
                    return Err(format!("{}: {known} credits and flits", at()));
                }
            }
        }
        Ok(())
    }

    fn upstream(&self, wire: &Wire) -> &Output {
        match wire.channel.from {
            End::Router { router, port } => &self.routers[router as usize].outputs[port as usize],
            End::Node(node) => &self.nodes[node as usize].output,
        }
    }

    /// Flits in the buffer behind a channel.
    fn stored(&self, wire: &Wire, vc: u32) -> usize {
        match wire.channel.to {
            End::Router { router, port } => {
                self.routers[router as usize].inputs[port as usize].vcs[vc as usize].flits.len()
            }
            End::Node(_) => 0,
        }
    }

    /// Flits in flight to that buffer, and credits in flight back.
    fn in_flight(&self, wire: &Wire, output: &Output, vc: u32) -> usize {
        let of_vc = |vcs: &Vec<u32>| vcs.iter().filter(|&&other| other == vc).count();
        let mut in_flight = wire.flits.iter().filter(|(_, flit)| flit.vc == vc).count();
        in_flight += wire.credits.iter().map(|(_, vcs)| of_vc(vcs)).sum::<usize>();
        in_flight += output.queue.iter().filter(|flit| flit.vc == vc).count();
        if let End::Router { router, port } = wire.channel.from {
            let crossing = &self.routers[router as usize].switch.crossing;
            in_flight +=
                crossing.iter().filter(|one| one.port == port && one.flit.vc == vc).count();
        }
        if let End::Router { router, port } = wire.channel.to {
            let input = &self.routers[router as usize].inputs[port as usize];
            in_flight += input.credits.iter().map(of_vc).sum::<usize>();
        }
        in_flight
    }
}
