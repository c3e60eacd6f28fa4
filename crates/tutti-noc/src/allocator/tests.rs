//! Allocators against their plain twins, matchings, fairness, worked examples and what is refused.

use proptest::prelude::*;

use super::twin::{Plain, PlainArbiter};
use super::*;

fn allocator(kind: AllocatorKind, inputs: u32, outputs: u32, iterations: u32) -> Allocator {
    Allocator::new(kind, ArbiterKind::RoundRobin, inputs, outputs, iterations, 7).unwrap()
}

fn grants(allocator: &mut Allocator, pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let requests: Vec<_> = pairs.iter().map(|&(i, o)| Request::new(i, o)).collect();
    let mut grants = Vec::new();
    allocator.allocate(&requests, &mut grants);
    grants
}

/// Every input requests every output.
fn all_pairs(inputs: u32, outputs: u32) -> Vec<(u32, u32)> {
    (0..inputs).flat_map(|i| (0..outputs).map(move |o| (i, o))).collect()
}

#[test]
fn input_first_pointers_of_losers_stay() {
    let mut first = allocator(AllocatorKind::SeparableInputFirst, 3, 3, 1);
    let pairs = [(0, 0), (0, 1), (1, 0)];
    // Both inputs choose output 0, which takes input 0: pointers of input 0 and output 0 become 1.
    assert_eq!(grants(&mut first, &pairs), [(0, 0)]);
    // Input 0 chooses output 1; input 1 still chooses output 0.
    assert_eq!(grants(&mut first, &pairs), [(0, 1), (1, 0)]);
    // Pointers: inputs 2 and 1, outputs 2 (after input 1) and 1: input 0 wraps to output 0, which
    // is requested by both and takes input 0, the first at or after 2.
    assert_eq!(grants(&mut first, &pairs), [(0, 0)]);
}

#[test]
fn output_first_pointers_of_losers_stay() {
    let mut first = allocator(AllocatorKind::SeparableOutputFirst, 3, 3, 1);
    let pairs = [(0, 0), (0, 1), (1, 0)];
    // Both outputs choose input 0, which takes output 0; output 1 keeps its pointer.
    assert_eq!(grants(&mut first, &pairs), [(0, 0)]);
    assert_eq!(grants(&mut first, &pairs), [(0, 1), (1, 0)]);
}

#[test]
fn inputs_and_outputs_have_separate_priorities() {
    let request = |input, output, input_priority, output_priority| Request {
        input,
        output,
        input_priority,
        output_priority,
    };
    // Input 0 prefers output 1, input 1 has output 1 only. Output 1 prefers input 1, output 0 has
    // input 0.
    let requests = [request(0, 0, 1, 9), request(0, 1, 2, 5), request(1, 1, -4, 6)];
    let run = |kind| {
        let mut grants = Vec::new();
        allocator(kind, 2, 2, 1).allocate(&requests, &mut grants);
        grants
    };
    assert_eq!(run(AllocatorKind::SeparableInputFirst), [(1, 1)]);
    assert_eq!(run(AllocatorKind::SeparableOutputFirst), [(0, 0), (1, 1)]);
    // The front meets (0, 0) first, for its output priority of 9, then (1, 1) for 6.
    assert_eq!(run(AllocatorKind::Wavefront), [(0, 0), (1, 1)]);
    // Without priorities, pointers at 0: both outputs grant input 0 in the first iteration.
    assert_eq!(run(AllocatorKind::Islip), [(0, 0)]);
}

#[test]
fn islip_moves_pointers_in_its_first_iteration_only() {
    let mut islip = allocator(AllocatorKind::Islip, 3, 2, 2);
    let pairs = all_pairs(3, 2);
    // Both outputs grant input 0, which accepts 0. Then output 1 grants input 1; its pointer stays
    // at 0.
    assert_eq!(grants(&mut islip, &pairs), [(0, 0), (1, 1)]);
    // Output 0 grants input 1. Output 1 grants input 0; a pointer moved to 2 would grant input 2.
    assert_eq!(grants(&mut islip, &pairs), [(0, 1), (1, 0)]);
}

#[test]
fn the_first_diagonal_advances_with_each_allocation() {
    let mut wavefront = allocator(AllocatorKind::Wavefront, 2, 3, 1);
    let pairs = all_pairs(2, 3);
    // Diagonals of a square of 3: sums 0, 1, 2 modulo 3.
    assert_eq!(grants(&mut wavefront, &pairs), [(0, 0), (1, 2)]);
    assert_eq!(grants(&mut wavefront, &[]), [], "without requests it stays");
    assert_eq!(grants(&mut wavefront, &pairs), [(0, 1), (1, 0)]);
    assert_eq!(grants(&mut wavefront, &pairs), [(0, 2), (1, 1)]);
    assert_eq!(grants(&mut wavefront, &pairs), [(0, 0), (1, 2)]);
}

#[test]
fn an_augmenting_path_frees_an_output() {
    let mut maximum = allocator(AllocatorKind::Maximum, 3, 3, 1);
    // Greedily (0, 0) and (1, 1) leave input 2 without; 0 -> 1, 1 -> 2, 2 -> 0 serves all.
    let pairs = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0)];
    assert_eq!(grants(&mut maximum, &pairs), [(0, 1), (1, 2), (2, 0)]);
    assert_eq!(
        grants(&mut maximum, &[(0, 2), (1, 2)]),
        [(1, 2)],
        "input 1 is first the second time"
    );
}

#[test]
fn pim_starts_at_a_random_port() {
    // Inputs 0 and 1 of 4 request output 0. Places 2, 3 and 0 lead to input 0, place 1 to input 1:
    // shares 3/4 and 1/4. Of 4000, 3000 +- 27.4 (binomial); bound at five sigma.
    let mut pim = allocator(AllocatorKind::Pim, 4, 1, 1);
    let served = |_: &u32| grants(&mut pim, &[(0, 0), (1, 0)]) == [(0, 0)];
    let count = (0..4000).filter(served).count();
    assert!(count.abs_diff(3000) < 137, "{count}");
}

#[test]
fn pim_draws_by_its_seed() {
    let run = |seed| {
        let (kind, arbiter) = (AllocatorKind::Pim, ArbiterKind::RoundRobin);
        let mut pim = Allocator::new(kind, arbiter, 8, 8, 1, seed).unwrap();
        (0..8).map(|_| grants(&mut pim, &all_pairs(8, 8))).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_matrix_arbiter_serves_the_least_recently_served() {
    let mut arbiters = Arbiters::new(ArbiterKind::Matrix, 1, 4).unwrap();
    let mut serve = |contend: &[u32]| {
        let chosen = arbiters.choose(0, contend.iter().map(|&c| (c, 0))).unwrap();
        arbiters.serve(0, chosen);
        chosen
    };
    // At first the highest number goes first.
    assert_eq!(serve(&[0, 1, 2, 3]), 3);
    assert_eq!(serve(&[0, 1, 3]), 1);
    assert_eq!(serve(&[0, 1, 2, 3]), 2);
    // Never served: 0. Then in the order in which they were served: 3, 1, 2.
    assert_eq!(serve(&[0, 1, 2, 3]), 0);
    assert_eq!(serve(&[1, 2]), 1);
    assert_eq!(serve(&[0, 1, 2, 3]), 3);
    assert_eq!(serve(&[0, 1, 2, 3]), 2);
}

#[test]
fn an_arbiter_prefers_priority_and_advances_only_when_served() {
    let mut arbiters = Arbiters::new(ArbiterKind::RoundRobin, 2, 3).unwrap();
    assert_eq!(arbiters.choose(1, [(0, 0), (2, 1), (1, 1)]), Some(1));
    assert_eq!(arbiters.choose(1, [(0, 0), (2, 1), (1, 1)]), Some(1), "no contender was served");
    arbiters.serve(1, 1);
    assert_eq!(arbiters.choose(1, [(0, 0), (2, 1), (1, 1)]), Some(2));
    assert_eq!(arbiters.choose(0, [(0, 0), (2, 0)]), Some(0), "the other arbiter is where it was");
    assert_eq!(arbiters.choose(0, []), None);
}

#[test]
fn a_tree_arbiter_rotates_among_its_groups() {
    let mut arbiters = Arbiters::new(ArbiterKind::TreeRoundRobin { groups: 2 }, 1, 4).unwrap();
    let mut serve = |contend: &[u32]| {
        let chosen = arbiters.choose(0, contend.iter().map(|&c| (c, 0))).unwrap();
        arbiters.serve(0, chosen);
        chosen
    };
    // Groups {0, 1} and {2, 3}: one each, in turn; flat it would be 0, 1, 2, 3.
    let served = [0; 4].map(|_| serve(&[0, 1, 2, 3]));
    assert_eq!(served, [0, 2, 1, 3]);
    // One contender of a group gets as much as three others together would not leave it.
    let served = [0; 4].map(|_| serve(&[0, 1, 3]));
    assert_eq!(served, [0, 3, 1, 3]);
}

#[test]
fn invalid_allocators_are_rejected() {
    let new = |kind, arbiter, inputs, outputs, iterations| {
        Allocator::new(kind, arbiter, inputs, outputs, iterations, 0).unwrap_err().to_string()
    };
    let (islip, round_robin) = (AllocatorKind::Islip, ArbiterKind::RoundRobin);
    assert_eq!(
        new(islip, round_robin, 0, 3, 1),
        "islip with 0 inputs and 3 outputs is refused: expected at least one of each"
    );
    assert_eq!(
        new(islip, round_robin, 3, 8193, 1),
        "islip with 3 inputs and 8193 outputs is refused: expected at most 8192 of each"
    );
    assert_eq!(
        new(islip, round_robin, 3, 3, 0),
        "islip with 0 iterations grants nothing: expected at least one"
    );
    let (separable, tree) =
        (AllocatorKind::SeparableInputFirst, ArbiterKind::TreeMatrix { groups: 3 });
    assert_eq!(
        new(separable, tree, 3, 4, 1),
        "tree_matrix:3 cannot choose among 4: expected a number of groups that divides it"
    );
    assert!(Arbiters::new(ArbiterKind::TreeMatrix { groups: 0 }, 1, 4).is_err());
}

#[test]
fn names_round_trip() {
    for kind in AllocatorKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for text in ["round_robin", "matrix", "tree_round_robin:4", "tree_matrix:12"] {
        assert_eq!(text.parse::<ArbiterKind>().unwrap().to_string(), text);
    }
    assert_eq!(
        "max_size".parse::<AllocatorKind>().unwrap_err().to_string(),
        "unknown allocator `max_size`: expected one of separable_input_first, \
         separable_output_first, islip, wavefront, pim, maximum"
    );
    for text in ["", "tree", "matrix:2", "tree_matrix:", "tree_matrix:0", "tree_round_robin:-1"] {
        let message = text.parse::<ArbiterKind>().unwrap_err().to_string();
        assert!(message.starts_with(&format!("unknown arbiter `{text}`: expected")), "{message}");
    }
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn a_request_out_of_range_panics() {
    grants(&mut allocator(AllocatorKind::Islip, 2, 2, 1), &[(0, 2)]);
}

/// An allocator and requests to make, one set after the other.
#[derive(Clone, Debug)]
struct Case {
    kind: AllocatorKind,
    arbiter: ArbiterKind,
    ports: [u32; 2],
    iterations: u32,
    sets: Vec<Vec<Request>>,
}

fn case() -> impl Strategy<Value = Case> {
    let arbiter = 0..4_usize;
    (0..6_usize, arbiter, 1..7_u32, 1..7_u32, 1..4_u32).prop_flat_map(|shape| {
        let (kind, arbiter, inputs, outputs, iterations) = shape;
        let groups = (1..7).rev().find(|g| inputs % g == 0 && outputs % g == 0).unwrap();
        let arbiters = [
            ArbiterKind::RoundRobin,
            ArbiterKind::Matrix,
            ArbiterKind::TreeRoundRobin { groups },
            ArbiterKind::TreeMatrix { groups },
        ];
        let pair = (0..inputs, 0..outputs, -1..2_i64, -1..2_i64);
        let set = (prop::collection::vec(pair, 0..24), any::<bool>()).prop_map(requests);
        prop::collection::vec(set, 1..16).prop_map(move |sets| Case {
            kind: AllocatorKind::ALL[kind],
            arbiter: arbiters[arbiter],
            ports: [inputs, outputs],
            iterations,
            sets,
        })
    })
}

/// One request for each pair, in the order in which they came; with or without priorities.
fn requests((pairs, urgent): (Vec<(u32, u32, i64, i64)>, bool)) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for (input, output, input_priority, output_priority) in pairs {
        if !requests.iter().any(|r| (r.input, r.output) == (input, output)) {
            let plain = Request::new(input, output);
            requests.push(if urgent {
                Request { input_priority, output_priority, ..plain }
            } else {
                plain
            });
        }
    }
    requests
}

/// The most grants that there can be, by trying: each input takes one of the free outputs or none.
fn most(requests: &[Request], input: u32, inputs: u32, taken: u32) -> usize {
    if input == inputs {
        return 0;
    }
    let own = requests.iter().filter(|r| r.input == input && taken & 1 << r.output == 0);
    let with = own.map(|r| 1 + most(requests, input + 1, inputs, taken | 1 << r.output)).max();
    with.unwrap_or(0).max(most(requests, input + 1, inputs, taken))
}

fn is_maximal(requests: &[Request], grants: &[(u32, u32)]) -> bool {
    let served = |r: &Request| grants.iter().any(|&(i, o)| i == r.input || o == r.output);
    requests.iter().all(served)
}

proptest! {
    #[test]
    fn allocators_match_their_reference_models(case in case(), seed: u64) {
        let Case { kind, arbiter, ports: [inputs, outputs], iterations, sets } = case;
        let new = || Allocator::new(kind, arbiter, inputs, outputs, iterations, seed).unwrap();
        let (mut fast, mut shuffled) = (new(), new());
        let mut plain = Plain::new(kind, arbiter, [inputs, outputs], iterations, seed);
        for requests in sets {
            // What is there already stays.
            let mut grants = vec![(9, 9)];
            fast.allocate(&requests, &mut grants);
            prop_assert_eq!(grants.remove(0), (9, 9));
            prop_assert_eq!(&grants, &plain.allocate(&requests), "{} {}", kind, arbiter);

            let mut other = Vec::new();
            let mut order = requests.clone();
            order.sort_by_key(|r| (r.output * 5 + r.input * 3) % 7);
            shuffled.allocate(&order, &mut other);
            prop_assert_eq!(&grants, &other);

            let requested = |&(i, o): &(u32, u32)| requests.iter().any(|r| (r.input, r.output) == (i, o));
            prop_assert!(grants.iter().all(requested));
            prop_assert!(grants.windows(2).all(|two| two[0].0 < two[1].0), "inputs ascend");
            let mut columns: Vec<_> = grants.iter().map(|&(_, o)| o).collect();
            columns.sort_unstable();
            columns.dedup();
            prop_assert_eq!(columns.len(), grants.len(), "an output was granted twice");
            prop_assert!(requests.is_empty() || !grants.is_empty());

            // Each iteration matches at least one of the pairs that still could be.
            let enough = iterations >= inputs.min(outputs);
            let iterates = matches!(kind, AllocatorKind::Islip | AllocatorKind::Pim) && enough;
            let maximal = matches!(kind, AllocatorKind::Wavefront | AllocatorKind::Maximum);
            if maximal || iterates {
                prop_assert!(is_maximal(&requests, &grants));
            }
            if kind == AllocatorKind::Maximum {
                prop_assert_eq!(grants.len(), most(&requests, 0, inputs, 0));
            }
        }
    }

    /// Each other port passes a waiting port at most once at an arbiter. It passes at most all
    /// ports of the other side before it comes back. So inputs x outputs allocations bound the wait
    /// of a pair.
    #[test]
    fn a_persistent_requester_is_served(case in case()) {
        let Case { kind, arbiter, ports: [inputs, outputs], iterations, sets } = case;
        prop_assume!(!matches!(kind, AllocatorKind::Pim | AllocatorKind::Maximum));
        let pairs: Vec<_> = sets[0].iter().map(|r| (r.input, r.output)).collect();
        let mut fast = Allocator::new(kind, arbiter, inputs, outputs, iterations, 0).unwrap();
        let bound = match kind {
            AllocatorKind::Wavefront => inputs.max(outputs),
            _ => inputs * outputs,
        };
        let mut waits = vec![0; pairs.len()];
        for _ in 0..4 * bound {
            let granted = grants(&mut fast, &pairs);
            for (pair, wait) in pairs.iter().zip(&mut waits) {
                *wait = if granted.contains(pair) { 0 } else { *wait + 1 };
                prop_assert!(*wait < bound, "{:?} of {} with {} waits {}", pair, kind, arbiter, wait);
            }
        }
    }

    /// The first input is always served if it has a request, and every input is first in turn.
    #[test]
    fn a_maximum_matching_serves_every_input_in_turn(case in case()) {
        let Case { ports: [inputs, outputs], sets, .. } = case;
        let pairs: Vec<_> = sets[0].iter().map(|r| (r.input, r.output)).collect();
        let mut maximum = allocator(AllocatorKind::Maximum, inputs, outputs, 1);
        for turn in 0..2 * inputs {
            let first = turn % inputs;
            let granted = grants(&mut maximum, &pairs);
            let requests = pairs.iter().any(|&(i, _)| i == first);
            prop_assert_eq!(requests, granted.iter().any(|&(i, _)| i == first));
        }
    }

    #[test]
    fn arbiters_match_their_reference_models(
        kind in 0..4_usize,
        rounds in prop::collection::vec(prop::collection::vec(prop::option::of(-1..2_i64), 6), 1..40),
    ) {
        let groups = 3;
        let kind = [
            ArbiterKind::RoundRobin,
            ArbiterKind::Matrix,
            ArbiterKind::TreeRoundRobin { groups },
            ArbiterKind::TreeMatrix { groups },
        ][kind];
        let mut fast = Arbiters::new(kind, 1, 6).unwrap();
        let mut plain = PlainArbiter::new(kind, 6);
        for requests in rounds {
            let contend = (0..).zip(&requests).filter_map(|(c, request)| request.map(|priority| (c, priority)));
            let chosen = fast.choose(0, contend);
            prop_assert_eq!(chosen.map(|c| c as usize), plain.choose(&requests));
            if let Some(chosen) = chosen {
                fast.serve(0, chosen);
                plain.serve(6, chosen as usize);
            }
        }
    }
}
