//! Tests of kernels on chips. Each kernel computes the result of its serial program on every
//! network, whatever the order of accesses. Kernels without shared data hardly depend on the
//! network.

use std::sync::atomic::AtomicBool;

use tutti_coherence::program::Scale;
use tutti_coherence::program::kernel::{REGISTRY, named};
use tutti_coherence::{Protocol, System, SystemRun, SystemSettings};
use tutti_noc::smart::design;

/// Runs a kernel on 4 x 4 cores.
fn run(kernel: &str, protocol: Protocol, network: &str, scale: Scale, seed: u64) -> SystemRun {
    let chip = SystemSettings::new(4, 4, protocol);
    let design = design(network).unwrap();
    let settings = chip.fit(design.settings(4, 4));
    let cores = if kernel == "lu_like" && scale == Scale::Tiny { 9 } else { 16 };
    let program = named(kernel).unwrap().program(cores, scale, seed).unwrap();
    let system = System::new(&chip, program, design.build(&settings).unwrap()).unwrap();
    system
        .run(&AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("{kernel}, {protocol:?}, {network}, seed {seed}: {error}"))
}

#[test]
fn every_kernel_computes_the_same_over_every_network() {
    for protocol in [Protocol::Ht, Protocol::Tc] {
        let (mut mesh, mut links) = (0, 0);
        for kernel in REGISTRY {
            let networks = ["baseline_collective", "sfo_complete", "fully_connected"];
            let runs = networks.map(|name| run(kernel.name(), protocol, name, Scale::Tiny, 1));
            assert!(runs.iter().all(|run| run.checked && run.cycles > 0));
            let [baseline, .., connected] = &runs;
            // The order of lock acquisitions can cost more than the network saves, but not much.
            assert!(100 * connected.cycles < 106 * baseline.cycles, "{}", kernel.name());
            (mesh, links) = (mesh + baseline.cycles, links + connected.cycles);
        }
        assert!(10 * links < 9 * mesh, "{protocol:?}: {links} of {mesh}");
    }
}

#[test]
fn kernels_without_shared_data_hardly_depend_on_the_network() {
    for kernel in ["blackscholes_like", "swaptions_like"] {
        for protocol in [Protocol::Ht, Protocol::Tc] {
            let networks =
                ["baseline", "baseline_collective", "smart_1d", "sfo_complete", "fully_connected"];
            let cycles = networks.map(|name| run(kernel, protocol, name, Scale::Small, 1).cycles);
            let (least, most) = (cycles.iter().min().unwrap(), cycles.iter().max().unwrap());
            assert!((most - least) * 50 < *least, "{kernel}, {protocol:?}: {cycles:?}");
        }
    }
}

#[test]
fn contended_kernels_depend_on_the_network() {
    for protocol in [Protocol::Ht, Protocol::Tc] {
        let [slow, fast] = ["baseline_collective", "fully_connected"]
            .map(|name| run("water_like", protocol, name, Scale::Tiny, 1));
        assert!(
            20 * slow.cycles > 21 * fast.cycles,
            "{protocol:?}: {} {}",
            slow.cycles,
            fast.cycles
        );
        let all = slow.all_misses();
        assert!(all.from_caches > 4 * all.from_memory, "{protocol:?}: {all:?}");
    }
}
