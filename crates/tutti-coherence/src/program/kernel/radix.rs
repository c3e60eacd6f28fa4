//! `radix_like`: radix sort.

use super::super::random::Random;
use super::super::sync::TreeBarrier;
use super::super::work;
use super::super::{Array, Core, Kernel, LINE_WORDS, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, own, same_words, threads};

/// Values of a digit.
const RADIX: usize = 16;

/// Digits of a key.
const DIGITS: usize = 4;

/// A radix sort of 16-bit keys, 4 bits at a time, between two arrays.
///
/// A core counts the digits of its part of the keys. The counts are summed over the cores before it
/// in log2(cores) rounds, in each of which it reads the counts of one other core. It then stores
/// its keys at their destinations one by one, in lines that other cores write at the same time.
/// Expected: bursts of stores to lines in other caches.
pub(super) struct RadixLike;

fn keys(scale: Scale) -> usize {
    match scale {
        Scale::Tiny => 512,
        Scale::Small => 32_768,
        Scale::Large => 131_072,
    }
}

#[derive(Clone, Copy)]
struct RadixData {
    keys: usize,
    barrier: TreeBarrier,
    /// Source and destination of the keys, swapped after each digit.
    arrays: [Array; 2],
    /// Each core's counts of its keys.
    counts: Array,
    /// Prefix sums of the counts over cores, for alternating rounds.
    sums: [Array; 2],
    /// Destination of each core's next key with a digit.
    places: Array,
}

impl Kernel for RadixLike {
    fn name(&self) -> &'static str {
        "radix_like"
    }

    fn summary(&self) -> &'static str {
        "radix sort: bursts of stores to lines that other cores write"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let keys = keys(scale);
        divisible(self.name(), scale, cores, keys / LINE_WORDS, "one per line of keys")?;
        let mut random = Random::new(seed, 0);
        // The upper bits are the original index: equal keys keep their order.
        let key = |index: usize| (index as u64) << 16 | random.bits() >> 48;
        let input: Vec<u64> = (0..keys).map(key).collect();
        let mut memory = Memory::new();
        let each = RADIX * cores as usize;
        let layout = RadixData {
            keys,
            barrier: TreeBarrier::new(&mut memory, cores),
            arrays: [memory.array(&input), memory.zeros(keys)],
            counts: memory.zeros(each),
            sums: [memory.zeros(each), memory.zeros(each)],
            places: memory.zeros(each),
        };
        let mut expected = input;
        expected.sort_by_key(|key| key & 0xFFFF);
        Ok(Program {
            threads: threads(cores, |core| run(core, layout)),
            memory: memory.into_words(),
            check: Box::new(move |words| same_words("key", layout.arrays[0].of(words), &expected)),
        })
    }
}

async fn run(core: Core, layout: RadixData) {
    let barrier = Barrier::from(layout.barrier);
    let keys = core.share(layout.keys);
    let mine = core.id() as usize * RADIX;
    for array in &layout.arrays {
        own(&core, array, keys.clone()).await;
    }
    for array in layout.sums.iter().chain([&layout.counts, &layout.places]) {
        own(&core, array, mine..mine + RADIX).await;
    }
    barrier.begin(&core).await;
    for digit in 0..DIGITS {
        let [from, to] = [layout.arrays[digit % 2], layout.arrays[1 - digit % 2]];
        count(&core, &layout, &from, digit).await;
        let sums = prefix_sums(&core, &layout, &barrier).await;
        place(&core, &layout, &sums).await;
        for key in keys.clone() {
            let key = core.load(from.at(key)).await;
            let slot = layout.places.at(mine + value(key, digit));
            let place = core.load(slot).await;
            core.store(slot, place + 1).await;
            core.store(to.at(index(place)), key).await;
            core.compute(3 * work::INDEX + 3 * work::OPERATION + work::ROUND);
        }
        barrier.wait(&core).await;
    }
    barrier.end(&core).await;
}

/// Returns a digit of a key.
fn value(key: u64, digit: usize) -> usize {
    index(key >> (4 * digit) & 15)
}

#[expect(clippy::cast_possible_truncation, reason = "indices of an array that is in memory")]
fn index(word: u64) -> usize {
    word as usize
}

/// Counts the digits of the core's keys.
async fn count(core: &Core, layout: &RadixData, from: &Array, digit: usize) {
    let mine = core.id() as usize * RADIX;
    for digit in 0..RADIX {
        core.store(layout.counts.at(mine + digit), 0).await;
        core.compute(work::ROUND);
    }
    for key in core.share(layout.keys) {
        let key = core.load(from.at(key)).await;
        let counter = layout.counts.at(mine + value(key, digit));
        let before = core.load(counter).await;
        core.store(counter, before + 1).await;
        core.compute(2 * work::INDEX + 3 * work::OPERATION + work::ROUND);
    }
}

/// Computes the prefix sums of the counts over cores (Hillis and Steele, CACM 1986); returns their
/// array.
async fn prefix_sums(core: &Core, layout: &RadixData, barrier: &Barrier) -> Array {
    let mine = core.id() as usize * RADIX;
    for digit in 0..RADIX {
        let count = core.load(layout.counts.at(mine + digit)).await;
        core.store(layout.sums[0].at(mine + digit), count).await;
        core.compute(work::ROUND);
    }
    barrier.wait(core).await;
    let (mut distance, mut round) = (1, 0);
    while distance < core.cores() as usize {
        let [from, to] = [layout.sums[round % 2], layout.sums[1 - round % 2]];
        let other = mine.checked_sub(distance * RADIX);
        core.compute(work::ROUND + work::BRANCH);
        for digit in 0..RADIX {
            let mut sum = core.load(from.at(mine + digit)).await;
            if let Some(other) = other {
                sum += core.load(from.at(other + digit)).await;
            }
            core.store(to.at(mine + digit), sum).await;
            core.compute(work::OPERATION + work::ROUND);
        }
        barrier.wait(core).await;
        (distance, round) = (2 * distance, round + 1);
    }
    layout.sums[round % 2]
}

/// Computes the destination of the core's first key of each digit: after all smaller digits, and
/// after the same digit of the cores before it.
async fn place(core: &Core, layout: &RadixData, sums: &Array) {
    let mine = core.id() as usize * RADIX;
    let last = (core.cores() as usize - 1) * RADIX;
    let mut smaller = 0;
    for digit in 0..RADIX {
        let inclusive = core.load(sums.at(mine + digit)).await;
        let own = core.load(layout.counts.at(mine + digit)).await;
        core.store(layout.places.at(mine + digit), smaller + inclusive - own).await;
        smaller += core.load(sums.at(last + digit)).await;
        core.compute(3 * work::OPERATION + work::ROUND);
    }
}
