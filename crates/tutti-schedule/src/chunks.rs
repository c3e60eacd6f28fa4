//! Chunks: equal fractions of a payload, and their conversion to bytes.

use super::{Blocks, Schedule, Shape};
use crate::collective::Collective;
use tutti_units::Bytes;
use tutti_units::ids::RankId;

/// A range of chunks, `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub struct ChunkRange {
    /// First chunk.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

impl ChunkRange {
    /// `start..end`.
    #[inline]
    #[must_use]
    pub const fn new(start: u32, end: u32) -> ChunkRange {
        ChunkRange { start, end }
    }

    /// Returns the range with the single chunk `index`.
    #[inline]
    #[must_use]
    pub const fn one(index: u32) -> ChunkRange {
        ChunkRange { start: index, end: index + 1 }
    }

    /// Returns the number of chunks.
    #[inline]
    #[must_use]
    pub const fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether the range is empty.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns whether the ranges have a common chunk.
    #[inline]
    #[must_use]
    pub const fn overlaps(self, other: ChunkRange) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Returns the chunk indices.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = u32> {
        self.start..self.end
    }
}

impl std::fmt::Display for ChunkRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.len() == 1 {
            write!(f, "{}", self.start)
        } else {
            write!(f, "{}..{}", self.start, self.end)
        }
    }
}

/// An invalid size of a payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "LayoutError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum LayoutError {
    /// The size is not a multiple of the element size.
    #[error("a size of {size} is not a multiple of the datatype's {element} bytes")]
    PartialElement { size: Bytes, element: u64 },
    /// An element of no bytes.
    #[error("a datatype has at least one byte")]
    EmptyElement,
    /// Parts of unequal size that are copied to other positions: a larger part would not fit.
    #[error(
        "this schedule of {collective} on {ranks} ranks needs equal parts: {size} is not a multiple of \
         {chunks} x {element} bytes"
    )]
    UnequalParts { collective: &'static str, size: Bytes, ranks: u32, chunks: u32, element: u64 },
    /// A barrier with data.
    #[error("a barrier carries no data: its size is 0 B, not {size}")]
    BarrierWithData { size: Bytes },
    /// A payload divided into no chunks.
    #[error("a payload has at least one chunk")]
    NoChunks,
}

/// The division of a payload of elements into chunks.
///
/// Chunk `i` of `C` holds elements `floor(i E / C) .. floor((i + 1) E / C)` of `E`. Chunks differ
/// by at most one element, and their sum is the payload, for any `C` and `E`. With fewer elements
/// than chunks some chunks are empty; their messages are sent with zero bytes.
///
/// With blocks, chunk `i` starts at element `floor(E B / L)`: B is the sum of the sizes before it,
/// and L the largest sum of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout<'a> {
    elements: u64,
    element_bytes: u64,
    chunks: u32,
    /// The bytes of a chunk if all are equal: saves two divisions per message.
    even: Option<u64>,
    /// The relative sizes of the chunks; otherwise they are equal.
    blocks: Option<&'a Blocks>,
}

impl<'a> Layout<'a> {
    /// Returns the layout of a schedule's payload: `size` bytes by its collective's convention, of
    /// elements of `element_bytes`.
    ///
    /// # Errors
    /// If the size does not suit the datatype, the collective or the schedule, which may require
    /// equal chunks ([`Schedule::moves_chunks`]).
    pub fn of_schedule(
        schedule: &'a dyn Schedule,
        size: Bytes,
        element_bytes: u64,
    ) -> Result<Layout<'a>, LayoutError> {
        let moves = schedule.moves_chunks();
        let layout = Layout::checked(schedule.shape(), moves, size, element_bytes)?;
        Ok(match schedule.blocks() {
            None => layout,
            blocks => Layout { even: None, blocks, ..layout },
        })
    }

    /// As [`Layout::of_schedule`], from the shape alone.
    ///
    /// # Errors
    /// If the size does not suit the datatype or the collective.
    pub fn of(shape: &Shape, size: Bytes, element_bytes: u64) -> Result<Layout<'a>, LayoutError> {
        Layout::checked(shape, shape.moves_chunks(), size, element_bytes)
    }

    fn checked(
        shape: &Shape,
        moves: bool,
        size: Bytes,
        element: u64,
    ) -> Result<Layout<'a>, LayoutError> {
        let layout = Layout::new(size, element, shape.chunks)?;
        let &Shape { collective, ranks, chunks, .. } = shape;
        if moves && layout.even.is_none() {
            let collective = collective.name();
            return Err(LayoutError::UnequalParts { collective, size, ranks, chunks, element });
        }
        if collective == Collective::Barrier && size.0 > 0 {
            return Err(LayoutError::BarrierWithData { size });
        }
        Ok(layout)
    }

    /// Returns the layout of `size` bytes, of elements of `element_bytes`, in `chunks` chunks.
    ///
    /// # Errors
    /// If the size is not a multiple of the element size, or there are no chunks.
    pub fn new(size: Bytes, element_bytes: u64, chunks: u32) -> Result<Layout<'a>, LayoutError> {
        if element_bytes == 0 {
            return Err(LayoutError::EmptyElement);
        }
        if chunks == 0 {
            return Err(LayoutError::NoChunks);
        }
        if !size.0.is_multiple_of(element_bytes) {
            return Err(LayoutError::PartialElement { size, element: element_bytes });
        }
        let elements = size.0 / element_bytes;
        let even = elements
            .is_multiple_of(u64::from(chunks))
            .then(|| elements / u64::from(chunks) * element_bytes);
        Ok(Layout { elements, element_bytes, chunks, even, blocks: None })
    }

    /// Returns the bytes of a range of chunks; saturates for chunks beyond the payload.
    #[inline]
    #[must_use]
    pub fn bytes(&self, range: ChunkRange) -> Bytes {
        if let Some(even) = self.even {
            return Bytes(even.saturating_mul(u64::from(range.len())));
        }
        if range.len() == self.chunks && self.blocks.is_none() {
            return self.size();
        }
        let elements = self.before(range.end).saturating_sub(self.before(range.start));
        Bytes(elements.saturating_mul(self.element_bytes))
    }

    /// Returns the size of the payload.
    #[must_use]
    pub fn size(&self) -> Bytes {
        Bytes(self.elements * self.element_bytes)
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Returns the relative sizes of the chunks, if they are blocks.
    #[must_use]
    pub fn blocks(&self) -> Option<&'a Blocks> {
        self.blocks
    }

    /// Returns the bytes of the block from one rank to another; zero without blocks.
    #[must_use]
    pub fn block(&self, source: RankId, destination: RankId) -> Bytes {
        let chunk = self.blocks.map(|blocks| blocks.chunk(source, destination));
        chunk.map_or(Bytes(0), |chunk| self.bytes(ChunkRange::one(chunk)))
    }

    /// Returns the number of elements before a chunk.
    #[inline]
    fn before(&self, chunk: u32) -> u64 {
        let (part, of) = match self.blocks {
            None => (u64::from(chunk), u64::from(self.chunks)),
            Some(blocks) => (blocks.before(chunk), blocks.largest()),
        };
        // Most payloads fit 64 bits here, and a 128-bit division costs several times as much.
        if let Some(product) = self.elements.checked_mul(part) {
            return product / of;
        }
        let wide = u128::from(part) * u128::from(self.elements) / u128::from(of);
        u64::try_from(wide).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slot;

    #[test]
    fn chunks_add_up_to_the_payload_whatever_divides() {
        for (elements, chunks) in [(16, 8), (17, 8), (3, 8), (0, 4), (1_000_003, 7)] {
            let layout = Layout::new(Bytes(elements * 4), 4, chunks).unwrap();
            let parts: u64 = (0..chunks).map(|i| layout.bytes(ChunkRange::one(i)).0).sum();
            assert_eq!(parts, elements * 4);
            assert_eq!(layout.bytes(ChunkRange::new(0, chunks)).0, elements * 4);
        }
    }

    #[test]
    fn the_largest_payload_and_runs_beyond_it_are_counted() {
        for size in [u64::MAX, u64::MAX - 1] {
            let layout = Layout::new(Bytes(size), 1, 2).unwrap();
            assert_eq!(layout.bytes(ChunkRange::new(0, 2)).0, size);
            assert_eq!(layout.bytes(ChunkRange::new(0, u32::MAX)).0, u64::MAX);
        }
        let layout = Layout::new(Bytes(u64::MAX / 8 * 8), 8, 3).unwrap();
        let parts: u64 = (0..3).map(|i| layout.bytes(ChunkRange::one(i)).0).sum();
        assert_eq!(parts, u64::MAX / 8 * 8);
        assert_eq!(layout.bytes(ChunkRange::new(1, u32::MAX)).0, u64::MAX);
    }

    #[test]
    fn moved_chunks_must_be_equal() {
        let shape = |collective, result| {
            let name = String::new();
            Shape { name, collective, ranks: 4, chunks: 4, slots: 2, result }
        };
        let laid_out = |collective, result| Layout::of(&shape(collective, result), Bytes(40), 8);
        for (collective, result) in [
            (Collective::AllToAll, Slot::DATA),
            (Collective::AllGather, Slot(1)),
            (Collective::ReduceScatter, Slot(1)),
        ] {
            let error = laid_out(collective, result).unwrap_err().to_string();
            let expected = format!(
                "this schedule of {collective} on 4 ranks needs equal parts: 40 B is not a multiple of 4 x 8 bytes"
            );
            assert_eq!(error, expected);
            assert!(Layout::of(&shape(collective, result), Bytes(64), 8).is_ok());
        }
        assert!(laid_out(Collective::AllGather, Slot::DATA).is_ok());
        assert!(laid_out(Collective::AllReduce, Slot(1)).is_ok());
    }

    #[test]
    fn sizes_that_cut_an_element_are_refused() {
        let error = Layout::new(Bytes(10), 4, 2).unwrap_err();
        assert_eq!(error.to_string(), "a size of 10 B is not a multiple of the datatype's 4 bytes");
    }
}
