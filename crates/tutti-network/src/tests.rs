//! The models against the arithmetic of their papers, and the registry against the models.

use proptest::prelude::*;
use tutti_units::TimePerByte;

use super::*;

fn model(name: &str, given: &[(&str, &str)]) -> Model {
    build(name, given).unwrap()
}

fn ns(ns: u64) -> Time {
    Time::from_ps(ns * 1000)
}

/// One model of each kind, with values that all differ.
fn one_of_each() -> Vec<Model> {
    let logp = [("L", "2500 ns"), ("o", "1500 ns"), ("g", "1700 ns")];
    let with = |extra| [&logp[..], &[extra]].concat();
    let lop = [
        ("L", "900 ns"),
        ("o_first", "300 ns"),
        ("o_next", "100 ns"),
        ("processing", "150 ns"),
        ("saturation", "250 ns"),
        ("knee", "4"),
    ];
    vec![
        model("postal", &[("alpha", "1 us"), ("beta", "0.4 ns/B")]),
        model("pipelining_postal", &[("alpha_p", "1.34 us"), ("alpha_r", "0.34 us")]),
        model("logp", &logp),
        model("lop", &lop),
        model("logfp", &with(("f", "3"))),
        model("loggp", &with(("G", "6 ns/B"))),
        model("protocols", PROTOCOLS),
    ]
}

/// Eager up to 100 B, and long from 1000 B.
const PROTOCOLS: &[(&str, &str)] = &[
    ("eager_limit", "100 B"),
    ("alpha_p", "500 ns"),
    ("alpha_r", "100 ns"),
    ("beta", "0.4 ns/B"),
    ("alpha_p_rendezvous", "1500 ns"),
    ("alpha_r_rendezvous", "50 ns"),
    ("beta_rendezvous", "0.2 ns/B"),
    ("beta_long", "0.3 ns/B"),
    ("long_from", "1 KB"),
];

/// When `count` messages sent from time zero are issued, and when each arrives.
fn burst(model: &impl MessageModel, count: u32, bytes: u64) -> (Time, Vec<Time>) {
    let (mut port, mut now, mut arrivals) = (Port::default(), Time::ZERO, Vec::new());
    for _ in 0..count {
        let sent = model.send(&mut port, now, Bytes(bytes));
        now = sent.free;
        arrivals.push(sent.arrival);
    }
    (now, arrivals)
}

#[test]
fn postal_sends_one_message_at_a_time() {
    // alpha + n beta = 1 us + 10 x 0.4 ns = 1004 ns, and nothing overlaps.
    let postal = model("postal", &[("alpha", "1 us"), ("beta", "0.4 ns/B")]);
    let (free, arrivals) = burst(&postal, 3, 10);
    assert_eq!(arrivals, [ns(1004), ns(2008), ns(3012)]);
    assert_eq!(free, ns(3012));
}

#[test]
fn pipelining_postal_overlaps_alpha_p_alone() {
    // Eq. (3): b messages have arrived at alpha_p + b (alpha_r + n beta) = 500 + b (100 + 8 x 0.4) ns.
    let given = [("alpha_p", "500 ns"), ("alpha_r", "100 ns"), ("beta", "0.4 ns/B")];
    let (free, arrivals) = burst(&model("pipelining_postal", &given), 7, 8);
    for (i, arrival) in (1..).zip(arrivals) {
        assert_eq!(arrival.ps(), 500_000 + i * 103_200);
    }
    assert_eq!(free.ps(), 7 * 103_200);
}

#[test]
fn protocols_depend_on_the_size() {
    let protocols = model("protocols", PROTOCOLS);
    // From the last eager message to the first rendezvous one, and from there to the first long one.
    for (bytes, alpha_p, issue) in [
        (0, 500_000, 100_000),
        (100, 500_000, 100_000 + 40_000),
        (101, 1_500_000, 50_000 + 20_200),
        (999, 1_500_000, 50_000 + 199_800),
        (1000, 1_500_000, 50_000 + 300_000),
    ] {
        let (free, arrivals) = burst(&protocols, 3, bytes);
        let expected = [1, 2, 3].map(|i| Time::from_ps(alpha_p + i * issue));
        assert_eq!((free.ps(), arrivals), (3 * issue, expected.to_vec()), "{bytes} B");
    }
    // Absent parameters are the eager ones.
    let plain = [&PROTOCOLS[..4], &[("alpha_p_rendezvous", "600 ns")]].concat();
    let (free, arrivals) = burst(&model("protocols", &plain), 1, 101);
    assert_eq!((free.ps(), arrivals[0].ps()), (140_400, 740_400));
}

#[test]
fn the_serialization_of_protocols_depends_on_the_message() {
    let all = model("protocols", PROTOCOLS).serialization();
    let times = [100, 101, 999, 1000].map(|bytes| all.of(Bytes(bytes)).ps());
    assert_eq!(times, [40_000, 20_200, 199_800, 300_000]);
    // The first 100 B of a long message leave at its rate, and a port is as fast as its fastest messages.
    assert_eq!(all.first(Bytes(100), Bytes(1000)).ps(), 30_000);
    assert_eq!(all.per_byte(), TimePerByte::parse("0.2 ns/B").unwrap());
}

#[test]
fn invalid_protocols_are_rejected_with_a_reason() {
    let error = |name: &str, text: Option<&'static str>| {
        let others = PROTOCOLS.iter().copied().filter(|(other, _)| *other != name);
        let given: Vec<_> = others.chain(text.map(|text| (name, text))).collect();
        build("protocols", &given).unwrap_err().to_string()
    };
    assert!(
        error("eager_limit", Some("0 B")).contains("`eager_limit` is 0: expected at least 1 B")
    );
    let order = "`long_from` is 100: expected more than `eager_limit` (100 B)";
    assert_eq!(error("long_from", Some("100 B")), order);
    assert!(error("long_from", None).contains("needs `long_from`, a size"));
    assert!(error("beta_long", None).contains("needs `beta_long`, a time per byte"));
    let shorter = "a message of 101 B would take 590.2 ns in protocols, and a shorter one of 100 B would \
                   take 640 ns: expected times that do not decrease with the size";
    assert_eq!(error("alpha_p_rendezvous", Some("520 ns")), shorter);
    assert!(
        error("beta_long", Some("0.1 ns/B")).contains("a message of 1000 B would take 1.65 us")
    );
}

#[test]
fn loggp_exchange_matches_loggopsim() {
    // 2 o + L + 7 G = 3000 + 2500 + 42 ns.
    let given = [("L", "2500 ns"), ("o", "1500 ns"), ("g", "1000 ns"), ("G", "6 ns/B")];
    let loggp = model("loggp", &given);
    let mut port = Port::default();
    let sent = loggp.send(&mut port, Time::ZERO, Bytes(8));
    assert_eq!((sent.free, sent.arrival), (ns(1500), ns(4042)));
    assert_eq!(port.send_free, ns(1042));
    assert_eq!(loggp.receive(&mut port, sent.free, sent.arrival, Bytes(8)), ns(5542));
}

#[test]
fn loggp_spaces_long_messages_by_their_length_at_both_ends() {
    // g + (n - 1) G = 1000 + 999 x 6 = 6994 ns between starts; (n - 1) G + o + L = 9994 ns in flight.
    let given = [("L", "2500 ns"), ("o", "1500 ns"), ("g", "1000 ns"), ("G", "6 ns/B")];
    let loggp = model("loggp", &given);
    let (free, arrivals) = burst(&loggp, 3, 1000);
    assert_eq!(arrivals, [ns(9994), ns(16988), ns(23982)]);
    assert_eq!(free, ns(2 * 6994 + 1500));
    // Two messages that arrive simultaneously are received as far apart.
    let mut port = Port::default();
    let first = loggp.receive(&mut port, Time::ZERO, ns(9994), Bytes(1000));
    let second = loggp.receive(&mut port, first, ns(9994), Bytes(1000));
    assert_eq!((first, second), (ns(11494), ns(9994 + 6994 + 1500)));
}

#[test]
fn logp_ignores_bytes_and_is_loggp_without_g_per_byte() {
    let given = [("L", "2500 ns"), ("o", "1500 ns"), ("g", "1700 ns")];
    let logp = model("logp", &given);
    let loggp = model("loggp", &[&given[..], &[("G", "0 ns/B")]].concat());
    for bytes in [0, 1, 8, 1 << 20] {
        assert_eq!(burst(&logp, 4, bytes), burst(&loggp, 4, bytes));
        assert_eq!(burst(&logp, 4, bytes).1[3], ns(3 * 1700 + 1500 + 2500));
    }
}

#[test]
fn logfp_exempts_the_first_f_of_a_burst_from_the_gap() {
    // Starts at 0, 100, 200 (f = 3, o apart), then g = 400 apart: 600, 1000; each arrives o + L later.
    let given = [("L", "1000 ns"), ("o", "100 ns"), ("g", "400 ns"), ("f", "3")];
    let logfp = model("logfp", &given);
    let (free, arrivals) = burst(&logfp, 5, 8);
    assert_eq!(arrivals, [1100, 1200, 1300, 1700, 2100].map(ns));
    assert_eq!(free, ns(1100));
    // The receiver has the same gaps between five messages that arrive simultaneously.
    let (mut port, mut now, mut held) = (Port::default(), Time::ZERO, Vec::new());
    for _ in 0..5 {
        now = logfp.receive(&mut port, now, Time::ZERO, Bytes(8));
        held.push(now);
    }
    assert_eq!(held, [100, 200, 300, 700, 1100].map(ns));
    // A new step starts a new burst.
    port.start_burst();
    assert_eq!(logfp.send(&mut port, now, Bytes(8)).free, ns(1200));
}

#[test]
fn lop_time_per_message_is_least_at_the_knee() {
    let (_, arrivals) = burst(&one_of_each()[3], 12, 8);
    // o_first + p processing + L while the adapter is the bottleneck, + saturation beyond the knee.
    assert_eq!(arrivals[0], ns(300 + 150 + 900));
    assert_eq!(arrivals[3], ns(300 + 4 * 150 + 900));
    assert_eq!(arrivals[5], ns(300 + 6 * 150 + 2 * 250 + 900));
    let per_message: Vec<u64> = (1..).zip(&arrivals).map(|(p, at)| at.ps() / p).collect();
    assert!(per_message[..4].is_sorted_by(|a, b| a > b), "falls to the knee: {per_message:?}");
    let knee = [("L", "100 ns"), ("o_first", "100 ns"), ("o_next", "100 ns")];
    let slow = [("processing", "150 ns"), ("saturation", "850 ns"), ("knee", "4")];
    let (_, arrivals) = burst(&model("lop", &[knee, slow].concat()), 12, 8);
    let per_message: Vec<u64> = (1..).zip(&arrivals).map(|(p, at)| at.ps() / p).collect();
    assert!(per_message[3..].is_sorted(), "rises from the knee: {per_message:?}");
}

#[test]
fn every_model_is_in_the_registry_under_its_name() {
    let names: Vec<_> = one_of_each().iter().map(Model::name).collect();
    assert_eq!(names, REGISTRY.iter().map(|group| group.name).collect::<Vec<_>>());
}

#[test]
fn invalid_models_are_rejected_with_a_reason() {
    let error = |name, given: &[_]| build(name, given).unwrap_err().to_string();
    assert_eq!(
        error("logpp", &[]),
        "unknown network model `logpp`: expected one of \
         postal, pipelining_postal, logp, lop, logfp, loggp, protocols"
    );
    assert_eq!(
        error("postal", &[("alfa", "1 us")]),
        "postal has no parameter `alfa`: expected one of alpha, beta"
    );
    assert_eq!(error("postal", &[]), "postal needs `alpha`, a time: time of an empty message");
    assert!(error("postal", &[("alpha", "5")]).contains("`5` has no unit"));
    assert!(error("postal", &[("alpha", "-1 us")]).contains("is negative"));
    assert!(error("postal", &[("alpha", "0 us")]).contains("cannot all be zero"));
    let logp = [("L", "1 us"), ("o", "1 us"), ("g", "1 us")];
    let with_f = |f| [&logp[..], &[("f", f)]].concat();
    assert_eq!(error("logfp", &with_f("0")), "`f` is 0: expected 1 to 4294967295");
    assert_eq!(error("logfp", &with_f("1.5")), "`1.5` is not a count");
    let lop = LoP {
        L: ns(1),
        o_first: ns(1),
        o_next: ns(2),
        processing: ns(1),
        saturation: ns(1),
        knee: 1,
    };
    assert!(lop.checked().unwrap_err().to_string().contains("`o_next` of lop is 2 ns"));
}

#[test]
fn an_overlap_ratio_below_one_is_accepted_with_a_remark() {
    let with = |p, r| model("pipelining_postal", &[("alpha_p", p), ("alpha_r", r)]);
    assert!(with("0.3 us", "1.3 us").remark().unwrap().contains("were the two swapped?"));
    assert_eq!(with("1.3 us", "0.3 us").remark(), None);
}

proptest! {
    /// No sender is free before it starts, no message arrives before it is sent, equal messages of one rank
    /// arrive in order, and receiving a message never moves the clock back.
    #[test]
    fn time_runs_forward_in_every_model(
        waits in prop::collection::vec(0_u64..5_000_000, 1..20),
        bytes in 0_u64..100_000,
    ) {
        for model in one_of_each() {
            let (mut port, mut now, mut last) = (Port::default(), Time::ZERO, Time::ZERO);
            for (index, wait) in waits.iter().enumerate() {
                if index % 5 == 0 {
                    port.start_burst();
                }
                now += Time::from_ps(*wait);
                let sent = model.send(&mut port, now, Bytes(bytes));
                prop_assert!(sent.free >= now && sent.arrival >= sent.free && sent.arrival >= last);
                let held = model.receive(&mut port, sent.free, sent.arrival, Bytes(bytes));
                prop_assert!(held >= sent.arrival);
                (now, last) = (sent.free, sent.arrival);
            }
        }
    }

    /// With one set of parameters, protocols are the pipelining postal model.
    #[test]
    fn protocols_with_equal_parameters_are_pipelining_postal(
        (p, r) in (0_u64..5_000_000, 1_u64..5_000_000),
        (ps, of) in (0_u64..1000, 1_u64..8),
        limit in 1_u64..200_000,
        beyond in prop::option::of(1_u64..200_000),
        sizes in prop::collection::vec(0_u64..400_000, 1..20),
    ) {
        let (alpha_p, alpha_r) = (Time::from_ps(p), Time::from_ps(r));
        let beta = TimePerByte::new(ps, of).unwrap();
        let eager_limit = Bytes(limit);
        let equal = Protocols { eager_limit, alpha_p, alpha_r, beta, ..Protocols::default() };
        let explicit = Protocols {
            alpha_p_rendezvous: Some(alpha_p),
            alpha_r_rendezvous: Some(alpha_r),
            beta_rendezvous: Some(beta),
            beta_long: beyond.map(|_| beta),
            long_from: beyond.map(|beyond| Bytes(limit + beyond)),
            ..equal
        };
        let postal = PipeliningPostal { alpha_p, alpha_r, beta }.checked().unwrap();
        for protocols in [equal, explicit] {
            let protocols = protocols.checked().unwrap();
            let (mut a, mut b, mut now) = (Port::default(), Port::default(), Time::ZERO);
            for &bytes in &sizes {
                let sent = protocols.send(&mut a, now, Bytes(bytes));
                prop_assert_eq!(sent, postal.send(&mut b, now, Bytes(bytes)));
                let received = protocols.receive(&mut a, now, sent.arrival, Bytes(bytes));
                prop_assert_eq!(received, sent.arrival);
                let (one, other) = (protocols.serialization(), postal.serialization());
                prop_assert_eq!(one.of(Bytes(bytes)), other.of(Bytes(bytes)));
                now = sent.free;
            }
        }
    }

    /// A message never takes less time than a shorter one, or the parameters are rejected.
    #[test]
    fn longer_messages_of_protocols_take_at_least_as_long(
        (p, r, later_p, later_r) in (0_u64..900, 1_u64..900, 0_u64..900, 0_u64..900),
        (beta, later_beta, long_beta) in (0_u64..9, 0_u64..9, 0_u64..9),
        (limit, beyond) in (1_u64..100, 1_u64..100),
    ) {
        let protocols = Protocols {
            eager_limit: Bytes(limit),
            alpha_p: Time::from_ps(p),
            alpha_r: Time::from_ps(r),
            beta: TimePerByte::new(beta, 3).unwrap(),
            alpha_p_rendezvous: Some(Time::from_ps(later_p)),
            alpha_r_rendezvous: Some(Time::from_ps(later_r)),
            beta_rendezvous: TimePerByte::new(later_beta, 3),
            beta_long: TimePerByte::new(long_beta, 3),
            long_from: Some(Bytes(limit + beyond)),
        };
        let times: Vec<_> = (0..250).map(|bytes| protocols.time(Bytes(bytes))).collect();
        prop_assert_eq!(protocols.checked().is_ok(), times.is_sorted());
    }
}
