//! In network: reductions and multicasts by the switches, where the network supports them.
//!
//! The payload is divided among R roots. All ranks contribute their part of each root's share to
//! that root, and the network combines the contributions ([`Step::combine`]). Each root then
//! multicasts the result to all ranks, and the network forks the message ([`Step::multicast`]). A
//! share is divided into C segments: in each step segment s goes up and segment s - 1 comes down.
//! Both directions are in use, and no message is buffered. Every rank sends and receives the
//! payload once, for any rank count; a schedule of ordinary messages has to send nearly twice as
//! much.
//!
//! On a network without this support the same schedule runs as ordinary messages: a root receives
//! from all ranks, folds in rank order, and sends to all ranks sequentially. Reductions then have
//! the bits of the sequential sum. A network that combines folds in the order in which messages
//! meet.
//!
//! Sources: Krishna and Peh, "Single-Cycle Collective Communication Over A Shared Network Fabric",
//! NOCS 2014, for reduction and broadcast in the network. Klenk et al., "An in-network architecture
//! for accelerating shared-memory multiprocessor collectives", ISCA 2020 (NVLink SHARP), for one
//! share per rank.

use std::sync::Arc;

use super::sizes::{Misfit, misfit};
use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

#[cfg(test)]
mod tests;

pub(super) const ENTRY: Entry = Entry {
    name: "in_network",
    summary: "switches reduce messages towards a root and multicast messages from it",
    source: "Krishna and Peh 2014; Klenk et al. 2020 (NVLink SHARP)",
    argument: "[ROOTS,] [segments=C]: for all_reduce the roots that share the payload, such as `0+7+56+63` or `all` \
               (default 0); the number of pipeline segments per share (default 1)",
    collectives: &["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "barrier"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && form(request).is_ok(),
    build,
    critical_path,
};

/// The maximum number of segments: steps and chunks are counted in 32 bits.
const MOST: u32 = 1 << 20;

/// The parsed argument.
struct Form {
    roots: Vec<u32>,
    segments: u32,
}

fn form(request: &Request) -> Result<Form, AlgorithmError> {
    let refused = |problem: String| Err(request.refuse(ENTRY.name, 0, problem));
    let (roots, segments) = read(request.argument.unwrap_or_default(), request)
        .map_err(|misfit| request.misfit(ENTRY.name, misfit))?;
    let roots = match (request.collective, roots) {
        (Collective::AllReduce, Some(roots)) => roots,
        (Collective::AllReduce | Collective::Barrier, None) => vec![0],
        (other, None) => match other.root() {
            Some(root) => vec![root.0],
            None => (0..request.ranks).collect(),
        },
        (other, Some(_)) => {
            return refused(format!("{other} takes no roots, only `segments=C`"));
        }
    };
    let chunks = u64::from(segments) * roots.len() as u64;
    if request.collective == Collective::Barrier && segments > 1 {
        return refused("a barrier has no payload to divide into segments".to_owned());
    }
    if chunks > u64::from(MOST) {
        return refused(format!("{chunks} segments in total: expected at most {MOST}"));
    }
    Ok(Form { roots, segments })
}

/// Reads `0+7+56+63,segments=4`: the roots, if any, and the segments.
fn read(argument: &str, request: &Request) -> Result<(Option<Vec<u32>>, u32), Misfit> {
    let (mut roots, mut segments, mut at) = (None, None, 0);
    for word in argument.split(',').filter(|_| !argument.is_empty()) {
        let trimmed = word.trim();
        let place = at + word.len() - word.trim_start().len();
        if let Some(number) = trimmed.strip_prefix("segments=") {
            let given = number.parse::<u32>().ok().filter(|number| (1..=MOST).contains(number));
            let Some(given) = given else {
                return misfit(
                    place,
                    format!("invalid number of segments `{number}`: expected 1 to {MOST}"),
                );
            };
            if segments.replace(given).is_some() {
                return misfit(place, "`segments` appears twice".to_owned());
            }
        } else if roots.replace(ranks(trimmed, place, request.ranks)?).is_some() {
            return misfit(place, "a second list of roots: expected `+` between roots".to_owned());
        }
        at += word.len() + 1;
    }
    Ok((roots, segments.unwrap_or(1)))
}

/// Reads `all` or `0+7+56+63`.
fn ranks(text: &str, mut at: usize, ranks: u32) -> Result<Vec<u32>, Misfit> {
    if text == "all" {
        return Ok((0..ranks).collect());
    }
    let mut roots = Vec::new();
    for one in text.split('+') {
        match one.trim().parse::<u32>() {
            Ok(root) if root >= ranks => {
                return misfit(
                    at,
                    format!("root {root} is not one of the ranks 0 to {}", ranks - 1),
                );
            }
            Ok(root) if roots.contains(&root) => {
                return misfit(at, format!("root {root} appears twice"));
            }
            Ok(root) => roots.push(root),
            Err(_) => {
                let expected = "expected ranks, such as `0` or `0+7+56+63`, `all`, or `segments=C`";
                return misfit(at, format!("invalid root `{}`: {expected}", one.trim()));
            }
        }
        at += one.len() + 1;
    }
    Ok(roots)
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    Ok(Arc::new(InNetwork::new(request, form(request)?)))
}

/// With one segment and one root, or only multicasts, all ranks that finish last act alike. All
/// ranks contribute to several roots in the same order, so that contributions meet; the last rank
/// then depends on the network.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let Form { roots, segments } = form(request).ok()?;
    let (others, of) = (request.ranks - 1, u32::try_from(roots.len()).ok()?);
    let (up, down) = directions(request.collective);
    if segments > 1 || of > 1 && (up || of < request.ranks) {
        return None;
    }
    let stage =
        |messages, receives, reductions| Stage { messages, receives, chunks: 1, reductions, of };
    let up = up.then(|| stage(1, others, others));
    let down = down.then(|| stage(others, if of > 1 { others } else { 1 }, 0));
    Some(up.into_iter().chain(down).collect())
}

/// Returns whether the collective combines, and whether it multicasts.
fn directions(collective: Collective) -> (bool, bool) {
    let down = !matches!(collective, Collective::ReduceScatter | Collective::Reduce { .. });
    let up = !matches!(collective, Collective::AllGather | Collective::Broadcast { .. });
    (up, down)
}

struct InNetwork {
    shape: Shape,
    roots: Vec<u32>,
    segments: u32,
    up: bool,
    down: bool,
}

impl InNetwork {
    fn new(request: &Request, Form { roots, segments }: Form) -> InNetwork {
        let (up, down) = directions(request.collective);
        let shares = u32::try_from(roots.len()).expect("there are no more roots than ranks");
        let slots = if up { request.ranks } else { 1 };
        let shape = request.shape(ENTRY.name, shares * segments, slots);
        InNetwork { shape, roots, segments, up, down }
    }

    /// Returns the segment that goes up in a step.
    fn rising(&self, step: u32) -> Option<u32> {
        (self.up && step < self.segments).then_some(step)
    }

    /// Returns the segment that comes down: in a reduction, the one that went up in the previous
    /// step.
    fn falling(&self, step: u32) -> Option<u32> {
        step.checked_sub(u32::from(self.up)).filter(|_| self.down)
    }

    /// Returns the roots other than `rank`, with the chunk of a segment of their shares.
    fn other_roots(
        &self,
        rank: RankId,
        segment: u32,
    ) -> impl Iterator<Item = (RankId, ChunkRange)> + '_ {
        let shares = (0..).zip(&self.roots).filter(move |&(_, &root)| root != rank.0);
        shares.map(move |(share, &root)| (RankId(root), self.chunk(share, segment)))
    }

    fn chunk(&self, share: u32, segment: u32) -> ChunkRange {
        ChunkRange::one(share * self.segments + segment)
    }

    /// Returns the share whose root is `rank`.
    fn own_share(&self, rank: RankId) -> Option<u32> {
        let place = self.roots.iter().position(|&root| root == rank.0);
        place.and_then(|place| u32::try_from(place).ok())
    }

    /// Starts with the next rank, so that no two ranks start with the same peer.
    fn others(&self, rank: RankId) -> impl Iterator<Item = RankId> {
        (rank.0 + 1..self.shape.ranks).chain(0..rank.0).map(RankId)
    }

    /// Returns the root's slot for a rank's contribution and the sender; the root's contribution is
    /// in place.
    fn operand(rank: RankId, peer: u32) -> (Slot, Option<RankId>) {
        match peer.cmp(&rank.0) {
            std::cmp::Ordering::Less => (Slot(peer + 1), Some(RankId(peer))),
            std::cmp::Ordering::Equal => (Slot::DATA, None),
            std::cmp::Ordering::Greater => (Slot(peer), Some(RankId(peer))),
        }
    }
}

impl Schedule for InNetwork {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.segments + u32::from(self.up && self.down)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (rising, falling, share) =
            (self.rising(step), self.falling(step), self.own_share(rank));
        if let (Some(segment), Some(share)) = (falling, share) {
            out.multicast(self.others(rank), Slot::DATA, self.chunk(share, segment));
        }
        if let Some(segment) = rising {
            for (root, chunk) in self.other_roots(rank, segment) {
                out.contribute(root, Slot::DATA, chunk);
            }
        }
        if let Some(segment) = falling {
            for (root, chunk) in self.other_roots(rank, segment) {
                out.recv(root, Slot::DATA, chunk);
            }
        }
        if let (Some(segment), Some(share)) = (rising, share) {
            let operands = (0..self.shape.ranks).map(|peer| InNetwork::operand(rank, peer));
            out.combine(Slot::DATA, operands, self.chunk(share, segment));
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        match (self.rising(step), self.falling(step)) {
            (Some(up), Some(down)) => format!("up {up}, down {down}"),
            (Some(up), None) => format!("up {up}"),
            (None, Some(down)) => format!("down {down}"),
            (None, None) => format!("step {step}"),
        }
    }
}
