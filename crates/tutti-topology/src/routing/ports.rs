//! A compact row: the index of the next link among the links of each anchor. An index takes a byte
//! if no anchor uses more than 255 links, a quarter of the memory of link ids.

use super::{NONE, Row};
use crate::Topology;
use crate::anchors::Anchors;
use tutti_units::ids::{LinkId, VertexId};

/// The index that represents no next link.
const NO_PORT: u8 = u8::MAX;

/// The next link towards one destination, by the index of an anchor.
pub(super) enum Ports {
    /// Indices relative to the first link out of the anchor.
    Near(Box<[u8]>),
    /// Link ids, if an index exceeds a byte.
    Far(Row),
}

impl Ports {
    pub(super) fn of(topology: &Topology, anchors: &Anchors, row: Row) -> Ports {
        let port = |(&anchor, &link): (&VertexId, &u32)| {
            if link == NONE {
                return Some(NO_PORT);
            }
            let port = link.checked_sub(topology.first_out(anchor).0)?;
            u8::try_from(port).ok().filter(|&port| port != NO_PORT)
        };
        let ports: Option<_> = anchors.all().iter().zip(&row).map(port).collect();
        ports.map_or(Ports::Far(row), Ports::Near)
    }

    /// The next link from an anchor at index `place`. Returns [`NONE`] at the destination, and
    /// `None` for a vertex without an index.
    #[inline]
    pub(super) fn next(
        &self,
        topology: &Topology,
        anchor: VertexId,
        place: usize,
    ) -> Option<LinkId> {
        match self {
            Ports::Near(ports) => ports.get(place).map(|&port| link(topology, anchor, port)),
            Ports::Far(row) => row.get(place).map(|&link| LinkId(link)),
        }
    }

    /// The uncompressed row.
    pub(super) fn row(&self, topology: &Topology, anchors: &Anchors) -> Row {
        let all = anchors.all().iter().enumerate();
        let next = |(place, &anchor)| self.next(topology, anchor, place);
        all.map(|at| next(at).map_or(NONE, |link| link.0)).collect()
    }
}

#[inline]
fn link(topology: &Topology, anchor: VertexId, port: u8) -> LinkId {
    if port == NO_PORT {
        return LinkId(NONE);
    }
    LinkId(topology.first_out(anchor).0 + u32::from(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkParameters, build};
    use tutti_units::{Time, TimePerByte};

    /// Rows survive compression, both as indices in bytes and as link ids.
    #[test]
    fn a_row_comes_back_as_it_was() {
        let link = LinkParameters::new(TimePerByte::new(1, 1).unwrap(), Time::ZERO);
        for (notation, near) in
            [("torus:3x3", true), ("fully_connected:255", true), ("fully_connected:257", false)]
        {
            let topology = build(notation, &[link]).unwrap();
            let anchors = Anchors::identity(&topology);
            let last = |at: &VertexId| topology.links_out(*at).last().unwrap().0;
            let mut row: Row = anchors.all().iter().map(last).collect();
            row[1] = NONE;
            let ports = Ports::of(&topology, &anchors, row.clone());
            assert_eq!(matches!(ports, Ports::Near(_)), near, "{notation}");
            assert_eq!(ports.row(&topology, &anchors), row, "{notation}");
        }
    }
}
