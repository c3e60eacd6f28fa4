//! Simulation speed of chips with coherent caches: `cargo bench -p tutti-coherence --bench
//! coherence [-- PART OF A NAME ...]`.
//!
//! Prints a line per run of a kernel on 64 cores, separated by tabs: kernel, protocol and design;
//! run; simulated cycles; simulated cycles per second; million instructions per second;
//! milliseconds; a digest of the results. `--once` runs each kernel once. `--digests` instead runs
//! the smallest kernels on 16 cores of every design and prints digests, to verify that a change of
//! the simulator does not change its results.
#![expect(clippy::print_stdout, reason = "its output is data")]
#![expect(clippy::disallowed_methods, reason = "measures the wall clock")]
#![expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tutti_coherence::program::Scale;
use tutti_coherence::program::kernel::REGISTRY;
use tutti_coherence::{Protocol, System, SystemRun, SystemSettings};
use tutti_noc::smart::{FanIn, Priority, Settings, design, designs};

const SIDE: u32 = 8;
const RUNS: u32 = 2;

/// Designs, with their fan-in and priority.
const DESIGNS: &[(&str, FanIn, Priority)] = &[
    ("baseline_collective", FanIn::Greedy, Priority::Local),
    ("sfo_greedy", FanIn::Complete, Priority::Local),
    ("sfo_greedy_pvt", FanIn::Complete, Priority::Local),
    ("fully_connected", FanIn::Unicasts, Priority::Local),
];

fn main() {
    let filters: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if std::env::args().any(|arg| arg == "--digests") {
        return digests(&filters);
    }
    let runs = if std::env::args().any(|arg| arg == "--once") { 1 } else { RUNS };
    for kernel in REGISTRY {
        for protocol in [Protocol::Ht, Protocol::Tc] {
            for (name, fan_in, priority) in DESIGNS.iter().cloned() {
                let name = format!("{}, {} on {name}", kernel.name(), protocol.name());
                if !filters.iter().all(|part| name.contains(part)) {
                    continue;
                }
                for run in 1..=runs {
                    let (seconds, outcome) =
                        timed(*kernel, protocol, &name, fan_in, priority.clone());
                    let rate = outcome.total_cycles as f64 / seconds;
                    let instructions = outcome.instructions as f64 / seconds / 1e6;
                    let (cycles, milliseconds) = (outcome.total_cycles, 1e3 * seconds);
                    let digest = digest(&outcome);
                    println!(
                        "{name}\t{run}\t{cycles}\t\
                         {rate:.0}\t{instructions:.2}\t{milliseconds:.0}\t{digest:016x}"
                    );
                }
            }
        }
    }
}

/// Returns a digest of all results of a run (FNV-1a of its text).
fn digest(run: &SystemRun) -> u64 {
    format!("{run:?}").bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Prints the digests of the smallest kernels for every design, fan-in and priority.
fn digests(filters: &[String]) {
    let fan_ins = [FanIn::Unicasts, FanIn::Greedy, FanIn::Complete];
    let variants = fan_ins
        .iter()
        .flat_map(|&fan_in| [Priority::Local, Priority::Bypass].map(|priority| (fan_in, priority)));
    for kernel in REGISTRY {
        let cores = if kernel.name() == "lu_like" { 9 } else { 16 };
        for (protocol, design) in [Protocol::Ht, Protocol::Tc]
            .into_iter()
            .flat_map(|protocol| designs().iter().map(move |design| (protocol, design)))
        {
            let name = format!("{}, {} on {}", kernel.name(), protocol.name(), design.name);
            if !filters.iter().all(|part| name.contains(part)) {
                continue;
            }
            let digests = variants.clone().map(|(fan_in, priority)| {
                let chip = SystemSettings::new(4, 4, protocol);
                let mesh = Settings { fan_in, priority, ..design.settings(4, 4) };
                let fabric = design.build(&chip.fit(mesh)).expect("a valid design");
                let program = kernel.program(cores, Scale::Tiny, 1).expect("work for the cores");
                let system = System::new(&chip, program, fabric).expect("a matching fabric");
                digest(&system.run(&AtomicBool::new(false)).expect("a program that ends"))
            });
            let digests: Vec<String> = digests.map(|digest| format!("{digest:016x}")).collect();
            println!("{name}\t{}", digests.join("\t"));
        }
    }
}

/// Returns the seconds that a kernel takes, and its results.
fn timed(
    kernel: &dyn tutti_coherence::program::Kernel,
    protocol: Protocol,
    name: &str,
    fan_in: FanIn,
    priority: Priority,
) -> (f64, SystemRun) {
    let system = SystemSettings::new(SIDE, SIDE, protocol);
    let design = design(name.rsplit(' ').next().expect("names end with a design")).expect("known");
    let mesh = Settings { fan_in, priority, ..design.settings(SIDE, SIDE) };
    let fabric = design.build(&system.fit(mesh)).expect("a valid design");
    let program = kernel.program(SIDE * SIDE, Scale::Small, 1).expect("work for the cores");
    let system = System::new(&system, program, fabric).expect("a matching fabric");
    let start = Instant::now();
    let run = system.run(&AtomicBool::new(false)).expect("a program that ends");
    (start.elapsed().as_secs_f64(), run)
}
