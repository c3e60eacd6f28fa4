//! When packets are generated: the law of a test in every cycle, rates, and what is refused.

use super::*;
use tutti_units::random::{random_bits, unit};

/// How far counts are from what is expected, and how far they may be: the mean of that sum is the
/// degrees of freedom, its deviation the root of twice as many; bound at five of those.
pub(super) fn chi_square(counts: &[u32], chances: &[f64]) -> (f64, f64) {
    let total: u32 = counts.iter().sum();
    let (mut sum, mut free) = (0.0, -1.0);
    for (&count, &chance) in counts.iter().zip(chances) {
        let expected = chance * f64::from(total);
        if chance <= 0.0 {
            assert_eq!(count, 0, "what cannot be was drawn");
            continue;
        }
        assert!(expected > 5.0, "too few draws for a test");
        sum += (f64::from(count) - expected).powi(2) / expected;
        free += 1.0;
    }
    (sum, free + 5.0 * libm::sqrt(2.0_f64 * free))
}

/// The same for two samples of the same size and one unknown law.
fn chi_square_of_two(one: &[u32], two: &[u32]) -> (f64, f64) {
    let (mut sum, mut free) = (0.0, -1.0);
    for (&one, &two) in one.iter().zip(two).filter(|(one, two)| **one + **two > 20) {
        sum += (f64::from(one) - f64::from(two)).powi(2) / f64::from(one + two);
        free += 1.0;
    }
    assert!(free > 1.0, "too few classes for a test");
    (sum, free + 5.0 * libm::sqrt(2.0 * free))
}

/// A test in every cycle, with a state where there are bursts: the obvious twin.
fn cycle_by_cycle(process: Process, nodes: u32, cycles: u64, seed: u64) -> Vec<Vec<u64>> {
    let node = |node: u32| {
        let mut number = 0;
        let mut happens = |chance: f64| {
            number += 1;
            // In (0, 1]: all of it for a chance of 1, nothing for 0.
            unit(random_bits(seed, [node, number, 0, 0])) <= chance
        };
        let mut on = happens(0.5);
        let mut packet = |_: &u64| match process {
            Process::Bernoulli { rate } => happens(rate),
            Process::OnOff { alpha, beta, r1 } => {
                on = if on { !happens(beta) } else { happens(alpha) };
                on && happens(r1)
            }
            Process::Periodic { .. } => unreachable!("nothing to draw"),
        };
        (0..cycles).filter(|cycle| packet(cycle)).collect()
    };
    (0..nodes).map(node).collect()
}

fn at_once(process: Process, nodes: u32, cycles: u64, seed: u64) -> Vec<Vec<u64>> {
    let mut arrivals = Arrivals::new(process, nodes, seed);
    let node = |node| {
        let mut packets = Vec::new();
        let mut from = 0;
        while let Some(cycle) = arrivals.next(node, from).filter(|cycle| *cycle < cycles) {
            assert!(cycle >= from);
            packets.push(cycle);
            from = cycle + 1;
        }
        packets
    };
    (0..nodes).map(node).collect()
}

/// How often there were so many cycles from one packet to the next; the last counts all beyond.
fn gaps(packets: &[Vec<u64>], most: usize) -> Vec<u32> {
    let mut counts = vec![0; most + 1];
    for gap in packets.iter().flat_map(|of| of.windows(2).map(|two| two[1] - two[0])) {
        counts[usize::try_from(gap).unwrap().min(most)] += 1;
    }
    counts
}

/// The distribution of packets in windows of 20 cycles, 100 cycles apart so that the windows are
/// nearly independent.
fn windows(packets: &[Vec<u64>], cycles: u64) -> Vec<u32> {
    let mut counts = vec![0; 21];
    for of in packets {
        for start in (0..cycles).step_by(100) {
            counts[of.iter().filter(|cycle| (start..start + 20).contains(*cycle)).count()] += 1;
        }
    }
    counts
}

fn on_off(rate: f64, alpha: f64, beta: f64) -> Process {
    Process::on_off(rate, Some(alpha), Some(beta), None).unwrap()
}

#[test]
fn drawn_gaps_have_the_distribution_of_a_trial_per_cycle() {
    for (rate, seed) in [(0.02, 1), (0.1, 2), (0.5, 3), (0.9, 4)] {
        let process = Process::bernoulli(rate).unwrap();
        let (fast, slow) =
            (at_once(process, 40, 5_000, seed), cycle_by_cycle(process, 40, 5_000, seed));
        let most = [60, 40, 10, 5][usize::try_from(seed).unwrap() - 1];
        let (sum, bound) = chi_square_of_two(&gaps(&fast, most), &gaps(&slow, most));
        assert!(sum < bound, "gaps at {rate}: {sum} of at most {bound}");
        let (sum, bound) = chi_square_of_two(&windows(&fast, 5_000), &windows(&slow, 5_000));
        assert!(sum < bound, "windows at {rate}: {sum} of at most {bound}");
    }
}

#[test]
fn gaps_of_a_bernoulli_process_are_geometric() {
    let p = 0.2;
    let packets = at_once(Process::bernoulli(p).unwrap(), 50, 10_000, 11);
    let counts = gaps(&packets, 25);
    let mut chances: Vec<f64> =
        (0..26).map(|gap| p * libm::pow(1.0 - p, f64::from(gap - 1))).collect();
    (chances[0], chances[25]) = (0.0, libm::pow(1.0 - p, 24.0));
    let (sum, bound) = chi_square(&counts, &chances);
    assert!(sum < bound, "{sum} of at most {bound}");
}

#[test]
fn drawn_bursts_have_the_distribution_of_a_trial_per_cycle() {
    let cases =
        [(0.1, 0.05, 0.1), (0.3, 0.2, 0.2), (0.25, 0.01, 0.02), (0.4, 1.0, 0.5), (0.09, 0.1, 1.0)];
    for ((rate, alpha, beta), seed) in cases.into_iter().zip(5..) {
        let process = on_off(rate, alpha, beta);
        let (fast, slow) =
            (at_once(process, 60, 6_000, seed), cycle_by_cycle(process, 60, 6_000, seed));
        let (sum, bound) = chi_square_of_two(&gaps(&fast, 40), &gaps(&slow, 40));
        assert!(sum < bound, "gaps of {process:?}: {sum} of at most {bound}");
        let (sum, bound) = chi_square_of_two(&windows(&fast, 6_000), &windows(&slow, 6_000));
        assert!(sum < bound, "windows of {process:?}: {sum} of at most {bound}");
    }
}

#[test]
fn rates_match_the_request() {
    // Bernoulli: of 10^6 cycles x 0.07, deviation sqrt(10^6 x 0.07 x 0.93) = 255.
    let count = |process| at_once(process, 100, 10_000, 3).iter().map(Vec::len).sum::<usize>();
    assert!(count(Process::bernoulli(0.07).unwrap()).abs_diff(70_000) < 5 * 255);
    // Bursts: with s = alpha + beta, the share of cycles on has a variance of about pi (1 - pi) (2
    // - s) / s per cycle. Here pi = 1/3, s = 0.3, r1 = 0.21: 0.0556 x 10^6 for r1^2 of it, and 0.07
    // x 0.79 x 10^6 for the packets: deviation 333.
    let bursts = on_off(0.07, 0.1, 0.2);
    assert!((bursts.rate() - 0.07).abs() < 1e-12);
    assert!(count(bursts).abs_diff(70_000) < 5 * 333, "{}", count(bursts));
}

#[test]
fn on_off_sources_start_in_either_state() {
    // On in cycle 0 with chance 1/2 (1 - beta) + 1/2 alpha = 0.575, and a packet in 0.6 of those:
    // 0.345 of 40 000 nodes, deviation 95. In both of the first two cycles: 0.345 x (1 - beta) 0.6
    // = 0.1449, deviation 70.
    let process = Process::on_off(0.2, None, Some(0.3), Some(0.6)).unwrap();
    let Process::OnOff { alpha, .. } = process else { unreachable!() };
    assert!((alpha - 0.15).abs() < 1e-12, "0.3 x 0.2 / (0.6 - 0.2)");
    let packets = at_once(process, 40_000, 2, 8);
    let first = packets.iter().filter(|of| of.first() == Some(&0)).count();
    let (on, both) = (0.5 * 0.7 + 0.5 * 0.15, packets.iter().filter(|of| of.len() == 2).count());
    assert!((f64::from(u32::try_from(first).unwrap()) - on * 0.6 * 4e4).abs() < 5.0 * 95.0);
    assert!(
        (f64::from(u32::try_from(both).unwrap()) - on * 0.6 * 0.7 * 0.6 * 4e4).abs() < 5.0 * 70.0
    );
}

#[test]
fn bursts_of_probability_one_never_end() {
    // On and off in turn: every other cycle, from 0 where a node was off before.
    for of in at_once(on_off(0.5, 1.0, 1.0), 20, 9, 1) {
        assert!(of == [0, 2, 4, 6, 8] || of == [1, 3, 5, 7], "{of:?}");
    }
    // Once on, always on.
    for of in at_once(Process::on_off(1.0, Some(0.2), Some(0.0), None).unwrap(), 20, 500, 1) {
        let first = of[0];
        assert!(of.into_iter().eq(first..500));
    }
    // Once off, always off; nodes that start on have a burst first.
    let silent = Process::on_off(0.0, None, Some(0.5), Some(1.0)).unwrap();
    let packets = at_once(silent, 40, 1_000_000, 1);
    assert!(packets.iter().any(Vec::is_empty) && packets.iter().any(|of| !of.is_empty()));
    assert!(packets.iter().all(|of| of.iter().copied().eq(0..u64::try_from(of.len()).unwrap())));
}

#[test]
fn the_ends_of_the_range_are_exact() {
    for process in
        [Process::bernoulli(1.0), Process::periodic(1.0, true), Process::periodic(1.0, false)]
    {
        let packets = at_once(process.unwrap(), 3, 50, 5);
        assert!(packets.iter().all(|of| of.iter().copied().eq(0..50)));
    }
    for process in
        [Process::bernoulli(0.0), Process::periodic(0.0, true), Process::bernoulli(1e-300)]
    {
        assert_eq!(Arrivals::new(process.unwrap(), 1, 5).next(0, 0), None);
    }
    // The largest draw is 53 ln 2 = 36.7 means.
    let rare = Arrivals::new(Process::bernoulli(1e-12).unwrap(), 9, 5).next(8, 0);
    assert!(rare.is_some_and(|cycle| cycle < 37_000_000_000_000));
}

#[test]
fn periodic_packets_are_generated_on_time() {
    let aligned = |rate| at_once(Process::periodic(rate, true).unwrap(), 2, 14, 0);
    assert_eq!(aligned(0.25), [[0, 4, 8, 12]; 2]);
    // 0, 3.33, 6.67, 10, 13.33.
    assert_eq!(aligned(0.3), [[0, 3, 6, 10, 13]; 2]);
    let apart = at_once(Process::periodic(0.3, false).unwrap(), 50, 1_000, 0);
    assert!(apart.iter().all(|of| of.len().abs_diff(300) <= 1));
    assert!(apart.iter().all(|of| of.windows(2).all(|two| (3..=4).contains(&(two[1] - two[0])))));
    let firsts: Vec<_> = (0..4).map(|c| apart.iter().filter(|of| of[0] == c).count()).collect();
    assert!(firsts[..3].iter().all(|&count| count > 5), "{firsts:?}");
}

#[test]
fn repeated_or_later_requests_change_nothing() {
    for process in [Process::bernoulli(0.3).unwrap(), on_off(0.2, 0.1, 0.1)] {
        let all = at_once(process, 3, 1_000, 9);
        let mut arrivals = Arrivals::new(process, 5, 9);
        // Nodes in another order, each polled at different cycles, twice.
        for node in [2, 0, 1] {
            for from in [0, 0, 1, 7, 7, 8, 200, 201, 640] {
                let of = &all[node as usize];
                let expected = of.iter().copied().find(|&cycle| cycle >= from);
                assert_eq!(
                    arrivals.next(node, from),
                    expected,
                    "{process:?} of {node} from {from}"
                );
            }
        }
        assert_ne!(all, at_once(process, 3, 1_000, 10), "another seed");
    }
}

#[test]
fn packets_of_a_seed_never_change() {
    // Computed apart from this code, in Python: floor(ln(u) / ln(0.9)) cycles without before each.
    let packets = at_once(Process::bernoulli(0.1).unwrap(), 6, 60, 2017);
    assert_eq!(packets[5], [8, 12, 30, 33, 59]);
    let sizes = PacketSize::parse("1,5/3,1").unwrap();
    let drawn: Vec<_> = (0..10).map(|serial| sizes.draw(2017, 5, serial)).collect();
    assert_eq!(drawn, [5, 5, 1, 1, 1, 1, 1, 5, 1, 5]);
}

#[test]
fn the_third_parameter_of_bursts_is_optional() {
    let parse = |text| Process::parse(text, 0.2).unwrap();
    assert_eq!(parse("bernoulli"), Process::Bernoulli { rate: 0.2 });
    assert_eq!(parse(" periodic"), Process::Periodic { rate: 0.2, aligned: false });
    assert_eq!(parse("periodic:aligned"), Process::Periodic { rate: 0.2, aligned: true });
    for text in ["on_off:alpha=0.1,beta=0.3", "on_off: r1=0.8, alpha=0.1", "on_off:beta=0.3,r1=0.8"]
    {
        let Process::OnOff { alpha, beta, r1 } = parse(text) else { panic!("{text}") };
        let far = [alpha - 0.1, beta - 0.3, r1 - 0.8].into_iter().any(|d| d.abs() > 1e-12);
        assert!(!far, "{text}: {alpha} {beta} {r1}");
    }
    // 1 x 0.3 / (0.6 - 0.3) is 1 and a little in floats.
    assert!(Process::parse("on_off:beta=1,r1=0.6", 0.3).is_ok());
}

#[test]
fn invalid_processes_are_rejected() {
    let message = |text, rate| Process::parse(text, rate).unwrap_err().to_string();
    assert_eq!(
        message("poisson", 0.2),
        "unknown injection process `poisson`: expected bernoulli, on_off:ALPHA..., periodic or \
         periodic:aligned"
    );
    for (rate, written) in [(1.5, "1.5"), (-0.1, "-0.1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")]
    {
        let refused = format!("a rate of {written} is refused: expected a number from 0 to 1");
        assert_eq!(message("bernoulli", rate), refused);
        assert_eq!(message("periodic", rate), refused);
        assert_eq!(message("on_off:alpha=1,beta=1", rate), refused);
    }
    assert_eq!(
        message("on_off:alpha=2,beta=1", 0.5),
        "alpha of 2 is refused: expected a number from 0 to 1"
    );
    for (text, given) in [("on_off", 0), ("on_off:r1=1", 1), ("on_off:alpha=1,beta=1,r1=1", 3)] {
        let sentence = format!(
            "on_off has {given} of alpha, beta and r1: expected two of them, the third follows from the \
             rate"
        );
        assert_eq!(message(text, 0.5), sentence);
    }
    for text in
        ["on_off:", "on_off:alpha", "on_off:gamma=1", "on_off:alpha=1,alpha=1", "on_off:r1=x"]
    {
        let form = "expected two of alpha, beta and r1, such as `on_off:alpha=0.1,r1=0.5`";
        assert_eq!(message(text, 0.5), format!("`{text}` cannot be read: {form}"));
    }
    assert_eq!(
        message("on_off:alpha=0.25,beta=0.75", 0.5),
        "on_off cannot generate 0.5 packets per cycle: r1 would have to be 2"
    );
    assert!(message("on_off:beta=0.25,r1=0.25", 0.5).contains("alpha would have to be -0.5"));
    assert_eq!(
        message("on_off:beta=0,r1=1", 0.5),
        "on_off with alpha and beta of 0 stays in its first state: expected one of them above 0"
    );
}
