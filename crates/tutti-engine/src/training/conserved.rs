//! Conservation of SRAM space, FSMs and chunks, checked after every event in builds with debug
//! assertions.

use super::npu::{Chunk, Npu};
use super::transfers::Cuts;
use crate::endpoint::ace::Handover;

impl Npu {
    /// Panics unless held and free resources add up to the initial state.
    pub(super) fn check(&self, fresh: &Npu, cuts: &Cuts) {
        let mut space = self.space.clone();
        let mut running = vec![0; self.fsms.len()];
        let mut in_flight = 0;
        for (id, chunk) in (0..).zip(&self.chunks).filter(|(_, chunk)| chunk.held) {
            in_flight += 1;
            if cuts.is_message(id) {
                continue;
            }
            for (partition, bytes) in self.held(id, chunk, cuts) {
                if let Some(free) = space.get_mut(partition) {
                    *free += bytes;
                }
            }
            if self.has_fsm(id, chunk, cuts) {
                running[usize::from(chunk.fsm)] += 1;
            }
        }
        assert_eq!(space, fresh.space, "bytes of the SRAM are not conserved");
        assert_eq!(in_flight, self.active, "chunks are not conserved");
        for (class, (now, then)) in self.fsms.iter().zip(&fresh.fsms).enumerate() {
            let all = now.free.map(|free| free + running[class]);
            assert_eq!(all, then.free, "FSMs of phase {class} are not conserved");
        }
        let ended: u32 = fresh.unfinished.iter().zip(&self.unfinished).map(|(a, b)| a - b).sum();
        assert_eq!(u64::from(ended + in_flight), self.started, "chunks started and did not end");
    }

    /// Whether an FSM holds a chunk: during its phase, and until the chunk has moved on.
    fn has_fsm(&self, id: u32, chunk: &Chunk, cuts: &Cuts) -> bool {
        if chunk.phase as usize >= cuts.phases(id) {
            return false;
        }
        let pool = cuts.pool(id, chunk.phase);
        chunk.running || self.fsms[pool].awaiting_space.contains(&id)
    }

    /// The partitions in which a chunk has space, and the bytes.
    fn held(&self, id: u32, chunk: &Chunk, cuts: &Cuts) -> Vec<(usize, u64)> {
        let results = self.classes();
        let (partition, bytes) = cuts.partition(id, chunk.phase, results);
        let mut held = vec![(partition, bytes.0)];
        if self.handover == Handover::Ahead && chunk.running {
            let (next, bytes) = cuts.partition(id, chunk.phase + 1, results);
            held.push((next, bytes.0));
        }
        held
    }
}
