//! Partners: the steps of Swing along one ring, and along the dimensions of a torus in turn.

use super::super::divide::Divisor;
use tutti_units::ids::RankId;

/// 1 - 2 + 4 - ... with step + 1 terms.
pub(in crate::algorithm) fn rho(step: u32) -> i64 {
    (1 - (-2_i64).pow(step + 1)) / 3
}

/// Returns the number `distance` to the right of `place` on a ring of that size; to the left for
/// odd `place`.
#[inline]
pub(in crate::algorithm) fn swung(place: u32, distance: i64, size: u32) -> u32 {
    let distance = if place.is_multiple_of(2) { distance } else { -distance };
    let sum = (i64::from(place) + distance).rem_euclid(i64::from(size));
    u32::try_from(sum).unwrap_or_default()
}

/// A step on the torus: its dimension, and the step within that dimension.
struct Turn {
    stride: Divisor,
    size: Divisor,
    distance: i64,
}

/// The steps of a torus whose sides are powers of two.
pub(in crate::algorithm) struct Turns(Vec<Turn>);

impl Turns {
    /// Dimensions take turns; a dimension without steps left is skipped.
    pub(in crate::algorithm) fn new(sizes: &[u32]) -> Turns {
        let mut turns = Vec::new();
        let most = sizes.iter().map(|size| size.ilog2()).max().unwrap_or(0);
        for step in 0..most {
            let mut stride = 1;
            for &size in sizes {
                if step < size.ilog2() {
                    let (along, size) = (Divisor::new(stride), Divisor::new(size));
                    turns.push(Turn { stride: along, size, distance: rho(step) });
                }
                stride *= size;
            }
        }
        Turns(turns)
    }

    pub(in crate::algorithm) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Returns the partner of `rank`.
    #[inline]
    pub(in crate::algorithm) fn partner(&self, rank: u32, turn: u32) -> RankId {
        let Turn { stride, size, distance } = &self.0[turn as usize];
        let place = size.divide(stride.divide(rank).0).1;
        let other = swung(place, *distance, size.value());
        RankId(rank - place * stride.value() + other * stride.value())
    }
}
