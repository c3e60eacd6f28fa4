//! Python bindings of `tutti-core`: conversion and errors, no physics.

use pyo3::prelude::*;

/// The compiled core of tutti.
#[pymodule]
mod _core {}
