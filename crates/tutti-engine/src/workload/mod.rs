//! Workloads: the compute times of layers, and training as a program.
//!
//! A [`Layer`] defines the compute time and the collectives of its three passes. A [`TrainingLoop`]
//! turns layers into a [`Program`]: tasks with dependencies, the same for every NPU. Traces are
//! read into programs as well. The execution of collectives is defined elsewhere.

mod layer;
mod program;
mod roofline;
mod systolic;
#[cfg(test)]
mod tests;
mod training;

pub use layer::{Exchange, Layer, Pass, Rings, Transfer};
pub use program::{Bubble, Lane, Program, ProgramError, Task, TaskId, What};
pub use roofline::{Roofline, Work};
pub use systolic::{Dataflow, Gemm, SystolicArray, SystolicError};
pub use training::{Embedding, Pipeline, TrainingError, TrainingLoop};
