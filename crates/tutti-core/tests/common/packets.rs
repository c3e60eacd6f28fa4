//! What tests of messages that meet share: links, schedules, and runs through a network.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_core::algorithm::{REGISTRY, Request};
use tutti_core::collective::Collective;
use tutti_core::engine::{Conditions, LocalCosts, Outcome, Silent, Simulation};
use tutti_core::network::packet::Packets;
use tutti_core::network::{Carrier, Model};
use tutti_core::schedule::{Layout, Schedule};
use tutti_core::topology::{self, LinkParameters, Routes};
use tutti_core::units::{Bytes, Time, TimePerByte};

pub fn link(ps_per_byte: u64, latency_ns: u64) -> LinkParameters {
    let rate = TimePerByte::new(ps_per_byte, 1).unwrap();
    LinkParameters::new(rate, Time::from_ps(latency_ns * 1000))
}

pub fn routes(notation: &str, links: &[LinkParameters]) -> Routes {
    let topology = topology::build(notation, links).unwrap_or_else(|error| panic!("{error}"));
    Routes::shortest_path(Arc::new(topology))
}

pub fn packets(size: u64, buffer: u64) -> Packets {
    Packets::new(Bytes(size), Bytes(0), Bytes(buffer)).unwrap()
}

pub fn simulation<'a>(
    schedule: &'a dyn Schedule,
    size: u64,
    model: &'a Model,
    conditions: Conditions<'a>,
) -> Simulation<'a, Model> {
    let layout = Layout::new(Bytes(size), 1, schedule.shape().chunks).unwrap();
    Simulation { schedule, layout, model, costs: LocalCosts::FREE, conditions }
}

pub fn through<C: Carrier>(run: &Simulation<'_, Model>, carrier: &mut C) -> Outcome {
    let outcome = run.run_through(carrier, &AtomicBool::new(false), &mut Silent);
    outcome.unwrap_or_else(|error| panic!("{}: {error}", run.schedule.shape().name))
}

/// Every algorithm of the registry at that rank count, for every collective it claims.
pub fn algorithms(ranks: u32) -> impl Iterator<Item = Arc<dyn Schedule>> {
    REGISTRY.iter().flat_map(move |entry| {
        let claimed = Collective::ALL.iter().filter(|c| entry.collectives.contains(&c.name()));
        claimed.filter_map(move |&collective| {
            let request = Request { collective, ranks, argument: None };
            (entry.claims)(&request).then(|| (entry.build)(&request).unwrap())
        })
    })
}
