//! Tokens that are moved together.

use crate::cache::{Held, State, Words};

/// Tokens of a line, with the line or without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Bundle {
    pub(super) tokens: u32,
    /// Whether the owner's is among them; then the line is with them, unless memory has the same.
    pub(super) owner: bool,
    /// Whether memory does not have what the owner has.
    pub(super) dirty: bool,
    pub(super) words: Option<Words>,
}

impl Bundle {
    /// All that a cache has of a line.
    pub(super) fn of(held: &Held) -> Bundle {
        let owner = held.state.owns();
        let dirty = owner && held.dirty;
        Bundle { tokens: held.tokens, owner, dirty, words: Some(held.words) }
    }

    /// The same without the line, where only an owner is to send it.
    pub(super) fn to_send(self) -> Bundle {
        Bundle { words: self.words.filter(|_| self.owner), ..self }
    }

    /// Puts others to them.
    pub(super) fn merge(&mut self, other: &Bundle) {
        self.tokens += other.tokens;
        self.owner |= other.owner;
        self.dirty |= other.dirty;
        self.words = self.words.or(other.words);
    }

    /// As a line in a cache; the words have come.
    pub(super) fn held(&self, line: u32, all: u32, words: Words) -> Held {
        let state = state(self.tokens == all, self.owner, self.dirty);
        Held { line, state, dirty: self.dirty, tokens: self.tokens, words }
    }

    /// Takes the owner's token out, with the line; the others stay, if there are others.
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
