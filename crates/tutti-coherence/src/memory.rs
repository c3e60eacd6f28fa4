//! Memory: its words, and the time that homes take to read and write them.

use super::cache::Words;
use super::program::LINE_WORDS;
use super::settings::SystemSettings;

/// Memory at the homes.
pub(super) struct Memory {
    words: Vec<u64>,
    cycles: u64,
    interval: u64,
    /// For each home, the first cycle in which it can access the next line.
    free: Vec<u64>,
    /// Number of lines read and written.
    reads: u64,
    writes: u64,
}

impl Memory {
    /// Returns a memory of these words, padded to full lines.
    pub(super) fn new(settings: &SystemSettings, mut words: Vec<u64>) -> Memory {
        words.resize(words.len().next_multiple_of(LINE_WORDS), 0);
        let free = vec![0; settings.homes.len()];
        let (cycles, interval) = (settings.dram_cycles, settings.dram_interval);
        Memory { words, cycles, interval, free, reads: 0, writes: 0 }
    }

    /// Returns the number of lines.
    pub(super) fn lines(&self) -> u32 {
        u32::try_from(self.words.len() / LINE_WORDS).expect("`System::new` checks the size")
    }

    /// Returns the words of a line.
    pub(super) fn line(&self, line: u32) -> Words {
        let first = line as usize * LINE_WORDS;
        let mut words = Words::default();
        words.copy_from_slice(&self.words[first..first + LINE_WORDS]);
        words
    }

    /// Starts to read a line; returns the cycle in which the data are available.
    pub(super) fn read(&mut self, now: u64, line: u32) -> u64 {
        self.reads += 1;
        self.reserve(now, line) + self.cycles
    }

    /// Writes a line.
    pub(super) fn write(&mut self, now: u64, line: u32, words: &Words) {
        self.writes += 1;
        self.reserve(now, line);
        self.set(line, words);
    }

    /// Writes a line without timing.
    pub(super) fn set(&mut self, line: u32, words: &Words) {
        let first = line as usize * LINE_WORDS;
        self.words[first..first + LINE_WORDS].copy_from_slice(words);
    }

    /// Reserves the next access slot of a line's home; returns its cycle.
    fn reserve(&mut self, now: u64, line: u32) -> u64 {
        let home = line as usize % self.free.len();
        let start = now.max(self.free[home]);
        self.free[home] = start + self.interval;
        start
    }

    /// Returns the numbers of lines read and written.
    pub(super) fn traffic(&self) -> [u64; 2] {
        [self.reads, self.writes]
    }

    /// Returns the words, including the padding of the last line.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }
}
