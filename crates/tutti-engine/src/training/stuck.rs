//! Why a run is stuck: NPUs of a group have started chunks of different collectives.

use super::fabric::Running;

/// An NPU with a chunk in flight that another NPU of its group has not started, as its chunks in
/// flight are of another collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) npu: u32,
    pub(super) other: u32,
    /// The collectives of their chunks, by the number of their operation.
    pub(super) started: usize,
    pub(super) instead: usize,
}

impl Running<'_> {
    /// The first mismatch, if any. NPUs that start collectives in the same order have none.
    pub(super) fn mismatch(&self) -> Option<Mismatch> {
        let npus = (0..).zip(&self.npus);
        npus.into_iter().find_map(|(npu, _)| {
            self.in_flight(npu).find_map(|chunk| {
                let started = self.cuts.transfer_of(chunk);
                let groups = self.cuts.groups(chunk);
                let group = (0..groups.size).map(|rank| groups.member(npu, rank));
                group.filter(|&other| (other as usize) < self.npus.len()).find_map(|other| {
                    let instead = self.instead_of(other, chunk)?;
                    Some(Mismatch { npu, other, started, instead })
                })
            })
        })
    }

    /// The collective that an NPU has started while a chunk waits to start there.
    fn instead_of(&self, npu: u32, chunk: u32) -> Option<usize> {
        let (state, transfer) = (&self.npus[npu as usize], self.cuts.transfer_of(chunk));
        let at = state.chunks[chunk as usize];
        if at.held || at.phase > 0 || !state.entry.waits(transfer) {
            return None;
        }
        let mut others = self.in_flight(npu).map(|chunk| self.cuts.transfer_of(chunk));
        others.find(|&other| other != transfer)
    }

    /// The chunks of collectives that an NPU has in flight.
    fn in_flight(&self, npu: u32) -> impl Iterator<Item = u32> + '_ {
        let chunks = (0..).zip(&self.npus[npu as usize].chunks);
        let held = chunks.filter(|(_, chunk)| chunk.held).map(|(chunk, _)| chunk);
        held.filter(|&chunk| !self.cuts.is_message(chunk))
    }
}
