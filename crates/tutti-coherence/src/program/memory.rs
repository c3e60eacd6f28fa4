//! Layout of a program's data in memory.

/// Bytes of a word.
pub const WORD_BYTES: u64 = 8;

/// Words of a line.
pub const LINE_WORDS: usize = 8;

/// Consecutive words that start at a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array {
    first: usize,
    length: usize,
}

impl Array {
    /// Returns the address of word `index`.
    ///
    /// # Panics
    /// When the index is out of range.
    #[inline]
    #[must_use]
    pub fn at(&self, index: usize) -> u64 {
        assert!(index < self.length, "word {index} of {}", self.length);
        (self.first + index) as u64 * WORD_BYTES
    }

    /// Returns the number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the array is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns its words in a memory.
    #[must_use]
    pub fn of<'a>(&self, memory: &'a [u64]) -> &'a [u64] {
        &memory[self.first..self.first + self.length]
    }

    /// Returns its words in a memory as floating-point numbers.
    #[must_use]
    pub fn numbers(&self, memory: &[u64]) -> Vec<f64> {
        self.of(memory).iter().map(|&word| f64::from_bits(word)).collect()
    }
}

/// The initial memory of a program under construction.
#[derive(Default)]
pub struct Memory {
    words: Vec<u64>,
}

impl Memory {
    /// Returns an empty memory.
    #[must_use]
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Appends an array of zeros, aligned to lines.
    pub fn zeros(&mut self, length: usize) -> Array {
        self.array(&vec![0; length])
    }

    /// Appends an array of words, aligned to lines.
    pub fn array(&mut self, words: &[u64]) -> Array {
        let first = self.words.len();
        self.words.extend_from_slice(words);
        self.words.resize(self.words.len().next_multiple_of(LINE_WORDS), 0);
        Array { first, length: words.len() }
    }

    /// Appends an array of floating-point numbers, aligned to lines.
    pub fn numbers(&mut self, numbers: &[f64]) -> Array {
        let words: Vec<u64> = numbers.iter().map(|number| number.to_bits()).collect();
        self.array(&words)
    }

    /// Appends a word on a separate line; returns its address.
    pub fn word(&mut self, value: u64) -> u64 {
        self.array(&[value]).at(0)
    }

    /// Returns the words.
    #[must_use]
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }
}
