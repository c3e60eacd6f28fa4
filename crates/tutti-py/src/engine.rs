//! Runs of the engine: one with its record, or many in threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tutti_analysis::bound::Bound as Parts;
use tutti_engine::{EngineError, Outcome, results};
use tutti_simulation::Payload;
use tutti_units::{Bytes, Time};

use crate::algorithm::collective_named;
use crate::errors::{OrRaise, raised};
use crate::network::{BackgroundFlow, Conditions, LinkLoad};
use crate::platform::Platform;
use crate::run::Run;
use crate::schedule::{Number, Schedule};
use crate::threads::{each_in_threads, watched};

/// All inputs of a run.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Case(pub(crate) tutti_simulation::Case);

#[pymethods]
impl Case {
    #[new]
    #[pyo3(signature = (schedule, platform, *, size, element, conditions=None, load=None, flows=Vec::new(), seed=0))]
    #[expect(clippy::too_many_arguments, reason = "all are keyword arguments")]
    fn new(
        schedule: &Schedule,
        platform: &Platform,
        size: u64,
        element: u64,
        conditions: Option<&Conditions>,
        load: Option<&LinkLoad>,
        flows: Vec<BackgroundFlow>,
        seed: u64,
    ) -> PyResult<Case> {
        let payload = Payload { size: Bytes(size), element };
        let (laid_out, platform) = (Arc::clone(&schedule.inner), Arc::clone(&platform.0));
        let mut case = tutti_simulation::Case::new(laid_out, platform, payload).or_raise()?;
        if let Some(notation) = &schedule.algorithm {
            case = case.generated_by(notation);
        }
        if let Some(conditions) = conditions {
            case = case.with_conditions(conditions.0.clone()).or_raise()?;
        }
        if let Some(load) = load {
            case = case.with_load(Arc::clone(&load.0)).or_raise()?;
        }
        let flows = flows.into_iter().map(|flow| flow.0).collect();
        Ok(Case(case.with_flows(flows).or_raise()?.with_seed(seed)))
    }

    /// The completion time by the closed form, if there is one: for an algorithm of the registry
    /// without noise, topology or copy costs.
    fn closed_form_ps(&self) -> PyResult<Option<u64>> {
        Ok(self.0.closed_form().or_raise()?.map(Time::ps))
    }

    /// The lower bound of the collective on this model and graph; zero for a single phase.
    fn bound(&self, py: Python<'_>) -> LowerBound {
        LowerBound::from(py.detach(|| self.0.bound()))
    }

    /// The lower bound of this schedule, where it takes less time than a run; else None. A bound
    /// above `latest_ps` is not computed to the end.
    #[pyo3(signature = (*, latest_ps=u64::MAX))]
    fn schedule_bound_ps(&self, py: Python<'_>, latest_ps: u64) -> PyResult<Option<u64>> {
        let latest = Time::from_ps(latest_ps);
        let bound = watched(py, |stop| self.0.schedule_bound(latest, stop))?.or_raise()?;
        Ok(bound.map(Time::ps))
    }
}

/// The parts of a lower bound; each is itself a lower bound.
#[pyclass(frozen, get_all, eq, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LowerBound {
    /// The latency bound.
    latency_ps: u64,
    /// The bandwidth bound of the ranks' ports.
    bandwidth_ps: u64,
    /// The bandwidth bound of the links, if messages share them.
    links_ps: u64,
    /// The reduction bound.
    folding_ps: u64,
}

impl From<Parts> for LowerBound {
    fn from(parts: Parts) -> LowerBound {
        LowerBound {
            latency_ps: parts.latency.ps(),
            bandwidth_ps: parts.bandwidth.ps(),
            links_ps: parts.links.ps(),
            folding_ps: parts.folding.ps(),
        }
    }
}

#[pymethods]
impl LowerBound {
    /// The lower bound: the largest part.
    #[getter]
    fn at_least_ps(&self) -> u64 {
        self.latency_ps.max(self.bandwidth_ps).max(self.links_ps).max(self.folding_ps)
    }

    fn __repr__(&self) -> String {
        format!("<LowerBound: at least {}>", Time::from_ps(self.at_least_ps()))
    }
}

/// Algorithm bandwidth in bytes per second: the collective's size over its completion time.
#[pyfunction]
pub(crate) fn algbw(size: u64, completion_ps: u64) -> f64 {
    results::algbw(Bytes(size), Time::from_ps(completion_ps))
}

/// Bus bandwidth in bytes per second: algbw x the collective's factor.
#[pyfunction]
pub(crate) fn busbw(collective: &str, ranks: u32, size: u64, completion_ps: u64) -> PyResult<f64> {
    let collective = collective_named(collective, 0)?;
    Ok(results::busbw(collective, ranks, Bytes(size), Time::from_ps(completion_ps)))
}

/// Runs one case; other threads may run others in the meantime.
#[pyfunction]
#[pyo3(signature = (case, *, record=false))]
pub(crate) fn simulate(py: Python<'_>, case: &Case, record: bool) -> PyResult<Run> {
    let run = watched(py, |stop| case.0.run_until(record, stop))?.or_raise()?;
    Ok(Run(run))
}

/// Runs cases in `threads` threads (0: one per core) and passes each result to
/// `done(index, result)` as soon as it is complete, in completion order; a result is either
/// (completion_ps, messages, message_bytes) or an exception. Stops early when `done` raises or
/// Ctrl-C is pressed. The results do not depend on the number of threads.
#[pyfunction]
#[pyo3(signature = (cases, done, *, threads=Number(0)))]
#[pyo3(text_signature = "(cases, done, *, threads=0)")]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub(crate) fn simulate_many(
    py: Python<'_>,
    cases: Vec<PyRef<'_, Case>>,
    done: Bound<'_, PyAny>,
    threads: Number,
) -> PyResult<()> {
    let cases: Vec<_> = cases.iter().map(|case| case.0.clone()).collect();
    let done = done.unbind();
    let run = |case: &tutti_simulation::Case, stop: &AtomicBool| {
        case.run_until(false, stop).map(|run| Some(run.outcome))
    };
    each_in_threads(py, &cases, threads, run, |py, index, result| deliver(py, &done, index, result))
}

/// Passes the figures of a run to Python.
fn deliver(
    py: Python<'_>,
    done: &Py<PyAny>,
    index: usize,
    result: Result<Option<Outcome>, EngineError>,
) -> PyResult<()> {
    match result {
        Ok(outcome) => {
            let figures = |run: Outcome| (run.completion_time().ps(), run.messages, run.bytes);
            done.call1(py, (index, outcome.map(figures)))?;
        }
        Err(error) => _ = done.call1(py, (index, raised(&error)))?,
    }
    Ok(())
}

/// The cases that compete for the shortest times.
struct Race {
    /// The shortest times so far, in order.
    times: Mutex<Vec<u64>>,
    fastest: usize,
    /// The longest of them in ps, once there are enough.
    latest: AtomicU64,
}

impl Race {
    fn new(times: Vec<u64>, fastest: usize) -> Race {
        let race = Race { times: Mutex::default(), fastest, latest: AtomicU64::new(u64::MAX) };
        times.into_iter().for_each(|time| race.note(time));
        race
    }

    /// Whether a case that takes at least `bound` cannot be among the fastest.
    fn is_lost(&self, bound: u64) -> bool {
        bound > self.latest.load(Ordering::Relaxed)
    }

    fn note(&self, time: u64) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let place = times.partition_point(|&other| other <= time);
        times.insert(place, time);
        times.truncate(self.fastest);
        if let (true, Some(&last)) = (times.len() == self.fastest, times.last()) {
            self.latest.store(last, Ordering::Relaxed);
        }
    }
}

/// As `simulate_many`, where only the first `fastest` cases of each race need a result: a slower one
/// may end early or not run, with the result None. `races` has the race of each case, and `times` the
/// known times of each race. The case with the least lower bound runs first.
#[pyfunction]
#[pyo3(signature = (cases, done, *, races, times, fastest, threads=Number(0)))]
#[pyo3(text_signature = "(cases, done, *, races, times, fastest, threads=0)")]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub(crate) fn simulate_fastest(
    py: Python<'_>,
    cases: Vec<PyRef<'_, Case>>,
    done: Bound<'_, PyAny>,
    races: Vec<usize>,
    times: Vec<Vec<u64>>,
    fastest: usize,
    threads: Number,
) -> PyResult<()> {
    if races.len() != cases.len() || races.iter().any(|&race| race >= times.len()) || fastest == 0 {
        return Err(PyValueError::new_err(
            "expected a race of each case, and to keep at least one",
        ));
    }
    let at: Vec<_> = times.into_iter().map(|times| Race::new(times, fastest)).collect();
    let cases: Vec<_> = cases.iter().map(|case| case.0.clone()).collect();
    let latest = |race: usize| Time::from_ps(at[race].latest.load(Ordering::Relaxed));
    let latest: Vec<_> = races.iter().map(|&race| latest(race)).collect();
    let bounds = bounds_of(py, &cases, &latest, threads)?;
    let mut order: Vec<_> = (0..cases.len()).collect();
    order.sort_by_key(|&index| bounds[index]);
    let done = done.unbind();
    let run = |&index: &usize, stop: &AtomicBool| {
        let race = &at[races[index]];
        if race.is_lost(bounds[index]) {
            return Ok(None);
        }
        let run = cases[index].run_before(&race.latest, stop)?;
        Ok(run.map(|run| run.outcome).inspect(|outcome| race.note(outcome.completion_time().ps())))
    };
    each_in_threads(py, &order, threads, run, |py, place, result| {
        deliver(py, &done, order[place], result)
    })
}

/// The lower bounds of schedules in ps, computed up to `latest`; 0 where there is none, also of runs
/// that cannot finish.
fn bounds_of(
    py: Python<'_>,
    cases: &[tutti_simulation::Case],
    latest: &[Time],
    threads: Number,
) -> PyResult<Vec<u64>> {
    let bounds: Vec<_> = cases.iter().map(|_| AtomicU64::new(0)).collect();
    let order: Vec<_> = (0..cases.len()).collect();
    let bound = |&index: &usize, stop: &AtomicBool| {
        cases[index].schedule_bound(latest[index], stop).ok().flatten().map_or(0, Time::ps)
    };
    each_in_threads(py, &order, threads, bound, |_, index, bound| {
        bounds[index].store(bound, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(bounds.into_iter().map(AtomicU64::into_inner).collect())
}
