//! Small programs with known results on small chips, and protocols with injected defects.

mod defects;
mod meshes;
mod programs;
mod timing;

use std::sync::atomic::AtomicBool;

use super::program::{Core, Program, Thread};
use super::{CoherenceError, Collector, Protocol, SharedHint, System, SystemRun, SystemSettings};
use tutti_noc::smart::{Fabric, FullyConnected, Settings};

/// Returns a mesh with the message classes of a chip.
fn mesh(columns: u32, rows: u32, system: &SystemSettings) -> Settings {
    system.fit(Settings::new(columns, rows))
}

fn connected(columns: u32, rows: u32, system: &SystemSettings) -> Box<dyn Fabric> {
    Box::new(FullyConnected::new(&mesh(columns, rows, system), false).unwrap())
}

/// Returns a chip for each protocol and option.
fn chips(columns: u32, rows: u32) -> Vec<SystemSettings> {
    let ht = SystemSettings::new(columns, rows, Protocol::Ht);
    let home = SystemSettings { collector: Collector::Home, ..ht.clone() };
    let never = SystemSettings { shared_hint: SharedHint::Never, ..ht.clone() };
    let both = SystemSettings { shared_hint: SharedHint::Never, ..home.clone() };
    vec![ht, home, never, both, SystemSettings::new(columns, rows, Protocol::Tc)]
}

/// Returns the settings with caches of one and two sets.
fn tiny(mut settings: SystemSettings) -> SystemSettings {
    (settings.l1_bytes, settings.l1_ways) = (128, 2);
    (settings.l2_bytes, settings.l2_ways) = (256, 2);
    settings
}

/// Returns a program whose threads execute the same body, on zeroed memory.
fn program<F>(cores: u32, words: usize, body: impl Fn(Core) -> F) -> Program
where
    F: Future<Output = ()> + 'static,
{
    let threads = (0..cores).map(|id| Thread::new(id, cores, &body)).collect();
    Program { threads, memory: vec![0; words], check: Box::new(|_| Ok(())) }
}

fn run_on(
    settings: &SystemSettings,
    program: Program,
    fabric: Box<dyn Fabric>,
) -> Result<SystemRun, CoherenceError> {
    System::new(settings, program, fabric)?.run(&AtomicBool::new(false))
}

/// Runs a program on a fully connected chip of 2 x 2 cores.
fn run(settings: &SystemSettings, program: Program) -> Result<SystemRun, CoherenceError> {
    run_on(settings, program, connected(2, 2, settings))
}

/// A linear congruential generator.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
