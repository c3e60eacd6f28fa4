//! Schedules that Python builds op by op.

use pyo3::prelude::*;
use tutti_schedule::{ChunkRange, Explicit, Slot};
use tutti_units::Time;
use tutti_units::ids::RankId;

use crate::algorithm::collective_named;
use crate::errors::OrRaise;
use crate::schedule::{Number, Schedule};

/// Builds a schedule op by op, in the program order of each rank; the first mistake is raised by
/// `build`.
#[pyclass(module = "tutti._core")]
pub(crate) struct ScheduleBuilder(tutti_schedule::Builder);

#[pymethods]
impl ScheduleBuilder {
    #[new]
    #[pyo3(signature = (name, collective, ranks, chunks, *, root=Number(0)))]
    #[pyo3(text_signature = "(name, collective, ranks, chunks, *, root=0)")]
    fn new(
        name: &str,
        collective: &str,
        ranks: Number,
        chunks: Number,
        root: Number,
    ) -> PyResult<ScheduleBuilder> {
        let mut builder =
            Explicit::builder(collective_named(collective, root.0)?, ranks.0, chunks.0);
        builder.name(name);
        Ok(ScheduleBuilder(builder))
    }

    /// Sets the relative sizes of the blocks of an all_to_all_v, the row of a source after another.
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn blocks(&mut self, sizes: Vec<u64>) {
        self.0.blocks(&sizes);
    }

    /// Sets the result slot; the default is slot 0.
    fn result(&mut self, slot: Number) {
        self.0.result(Slot(slot.0));
    }

    /// `rank` sends `chunks` of `slot` to `peer`.
    fn send(&mut self, rank: Number, peer: Number, slot: Number, chunks: (Number, Number)) {
        self.0.send(RankId(rank.0), RankId(peer.0), Slot(slot.0), range(chunks));
    }

    /// `rank` receives `chunks` from `peer` into `slot`.
    fn recv(&mut self, rank: Number, peer: Number, slot: Number, chunks: (Number, Number)) {
        self.0.recv(RankId(rank.0), RankId(peer.0), Slot(slot.0), range(chunks));
    }

    /// `rank` sends `chunks` of `slot` to each of `peers`, as one message where the network can
    /// fork it.
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn multicast(
        &mut self,
        rank: Number,
        peers: Vec<Number>,
        slot: Number,
        chunks: (Number, Number),
    ) {
        let peers: Vec<RankId> = peers.iter().map(|peer| RankId(peer.0)).collect();
        self.0.multicast(RankId(rank.0), &peers, Slot(slot.0), range(chunks));
    }

    /// `rank` sends `chunks` of `slot` to `peer`, which combines them with those of others.
    fn contribute(&mut self, rank: Number, peer: Number, slot: Number, chunks: (Number, Number)) {
        self.0.contribute(RankId(rank.0), RankId(peer.0), Slot(slot.0), range(chunks));
    }

    /// `rank` folds `operands`, each a slot and the rank that it is received from, if any, into
    /// `into`.
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn combine(
        &mut self,
        rank: Number,
        into: Number,
        operands: Vec<(Number, Option<Number>)>,
        chunks: (Number, Number),
    ) {
        let operand = |(slot, from): &(Number, Option<Number>)| {
            (Slot(slot.0), from.map(|from| RankId(from.0)))
        };
        let operands: Vec<_> = operands.iter().map(operand).collect();
        self.0.combine(RankId(rank.0), Slot(into.0), &operands, range(chunks));
    }

    /// `rank` folds `operands`, left to right, into `into`.
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn reduce(
        &mut self,
        rank: Number,
        into: Number,
        operands: Vec<Number>,
        chunks: (Number, Number),
    ) {
        let operands: Vec<Slot> = operands.iter().map(|slot| Slot(slot.0)).collect();
        self.0.reduce(RankId(rank.0), Slot(into.0), &operands, range(chunks));
    }

    /// `rank` copies `chunks` of `slot` to positions `to..` of `into`.
    fn copy(
        &mut self,
        rank: Number,
        slot: Number,
        chunks: (Number, Number),
        into: Number,
        to: Number,
    ) {
        self.0.copy(RankId(rank.0), Slot(slot.0), range(chunks), Slot(into.0), to.0);
    }

    /// `rank` computes.
    fn compute(&mut self, rank: Number, duration_ps: u64) {
        self.0.compute(RankId(rank.0), Time::from_ps(duration_ps));
    }

    /// `rank` sleeps.
    fn sleep(&mut self, rank: Number, duration_ps: u64) {
        self.0.sleep(RankId(rank.0), Time::from_ps(duration_ps));
    }

    /// Starts a new step of `rank` under a name.
    fn step(&mut self, rank: Number, name: &str) {
        self.0.start_step(RankId(rank.0), name);
    }

    /// The schedule.
    fn build(&self) -> PyResult<Schedule> {
        self.0.build().or_raise().map(Schedule::from)
    }
}

fn range((start, end): (Number, Number)) -> ChunkRange {
    ChunkRange::new(start.0, end.0)
}
