//! Every algorithm on random machines: a random graph of NPUs and switches with unequal links, a random
//! number of ranks, model, size and noise. Whatever comes, bytes are conserved, nothing happens before
//! its cause, and the same machine gives the same times however its links were declared.

use std::sync::Arc;

use proptest::prelude::*;
use tutti_engine::{Conditions, LocalCosts, Routed, Simulation, oracle};
use tutti_schedule::algorithm::{REGISTRY, Request};
use tutti_schedule::collective::Collective;
use tutti_schedule::{Layout, Slot, verify};
use tutti_tests::{MODELS, Shaken, model};
use tutti_topology::{Builder, LinkParameters, Routes};
use tutti_units::ids::VertexId;
use tutti_units::{Bytes, Time, TimePerByte};

/// A cable: two vertices, GB/s, ns.
type Cable = (u32, u32, u64, u64);

#[derive(Clone, Debug)]
struct Machine {
    ranks: u32,
    switches: u32,
    cables: Vec<Cable>,
}

/// A random tree, so that everything is connected, and any further cables.
fn machines() -> impl Strategy<Value = Machine> {
    let further = prop::collection::vec((0_u32..40, 0_u32..40, 1_u64..200, 0_u64..3000), 0..30);
    let tree = prop::collection::vec((0_u32..40, 1_u64..200, 0_u64..3000), 40);
    (2_u32..25, 0_u32..8, tree, further).prop_map(|(ranks, switches, tree, further)| {
        let all = ranks + switches;
        let tree = (1..all).zip(tree).map(|(at, (to, rate, latency))| (at, to % at, rate, latency));
        let further =
            further.into_iter().map(|(a, b, rate, latency)| (a % all, b % all, rate, latency));
        let cables = tree.chain(further).filter(|cable| cable.0 != cable.1).collect();
        Machine { ranks, switches, cables }
    })
}

fn routes(machine: &Machine, cables: impl Iterator<Item = Cable>) -> Routes {
    let mut builder = Builder::new("random", machine.ranks);
    for switch in 0..machine.switches {
        builder.switch(format!("switch{switch}"));
    }
    for (a, b, gigabytes_per_s, latency_ns) in cables {
        let rate = TimePerByte::new(1000, gigabytes_per_s).unwrap();
        let parameters = LinkParameters::new(rate, Time::from_ps(latency_ns * 1000));
        builder.cable(VertexId(a), VertexId(b), parameters);
    }
    Routes::shortest_path(Arc::new(builder.build().unwrap()))
}

/// An algorithm and a collective that it claims on so many ranks.
fn claimed(pick: usize, ranks: u32) -> (&'static tutti_schedule::algorithm::Entry, Collective) {
    let all: Vec<_> = REGISTRY
        .iter()
        .flat_map(|entry| Collective::ALL.map(|collective| (entry, collective)))
        .filter(|(entry, collective)| entry.collectives.contains(&collective.name()))
        .filter(|(entry, collective)| {
            (entry.claims)(&Request { collective: *collective, ranks, argument: None })
        })
        .collect();
    all[pick % all.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_algorithm_on_any_machine(
        machine in machines(),
        pick in any::<usize>(),
        which in 0..MODELS.len(),
        elements in 0_u64..2000,
        seed in any::<u64>(),
    ) {
        let (entry, collective) = claimed(pick, machine.ranks);
        let request = Request { collective, ranks: machine.ranks, argument: None };
        let schedule = (entry.build)(&request).unwrap();
        prop_assert!(verify(&*schedule).is_ok(), "{} {collective}", entry.name);
        let elements = match collective {
            Collective::Barrier => 0,
            Collective::AllToAll => elements * u64::from(machine.ranks),
            // Parts that change places have to be equal.
            _ if schedule.shape().result != Slot::DATA => elements * u64::from(machine.ranks),
            _ => elements,
        };
        let layout = Layout::of(schedule.shape(), Bytes(elements * 4), 4).unwrap();
        let model = model(&MODELS[which]);
        let shaken = Shaken { seed };
        let gamma = TimePerByte::parse("0.1 ns/B").unwrap();
        let costs = LocalCosts { gamma, ..LocalCosts::FREE };
        let routes_in_order = routes(&machine, machine.cables.iter().copied());
        let routes_reversed = routes(&machine, machine.cables.iter().rev().copied());
        let outcome = |routes: &Routes| {
            let distance = Routed { routes, included: model.serialization() };
            let conditions =
                Conditions { disturbance: Some(&shaken), distance: Some(&distance) };
            let run = Simulation { schedule: &*schedule, layout, model: &model, costs, conditions };
            let (outcome, timeline) = run.run_recorded().unwrap();
            assert_eq!(outcome.finish, oracle::finish_times(&run).unwrap());
            (outcome, timeline)
        };
        let (outcome_in_order, timeline) = outcome(&routes_in_order);
        prop_assert_eq!(&outcome(&routes_reversed), &(outcome_in_order.clone(), timeline.clone()));
        let carried: u128 = timeline.messages.iter().map(|m| u128::from(m.bytes.0)).sum();
        prop_assert_eq!(carried, outcome_in_order.bytes);
        for message in &timeline.messages {
            let path = routes_in_order.pair(message.source, message.destination);
            prop_assert!(message.arrival >= message.sent + path.latency);
            prop_assert!(message.arrival >= message.sent + path.bottleneck.of(message.bytes));
            prop_assert!(message.received >= message.arrival);
        }
    }
}
