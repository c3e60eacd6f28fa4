//! Ring: every rank passes one shard at a time to its right-hand neighbour.
//!
//! all_reduce is a reduce_scatter of n - 1 steps followed by an all_gather of n - 1 steps; each message
//! is 1/n of the payload, so every link carries 2 (n - 1) / n of it, the least any all_reduce can do on
//! a ring. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//! workstations", J. Parallel Distrib. Comput. 69 (2009).

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::ids::RankId;
use crate::schedule::{ChunkRange, Schedule, Shape, Slot, Step};

pub(super) const ENTRY: Entry = Entry {
    name: "ring",
    summary: "shards travel round a ring of neighbours; least bytes, most steps",
    source: "Patarasuk and Yuan 2009",
    argument: "",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "any",
    claims: |request| request.ranks >= 2,
    build,
    critical_path,
};

const SCRATCH: Slot = Slot(1);

struct Ring {
    shape: Shape,
    /// Steps that reduce; the others only pass on.
    reducing: u32,
    /// Which shard rank 0 sends first: the reduction of shard s must end at rank s.
    first: u32,
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let n = request.ranks;
    let (reducing, first) = match request.collective {
        Collective::AllGather => (0, 0),
        _ => (n - 1, n - 1),
    };
    let shape = Shape {
        name: "ring".to_owned(),
        collective: request.collective,
        ranks: n,
        chunks: n,
        slots: if reducing > 0 { 2 } else { 1 },
        result: Slot::DATA,
    };
    Ok(Arc::new(Ring { shape, reducing, first }))
}

fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let n = request.ranks;
    let stage = |reductions| Stage { messages: 1, receives: 1, chunks: 1, reductions, of: n };
    let reduce = std::iter::repeat_n(stage(1), (n - 1) as usize);
    let gather = std::iter::repeat_n(stage(0), (n - 1) as usize);
    Some(match request.collective {
        Collective::ReduceScatter => reduce.collect(),
        Collective::AllGather => gather.collect(),
        _ => reduce.chain(gather).collect(),
    })
}

impl Schedule for Ring {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        let n = self.shape.ranks;
        if self.shape.collective == Collective::AllReduce { 2 * (n - 1) } else { n - 1 }
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let right = RankId(wrap(rank.0 + 1));
        let left = RankId(wrap(rank.0 + n - 1));
        // In the gathering half of an all_reduce each rank first sends the shard it finished: its own.
        let (first, step) =
            if step >= self.reducing { (0, step - self.reducing) } else { (self.first, step) };
        let sent = wrap(wrap(rank.0 + first) + n - step);
        let received = wrap(sent + n - 1);
        out.send(right, Slot::DATA, ChunkRange::one(sent));
        if first == 0 {
            out.recv(left, Slot::DATA, ChunkRange::one(received));
        } else {
            out.recv(left, SCRATCH, ChunkRange::one(received));
            out.reduce(Slot::DATA, [SCRATCH, Slot::DATA], ChunkRange::one(received));
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        if step < self.reducing {
            format!("reduce_scatter {step}")
        } else {
            format!("all_gather {}", step - self.reducing)
        }
    }
}
