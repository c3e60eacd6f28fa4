//! The generator against published values, draws against their distributions, texts both ways.

use super::*;

fn parse(text: &str) -> Distribution {
    Distribution::parse(text).unwrap()
}

/// Step noise of 1000 ranks in 100 steps.
fn draws(seed: u64, distribution: &str) -> Vec<u64> {
    let noise = Noise { seed, step: parse(distribution), ..Noise::default() };
    let rank = |r: u32| (0..100).map(move |step| (r, step));
    (0..1000).flat_map(rank).map(|(r, step)| noise.on_step(RankId(r), step).ps()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a sample mean")]
fn mean(draws: &[u64]) -> f64 {
    draws.iter().map(|&draw| draw as f64).sum::<f64>() / draws.len() as f64
}

#[test]
fn the_generator_is_philox_4x32_10() {
    // Known-answer tests of Random123 (kat_vectors).
    let ones = u32::MAX;
    for (counter, key, expected) in [
        ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ] {
        assert_eq!(philox_4x32_10(counter, key), expected);
    }
}

#[test]
fn a_seed_means_the_same_draws_for_ever() {
    // Computed apart from this code, in Python: Philox by its paper, then floor(bits x 2 000 001 / 2^64),
    // -ln(u) x 500 000 and floor(bits x 4 / 2^64) for counters (0,5,0,0), (1,5,7,0) and (2,5,7,1).
    let noise = |seed| Noise {
        seed,
        start_skew: parse("uniform(0 ns, 2 us)"),
        step: parse("exponential(500 ns)"),
        message: parse("recorded(1 ns, 2 ns, 3 ns, 4 ns)"),
    };
    let rank = RankId(5);
    assert_eq!(noise(2017).on_start(rank).ps(), 508_146);
    assert_eq!(noise(2017).on_step(rank, 7).ps(), 945_884);
    assert_eq!(noise(2017).on_message(rank, 7, 1).ps(), 2_000);
    assert_eq!(noise((1 << 40) + 3).on_start(rank).ps(), 891_892, "the seed's high half counts");
}

#[test]
fn draws_differ_by_seed_stream_rank_step_and_index() {
    let any = parse("uniform(0 s, 1 s)");
    let noise =
        |seed| Noise { seed, start_skew: any.clone(), step: any.clone(), message: any.clone() };
    let (a, b) = (noise(1), noise(2));
    let mut seen = vec![
        a.on_start(RankId(0)),
        b.on_start(RankId(0)),
        a.on_start(RankId(1)),
        a.on_step(RankId(0), 0),
        a.on_step(RankId(0), 1),
        a.on_message(RankId(0), 0, 0),
        a.on_message(RankId(0), 0, 1),
        a.on_message(RankId(0), 1, 0),
        a.on_message(RankId(1), 0, 0),
    ];
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn uniform_draws_fill_their_range_evenly() {
    // Mean of 100 000 draws: 1 us +- 2 us / sqrt(12 x 100 000) = 1.83 ns; bound at five of those.
    let draws = draws(42, "uniform(0 ns, 2 us)");
    assert!((mean(&draws) - 1e6).abs() < 5.0 * 1826.0, "mean {}", mean(&draws));
    assert!(draws.iter().all(|&draw| draw <= 2_000_000));
    for tenth in 0..10_u64 {
        let range = tenth * 200_000..(tenth + 1) * 200_000;
        let count = draws.iter().filter(|draw| range.contains(*draw)).count();
        // Binomial, sigma = sqrt(100 000 x 0.1 x 0.9) = 95; bound at five sigma.
        assert!(count.abs_diff(10_000) < 475, "tenth {tenth} has {count}");
    }
}

#[test]
fn uniform_draws_reach_both_ends() {
    let small = Distribution::uniform(Time::from_ps(3), Time::from_ps(5)).unwrap();
    assert_eq!(small.draw(0), Time::from_ps(3));
    assert_eq!(small.draw(u64::MAX), Time::from_ps(5));
    let whole = Distribution::uniform(Time::ZERO, Time::MAX).unwrap();
    assert_eq!(whole.draw(u64::MAX), Time::MAX);
}

#[test]
fn exponential_draws_have_their_mean_and_their_tail() {
    // Mean +- mean / sqrt(100 000); P(draw > 2 mean) = e^-2 = 0.1353, sigma 0.00108. Five sigma each.
    let draws = draws(42, "exponential(500 ns)");
    assert!((mean(&draws) - 5e5).abs() < 5.0 * 5e5 / 316.2, "mean {}", mean(&draws));
    let tail = draws.iter().filter(|&&draw| draw > 1_000_000).count();
    assert!(tail.abs_diff(13_534) < 540, "{tail} beyond twice the mean");
}

#[test]
fn exponential_draws_are_bounded_and_exact_at_known_points() {
    let unit = parse("exponential(1 us)");
    // u = 1 gives 0; u = 2^-53 gives 53 ln 2 = 36.7368 means; u = 1/2 gives ln 2 = 0.693147 means.
    assert_eq!(unit.draw(u64::MAX), Time::ZERO);
    assert_eq!(unit.draw(0), Time::from_ps(36_736_801));
    assert_eq!(unit.draw((1 << 63) - 1), Time::from_ps(693_147));
    assert_eq!(parse("exponential(9999999 s)").draw(0), Time::MAX);
}

#[test]
fn recorded_draws_take_every_sample_as_often() {
    let draws = draws(7, "recorded(1 ps, 20 ps, 300 ps, 20 ps)");
    for (sample, expected) in [(1, 25_000), (20, 50_000), (300, 25_000)] {
        let count = draws.iter().filter(|&&draw| draw == sample).count();
        assert!(count.abs_diff(expected) < 800, "{sample} ps came {count} times");
    }
}

#[test]
fn neighbouring_counters_and_seeds_are_uncorrelated() {
    let correlation = |a: &[u64], b: &[u64]| {
        let (mean_a, mean_b) = (mean(a), mean(b));
        #[expect(clippy::cast_precision_loss, reason = "a sample correlation")]
        let centred = |x: &[u64], m: f64| x.iter().map(|&v| v as f64 - m).collect::<Vec<_>>();
        let (a, b) = (centred(a, mean_a), centred(b, mean_b));
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(p, q)| p * q).sum::<f64>();
        dot(&a, &b) / libm::sqrt(dot(&a, &a) * dot(&b, &b))
    };
    let (a, b) = (draws(1, "uniform(0 s, 1 s)"), draws(2, "uniform(0 s, 1 s)"));
    // Sigma of the sample correlation is 1 / sqrt(100 000) = 0.0032; five of those.
    assert!(correlation(&a, &b).abs() < 0.016);
    assert!(correlation(&a[1..], &a[..a.len() - 1]).abs() < 0.016);
}

#[test]
fn distributions_read_back_what_they_print() {
    for text in [
        "none",
        "fixed(1 us)",
        "uniform(0 ps, 2 us)",
        "exponential(500 ns)",
        "recorded(1 us, 2.5 us, 0 ps)",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse(" uniform( 0 ns ,2 us ) "), parse("uniform(0 ps, 2 us)"));
}

#[test]
fn what_is_no_distribution_is_refused_with_a_reason() {
    let says = |text: &str| Distribution::parse(text).unwrap_err().to_string();
    assert!(says("").starts_with("`` is no distribution: expected one of none, fixed(1 us)"));
    assert!(says("1 us").starts_with("`1 us` is no distribution"));
    assert!(says("500").starts_with("`500` is no distribution"));
    assert!(says("fixed(1 us").starts_with("`fixed(1 us` is no distribution"));
    assert!(says("fixed(fixed(1 us))").contains("is no distribution"));
    assert!(says("normal(1 us)").starts_with("there is no distribution `normal`"));
    assert!(says("normal").starts_with("there is no distribution `normal`"));
    assert_eq!(says("fixed"), "`fixed` has 0 arguments: expected one, the time");
    assert_eq!(
        says("uniform(1 us)"),
        "`uniform(1 us)` has 1 arguments: expected two, the least and the most"
    );
    assert_eq!(says("none(1 us)"), "`none(1 us)` has 1 arguments: expected none at all");
    assert_eq!(
        says("uniform(2 us, 1 us)"),
        "`uniform(2 us, 1 us)` begins after it ends: 2 us is more than 1 us"
    );
    assert!(says("fixed(1)").contains("`1` has no unit"));
    assert!(says("exponential(-1 us)").contains("is negative"));
    assert!(says("recorded(1 us, , 2 us)").contains("is not a time"));
    assert_eq!(says("recorded()"), "a recorded distribution has at least one sample");
}

#[test]
fn silence_is_known_as_such() {
    let silent =
        ["none", "fixed(0 ns)", "uniform(0 ns, 0 ns)", "exponential(0 s)", "recorded(0 s)"];
    assert!(silent.iter().all(|text| parse(text).is_none()));
    assert!(!parse("uniform(0 ns, 1 ps)").is_none());
    assert!(Noise::default().is_none());
    assert_eq!(parse("uniform(1 us, 2 us)").mean_ps().to_string(), "1500000");
}
