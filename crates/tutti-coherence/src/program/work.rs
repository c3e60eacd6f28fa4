//! Costs of work on registers in instructions of a cycle each, shared by all kernels.
//!
//! A core completes one instruction per cycle, like the in-order cores of the published study. The
//! caller of a program counts loads and stores. The stack of a recursion is in registers.

/// Addition, subtraction, comparison or multiplication of two integers or floating-point numbers.
pub(super) const OPERATION: u64 = 1;

/// Division or square root, one instruction each.
pub(super) const DIVISION: u64 = 1;

/// Comparison and branch.
pub(super) const BRANCH: u64 = 2;

/// Loop iteration: increment, comparison and branch.
pub(super) const ROUND: u64 = 3;

/// Address of an element from its index: a shift and an addition.
pub(super) const INDEX: u64 = 2;

/// Address from row and column: one more multiplication and addition.
pub(super) const INDEX_2D: u64 = 4;

/// Push onto a stack and pop from it.
pub(super) const STACK: u64 = 2;

/// Exponential, logarithm, sine or cosine of a library: range reduction, a polynomial of degree 10
/// or so, and reconstruction.
pub(super) const TRANSCENDENTAL: u64 = 30;

/// Product of complex numbers: four multiplications, two additions.
pub(super) const COMPLEX_PRODUCT: u64 = 6 * OPERATION;

/// Sum of complex numbers.
pub(super) const COMPLEX_SUM: u64 = 2 * OPERATION;
