//! Assignment of links to ports: a matching at every router, separate for outputs and inputs.

use super::mesh::Port;

/// The ports at one end of a router: the link at each, by [`Port::index`].
pub(super) type Taken = [Option<usize>; 4];

/// A link that can use one of several ports, in order of preference.
pub(super) struct Candidate {
    /// The link.
    pub(super) link: usize,
    /// The ports it can use.
    pub(super) ports: Vec<Port>,
}

/// Assigns a free port to every candidate. Each candidate takes its first available port; earlier
/// candidates move if they can (augmenting paths, which find a matching of a bipartite graph if one
/// exists).
///
/// # Errors
/// The index of a candidate that no matching includes.
pub(super) fn assign(candidates: &[Candidate], fixed: &Taken) -> Result<Taken, usize> {
    // Indices into `candidates`, by port.
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
    // A free port avoids moving other candidates.
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
