//! Permutations of the bits of a node's number: for powers of two.

use super::{Call, Entry, Pattern, Rule, TrafficError};

pub(super) const TRANSPOSE: Entry = Entry {
    name: "transpose",
    argument: "",
    summary: "swaps the halves of the address bits; on a square grid, swaps row and column",
    build: transpose,
};

pub(super) const COMPLEMENT: Entry = Entry {
    name: "bit_complement",
    argument: "",
    summary: "inverts every address bit",
    build: |call| {
        bits(call)?;
        Ok(Pattern::fixed(call.nodes, |source| call.nodes - 1 - source))
    },
};

pub(super) const REVERSE: Entry = Entry {
    name: "bit_reverse",
    argument: "",
    summary: "reverses the address bits",
    build: |call| {
        // The bits of a number below 2^bits are the last of 32 in reverse.
        let unused = 32 - bits(call)?;
        let reversed = |source: u32| source.reverse_bits().checked_shr(unused).unwrap_or(0);
        Ok(Pattern::fixed(call.nodes, reversed))
    },
};

pub(super) const SHUFFLE: Entry = Entry {
    name: "bit_shuffle",
    argument: "",
    summary: "rotates the address bits left by one",
    build: |call| {
        let top = bits(call)?.saturating_sub(1);
        let low = (1 << top) - 1;
        Ok(Pattern::fixed(call.nodes, |source| (source & low) << 1 | source >> top))
    },
};

/// How many bits a node's number has.
fn bits(call: &Call<'_>) -> Result<u32, TrafficError> {
    if call.nodes.is_power_of_two() {
        return Ok(call.nodes.trailing_zeros());
    }
    Err(call.nodes("a power of two"))
}

fn transpose(call: &Call<'_>) -> Result<Rule, TrafficError> {
    let side = match call.grid {
        _ if call.nodes.is_power_of_two() && call.nodes.trailing_zeros().is_multiple_of(2) => {
            1 << (call.nodes.trailing_zeros() / 2)
        }
        Some([width, height]) if width == height => call.grid()?[0],
        _ => return Err(call.nodes("an even power of two, or a square grid")),
    };
    Ok(Pattern::fixed(call.nodes, |source| source % side * side + source / side))
}
