//! Sets of tokens that move together.

use crate::cache::{CachedLine, State, Words};

/// Tokens of a line, with or without its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Bundle {
    pub(super) tokens: u32,
    /// Whether the owner token is among them. The data then accompany it, unless memory has the
    /// same.
    pub(super) owner: bool,
    /// Whether the owner's copy differs from memory.
    pub(super) dirty: bool,
    pub(super) words: Option<Words>,
}

impl Bundle {
    /// Returns tokens and data of a cached line.
    pub(super) fn of(held: &CachedLine) -> Bundle {
        let owner = held.state.owns();
        let dirty = owner && held.dirty;
        Bundle { tokens: held.tokens, owner, dirty, words: Some(held.words) }
    }

    /// Returns the bundle to send: only an owner sends the data.
    pub(super) fn to_send(self) -> Bundle {
        Bundle { words: self.words.filter(|_| self.owner), ..self }
    }

    /// Adds another bundle.
    pub(super) fn merge(&mut self, other: &Bundle) {
        self.tokens += other.tokens;
        self.owner |= other.owner;
        self.dirty |= other.dirty;
        self.words = self.words.or(other.words);
    }

    /// Returns the bundle as a cached line with these words.
    pub(super) fn held(&self, line: u32, all: u32, words: Words) -> CachedLine {
        let state = state(self.tokens == all, self.owner, self.dirty);
        CachedLine { line, state, dirty: self.dirty, tokens: self.tokens, words }
    }

    /// Removes the owner token with the data; other tokens remain.
    pub(super) fn split_owner(&mut self) -> Bundle {
        if self.tokens == 1 {
            return std::mem::take(self);
        }
        self.tokens -= 1;
        let dirty = self.dirty;
        (self.owner, self.dirty) = (false, false);
        Bundle { tokens: 1, owner: true, dirty, words: self.words }
    }
}

fn state(all: bool, owner: bool, dirty: bool) -> State {
    match (all, owner, dirty) {
        (true, _, true) => State::Modified,
        (true, _, false) => State::Exclusive,
        (false, true, _) => State::Owned,
        (false, false, _) => State::Shared,
    }
}
