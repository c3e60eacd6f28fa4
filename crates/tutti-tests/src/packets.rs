//! What tests of messages that meet share: links, schedules, and runs through a network.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{MODELS, Shaken, model};
use tutti_engine::{Conditions, Disturbance, LocalCosts, Outcome, Routed, Silent, Simulation};
use tutti_network::packet::Packets;
use tutti_network::{Carrier, Model, PipeliningPostal};
use tutti_schedule::algorithm::{REGISTRY, Request};
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Layout, Schedule, Slot, Step};
use tutti_topology::{LinkParameters, Routes};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

pub fn link(ps_per_byte: u64, latency_ns: u64) -> LinkParameters {
    let rate = TimePerByte::new(ps_per_byte, 1).unwrap();
    LinkParameters::new(rate, Time::from_ps(latency_ns * 1000))
}

pub fn routes(notation: &str, links: &[LinkParameters]) -> Routes {
    let topology = tutti_topology::build(notation, links).unwrap_or_else(|error| panic!("{error}"));
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

/// Twice: every rank sends so many messages of one to eight chunks to ranks drawn from a seed, in up to three
/// steps, and then receives all that is sent to it.
pub fn flood(ranks: u32, messages: u32, seed: u64) -> Explicit {
    let mut builder = Explicit::builder(Collective::Barrier, ranks, 8);
    let shaken = Shaken { seed };
    let draw = |phase, rank, nth, below: u64| -> u32 {
        let drawn = shaken.draw([phase, rank, nth, 3], below << 20).ps() >> 20;
        u32::try_from(drawn).unwrap()
    };
    for phase in 0..2 {
        let mut sent: Vec<(RankId, RankId, ChunkRange)> = Vec::new();
        for rank in 0..ranks {
            for nth in 0..messages {
                let drawn = draw(phase, rank, nth, u64::from(ranks - 1) * 8);
                let peer = RankId((rank + 1 + drawn / 8) % ranks);
                let chunks = ChunkRange::new(0, 1 + drawn % 8);
                builder.send(RankId(rank), peer, Slot::DATA, chunks);
                sent.push((RankId(rank), peer, chunks));
                if draw(phase + 2, rank, nth, u64::from(messages)) < 2 {
                    builder.compute(RankId(rank), Time::from_ps(1000));
                }
            }
        }
        for (nth, (rank, peer, chunks)) in (1..).zip(sent) {
            builder.recv(peer, rank, Slot(nth), chunks);
        }
    }
    builder.build().unwrap()
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

/// Messages take no time but on the links.
pub fn instant() -> Model {
    let nearly = PipeliningPostal {
        alpha_p: Time::from_ps(1),
        alpha_r: Time::ZERO,
        beta: TimePerByte::ZERO,
    }
    .checked();
    Model::PipeliningPostal(nearly.unwrap())
}

/// Messages as (source, destination), each all of the payload, all at once.
pub fn at_once(ranks: u32, messages: &[(u32, u32)]) -> Explicit {
    let mut builder = Explicit::builder(Collective::Barrier, ranks, 1);
    let all = ChunkRange::new(0, 1);
    for &(source, destination) in messages {
        builder.send(RankId(source), RankId(destination), Slot::DATA, all);
    }
    for &(source, destination) in messages {
        let slot = Slot(source + 1);
        builder.recv(RankId(destination), RankId(source), slot, all);
    }
    builder.build().unwrap()
}

/// Whether a rank sends to the same rank again without a receive in between.
pub fn meets_itself(schedule: &dyn Schedule) -> bool {
    let ranks = schedule.shape().ranks;
    let mut step = Step::new();
    (0..ranks).map(RankId).any(|rank| {
        let mut peers = Vec::new();
        (0..schedule.steps(rank)).any(|number| {
            step.clear();
            schedule.step(rank, number, &mut step);
            peers.extend(step.sends.iter().map(|send| send.peer));
            peers.sort_unstable();
            let again = peers.windows(2).any(|pair| pair[0] == pair[1]);
            if !step.recvs.is_empty() {
                peers.clear();
            }
            again
        })
    })
}

/// Whether messages have several sizes, so that some may be eager and others not. A rendezvous has the
/// longer latency, so that a later eager message can reach the port of its sender at the same time.
fn has_messages_of_several_sizes(schedule: &dyn Schedule) -> bool {
    let mut step = Step::new();
    let mut sizes = BTreeSet::new();
    for rank in (0..schedule.shape().ranks).map(RankId) {
        for number in 0..schedule.steps(rank) {
            step.clear();
            schedule.step(rank, number, &mut step);
            sizes.extend(step.sends.iter().map(|send| send.chunks.len()));
        }
    }
    sizes.len() > 1
}

/// A topology and the number of its levels.
pub type Notation = (&'static str, u64);

pub const NOTATIONS: [Notation; 8] = [
    ("torus:3x3", 1),
    ("switch:7", 1),
    ("ring:6", 1),
    ("mesh:3x2", 1),
    ("hierarchical:switch:3/ring:3", 2),
    ("hierarchical:ring:3/rail:switch:3", 2),
    // Links side by side, of two kinds and of one.
    ("bypass:3x3:mesh,0=>1,8=>7,6=0", 2),
    ("bypass:2x2,wires=3:0=1,0=1,0=2,0=2,1=3,2=3,2=>3", 2),
];

/// A link of a level, without a factor in common with those of other levels.
pub fn uneven_link(level: u64, seed: u64) -> LinkParameters {
    LinkParameters::new(
        TimePerByte::new(997 + 214 * level + seed % 7, 10).unwrap(),
        Time::from_ps(100_003 + 50_021 * level + 31 * seed),
    )
}

/// Runs every algorithm under every model on links that no two pairs of ranks share, and compares
/// the times with those of contention-free routes.
///
/// Messages of one pair in one step share its link, and messages from several ranks the receiver's
/// port; such runs may differ.
pub fn times_are_those_of_routes(
    disturbance: &dyn Disturbance,
    network: impl Fn(&Simulation<'_, Model>, &Routes, &Model) -> Outcome,
) {
    for ranks in [2, 5, 8] {
        let routes = routes(&format!("fully_connected:{ranks}"), &[link(40, 250)]);
        for model in MODELS.iter().map(model) {
            let distance = Routed { routes: &routes, included: model.serialization() };
            for schedule in algorithms(ranks) {
                let alone =
                    Conditions { disturbance: Some(disturbance), distance: Some(&distance) };
                let shared = Conditions { disturbance: Some(disturbance), distance: None };
                let expected = simulation(&*schedule, 4000, &model, alone).run().unwrap();
                let run = simulation(&*schedule, 4000, &model, shared);
                if network(&run, &routes, &model) != expected {
                    let overtakes = matches!(model, Model::Protocols(_))
                        && has_messages_of_several_sizes(&*schedule);
                    let meet = meets_itself(&*schedule) || model.takes().is_some() || overtakes;
                    assert!(meet, "{} on {ranks} under {model:?}", schedule.shape().name);
                }
            }
        }
    }
}
