//! What no mesh can better: every message in one cycle, until a link or port is busy all the time.
//!
//! Links are loaded as packets along x, then y load them, a multicast loads a link of its tree
//! once, and responses are combined wherever they meet. Sources: the bounds for unicasts and
//! broadcasts are those of Park et al., "Approaching the Theoretical Limits of a Mesh NoC with a
//! 16-Node Chip Prototype in 45nm SOI", DAC 2012, here for any size.

use super::{Kind, Load, Members, Sources};

/// The bound for a load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ideal {
    /// Messages per cycle, of all sources together, at which a link or port is busy all the time.
    pub throughput: f64,
    /// Hops of a unicast on average; to the node farthest from the root of another message.
    pub hops: f64,
}

/// The bound for a load on a mesh of so many columns and rows; none for patterns of unicasts other
/// than `uniform` and `others`.
#[must_use]
pub fn ideal(load: &Load, columns: u32, rows: u32) -> Option<Ideal> {
    let nodes = f64::from(columns * rows);
    match &load.kind {
        Kind::Unicast { pattern, size } => {
            let text = pattern.to_string();
            // The fraction of packets that cross links: packets to the source itself do not.
            let remote = match text.as_str() {
                "uniform" => 1.0,
                "others" => nodes / (nodes - 1.0),
                _ => return None,
            };
            let busiest = (remote * busiest_cut(columns)).max(remote * busiest_cut(rows)).max(1.0);
            let hops = remote * (mean_distance(columns) + mean_distance(rows));
            Some(Ideal { throughput: nodes / (busiest * size.mean()), hops })
        }
        Kind::Broadcast { from } => {
            let receives = nodes - 1.0;
            Some(multicast(*from, receives, columns, rows))
        }
        Kind::Multicast { from, to } => {
            let receives = match to {
                Members::AnyNumber => nodes / 2.0,
                // Sets without members are drawn again.
                Members::Half => (nodes - 1.0) / 2.0 / (1.0 - libm::exp2(1.0 - nodes)),
            };
            Some(multicast(*from, receives, columns, rows))
        }
        Kind::Reduction { .. } => {
            // A NIC injects a response for every destination but itself; links carry less: the
            // first along a row one for every destination beyond it.
            let throughput = nodes / (nodes - 1.0);
            Some(Ideal { throughput, hops: mean_farthest(columns) + mean_farthest(rows) })
        }
    }
}

/// Ejection is what binds, or injection; trees load links less than that.
fn multicast(from: Sources, receives: f64, columns: u32, rows: u32) -> Ideal {
    let nodes = f64::from(columns * rows);
    match from {
        Sources::All => Ideal {
            throughput: (nodes / receives).min(nodes),
            hops: mean_farthest(columns) + mean_farthest(rows),
        },
        Sources::Corners => {
            // A node in the middle gets from all four; a corner from the other three.
            let share = receives / (nodes - 1.0);
            Ideal { throughput: (1.0 / share).min(4.0), hops: f64::from(columns + rows - 2) }
        }
    }
}

/// Flits over the busiest link of a line per flit that each node sends: those from one side, to the
/// other.
fn busiest_cut(side: u32) -> f64 {
    let (side, half) = (f64::from(side), f64::from(side / 2));
    half * (side - half) / side
}

/// Hops along a side between two places drawn at random, the same one too.
fn mean_distance(side: u32) -> f64 {
    let side = f64::from(side);
    (side * side - 1.0) / (3.0 * side)
}

/// Hops along a side from a place drawn at random to the end farthest from it.
fn mean_farthest(side: u32) -> f64 {
    let farthest = |place: u32| f64::from(place.max(side - 1 - place));
    (0..side).map(farthest).sum::<f64>() / f64::from(side)
}
