//! Package networks whose links are chosen: a mesh of routers, and beside it wires that are cut into pieces.
//!
//! After ARIES (Yin, Ghazizadeh, Louri and Zheng, ICCAD 2023). Along each row and each column of a k x k mesh
//! lie bypass wires, some for each direction, of k - 1 segments each. Switches cut a wire into pieces; a
//! piece leads from where it begins to where it ends in one hop, past the routers between. A router
//! has four network ports, in and out, one for each of its sides; a mux at each port takes its own mesh link
//! or one of the pieces that begin or end there ([`Muxes`] says which). So a network is a [`BypassMesh`],
//! which is built, and a [`Configuration`] of it, which is set before a run: the links that are live.
//!
//! Node row * k + column, row 0 on top, column 0 on the left.

mod asked;
mod configuration;
mod error;
mod mesh;
mod notation;
mod ports;
mod segments;

pub use asked::{Asked, Kind};
pub use configuration::{Configuration, Link, Refused};
pub use error::BypassError;
pub use mesh::{BypassMesh, Muxes, Port};
pub use notation::Located;

#[cfg(test)]
mod tests;
