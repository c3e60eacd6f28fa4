//! Random destinations that are not all as likely, and depend on the source.

use super::{Call, Entry, Rule, TrafficError, below};

pub(super) const DIAGONAL: Entry = Entry {
    name: "diagonal",
    argument: "",
    summary: "1/3 of the packets to the next node, 2/3 to the source itself",
    build: |_| Ok(Rule::Diagonal),
};

pub(super) const ASYMMETRIC: Entry = Entry {
    name: "asymmetric",
    argument: "",
    summary: "the source's number modulo n/2, in either half with equal probability",
    build: |call| {
        call.at_least(2, "at least two")?;
        Ok(Rule::Asymmetric)
    },
};

pub(super) const TAPER64: Entry = Entry {
    name: "taper64",
    argument: "",
    summary: "on 8 x 8 nodes, every other packet to one of the nine nodes around the source",
    build: |call| if call.nodes == 64 { Ok(Rule::Taper64) } else { Err(call.nodes("exactly 64")) },
};

pub(super) const BAD_DRAGONFLY: Entry = Entry {
    name: "bad_dragonfly",
    argument: "NODES_PER_GROUP",
    summary: "any node of the next group; all packets of a group compete for the same global links",
    build: bad_dragonfly,
};

fn bad_dragonfly(call: &Call<'_>) -> Result<Rule, TrafficError> {
    let group: u32 = call.number(call.argument()?)?;
    if group == 0 {
        return Err(call.malformed());
    }
    if call.nodes == group || !call.nodes.is_multiple_of(group) {
        return Err(call.nodes("two or more groups of this many"));
    }
    Ok(Rule::NextGroup(group))
}

#[inline]
pub(super) fn diagonal(bits: u64, source: u32, nodes: u32) -> u32 {
    match below(bits, 3) {
        0 if source + 1 < nodes => source + 1,
        0 => 0,
        _ => source,
    }
}

#[inline]
pub(super) fn asymmetric(bits: u64, source: u32, nodes: u32) -> u32 {
    let half = nodes / 2;
    source % half + half * below(bits, 2)
}

#[inline]
pub(super) fn taper64(near: u64, bits: u64, source: u32) -> u32 {
    if below(near, 2) == 0 {
        return below(bits, 64);
    }
    let place = below(bits, 9);
    // One row and one place back, then 0 to 2 of each on.
    (source + 64 - 9 + place / 3 * 8 + place % 3) % 64
}

#[inline]
pub(super) fn next_group(bits: u64, source: u32, nodes: u32, group: u32) -> u32 {
    let next = source / group + 1;
    let next = if next == nodes / group { 0 } else { next };
    next * group + below(bits, group)
}

/// The probability of a destination of [`diagonal`].
pub(super) fn diagonal_share(source: u32, destination: u32, nodes: u32) -> f64 {
    let thirds =
        u32::from(destination == (source + 1) % nodes) + 2 * u32::from(destination == source);
    f64::from(thirds) / 3.0
}

/// The probability of a destination of [`taper64`].
pub(super) fn taper64_share(source: u32, destination: u32) -> f64 {
    let beyond = (destination + 64 + 9 - source) % 64;
    let is_near = beyond / 8 < 3 && beyond % 8 < 3;
    0.5 / 64.0 + if is_near { 0.5 / 9.0 } else { 0.0 }
}
