//! Concentration: routers on a grid, several NPUs on each.
//!
//! The NPUs of a router are a number, `4`, or a block, `2x2`. With a number, NPUs are numbered
//! router by router. With a block, they form a grid of tiles and are numbered along its rows. In a
//! k x k grid of routers with b x b blocks, router (x, y) has the NPUs (b x + i, b y + j). The first
//! dimension varies fastest. Some families allow the part to be left out; the routers are then the
//! NPUs.

use super::keyed::{self, crossed, product};
use super::{TopologyError, wrong};
use crate::{Builder, LinkParameters};
use tutti_units::ids::VertexId;

/// Routers with their NPUs, and whether link parameters scale with distance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Concentrated {
    /// The routers along each dimension.
    pub(super) sizes: Vec<u32>,
    npus: Npus,
    /// Whether latency and length of a link apply per NPU position.
    by_distance: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Npus {
    Count(u32),
    Block(Vec<u32>),
    /// The routers are the NPUs.
    Routers,
}

impl Concentrated {
    /// Parses `4x4:2x2,distance`, or `4x4,distance` with `alone`. Returns the other words.
    pub(super) fn parse<'a>(
        family: &'static str,
        argument: &'a str,
        words: &[&str],
        alone: bool,
    ) -> Result<(Concentrated, Vec<&'a str>), TopologyError> {
        let mut parts = argument.split(',');
        let shape = parts.next().unwrap_or("");
        let mut made = Concentrated::shape(family, argument, shape, alone)?;
        let found = made.words(family, argument, parts, words)?;
        if made.size() < 2 {
            let problem = "a single NPU has no neighbour; expected at least 2".to_owned();
            return Err(wrong(family, argument, shape, problem));
        }
        Ok((made, found))
    }

    /// Parses the part before the words.
    fn shape(
        family: &'static str,
        argument: &str,
        shape: &str,
        alone: bool,
    ) -> Result<Concentrated, TopologyError> {
        let is_sizes = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'x');
        let Some((routers, npus)) = shape.split_once(':') else {
            if alone && !shape.trim().is_empty() && is_sizes(shape.trim()) {
                let sizes = keyed::sizes(family, argument, shape, 1)?;
                return Ok(Concentrated { sizes, npus: Npus::Routers, by_distance: false });
            }
            let problem = format!(
                "found `{}`; expected the routers along each dimension, a colon and the NPUs on \
                 each router, such as `4x4:2x2`",
                shape.trim()
            );
            return Err(wrong(family, argument, shape, problem));
        };
        let sizes = keyed::sizes(family, argument, routers, 1)?;
        let block = keyed::sizes(family, argument, npus, 1)?;
        let dimensions = sizes.len();
        let npus = match block[..] {
            [npus] => Npus::Count(npus),
            _ if block.len() == dimensions => Npus::Block(block),
            _ => {
                let problem = format!(
                    "a block of {} dimensions around routers in {dimensions}; expected as many, or \
                     a number of NPUs",
                    block.len()
                );
                return Err(wrong(family, argument, npus, problem));
            }
        };
        Ok(Concentrated { sizes, npus, by_distance: false })
    }

    fn words<'a>(
        &mut self,
        family: &'static str,
        argument: &str,
        parts: impl Iterator<Item = &'a str>,
        known: &[&str],
    ) -> Result<Vec<&'a str>, TopologyError> {
        let mut found = Vec::new();
        for part in parts {
            let word = part.trim();
            if found.contains(&word) {
                return Err(wrong(family, argument, part, format!("`{word}` is given twice")));
            }
            if word != "distance" && !known.contains(&word) {
                let all: Vec<String> =
                    known.iter().chain(&["distance"]).map(|word| format!("`{word}`")).collect();
                let problem = format!("found `{word}`; expected any of {}", all.join(", "));
                return Err(wrong(family, argument, part, problem));
            }
            found.push(word);
        }
        self.by_distance = found.contains(&"distance");
        Ok(found)
    }

    /// The notation: `4x4:2x2`, the words and `distance`.
    pub(super) fn notation(&self, family: &str, words: &[(bool, &str)]) -> String {
        let npus = match &self.npus {
            Npus::Count(npus) => format!(":{npus}"),
            Npus::Block(sizes) => format!(":{}", crossed(sizes)),
            Npus::Routers => String::new(),
        };
        let mut text = format!("{family}:{}{npus}", crossed(&self.sizes));
        for (given, word) in words.iter().chain(&[(self.by_distance, "distance")]) {
            if *given {
                text.push_str(&format!(",{word}"));
            }
        }
        text
    }

    /// The NPUs along each dimension, if they lie on a grid.
    pub(super) fn member_sizes(&self) -> Option<Vec<u32>> {
        let block = match &self.npus {
            Npus::Count(_) => return None,
            Npus::Block(block) => block,
            Npus::Routers => return Some(self.sizes.clone()),
        };
        self.sizes.iter().zip(block).map(|(&size, &npus)| size.checked_mul(npus)).collect()
    }

    /// Whether the routers are the NPUs.
    pub(super) fn are_npus(&self) -> bool {
        self.npus == Npus::Routers
    }

    /// The number of routers; saturates, so that the caller can reject it.
    pub(super) fn routers(&self) -> u64 {
        product(&self.sizes)
    }

    /// The number of NPUs per router; saturates.
    pub(super) fn npus_per_router(&self) -> u64 {
        match &self.npus {
            Npus::Count(npus) => u64::from(*npus),
            Npus::Block(sizes) => product(sizes),
            Npus::Routers => 1,
        }
    }

    /// The number of NPUs; saturates.
    pub(super) fn size(&self) -> u64 {
        self.routers().saturating_mul(self.npus_per_router())
    }

    /// `terminal`, if there are such links, then a class per dimension.
    pub(super) fn link_classes(&self) -> Vec<String> {
        let dimensions = (0..self.sizes.len()).map(|dimension| format!("dimension {dimension}"));
        let terminal = (!self.are_npus()).then(|| "terminal".to_owned());
        terminal.into_iter().chain(dimensions).collect()
    }

    /// Adds the routers and cables each to its NPUs, unless the NPUs are the routers.
    pub(super) fn join_npus(
        &self,
        builder: &mut Builder,
        members: &[VertexId],
        link: LinkParameters,
        prefix: &str,
    ) -> Vec<VertexId> {
        if self.are_npus() {
            return members.to_vec();
        }
        let named = (0..self.routers()).map(|number| format!("{prefix}router{number}"));
        let routers: Vec<VertexId> = named.map(|name| builder.router(name)).collect();
        for (number, &npu) in (0..).zip(members) {
            let (router, positions) = self.place(number);
            let router = routers[usize::try_from(router).unwrap_or(usize::MAX)];
            builder.cable(npu, router, self.spanning(link, positions));
        }
        routers
    }

    /// The router of an NPU, and their distance in positions.
    ///
    /// A router is in the middle of its block. Adjacent positions, straight or diagonal, are one
    /// away, and every further position along a dimension adds one.
    fn place(&self, npu: u64) -> (u64, u64) {
        let block = match &self.npus {
            Npus::Count(npus) => return (npu / u64::from(*npus), 1),
            Npus::Block(block) => block,
            Npus::Routers => return (npu, 0),
        };
        let (mut rest, mut stride, mut router, mut positions) = (npu, 1, 0, 1);
        for (&size, &inside) in self.sizes.iter().zip(block) {
            let (size, inside) = (u64::from(size), u64::from(inside));
            let at = rest % (size * inside);
            rest /= size * inside;
            router += at / inside * stride;
            stride *= size;
            // From the middle in half positions: -3, -1, 1, 3, or -4, -2, 0, 2, 4.
            let off_middle = (2 * (at % inside) + 1).abs_diff(inside).div_ceil(2);
            positions += off_middle.saturating_sub(1);
        }
        (router, positions)
    }

    /// The number of a router's first NPU.
    pub(super) fn first_npu(&self, router: u64) -> u64 {
        let block = match &self.npus {
            Npus::Count(npus) => return router * u64::from(*npus),
            Npus::Block(block) => block,
            Npus::Routers => return router,
        };
        let (mut rest, mut stride, mut npu) = (router, 1, 0);
        for (&size, &inside) in self.sizes.iter().zip(block) {
            let (size, inside) = (u64::from(size), u64::from(inside));
            npu += rest % size * inside * stride;
            rest /= size;
            stride *= size * inside;
        }
        npu
    }

    /// The parameters of a link along `dimension` between routers that are `further` apart.
    pub(super) fn along(
        &self,
        dimension: usize,
        further: usize,
        link: LinkParameters,
    ) -> LinkParameters {
        let inside = match &self.npus {
            Npus::Count(_) | Npus::Routers => 1,
            Npus::Block(block) => u64::from(block[dimension]),
        };
        self.spanning(link, inside.saturating_mul(further as u64))
    }

    fn spanning(&self, link: LinkParameters, positions: u64) -> LinkParameters {
        if self.by_distance { link.spanning(positions) } else { link }
    }
}
