//! Searches on graphs given by a neighbour function, and the layout of adjacency lists.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Add;

/// The hops from a vertex to every vertex, by a breadth-first search; `u32::MAX` for unreachable
/// vertices. `next` visits the neighbours of a vertex.
pub fn steps(vertices: usize, source: u32, next: impl Fn(u32, &mut dyn FnMut(u32))) -> Vec<u32> {
    let mut steps = vec![u32::MAX; vertices];
    steps[source as usize] = 0;
    let mut queue = VecDeque::from([source]);
    while let Some(at) = queue.pop_front() {
        let further = steps[at as usize] + 1;
        next(at, &mut |to| {
            if steps[to as usize] == u32::MAX {
                steps[to as usize] = further;
                queue.push_back(to);
            }
        });
    }
    steps
}

/// The least cost of a path from a vertex to every vertex (Dijkstra); `most` for unreachable
/// vertices. `next` visits the neighbours of a vertex with the cost of each step.
pub fn least_costs<T: Copy + Ord + Default + Add<Output = T>>(
    vertices: usize,
    source: u32,
    most: T,
    next: impl Fn(u32, &mut dyn FnMut(u32, T)),
) -> Vec<T> {
    let mut least = vec![most; vertices];
    least[source as usize] = T::default();
    let mut heap = BinaryHeap::from([Reverse((T::default(), source))]);
    while let Some(Reverse((cost, at))) = heap.pop() {
        if cost > least[at as usize] {
            continue;
        }
        next(at, &mut |to, more| {
            let through = cost + more;
            if through < least[to as usize] {
                least[to as usize] = through;
                heap.push(Reverse((through, to)));
            }
        });
    }
    least
}

/// The offsets of links grouped by the vertex at one of their ends, and the total: vertex v has the
/// range `starts[v]..starts[v + 1]`.
pub fn starts(vertices: usize, ends: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0; vertices + 1];
    for vertex in ends {
        starts[vertex as usize + 1] += 1;
    }
    for vertex in 0..vertices {
        starts[vertex + 1] += starts[vertex];
    }
    starts
}
