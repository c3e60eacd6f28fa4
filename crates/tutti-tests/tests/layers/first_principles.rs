//! One message from first principles: its time is computed here in picoseconds, for every model and for sizes from
//! zero, independently of the closed forms, the engine and its reference model. Properties: a longer message, or
//! slower components on its path, never make it faster.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use tutti_analysis::closed_form::stage_time;
use tutti_engine::{Conditions, LocalCosts, Routed, Silent, Simulation, oracle};
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting, Packets};
use tutti_network::{LoP, LogGP, LogP, LogfP, Model, PipeliningPostal, Postal};
use tutti_noc::{ChannelParameters, FlitCarrier, Network, Packing, Settings, Wiring, routing};
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_schedule::{Layout, Schedule, Step};
use tutti_tests::packets::{algorithms, link, routes};
use tutti_topology::{LinkParameters, Routes};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

const SIZES: [u64; 7] = [0, 1, 2, 3, 64, 65, 1000];

/// The place of `LogGP` among the models.
const LOGGP: usize = 5;

/// Three times of a model, or as many as it has, and its time per byte; in picoseconds.
type Numbers = ([u64; 3], u64);

fn ps(ps: u64) -> Time {
    Time::from_ps(ps)
}

fn per_byte(ps: u64) -> TimePerByte {
    TimePerByte::new(ps, 1).unwrap()
}

/// Each model with those numbers.
fn models(([a, b, c], rate): Numbers) -> [Model; 6] {
    let lop = LoP {
        L: ps(a),
        o_first: ps(b + c),
        o_next: ps(b),
        processing: ps(c),
        saturation: ps(a),
        knee: 2,
    };
    [
        Model::Postal(Postal { alpha: ps(a), beta: per_byte(rate) }.checked().unwrap()),
        Model::PipeliningPostal(
            PipeliningPostal { alpha_p: ps(a), alpha_r: ps(b), beta: per_byte(rate) }
                .checked()
                .unwrap(),
        ),
        Model::LogP(LogP { L: ps(a), o: ps(b), g: ps(c) }.checked().unwrap()),
        Model::LoP(lop.checked().unwrap()),
        Model::LogfP(LogfP { L: ps(a), o: ps(b), g: ps(c), f: 2 }.checked().unwrap()),
        Model::LogGP(LogGP { L: ps(a), o: ps(b), g: ps(c), G: per_byte(rate) }.checked().unwrap()),
    ]
}

/// Time of the bytes of a message in each of the models: n beta, nothing, or G for every byte but the first.
fn of_bytes(rate: u64, size: u64) -> [u64; 6] {
    let after_the_first = if size == 0 { 0 } else { (size - 1) * rate };
    [size * rate, size * rate, 0, 0, 0, after_the_first]
}

/// Time of a message in each of the models, over nothing that it would share.
fn by_hand(([a, b, c], rate): Numbers, size: u64) -> [u64; 6] {
    // alpha; alpha_p + alpha_r; o + L + o; o_first + processing + L + o_next; o + L + o twice.
    let fixed = [a, a + b, b + a + b, (b + c) + c + a + b, b + a + b, b + a + b];
    let bytes = of_bytes(rate, size);
    std::array::from_fn(|model| fixed[model] + bytes[model])
}

/// From rank 0 to rank 1.
fn message() -> Arc<dyn Schedule> {
    build("direct", Collective::Broadcast { root: RankId(0) }, 2).unwrap()
}

fn run<'a>(
    schedule: &'a dyn Schedule,
    model: &'a Model,
    size: u64,
    conditions: Conditions<'a>,
) -> Simulation<'a, Model> {
    let layout = Layout::new(Bytes(size), 1, schedule.shape().chunks).unwrap();
    Simulation { schedule, layout, model, costs: LocalCosts::FREE, conditions }
}

fn completion(run: &Simulation<Model>) -> u64 {
    run.run().unwrap().completion_time().ps()
}

#[test]
fn a_message_takes_the_time_of_its_model_s_paper() {
    let schedule = message();
    for numbers in [([1_340_000, 340_000, 190_000], 437), ([7, 3, 11], 1), ([5, 0, 0], 100)] {
        for size in SIZES {
            let expected = by_hand(numbers, size);
            for (model, expected) in models(numbers).iter().zip(expected) {
                let run = run(&*schedule, model, size, Conditions::default());
                assert_eq!(completion(&run), expected, "{size} B under {model:?}");
                let slow = oracle::finish_times(&run).unwrap().into_iter().max();
                assert_eq!(slow, Some(ps(expected)), "{size} B under {model:?}, the oracle");
                let formula = stage_time(model, 1, 1, Bytes(size));
                assert_eq!(formula, ps(expected), "{size} B under {model:?}, the closed form");
            }
        }
    }
}

/// Over a link, a message takes the longer of what its model and what the link takes for its bytes: LogGP's first
/// byte, which costs no G, is not taken off the link's time.
#[test]
fn over_a_link_a_message_takes_no_less_than_its_bytes_take_there() {
    let schedule = message();
    let numbers = ([1_000_000, 1_500_000, 1_000_000], 437);
    for link_ps in [1, 436, 437, 438, 1000, 20_000] {
        let latency = 50_000;
        let routes = routes("ring:2", &[link(link_ps, 50)]);
        for size in SIZES {
            let bytes = of_bytes(numbers.1, size);
            let alone = by_hand(numbers, size);
            for (index, model) in models(numbers).iter().enumerate() {
                let beyond = (size * link_ps).saturating_sub(bytes[index]);
                let expected = alone[index] + latency + beyond;
                let included = model.serialization();
                let routed = Routed { routes: &routes, included };
                let far = Conditions { distance: Some(&routed), disturbance: None };
                let run_far = run(&*schedule, model, size, far);
                let case = format!("{size} B over {link_ps} ps/B under {model:?}");
                assert_eq!(completion(&run_far), expected, "{case}");
                for packet in [1, 64, 4096] {
                    let near = run(&*schedule, model, size, Conditions::default());
                    let found = over_packets(&near, &routes, packet);
                    assert_eq!(found, expected, "{case} in packets of {packet} B");
                }
            }
        }
    }
}

fn over_packets(run: &Simulation<Model>, routes: &Routes, size: u64) -> u64 {
    let packets = Packets::new(Bytes(size), Bytes(0), Bytes(2 * size)).unwrap();
    let mut fabric =
        PacketNetwork::new(PacketRouting::Routed(routes), packets, Ends::of(run.model));
    let outcome = run.run_through(&mut fabric, &AtomicBool::new(false), &mut Silent).unwrap();
    outcome.completion_time().ps()
}

fn over_flits(run: &Simulation<Model>, cycle: u64, flit: u64) -> u64 {
    let rate = TimePerByte::new(cycle, flit).unwrap();
    let links = [LinkParameters::new(rate, ps(3 * cycle))];
    let topology = Arc::new(tutti_topology::build("ring:2", &links).unwrap());
    let port =
        ChannelParameters { latency: 1, credit_latency: 1, flit_time: ps(cycle), length: None };
    let wiring = Arc::new(Wiring::of(topology, ps(cycle), Bytes(flit), port).unwrap());
    let routing = routing::parse("shortest_path", &wiring).unwrap();
    let settings = Settings::new(2, 16);
    let network = Network::new(&wiring, &settings, routing).unwrap();
    let packing = Packing::new(Bytes(flit), 4, 0).unwrap();
    let mut carrier = FlitCarrier::new(network, wiring, &settings, packing, Ends::of(run.model));
    let outcome = run.run_through(&mut carrier, &AtomicBool::new(false), &mut Silent).unwrap();
    outcome.completion_time().ps()
}

/// What is varied: a parameter of the model, its time per byte, the size, the link's time per byte.
fn raised(case: (Numbers, u64, u64), which: usize, more: u64) -> (Numbers, u64, u64) {
    let ((mut times, mut rate), mut size, mut link) = case;
    match which {
        0..3 => times[which] += more,
        3 => rate += more,
        4 => size += more,
        _ => link += more,
    }
    ((times, rate), size, link)
}

/// The index of the flit network among the networks of a case.
const FLITS: usize = 3;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A message alone takes no less when anything about it grows, over every network.
    #[test]
    fn a_message_is_never_faster_for_more(
        times in prop::array::uniform3(1_u64..5000),
        (rate, size, link_ps) in (0_u64..600, 0_u64..400, 1_u64..600),
        which in 0_usize..6,
        more in 1_u64..700,
    ) {
        let schedule = message();
        let small = ((times, rate), size, link_ps);
        let large = raised(small, which, more);
        let all = |(numbers, size, link_ps): (Numbers, u64, u64)| {
            let routes = routes("ring:2", &[link(link_ps, 50)]);
            let routes = &routes;
            let schedule = &*schedule;
            models(numbers).map(|model| {
                let routed = Routed { routes, included: model.serialization() };
                let far = Conditions { distance: Some(&routed), disturbance: None };
                let near = run(schedule, &model, size, Conditions::default());
                [
                    completion(&near),
                    completion(&run(schedule, &model, size, far)),
                    over_packets(&near, routes, 64),
                    over_flits(&near, link_ps, 16),
                ]
            })
        };
        let (before, after) = (all(small), all(large));
        for (model, (before, after)) in before.iter().zip(after).enumerate() {
            for (network, (before, after)) in before.iter().zip(after).enumerate() {
                // A message enters routers at a clock edge. The next edge of a longer cycle can be earlier.
                let edge = if network == FLITS && which == 5 { large.2 } else { 0 };
                let case = format!("model {model}, network {network}: {before} > {after}");
                prop_assert!(*before <= after + edge, "{case}");
            }
        }
    }

    /// A schedule in which nothing queues takes no less when anything grows. Under `LogGP` messages that are
    /// not of one length queue at their receiver's port, where their order counts.
    #[test]
    fn a_schedule_in_which_nothing_queues_is_never_faster_for_more(
        times in prop::array::uniform3(1_u64..5000),
        (rate, elements, link_ps) in (0_u64..600, 0_u64..6, 1_u64..600),
        which in 0_usize..6,
        more in 1_u64..700,
        (ranks, nth) in (2_u32..10, 0_usize..1000),
    ) {
        let schedules: Vec<_> = algorithms(ranks).collect();
        let schedule = &schedules[nth % schedules.len()];
        let chunks = u64::from(schedule.shape().chunks);
        let small = ((times, rate), elements * chunks, link_ps);
        let large = raised(small, which, if which == 4 { more * chunks } else { more });
        let all = |(numbers, size, link_ps): (Numbers, u64, u64)| {
            let routes = routes(&format!("ring:{ranks}"), &[link(link_ps, 50)]);
            models(numbers).map(|model| {
                let routed = Routed { routes: &routes, included: model.serialization() };
                let far = Conditions { distance: Some(&routed), disturbance: None };
                let near = Conditions::default();
                [near, far].map(|conditions| completion(&run(&**schedule, &model, size, conditions)))
            })
        };
        let (before, after) = (all(small), all(large));
        for (model, (before, after)) in before.iter().zip(after).enumerate() {
            if model == LOGGP && !is_alike(&**schedule) {
                continue;
            }
            for (before, after) in before.iter().zip(after) {
                let name = &schedule.shape().name;
                prop_assert!(*before <= after, "{name}, model {model}: {before} > {after}");
            }
        }
    }
}

/// Whether all messages that a rank takes in a step are of one length.
fn is_alike(schedule: &dyn Schedule) -> bool {
    let mut step = Step::new();
    (0..schedule.shape().ranks).map(RankId).all(|rank| {
        (0..schedule.steps(rank)).all(|number| {
            step.clear();
            schedule.step(rank, number, &mut step);
            let mut lengths = step.recvs.iter().map(|recv| recv.chunks.len());
            lengths.next().is_none_or(|first| lengths.all(|length| length == first))
        })
    })
}
