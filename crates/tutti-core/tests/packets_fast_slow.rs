//! The packet network against its obvious twin: random messages, mostly so that much happens at the very same
//! time, where only the order that both keep tells who goes first.

mod common;

use common::packets::{algorithms, link, packets, routes, simulation, through};
use common::{MODELS, Shaken, model};
use proptest::prelude::*;
use tutti_core::engine::{Conditions, Outcome};
use tutti_core::network::packet::oracle::Obvious;
use tutti_core::network::packet::{Ends, Fabric, Ways};
use tutti_core::topology::LinkParameters;
use tutti_core::units::{Time, TimePerByte};

/// How often things happen at the very same time.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// Ranks shaken, latencies and rates without common factors: by chance.
    Uneven,
    /// All ranks and links alike: nearly always.
    InStep,
    /// As that, and links without latency.
    AtOnce,
}

impl Pace {
    fn links(self, levels: u64, seed: u64) -> Vec<LinkParameters> {
        let of = |level| match self {
            Pace::Uneven => LinkParameters::new(
                TimePerByte::new(997 + 214 * level + seed % 7, 10).unwrap(),
                Time::from_ps(100_003 + 50_021 * level + 31 * seed),
            ),
            Pace::InStep => link(100, 50),
            Pace::AtOnce => link(100, 0),
        };
        (0..levels).map(of).collect()
    }

    /// A port's rate.
    fn port(self, numerator: u64, denominator: u64) -> TimePerByte {
        match self {
            Pace::Uneven => TimePerByte::new(numerator, denominator),
            Pace::InStep | Pace::AtOnce => TimePerByte::new(100, 1),
        }
        .unwrap()
    }
}

/// A topology and the number of its levels.
type Notation = (&'static str, u64);

const NOTATIONS: [Notation; 6] = [
    ("torus:3x3", 1),
    ("switch:7", 1),
    ("ring:6", 1),
    ("mesh:3x2", 1),
    ("hierarchical:switch:3/ring:3", 2),
    ("hierarchical:ring:3/rail:switch:3", 2),
];

/// What a run depends on; the seed chooses the schedule and the model as well.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    size: u64,
    packet: u64,
    /// Packets that fit into a buffer.
    slots: u64,
    notation: Notation,
    /// Whether NPUs inject, 1, and eject, 2, through ports.
    ports: u8,
    pace: Pace,
}

impl Case {
    /// When all ranks are done in the fast network, and in the obvious one.
    fn run(self) -> (Outcome, Outcome) {
        let Case { seed, size, packet, slots, notation, ports, pace } = self;
        let routes = routes(notation.0, &pace.links(notation.1, seed));
        let mut cut = packets(packet, packet * slots);
        if ports & 1 > 0 {
            cut = cut.with_injection(pace.port(883, 11));
        }
        if ports & 2 > 0 {
            cut = cut.with_ejection(pace.port(1013, 13));
        }
        let shaken = Shaken { seed };
        let disturbance = matches!(pace, Pace::Uneven).then_some(&shaken as _);
        let conditions = Conditions { disturbance, distance: None };
        let takes = (seed % 3 == 0).then(|| pace.port(1117, 17));
        let ends = Ends { hands_over: TimePerByte::new(7, 3).unwrap(), takes };
        let nth = usize::try_from(seed).unwrap();
        let all: Vec<_> = algorithms(routes.topology().npus()).collect();
        let schedule = &*all[nth % all.len()];
        let model = model(&MODELS[nth % MODELS.len()]);
        let size = size * u64::from(schedule.shape().chunks);
        let run = simulation(schedule, size, &model, conditions);
        let fast = through(&run, &mut Fabric::new(Ways::Routed(&routes), cut, ends));
        (fast, through(&run, &mut Obvious::new(&routes, cut, ends)))
    }
}

/// A packet leaves a full buffer in the very picosecond in which the link before it becomes free: whether
/// that link is asked before or after makes room decides whose packet it takes.
#[test]
fn links_that_become_free_together_are_asked_in_one_order() {
    let notation = ("hierarchical:ring:3/rail:switch:3", 2);
    let pace = Pace::Uneven;
    let cases = [
        Case { seed: 465, size: 3275, packet: 64, slots: 1, notation, ports: 0, pace },
        Case { seed: 771, size: 1692, packet: 64, slots: 2, notation, ports: 1, pace },
    ];
    for case in cases {
        let (fast, slow) = case.run();
        assert_eq!(fast, slow, "{case:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Random messages at every pace: the fast network and the obvious one agree on every arrival.
    #[test]
    fn the_fast_network_is_the_obvious_one(
        (seed, size, slots, ports) in (0_u64..1000, 0_u64..4000, 1_u64..4, 0_u8..4),
        packet in prop::sample::select(vec![64_u64, 100, 1000, 5000]),
        notation in prop::sample::select(NOTATIONS.to_vec()),
        pace in prop::sample::select(vec![Pace::Uneven, Pace::InStep, Pace::AtOnce]),
    ) {
        let case = Case { seed, size, packet, slots, notation, ports, pace };
        let (fast, slow) = case.run();
        prop_assert_eq!(fast, slow);
    }
}
