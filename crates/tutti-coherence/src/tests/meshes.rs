//! Programs on meshes of all designs.

use super::programs::stress;
use super::*;
use tutti_noc::smart::{FanIn, FanOut, Mesh, Priority, Tree, design, designs};

/// Returns a fabric of a design with the message classes of a chip.
fn built(name: &str, side: u32, system: &SystemSettings) -> Box<dyn Fabric> {
    let design = design(name).unwrap();
    design.build(&system.fit(design.settings(side, side))).unwrap()
}

#[test]
fn random_accesses_on_every_design_are_coherent() {
    for seed in 0..2 {
        for design in designs() {
            for settings in chips(4, 4).into_iter().map(tiny) {
                let fabric = built(design.name, 4, &settings);
                let result = run_on(&settings, stress(16, seed, 24, 40), fabric);
                assert!(result.is_ok(), "{} seed {seed}: {result:?} {settings:?}", design.name);
            }
        }
    }
}

#[test]
fn random_accesses_on_meshes_of_mixed_settings_are_coherent() {
    let outs = [
        FanOut::Greedy(Tree::Shared),
        FanOut::Greedy(Tree::Private),
        FanOut::Complete { interval: 5 },
        FanOut::Unicasts,
    ];
    let ins = [FanIn::Greedy, FanIn::Complete, FanIn::Unicasts];
    for (at, settings) in chips(4, 4).into_iter().map(tiny).enumerate() {
        for (fan_out, fan_in) in
            outs.iter().flat_map(|out| ins.iter().map(move |fan_in| (*out, *fan_in)))
        {
            let priority = if at % 2 == 0 { Priority::Bypass } else { Priority::Local };
            let mesh = Settings {
                hops_per_cycle: 3,
                fan_out,
                fan_in,
                priority,
                art_entries: 16,
                ..Settings::new(4, 4)
            };
            let fabric = Box::new(Mesh::new(&settings.fit(mesh)).unwrap());
            let result = run_on(&settings, stress(16, 3, 24, 30), fabric);
            assert!(result.is_ok(), "{fan_out:?} {fan_in:?}: {result:?} {settings:?}");
        }
    }
}

/// Returns a program in which cores access private lines and then each other's, between barriers,
/// so that the result does not depend on the order of cores.
fn phases(cores: u32) -> Program {
    program(cores, 8 * 8 * 64, |core| async move {
        let (cores, id) = (u64::from(core.cores()), u64::from(core.id()));
        for round in 0..4_u64 {
            for line in 0..6 {
                let address = 64 * (1 + 6 * ((id + round) % cores) + line);
                core.load(address).await;
                core.compute(10);
                core.store(address, round).await;
            }
            if core.fetch_add(0, 1).await + 1 == cores * (round + 1) {
                core.store(8, round + 1).await;
            } else {
                core.spin_while(8, round).await;
            }
        }
    })
}

#[test]
fn fully_connected_is_never_slower() {
    for settings in chips(4, 4) {
        let time = |name| {
            let fabric = built(name, 4, &settings);
            run_on(&settings, phases(16), fabric).unwrap().cycles
        };
        let least = time("fully_connected");
        for design in designs() {
            let cycles = time(design.name);
            assert!(cycles >= least, "{}: {cycles} < {least} {settings:?}", design.name);
        }
    }
}

/// Returns the mean zero-load latency of an upgrade, over all requesters and homes of an 8 x 8
/// mesh.
fn upgrades(name: &str, fan_in: FanIn) -> f64 {
    let settings = SystemSettings::new(8, 8, Protocol::Ht);
    let design = design(name).unwrap();
    let mesh = settings.fit(Settings { fan_in, ..design.settings(8, 8) });
    let fabric = design.build(&mesh).unwrap();
    let turns = program(64, 8 * 8 * 128, |core| async move {
        let (cores, id) = (u64::from(core.cores()), u64::from(core.id()));
        // Another core also reads the line, so that it is shared.
        let line = |id: u64| 64 * (8 + id + id / 4);
        core.load(line((id + 1) % cores)).await;
        core.compute(5000);
        core.load(line(id)).await;
        core.compute(5000 + 400 * id);
        core.store(line(id), 1).await;
    });
    let run = run_on(&settings, turns, fabric).unwrap();
    let misses = run.misses[super::super::MissKind::Upgrade as usize];
    assert_eq!(misses.latency.count, 64, "{run:?}");
    misses.latency.mean()
}

/// With one hop per cycle, the request takes 2 D cycles to a home at a distance of D hops.
/// Broadcast and responses take 2 x 14 cycles to the opposite corner, and 2 (14 - D) back to the
/// requester. Lookups add 7, for every requester. A request within its home node takes one cycle.
/// With several hops per cycle each of these takes at most 4.
#[test]
fn upgrade_latency_is_the_sum_of_request_broadcast_and_responses() {
    let base = upgrades("baseline_collective", FanIn::Greedy);
    assert!((63.0..63.2).contains(&base), "{base}");
    for design in ["sfo_greedy", "sfo_greedy_pvt"] {
        let collective = upgrades(design, FanIn::Complete);
        assert!((14.0..20.0).contains(&collective), "{design}: {collective}");
    }
    let connected = upgrades("fully_connected", FanIn::Unicasts);
    assert!((10.0..10.1).contains(&connected), "{connected}");
}
