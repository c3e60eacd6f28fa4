//! What must hold at every moment, checked after every event in builds with debug assertions: room, state
//! machines and chunks are neither lost nor made.

use super::npu::{Chunk, Npu};
use super::transfers::Cuts;
use crate::endpoint::ace::Handover;

impl Npu {
    /// Panics where what chunks hold and what is free is not what there was in the beginning.
    pub(super) fn check(&self, fresh: &Npu, cuts: &Cuts) {
        let mut rooms = self.rooms.clone();
        let mut running = vec![0; self.machines.len()];
        let mut under_way = 0;
        for (id, chunk) in (0..).zip(&self.chunks).filter(|(_, chunk)| chunk.held) {
            under_way += 1;
            for (partition, bytes) in self.held(id, chunk, cuts) {
                if let Some(room) = rooms.get_mut(partition) {
                    *room += bytes;
                }
            }
            if self.has_machine(id, chunk, cuts) {
                running[cuts.shapes(id)[chunk.phase as usize].phase.class] += 1;
            }
        }
        assert_eq!(rooms, fresh.rooms, "bytes of the scratchpad were lost or made");
        assert_eq!(under_way, self.active, "chunks were lost or made");
        for (class, (now, then)) in self.machines.iter().zip(&fresh.machines).enumerate() {
            let all = now.free.map(|free| free + running[class]);
            assert_eq!(all, then.free, "state machines of phase {class} were lost or made");
        }
        let ended: u32 = fresh.unfinished.iter().zip(&self.unfinished).map(|(a, b)| a - b).sum();
        assert_eq!(u64::from(ended + under_way), self.begun, "chunks began and did not end");
    }

    /// A state machine is with a chunk while its phase goes on, and until it has handed it over.
    fn has_machine(&self, id: u32, chunk: &Chunk, cuts: &Cuts) -> bool {
        let Some(shape) = cuts.shapes(id).get(chunk.phase as usize) else { return false };
        chunk.running || self.machines[shape.phase.class].over.contains(&id)
    }

    /// Partitions in which a chunk has room, and bytes.
    fn held(&self, id: u32, chunk: &Chunk, cuts: &Cuts) -> Vec<(usize, u64)> {
        let (phase, done) = (chunk.phase as usize, self.machines.len());
        let mut held = Vec::new();
        match cuts.shapes(id).get(phase) {
            Some(shape) => held.push((shape.phase.class, shape.entry.0)),
            None => held.push((done, cuts.cuts[cuts.transfer_of(id)].done(id).0)),
        }
        if self.handover == Handover::Ahead && chunk.running {
            let (next, bytes) = cuts.after(id, phase, done);
            held.push((next, bytes.0));
        }
        held
    }
}
