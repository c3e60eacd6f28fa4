//! Verification at every rank count, the trees as drawn in NCCL, and the position of their edges on
//! a grid.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::OnlyPhase;
use crate::algorithm::{build, check};

const FORMS: [Form; 2] = [Form::PLAIN, Form { nccl: true, ..Form::PLAIN }];

fn trees(ranks: u32, form: Form) -> DoubleTree {
    DoubleTree::new(String::new(), ranks, form)
}

#[test]
fn it_does_what_it_claims_at_every_rank_count_and_needs_no_buffers() {
    for ranks in 2..=128 {
        for argument in ["", ":5", ":nccl", ":nccl,5", ":phased,5", ":nccl,phased,3"] {
            let notation = &format!("double_binary_tree{argument}");
            let proof = check::performs(notation, Collective::AllReduce, ranks);
            assert!(proof.rendezvous_safe(), "{notation}, {ranks} ranks");
            assert!(proof.reproducibility.same_on_all_ranks);
            assert!(proof.reproducibility.rank_order || ranks % 2 == 1);
        }
    }
}

#[test]
fn nodes_are_chains_of_any_length() {
    for (ranks, node) in [(8, 8), (8, 4), (8, 2), (6, 2), (12, 4), (15, 3), (56, 8), (64, 8)] {
        for options in ["", ",5", ",channels=2", ",channels=8,3", ",channels=11"] {
            for nccl in ["", "nccl,", "phased,", "nccl,phased,"] {
                let notation = &format!("double_binary_tree:{nccl}node={node}{options}");
                let proof = check::performs(notation, Collective::AllReduce, ranks);
                assert!(proof.rendezvous_safe(), "{notation}, {ranks} ranks");
                assert!(proof.reproducibility.same_on_all_ranks);
                let ordered = (ranks / node) % 2 == 0 && !options.contains("channels");
                assert!(proof.reproducibility.rank_order || !ordered, "{notation}, {ranks}");
            }
        }
    }
}

/// Nodes of one rank, and one channel, are the defaults.
#[test]
fn the_defaults_can_be_named() {
    let build = |notation: &str| build(notation, Collective::AllReduce, 12).unwrap();
    let named = build("double_binary_tree:nccl,node=1,channels=1,3");
    check::same_steps(&*named, &*build("double_binary_tree:nccl,3"));
}

/// Between nodes, channel h uses rank h of each node: each NIC carries 1/H of the payload.
#[test]
fn each_channel_leaves_a_node_at_another_rank() {
    let schedule =
        build("double_binary_tree:nccl,node=4,channels=4", Collective::AllReduce, 16).unwrap();
    let mut out = Step::new();
    for rank in 0..16 {
        let mut between = BTreeMap::new();
        for step in 0..schedule.steps(RankId(rank)) {
            out.clear();
            schedule.step(RankId(rank), step, &mut out);
            for send in out.sends.iter().filter(|send| send.peer.0 / 4 != rank / 4) {
                *between.entry(send.peer.0 % 4).or_insert(0) += send.chunks.len();
            }
        }
        assert!(between.keys().eq([&(rank % 4)]), "rank {rank}: {between:?}");
        // At most twice the payload of its channel, which is 2 of 8 chunks.
        assert!(between.values().all(|&chunks| chunks <= 4), "rank {rank}: {between:?}");
    }
}

#[test]
fn inner_ranks_of_one_tree_are_leaves_of_the_other() {
    for ranks in 2..=300 {
        for (form, trees) in FORMS.map(|form| (form, trees(ranks, form))) {
            let inner = |rank| [0, 1].map(|tree| trees.node(tree, rank).level > 0);
            let found: Vec<_> = (0..ranks).filter(|&rank| inner(rank) == [true; 2]).collect();
            let both = form.nccl && !ranks.is_multiple_of(2);
            assert_eq!(found, if both { vec![0] } else { vec![] }, "{ranks} ranks");
        }
    }
}

/// Each position has one parent, which lists it as a child, at a level above its level; one has
/// none.
#[test]
fn both_are_trees() {
    for (ranks, form) in (2..=300).flat_map(|ranks| FORMS.map(|form| (ranks, form))) {
        let trees = trees(ranks, form);
        for tree in [0, 1] {
            let mut roots = 0;
            for rank in 0..ranks {
                let place = trees.place(tree, rank);
                assert_eq!(trees.rank(tree, place), RankId(rank));
                let node = trees.node(tree, rank);
                let Some(parent) = node.parent else {
                    roots += 1;
                    assert_eq!(node.level, trees.top);
                    continue;
                };
                let above = trees.node(tree, trees.rank(tree, parent).0);
                assert!(above.children.contains(&Some(place)) && above.level > node.level);
            }
            assert_eq!(roots, 1);
        }
    }
}

/// The drawings in NCCL's `src/graph/trees.cc`, as the parent of each rank.
#[test]
fn nccl_s_trees_are_nccl_s() {
    let parents = |ranks, tree| -> Vec<Option<u32>> {
        let trees = trees(ranks, FORMS[1]);
        let parent = |rank| trees.node(tree, rank).parent.map(|at| trees.rank(tree, at).0);
        (0..ranks).map(parent).collect()
    };
    let drawn = |text: &str| -> Vec<Option<u32>> {
        text.split(' ').map(|parent| parent.parse().ok()).collect()
    };
    assert_eq!(parents(14, 0), drawn("- 2 4 2 8 6 4 6 0 10 12 10 8 12"));
    assert_eq!(parents(12, 0), drawn("- 2 4 2 8 6 4 6 0 10 8 10"));
    assert_eq!(parents(12, 1), drawn("1 3 1 11 5 7 5 3 9 7 9 -"));
    assert_eq!(parents(13, 1), drawn("9 - 3 5 3 9 7 5 7 1 11 0 11"));
}

#[test]
fn two_ranks_have_a_closed_form() {
    for argument in ["", ":2", ":7", ":nccl", ":nccl,3", ":phased,4", ":nccl,phased"] {
        let notation = &format!("double_binary_tree{argument}");
        assert!(check::critical_path_is_exact(notation, Collective::AllReduce, 2));
        assert!(!check::critical_path_is_exact(notation, Collective::AllReduce, 3));
    }
}

#[test]
fn invalid_numbers_of_chunks_are_refused() {
    for (argument, at) in [
        ("0", 0),
        (" x", 1),
        ("", 0),
        ("1048577", 0),
        ("nccl,", 0),
        ("nccl4", 0),
        ("phased,nccl", 0),
        ("nccl,4,4", 0),
        ("node=3", 0),
        ("node=0", 0),
        ("channels=0", 0),
        ("channels=2,524289", 0),
        ("channels=2,node=2", 0),
    ] {
        let notation = format!("double_binary_tree:{argument}");
        let error = build(&notation, Collective::AllReduce, 8).err().unwrap();
        assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
    }
}

/// Returns parent and child of every edge of one of NCCL's trees.
fn edges(ranks: u32, tree: u32) -> Vec<(u32, u32)> {
    let trees = trees(ranks, FORMS[1]);
    let above = |rank| trees.node(tree, rank).parent.map(|at| (trees.rank(tree, at).0, rank));
    (0..ranks).filter_map(above).collect()
}

/// Golden: the edges of both trees on 16 ranks.
#[test]
fn the_edges_on_sixteen_ranks() {
    for (tree, drawn) in [
        (0, "0-8 8-4 8-12 4-2 4-6 12-10 12-14 2-1 2-3 6-5 6-7 10-9 10-11 14-13 14-15"),
        (1, "15-7 7-3 7-11 3-1 3-5 11-9 11-13 1-0 1-2 5-4 5-6 9-8 9-10 13-12 13-14"),
    ] {
        let found: BTreeSet<String> =
            edges(16, tree).iter().map(|(parent, child)| format!("{parent}-{child}")).collect();
        assert_eq!(found, drawn.split(' ').map(str::to_owned).collect());
    }
}

/// Golden: an edge below level h spans N / 2^h ranks: that many rows or columns of a square, less
/// one hop saved by a direct link. At the transition from rows to columns, one child of each parent
/// is in another row and another column: 4 of 30 edges on 16 ranks, 8 of 126 on 64.
#[test]
fn edges_on_a_square() {
    for (side, saved, across, hops) in
        [(4_u32, &[1, 0, 1, 0][..], 4, 44), (8, &[3, 1, 0, 3, 1, 0], 8, 224)]
    {
        let ranks = side * side;
        let (mut across_both, mut total) = (0, 0);
        for tree in [0, 1] {
            let edges = edges(ranks, tree);
            let parents: BTreeMap<u32, u32> =
                edges.iter().map(|&(parent, child)| (child, parent)).collect();
            let depth =
                |rank| std::iter::successors(parents.get(&rank), |at| parents.get(at)).count();
            assert_eq!((0..ranks).map(depth).max(), Some(saved.len()));
            for &(parent, child) in &edges {
                let depth = depth(child);
                let span = ranks >> depth;
                let lines = if 1 << depth <= side { side >> depth } else { span };
                assert_eq!((parent.abs_diff(child), lines - 1), (span, saved[depth - 1]));
                let x = (parent % side).abs_diff(child % side);
                let y = (parent / side).abs_diff(child / side);
                across_both += u32::from(x > 0 && y > 0);
                total += x + y;
            }
        }
        assert_eq!((across_both, total), (across, hops), "{side}x{side}");
    }
}

/// Golden: with columns-first routing on a mesh, the most loaded link carries two flows of half a
/// payload towards the roots, three from them, and five in total.
#[test]
fn loads_of_the_links_of_a_mesh() {
    for side in [4, 8] {
        let mut loads = [BTreeMap::new(), BTreeMap::new(), BTreeMap::new()];
        let both = [0, 1].into_iter().flat_map(|tree| edges(side * side, tree));
        for (parent, child) in both {
            for (phase, from, to) in [(0, child, parent), (1, parent, child)] {
                let corner = from / side * side + to % side;
                let steps = |from: u32, to: u32, unit: u32| {
                    let next = move |&at: &u32| match at.cmp(&to) {
                        Ordering::Less => Some(at + unit),
                        Ordering::Equal => None,
                        Ordering::Greater => Some(at - unit),
                    };
                    let path: Vec<u32> = std::iter::successors(Some(from), next).collect();
                    path.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
                };
                for link in steps(from, corner, 1).into_iter().chain(steps(corner, to, side)) {
                    *loads[phase].entry(link).or_insert(0) += 1;
                    *loads[2].entry(link).or_insert(0) += 1;
                }
            }
        }
        assert_eq!(
            loads.map(|load| load.into_values().max()),
            [2, 3, 5].map(Some),
            "{side}x{side}"
        );
    }
}

/// Up the trees, then down: each phase uses the edges in one direction, one chunk at a time per
/// edge.
#[test]
fn phases_go_up_and_then_down() {
    for (ranks, argument, pieces) in
        [(16, "nccl,phased", 1), (64, "nccl,phased,4", 4), (13, "phased,3", 3)]
    {
        let schedule =
            build(&format!("double_binary_tree:{argument}"), Collective::AllReduce, ranks).unwrap();
        assert_eq!(schedule.phases(), 2);
        let sent = |phase| -> BTreeMap<(u32, u32), u32> {
            let part = OnlyPhase::new(Arc::clone(&schedule), phase).unwrap();
            let mut sent = BTreeMap::new();
            for rank in (0..ranks).map(RankId) {
                for index in 0..part.steps(rank) {
                    let mut step = Step::new();
                    part.step(rank, index, &mut step);
                    assert_eq!(step.locals.is_empty(), phase == 1 || step.recvs.is_empty());
                    for send in &step.sends {
                        *sent.entry((rank.0, send.peer.0)).or_default() += 1;
                    }
                }
            }
            sent
        };
        let (up, down) = (sent(0), sent(1));
        assert!(up.iter().all(|(&(from, to), count)| down.get(&(to, from)) == Some(count)));
        assert_eq!(up.len(), down.len());
        assert_eq!(up.values().sum::<u32>(), 2 * pieces * (ranks - 1));
    }
    // With one chunk, `phased` delays nothing.
    let [one, other] = ["nccl", "nccl,phased"].map(|argument| {
        build(&format!("double_binary_tree:{argument}"), Collective::AllReduce, 16)
    });
    check::same_steps(&*one.unwrap(), &*other.unwrap());
}

/// For even N the trees are mirror images of each other: so are the loads of rank r and rank N - 1
/// - r.
#[test]
fn mirrored_ranks_send_as_much() {
    for (ranks, argument) in [(6, "4"), (16, "nccl"), (64, "nccl,phased,2"), (30, "nccl,3")] {
        let notation = format!("double_binary_tree:{argument}");
        let schedule = build(&notation, Collective::AllReduce, ranks).unwrap();
        let sent = |rank| -> u32 {
            let chunks = |index| {
                let mut step = Step::new();
                schedule.step(RankId(rank), index, &mut step);
                step.sends.iter().map(|send| send.chunks.len()).sum::<u32>()
            };
            (0..schedule.steps(RankId(rank))).map(chunks).sum()
        };
        assert!((0..ranks).all(|rank| sent(rank) == sent(ranks - 1 - rank)), "{notation}");
    }
}
