//! Ownership of segments on the wires of all lines.

use super::error::BypassError;
use super::mesh::{BypassMesh, Port};
use super::request::LinkRequest;

/// No link.
const FREE: u32 = u32::MAX;

/// The segments of all bypass wires and the link that each belongs to.
pub(super) struct Segments {
    mesh: BypassMesh,
    /// The index of the requested link, by direction, line, wire and segment.
    of: Vec<u32>,
}

/// The segments that a piece covers.
#[derive(Clone, Copy)]
pub(super) struct Span {
    direction: Port,
    line: u32,
    /// The first segment and the one after the last. Segment s lies between positions s and s + 1
    /// of the line.
    first: u32,
    end: u32,
}

impl Span {
    /// The span of a validated link.
    pub(super) fn of(mesh: &BypassMesh, request: &LinkRequest, direction: Port) -> Span {
        let (from, to) = (mesh.place(request.source), mesh.place(request.destination));
        let (line, a, b) =
            if direction.is_horizontal() { (from.1, from.0, to.0) } else { (from.0, from.1, to.1) };
        Span { direction, line, first: a.min(b), end: a.max(b) }
    }
}

/// The most nodes of a line, and the most lines of an axis.
fn longest(mesh: &BypassMesh) -> usize {
    mesh.columns().max(mesh.rows()) as usize
}

impl Segments {
    pub(super) fn none_taken(mesh: BypassMesh) -> Segments {
        let lines = Port::ALL.len() * longest(&mesh) * mesh.wires() as usize;
        Segments { mesh, of: vec![FREE; lines * (longest(&mesh) - 1)] }
    }

    /// The place of a segment; lines of both axes have as many places as the longest.
    fn place(&self, span: Span, wire: u32, segment: u32) -> usize {
        let longest = longest(&self.mesh);
        let lines = span.direction.index() * longest + span.line as usize;
        let wires = lines * self.mesh.wires() as usize + wire as usize;
        wires * (longest - 1) + segment as usize
    }

    /// The first occupied segment of a span on a wire, and its owner.
    fn taken(&self, span: Span, wire: u32) -> Option<(u32, u32)> {
        let owner = |segment| (segment, self.of[self.place(span, wire, segment)]);
        (span.first..span.end).map(owner).find(|&(_, owner)| owner != FREE)
    }

    /// Assigns a span to the link `requests[number]`, on the lowest free wire unless one is given.
    /// Returns the wire.
    pub(super) fn take(
        &mut self,
        requests: &[LinkRequest],
        number: usize,
        span: Span,
        wire: Option<u32>,
    ) -> Result<u32, BypassError> {
        let free = match wire {
            Some(wire) => self.taken(span, wire).is_none().then_some(wire),
            None => (0..self.mesh.wires()).find(|&wire| self.taken(span, wire).is_none()),
        };
        let Some(free) = free else {
            return Err(self.refused(requests, number, span, wire));
        };
        for segment in span.first..span.end {
            let place = self.place(span, free, segment);
            self.of[place] = u32::try_from(number).unwrap_or(FREE);
        }
        Ok(free)
    }

    fn refused(
        &self,
        requests: &[LinkRequest],
        number: usize,
        span: Span,
        wire: Option<u32>,
    ) -> BypassError {
        let (from, to) = (requests[number].source, requests[number].destination);
        // Without an explicit wire, all wires are occupied; the error names the last one.
        let last = self.mesh.wires().checked_sub(1);
        let at = wire.or(last).and_then(|wire| Some((wire, self.taken(span, wire)?)));
        let Some((wire, (segment, other))) = at else {
            let (wire, wires) = (wire.unwrap_or(0), self.mesh.wires());
            return BypassError::NoSuchWire { from, to, wire, wires };
        };
        let other = requests[other as usize];
        let kind = if span.direction.is_horizontal() { "row" } else { "column" };
        BypassError::SegmentTaken {
            from,
            to,
            line: format!("{kind} {} going {}", span.line, span.direction),
            wire,
            segment,
            other_from: other.source,
            other_to: other.destination,
        }
    }
}
