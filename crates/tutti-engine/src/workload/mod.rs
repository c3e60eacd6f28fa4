//! What NPUs do besides communicating: the work of layers, how long it takes, and training as a program.
//!
//! A [`Layer`] says what its three passes ask of the processor and what they hand to the network. A
//! [`TrainingLoop`] turns layers into a [`Program`]: tasks and what each waits for, for every NPU the same.
//! Traces are read into programs as well. How collectives are carried out is not known here.

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
