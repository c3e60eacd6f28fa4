//! Bounds on how much slower an ideal endpoint can be than another; see `docs/models/training-anomalies.md`.
//!
//! An ideal endpoint handles a packet in a cycle; other endpoints take only the time of their
//! servers. Its links serve the oldest chunk first, which is not optimal for every collective. No
//! simple order is.

use super::*;

const CYCLE: u64 = 803;

/// Links with integer picoseconds per byte, so that no time is rounded.
fn torus_with(nodes: [u32; 3], latency: u64) -> Torus {
    let ring = |nodes, per_byte, ps| Ring {
        nodes,
        per_byte: TimePerByte::new(per_byte, 1).unwrap(),
        latency: Time::from_ps(ps),
    };
    let [local, vertical, horizontal] = nodes;
    let rings =
        [ring(local, 5, 72_289), ring(vertical, 40, latency), ring(horizontal, 40, latency)];
    Torus::new(rings.to_vec()).unwrap()
}

/// The sequential hops of a chunk, and their total latency: N - 1 steps of a reduce_scatter or an
/// all_gather on a ring, twice as many of an all_reduce.
fn hops(torus: &Torus, collective: Collective) -> (u64, u64) {
    let times = if collective == Collective::AllReduce { 2 } else { 1 };
    let steps = |ring: &Ring| times * u64::from(ring.nodes - 1);
    let hops = torus.rings().iter().map(steps).sum();
    (hops, torus.rings().iter().map(|ring| steps(ring) * ring.latency.ps()).sum())
}

/// The ring of each phase of an all_reduce: the innermost twice.
fn phases(torus: &Torus) -> Vec<usize> {
    let live = (0..3).filter(|&ring| torus.rings()[ring].nodes > 1);
    let mut rings: Vec<usize> = live.collect();
    if rings.len() > 1 {
        rings.push(rings[0]);
    }
    rings
}

fn end(torus: &Torus, endpoint: Endpoint, program: &Program) -> u64 {
    run(&fabric(torus.clone(), endpoint, Population::One), program).end.ps()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With one chunk the order has no effect: an ideal endpoint is at most a cycle per hop slower.
    #[test]
    fn one_chunk_is_at_most_a_cycle_per_hop_slower(
        nodes in prop::array::uniform3(1_u32..5),
        which in 1_u8..4,
        latency in prop::sample::select(vec![1_000_u64, 50_000, 424_000]),
        collective in prop::sample::select(vec![
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
        ]),
        bytes in 1_u64..(64 << 10),
    ) {
        prop_assume!(nodes.iter().any(|nodes| *nodes > 1));
        let torus = torus_with(nodes, latency);
        let program = alone(collective, bytes);
        let other = end(&torus, any_endpoint(&torus, which), &program);
        let best = end(&torus, ideal(), &program);
        let cycles = CYCLE * hops(&torus, collective).0;
        prop_assert!(best <= other + cycles, "{} > {} + {}", best, other, cycles);
    }

    /// With several chunks, the link of a waiting packet is busy: an ideal endpoint takes at most
    /// the sum of the busy times of the links that a chunk crosses, and its hops. Every endpoint
    /// takes at least each of these, so with p phases the ideal one takes at most p + 1 times as
    /// long, plus a cycle per hop.
    #[test]
    fn several_chunks_take_at_most_link_work_and_hops(
        nodes in prop::array::uniform3(1_u32..5),
        which in 1_u8..4,
        latency in prop::sample::select(vec![1_000_u64, 50_000, 424_000]),
        bytes in 1_u64..(16 * (64 << 10)),
    ) {
        prop_assume!(nodes.iter().any(|nodes| *nodes > 1));
        let torus = torus_with(nodes, latency);
        let program = alone(Collective::AllReduce, bytes);
        let best = end(&torus, ideal(), &program) - 1;
        let alone = fabric(torus.clone(), ideal(), Population::One);
        let links = alone.limit(Transfer::new(Collective::AllReduce, Bytes(bytes))).unwrap().links;
        let phases = phases(&torus);
        let busiest = |&ring: &usize| links[2 * ring..][..2].iter().max().unwrap().ps();
        let work: u64 = phases.iter().map(busiest).sum();
        let (hops, latencies) = hops(&torus, Collective::AllReduce);
        let most = work + latencies + CYCLE * hops;
        prop_assert!(best <= most, "{} > {}", best, most);
        let other = end(&torus, any_endpoint(&torus, which), &program) - 1;
        let times = phases.len() as u64 + 1;
        prop_assert!(best <= times * other + CYCLE * hops);
    }
}

/// A ring of two NPUs with links of 5 ps per byte.
fn two(latency: u64) -> Torus {
    let (per_byte, latency) = (TimePerByte::new(5, 1).unwrap(), Time::from_ps(latency));
    Torus::new(vec![Ring { nodes: 2, per_byte, latency }]).unwrap()
}

/// The example of `docs/models/training-anomalies.md`: five chunks, three of them in one direction. With
/// links of 424 ns the oldest returns before the third has left, and overtakes it: the third then
/// crosses the ring twice alone. FIFO order avoids this. So do links of higher latency, with which
/// the run therefore completes earlier.
#[test]
fn oldest_first_is_not_always_optimal() {
    let (program, part) = (alone(Collective::AllReduce, 5 << 16), (32 << 10) * 5);
    let packet = 256 * 5;
    let oldest_first = Ideal { packet: Bytes(256), cycle: Time::ZERO, chunks: Chunks::default() };
    let oldest_first = oldest_first.endpoint().unwrap();
    // Oldest first: chunk 0 returns after 425,280 ps, and chunk 4 has sent 77 of its 128 packets,
    // including the one in transmission. The other 51 wait for chunks 0 and 2, and then cross the
    // ring twice.
    let found = end(&two(424_000), oldest_first.clone(), &program);
    assert_eq!(found, 1 + 5 * part + 424_000 + packet + 424_000);
    // In FIFO order the link is never idle: three parts out and three back, plus the latency of the
    // last.
    let mut in_turn = oldest_first.clone();
    in_turn.port = None;
    assert_eq!(end(&two(424_000), in_turn, &program), 1 + 6 * part + 424_000);
    // Chunk 0 comes back when all three have left: three parts back, from when its first packet is
    // there.
    let latency = 3 * part;
    let longer = end(&two(latency), oldest_first, &program);
    assert_eq!(longer, 1 + packet + latency + 3 * part + latency);
    assert!(longer < found);
}
