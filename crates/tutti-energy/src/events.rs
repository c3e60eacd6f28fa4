//! What happened in a window, counted.

use super::{EnergyError, NetworkHardware};

/// Counts over a window of cycles, all routers and links of a [`NetworkHardware`] together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventCounts {
    /// Clock cycles of the window: what leakage and clock cost grows with them.
    pub cycles: u64,
    /// Flits written into input buffers.
    pub buffer_writes: u64,
    /// Flits read from input buffers.
    pub buffer_reads: u64,
    /// Flits through a crossbar to one output, to two at once, to three, and so on.
    pub crossbar_traversals: Vec<u64>,
    /// Packets that were given a VC downstream.
    pub vc_allocations: u64,
    /// Flits that were given a crossbar's output.
    pub switch_allocations: u64,
    /// Flits that crossed a link, for each group of links of the network.
    pub link_flits: Vec<u64>,
    /// Control signals on wires of their own, such as the requests of SMART: bits times micrometres.
    pub signal_bit_um: u64,
}

impl EventCounts {
    /// One after the other on the same network: the events of two windows.
    ///
    /// # Errors
    /// When they count flits on different links, or a sum is too large.
    pub fn plus(&self, other: &EventCounts) -> Result<EventCounts, EnergyError> {
        let (given, expected) = (other.link_flits.len(), self.link_flits.len());
        if given != expected {
            return Err(EnergyError::WrongLinks { given, expected });
        }
        let outputs = self.crossbar_traversals.len().max(other.crossbar_traversals.len());
        Ok(EventCounts {
            cycles: sum("cycles", self.cycles, other.cycles)?,
            buffer_writes: sum("buffer_writes", self.buffer_writes, other.buffer_writes)?,
            buffer_reads: sum("buffer_reads", self.buffer_reads, other.buffer_reads)?,
            crossbar_traversals: sums(
                "crossbar_traversals",
                outputs,
                &self.crossbar_traversals,
                &other.crossbar_traversals,
            )?,
            vc_allocations: sum("vc_allocations", self.vc_allocations, other.vc_allocations)?,
            switch_allocations: sum(
                "switch_allocations",
                self.switch_allocations,
                other.switch_allocations,
            )?,
            link_flits: sums("link_flits", expected, &self.link_flits, &other.link_flits)?,
            signal_bit_um: sum("signal_bit_um", self.signal_bit_um, other.signal_bit_um)?,
        })
    }

    /// Whether they can have happened on this network.
    pub(super) fn check(&self, network: &NetworkHardware) -> Result<(), EnergyError> {
        let (given, expected) = (self.link_flits.len(), network.links().len());
        if given != expected {
            return Err(EnergyError::WrongLinks { given, expected });
        }
        let ports = network.router().ports();
        let most = self.crossbar_traversals.iter().rposition(|&count| count > 0);
        match most.map(|position| position + 1) {
            Some(outputs) if outputs > ports as usize => {
                Err(EnergyError::TooManyOutputs { outputs, ports })
            }
            _ => Ok(()),
        }
    }
}

fn sum(count: &'static str, one: u64, other: u64) -> Result<u64, EnergyError> {
    one.checked_add(other).ok_or(EnergyError::TooMany { count })
}

fn sums(
    count: &'static str,
    length: usize,
    one: &[u64],
    other: &[u64],
) -> Result<Vec<u64>, EnergyError> {
    let at = |counts: &[u64], place: usize| counts.get(place).copied().unwrap_or(0);
    (0..length).map(|place| sum(count, at(one, place), at(other, place))).collect()
}
