//! Chiplet mesh: a mesh of tiles on every chiplet, and a mesh of chiplets.
//!
//! Every tile is an NPU with a router. Adjacent chiplets are joined by die-to-die links between the
//! tiles on their facing edges, the boundary routers: all of them, or `boundary` of them, spread
//! evenly along the edge. The tiles of a chiplet are numbered consecutively, so that NPUs of one
//! chiplet are the inner level of a hierarchy.
//!
//! With every boundary router the tiles form one large mesh, and dimension order applies. With
//! fewer, other paths are needed; modular chiplet networks have such routers (Yin et al., "Modular
//! routing design for chiplet-based systems", ISCA 2018).

use super::dimensions::Dimensions;
use super::grid::Grid;
use super::keyed::{Keyed, crossed};
use super::{Entry, Family, Join, TopologyError};
use tutti_units::ids::VertexId;

const NAME: &str = "chiplet_mesh";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a mesh of chiplets with a mesh of tiles on each, joined at boundary routers",
    argument: "chiplets=COLUMNSxROWS,tiles=COLUMNSxROWS[,boundary=ROUTERS_PER_EDGE]",
    example: "chiplet_mesh:chiplets=2x2,tiles=3x3,boundary=1",
    parse,
};

#[derive(Debug)]
struct ChipletMesh {
    /// Columns and rows.
    chiplets: [u32; 2],
    tiles: [u32; 2],
    /// Boundary routers on an edge of a chiplet; None: all.
    boundary: Option<u32>,
    /// All tiles, as one mesh.
    grid: Grid,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let keyed = Keyed::read(NAME, argument, &["chiplets", "tiles", "boundary"], &[])?;
    let two = |key: &str| {
        let sizes = keyed.required(key, keyed.sizes(key, 1)?)?;
        <[u32; 2]>::try_from(sizes)
            .map_err(|_| keyed.wrong(key, "expected columns and rows, such as `4x4`".to_owned()))
    };
    let (chiplets, tiles) = (two("chiplets")?, two("tiles")?);
    if chiplets == [1, 1] {
        let problem = "a single chiplet is a mesh; expected at least two chiplets".to_owned();
        return Err(keyed.wrong("chiplets", problem));
    }
    let edges = (0..2).filter(|&along| chiplets[along] > 1).map(|along| tiles[1 - along]);
    let shortest = edges.min().unwrap_or(1);
    let boundary = keyed.number("boundary", 1)?;
    if let Some(given) = boundary.filter(|&given| given > shortest) {
        let problem = format!("{given} boundary routers on an edge of {shortest} tiles");
        return Err(keyed.wrong("boundary", format!("{problem}; expected at most {shortest}")));
    }
    let all = (0..2).map(|along| chiplets[along].saturating_mul(tiles[along])).collect();
    Ok(Box::new(ChipletMesh { chiplets, tiles, boundary, grid: Grid::new(all, false) }))
}

impl ChipletMesh {
    /// The boundary routers of an edge of `length` tiles.
    fn routers(&self, length: u32) -> u32 {
        self.boundary.unwrap_or(length)
    }

    /// Whether every tile on a facing edge is a boundary router.
    fn is_full(&self) -> bool {
        (0..2).all(|along| {
            let edge = self.tiles[1 - along];
            self.chiplets[along] == 1 || self.routers(edge) == edge
        })
    }

    /// The number of the tile in column `at[0]` and row `at[1]` of the package.
    fn number(&self, at: [u32; 2]) -> u32 {
        let [columns, rows] = self.tiles;
        let chiplet = at[0] / columns + self.chiplets[0] * (at[1] / rows);
        chiplet * columns * rows + at[0] % columns + columns * (at[1] % rows)
    }

    /// The column and row of a tile in the package.
    fn place(&self, number: u32) -> [u32; 2] {
        let [columns, rows] = self.tiles;
        let (chiplet, tile) = (number / (columns * rows), number % (columns * rows));
        let (column, row) = (chiplet % self.chiplets[0], chiplet / self.chiplets[0]);
        [column * columns + tile % columns, row * rows + tile / columns]
    }

    /// Whether the link across the edge between two chiplets, `along` a dimension, exists.
    fn crosses(&self, along: usize, at: [u32; 2]) -> bool {
        let length = self.tiles[1 - along];
        let (routers, length) = (u64::from(self.routers(length)), u64::from(length));
        let place = u64::from(at[1 - along]) % length;
        // The middles of equal parts of the edge.
        let middle = |index: u64| (2 * index + 1) * length / (2 * routers);
        let part = place * routers / length;
        routers == length || middle(part) == place || middle(part + 1) == place
    }

    /// The cables across the edges of all chiplets.
    fn crossings(&self) -> u64 {
        let along = |along: usize| {
            let lines = u64::from(self.chiplets[1 - along]) * u64::from(self.chiplets[along] - 1);
            lines.saturating_mul(u64::from(self.routers(self.tiles[1 - along])))
        };
        along(0).saturating_add(along(1))
    }
}

impl Family for ChipletMesh {
    fn notation(&self) -> String {
        let (chiplets, tiles) = (crossed(&self.chiplets), crossed(&self.tiles));
        let boundary = self.boundary.map_or(String::new(), |count| format!(",boundary={count}"));
        format!("{NAME}:chiplets={chiplets},tiles={tiles}{boundary}")
    }

    fn size(&self) -> u64 {
        self.grid.members()
    }

    fn link_count(&self) -> u64 {
        let [columns, rows] = self.tiles.map(u64::from);
        let chiplets = u64::from(self.chiplets[0]) * u64::from(self.chiplets[1]);
        let inside = (columns - 1).saturating_mul(rows) + (rows - 1).saturating_mul(columns);
        chiplets.saturating_mul(inside).saturating_add(self.crossings()).saturating_mul(2)
    }

    fn link_classes(&self) -> Vec<String> {
        ["on-chip", "die-to-die"].map(str::to_owned).to_vec()
    }

    fn join(&self, Join { builder, members, links, .. }: Join<'_>) -> Option<VertexId> {
        for (number, &member) in (0..).zip(members) {
            let at = self.place(number);
            for along in 0..2 {
                let mut next = at;
                next[along] += 1;
                if next[along] == self.grid.sizes()[along] {
                    continue;
                }
                let is_inside = !next[along].is_multiple_of(self.tiles[along]);
                if is_inside || self.crosses(along, at) {
                    let to = members[self.number(next) as usize];
                    builder.cable(member, to, links[usize::from(!is_inside)]);
                }
            }
        }
        None
    }

    /// That of the mesh of all tiles; no closed form with fewer boundary routers.
    fn diameter(&self) -> Option<u32> {
        self.is_full().then(|| self.grid.diameter())?
    }

    /// As the diameter.
    fn bisection(&self) -> Option<u64> {
        self.is_full().then(|| self.grid.bisection())?
    }

    /// The tiles of a chiplet, then the chiplets.
    fn member_sizes(&self) -> Option<Vec<u32>> {
        Some([self.tiles, self.chiplets].concat())
    }

    fn dimensions(&self) -> Option<&dyn Dimensions> {
        self.is_full().then_some(self)
    }
}

impl Dimensions for ChipletMesh {
    fn next_in_order(&self, at: VertexId, destination: VertexId) -> Option<VertexId> {
        let (mut here, there) = (self.place(at.0), self.place(destination.0));
        let along = (0..2).find(|&along| here[along] != there[along])?;
        here[along] = if here[along] < there[along] { here[along] + 1 } else { here[along] - 1 };
        Some(VertexId(self.number(here)))
    }
}

#[cfg(test)]
mod tests {
    use crate::{LinkParameters, Routes, Topology, build};
    use std::sync::Arc;
    use tutti_units::ids::RankId;
    use tutti_units::{Time, TimePerByte};

    fn link(latency_ns: u64) -> LinkParameters {
        let rate = TimePerByte::parse("64 GB/s").unwrap();
        LinkParameters::new(rate, Time::from_ps(latency_ns * 1000))
    }

    fn built(argument: &str) -> Topology {
        build(&format!("chiplet_mesh:{argument}"), &[link(1), link(10)]).unwrap()
    }

    /// The ends of the links with the latency of die-to-die links, in ascending direction.
    fn crossings(topology: &Topology) -> Vec<(u32, u32)> {
        let ends = topology
            .links()
            .filter(|&link| topology.parameters(link).latency == Time::from_ps(10_000));
        let ends = ends.map(|link| (topology.link_from(link).0, topology.link_to(link).0));
        ends.filter(|(from, to)| from < to).collect()
    }

    #[test]
    fn boundary_routers_are_spread_along_the_edge() {
        // Chiplets 0 and 1 of 2x4 tiles: the facing edges are tiles 1, 3, 5, 7 and 8, 10, 12, 14.
        let facing = |boundary| crossings(&built(&format!("chiplets=2x1,tiles=2x4{boundary}")));
        assert_eq!(facing(",boundary=1"), [(5, 12)]);
        assert_eq!(facing(",boundary=2"), [(3, 10), (7, 14)]);
        assert_eq!(facing(""), [(1, 8), (3, 10), (5, 12), (7, 14)]);
    }

    #[test]
    fn all_boundary_routers_form_a_mesh_in_dimension_order() {
        let chiplets = Arc::new(built("chiplets=2x2,tiles=2x2"));
        let routes = Routes::dimension_order(Arc::clone(&chiplets)).unwrap();
        // Tile 0 is in the first corner, tile 15 in the last: 3 columns, then 3 rows.
        let pair = routes.pair(RankId(0), RankId(15));
        assert_eq!((pair.hops, pair.latency), (6, Time::from_ps(24_000)));
        let few = Arc::new(built("chiplets=2x2,tiles=2x2,boundary=1"));
        assert!(Routes::dimension_order(few).is_err());
    }

    #[test]
    fn wrong_counts_are_refused() {
        let problem = |argument: &str| {
            build(&format!("chiplet_mesh:{argument}"), &[link(1)]).unwrap_err().to_string()
        };
        let text = problem("chiplets=2x1,tiles=4x2,boundary=3");
        assert!(text.contains("3 boundary routers on an edge of 2 tiles"), "{text}");
        assert!(problem("chiplets=1x1,tiles=2x2").contains("at least two chiplets"));
        assert!(problem("chiplets=2,tiles=2x2").contains("columns and rows"));
    }
}
