//! The generator against published values, draws against their distributions, text round trips.

use super::normal::normal_quantile;
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
fn draws_of_a_seed_never_change() {
    // Computed independently in Python: Philox by its paper, then floor(bits x 2 000 001 / 2^64),
    // -ln(u) x 500 000 and floor(bits x 4 / 2^64) for counters (0,5,0,0), (1,5,7,0) and (2,5,7,1).
    let noise = |seed| Noise {
        seed,
        start_skew: parse("uniform(0 ns, 2 us)"),
        step: parse("exponential(500 ns)"),
        message: parse("recorded(1 ns, 2 ns, 3 ns, 4 ns)"),
        detours: None,
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
    let noise = |seed| {
        let (step, message) = (any.clone(), any.clone());
        Noise { seed, start_skew: any.clone(), step, message, detours: None }
    };
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
    let full = Distribution::uniform(Time::ZERO, Time::MAX).unwrap();
    assert_eq!(full.draw(u64::MAX), Time::MAX);
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
        "normal(1 us, 200 ns)",
        "lognormal(1 us, 0.5)",
        "pareto(1 us, 1.5)",
        "pareto(1 us, 1.5, 1 ms)",
        "mixture(0.01 exponential(10 us))",
        "mixture(0.25 fixed(1 us), 0.5 mixture(1 uniform(0 ps, 1 ns), 0 none))",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse(" uniform( 0 ns ,2 us ) "), parse("uniform(0 ps, 2 us)"));
}

#[test]
fn invalid_distributions_are_rejected_with_a_reason() {
    let error = |text: &str| Distribution::parse(text).unwrap_err().to_string();
    assert!(error("").starts_with("`` is not a distribution: expected one of none, fixed(1 us)"));
    assert!(error("1 us").starts_with("`1 us` is not a distribution"));
    assert!(error("500").starts_with("`500` is not a distribution"));
    assert!(error("fixed(1 us").starts_with("`fixed(1 us` is not a distribution"));
    assert!(error("fixed(fixed(1 us))").contains("is not a distribution"));
    assert!(error("gamma(1 us)").starts_with("unknown distribution `gamma`"));
    assert!(error("gamma").starts_with("unknown distribution `gamma`"));
    assert_eq!(error("fixed"), "`fixed` has 0 arguments: expected one, the duration");
    assert_eq!(
        error("uniform(1 us)"),
        "`uniform(1 us)` has 1 arguments: expected two, the minimum and the maximum"
    );
    assert_eq!(error("none(1 us)"), "`none(1 us)` has 1 arguments: expected no arguments");
    assert_eq!(
        error("uniform(2 us, 1 us)"),
        "the bounds of `uniform(2 us, 1 us)` are swapped: 2 us is more than 1 us"
    );
    assert!(error("fixed(1)").contains("`1` has no unit"));
    assert!(error("exponential(-1 us)").contains("is negative"));
    assert!(error("recorded(1 us, , 2 us)").contains("is not a time"));
    assert_eq!(
        error("recorded()"),
        "a recorded distribution has no samples: expected at least one"
    );
    assert_eq!(
        error("lognormal(1 us, -1)"),
        "`lognormal(1 us, -1)`: invalid argument `-1`: expected zero or more"
    );
    assert!(error("lognormal(1 us, 1 us)").contains("expected a number without a unit"));
    assert!(error("lognormal(1 us, NaN)").contains("invalid argument `NaN`"));
    assert!(error("pareto(1 us, 0)").contains("expected a shape above zero"));
    assert!(error("pareto(0 us, 1)").contains("expected a minimum above zero"));
    assert!(error("pareto(1 us, 1, 1 ns)").contains("1 us is more than 1 ns"));
    assert!(error("pareto(1 us)").contains("has 1 arguments: expected the minimum, the shape"));
    assert_eq!(error("mixture()"), "a mixture has no components: expected at least one");
    assert!(
        error("mixture(0.6 fixed(1 s), 0.5 none)").contains("probabilities that sum to at most 1")
    );
    assert!(
        error("mixture(2 fixed(1 s))")
            .contains("invalid argument `2`: expected a probability from 0 to 1")
    );
    assert!(error("mixture(0.5)").starts_with("`` is not a distribution"));
    assert!(error("mixture(fixed(1 s))").contains("expected a number without a unit"));
    assert!(error("mixture(0.1 fixed(1 s)").contains("is not a distribution"));
}

#[test]
fn distributions_without_noise_are_detected() {
    let silent =
        ["none", "fixed(0 ns)", "uniform(0 ns, 0 ns)", "exponential(0 s)", "recorded(0 s)"];
    assert!(silent.iter().all(|text| parse(text).is_none()));
    assert!(!parse("uniform(0 ns, 1 ps)").is_none());
    assert!(Noise::default().is_none());
    for text in
        ["normal(0 s, 0 s)", "lognormal(0 s, 1)", "mixture(1 none)", "mixture(0 fixed(1 s))"]
    {
        assert!(parse(text).is_none(), "{text}");
    }
    assert!(!parse("mixture(0.1 pareto(1 ps, 1))").is_none());
    assert!(!parse("normal(0 s, 1 ps)").is_none());
}

#[test]
fn normal_deviates_are_the_published_ones() {
    // The check values of AS 241, and a quantile in the far tail from Python's statistics.NormalDist.
    for (p, z) in [
        (0.25, -0.674_489_750_196_081_7),
        (0.001, -3.090_232_306_167_813),
        (1e-20, -9.262_340_089_798_408),
        (0.975, 1.959_963_984_540_054),
    ] {
        assert!((normal_quantile(p) - z).abs() < 1e-14 * z.abs(), "{p}: {}", normal_quantile(p));
    }
}

#[test]
fn skewed_and_heavy_draws_are_exact_at_known_points() {
    // u = 1/2 is the median; all bits set (u = 1) is the minimum.
    let half = (1 << 63) - 1;
    assert_eq!(parse("lognormal(1 us, 0.5)").draw(half), Time::from_ps(1_000_000));
    // Phi(1) of a standard normal deviate: exp(0.5); truncated at zero, see below.
    let above = 0.158_655_253_931_457_05_f64 * 2.0_f64.powi(64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^64")]
    let one_sigma = above as u64;
    assert_eq!(parse("lognormal(1 us, 0.5)").draw(one_sigma), Time::from_ps(1_648_721));
    assert_eq!(parse("normal(9 us, 1 us)").draw(one_sigma), Time::from_ps(10_000_000));
    assert_eq!(parse("normal(1 us, 0 s)").draw(3), Time::from_ps(1_000_000));
    // Half of the positive half: the quantile of 3/4, 0.6744898.
    assert_eq!(parse("normal(0 s, 1 us)").draw(half), Time::from_ps(674_490));
    assert_eq!(parse("normal(0 s, 1 us)").draw(u64::MAX), Time::ZERO);
    // (1/2)^(-1/2) = 1.414214; bounded at 2 us the chances 1/4 to 1: (5/8)^(-1/2) = 1.264911.
    assert_eq!(parse("pareto(1 us, 2)").draw(half), Time::from_ps(1_414_214));
    assert_eq!(parse("pareto(1 us, 2, 2 us)").draw(half), Time::from_ps(1_264_911));
    assert_eq!(parse("pareto(1 us, 2, 2 us)").draw(u64::MAX), Time::from_ps(1_000_000));
    assert!(parse("pareto(1 us, 2, 2 us)").draw(0) <= Time::from_ps(2_000_000));
    assert_eq!(parse("pareto(1 us, 0.01)").draw(0), Time::MAX);
}

#[test]
fn truncated_normal_draws_have_the_expected_mean() {
    // Mean of a normal deviate above -1: phi(1) / Phi(1) = 0.2875999709 sigma above the mean, sigma of
    // what is left 0.79357; five sigma of the mean of 100 000.
    let draws = draws(42, "normal(1 us, 1 us)");
    assert!((mean(&draws) - 1_287_600.0).abs() < 5.0 * 793_570.0 / 316.2, "mean {}", mean(&draws));
}

#[test]
fn heavy_tails_have_the_expected_weight() {
    // P(draw > 10 us) = 10^-1.5 = 0.03162; sigma of the share 0.000553; five.
    let draws = draws(42, "pareto(1 us, 1.5)");
    let tail = draws.iter().filter(|&&draw| draw > 10_000_000).count();
    assert!(tail.abs_diff(3_162) < 277, "{tail} beyond ten times the least");
    assert!(draws.iter().all(|&draw| draw >= 1_000_000));
}

#[test]
fn mixtures_draw_components_with_their_probabilities() {
    let draws = draws(42, "mixture(0.01 uniform(1 us, 2 us), 0.2 fixed(5 ns))");
    let rare: Vec<u64> = draws.iter().copied().filter(|&draw| draw >= 1_000_000).collect();
    // Binomial: sigma sqrt(100 000 x 0.01 x 0.99) = 31.5 and 126.5; five of each.
    assert!(rare.len().abs_diff(1_000) < 158, "{} rare ones", rare.len());
    let often = draws.iter().filter(|&&draw| draw == 5_000).count();
    assert!(often.abs_diff(20_000) < 633, "{often} frequent ones");
    assert_eq!(draws.iter().filter(|&&draw| draw == 0).count(), 100_000 - often - rare.len());
    // Draws within a component fill its range: mean 1.5 us, sigma 289 ns / sqrt(1000).
    assert!((mean(&rare) - 1.5e6).abs() < 5.0 * 9_130.0, "mean {}", mean(&rare));
}

#[test]
fn components_of_probability_one_leave_no_remainder() {
    let certain = parse("mixture(0.1 fixed(1 ps), 0.2 fixed(2 ps), 0.7 fixed(3 ps))");
    assert_eq!(certain.draw(0), Time::from_ps(1));
    assert_eq!(certain.draw(u64::MAX), Time::from_ps(3));
}

#[test]
fn ranks_have_random_phases_unless_aligned() {
    let detours = |aligned| {
        let (second, tick) = (Time::from_ps(1 << 40), Time::from_ps(1 << 39));
        Detours::periodic(second, tick, aligned).unwrap()
    };
    let noise = |aligned| Noise { seed: 3, detours: Some(detours(aligned)), ..Noise::default() };
    let after = |noise: &Noise, rank| noise.done(RankId(rank), Time::ZERO, Time::ZERO);
    let apart: Vec<_> = (0..1000).map(|rank| after(&noise(false), rank)).collect();
    // Half of all ranks start within a tick; binomial, sigma 15.8, five of those.
    let held = apart.iter().filter(|time| **time > Time::ZERO).count();
    assert!(held.abs_diff(500) < 80, "{held} start within a tick");
    let together = noise(true);
    assert!((0..1000).all(|rank| after(&together, rank) == after(&together, 0)));
}
