//! Statistics of a run in progress.

use super::core::Miss;
use super::packet::Kind;
use super::run::{FlowCount, Misses, Parts, SystemRun};
use tutti_noc::smart::Counts;

/// The source of a miss's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Cache,
    Memory,
    /// The core had a copy.
    OwnCopy,
}

/// Statistics of the region of interest, or of the run up to now if no region has started.
pub(super) struct Stats {
    pub(super) run: SystemRun,
    /// Number of flows by kind.
    flows: [u64; Kind::ALL.len()],
    /// The first cycle that counts, and the totals of the fabric at that time.
    start: u64,
    counts: Counts,
    /// Lines read and written before that cycle.
    memory: [u64; 2],
    /// Number of reductions in flight, and the cycle of its last change.
    open: (u64, u64),
    region: Region,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Region {
    /// No region has started: everything counts.
    Unnamed,
    Inside,
    Ended,
}

impl Stats {
    pub(super) fn new(cores: u32, checked: bool) -> Stats {
        Stats {
            run: empty(cores, checked),
            flows: [0; Kind::ALL.len()],
            start: 0,
            counts: Counts::default(),
            memory: [0; 2],
            open: (0, 0),
            region: Region::Unnamed,
        }
    }

    /// Returns whether events count now.
    #[inline]
    pub(super) fn counts(&self) -> bool {
        self.region != Region::Ended
    }

    pub(super) fn begin(
        &mut self,
        now: u64,
        counts: Counts,
        memory: [u64; 2],
    ) -> Result<(), &'static str> {
        if self.region != Region::Unnamed {
            return Err("starts the region of interest, which has started before");
        }
        self.run = empty(self.run.cores, self.run.checked);
        self.flows = [0; Kind::ALL.len()];
        (self.start, self.counts, self.memory) = (now, counts, memory);
        self.open.1 = now;
        self.region = Region::Inside;
        Ok(())
    }

    pub(super) fn end(
        &mut self,
        now: u64,
        counts: Counts,
        memory: [u64; 2],
    ) -> Result<(), &'static str> {
        if self.region != Region::Inside {
            return Err("ends the region of interest, which has not started or has ended");
        }
        self.freeze(now, counts, memory);
        Ok(())
    }

    /// Computes the totals of the region.
    fn freeze(&mut self, now: u64, counts: Counts, memory: [u64; 2]) {
        self.reductions(now, 0);
        self.run.cycles = now - self.start;
        self.run.counts = counts.since(&self.counts);
        self.run.memory_reads = memory[0] - self.memory[0];
        self.run.memory_writes = memory[1] - self.memory[1];
        self.region = Region::Ended;
    }

    /// Counts a message.
    pub(super) fn sent(&mut self, kind: Kind) {
        if self.counts() {
            self.flows[kind as usize] += 1;
        }
    }

    /// Adds `more` to the number of reductions in flight.
    pub(super) fn reductions(&mut self, now: u64, more: i64) {
        let (open, since) = self.open;
        if self.counts() {
            self.run.open_reductions += open * (now - since);
        }
        self.open = (open.saturating_add_signed(more), now);
    }

    /// Adds a completed miss.
    pub(super) fn missed(&mut self, now: u64, miss: &Miss, parts: &Parts, source: Source) {
        debug_assert_eq!(
            parts.total(),
            now - miss.issued,
            "components add up to the latency: {parts:?}"
        );
        if !self.counts() {
            return;
        }
        let misses: &mut Misses = &mut self.run.misses[miss.kind as usize];
        misses.latency.add(now - miss.issued);
        misses.parts.add(parts);
        match source {
            Source::Cache => misses.from_caches += 1,
            Source::Memory => misses.from_memory += 1,
            Source::OwnCopy => {}
        }
    }

    /// Returns the results.
    pub(super) fn finish(mut self, now: u64, counts: Counts, memory: [u64; 2]) -> SystemRun {
        if self.region == Region::Unnamed {
            self.freeze(now, counts, memory);
        }
        let kinds = Kind::ALL.into_iter().filter(|&kind| self.flows[kind as usize] > 0);
        let flows = kinds.map(|kind| FlowCount {
            kind: kind.name(),
            class: kind.class(),
            cast: match kind {
                Kind::Responses => "responses",
                _ if kind.is_broadcast() => "broadcast",
                _ => "unicast",
            },
            count: self.flows[kind as usize],
        });
        self.run.flows = flows.collect();
        self.run.total_cycles = now;
        self.run
    }

    /// Returns whether the region has started and not ended.
    pub(super) fn is_inside(&self) -> bool {
        self.region == Region::Inside
    }
}

fn empty(cores: u32, checked: bool) -> SystemRun {
    SystemRun { cores, checked, ..SystemRun::default() }
}
