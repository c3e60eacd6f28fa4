//! A circle in a graph, if there is one.

/// Where a search has been.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

/// A circle in a graph, by depth-first search without recursion.
pub(crate) fn circle(after: &[Vec<u32>]) -> Vec<u32> {
    let mut marks = vec![Mark::New; after.len()];
    for start in (0..).take(after.len()) {
        let mut path: Vec<(u32, usize)> = Vec::new();
        if marks[start as usize] == Mark::New {
            marks[start as usize] = Mark::Open;
            path.push((start, 0));
        }
        while let Some((at, turn)) = path.last_mut() {
            let Some(&next) = after[*at as usize].get(*turn) else {
                marks[*at as usize] = Mark::Done;
                path.pop();
                continue;
            };
            *turn += 1;
            match marks[next as usize] {
                Mark::Done => {}
                Mark::Open => {
                    let begin = path.iter().position(|step| step.0 == next).unwrap_or(0);
                    return path[begin..].iter().map(|step| step.0).collect();
                }
                Mark::New => {
                    marks[next as usize] = Mark::Open;
                    path.push((next, 0));
                }
            }
        }
    }
    Vec::new()
}
