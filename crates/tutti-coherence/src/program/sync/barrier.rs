//! Sense-reversing barriers. The sense of a round is its number modulo 2, and words store the sense
//! of the last round that they reached, so nothing is reset between rounds.

use std::cell::Cell;

use super::super::work;
use super::super::{Array, Core, LINE_WORDS, Memory};

/// Children of a node of the tree.
const FAN: usize = 4;

/// What the last core to arrive signals before it releases the others.
#[derive(Clone, Copy)]
enum Marker {
    Begin,
    End,
}

async fn signal(core: &Core, marker: Option<Marker>) {
    match marker {
        Some(Marker::Begin) => core.begin().await,
        Some(Marker::End) => core.end().await,
        None => {}
    }
}

/// A central barrier: all cores increment a counter and wait for a word.
#[derive(Clone, Copy, Debug)]
pub struct CentralBarrier {
    count: u64,
    sense: u64,
    /// The maximum of the current round, and that of the last round that computed one.
    largest: [u64; 2],
}

impl CentralBarrier {
    /// Returns a barrier on four separate lines.
    pub fn new(memory: &mut Memory) -> CentralBarrier {
        let mut word = || memory.word(0);
        CentralBarrier { count: word(), sense: word(), largest: [word(), word()] }
    }

    async fn wait(&self, core: &Core, round: &Round) -> u64 {
        let [maximum, result] = self.largest;
        if let Some(value) = round.value {
            let mut seen = core.load(maximum).await;
            while seen < value {
                let before = core.compare_swap(maximum, seen, value).await;
                seen = if before == seen { value } else { before };
                core.compute(work::BRANCH);
            }
        }
        let before = core.fetch_add(self.count, 1).await;
        core.compute(work::BRANCH);
        if before + 1 == u64::from(core.cores()) {
            signal(core, round.marker).await;
            if round.value.is_some() {
                // All cores have read the previous maximum, as they have arrived since.
                let value = core.load(maximum).await;
                core.store(result, value).await;
                core.store(maximum, 0).await;
            }
            core.store(self.count, 0).await;
            core.store(self.sense, round.sense).await;
        } else {
            core.spin_while(self.sense, 1 - round.sense).await;
        }
        if round.value.is_some() { core.load(result).await } else { 0 }
    }
}

/// A tree barrier of fan-in 4: cores arrive from the leaves to the root and are released from the
/// root to the leaves. Each core waits for words that one other core writes (Mellor-Crummey and
/// Scott, ACM TOCS 1991, with the same tree in both directions).
#[derive(Clone, Copy, Debug)]
pub struct TreeBarrier {
    /// A line per core, with a word for each child, and one for the child's value.
    arrived: Array,
    /// A line per core, with the release word and the maximum.
    released: Array,
}

impl TreeBarrier {
    /// Returns a barrier with two lines per core.
    pub fn new(memory: &mut Memory, cores: u32) -> TreeBarrier {
        let words = LINE_WORDS * cores as usize;
        TreeBarrier { arrived: memory.zeros(words), released: memory.zeros(words) }
    }

    async fn wait(&self, core: &Core, round: &Round) -> u64 {
        let (id, cores) = (core.id() as usize, core.cores() as usize);
        let children = (FAN * id + 1..FAN * id + 1 + FAN).take_while(|&child| child < cores);
        let mut largest = round.value;
        for (index, _) in children.clone().enumerate() {
            let word = LINE_WORDS * id + index;
            core.spin_while(self.arrived.at(word), 1 - round.sense).await;
            core.compute(work::ROUND);
            if let Some(value) = &mut largest {
                *value = core.load(self.arrived.at(word + FAN)).await.max(*value);
                core.compute(work::BRANCH);
            }
        }
        if id == 0 {
            signal(core, round.marker).await;
        } else {
            largest = self.notify_parent(core, round.sense, largest).await;
        }
        for child in children {
            let word = LINE_WORDS * child;
            if let Some(value) = largest {
                core.store(self.released.at(word + 1), value).await;
            }
            core.store(self.released.at(word), round.sense).await;
            core.compute(work::ROUND);
        }
        largest.unwrap_or_default()
    }

    /// Signals the parent, and waits for the release.
    async fn notify_parent(&self, core: &Core, sense: u64, largest: Option<u64>) -> Option<u64> {
        let id = core.id() as usize;
        let word = LINE_WORDS * ((id - 1) / FAN) + (id - 1) % FAN;
        if let Some(value) = largest {
            core.store(self.arrived.at(word + FAN), value).await;
        }
        core.store(self.arrived.at(word), sense).await;
        core.spin_while(self.released.at(LINE_WORDS * id), 1 - sense).await;
        match largest {
            Some(_) => Some(core.load(self.released.at(LINE_WORDS * id + 1)).await),
            None => None,
        }
    }
}

/// The arguments of one core in a round.
struct Round {
    sense: u64,
    marker: Option<Marker>,
    /// The core's value, if the round computes a maximum.
    value: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Central(CentralBarrier),
    Tree(TreeBarrier),
}

/// A barrier with the state of one core: the sense of its round.
pub struct Barrier {
    kind: Kind,
    sense: Cell<u64>,
}

impl Barrier {
    /// Waits until all cores have arrived.
    pub async fn wait(&self, core: &Core) {
        self.pass(core, None, None).await;
    }

    /// Waits for all cores, and starts the region of interest before any of them continues.
    pub async fn begin(&self, core: &Core) {
        self.pass(core, Some(Marker::Begin), None).await;
    }

    /// Waits for all cores, and ends the region of interest before any of them continues.
    pub async fn end(&self, core: &Core) {
        self.pass(core, Some(Marker::End), None).await;
    }

    /// Waits for all cores; returns the maximum of their nonnegative numbers.
    pub async fn largest(&self, core: &Core, number: f64) -> f64 {
        // Nonnegative numbers have the order of their bits.
        f64::from_bits(self.pass(core, None, Some(number.to_bits())).await)
    }

    async fn pass(&self, core: &Core, marker: Option<Marker>, value: Option<u64>) -> u64 {
        let sense = 1 - self.sense.get();
        self.sense.set(sense);
        core.compute(work::OPERATION);
        let round = Round { sense, marker, value };
        match self.kind {
            Kind::Central(barrier) => barrier.wait(core, &round).await,
            Kind::Tree(barrier) => barrier.wait(core, &round).await,
        }
    }
}

impl From<CentralBarrier> for Barrier {
    fn from(barrier: CentralBarrier) -> Barrier {
        Barrier { kind: Kind::Central(barrier), sense: Cell::new(0) }
    }
}

impl From<TreeBarrier> for Barrier {
    fn from(barrier: TreeBarrier) -> Barrier {
        Barrier { kind: Kind::Tree(barrier), sense: Cell::new(0) }
    }
}
