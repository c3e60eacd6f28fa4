//! The search for schedules: scores, the best schedules, and candidates on a topology.

use pyo3::prelude::*;
use rayon::prelude::*;
use tutti_analysis::search::{self, Effort, Flat, Scored};
use tutti_engine::{LocalCosts, Routed};
use tutti_schedule::MAX_RANKS;
use tutti_schedule::algorithm::AlgorithmError;
use tutti_schedule::algorithm::search::{self as schedules, Kind, Order};
use tutti_schedule::notation::Notation;
use tutti_units::Bytes;
use tutti_units::ids::RankId;

use crate::errors::{OrRaise, refuse};
use crate::network::Model;
use crate::schedule::Number;
use crate::topology::Routes;

/// A recursive multiplying schedule: notation, kind, time in ps, and the method of its prediction.
type Row = (String, &'static str, u64, &'static str);

/// Searches the schedules of recursive multiplying on one machine for one size.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct ScheduleSearch(Flat);

#[pymethods]
impl ScheduleSearch {
    #[new]
    #[pyo3(signature = (model, *, size))]
    fn new(model: &Model, size: u64) -> ScheduleSearch {
        let costs = LocalCosts { copy: tutti_units::TimePerByte::ZERO, ..model.1 };
        ScheduleSearch(Flat { model: model.0, bytes: Bytes(size), costs })
    }

    /// The time in ps without a topology, and the method of its prediction.
    fn score(&self, notation: &str) -> PyResult<(u64, &'static str)> {
        let notation = Notation::parse(notation);
        let notation =
            notation.map_err(|e| refuse("AlgorithmError", "argument", &e.to_string()))?;
        let (time, method) = self.0.score(&notation);
        Ok((time.ps(), method.name()))
    }

    /// The best schedules without a topology: rows, the lower bound in ps, and the number of scored
    /// schedules.
    #[pyo3(signature = (ranks, kinds, *, keep, messages))]
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn best(
        &self,
        py: Python<'_>,
        ranks: Number,
        kinds: Vec<String>,
        keep: usize,
        messages: u64,
    ) -> PyResult<(Vec<Row>, u64, u64)> {
        let (ranks, kinds) = (checked(ranks)?, kinds_named(&kinds)?);
        let effort = Effort { keep, messages };
        let best = py.detach(|| search::best(&self.0, ranks, &kinds, effort));
        let rows = best.found.into_iter().map(row).collect();
        Ok((rows, best.bound.ps(), best.scored))
    }

    /// Every schedule without a topology, best first, computed with one thread per core; None if
    /// there are more than `most`.
    #[pyo3(signature = (ranks, kinds, *, most))]
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn all(
        &self,
        py: Python<'_>,
        ranks: Number,
        kinds: Vec<String>,
        most: usize,
    ) -> PyResult<Option<Vec<Row>>> {
        let (ranks, kinds) = (checked(ranks)?, kinds_named(&kinds)?);
        Ok(py.detach(|| {
            let notations = enumerated(ranks, &kinds, most)?;
            let score = |notation: Notation| {
                let (time, method) = self.0.score(&notation);
                Scored { time, method, notation }
            };
            let mut scored: Vec<Scored> = notations.into_par_iter().map(score).collect();
            scored.sort_by_key(|scored| scored.time);
            Some(scored.into_iter().map(row).collect())
        }))
    }

    /// Candidates for the best schedule on these routes: notation, kind, and estimated time in ps.
    #[pyo3(signature = (routes, ranks, kinds, *, keep))]
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn orders(
        &self,
        py: Python<'_>,
        routes: &Routes,
        ranks: Number,
        kinds: Vec<String>,
        keep: usize,
    ) -> PyResult<Vec<(String, &'static str, u64)>> {
        let (ranks, kinds) = (checked(ranks)?, kinds_named(&kinds)?);
        // If the last rank exists, all do.
        routes.fixed().try_pair(RankId(ranks - 1), RankId(ranks - 1)).or_raise()?;
        let routed = Routed { routes: routes.fixed(), included: self.0.model.serialization() };
        let found = py.detach(|| search::orders(&self.0, &routed, ranks, &kinds, keep));
        let row = |one: search::Candidate| {
            (one.notation.to_string(), Kind::of(&one.notation).name(), one.estimate.ps())
        };
        Ok(found.into_iter().map(row).collect())
    }
}

/// Every schedule of recursive multiplying in its notation, with its kind; None if there are more
/// than `most`.
#[pyfunction]
#[pyo3(signature = (ranks, kinds, *, most))]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
pub(crate) fn schedules_of(
    py: Python<'_>,
    ranks: Number,
    kinds: Vec<String>,
    most: usize,
) -> PyResult<Option<Vec<(String, &'static str)>>> {
    let (ranks, kinds) = (checked(ranks)?, kinds_named(&kinds)?);
    let row = |notation: Notation| (notation.to_string(), Kind::of(&notation).name());
    let all = py.detach(|| enumerated(ranks, &kinds, most));
    Ok(all.map(|all| all.into_iter().map(row).collect()))
}

fn enumerated(ranks: u32, kinds: &[Kind], most: usize) -> Option<Vec<Notation>> {
    let mut found = Vec::new();
    for kind in kinds {
        let space = most.saturating_add(1) - found.len();
        match kind {
            Kind::Factored => found.extend(schedules::factored(ranks, Order::Ordered).take(space)),
            Kind::Split => found.extend(schedules::split(ranks, Order::Ordered).take(space)),
            Kind::Merged => found.extend(schedules::merged(ranks, Order::Ordered).take(space)),
        }
    }
    (found.len() <= most).then_some(found)
}

fn row(scored: Scored) -> Row {
    let Scored { time, method, notation } = scored;
    (notation.to_string(), Kind::of(&notation).name(), time.ps(), method.name())
}

fn checked(ranks: Number) -> PyResult<u32> {
    let Number(ranks) = ranks;
    let refused = match ranks {
        0 | 1 => AlgorithmError::TooFewRanks { ranks },
        _ if ranks > MAX_RANKS => AlgorithmError::TooManyRanks { ranks },
        _ => return Ok(ranks),
    };
    Err(refused).or_raise()
}

/// The kinds of these names, in the order of all kinds.
fn kinds_named(names: &[String]) -> PyResult<Vec<Kind>> {
    let known = Kind::ALL.map(Kind::name);
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let message =
            format!("unknown kind of schedule `{name}`: expected one of {}", known.join(", "));
        return Err(refuse("AlgorithmError", "argument", &message));
    }
    let requested = |kind: &Kind| names.iter().any(|name| name == kind.name());
    Ok(Kind::ALL.into_iter().filter(requested).collect())
}
