//! Rows: switches on a grid of any number of dimensions, with cables between every two that differ in
//! one dimension only. A HyperX, and a group of a dragonfly.

use super::keyed::crossed;
use crate::ids::VertexId;
use crate::topology::{Builder, LinkParameters};

/// Sizes and cables per dimension; the first dimension is the fastest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    pub(super) sizes: Vec<u32>,
    /// Between two switches of a row.
    pub(super) cables: Vec<u32>,
}

impl Rows {
    /// How many switches there are; saturates, for the caller to refuse.
    pub(super) fn switches(&self) -> u64 {
        self.sizes.iter().fold(1, |product: u64, &size| product.saturating_mul(u64::from(size)))
    }

    /// How many cables there are; saturates.
    pub(super) fn cable_count(&self) -> u64 {
        let along = self.sizes.iter().zip(&self.cables).map(|(&size, &cables)| {
            let rows = self.switches() / u64::from(size);
            let pairs = u64::from(size) * u64::from(size - 1) / 2;
            rows.saturating_mul(pairs).saturating_mul(u64::from(cables))
        });
        along.fold(0, u64::saturating_add)
    }

    /// The hops between the two switches that are farthest apart.
    pub(super) fn diameter(&self) -> u32 {
        u32::try_from(self.sizes.iter().filter(|&&size| size > 1).count()).unwrap_or(u32::MAX)
    }

    /// Lays the cables, with one set of parameters per dimension.
    pub(super) fn join(
        &self,
        builder: &mut Builder,
        switches: &[VertexId],
        links: &[LinkParameters],
    ) {
        let mut stride = 1;
        for ((&size, &cables), &parameters) in self.sizes.iter().zip(&self.cables).zip(links) {
            let size = size as usize;
            for (number, &switch) in switches.iter().enumerate() {
                for further in 1..size - number / stride % size {
                    for _ in 0..cables {
                        builder.cable(switch, switches[number + further * stride], parameters);
                    }
                }
            }
            stride *= size;
        }
    }

    /// `,k=1x3`, where a row has more than one cable between two switches.
    pub(super) fn cables_notation(&self) -> String {
        let several = self.cables.iter().any(|&cables| cables > 1);
        if several { format!(",k={}", crossed(&self.cables)) } else { String::new() }
    }
}
