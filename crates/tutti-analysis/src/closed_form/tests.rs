//! The formulas against published numbers, and against ranks in lockstep on the models themselves.

use proptest::prelude::*;

use super::*;
use tutti_network::{MessageModel, Port, build};
use tutti_units::TimePerByte;

fn ns(ns: u64) -> Time {
    Time::from_ps(ns * 1000)
}

fn exchange(messages: u32) -> Stage {
    Stage { messages, receives: messages, chunks: 1, reductions: messages, of: 1 }
}

fn free(_: u32, _: Bytes) -> Time {
    Time::ZERO
}

#[test]
fn all_reduces_take_the_times_of_the_paper_s_model() {
    // Table 1, minimum: 1.34 + b 0.34 us per stage. N = 32: a8,a4 against five stages of doubling.
    let given = [("alpha_p", "1.34 us"), ("alpha_r", "0.34 us")];
    let model = build("pipelining_postal", &given).unwrap();
    let at = |stages: &[u32]| {
        let stages: Vec<Stage> = stages.iter().map(|b| exchange(b - 1)).collect();
        time(&model, &stages, Bytes(8), 8, free).unwrap()
    };
    assert_eq!(at(&[8, 4]), ns(1340 + 7 * 340 + 1340 + 3 * 340));
    assert_eq!(at(&[8, 4]), ns(6080));
    assert_eq!(at(&[2; 5]), ns(8400));
    assert_eq!((at(&[4]), at(&[6]), at(&[8, 8])), (ns(2360), ns(3040), ns(7440)));
}

#[test]
fn folds_and_bytes_are_charged_per_stage() {
    // Figs 18-23: 500 + 100 b ns, 0.4 ns/B x 8 B per message, 10 ns per fold of one.
    let given = [("alpha_p", "500 ns"), ("alpha_r", "100 ns"), ("beta", "0.4 ns/B")];
    let model = build("pipelining_postal", &given).unwrap();
    let fold = |operands: u32, _| ns(10).times(u64::from(operands - 1));
    let total = time(&model, &[exchange(1); 3], Bytes(8), 8, fold).unwrap();
    assert_eq!(total.ps(), 3 * (500_000 + 103_200 + 10_000));
    let total = time(&model, &[exchange(7)], Bytes(8), 8, fold).unwrap();
    assert_eq!(total.ps(), 500_000 + 7 * 103_200 + 70_000);
}

#[test]
fn chunks_that_split_elements_have_no_closed_form() {
    let model = build("postal", &[("alpha", "1 us"), ("beta", "1 ns/B")]).unwrap();
    let eighth = Stage { of: 8, ..exchange(1) };
    let at = |size, element| time(&model, &[eighth], Bytes(size), element, free);
    assert_eq!(at(64, 8), Some(ns(1008)));
    assert_eq!(at(64, 4), Some(ns(1008)));
    assert_eq!(at(56, 8), None);
    assert_eq!(at(63, 8), None);
    assert_eq!(at(64, 0), None);
    assert_eq!(at(0, 8), Some(ns(1000)));
}

#[test]
fn a_gap_that_outlasts_a_stage_has_no_closed_form() {
    let with = |g| build("logp", &[("L", "1 us"), ("o", "1 us"), ("g", g)]).unwrap();
    let two = [exchange(1); 2];
    assert_eq!(time(&with("3 us"), &two, Bytes(8), 8, free), Some(ns(6000)));
    assert_eq!(time(&with("3.001 us"), &two, Bytes(8), 8, free), None);
    assert_eq!(time(&with("3.001 us"), &two[..1], Bytes(8), 8, free), Some(ns(3000)));
}

/// What one rank of many in lockstep does in a stage, on the model itself.
fn in_lockstep(model: &Model, m: u32, k: u32, n: Bytes) -> Time {
    let (mut sender, mut now) = (Port::default(), Time::ZERO);
    let arrivals: Vec<Time> = (0..m)
        .map(|_| {
            let sent = model.send(&mut sender, now, n);
            now = sent.free;
            sent.arrival
        })
        .collect();
    let (mut port, mut now, arrivals) = match (m, k) {
        (m, k) if m == k => (sender, now, arrivals),
        (_, 1) => (Port::default(), Time::ZERO, vec![arrivals[arrivals.len() - 1]]),
        (1, k) => (Port::default(), Time::ZERO, vec![arrivals[0]; k as usize]),
        _ => unreachable!("neither exchange, fan-out nor fan-in"),
    };
    for arrival in arrivals {
        now = model.receive(&mut port, now, arrival, n);
    }
    now
}

/// Protocols that switch at a few bytes; without segments above `eager_limit` at some values.
fn protocols([a, b, c, d]: [Time; 4], rate: TimePerByte, count: u32) -> Protocols {
    let more = TimePerByte::new(u64::from(count), 3);
    Protocols {
        eager_limit: Bytes(u64::from(count) * 9),
        alpha_p: a,
        alpha_r: b,
        beta: rate,
        alpha_p_rendezvous: (count > 2).then_some(c),
        alpha_r_rendezvous: (count > 3).then_some(d),
        beta_rendezvous: more.filter(|_| count.is_multiple_of(2)),
        beta_long: more.filter(|_| count.is_multiple_of(3)),
        long_from: count.is_multiple_of(3).then_some(Bytes(u64::from(count) * 13)),
    }
}

fn a_model() -> impl Strategy<Value = Model> {
    let time = || (0_u64..5000).prop_map(Time::from_ps);
    let rate = (0_u64..50, 1_u64..8).prop_map(|(ps, bytes)| TimePerByte::new(ps, bytes).unwrap());
    (0..7, [time(), time(), time(), time(), time()], rate, 1_u32..12).prop_filter_map(
        "takes no time, or a later message costs more",
        |(which, [a, b, c, d, e], rate, count)| {
            use tutti_network::{LogP, PipeliningPostal, Postal};
            let model = match which {
                0 => Postal { alpha: a, beta: rate }.checked().map(Model::Postal),
                1 => PipeliningPostal { alpha_p: a, alpha_r: b, beta: rate }
                    .checked()
                    .map(Model::PipeliningPostal),
                2 => LogP { L: a, o: b, g: c }.checked().map(Model::LogP),
                3 => LogGP { L: a, o: b, g: c, G: rate }.checked().map(Model::LogGP),
                4 => LogfP { L: a, o: b, g: c, f: count }.checked().map(Model::LogfP),
                5 => protocols([a, b, c, d], rate, count).checked().map(Model::Protocols),
                _ => LoP {
                    L: a,
                    o_first: b.max(c),
                    o_next: b.min(c),
                    processing: d,
                    saturation: e,
                    knee: count,
                }
                .checked()
                .map(Model::LoP),
            };
            model.ok()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_stage_is_what_a_rank_in_lockstep_takes(
        model in a_model(), count in 1_u32..24, bytes in 0_u64..200,
    ) {
        for (m, k) in [(count, count), (count, 1), (1, count)] {
            prop_assert_eq!(
                stage_time(&model, m, k, Bytes(bytes)),
                in_lockstep(&model, m, k, Bytes(bytes)),
                "{:?} with {} sent and {} taken", model, m, k
            );
        }
    }

    #[test]
    fn lambert_w_inverts_its_definition(x in -0.36_f64..1e6) {
        let w = lambert_w0(x).unwrap();
        prop_assert!((w * w.exp() - x).abs() <= 1e-14 * x.abs().max(0.1), "W({x}) = {w}");
    }
}

#[test]
fn lambert_w_takes_its_known_values() {
    let near = |x: f64, expected: f64| {
        let w = lambert_w0(x).unwrap();
        assert!((w - expected).abs() <= 4.0 * f64::EPSILON * expected.abs(), "W({x}) = {w}");
    };
    near(0.0, 0.0);
    near(std::f64::consts::E, 1.0);
    near(1.0, 0.567_143_290_409_784);
    near(2.0 * libm::exp(2.0), 2.0);
    near(100.0 * libm::exp(100.0), 100.0);
    near(-0.5 * libm::exp(-0.5), -0.5);
    let branch_point = lambert_w0(-1.0 / std::f64::consts::E).unwrap();
    assert!((branch_point + 1.0).abs() < 1e-7);
    assert_eq!(lambert_w0(-0.4), None);
    assert_eq!(lambert_w0(f64::NAN), None);
    assert_eq!(lambert_w0(f64::INFINITY), Some(f64::INFINITY));
}

#[test]
fn b_opt_is_what_the_paper_draws_and_is_the_minimum() {
    let at = |ratio: u64| b_opt(ns(ratio), ns(1)).unwrap();
    // Ratio 1: W(0) = 0, so e - 1. Ratio 4: 3.97.
    assert!((at(1) - (std::f64::consts::E - 1.0)).abs() < 1e-14);
    assert!((at(4) - 3.97).abs() < 0.005, "{}", at(4));
    assert!(b_opt(ns(0), ns(1)).unwrap().abs() < 1e-7);
    assert_eq!(b_opt(ns(1), ns(0)), None);
    for ratio in [1, 2, 4, 10, 50] {
        let best = at(ratio);
        let time = |b| time_of_uniform_stages(ns(ratio), ns(1), b, 1024.0);
        assert!(time(best) <= time(best * 1.001) && time(best) <= time(best * 0.999));
        // At the minimum (b + 1) ln(b + 1) - (b + 1) + 1 = ratio, from setting the derivative to zero.
        let base = best + 1.0;
        #[expect(clippy::cast_precision_loss, reason = "a small ratio")]
        let error = base * base.ln() - base + 1.0 - ratio as f64;
        assert!(error.abs() < 1e-12 * base, "ratio {ratio}: {error}");
    }
}

#[test]
fn uniform_stages_agree_with_integer_stages() {
    // N = 64 as two stages of b = 7 at alpha_p 1 us, alpha_r 0.25 us (Fig. 4): 2 x 2.75 us.
    let time = time_of_uniform_stages(ns(1000), ns(250), 7.0, 64.0);
    assert!((time - 5_500_000.0).abs() < 1e-6);
}
