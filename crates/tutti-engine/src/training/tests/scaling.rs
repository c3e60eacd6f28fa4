//! A run with all times scaled by an integer takes that integer times as long, up to rounding.

use super::*;

fn times(rate: TimePerByte, by: u64) -> TimePerByte {
    let (ps, bytes) = rate.fraction();
    TimePerByte::new(ps * by, bytes).unwrap()
}

/// Rounds the time per byte to integer picoseconds.
fn rounded(rate: TimePerByte) -> TimePerByte {
    let (ps, bytes) = rate.fraction();
    TimePerByte::new(ps.div_ceil(bytes), 1).unwrap()
}

fn scaled_torus(torus: &Torus, rate: impl Fn(TimePerByte) -> TimePerByte, by: u64) -> Torus {
    let ring = |ring: &Ring| Ring {
        per_byte: rate(ring.per_byte),
        latency: ring.latency.times(by),
        ..*ring
    };
    Torus::new(torus.rings().iter().map(ring).collect()).unwrap()
}

fn scaled(endpoint: &Endpoint, rate: impl Fn(TimePerByte) -> TimePerByte, by: u64) -> Endpoint {
    let mut endpoint = endpoint.clone();
    endpoint.delay = endpoint.delay.times(by);
    for server in &mut endpoint.servers {
        server.service.per_byte = rate(server.service.per_byte);
    }
    endpoint
}

fn scaled_loop(plan: &TrainingLoop, by: u64) -> Program {
    let mut plan = plan.clone();
    for layer in &mut plan.layers {
        for time in [&mut layer.forward, &mut layer.input_gradient, &mut layer.weight_gradient] {
            *time = time.times(by);
        }
    }
    plan.program().unwrap()
}

/// Packets served by servers and links.
fn services(outcome: &TrainingOutcome) -> u64 {
    let npu = &outcome.npus[0];
    let servers = npu.servers.iter().map(|(_, used)| used.pieces);
    servers.sum::<u64>() + npu.links.iter().map(|(_, link)| link.pieces).sum::<u64>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With integer picoseconds per byte no time is rounded: scaling is exact for any overlap.
    #[test]
    fn integer_picoseconds_scale_exactly(
        nodes in prop::array::uniform3(1_u32..5),
        which in 0_u8..4,
        bytes in 1_u64..400_000,
        by in 2_u64..9,
    ) {
        prop_assume!(nodes.iter().any(|nodes| *nodes > 1));
        let torus = torus(nodes);
        let endpoint = scaled(&any_endpoint(&torus, which), rounded, 1);
        let torus = scaled_torus(&torus, rounded, 1);
        let mut plan = small_loop(2);
        plan.layers[1].after_weight_gradient =
            Some(Transfer::new(Collective::AllReduce, Bytes(bytes)));
        let single = fabric(torus.clone(), endpoint.clone(), Population::One);
        let once = run(&single, &scaled_loop(&plan, 1));
        let rate = |rate| times(rate, by);
        let (torus, endpoint) = (scaled_torus(&torus, rate, by), scaled(&endpoint, rate, by));
        let longer = run(&fabric(torus, endpoint, Population::One), &scaled_loop(&plan, by));
        prop_assert_eq!(longer.end, once.end.times(by));
    }

    /// Otherwise each service time is rounded up by less than a picosecond. A scaled run of a single
    /// chunk is therefore at most (factor - 1) ps per service earlier, and never later.
    #[test]
    fn a_single_chunk_scales_up_to_rounding_per_service(
        nodes in prop::array::uniform3(1_u32..5),
        which in 0_u8..4,
        bytes in 1_u64..(64 << 10),
        by in 2_u64..9,
    ) {
        prop_assume!(nodes.iter().any(|nodes| *nodes > 1));
        let torus = torus(nodes);
        let endpoint = any_endpoint(&torus, which);
        let mut plan = small_loop(1);
        plan.layers.truncate(1);
        plan.layers[0].after_weight_gradient =
            Some(Transfer::new(Collective::AllReduce, Bytes(bytes)));
        let single = fabric(torus.clone(), endpoint.clone(), Population::One);
        let once = run(&single, &scaled_loop(&plan, 1));
        let rate = |rate| times(rate, by);
        let (torus, endpoint) = (scaled_torus(&torus, rate, by), scaled(&endpoint, rate, by));
        let longer = run(&fabric(torus, endpoint, Population::One), &scaled_loop(&plan, by));
        let exact = once.end.times(by);
        let early = (by - 1) * services(&once);
        prop_assert!(longer.end <= exact, "{} > {}", longer.end, exact);
        let earliest = longer.end.ps() + early;
        prop_assert!(exact.ps() <= earliest, "{} - {} < {}", exact, early, longer.end);
    }
}
