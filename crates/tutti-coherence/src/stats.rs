//! What is counted while a chip runs.

use super::core::Miss;
use super::packet::Kind;
use super::run::{FlowCount, Misses, Parts, SystemRun};
use tutti_noc::smart::Counts;

/// Where a miss got its data from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Cache,
    Memory,
    /// It had them.
    Own,
}

/// What has been counted so far in the region of interest, or before it if it has not begun.
pub(super) struct Stats {
    pub(super) run: SystemRun,
    /// Flows by kind.
    flows: [u64; Kind::ALL.len()],
    /// Since when it counts.
    began: u64,
    counts: Counts,
    /// Lines read and written in memory before.
    memory: [u64; 2],
    /// Reductions under way, and since when so many.
    open: (u64, u64),
    region: Region,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Region {
    /// The program has named none so far: everything counts.
    Unnamed,
    Inside,
    Over,
}

impl Stats {
    pub(super) fn new(cores: u32, checked: bool) -> Stats {
        Stats {
            run: empty(cores, checked),
            flows: [0; Kind::ALL.len()],
            began: 0,
            counts: Counts::default(),
            memory: [0; 2],
            open: (0, 0),
            region: Region::Unnamed,
        }
    }

    /// Whether what happens now counts.
    #[inline]
    pub(super) fn counts(&self) -> bool {
        self.region != Region::Over
    }

    pub(super) fn begin(
        &mut self,
        now: u64,
        counts: Counts,
        memory: [u64; 2],
    ) -> Result<(), &'static str> {
        if self.region != Region::Unnamed {
            return Err("begins the region of interest, which has begun before");
        }
        self.run = empty(self.run.cores, self.run.checked);
        self.flows = [0; Kind::ALL.len()];
        (self.began, self.counts, self.memory) = (now, counts, memory);
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
            return Err("ends the region of interest, which has not begun or is over");
        }
        self.freeze(now, counts, memory);
        Ok(())
    }

    /// Works out what is known at the end only.
    fn freeze(&mut self, now: u64, counts: Counts, memory: [u64; 2]) {
        self.reductions(now, 0);
        self.run.cycles = now - self.began;
        self.run.counts = counts.since(&self.counts);
        self.run.memory_reads = memory[0] - self.memory[0];
        self.run.memory_writes = memory[1] - self.memory[1];
        self.region = Region::Over;
    }

    /// A message goes out.
    pub(super) fn sent(&mut self, kind: Kind) {
        if self.counts() {
            self.flows[kind as usize] += 1;
        }
    }

    /// So many more reductions are under way.
    pub(super) fn reductions(&mut self, now: u64, more: i64) {
        let (open, since) = self.open;
        if self.counts() {
            self.run.open_reductions += open * (now - since);
        }
        self.open = (open.saturating_add_signed(more), now);
    }

    /// A miss is over.
    pub(super) fn missed(&mut self, now: u64, miss: &Miss, parts: &Parts, source: Source) {
        debug_assert_eq!(parts.total(), now - miss.issued, "parts make up the whole: {parts:?}");
        if !self.counts() {
            return;
        }
        let misses: &mut Misses = &mut self.run.misses[miss.kind as usize];
        misses.latency.add(now - miss.issued);
        misses.parts.add(parts);
        match source {
            Source::Cache => misses.from_caches += 1,
            Source::Memory => misses.from_memory += 1,
            Source::Own => {}
        }
    }

    /// What came of it.
    pub(super) fn finish(mut self, now: u64, counts: Counts, memory: [u64; 2]) -> SystemRun {
        if self.region == Region::Unnamed {
            self.freeze(now, counts, memory);
        }
        let kinds = Kind::ALL.into_iter().filter(|&kind| self.flows[kind as usize] > 0);
        let flows = kinds.map(|kind| FlowCount {
            kind: kind.name(),
            class: kind.class(),
            cast: match kind {
                Kind::Answers => "answers",
                _ if kind.is_broadcast() => "broadcast",
                _ => "unicast",
            },
            count: self.flows[kind as usize],
        });
        self.run.flows = flows.collect();
        self.run.total_cycles = now;
        self.run
    }

    /// Whether the region began and did not end.
    pub(super) fn is_inside(&self) -> bool {
        self.region == Region::Inside
    }
}

fn empty(cores: u32, checked: bool) -> SystemRun {
    SystemRun { cores, checked, ..SystemRun::default() }
}
