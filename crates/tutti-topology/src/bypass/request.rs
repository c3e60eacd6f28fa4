//! Requested links of a configuration; wires and ports may be left open.

use super::error::BypassError;
use super::mesh::{BypassMesh, Port};

/// A requested link in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRequest {
    /// The source node.
    pub source: u32,
    /// The destination node.
    pub destination: u32,
    /// What the link consists of.
    pub kind: Kind,
}

/// What a link consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The mesh link between two neighbours, whose ports are fixed.
    Mesh,
    /// A piece of a bypass wire.
    Bypass {
        /// The wire of its line and direction; by default the lowest with free segments.
        wire: Option<u32>,
        /// Output and input port; assigned by default.
        ports: Option<(Port, Port)>,
    },
}

impl LinkRequest {
    /// Returns the direction and the number of segments.
    ///
    /// # Errors
    /// The link is impossible on this mesh.
    pub(super) fn check(&self, mesh: &BypassMesh) -> Result<(Port, u32), BypassError> {
        let LinkRequest { source, destination, kind } = *self;
        for node in [source, destination] {
            if node >= mesh.nodes() {
                let (columns, rows, last) = (mesh.columns(), mesh.rows(), mesh.nodes() - 1);
                return Err(BypassError::NoSuchNode { node, columns, rows, last });
            }
        }
        if source == destination {
            return Err(BypassError::SameNode { node: source });
        }
        let displacement = mesh.displacement(source, destination);
        match (kind, displacement) {
            (Kind::Mesh, Some((_, 1))) => {}
            (Kind::Mesh, _) => {
                return Err(BypassError::NoNeighbours { from: source, to: destination });
            }
            (Kind::Bypass { .. }, None) => {
                return Err(BypassError::Aslant { from: source, to: destination });
            }
            (Kind::Bypass { wire, ports }, Some((direction, _))) => {
                let wires = mesh.wires();
                if let Some(wire) = wire.filter(|&wire| wire >= wires) {
                    return Err(BypassError::NoSuchWire {
                        from: source,
                        to: destination,
                        wire,
                        wires,
                    });
                }
                if let Some((output, input)) = ports {
                    self.check_ports(mesh, direction, output, input)?;
                }
            }
        }
        // The checks above leave only nodes of one row or column.
        displacement.ok_or(BypassError::Aslant { from: source, to: destination })
    }

    fn check_ports(
        &self,
        mesh: &BypassMesh,
        direction: Port,
        output: Port,
        input: Port,
    ) -> Result<(), BypassError> {
        let LinkRequest { source, destination, .. } = *self;
        let wrong = |node, end, port: Port, known: Vec<Port>| BypassError::WrongPort {
            from: source,
            to: destination,
            node,
            end,
            port: port.name(),
            muxes: mesh.muxes().name(),
            known: known.into_iter().map(Port::name).collect::<Vec<_>>().join(", "),
        };
        let (outputs, inputs) = (mesh.muxes().outputs(direction), mesh.muxes().inputs(direction));
        if !outputs.contains(&output) {
            return Err(wrong(source, "output", output, outputs));
        }
        if !inputs.contains(&input) {
            return Err(wrong(destination, "input", input, inputs));
        }
        Ok(())
    }
}
