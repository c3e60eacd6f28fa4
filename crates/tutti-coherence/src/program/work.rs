//! What work on registers costs, in instructions of a cycle each, so that no kernel has numbers of its own.
//!
//! A core is taken to finish an instruction per cycle, as the in-order cores of the published study; loads
//! and stores are counted by whoever runs the program. The stack of a recursion is taken to be registers.

/// To add, subtract, compare or multiply two numbers, whole or not.
pub(super) const OPERATION: u64 = 1;

/// To divide, or draw a square root: an instruction each.
pub(super) const DIVISION: u64 = 1;

/// To compare and branch.
pub(super) const BRANCH: u64 = 2;

/// To go round a loop: to increment, compare and branch.
pub(super) const ROUND: u64 = 3;

/// To compute the address of an element from its index: a shift and an addition.
pub(super) const INDEX: u64 = 2;

/// To compute an address from a row and a column: a multiplication more.
pub(super) const INDEX_2D: u64 = 4;

/// To push onto a stack and pop from it.
pub(super) const STACK: u64 = 2;

/// An exponential, logarithm, sine or cosine from a library: its argument reduced, a polynomial of degree
/// 10 or so, put together again.
pub(super) const TRANSCENDENTAL: u64 = 30;

/// A product of complex numbers: four multiplications, two additions.
pub(super) const COMPLEX_PRODUCT: u64 = 6 * OPERATION;

/// A sum of complex numbers.
pub(super) const COMPLEX_SUM: u64 = 2 * OPERATION;
