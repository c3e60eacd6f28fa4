//! Workloads: the compute times of layers, and training as a program.
//!
//! A [`Layer`] defines the compute time and the collectives of its three passes. A [`TrainingLoop`]
//! turns layers into a [`Program`]: tasks with dependencies, the same for every NPU or every NPU of a
//! pipeline stage. Traces are read into programs as well. The execution of collectives is defined elsewhere.

mod experts;
mod layer;
mod pipeline;
mod program;
mod roofline;
mod systolic;
#[cfg(test)]
mod tests;
mod training;
mod training_loop;

pub use experts::{Limit, Router};
pub use layer::{Content, Layer, Message, Pass, Rings, Transfer};
pub use pipeline::{Direction, Pipeline, PipelineError, PipelineOrder, Slot};
pub use program::{Lane, Program, ProgramError, Task, TaskId, What};
pub use roofline::{Roofline, Work};
pub use systolic::{Dataflow, Gemm, SystolicArray, SystolicError};
pub use training_loop::{Embedding, TrainingError, TrainingLoop};
