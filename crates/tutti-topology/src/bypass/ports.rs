//! Which link takes which port: a matching at every router, outputs and inputs apart.

use super::mesh::Port;

/// The ports at one end of a router: by [`Port::index`], the link that has it.
pub(super) type Taken = [Option<usize>; 4];

/// A link that may take any of some ports, the one it likes best first.
pub(super) struct Candidate {
    /// Its number.
    pub(super) link: usize,
    /// What it may take.
    pub(super) ports: Vec<Port>,
}

/// Gives every candidate a port that is not `fixed`; each in turn takes the first that it can have,
/// and others move on for it where they can (augmenting paths; of a bipartite graph they find a matching
/// whenever there is one). The candidate for which there is none is returned otherwise.
pub(super) fn assign(candidates: &[Candidate], fixed: &Taken) -> Result<Taken, usize> {
    // By port, a place in `candidates`.
    let mut matched: Taken = [None; 4];
    for place in 0..candidates.len() {
        let mut seen = [false; 4];
        if !augment(candidates, fixed, &mut matched, &mut seen, place) {
            return Err(place);
        }
    }
    let mut taken = *fixed;
    for (slot, place) in taken.iter_mut().zip(matched) {
        *slot = slot.or(place.map(|place| candidates[place].link));
    }
    Ok(taken)
}

fn augment(
    candidates: &[Candidate],
    fixed: &Taken,
    matched: &mut Taken,
    seen: &mut [bool; 4],
    place: usize,
) -> bool {
    let ports = || candidates[place].ports.iter().map(|port| port.index());
    // A free port before anybody has to move.
    let open = ports().find(|&port| fixed[port].is_none() && matched[port].is_none());
    if let Some(port) = open {
        matched[port] = Some(place);
        return true;
    }
    for port in ports() {
        if fixed[port].is_some() || std::mem::replace(&mut seen[port], true) {
            continue;
        }
        let Some(other) = matched[port] else { continue };
        if augment(candidates, fixed, matched, seen, other) {
            matched[port] = Some(place);
            return true;
        }
    }
    false
}
