//! Rows: switches on a grid of any number of dimensions, with cables between every two that differ
//! in one dimension only: a HyperX, a flattened butterfly, or a group of a dragonfly.

use super::keyed::{crossed, product};
use crate::{Builder, LinkParameters};
use tutti_units::ids::VertexId;

/// Sizes and cables per dimension; the first dimension varies fastest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    pub(super) sizes: Vec<u32>,
    /// The cables between two switches of a row.
    pub(super) cables: Vec<u32>,
}

impl Rows {
    /// The number of switches; saturates, so that the caller can reject it.
    pub(super) fn switches(&self) -> u64 {
        product(&self.sizes)
    }

    /// The number of cables; saturates.
    pub(super) fn cable_count(&self) -> u64 {
        let along = self.sizes.iter().zip(&self.cables).map(|(&size, &cables)| {
            let rows = self.switches() / u64::from(size);
            let pairs = u64::from(size) * u64::from(size - 1) / 2;
            rows.saturating_mul(pairs).saturating_mul(u64::from(cables))
        });
        along.fold(0, u64::saturating_add)
    }

    /// The hops between the two most distant switches.
    pub(super) fn diameter(&self) -> u32 {
        u32::try_from(self.sizes.iter().filter(|&&size| size > 1).count()).unwrap_or(u32::MAX)
    }

    /// Adds the cables, with parameters by dimension and by the distance of the switches in it.
    pub(super) fn join(
        &self,
        builder: &mut Builder,
        switches: &[VertexId],
        parameters: impl Fn(usize, usize) -> LinkParameters,
    ) {
        let mut stride = 1;
        for (dimension, (&size, &cables)) in self.sizes.iter().zip(&self.cables).enumerate() {
            let size = size as usize;
            for (number, &switch) in switches.iter().enumerate() {
                for further in 1..size - number / stride % size {
                    let link = parameters(dimension, further);
                    for _ in 0..cables {
                        builder.cable(switch, switches[number + further * stride], link);
                    }
                }
            }
            stride *= size;
        }
    }

    /// The next switch from `at` towards `destination`, lowest dimension first.
    pub(super) fn next_towards(&self, at: u32, destination: u32) -> Option<u32> {
        let mut stride = 1;
        for &size in &self.sizes {
            let (here, there) = (at / stride % size, destination / stride % size);
            if here != there {
                return Some(at - here * stride + there * stride);
            }
            stride *= size;
        }
        None
    }

    /// The bisection of NPUs, `npus` on each switch, if every dimension has the same number of
    /// cables. One half of the NPUs is on the side of x switches; an NPU whose switch is on the
    /// other side costs a link.
    pub(super) fn bisection(&self, npus: u64) -> Option<u64> {
        let half = self.switches() * npus / 2;
        let cuts = (0..).zip(self.cuts()?);
        cuts.map(|(switches, cut)| cut + half.abs_diff(switches * npus)).min()
    }

    /// The bisection of the switches themselves, if every dimension has the same number of cables.
    pub(super) fn bisection_of_switches(&self) -> Option<u64> {
        self.cuts()?.nth(usize::try_from(self.switches() / 2).ok()?)
    }

    /// The fewest links from x switches to the others, for x from none to all, if every dimension
    /// has the same number of cables. Of all sets of x switches, the first x in lexicographic
    /// order, the longest dimension fastest, have the fewest links to the others (Lindsey,
    /// "Assignment of numbers to vertices", Amer. Math. Monthly 71, 1964).
    fn cuts(&self) -> Option<impl Iterator<Item = u64>> {
        let mut sizes: Vec<(u32, u32)> =
            self.sizes.iter().copied().zip(self.cables.iter().copied()).collect();
        sizes.retain(|&(size, _)| size > 1);
        let cables = sizes.first().map_or(1, |&(_, cables)| cables);
        if sizes.iter().any(|&(_, other)| other != cables) {
            return None;
        }
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let neighbours: u64 = sizes.iter().map(|&(size, _)| u64::from(size) - 1).sum();
        let after = (0..self.switches()).scan(0, move |cut, first| {
            // The next switch is joined to the earlier ones that are lower in one of its digits.
            let mut rest = first;
            let mut lower = 0;
            for &(size, _) in &sizes {
                lower += rest % u64::from(size);
                rest /= u64::from(size);
            }
            *cut = *cut + neighbours - 2 * lower;
            Some(*cut * u64::from(cables))
        });
        Some(std::iter::once(0).chain(after))
    }

    /// The notation `,k=1x3`, if a row has more than one cable between two switches.
    pub(super) fn cables_notation(&self) -> String {
        let several = self.cables.iter().any(|&cables| cables > 1);
        if several { format!(",k={}", crossed(&self.cables)) } else { String::new() }
    }
}
