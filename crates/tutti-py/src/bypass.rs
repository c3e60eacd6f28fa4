//! Networks of bypass wires, and configurations of them.

use pyo3::prelude::*;
use tutti_topology::bypass::{self, Configuration, Muxes};

use crate::errors::{OrRaise, raised_at};
use crate::schedule::Number;

/// A mesh with bypass wires along its rows and columns.
#[pyclass(frozen, eq, hash, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BypassMesh(bypass::BypassMesh);

#[pymethods]
impl BypassMesh {
    #[new]
    #[pyo3(signature = (columns, rows, wires, muxes))]
    fn new(columns: Number, rows: Number, wires: Number, muxes: &str) -> PyResult<BypassMesh> {
        let muxes = Muxes::named(muxes).or_raise()?;
        bypass::BypassMesh::new(columns.0, rows.0, wires.0, muxes).or_raise().map(BypassMesh)
    }

    /// The nodes of a row.
    #[getter]
    fn columns(&self) -> u32 {
        self.0.columns()
    }

    /// The nodes of a column.
    #[getter]
    fn rows(&self) -> u32 {
        self.0.rows()
    }

    /// The bypass wires of a line in each direction.
    #[getter]
    fn wires(&self) -> u32 {
        self.0.wires()
    }

    /// The port constraints.
    #[getter]
    fn muxes(&self) -> &'static str {
        self.0.muxes().name()
    }

    /// The part of the family's notation before the links.
    #[getter]
    fn notation(&self) -> String {
        self.0.notation()
    }

    /// Mesh links, and segments of all bypass wires.
    fn total_segments(&self) -> (u64, u64) {
        (self.0.total_mesh_links(), self.0.total_bypass_segments())
    }

    /// Reads the links of a configuration.
    fn configure(&self, text: &str) -> PyResult<BypassConfiguration> {
        let read = Configuration::parse(self.0, text);
        read.map(BypassConfiguration).map_err(|located| raised_at(&located.error, text, located.at))
    }
}

/// A live link of a mesh with bypass wires.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct BypassLink {
    /// The node that it leaves.
    source: u32,
    /// The node that it enters.
    destination: u32,
    /// The wire of a bypass piece; None for mesh links.
    wire: Option<u32>,
    /// The output port of `source`.
    output: &'static str,
    /// The input port of `destination`.
    input: &'static str,
}

/// A port without a link.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct BypassPort {
    /// Its node.
    node: u32,
    /// Its side.
    port: &'static str,
    /// Whether it is the output of the side, or the input.
    is_output: bool,
}

/// The live links of a mesh.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(PartialEq, Eq)]
pub(crate) struct BypassConfiguration(Configuration);

#[pymethods]
impl BypassConfiguration {
    /// The mesh that is configured.
    #[getter]
    fn mesh(&self) -> BypassMesh {
        BypassMesh(*self.0.mesh())
    }

    /// The text that is read as this configuration.
    #[getter]
    fn notation(&self) -> String {
        self.0.notation()
    }

    /// Every live link: the mesh's first.
    fn links(&self) -> Vec<BypassLink> {
        let link = |link: &bypass::Link| BypassLink {
            source: link.source,
            destination: link.destination,
            wire: link.wire,
            output: link.output.name(),
            input: link.input.name(),
        };
        self.0.links().iter().map(link).collect()
    }

    /// Mesh links, and segments of bypass wires, that are live.
    fn used_segments(&self) -> (u64, u64) {
        (self.0.used_mesh_links(), self.0.used_bypass_segments())
    }

    /// The idle ports.
    fn idle_ports(&self) -> Vec<BypassPort> {
        let idle = self.0.idle_ports().into_iter();
        idle.map(|(node, port, is_output)| BypassPort { node, port: port.name(), is_output })
            .collect()
    }

    /// Returns the configuration with all mesh links enabled whose ports are idle at both ends.
    fn filled(&self) -> BypassConfiguration {
        BypassConfiguration(self.0.filled())
    }
}
