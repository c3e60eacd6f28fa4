//! Tests of flit networks and SMART meshes, in one binary: linking a binary per file takes minutes.

mod common;
mod flit_booksim;
mod flit_clocks;
mod flit_deadlock;
mod flit_fast_slow;
mod flit_measure;
mod flit_verdict;
mod smart_cases;
mod smart_fast_slow;
mod smart_flit;
mod smart_latency;
mod smart_loads;
mod smart_turns;
