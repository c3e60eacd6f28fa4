//! The fast network compared with the reference model, with many flows that share links.

use std::sync::Arc;

use super::oracle::ReferenceFlows;
use super::{FlowLevel, FlowNetwork, FlowRouting};
use crate::packet::Ends;
use crate::{Carried, Carrier, Ticket};
use proptest::prelude::*;
use tutti_topology::{LinkParameters, Routes, build};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

/// Topologies, each with the times of a byte on its classes of links. In a fat tree, the links down to a host
/// carry only its flows; with routes by the shortest path, and in a torus, others join them later.
const NETWORKS: [(&str, &[u64], bool); 6] = [
    ("fat_tree:m=4x4,w=1x4", &[7, 7], true),
    ("fat_tree:m=4x4,w=1x2", &[7, 5], true),
    ("fat_tree:m=2x2x4,w=1x2x2", &[6, 9, 3], true),
    ("fat_tree:m=4x4,w=1x2", &[7, 11], false),
    ("torus:4x4", &[7, 7], false),
    ("switch:16", &[7], false),
];

/// A start in ps, a source, an offset to the destination, and a size.
type Sent = (u64, u32, u32, u64);

fn routes((notation, rates, by_destination): (&str, &[u64], bool), latency: Time) -> Routes {
    let link = |&ps| LinkParameters::new(TimePerByte::new(ps, 1).unwrap(), latency);
    let links: Vec<_> = rates.iter().map(link).collect();
    let topology = build(notation, &links).or_else(|_| build(notation, &links[..1]));
    let topology = Arc::new(topology.unwrap());
    match by_destination {
        true => Routes::d_mod_k(topology).unwrap(),
        false => Routes::shortest_path(topology),
    }
}

/// When each message arrives. With `replies`, every destination sends as much to the next rank at once, and
/// receives as much from the rank before.
fn arrivals(mut network: impl Carrier, sent: &[Sent], replies: bool) -> Vec<(u32, Time)> {
    let count = u32::try_from(sent.len()).unwrap();
    let message = |ticket: u32, (from, to): (u32, u32), arrival: Time| {
        let bytes = Bytes(sent[(ticket % count) as usize].3);
        Carried { source: RankId(from % 16), destination: RankId(to % 16), bytes, arrival }
    };
    for (ticket, &(start, source, offset, _)) in (0..).zip(sent) {
        let pair = (source, source + offset);
        network.carry(Ticket(ticket), message(ticket, pair, Time::from_ps(start)));
    }
    let mut all = Vec::new();
    while let Some((Ticket(ticket), time)) = network.next_arrival() {
        all.push((ticket, time));
        if replies && ticket < count {
            let (_, source, offset, _) = sent[ticket as usize];
            let at = source + offset;
            for (ticket, pair) in
                [(ticket + count, (at, at + 1)), (ticket + 2 * count, (at + 15, at))]
            {
                network.carry(Ticket(ticket), message(ticket, pair, time));
            }
        }
    }
    all.sort_unstable();
    all
}

/// Compares both networks; with `replies`, links have no latency, so that flows start as others end.
fn agree(
    which: usize,
    ports: Option<u64>,
    per_message: Option<u64>,
    sent: &[Sent],
    replies: bool,
) -> Result<(), TestCaseError> {
    let routes = routes(NETWORKS[which], Time::from_ps(if replies { 0 } else { 10 }));
    let routing = FlowRouting::Routed(&routes);
    let [port, per_message] =
        [ports, per_message].map(|limit| limit.map(|ps| TimePerByte::new(ps, 1).unwrap()));
    let level = FlowLevel { injection: port, ejection: port, per_message, ..FlowLevel::default() };
    let fast = arrivals(FlowNetwork::new(routing, level.clone(), Ends::FREE), sent, replies);
    let slow = arrivals(ReferenceFlows::new(routing, level, Ends::FREE), sent, replies);
    prop_assert_eq!(fast.len(), sent.len() * if replies { 3 } else { 1 });
    prop_assert_eq!(fast, slow);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Messages of any size at any time, and of few sizes at few times, so that many start and end together.
    #[test]
    fn random_messages(
        sent in prop::collection::vec((0_u64..20_000, 0_u32..16, 0_u32..16, 1_u64..2_000), 1..120),
        which in 0..NETWORKS.len(),
        (ports, per_message) in (prop::option::of(4_u64..9), prop::option::of(4_u64..20)),
        (coarse, replies) in any::<(bool, bool)>(),
    ) {
        let step = |value: u64, step: u64| if coarse { value / step * step } else { value };
        let sent: Vec<_> = sent
            .into_iter()
            .map(|(start, source, offset, bytes)| (step(start, 4_000), source, offset, step(bytes, 500).max(1)))
            .collect();
        agree(which, ports, per_message, &sent, replies)?;
    }

    /// Every rank sends to the next ranks in turn, as in a direct exchange.
    #[test]
    fn direct_exchanges(
        (gap, bytes, peers) in (0_u64..3_000, 1_u64..2_000, 1_u32..16),
        which in 0..NETWORKS.len(),
        late in prop::collection::vec(0_u64..5_000, 16),
        replies in any::<bool>(),
    ) {
        let each = |source: u32| {
            let late = late[source as usize] / 1_000 * 1_000;
            (1..=peers).map(move |offset| (late + u64::from(offset) * gap, source, offset, bytes))
        };
        agree(which, None, None, &(0..16).flat_map(each).collect::<Vec<_>>(), replies)?;
    }
}
