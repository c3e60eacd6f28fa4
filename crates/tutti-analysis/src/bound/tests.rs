use super::*;
use tutti_network::packet::Packets;
use tutti_schedule::Blocks;
use tutti_schedule::Layout;
use tutti_schedule::algorithm::build_blocks;
use tutti_topology::LinkParameters;
use tutti_units::ids::RankId;

fn ns(time: u64) -> Time {
    Time::from_ps(time * 1000)
}

fn model(name: &str, given: &[(&str, &str)]) -> Model {
    tutti_network::build(name, given).unwrap()
}

fn on(collective: Collective, ranks: u32, size: u64, model: &Model) -> Bound {
    let query = Query { collective, ranks, size: Bytes(size), element: 4, exchange: None };
    bound(&query, model, Folding::FREE, GraphBound::NONE)
}

/// One message at a time doubles the informed ranks: ceil(log2 N) alpha (Chan et al. 2007, Table 1).
#[test]
fn one_message_at_a_time_doubles_the_informed_ranks() {
    let postal = model("postal", &[("alpha", "50 ns"), ("beta", "0 ns/B")]);
    for (ranks, rounds) in [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (1024, 10), (1025, 11)]
    {
        assert_eq!(on(Collective::Barrier, ranks, 0, &postal).latency, ns(50 * rounds));
        assert_eq!(on(Collective::AllReduce, ranks, 8, &postal).latency, ns(50 * rounds));
    }
}

/// Held after 3, apart 1: n = 1 until 3, then 2, 3, 4 at 3, 4, 5; at 6 the source's fourth and the first
/// one's first: 6; at 7 the source's, the first's second and the second's first: 9.
#[test]
fn messages_that_overlap_spread_faster() {
    for (ranks, at) in [(2, 3), (3, 4), (4, 5), (5, 6), (6, 6), (7, 7), (9, 7), (10, 8)] {
        assert_eq!(spread(ranks, ns(3), ns(1)), ns(at), "{ranks}");
    }
    assert_eq!(spread(1000, ns(3), Time::ZERO), ns(3));
}

/// LogP, L = 6, o = 2, g = 4 (Karp et al. 1993, Fig. 1): eight ranks are informed after 24.
#[test]
fn the_published_broadcast_of_logp_is_the_bound() {
    let logp = model("logp", &[("L", "6 ns"), ("o", "2 ns"), ("g", "4 ns")]);
    let root = RankId(0);
    assert_eq!(on(Collective::Broadcast { root }, 8, 4, &logp).latency, ns(24));
    assert_eq!(on(Collective::Reduce { root }, 8, 4, &logp).latency, ns(24));
}

/// 6 ranks, 600 bytes, beta 1 ns: 2 x 5/6 x 600 = 1000 ns for all_reduce, plus the message's alpha.
#[test]
fn bytes_go_through_the_ports() {
    let postal = model("postal", &[("alpha", "50 ns"), ("beta", "1 ns/B")]);
    assert_eq!(on(Collective::AllReduce, 6, 600, &postal).bandwidth, ns(1050));
    assert_eq!(on(Collective::AllGather, 6, 600, &postal).bandwidth, ns(550));
    assert_eq!(on(Collective::Broadcast { root: RankId(1) }, 6, 600, &postal).bandwidth, ns(650));
    // Receiving is free in this model: a root receives all at once.
    assert_eq!(on(Collective::Gather { root: RankId(1) }, 6, 600, &postal).bandwidth, ns(150));
    let loggp = [("L", "9 ns"), ("o", "2 ns"), ("g", "3 ns"), ("G", "1 ns/B")];
    let loggp = model("loggp", &loggp);
    // 500 bytes into the root: L + 2 o + 499 G.
    assert_eq!(on(Collective::Gather { root: RankId(1) }, 6, 600, &loggp).bandwidth, ns(13 + 499));
}

/// Without a gap, small messages are cheap in LogGP: their first bytes are free. 400 bytes in k messages
/// take max((400 - k) 8, (k - 1) o): with o = 72 ns, k = 41 of 9 or 10 bytes, max(2872, 2880).
#[test]
fn a_schedule_may_cut_its_messages_where_that_is_cheaper() {
    let given = [("L", "5 ns"), ("o", "72 ns"), ("g", "0 ns"), ("G", "8 ns/B")];
    let cheap = model("loggp", &given);
    let broadcast = Collective::Broadcast { root: RankId(0) };
    assert_eq!(on(broadcast, 2, 400, &cheap).bandwidth, ns(5 + 144 + 2880));
}

#[test]
fn reductions_are_shared() {
    let given = [("alpha", "50 ns"), ("beta", "1 ns/B")];
    let postal = model("postal", &given);
    let query = Query {
        collective: Collective::AllReduce,
        ranks: 6,
        size: Bytes(600),
        element: 4,
        exchange: None,
    };
    let gamma = TimePerByte::parse("0.5 ns/B").unwrap();
    let folding = Folding { gamma, overhead: ns(7) };
    // 5/6 x 600 x 0.5 = 250, with 1000 of sending and one alpha of each rank's 10/6 messages; one less for
    // rounding.
    let found = bound(&query, &postal, folding, GraphBound::NONE);
    assert_eq!(found.folding, ns(1300) - Time::from_ps(1));
    assert_eq!(found.at_least(), found.folding);
    // A small one ends with the reduction of an element.
    let small = Query { size: Bytes(4), ..query };
    assert_eq!(bound(&small, &postal, folding, GraphBound::NONE).folding, ns(54 + 7 + 2));
}

/// A ring of 8, 10 ns and 1 ns/B per link: the minimum distance is 10 ns, the maximum 40 ns.
#[test]
fn a_graph_adds_its_latencies_and_its_links() {
    let link = LinkParameters::new(TimePerByte::parse("1 ns/B").unwrap(), ns(10));
    let ring = tutti_topology::build("ring:8", &[link]).unwrap();
    let graph = GraphBound::through(&ring, Collective::AllReduce, 8, true);
    let per_byte = TimePerByte::new(7000, 8).unwrap();
    assert_eq!(
        graph,
        GraphBound { nearest: ns(10), farthest: ns(40), links: per_byte, ..GraphBound::NONE }
    );
    let postal = model("postal", &[("alpha", "3 ns"), ("beta", "0 ns/B")]);
    let query = Query {
        collective: Collective::AllReduce,
        ranks: 8,
        size: Bytes(800),
        element: 4,
        exchange: None,
    };
    let found = bound(&query, &postal, Folding::FREE, graph);
    assert_eq!((found.latency, found.links), (ns(43), ns(700)));
    let alone = GraphBound::through(&ring, Collective::AllReduce, 8, false);
    assert_eq!(bound(&query, &postal, Folding::FREE, alone).links, Time::ZERO);
    // Three rounds of 13 ns take less than the longest path; in a small ring they would not.
    let root = RankId(2);
    let three = GraphBound::through(&ring, Collective::Gather { root }, 4, false);
    assert_eq!((three.nearest, three.farthest), (ns(10), ns(20)));
}

/// With contention, LogGP's receiving port is the ejection port: bytes and the gap between messages overlap, and
/// a faster ejection port replaces it.
#[test]
fn ports_of_packets_replace_the_receiver_time_of_a_model() {
    let given = [("L", "9 ns"), ("o", "2 ns"), ("g", "3 ns"), ("G", "1 ns/B")];
    let loggp = model("loggp", &given);
    let packets = Packets::new(Bytes(100), Bytes(0), Bytes(100)).unwrap();
    let per_byte = |text| TimePerByte::parse(text).unwrap();
    let root = RankId(0);
    let on = |collective, packets: &Packets| {
        let graph =
            GraphBound::NONE.with_ports(Ports::of((packets.injection, packets.ejection), &loggp));
        let query = Query { collective, ranks: 6, size: Bytes(600), element: 4, exchange: None };
        bound(&query, &loggp, Folding::FREE, graph)
    };
    let gather = Collective::Gather { root };
    assert_eq!(on(gather, &packets).bandwidth, ns(13 + 499));
    // 500 bytes at 2 per ns, from the arrival of the first.
    let ejecting = packets.clone().with_ejection(per_byte("0.5 ns/B"));
    assert_eq!(on(gather, &ejecting).bandwidth, ns(13 + 250));
    let injecting = packets.clone().with_injection(per_byte("4 ns/B"));
    assert_eq!(on(Collective::Scatter { root }, &injecting).bandwidth, ns(13 + 2000));
    // A reduce's messages of an element are g apart, not g + 3 G: at 17, 20 and 23 two, three and four
    // have come to the root.
    let alone = Query {
        collective: Collective::Reduce { root },
        ranks: 4,
        size: Bytes(4),
        element: 4,
        exchange: None,
    };
    let met = GraphBound::NONE.with_ports(Ports::of((packets.injection, packets.ejection), &loggp));
    let latency = |graph| bound(&alone, &loggp, Folding::FREE, graph).latency;
    assert_eq!((latency(met), latency(GraphBound::NONE)), (ns(16 + 2 * 3), ns(16 + 2 * 6)));
}

#[test]
fn a_single_rank_takes_no_time() {
    let postal = model("postal", &[("alpha", "3 ns"), ("beta", "1 ns/B")]);
    assert_eq!(on(Collective::AllReduce, 1, 100, &postal).at_least(), Time::ZERO);
}

/// Rank 0 sends 100 B and 300 B, rank 1 sends 200 B to rank 2, which receives 500 B; blocks of ranks for
/// themselves do not count.
#[test]
fn the_busiest_sender_and_receiver_bound_unequal_blocks() {
    let blocks = Blocks::new(3, &[0, 100, 300, 0, 700, 200, 0, 0, 0]).unwrap();
    let schedule = build_blocks("pairwise", &blocks).unwrap();
    let layout = Layout::of_schedule(&*schedule, Bytes(900), 1).unwrap();
    let exchange = Exchange::of(&layout);
    let volumes = exchange.unwrap();
    assert_eq!((volumes.sends, volumes.receives), (Bytes(400), Bytes(500)));
    assert_eq!((volumes.all, volumes.fanout), (600, 2));
    let query = Query {
        collective: Collective::AllToAllV,
        ranks: 3,
        size: Bytes(900),
        element: 1,
        exchange,
    };
    let on = |model: &Model, graph| bound(&query, model, Folding::FREE, graph);
    let postal = model("postal", &[("alpha", "50 ns"), ("beta", "1 ns/B")]);
    let loggp = model("loggp", &[("L", "9 ns"), ("o", "2 ns"), ("g", "3 ns"), ("G", "1 ns/B")]);
    assert_eq!(on(&postal, GraphBound::NONE).bandwidth, ns(450));
    assert_eq!(on(&loggp, GraphBound::NONE).bandwidth, ns(13 + 499));
    // Two destinations, sequentially.
    assert_eq!(on(&postal, GraphBound::NONE).latency, ns(100));
    let link = LinkParameters::new(TimePerByte::parse("2 ns/B").unwrap(), ns(7));
    let star = tutti_topology::build("switch:3", &[link]).unwrap();
    let graph = GraphBound::through(&star, Collective::AllToAllV, 3, true);
    let graph = graph.with_blocks(&star, &layout, true);
    assert_eq!((on(&postal, graph).links, graph.farthest), (ns(1000), ns(14)));
    // Nothing to send, nothing to wait for.
    let alone = Query { exchange: Some(Exchange::default()), ..query };
    assert_eq!(bound(&alone, &postal, Folding::FREE, graph).at_least(), Time::ZERO);
}
