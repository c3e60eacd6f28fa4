//! Splits a pattern's notation and reads its argument.

use super::{Entry, TrafficError};

/// Someone requests a pattern.
pub(super) struct Call<'a> {
    pub(super) text: &'a str,
    pub(super) entry: &'static Entry,
    pub(super) argument: Option<&'a str>,
    pub(super) nodes: u32,
    pub(super) grid: Option<&'a [u32]>,
}

impl<'a> Call<'a> {
    pub(super) fn malformed(&self) -> TrafficError {
        let Entry { name, argument, .. } = self.entry;
        let colon = if argument.is_empty() { "" } else { ":" };
        let expected = format!("`{name}{colon}{argument}`");
        TrafficError::Malformed { text: self.text.to_owned(), expected }
    }

    /// The argument, where there must be one.
    pub(super) fn argument(&self) -> Result<&'a str, TrafficError> {
        self.argument.ok_or_else(|| self.malformed())
    }

    pub(super) fn number<T: std::str::FromStr>(&self, text: &str) -> Result<T, TrafficError> {
        text.trim().parse().map_err(|_| self.malformed())
    }

    pub(super) fn numbers(&self, list: &str) -> Result<Vec<u32>, TrafficError> {
        list.split(',').map(|text| self.number(text)).collect()
    }

    /// A node that there is.
    pub(super) fn node(&self, text: &str) -> Result<u32, TrafficError> {
        let node = self.number(text)?;
        if node < self.nodes {
            return Ok(node);
        }
        Err(TrafficError::UnknownNode { pattern: self.text.to_owned(), node, nodes: self.nodes })
    }

    /// Nodes that there are, none of them twice.
    pub(super) fn distinct(&self, list: &str) -> Result<Vec<u32>, TrafficError> {
        let nodes: Vec<u32> =
            list.split(',').map(|text| self.node(text)).collect::<Result<_, _>>()?;
        let mut sorted = nodes.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|two| two[0] == two[1]) {
            None => Ok(nodes),
            Some(two) => {
                Err(TrafficError::Repeated { pattern: self.text.to_owned(), node: two[0] })
            }
        }
    }

    /// Refuses lists that are not as long as they should be.
    pub(super) fn count(
        &self,
        what: &'static str,
        given: usize,
        expected: u32,
    ) -> Result<(), TrafficError> {
        if given == expected as usize {
            return Ok(());
        }
        Err(TrafficError::Count { pattern: self.text.to_owned(), what, given, expected })
    }

    pub(super) fn at_least(&self, least: u32, expected: &'static str) -> Result<(), TrafficError> {
        if self.nodes >= least { Ok(()) } else { Err(self.nodes(expected)) }
    }

    /// This number of nodes does not do.
    pub(super) fn nodes(&self, expected: &'static str) -> TrafficError {
        TrafficError::Nodes { pattern: self.text.to_owned(), nodes: self.nodes, expected }
    }

    /// The grid, when it holds the nodes.
    pub(super) fn grid(&self) -> Result<&'a [u32], TrafficError> {
        let no_grid = || TrafficError::NoGrid { pattern: self.text.to_owned() };
        let grid = self.grid.ok_or_else(no_grid)?;
        let places = grid.iter().try_fold(1_u32, |places, &side| places.checked_mul(side));
        if places == Some(self.nodes) {
            return Ok(grid);
        }
        Err(TrafficError::GridSize { grid: written(grid), nodes: self.nodes })
    }

    /// This grid does not do.
    pub(super) fn wrong_grid(&self, grid: &[u32], expected: &'static str) -> TrafficError {
        TrafficError::Grid { pattern: self.text.to_owned(), grid: written(grid), expected }
    }
}

/// As in the notation of topologies.
fn written(grid: &[u32]) -> String {
    grid.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
}
