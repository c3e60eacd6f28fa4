//! Ring: every rank forwards one shard at a time to its right-hand neighbour.
//!
//! all_reduce is a reduce_scatter of n - 1 steps followed by an all_gather of n - 1 steps. Each
//! message is 1/n of the payload, so every link carries 2 (n - 1) / n of it, the minimum of any
//! all_reduce on a ring. With `bidirectional` every shard has two halves, which travel in opposite
//! directions: the same number of steps, with two messages of half the size each. This is faster
//! where a link and a port carry both directions at once. With a grid the ring follows a
//! Hamiltonian cycle of neighbours, see [`around`]. An all_to_all forwards every part to its
//! destination, see [`exchange`], or with `blockwise` one part per message, see [`blockwise`]. With
//! `segments=K` an all_reduce reduces each shard in K segments, see [`segmented`]. With `node=G` and
//! `channels=C` there are C rings through nodes of G ranks, see [`channels`]. Source: Patarasuk
//! and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel
//! Distrib. Comput. 69 (2009).

mod around;
mod blockwise;
mod channels;
mod exchange;
mod segmented;

use std::sync::Arc;

use around::Around;
use blockwise::{Blockwise, MOST_RANKS};
use channels::{Channels, Lanes, MOST_CHANNELS};
use exchange::Exchange;
use segmented::{Segmented, most_segments};

use super::grid::{self, Cycle, Grid};
use super::pipeline::Options;
use super::rings::{Directions, Rings, Walk};
use super::sizes::{Misfit, misfit};
use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "ring",
    summary: "shards travel around a ring of neighbours; fewest bytes, most steps",
    source: "Patarasuk and Yuan 2009",
    argument: "a grid, columns first, such as `4x4`, for a Hamiltonian cycle through it; `bidirectional` for half of \
               the payload in each direction; or both, such as `4x4,bidirectional`; `backward` for the opposite \
               direction; for all_to_all: `blockwise` for one part per message; for all_reduce: `segments=K` to reduce \
               each shard in K segments; otherwise `node=G,channels=C` for C rings on 1/C of the payload, which leave \
               nodes of G ranks at different ranks",
    collectives: &["all_reduce", "reduce_scatter", "all_gather", "all_to_all"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && read(request).is_ok(),
    build,
    critical_path,
};

const BOTH: &str = "ring:bidirectional";
const BACKWARD: &str = "ring:backward";
const BLOCKWISE: &str = "ring:blockwise";

struct Ring {
    shape: Shape,
    /// Steps that reduce; the others only forward.
    reducing: u32,
    /// The shard that rank 0 sends first: the reduction of shard s must end at rank s.
    first: u32,
}

/// The variant of the ring.
#[derive(Clone, Copy)]
struct Form {
    directions: Directions,
    around: Option<(Grid, Cycle)>,
    /// Whether a message of an all_to_all has one part.
    blockwise: bool,
    /// The segments of each shard of an all_reduce, if there are any.
    segments: Option<u32>,
    /// The rings through nodes, if there are several or nodes.
    lanes: Option<Lanes>,
}

impl Form {
    fn of(directions: Directions) -> Form {
        Form { directions, around: None, blockwise: false, segments: None, lanes: None }
    }
}

fn read(request: &Request) -> Result<Form, AlgorithmError> {
    let Some(argument) = request.argument else {
        return Ok(Form::of(Directions::Forward));
    };
    let other = match argument.trim() {
        "backward" => Some(backward(request)),
        "blockwise" => Some(blockwise(request)),
        text if text.starts_with("segments=") => Some(segmented(request)),
        text if ["node=", "channels="].iter().any(|key| text.starts_with(key)) => {
            Some(lanes(request))
        }
        _ => None,
    };
    if let Some(form) = other {
        return form.map_err(|misfit| request.misfit(ENTRY.name, misfit));
    }
    let (grid, both) = grid::bidirectional(argument);
    let around = match grid {
        "" if both => Ok(None),
        grid if grid.contains('x') => around_grid(request, grid).map(Some),
        _ => misfit(
            0,
            "expected `bidirectional`, `backward`, `blockwise`, `segments=K`, `node=G,channels=C`, a grid \
             such as `4x4`, or `4x4,bidirectional`"
                .to_owned(),
        ),
    };
    let around = around.map_err(|misfit| request.misfit(ENTRY.name, misfit))?;
    let directions = if both { Directions::Both } else { Directions::Forward };
    Ok(Form { around, ..Form::of(directions) })
}

fn backward(request: &Request) -> Result<Form, Misfit> {
    if request.collective == Collective::AllToAll {
        return misfit(0, "all_to_all does not support `backward`".to_owned());
    }
    Ok(Form::of(Directions::Backward))
}

fn blockwise(request: &Request) -> Result<Form, Misfit> {
    if request.collective != Collective::AllToAll {
        return misfit(0, format!("{} does not support `blockwise`", request.collective));
    }
    if request.ranks > MOST_RANKS {
        let ranks = request.ranks;
        return misfit(0, format!("{ranks} ranks are too many: expected at most {MOST_RANKS}"));
    }
    Ok(Form { blockwise: true, ..Form::of(Directions::Forward) })
}

fn segmented(request: &Request) -> Result<Form, Misfit> {
    if request.collective != Collective::AllReduce {
        return misfit(0, format!("{} does not support `segments`", request.collective));
    }
    let mut options = Options::of(request.argument);
    let segments = options.number("segments", most_segments(request.ranks))?;
    options.end("only `segments=K`")?;
    Ok(Form { segments: Some(segments), ..Form::of(Directions::Forward) })
}

fn lanes(request: &Request) -> Result<Form, Misfit> {
    if request.collective == Collective::AllToAll {
        return misfit(0, "all_to_all does not support `node` and `channels`".to_owned());
    }
    let ranks = request.ranks;
    let mut options = Options::of(request.argument);
    let node = options.number("node", ranks)?;
    let channels = options.number("channels", MOST_CHANNELS.min(u32::MAX / 2 / ranks))?;
    options.end("`node=G` or `channels=C`, such as `node=8,channels=8`")?;
    if !ranks.is_multiple_of(node) {
        return misfit(0, format!("{ranks} ranks are not nodes of {node} ranks"));
    }
    Ok(Form { lanes: Some(Lanes { node, channels }), ..Form::of(Directions::Forward) })
}

fn around_grid(request: &Request, text: &str) -> Result<(Grid, Cycle), Misfit> {
    let grid = Grid::read(text)?;
    grid.fits(request.ranks)?;
    if request.collective == Collective::AllToAll {
        let problem = "all_to_all does not support a grid";
        return misfit(0, problem.to_owned());
    }
    let problem =
        || format!("{grid} has no Hamiltonian cycle: expected an even number of rows or columns");
    let cycle = Cycle::of(grid).ok_or_else(|| Misfit { at: 0, problem: problem() })?;
    Ok((grid, cycle))
}

fn rings(request: &Request, directions: Directions) -> Rings {
    let walk = Walk { sizes: vec![request.ranks], directions, all_dimensions: false };
    let (name, parts) = if directions == Directions::Both { (BOTH, 2) } else { (BACKWARD, 1) };
    Rings::new(name.to_owned(), request.collective, &walk, parts * request.ranks)
}

fn exchange(request: &Request, both: bool) -> Exchange {
    let name = if both { BOTH } else { ENTRY.name };
    Exchange::new(name.to_owned(), request.ranks, both)
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let Form { directions, around, blockwise, segments, lanes } = read(request)?;
    if let Some(lanes) = lanes {
        let name = request.notation(ENTRY.name);
        return Ok(Arc::new(Channels::new(name, request.collective, request.ranks, lanes)));
    }
    if let Some(segments) = segments {
        let name = request.notation(ENTRY.name);
        return Ok(Arc::new(Segmented::new(name, request.ranks, segments)));
    }
    if blockwise {
        return Ok(Arc::new(Blockwise::new(BLOCKWISE.to_owned(), request.ranks)));
    }
    if request.collective == Collective::AllToAll {
        return Ok(Arc::new(exchange(request, directions == Directions::Both)));
    }
    let ring: Arc<dyn Schedule> = match directions {
        Directions::Forward => Arc::new(forward(request)),
        _ => Arc::new(rings(request, directions)),
    };
    Ok(match around {
        Some((grid, cycle)) => {
            Arc::new(Around::new(request.notation(ENTRY.name), ring, grid, cycle))
        }
        None => ring,
    })
}

fn forward(request: &Request) -> Ring {
    let n = request.ranks;
    let (reducing, first) = match request.collective {
        Collective::AllGather => (0, 0),
        _ => (n - 1, n - 1),
    };
    let slots = if reducing > 0 { 2 } else { 1 };
    Ring { shape: Shape::in_place(ENTRY.name, request.collective, n, n, slots), reducing, first }
}

fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let Form { directions, blockwise, segments, lanes, .. } = read(request).ok()?;
    if let Some(Lanes { channels, .. }) = lanes {
        return Some(channels::stages(request.collective, request.ranks, channels));
    }
    let (n, both) = (request.ranks, directions == Directions::Both);
    let stage = |reductions| Stage { messages: 1, receives: 1, chunks: 1, reductions, of: n };
    if let Some(segments) = segments {
        let reduce = Stage { of: n * segments, ..stage(1) };
        let reduce = std::iter::repeat_n(reduce, (segments * (n - 1)) as usize);
        return Some(reduce.chain(std::iter::repeat_n(stage(0), (n - 1) as usize)).collect());
    }
    if blockwise {
        return Some(vec![stage(0); blockwise::messages(n) as usize]);
    }
    if request.collective == Collective::AllToAll {
        return forwarding_stages(&exchange(request, both), n);
    }
    if both {
        return rings(request, directions).stages();
    }
    let reduce = std::iter::repeat_n(stage(1), (n - 1) as usize);
    let gather = std::iter::repeat_n(stage(0), (n - 1) as usize);
    Some(match request.collective {
        Collective::ReduceScatter => reduce.collect(),
        Collective::AllGather => gather.collect(),
        _ => reduce.chain(gather).collect(),
    })
}

/// All ranks stay synchronised; a step with two messages of different length has no stage.
fn forwarding_stages(exchange: &Exchange, of: u32) -> Option<Vec<Stage>> {
    let stage = |(forward, back): (u32, u32)| {
        let messages = 1 + u32::from(back > 0);
        let alike = back == 0 || back == forward;
        alike.then_some(Stage { messages, receives: messages, chunks: forward, reductions: 0, of })
    };
    exchange.lengths().map(stage).collect()
}

impl Schedule for Ring {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        let n = self.shape.ranks;
        if self.shape.collective == Collective::AllReduce { 2 * (n - 1) } else { n - 1 }
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let right = RankId(wrap(rank.0 + 1));
        let left = RankId(wrap(rank.0 + n - 1));
        // In the all_gather of an all_reduce each rank first sends its reduced shard.
        let (first, step) =
            if step >= self.reducing { (0, step - self.reducing) } else { (self.first, step) };
        let sent = wrap(wrap(rank.0 + first) + n - step);
        let received = wrap(sent + n - 1);
        out.send(right, Slot::DATA, ChunkRange::one(sent));
        if first == 0 {
            out.recv(left, Slot::DATA, ChunkRange::one(received));
        } else {
            out.fold_in(left, ChunkRange::one(received));
        }
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        Some(vec![Digit { stride: 1, size: self.shape.ranks }])
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        if step < self.reducing {
            format!("reduce_scatter {step}")
        } else {
            format!("all_gather {}", step - self.reducing)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    const KINDS: [Collective; 3] =
        [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather];

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, ENTRY.name, ranks);
            check::claims(&ENTRY, BOTH, ranks);
            check::performs(BLOCKWISE, Collective::AllToAll, ranks.min(48));
            for collective in KINDS {
                check::performs(BACKWARD, collective, ranks);
            }
        }
    }

    #[test]
    fn the_critical_path_is_exact_at_every_rank_count() {
        for (collective, ranks) in
            KINDS.into_iter().flat_map(|kind| (2..=24).map(move |n| (kind, n)))
        {
            assert!(check::critical_path_is_exact(ENTRY.name, collective, ranks));
            assert!(check::critical_path_is_exact(BOTH, collective, ranks));
            assert!(check::critical_path_is_exact(BACKWARD, collective, ranks));
        }
    }

    #[test]
    fn every_rank_sends_alike() {
        for notation in [ENTRY.name, BACKWARD, BOTH] {
            for collective in KINDS {
                assert!(check::is_symmetric(notation, collective, 5));
            }
        }
        assert!(check::is_symmetric(BLOCKWISE, Collective::AllToAll, 5));
    }

    /// A unidirectional walk along one dimension is the ring itself: the same ops.
    #[test]
    fn one_part_of_a_walk_is_the_ring() {
        for (collective, ranks) in
            KINDS.into_iter().flat_map(|kind| [2, 3, 8, 13].map(|n| (kind, n)))
        {
            let directions = Directions::Forward;
            let walk = Walk { sizes: vec![ranks], directions, all_dimensions: false };
            let walked = Rings::new(String::new(), collective, &walk, ranks);
            let ring = crate::algorithm::build(ENTRY.name, collective, ranks).unwrap();
            check::same_steps(&walked, &*ring);
        }
    }

    #[test]
    fn the_halves_go_in_opposite_directions() {
        let schedule = crate::algorithm::build(BOTH, Collective::AllReduce, 5).unwrap();
        let mut out = Step::new();
        for step in 0..8 {
            out.clear();
            schedule.step(RankId(2), step, &mut out);
            let [there, back] = out.sends[..] else { panic!("{:?}", out.sends) };
            assert_eq!((there.peer, back.peer), (RankId(3), RankId(1)));
            assert_eq!((there.chunks.start % 2, back.chunks.start % 2), (0, 1));
            assert_eq!(
                (there.chunks.len(), back.chunks.len(), schedule.shape().chunks),
                (1, 1, 10)
            );
        }
    }

    #[test]
    fn all_to_all_forwards_parts_to_their_destinations() {
        for ranks in 2..=24 {
            assert!(check::critical_path_is_exact(ENTRY.name, Collective::AllToAll, ranks));
            let both = check::critical_path_is_exact(BOTH, Collective::AllToAll, ranks);
            assert_eq!(both, ranks % 2 == 1 || ranks == 2, "{ranks} ranks");
            assert!(check::critical_path_is_exact(BLOCKWISE, Collective::AllToAll, ranks));
        }
        let schedule = crate::algorithm::build(BOTH, Collective::AllToAll, 6).unwrap();
        let lengths = |step| {
            let mut out = Step::new();
            schedule.step(RankId(4), step, &mut out);
            out.sends.iter().map(|send| (send.peer.0, send.chunks.len())).collect::<Vec<_>>()
        };
        assert_eq!(lengths(1), [(5, 3), (3, 2)]);
        assert_eq!(lengths(2), [(5, 2), (3, 1)]);
        assert_eq!(lengths(3), [(5, 1)]);
    }

    #[test]
    fn other_arguments_are_refused() {
        let refused = |notation: &str, collective, ranks| {
            crate::algorithm::build(notation, collective, ranks).err().unwrap().to_string()
        };
        let expected = "`both` does not fit ring: expected `bidirectional`, `backward`, `blockwise`, `segments=K`, \
                        `node=G,channels=C`, a grid such as `4x4`, or `4x4,bidirectional`";
        assert_eq!(refused("ring:both", Collective::AllReduce, 4), expected);
        let expected = "`blockwise` does not fit ring: all_reduce does not support `blockwise`";
        assert_eq!(refused(BLOCKWISE, Collective::AllReduce, 4), expected);
        let many = refused(BLOCKWISE, Collective::AllToAll, MOST_RANKS + 1);
        assert!(many.ends_with("2049 ranks are too many: expected at most 2048"), "{many}");
    }
}
