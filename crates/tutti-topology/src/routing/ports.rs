//! A row as it is kept: for each anchor which of its links is next, counted from its first one. That takes a byte
//! where no anchor has more than 255 links that are taken, and a quarter of the memory.

use super::{NONE, Row};
use crate::Topology;
use crate::anchors::Anchors;
use tutti_units::ids::{LinkId, VertexId};

/// In place of a port, where there is no next link.
const NO_PORT: u8 = u8::MAX;

/// The next link towards one destination, by the place of an anchor.
pub(super) enum Ports {
    /// Counted from the first link out of the anchor.
    Near(Box<[u8]>),
    /// Links, where there are too many to count in a byte.
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

    /// The next link from an anchor, whose place is `place`; [`NONE`] where there is none, and nothing for what
    /// has no place.
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

    /// The row it was made of.
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

    /// A row is what it was, in bytes where ports can be counted in them and in links where not.
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
