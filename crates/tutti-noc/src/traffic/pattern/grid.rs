//! Patterns along the dimensions of a grid.

use super::{Call, Entry, Pattern, Rule, TrafficError};

pub(super) const TORNADO: Entry = Entry {
    name: "tornado",
    argument: "",
    summary: "in every dimension, the node ceil(k/2) - 1 positions ahead",
    build: |call| shift(call, |side| side.div_ceil(2) - 1),
};

pub(super) const NEIGHBOUR: Entry = Entry {
    name: "neighbour",
    argument: "",
    summary: "in every dimension, the next node, with wraparound",
    build: |call| shift(call, |side| 1 % side),
};

pub(super) const BAD_YARC: Entry = Entry {
    name: "bad_yarc",
    argument: "",
    summary: "on a square grid, any node of the column that has the number of the source's row",
    build: |call| match call.grid()? {
        [width, height] if width == height => Ok(Rule::Yarc(*width)),
        other => Err(call.wrong_grid(other, "two dimensions of the same size")),
    },
};

/// So many places on in every dimension, around the end.
fn shift(call: &Call<'_>, places: fn(u32) -> u32) -> Result<Rule, TrafficError> {
    let grid = call.grid()?;
    Ok(Pattern::fixed(call.nodes, |source| {
        let (mut left, mut stride, mut destination) = (source, 1, 0);
        for &side in grid {
            let digit = u64::from(left % side) + u64::from(places(side));
            // Below the side again, so it is 32 bits.
            let digit = u32::try_from(digit % u64::from(side)).unwrap_or_default();
            destination += digit * stride;
            left /= side;
            stride *= side;
        }
        destination
    }))
}
