//! The packet network against its reference model: random messages with many simultaneous events, which both must
//! order alike.

use proptest::prelude::*;
use tutti_engine::{Conditions, Disturbance, Outcome};
use tutti_network::Serialization;
use tutti_network::packet::oracle::ReferencePackets;
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting};
use tutti_tests::packets::{
    NOTATIONS, Notation, algorithms, flood, link, packets, routes, simulation, through, uneven_link,
};
use tutti_tests::{MODELS, Parameters, Shaken, Staggered, model};
use tutti_topology::LinkParameters;
use tutti_units::TimePerByte;

/// How often things happen at the very same time.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// Ranks shaken, latencies and rates without common factors: by chance.
    Uneven,
    /// All ranks and links alike: nearly always.
    InStep,
    /// As that, and links without latency.
    AtOnce,
    /// Everything happens at multiples of 100 ns, and a message sets off sooner than another one takes to cross a
    /// link: what enters late may have been offered after what is there at the same time set off.
    OnGrid,
}

impl Pace {
    fn links(self, levels: u64, seed: u64) -> Vec<LinkParameters> {
        let of = |level| match self {
            Pace::Uneven => uneven_link(level, seed),
            Pace::InStep => link(100, 50),
            Pace::AtOnce => link(100, 0),
            Pace::OnGrid => link(100, if level == 0 && seed.is_multiple_of(3) { 0 } else { 500 }),
        };
        (0..levels).map(of).collect()
    }

    /// A port's rate.
    fn port(self, numerator: u64, denominator: u64) -> TimePerByte {
        match self {
            Pace::Uneven => TimePerByte::new(numerator, denominator),
            Pace::InStep | Pace::AtOnce | Pace::OnGrid => TimePerByte::new(100, 1),
        }
        .unwrap()
    }
}

/// The model for [`Pace::OnGrid`].
const ON_GRID: Parameters =
    ("pipelining_postal", &[("alpha_p", "0 ns"), ("alpha_r", "100 ns"), ("beta", "0 ns/B")]);

const PACES: [Pace; 4] = [Pace::Uneven, Pace::InStep, Pace::AtOnce, Pace::OnGrid];

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
    /// Messages that each rank sends at once, instead of an algorithm's; none for that.
    flood: u32,
}

impl Case {
    /// When all ranks are done in the fast network, and in the obvious one.
    fn run(self) -> (Outcome, Outcome) {
        let Case { seed, size, packet, slots, notation, ports, pace, flood: messages } = self;
        let routes = routes(notation.0, &pace.links(notation.1, seed));
        let (size, packet) =
            if matches!(pace, Pace::OnGrid) { (size % 4 * 1000, 1000) } else { (size, packet) };
        let mut cut = packets(packet, packet * slots);
        if ports & 1 > 0 {
            cut = cut.with_injection(pace.port(883, 11));
        }
        if ports & 2 > 0 {
            cut = cut.with_ejection(pace.port(1013, 13));
        }
        // Without noise on messages they are offered to the fast network, where the ends agree with the model.
        let (shaken, staggered) = (Shaken { seed }, Staggered(Shaken { seed }));
        let disturbance: &dyn Disturbance = if seed % 2 == 0 { &shaken } else { &staggered };
        let disturbance = matches!(pace, Pace::Uneven).then_some(disturbance);
        let conditions = Conditions { disturbance, distance: None };
        let takes = (seed % 3 == 0).then(|| pace.port(1117, 17)).map(|rate| match seed % 2 {
            0 => Serialization::after_the_first(rate),
            _ => Serialization::of_every_byte(rate),
        });
        let nth = usize::try_from(seed).unwrap();
        let on_grid = matches!(pace, Pace::OnGrid);
        let parameters = if on_grid { ON_GRID } else { MODELS[nth % MODELS.len()] };
        let model = model(&parameters);
        let uneven = Serialization::of_every_byte(TimePerByte::new(7, 3).unwrap());
        let bytes = [uneven, model.serialization(), Serialization::NONE];
        let ends = Ends { hands_over: bytes[if on_grid { 1 } else { nth / 2 % 3 }], takes };
        let ranks = routes.topology().npus();
        let all: Vec<_> = algorithms(ranks).collect();
        let flood = flood(ranks, messages, seed);
        let schedule = if messages == 0 { &*all[nth % all.len()] } else { &flood };
        let size = size * u64::from(schedule.shape().chunks);
        let run = simulation(schedule, size, &model, conditions);
        let routing = PacketRouting::Routed(&routes);
        let fast = through(&run, &mut PacketNetwork::new(routing, cut.clone(), ends));
        (fast, through(&run, &mut ReferencePackets::new(&routes, cut, ends)))
    }
}

/// A packet leaves a full buffer in the same picosecond in which the upstream link becomes free: the order of the
/// two events determines which packet starts.
#[test]
fn links_that_become_free_together_are_served_in_one_order() {
    let notation = ("hierarchical:ring:3/rail:switch:3", 2);
    let pace = Pace::Uneven;
    let cases = [
        Case { seed: 465, size: 3275, packet: 64, slots: 1, notation, ports: 0, pace, flood: 0 },
        Case { seed: 771, size: 1692, packet: 64, slots: 2, notation, ports: 1, pace, flood: 0 },
    ];
    for case in cases {
        let (fast, slow) = case.run();
        assert_eq!(fast, slow, "{case:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    /// Random messages at every pace: the fast network and the obvious one agree on every arrival.
    #[test]
    fn the_fast_network_is_the_obvious_one(
        (seed, size, slots, ports) in (0_u64..1000, 0_u64..4000, 1_u64..4, 0_u8..4),
        packet in prop::sample::select(vec![64_u64, 100, 1000, 5000]),
        notation in prop::sample::select(NOTATIONS.to_vec()),
        pace in prop::sample::select(PACES.to_vec()),
    ) {
        let case = Case { seed, size, packet, slots, notation, ports, pace, flood: 0 };
        let (fast, slow) = case.run();
        prop_assert_eq!(fast, slow);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// As above, with more messages at once than the fast network stores, so that it requests them again.
    #[test]
    fn requested_messages_equal_offered_messages(
        (seed, size, slots, ports) in (0_u64..1000, 0_u64..100, 1_u64..4, 0_u8..4),
        packet in prop::sample::select(vec![64_u64, 100, 1000]),
        notation in prop::sample::select(NOTATIONS.to_vec()),
        pace in prop::sample::select(PACES.to_vec()),
        flood in 1_u32..200,
    ) {
        let case = Case { seed, size, packet, slots, notation, ports, pace, flood };
        let (fast, slow) = case.run();
        prop_assert_eq!(fast, slow);
    }
}
