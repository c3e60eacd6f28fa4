//! Tests of schedules and their verification, in one binary: linking a binary per file takes minutes.

mod common;
mod execute;
mod phases;
mod verify_algorithms;
mod verify_interleavings;
mod verify_recursive_multiplying;
