//! Flits: cycle-accurate routers with virtual channels, credits and allocators.

pub mod allocator;
pub mod traffic;
