//! Reconfigurable package networks: a mesh of routers with segmentable bypass wires.
//!
//! After ARIES (Yin, Ghazizadeh, Louri and Zheng, ICCAD 2023). Bypass wires run along each row and
//! column of a k x k mesh, some for each direction, each of k - 1 segments. Switches cut a wire
//! into pieces. A piece connects its two routers in one hop and bypasses the routers between them.
//! A router has four input and four output ports, one pair per side. The multiplexer of a port
//! selects its mesh link or a piece that starts or ends at the router, as [`Muxes`] allows. A
//! [`BypassMesh`] is the hardware; a [`Configuration`] is the set of live links, fixed before a
//! run.
//!
//! Node number = row * k + column, with row 0 at the top and column 0 on the left.

mod configuration;
mod error;
mod mesh;
mod notation;
mod ports;
mod request;
mod segments;

pub use configuration::{Configuration, Link, Refused};
pub use error::BypassError;
pub use mesh::{BypassMesh, Muxes, Port};
pub use notation::Located;
pub use request::{Kind, LinkRequest};

#[cfg(test)]
mod tests;
