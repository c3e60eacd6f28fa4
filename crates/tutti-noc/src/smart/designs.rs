//! The designs by name.

use super::connected::FullyConnected;
use super::fabric::Fabric;
use super::mesh::Mesh;
use super::settings::{FanIn, FanOut, Settings, Tree};
use crate::FlitError;

/// A design: its name and its settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Design {
    /// Its name in files and commands.
    pub name: &'static str,
    /// Its summary.
    pub summary: &'static str,
    /// Its settings.
    pub kind: DesignKind,
}

/// The settings of a design.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DesignKind {
    /// A mesh: hops per cycle, multicasts, reductions.
    Mesh(u32, FanOut, FanIn),
    /// A mesh whose packets also pass the router where they turn: hops per cycle, multicasts,
    /// reductions.
    Turns(u32, FanOut, FanIn),
    /// Dedicated links between all nodes; whether a NIC takes one packet per cycle only.
    FullyConnected(bool),
}

/// The hops per cycle of the paper's designs (section V).
const REACH: u32 = 8;

const DESIGNS: &[Design] = &[
    Design {
        name: "baseline",
        summary: "one-cycle routers; a multicast is a unicast to each, responses go alone",
        kind: DesignKind::Mesh(1, FanOut::Unicasts, FanIn::Unicasts),
    },
    Design {
        name: "baseline_collective",
        summary: "one-cycle routers that fork multicasts and combine responses that meet",
        kind: DesignKind::Mesh(1, FanOut::Greedy(Tree::Shared), FanIn::Greedy),
    },
    Design {
        name: "smart_1d",
        summary: "several hops per cycle along a dimension; no collectives",
        kind: DesignKind::Mesh(REACH, FanOut::Unicasts, FanIn::Unicasts),
    },
    Design {
        name: "smart_2d",
        summary: "several hops per cycle along a path with one turn; no collectives",
        kind: DesignKind::Turns(REACH, FanOut::Unicasts, FanIn::Unicasts),
    },
    Design {
        name: "sfo_greedy_2d",
        summary: "several hops per cycle along trees with turns, copies retained, shared trees",
        kind: DesignKind::Turns(REACH, FanOut::Greedy(Tree::Shared), FanIn::Greedy),
    },
    Design {
        name: "sfo_greedy",
        summary: "several hops per cycle, copies retained on the path, along shared trees",
        kind: DesignKind::Mesh(REACH, FanOut::Greedy(Tree::Shared), FanIn::Greedy),
    },
    Design {
        name: "sfo_greedy_pvt",
        summary: "several hops per cycle, copies retained on the path, along the trees of the corners",
        kind: DesignKind::Mesh(REACH, FanOut::Greedy(Tree::Private), FanIn::Greedy),
    },
    Design {
        name: "sfo_complete",
        summary: "broadcasts in reserved slots, two cycles in six, along the trees of the corners",
        kind: DesignKind::Mesh(REACH, FanOut::Complete { interval: 6 }, FanIn::Complete),
    },
    Design {
        name: "fully_connected",
        summary: "a link of one cycle between any two nodes, and NICs that take all packets that arrive",
        kind: DesignKind::FullyConnected(false),
    },
    Design {
        name: "fully_connected_narrow",
        summary: "a link of one cycle between any two nodes, and NICs that take a packet per cycle",
        kind: DesignKind::FullyConnected(true),
    },
];

/// All designs.
#[must_use]
pub fn designs() -> &'static [Design] {
    DESIGNS
}

/// The design of a name.
///
/// # Errors
/// When no design has that name.
pub fn design(name: &str) -> Result<Design, FlitError> {
    let found = DESIGNS.iter().find(|design| design.name == name).copied();
    found.ok_or_else(|| {
        let known: Vec<&str> = DESIGNS.iter().map(|design| design.name).collect();
        FlitError::UnknownDesign { name: name.to_owned(), known: known.join(", ") }
    })
}

impl Design {
    /// Its settings on a mesh of a size, with one class of four VCs; for a fully connected network,
    /// its classes.
    #[must_use]
    pub fn settings(&self, columns: u32, rows: u32) -> Settings {
        let settings = Settings::new(columns, rows);
        match self.kind {
            DesignKind::Mesh(hops_per_cycle, fan_out, fan_in) => {
                Settings { hops_per_cycle, fan_out, fan_in, ..settings }
            }
            DesignKind::Turns(hops_per_cycle, fan_out, fan_in) => {
                let collective_turns = fan_out != FanOut::Unicasts;
                let turns = Settings { bypass_turns: true, collective_turns, ..settings };
                Settings { hops_per_cycle, fan_out, fan_in, ..turns }
            }
            DesignKind::FullyConnected(_) => settings,
        }
    }

    /// An empty fabric of this design, with settings that may have been changed since.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn build(&self, settings: &Settings) -> Result<Box<dyn Fabric + Send>, FlitError> {
        Ok(match self.kind {
            DesignKind::Mesh(..) | DesignKind::Turns(..) => Box::new(Mesh::new(settings)?),
            DesignKind::FullyConnected(narrow) => Box::new(FullyConnected::new(settings, narrow)?),
        })
    }
}
