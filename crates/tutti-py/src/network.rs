//! The network models by name, and the noise of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use tutti_analysis::closed_form;
use tutti_engine::{LocalCosts, Ranks};
use tutti_network::{Distribution, Noise, flow, packet};
use tutti_simulation::check_speeds;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

use crate::errors::{OrRaise, refuse};
use crate::topology::Routes;

/// A network model with its parameters, and the cost of local work.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Model(pub(crate) tutti_network::Model, pub(crate) LocalCosts);

/// The texts of parameters, by name.
pub(crate) type Texts = BTreeMap<String, String>;

/// Names and texts as the core takes them.
pub(crate) fn pairs(texts: &Texts) -> impl Iterator<Item = (&str, &str)> {
    texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (kind, parameters, costs=None))]
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn new(kind: &str, parameters: Texts, costs: Option<Texts>) -> PyResult<Model> {
        let given: Vec<_> = pairs(&parameters).collect();
        let costs = LocalCosts::from_texts(pairs(&costs.unwrap_or_default()))
            .and_then(LocalCosts::checked)
            .or_raise()?;
        let model = tutti_network::build(kind, &given).or_raise()?;
        Ok(Model(model, costs))
    }

    /// Its name in the registry.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.name()
    }

    /// A hint about unusual but valid parameters.
    #[getter]
    fn remark(&self) -> Option<String> {
        self.0.remark()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// The parameters of the flow model.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct FlowLevel(pub(crate) flow::FlowLevel);

#[pymethods]
impl FlowLevel {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn new(parameters: Texts) -> PyResult<FlowLevel> {
        flow::FlowLevel::from_texts(pairs(&parameters)).or_raise().map(FlowLevel)
    }
}

/// The packet parameters.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct Packets(pub(crate) packet::Packets);

#[pymethods]
impl Packets {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn new(parameters: Texts) -> PyResult<Packets> {
        let packets = packet::Packets::from_texts(pairs(&parameters)).or_raise()?;
        packets.checked().or_raise().map(Packets)
    }
}

/// The conditions of a run: noise, arrival skew, slow ranks.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone, Default)]
pub(crate) struct Conditions(pub(crate) Ranks);

#[pymethods]
impl Conditions {
    #[new]
    #[pyo3(signature = (*, seed=0, start_skew="none", step="none", message="none", detours=None, speeds=None, wait_for_sends=false))]
    fn new(
        seed: u64,
        start_skew: &str,
        step: &str,
        message: &str,
        detours: Option<&Detours>,
        speeds: Option<Vec<f64>>,
        wait_for_sends: bool,
    ) -> PyResult<Conditions> {
        let noise = Noise {
            seed,
            start_skew: Distribution::parse(start_skew).or_raise()?,
            step: Distribution::parse(step).or_raise()?,
            message: Distribution::parse(message).or_raise()?,
            detours: detours.map(|detours| detours.0.clone()),
        };
        let speeds = speeds.unwrap_or_default();
        check_speeds(&speeds).or_raise()?;
        Ok(Conditions(Ranks { noise, speeds, wait_for_sends, ..Ranks::default() }))
    }

    /// Returns the conditions with another seed, and recorded arrivals in picoseconds, by rank.
    fn with_seed(&self, seed: u64, arrivals_ps: Vec<u64>) -> Conditions {
        let mut ranks = self.0.clone();
        ranks.noise.seed = seed;
        ranks.arrivals = arrivals_ps.into_iter().map(Time::from_ps).collect();
        Conditions(ranks)
    }
}

/// Detours: times in which the processors of ranks are interrupted, in a cycle.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Detours(tutti_network::Detours);

#[pymethods]
impl Detours {
    /// Detours as (start, duration) within a cycle, all in picoseconds.
    #[staticmethod]
    fn trace(cycle: u64, detours: Vec<(u64, u64)>, aligned: bool) -> PyResult<Detours> {
        let ps = |(start, lost)| (Time::from_ps(start), Time::from_ps(lost));
        let detours: Vec<_> = detours.into_iter().map(ps).collect();
        tutti_network::Detours::trace(Time::from_ps(cycle), &detours, aligned)
            .or_raise()
            .map(Detours)
    }

    /// Detours at random times, `interval` picoseconds apart on average.
    #[staticmethod]
    fn random(interval: u64, duration: &str, aligned: bool) -> PyResult<Detours> {
        let duration = Distribution::parse(duration).or_raise()?;
        tutti_network::Detours::random(Time::from_ps(interval), &duration, aligned)
            .or_raise()
            .map(Detours)
    }
}

/// Background messages between two NPUs, one per period.
#[pyclass(frozen, from_py_object, module = "tutti._core")]
#[derive(Clone, Copy)]
pub(crate) struct BackgroundFlow(pub(crate) tutti_network::BackgroundFlow);

#[pymethods]
impl BackgroundFlow {
    /// `count` messages of `size` bytes, the first at `start_ps`.
    #[new]
    #[pyo3(signature = (source, destination, *, size, start_ps, period_ps, count))]
    fn new(
        source: u32,
        destination: u32,
        size: u64,
        start_ps: u64,
        period_ps: u64,
        count: u64,
    ) -> BackgroundFlow {
        BackgroundFlow(tutti_network::BackgroundFlow {
            source: RankId(source),
            destination: RankId(destination),
            bytes: Bytes(size),
            start: Time::from_ps(start_ps),
            period: Time::from_ps(period_ps),
            count,
        })
    }
}

/// Background traffic on the links of a topology.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct LinkLoad(pub(crate) Arc<tutti_network::LinkLoad>);

#[pymethods]
impl LinkLoad {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
    fn new(routes: &Routes, loads: Vec<f64>, burst: u64) -> PyResult<LinkLoad> {
        let load = tutti_network::LinkLoad::new(routes.fixed(), &loads, Bytes(burst)).or_raise()?;
        Ok(LinkLoad(Arc::new(load)))
    }
}

/// How many overlapping messages per stage are best; `None` when later ones cost nothing.
#[pyfunction]
pub(crate) fn b_opt(alpha_p_ps: u64, alpha_r_ps: u64) -> Option<f64> {
    closed_form::b_opt(Time::from_ps(alpha_p_ps), Time::from_ps(alpha_r_ps))
}

/// Picoseconds of a small all_reduce whose stages all send `b` messages, in real numbers.
#[pyfunction]
pub(crate) fn time_of_uniform_stages(
    alpha_p_ps: u64,
    alpha_r_ps: u64,
    b: f64,
    ranks: f64,
) -> PyResult<f64> {
    if !(b > 0.0 && ranks >= 1.0) {
        let message = format!("b = {b} on {ranks} ranks: expected b > 0 and at least one rank");
        return Err(refuse("ModelError", "value", &message));
    }
    let (alpha_p, alpha_r) = (Time::from_ps(alpha_p_ps), Time::from_ps(alpha_r_ps));
    Ok(closed_form::time_of_uniform_stages(alpha_p, alpha_r, b, ranks))
}
