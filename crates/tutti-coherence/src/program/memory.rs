//! Where data lies in the memory of a program.

/// Bytes of a word.
pub const WORD_BYTES: u64 = 8;

/// Words of a line.
pub const LINE_WORDS: usize = 8;

/// Words that lie one after the other, from the beginning of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array {
    first: usize,
    length: usize,
}

impl Array {
    /// The address of word `index`.
    ///
    /// # Panics
    /// When it has no such word.
    #[inline]
    #[must_use]
    pub fn at(&self, index: usize) -> u64 {
        assert!(index < self.length, "word {index} of {}", self.length);
        (self.first + index) as u64 * WORD_BYTES
    }

    /// How many words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Its words in a memory.
    #[must_use]
    pub fn of<'a>(&self, memory: &'a [u64]) -> &'a [u64] {
        &memory[self.first..self.first + self.length]
    }

    /// Its words in a memory, as numbers.
    #[must_use]
    pub fn numbers(&self, memory: &[u64]) -> Vec<f64> {
        self.of(memory).iter().map(|&word| f64::from_bits(word)).collect()
    }
}

/// The words that a program begins with, being laid out.
#[derive(Default)]
pub struct Memory {
    words: Vec<u64>,
}

impl Memory {
    /// An empty one.
    #[must_use]
    pub fn new() -> Memory {
        Memory::default()
    }

    /// An array of so many zeros, on lines of its own.
    pub fn zeros(&mut self, length: usize) -> Array {
        self.array(&vec![0; length])
    }

    /// An array of these words, on lines of its own.
    pub fn array(&mut self, words: &[u64]) -> Array {
        let first = self.words.len();
        self.words.extend_from_slice(words);
        self.words.resize(self.words.len().next_multiple_of(LINE_WORDS), 0);
        Array { first, length: words.len() }
    }

    /// An array of these numbers, on lines of its own.
    pub fn numbers(&mut self, numbers: &[f64]) -> Array {
        let words: Vec<u64> = numbers.iter().map(|number| number.to_bits()).collect();
        self.array(&words)
    }

    /// A word on a line of its own; its address.
    pub fn word(&mut self, value: u64) -> u64 {
        self.array(&[value]).at(0)
    }

    /// The words laid out.
    #[must_use]
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }
}
