//! A cycle in a directed graph, for channel dependencies and for VC wait-for graphs.
//!
//! The graph is a list of successors per vertex: dependencies are no links of a `Topology`, and
//! deadlock checks rebuild them.

/// The progress of the search at a vertex.
#[derive(Clone, Copy, PartialEq)]
enum Visit {
    New,
    Open,
    Done,
}

/// The vertices of a cycle, by depth-first search without recursion; empty without one.
pub(crate) fn find_cycle(after: &[Vec<u32>]) -> Vec<u32> {
    let mut visited = vec![Visit::New; after.len()];
    for start in (0..).take(after.len()) {
        let mut path: Vec<(u32, usize)> = Vec::new();
        if visited[start as usize] == Visit::New {
            visited[start as usize] = Visit::Open;
            path.push((start, 0));
        }
        while let Some((at, turn)) = path.last_mut() {
            let Some(&next) = after[*at as usize].get(*turn) else {
                visited[*at as usize] = Visit::Done;
                path.pop();
                continue;
            };
            *turn += 1;
            match visited[next as usize] {
                Visit::Done => {}
                Visit::Open => {
                    let begin = path.iter().position(|step| step.0 == next).unwrap_or(0);
                    return path[begin..].iter().map(|step| step.0).collect();
                }
                Visit::New => {
                    visited[next as usize] = Visit::Open;
                    path.push((next, 0));
                }
            }
        }
    }
    Vec::new()
}
