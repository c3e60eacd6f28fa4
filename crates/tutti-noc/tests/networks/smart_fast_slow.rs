//! The fast meshes with several hops per cycle against the obvious ones: the same packets and
//! responses arrive in the same cycles, and as much has happened, over random settings and traffic.

use super::common::{Operation, Outcome, engines, run};
use proptest::collection::vec;
use proptest::prelude::*;
use tutti_noc::smart::{
    Arbiter, Class, Combine, FanIn, FanOut, Merge, NodeSet, Priority, Rule, Settings, Tree,
};

#[derive(Clone, Debug)]
struct Case {
    settings: Settings,
    operations: Vec<(u64, Operation)>,
}

fn fan_out() -> impl Strategy<Value = FanOut> {
    prop_oneof![
        2 => Just(FanOut::Unicasts),
        4 => Just(FanOut::Greedy(Tree::Shared)),
        4 => Just(FanOut::Greedy(Tree::Private)),
        // Beyond the least that its settings allow.
        5 => (0..7_u32).prop_map(|interval| FanOut::Complete { interval }),
    ]
}

fn fan_in() -> impl Strategy<Value = FanIn> {
    prop_oneof![
        1 => Just(FanIn::Unicasts),
        3 => Just(FanIn::Greedy),
        3 => Just(FanIn::Complete),
    ]
}

fn priority() -> impl Strategy<Value = Priority> {
    let rules = [
        "distance if response else -distance",
        "class * 8 - distance",
        "-age",
        "2 * multicast + response",
        "3 - distance if multicast else distance % 3",
    ];
    let rule = proptest::sample::select(rules.to_vec());
    let rule = rule.prop_map(|text| Rule::parse("priority", text, &Priority::VARIABLES).unwrap());
    prop_oneof![
        2 => Just(Priority::Local),
        2 => Just(Priority::Bypass),
        2 => Just(Priority::BypassResponses),
        2 => rule.prop_map(Priority::Rule),
    ]
}

fn arbiter() -> impl Strategy<Value = Arbiter> {
    prop_oneof![2 => Just(Arbiter::RoundRobin), 1 => Just(Arbiter::Oldest)]
}

/// Rules that hold no response for ever.
fn hold() -> impl Strategy<Value = Option<Rule>> {
    let rules = ["stay < 3", "missing and stay < 12", "count < 3 and age < 30", "stay % 2"];
    let rule = proptest::sample::select(rules.to_vec());
    let rule = rule.prop_map(|text| Rule::parse("hold", text, &Settings::HOLD_VARIABLES).unwrap());
    proptest::option::weighted(0.4, rule)
}

fn merge() -> impl Strategy<Value = Merge> {
    prop_oneof![Just(Merge::Landing), Just(Merge::Buffered)]
}

fn class() -> impl Strategy<Value = Class> {
    (1..=4_u32, 1..=4_u32, proptest::bool::weighted(0.7))
        .prop_map(|(vcs, depth, multicasts)| Class { vcs, depth, multicasts })
}

prop_compose! {
    fn settings(across: u32)(
        columns in 2..=across,
        rows in 2..=across,
        hops_per_cycle in 1..=8_u32,
        (priority, yx, turns, forks) in (priority(), any::<bool>(), any::<bool>(), any::<bool>()),
        (fan_out, fan_in, merge) in (fan_out(), fan_in(), merge()),
        (arbiter, hold) in (arbiter(), hold()),
        classes in vec(class(), 1..=3),
        split_vcs in any::<bool>(),
        (credit_delay, sag_extra_cycle, eject_cost) in (0..=3_u32, 0..=1_u32, 0..=2_u32),
        more_entries in 0..3_u32,
    ) -> Settings {
        let mut settings = Settings {
            columns, rows, hops_per_cycle, bypass_turns: turns && hops_per_cycle > 1, priority, yx, fan_out, fan_in, merge, classes,
            split_vcs, credit_delay, sag_extra_cycle, eject_cost, arbiter,
            hold: hold.filter(|_| fan_in == FanIn::Greedy),
            patience: 2000,
            reducer: true,
            ..Settings::new(columns, rows)
        };
        if let FanOut::Complete { interval } = fan_out {
            let interval = settings.preset_cycles() + 1 + interval;
            settings.fan_out = FanOut::Complete { interval };
        }
        let collective = settings.tree().is_some() || fan_in != FanIn::Unicasts;
        let slots = matches!(fan_out, FanOut::Complete { .. });
        settings.collective_turns = forks && settings.bypass_turns && collective && !slots;
        settings.split_vcs &= settings.classes.iter().all(|class| class.vcs >= 3);
        let private = settings.tree() == Some(Tree::Private);
        settings.art_entries = more_entries + if private { 4 } else { settings.nodes() };
        settings
    }
}

/// Numbers that become a deed on any mesh.
type Numbers = (u64, u8, u32, u32, u8, u32, Vec<(u32, u64)>, Option<u64>);

fn numbers(within: u64) -> impl Strategy<Value = Numbers> {
    let others = vec((any::<u32>(), 0..12_u64), 1..30);
    let held = proptest::option::weighted(0.3, 0..20_u64);
    (0..within, 0..10_u8, any::<u32>(), any::<u32>(), any::<u8>(), any::<u32>(), others, held)
}

fn operation(settings: &Settings, numbers: Numbers) -> (u64, Operation) {
    let (cycle, kind, one, other, class, flits, others, held) = numbers;
    let nodes = settings.nodes();
    let (from, to) = (one % nodes, other % nodes);
    let classes = u8::try_from(settings.classes.len()).unwrap();
    let class = class % classes;
    let Class { depth, multicasts, .. } = settings.classes[usize::from(class)];
    let mut members: NodeSet =
        others.iter().map(|&(node, _)| node % nodes).filter(|&node| node != from).collect();
    if members.is_empty() || flits % 3 == 0 {
        members = NodeSet::all_but(nodes, from);
    }
    let operation = match kind {
        0..4 => Operation::Unicast { from, to, class, flits: 1 + flits % depth },
        4..7 if multicasts => Operation::Multicast { from, to: members, class },
        _ => {
            let combine = [Combine::Sum, Combine::Or, Combine::Max, Combine::Count];
            let combine = combine[flits as usize / 3 % 4];
            let delays = others.iter().map(|&(_, delay)| delay).cycle();
            let members = members.iter().zip(delays).collect();
            Operation::Reduce { to: from, members, class, combine, held }
        }
    };
    (cycle, operation)
}

fn case(across: u32, operations: usize, within: u64) -> impl Strategy<Value = Case> {
    (settings(across), vec(numbers(within), 1..operations)).prop_map(|(settings, numbers)| {
        let operations = numbers.into_iter().map(|numbers| operation(&settings, numbers)).collect();
        Case { settings, operations }
    })
}

/// How many packets, copies and responses must arrive.
fn expected(operations: &[(u64, Operation)]) -> u64 {
    let of = |operation: &Operation| match operation {
        Operation::Unicast { .. } => 1,
        Operation::Multicast { to, .. } => u64::from(to.len()),
        Operation::Reduce { members, .. } => u64::try_from(members.len()).unwrap(),
    };
    operations.iter().map(|(_, operation)| of(operation)).sum()
}

fn arrived(outcome: &Outcome) -> u64 {
    let of = |responses: tutti_noc::smart::Responses| u64::from(responses.count);
    outcome.arrivals.iter().map(|arrival| arrival.responses.map_or(1, of)).sum()
}

fn agree(case: &Case) {
    case.settings.check().unwrap();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (engine, mut fabric) in engines(&case.settings) {
        let outcome = run(&mut *fabric, &case.operations, 200_000);
        assert!(!outcome.unfinished, "{engine} is stuck in cycle {}", outcome.end);
        assert_eq!(arrived(&outcome), expected(&case.operations), "{engine}");
        if let Some(first) = outcomes.first() {
            let pairs = first.arrivals.iter().zip(&outcome.arrivals);
            for (obvious, other) in pairs {
                assert_eq!(obvious, other, "the obvious one, and {engine}");
            }
            assert_eq!(first.counts, outcome.counts, "the obvious one, and {engine}");
            assert_eq!(first, &outcome, "the obvious one, and {engine}");
        }
        outcomes.push(outcome);
    }
}

/// The two named priorities are rules as well; routers merge alike only if they do not merge at
/// all, since `local` routers have no adder in the path.
fn rules_equal_names(case: &Case) {
    let named = [(Priority::Local, "-distance"), (Priority::Bypass, "distance")];
    for (priority, text) in named {
        let rule = Rule::parse("priority", text, &Priority::VARIABLES).unwrap();
        let outcome = |priority: Priority| {
            let fan_in = match case.settings.fan_in {
                FanIn::Greedy => FanIn::Unicasts,
                other => other,
            };
            let collective_turns = case.settings.collective_turns
                && (case.settings.tree().is_some() || fan_in != FanIn::Unicasts);
            let settings = Settings { priority, fan_in, hold: None, ..case.settings.clone() };
            let settings = Settings { collective_turns, ..settings };
            let (_, mut fabric) = engines(&settings).pop().unwrap();
            run(&mut *fabric, &case.operations, 200_000)
        };
        assert_eq!(outcome(priority), outcome(Priority::Rule(rule)), "{text}");
    }
}

/// Packets whose paths do not turn, in a mesh where paths may turn.
fn turns_change_no_other_path(case: &Case) {
    let straight = |(_, operation): &(u64, Operation)| match operation {
        &Operation::Unicast { from, to, .. } => {
            let columns = case.settings.columns;
            from % columns == to % columns || from / columns == to / columns
        }
        Operation::Multicast { .. } => case.settings.tree() == Some(Tree::Shared),
        Operation::Reduce { .. } => case.settings.fan_in == FanIn::Greedy,
    };
    let operations: Vec<_> = case.operations.iter().filter(|one| straight(one)).cloned().collect();
    // More hops per cycle only shorten the slots of preset paths.
    let hops_per_cycle = case.settings.hops_per_cycle.max(2);
    let outcome = |bypass_turns: bool| {
        let settings = Settings { hops_per_cycle, bypass_turns, ..case.settings.clone() };
        let settings = Settings { collective_turns: false, ..settings };
        let (_, mut fabric) = engines(&settings).pop().unwrap();
        run(&mut *fabric, &operations, 200_000)
    };
    assert_eq!(outcome(false), outcome(true));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn paths_without_turns_stay(case in case(5, 60, 30)) {
        turns_change_no_other_path(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn named_priorities_are_rules(case in case(5, 60, 30)) {
        rules_equal_names(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn small_meshes_agree(case in case(3, 12, 12)) {
        agree(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn heavily_loaded_meshes_agree(case in case(5, 80, 40)) {
        agree(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn large_meshes_agree(case in case(9, 60, 20)) {
        agree(&case);
    }
}
