//! Tests of energy models, in one binary: linking a binary per file takes minutes.

mod energy_dsent;
mod energy_registry;
mod smart_energy;
