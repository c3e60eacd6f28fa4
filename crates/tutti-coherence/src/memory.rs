//! Memory: the words, and how long the homes take to read and write them.

use super::cache::Words;
use super::program::LINE_WORDS;
use super::settings::SystemSettings;

/// Memory at the homes.
pub(super) struct Memory {
    words: Vec<u64>,
    cycles: u64,
    interval: u64,
    /// For each home, the cycle in which it can begin to read or write the next line.
    free: Vec<u64>,
    /// Lines read and written.
    reads: u64,
    writes: u64,
}

impl Memory {
    /// Of these words, and as many more as fill the last line.
    pub(super) fn new(settings: &SystemSettings, mut words: Vec<u64>) -> Memory {
        words.resize(words.len().next_multiple_of(LINE_WORDS), 0);
        let free = vec![0; settings.homes.len()];
        let (cycles, interval) = (settings.dram_cycles, settings.dram_interval);
        Memory { words, cycles, interval, free, reads: 0, writes: 0 }
    }

    /// How many lines.
    pub(super) fn lines(&self) -> u32 {
        u32::try_from(self.words.len() / LINE_WORDS).expect("the system has looked at it")
    }

    /// The words of a line.
    pub(super) fn line(&self, line: u32) -> Words {
        let first = line as usize * LINE_WORDS;
        let mut words = Words::default();
        words.copy_from_slice(&self.words[first..first + LINE_WORDS]);
        words
    }

    /// Begins to read a line; in which cycle it is there.
    pub(super) fn read(&mut self, now: u64, line: u32) -> u64 {
        self.reads += 1;
        self.turn(now, line) + self.cycles
    }

    /// Writes a line.
    pub(super) fn write(&mut self, now: u64, line: u32, words: &Words) {
        self.writes += 1;
        self.turn(now, line);
        self.set(line, words);
    }

    /// Changes a line in no time.
    pub(super) fn set(&mut self, line: u32, words: &Words) {
        let first = line as usize * LINE_WORDS;
        self.words[first..first + LINE_WORDS].copy_from_slice(words);
    }

    /// The cycle in which a line's home begins to read or write it.
    fn turn(&mut self, now: u64, line: u32) -> u64 {
        let home = line as usize % self.free.len();
        let start = now.max(self.free[home]);
        self.free[home] = start + self.interval;
        start
    }

    /// Lines read and written so far.
    pub(super) fn traffic(&self) -> [u64; 2] {
        [self.reads, self.writes]
    }

    /// The words, those of the last line that the program does not have included.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }
}
