//! What a configuration is asked for: links, with as much of them settled as somebody cares to settle.

use super::error::BypassError;
use super::mesh::{BypassMesh, Port};

/// A link in one direction that is to be live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The node it leaves.
    pub source: u32,
    /// The node it reaches.
    pub destination: u32,
    /// What it is made of.
    pub kind: Kind,
}

/// What a link is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The mesh link between two neighbours, which takes its own ports.
    Mesh,
    /// A piece of a bypass wire.
    Bypass {
        /// Which wire of its line and direction; the lowest with free segments unless given.
        wire: Option<u32>,
        /// By which ports it leaves and arrives; whatever ports are left unless given.
        ports: Option<(Port, Port)>,
    },
}

impl Asked {
    /// The direction in which it travels and its segments, or why there is no such link.
    pub(super) fn check(&self, mesh: &BypassMesh) -> Result<(Port, u32), BypassError> {
        let Asked { source, destination, kind } = *self;
        for node in [source, destination] {
            if node >= mesh.nodes() {
                let (side, last) = (mesh.side(), mesh.nodes() - 1);
                return Err(BypassError::NoSuchNode { node, side, last });
            }
        }
        if source == destination {
            return Err(BypassError::SameNode { node: source });
        }
        let way = mesh.way(source, destination);
        match (kind, way) {
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
        // Neighbours, or of one row or column: there is a way.
        way.ok_or(BypassError::Aslant { from: source, to: destination })
    }

    fn check_ports(
        &self,
        mesh: &BypassMesh,
        direction: Port,
        output: Port,
        input: Port,
    ) -> Result<(), BypassError> {
        let Asked { source, destination, .. } = *self;
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
