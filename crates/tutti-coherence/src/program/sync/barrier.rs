//! Barriers. The sense of a round is its number modulo 2, and words say of which sense the last round was
//! that they have seen, so nothing is reset between rounds.

use std::cell::Cell;

use super::super::work;
use super::super::{Array, Core, LINE_WORDS, Memory};

/// Children of a node of the tree.
const FAN: usize = 4;

/// What the core that knows that all have come tells before it lets them go on.
#[derive(Clone, Copy)]
enum Mark {
    Begin,
    End,
}

async fn tell(core: &Core, mark: Option<Mark>) {
    match mark {
        Some(Mark::Begin) => core.begin().await,
        Some(Mark::End) => core.end().await,
        None => {}
    }
}

/// A counter that all add to, and a word that all wait for (sense reversing).
#[derive(Clone, Copy, Debug)]
pub struct CentralBarrier {
    count: u64,
    sense: u64,
    /// The largest value so far, and that of the last round that asked for it.
    largest: [u64; 2],
}

impl CentralBarrier {
    /// On four lines of its own.
    pub fn new(memory: &mut Memory) -> CentralBarrier {
        let mut word = || memory.word(0);
        CentralBarrier { count: word(), sense: word(), largest: [word(), word()] }
    }

    async fn wait(&self, core: &Core, round: &Round) -> u64 {
        let [so_far, told] = self.largest;
        if let Some(value) = round.value {
            let mut seen = core.load(so_far).await;
            while seen < value {
                let before = core.compare_swap(so_far, seen, value).await;
                seen = if before == seen { value } else { before };
                core.compute(work::BRANCH);
            }
        }
        let before = core.fetch_add(self.count, 1).await;
        core.compute(work::BRANCH);
        if before + 1 == u64::from(core.cores()) {
            tell(core, round.mark).await;
            if round.value.is_some() {
                // All have read what was told before, as they have come here since.
                let value = core.load(so_far).await;
                core.store(told, value).await;
                core.store(so_far, 0).await;
            }
            core.store(self.count, 0).await;
            core.store(self.sense, round.sense).await;
        } else {
            core.spin_while(self.sense, 1 - round.sense).await;
        }
        if round.value.is_some() { core.load(told).await } else { 0 }
    }
}

/// Cores arrive up a tree of fan-in 4 and are let go down it: each waits for words that one other writes
/// (Mellor-Crummey and Scott, ACM TOCS 1991, with the same tree both ways).
#[derive(Clone, Copy, Debug)]
pub struct TreeBarrier {
    /// A line per core, with a word for each child, and one for the child's value.
    arrived: Array,
    /// A line per core, with a word for the value of all.
    released: Array,
}

impl TreeBarrier {
    /// On two lines for each of so many cores.
    pub fn new(memory: &mut Memory, cores: u32) -> TreeBarrier {
        let words = LINE_WORDS * cores as usize;
        TreeBarrier { arrived: memory.zeros(words), released: memory.zeros(words) }
    }

    async fn wait(&self, core: &Core, round: &Round) -> u64 {
        let (id, cores) = (core.id() as usize, core.cores() as usize);
        let children = (FAN * id + 1..FAN * id + 1 + FAN).take_while(|&child| child < cores);
        let mut largest = round.value;
        for (place, _) in children.clone().enumerate() {
            let word = LINE_WORDS * id + place;
            core.spin_while(self.arrived.at(word), 1 - round.sense).await;
            core.compute(work::ROUND);
            if let Some(value) = &mut largest {
                *value = core.load(self.arrived.at(word + FAN)).await.max(*value);
                core.compute(work::BRANCH);
            }
        }
        if id == 0 {
            tell(core, round.mark).await;
        } else {
            largest = self.rise(core, round.sense, largest).await;
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

    /// Tells the parent, and waits to be let go.
    async fn rise(&self, core: &Core, sense: u64, largest: Option<u64>) -> Option<u64> {
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

/// A round, as one core comes to it.
struct Round {
    sense: u64,
    mark: Option<Mark>,
    /// What the largest of all is asked of.
    value: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Central(CentralBarrier),
    Tree(TreeBarrier),
}

/// A barrier as one core sees it: it remembers in which round it is.
pub struct Barrier {
    kind: Kind,
    sense: Cell<u64>,
}

impl Barrier {
    /// Waits until all cores have come so far.
    pub async fn wait(&self, core: &Core) {
        self.pass(core, None, None).await;
    }

    /// Waits for all, and begins the region of interest before any of them goes on.
    pub async fn begin(&self, core: &Core) {
        self.pass(core, Some(Mark::Begin), None).await;
    }

    /// Waits for all, and ends the region of interest before any of them goes on.
    pub async fn end(&self, core: &Core) {
        self.pass(core, Some(Mark::End), None).await;
    }

    /// Waits for all; the largest number of all cores. None is negative.
    pub async fn largest(&self, core: &Core, number: f64) -> f64 {
        // Those that are not negative are in the order of their bits.
        f64::from_bits(self.pass(core, None, Some(number.to_bits())).await)
    }

    async fn pass(&self, core: &Core, mark: Option<Mark>, value: Option<u64>) -> u64 {
        let sense = 1 - self.sense.get();
        self.sense.set(sense);
        core.compute(work::OPERATION);
        let round = Round { sense, mark, value };
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
