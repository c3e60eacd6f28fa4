//! Event counts of a window.

use super::{EnergyError, NetworkHardware};

/// Event counts of a window over all routers and links of a [`NetworkHardware`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventCounts {
    /// Clock cycles of the window, which determine leakage and clock energy.
    pub cycles: u64,
    /// Buffer writes of flits.
    pub buffer_writes: u64,
    /// Buffer reads of flits.
    pub buffer_reads: u64,
    /// Crossbar traversals of flits to one output, to two outputs, to three, and so on.
    pub crossbar_traversals: Vec<u64>,
    /// VC allocations of packets.
    pub vc_allocations: u64,
    /// Switch allocations of flits.
    pub switch_allocations: u64,
    /// Flits over links, for each group of links of the network.
    pub link_flits: Vec<u64>,
    /// Control signals on separate wires, such as SMART requests: bits times micrometres.
    pub signal_bit_um: u64,
}

impl EventCounts {
    /// Returns the events of two consecutive windows on the same network.
    ///
    /// # Errors
    /// The link groups differ, or a sum exceeds 64 bits.
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

    /// Checks that the events fit the network.
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
