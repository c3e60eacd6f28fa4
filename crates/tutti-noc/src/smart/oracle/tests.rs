//! What tables hold, where trees go.

use super::Mesh;
use super::grid::Port;
use crate::smart::fabric::Fabric;
use crate::smart::message::{Combine, Flow, NodeSet};
use crate::smart::settings::{FanIn, FanOut, Settings, Tree};

fn directions(columns: u32, rows: u32, destination: u32, members: NodeSet) -> Vec<u32> {
    let fan_in = FanIn::Complete;
    let mut mesh = Mesh::new(&Settings { fan_in, ..Settings::new(columns, rows) }).unwrap();
    let (created, class, combine, held, tag) = (0, 0, Combine::Count, false, 0);
    let flow = Flow { created, destination, members, class, combine, held, tag };
    let flow = mesh.open(flow).unwrap();
    (0..columns * rows).map(|router| mesh.directions(flow, router)).collect()
}

#[test]
fn responses_to_40_of_five_by_five_arrive_from_the_directions_of_figure_4() {
    let n = directions(5, 5, 4, NodeSet::all_but(25, 4));
    let at = |x: usize, y: usize| n[x + 5 * y];
    // Two of router 40 (its neighbours), three of 41 (its NIC too), one of 00, which is a leaf.
    assert_eq!((at(4, 0), at(4, 1), at(0, 0)), (2, 3, 1));
    for y in 0..5 {
        assert_eq!(at(0, y), 1, "a leaf");
        assert!((1..4).all(|x| at(x, y) == 2), "its NIC, and the west");
    }
    assert_eq!((at(4, 2), at(4, 3), at(4, 4)), (3, 3, 2));
    assert_eq!(n.iter().sum::<u32>(), 24 + 24);
}

#[test]
fn responses_of_all_nodes_match_the_closed_form() {
    let mut seen = [0; 5];
    for to in 0..64 {
        let n = directions(8, 8, to, NodeSet::all_but(64, to));
        let (xd, yd) = (to % 8, to / 8);
        for router in 0..64 {
            let (x, y) = (router % 8, router / 8);
            let of = [
                router != to,
                1 <= x && x <= xd,
                xd <= x && x <= 6,
                x == xd && 1 <= y && y <= yd,
                x == xd && yd <= y && y <= 6,
            ];
            let expected = of.into_iter().map(u32::from).sum::<u32>();
            assert_eq!(n[router as usize], expected, "router {router}, to {to}");
            seen[expected as usize] += 1;
        }
        assert_eq!(n.iter().sum::<u32>(), 126);
    }
    assert_eq!(seen[0], 0);
    // 22, 66, 5 and 7 of a hundred.
    assert_eq!(seen[1..].iter().sum::<u32>(), 64 * 64);
    assert_eq!([1, 2, 3, 4].map(|n| (seen[n] * 100 + 2048) / 4096), [22, 66, 5, 7]);
}

#[test]
fn a_router_without_responses_expects_none() {
    let n = directions(4, 3, 3, [0, 2].into_iter().collect());
    assert_eq!(n, [1, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn trees_start_at_the_nearest_corner_and_share_no_turn() {
    let fan_out = FanOut::Greedy(Tree::Private);
    let mesh = Mesh::new(&Settings { fan_out, ..Settings::new(5, 4) }).unwrap();
    let trees = mesh.grid.corner_trees();
    assert_eq!(trees.map(|tree| tree.corner), [0, 4, 19, 15]);
    // x = 2 is nearer to the west of five, y = 2 to the north of four.
    assert_eq!([0, 2, 3, 12, 13].map(|node| mesh.grid.corner_tree(node).corner), [0, 0, 4, 15, 19]);
    let mut straights = Vec::new();
    let mut turns = Vec::new();
    for tree in trees {
        let edge = mesh.grid.line(tree.corner, tree.straight);
        for router in std::iter::once(tree.corner).chain(edge) {
            if mesh.grid.next(router, tree.straight).is_some() {
                straights.push((router, tree.straight));
            }
            let line = mesh.grid.line(router, tree.turn);
            turns.extend(std::iter::once(router).chain(line).filter_map(|router| {
                mesh.grid.next(router, tree.turn).map(|_| (router, tree.turn))
            }));
        }
    }
    for links in [&mut straights, &mut turns] {
        let all = links.len();
        links.sort_unstable_by_key(|&(router, port): &(u32, Port)| (router, port));
        links.dedup();
        assert_eq!(links.len(), all);
    }
    assert_eq!((straights.len(), turns.len()), (2 * (4 + 3), 2 * (5 * 3 + 4 * 4)));
}
