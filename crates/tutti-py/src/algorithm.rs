//! The registry of algorithms: what there is, and schedules laid out by name.

use pyo3::prelude::*;
use tutti_schedule::Blocks;
use tutti_schedule::algorithm::{self, Entry, REGISTRY};
use tutti_schedule::collective::Collective;
use tutti_units::ids::RankId;

use crate::errors::{OrRaise, refuse};
use crate::schedule::{Number, Schedule};
use crate::topology::Routes;

/// An entry of the registry of algorithms.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Algorithm(&'static Entry);

#[pymethods]
impl Algorithm {
    /// The name in the notation `name[:argument]`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    /// A summary of one sentence.
    #[getter]
    fn summary(&self) -> &'static str {
        self.0.summary
    }

    /// The publication.
    #[getter]
    fn source(&self) -> &'static str {
        self.0.source
    }

    /// The argument after the colon, or an empty text.
    #[getter]
    fn argument(&self) -> &'static str {
        self.0.argument
    }

    /// The supported collectives.
    #[getter]
    fn collectives(&self) -> Vec<&'static str> {
        self.0.collectives.to_vec()
    }

    /// The supported rank counts, in words.
    #[getter]
    fn ranks(&self) -> &'static str {
        self.0.ranks
    }

    /// Whether it requires a graph, given after the colon or in addition to the notation.
    #[getter]
    fn for_graphs(&self) -> bool {
        algorithm::is_for_graphs(self.0.name)
    }

    /// Whether it supports the collective on `ranks` ranks with its default argument.
    #[pyo3(signature = (collective, ranks, *, root=Number(0)))]
    #[pyo3(text_signature = "($self, collective, ranks, *, root=0)")]
    fn claims(&self, collective: &str, ranks: Number, root: Number) -> PyResult<bool> {
        let (collective, ranks) = (collective_named(collective, root.0)?, ranks.0);
        let request = algorithm::Request { collective, ranks, argument: None };
        Ok(self.0.collectives.contains(&collective.name()) && (self.0.claims)(&request))
    }

    fn __repr__(&self) -> String {
        format!("<Algorithm {}>", self.0.name)
    }
}

/// Every algorithm, in the order of the registry.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<Algorithm> {
    REGISTRY.iter().map(Algorithm).collect()
}

/// Generates the schedule of `notation` for a collective on `ranks` ranks, on a graph if it
/// requires one.
#[pyfunction]
#[pyo3(signature = (notation, collective, ranks, *, root=Number(0), routes=None))]
#[pyo3(text_signature = "(notation, collective, ranks, *, root=0, routes=None)")]
pub(crate) fn build_schedule(
    py: Python<'_>,
    notation: &str,
    collective: &str,
    ranks: Number,
    root: Number,
    routes: Option<&Routes>,
) -> PyResult<Schedule> {
    let collective = collective_named(collective, root.0)?;
    if let Some(routes) = routes {
        let on = || algorithm::build_on(notation, collective, ranks.0, routes.fixed());
        if let Some(inner) = py.detach(on).or_raise()? {
            return Ok(Schedule { inner, algorithm: None });
        }
    }
    let built = py.detach(|| algorithm::build(notation, collective, ranks.0));
    built.or_raise().map(|inner| Schedule { inner, algorithm: Some(notation.to_owned()) })
}

/// Generates the schedule of `notation` for an all_to_all_v on `ranks` ranks with these relative
/// sizes of blocks, the row of a source after another.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
pub(crate) fn build_blocks(notation: &str, ranks: Number, sizes: Vec<u64>) -> PyResult<Schedule> {
    let blocks = Blocks::new(ranks.0, &sizes).or_raise()?;
    let inner = algorithm::build_blocks(notation, &blocks).or_raise()?;
    Ok(Schedule { inner, algorithm: Some(notation.to_owned()) })
}

/// One stage of an algorithm's critical path: the ops of its slowest rank between two waits.
#[pyclass(frozen, eq, get_all, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stage {
    /// Messages that one rank sends sequentially.
    messages: u32,
    /// Messages received by the rank that completes the stage last.
    receives: u32,
    /// Chunks in each message.
    chunks: u32,
    /// Operands of that size that are reduced after the receives.
    reductions: u32,
    /// Chunks in the payload.
    of: u32,
}

/// The critical path of `notation`, stage by stage; None without a closed form.
#[pyfunction]
#[pyo3(signature = (notation, collective, ranks, *, root=Number(0)))]
#[pyo3(text_signature = "(notation, collective, ranks, *, root=0)")]
pub(crate) fn critical_path(
    notation: &str,
    collective: &str,
    ranks: Number,
    root: Number,
) -> PyResult<Option<Vec<Stage>>> {
    let collective = collective_named(collective, root.0)?;
    let path = algorithm::critical_path(notation, collective, ranks.0).or_raise()?;
    Ok(path.map(|path| path.into_iter().map(Stage::from).collect()))
}

impl From<algorithm::Stage> for Stage {
    fn from(stage: algorithm::Stage) -> Stage {
        let algorithm::Stage { messages, receives, chunks, reductions, of } = stage;
        Stage { messages, receives, chunks, reductions, of }
    }
}

/// Returns the collective of that name, or an `AlgorithmError` that lists the names.
pub(crate) fn collective_named(name: &str, root: u32) -> PyResult<Collective> {
    Collective::from_name(name, RankId(root)).ok_or_else(|| {
        let known = Collective::ALL.map(Collective::name).join(", ");
        let message = format!("unknown collective `{name}`: expected one of {known}");
        refuse("AlgorithmError", "unknown_collective", &message)
    })
}
