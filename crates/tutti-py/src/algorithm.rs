//! The registry of algorithms: what there is, and schedules laid out by name.

use pyo3::prelude::*;
use tutti_schedule::algorithm::{self, Entry, REGISTRY};
use tutti_schedule::collective::Collective;
use tutti_units::ids::RankId;

use crate::errors::{OrRaise, refuse};
use crate::schedule::{Number, Schedule};
use crate::topology::Routes;

/// A line of the registry.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Algorithm(&'static Entry);

#[pymethods]
impl Algorithm {
    /// Its name in the notation `name[:argument]`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    /// One sentence for lists.
    #[getter]
    fn summary(&self) -> &'static str {
        self.0.summary
    }

    /// Where it was published.
    #[getter]
    fn source(&self) -> &'static str {
        self.0.source
    }

    /// What may follow the colon; empty when nothing may.
    #[getter]
    fn argument(&self) -> &'static str {
        self.0.argument
    }

    /// The collectives it can perform.
    #[getter]
    fn collectives(&self) -> Vec<&'static str> {
        self.0.collectives.to_vec()
    }

    /// For which rank counts, in words.
    #[getter]
    fn ranks(&self) -> &'static str {
        self.0.ranks
    }

    /// Whether it is made for a graph, which follows the colon or is given beside the notation.
    #[getter]
    fn for_graphs(&self) -> bool {
        algorithm::is_for_graphs(self.0.name)
    }

    /// Whether it performs this collective on this many ranks with its default argument.
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

/// Every algorithm there is, in the order of the registry.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<Algorithm> {
    REGISTRY.iter().map(Algorithm).collect()
}

/// Lays out `notation` for a collective on `ranks` ranks: on a graph, if it is made for one.
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
        let on = || algorithm::build_on(notation, collective, ranks.0, &routes.inner);
        if let Some(inner) = py.detach(on).or_raise()? {
            return Ok(Schedule { inner, algorithm: None });
        }
    }
    let built = py.detach(|| algorithm::build(notation, collective, ranks.0));
    built.or_raise().map(|inner| Schedule { inner, algorithm: Some(notation.to_owned()) })
}

/// One stage of an algorithm's critical path: what its slowest rank does between two waits.
#[pyclass(frozen, eq, get_all, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stage {
    /// Messages that one rank sends, one after the other.
    messages: u32,
    /// Messages that the rank which ends the stage takes in it.
    receives: u32,
    /// Chunks in each message.
    chunks: u32,
    /// How many pieces of that size are folded in after the receives.
    reductions: u32,
    /// Chunks in the payload.
    of: u32,
}

/// The critical path of `notation`, stage by stage; None where there is no closed form.
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

/// The collective of that name, or an `AlgorithmError` that lists them.
pub(crate) fn collective_named(name: &str, root: u32) -> PyResult<Collective> {
    Collective::from_name(name, RankId(root)).ok_or_else(|| {
        let known = Collective::ALL.map(Collective::name).join(", ");
        let message = format!("there is no collective `{name}`: expected one of {known}");
        refuse("AlgorithmError", "unknown_collective", &message)
    })
}
