//! The ports of routers on a grid, by dimension and direction.

use crate::{End, Wiring};

const NONE: u32 = u32::MAX;

/// Where routers and nodes are on a grid, and which port of a router leads up or down each
/// dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compass {
    sizes: Vec<u32>,
    wraps: bool,
    /// Per router and dimension.
    coordinates: Vec<u32>,
    /// Per router and dimension, up and down.
    ports: Vec<[u32; 2]>,
    /// Per router and input port, the dimension it comes along, and whether downwards; none for a
    /// node's.
    along: Vec<Vec<Option<(usize, bool)>>>,
    /// Per node, its router and the port that leads to it.
    homes: Vec<(u32, u32)>,
}

/// The coordinates of each router, the first dimension fastest.
fn coordinates(routers: u32, sizes: &[u32]) -> Vec<u32> {
    let mut coordinates = Vec::new();
    for router in 0..routers {
        let mut rest = router;
        for &size in sizes {
            coordinates.push(rest % size);
            rest /= size;
        }
    }
    coordinates
}

impl Compass {
    /// Routers of a wiring that form a grid in the order of their numbers, the first dimension
    /// fastest. `None` when they do not.
    #[must_use]
    pub fn of(wiring: &Wiring, sizes: &[u32], wraps: bool) -> Option<Compass> {
        let routers = wiring.routers();
        if sizes.iter().map(|&size| u64::from(size)).product::<u64>() != u64::from(routers) {
            return None;
        }
        let coordinates = coordinates(routers, sizes);
        let mut compass = Compass {
            sizes: sizes.to_vec(),
            wraps,
            ports: vec![[NONE; 2]; coordinates.len()],
            coordinates,
            along: Vec::new(),
            homes: (0..wiring.nodes()).map(|node| wiring.home(node)).collect(),
        };
        compass.find_ports(wiring)?;
        compass.along = (0..routers).map(|router| compass.inputs_along(wiring, router)).collect();
        Some(compass)
    }

    /// Sets the port of each direction; returns `None` if a channel does not join neighbours.
    fn find_ports(&mut self, wiring: &Wiring) -> Option<()> {
        let dimensions = self.sizes.len();
        for channel in wiring.channels() {
            let (End::Router { router: from, port }, End::Router { router: to, .. }) =
                (channel.from, channel.to)
            else {
                continue;
            };
            let (dimension, directions) = self.step(from, to)?;
            for direction in directions {
                self.ports[from as usize * dimensions + dimension][direction] = port;
            }
        }
        Some(())
    }

    /// The dimension and direction of each input port of a router.
    fn inputs_along(&self, wiring: &Wiring, router: u32) -> Vec<Option<(usize, bool)>> {
        let along = |&channel: &u32| match wiring.channels()[channel as usize].from {
            End::Router { router: from, .. } => {
                let (dimension, directions) = self.step(from, router)?;
                Some((dimension, directions[0] == 1))
            }
            End::Node(_) => None,
        };
        wiring.inputs(router).iter().map(along).collect()
    }

    /// The dimension and the directions (up 0, down 1) of a channel; both in a ring of two.
    fn step(&self, from: u32, to: u32) -> Option<(usize, Vec<usize>)> {
        let (here, there) = (self.at(from), self.at(to));
        let mut differ = (0..self.sizes.len()).filter(|&d| here[d] != there[d]);
        let (dimension, None) = (differ.next()?, differ.next()) else { return None };
        let (size, a, b) = (self.sizes[dimension], here[dimension], there[dimension]);
        let up = a + 1 == b || (self.wraps && (a + 1) % size == b);
        let down = b + 1 == a || (self.wraps && (b + 1) % size == a);
        let directions: Vec<usize> = [(up, 0), (down, 1)]
            .iter()
            .filter(|candidate| candidate.0)
            .map(|candidate| candidate.1)
            .collect();
        (!directions.is_empty()).then_some((dimension, directions))
    }

    /// The sizes of the dimensions.
    #[must_use]
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Whether the ends of a row are joined.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.wraps
    }

    /// A router's coordinates.
    #[inline]
    #[must_use]
    pub fn at(&self, router: u32) -> &[u32] {
        let dimensions = self.sizes.len();
        &self.coordinates[router as usize * dimensions..][..dimensions]
    }

    /// The port of a router that leads up (`false`) or down (`true`) a dimension.
    #[inline]
    #[must_use]
    pub fn port(&self, router: u32, dimension: usize, down: bool) -> u32 {
        self.ports[router as usize * self.sizes.len() + dimension][usize::from(down)]
    }

    /// The dimension that an input port comes along, and whether downwards; `None` for a node's
    /// port.
    #[inline]
    #[must_use]
    pub fn along(&self, router: u32, input: u32) -> Option<(usize, bool)> {
        self.along[router as usize][input as usize]
    }

    /// How many routers there are.
    #[must_use]
    pub fn routers(&self) -> u32 {
        self.sizes.iter().product()
    }

    /// A node's router, and the port that leads from there to the node.
    #[inline]
    #[must_use]
    pub fn home(&self, node: u32) -> (u32, u32) {
        self.homes[node as usize]
    }
}
