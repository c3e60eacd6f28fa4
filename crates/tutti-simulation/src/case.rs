//! Cases: all inputs of a run.

use std::sync::Arc;

use tutti_analysis::closed_form;
use tutti_engine::Ranks;
use tutti_network::{BackgroundFlow, LinkLoad};
use tutti_schedule::algorithm::{self, AlgorithmError, critical_path};
use tutti_schedule::collective::Collective;
use tutti_schedule::{Layout, Schedule};
use tutti_units::{Bytes, Time, TimePerByte};

use crate::{Contention, Platform, SimulationError};

/// The size of a collective by its convention, and of an element, which is indivisible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload {
    /// The size; [`tutti_schedule::collective`] states what it counts.
    pub size: Bytes,
    /// Bytes of an element.
    pub element: u64,
}

/// All inputs of a run: a schedule, a platform, a payload, and the conditions of ranks and links.
#[derive(Clone)]
pub struct Case {
    pub(crate) schedule: Arc<dyn Schedule>,
    /// The notation from which the registry generated the schedule.
    notation: Option<String>,
    pub(crate) platform: Arc<Platform>,
    pub(crate) payload: Payload,
    pub(crate) conditions: Ranks,
    pub(crate) load: Option<Arc<LinkLoad>>,
    pub(crate) flows: Vec<BackgroundFlow>,
    pub(crate) seed: u64,
}

impl Case {
    /// A case without noise or background traffic.
    ///
    /// # Errors
    /// When the platform has fewer NPUs than the schedule has ranks, or the payload does not suit
    /// the schedule.
    pub fn new(
        schedule: Arc<dyn Schedule>,
        platform: Arc<Platform>,
        payload: Payload,
    ) -> Result<Case, SimulationError> {
        platform.check_ranks(schedule.shape().ranks)?;
        Layout::of_schedule(&*schedule, payload.size, payload.element)?;
        Ok(Case {
            schedule,
            notation: None,
            platform,
            payload,
            conditions: Ranks::default(),
            load: None,
            flows: Vec::new(),
            seed: 0,
        })
    }

    /// The case of an algorithm by its notation, such as `ring`. An algorithm for graphs uses the
    /// platform's topology.
    ///
    /// # Errors
    /// As [`Case::new`], and when the notation is invalid or the algorithm does not support the
    /// collective on so many ranks.
    pub fn of_algorithm(
        notation: &str,
        collective: Collective,
        ranks: u32,
        platform: Arc<Platform>,
        payload: Payload,
    ) -> Result<Case, SimulationError> {
        if let Some(routing) = platform.routing() {
            let on_graph = algorithm::build_on(notation, collective, ranks, routing.routes())?;
            if let Some(schedule) = on_graph {
                return Case::new(schedule, platform, payload);
            }
        }
        let schedule = algorithm::build(notation, collective, ranks)?;
        Ok(Case::new(schedule, platform, payload)?.generated_by(notation))
    }

    /// States the notation from which the registry generated the schedule, so that the case may
    /// have a closed form.
    #[must_use]
    pub fn generated_by(self, notation: impl Into<String>) -> Case {
        Case { notation: Some(notation.into()), ..self }
    }

    /// The case with noise, arrival skew and slow ranks.
    ///
    /// # Errors
    /// When the speed of a rank is not a positive number.
    pub fn with_conditions(self, conditions: Ranks) -> Result<Case, SimulationError> {
        check_speeds(&conditions.speeds)?;
        Ok(Case { conditions, ..self })
    }

    /// The case with a background load on the links of its platform's topology.
    ///
    /// # Errors
    /// When the platform has no topology.
    pub fn with_load(self, load: Arc<LinkLoad>) -> Result<Case, SimulationError> {
        match self.platform.routing() {
            Some(_) => Ok(Case { load: Some(load), ..self }),
            None => Err(SimulationError::LoadWithoutTopology),
        }
    }

    /// The case with background flows between NPUs, which share links with its messages.
    ///
    /// # Errors
    /// When messages share neither links nor queues, or an NPU does not exist.
    pub fn with_flows(self, flows: Vec<BackgroundFlow>) -> Result<Case, SimulationError> {
        let shares =
            matches!(self.platform.contention(), Contention::Flow(_) | Contention::Packets(_));
        match self.platform.routing().filter(|_| shares) {
            Some(routing) => {
                for flow in &flows {
                    routing.routes().try_pair(flow.source, flow.destination)?;
                }
            }
            None if flows.is_empty() => {}
            None => return Err(SimulationError::NothingSharesFlows),
        }
        Ok(Case { flows, ..self })
    }

    /// The case with another seed of per-packet routing and of routers; the default is 0.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Case {
        Case { seed, ..self }
    }

    /// The schedule.
    #[must_use]
    pub fn schedule(&self) -> &dyn Schedule {
        &*self.schedule
    }

    /// The platform.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    pub(crate) fn layout(&self) -> Layout<'_> {
        let layout = Layout::of_schedule(&*self.schedule, self.payload.size, self.payload.element);
        layout.expect("the constructor has checked it")
    }

    /// The completion time by the closed form, which is exact. `None` without one: schedules
    /// outside the registry, noise, a topology or a mesh, copies that take time, and algorithms
    /// without a simple critical path.
    ///
    /// # Errors
    /// When the notation of [`Case::generated_by`] is invalid.
    pub fn closed_form(&self) -> Result<Option<Time>, AlgorithmError> {
        let (model, costs) = (self.platform.model(), self.platform.costs());
        let is_flat = self.platform.routing().is_none() && !self.platform.contention().is_some();
        let is_exact = is_flat && self.conditions.is_quiet() && costs.copy == TimePerByte::ZERO;
        let Some(notation) = self.notation.as_ref().filter(|_| is_exact) else { return Ok(None) };
        let shape = self.schedule.shape();
        let path = critical_path(notation, shape.collective, shape.ranks)?;
        let reduce = |operands, bytes| costs.reduce(operands, bytes);
        let Payload { size, element } = self.payload;
        let time = |stages: Vec<_>| closed_form::time(model, &stages, size, element, reduce);
        Ok(path.and_then(time).map(|time| costs.launch + time))
    }
}

/// Rejects speeds of ranks that are not positive numbers.
///
/// # Errors
/// When a speed is zero, negative, infinite or not a number.
pub fn check_speeds(speeds: &[f64]) -> Result<(), SimulationError> {
    let is_invalid = |speed: &f64| !(speed.is_finite() && *speed > 0.0);
    match speeds.iter().position(is_invalid) {
        Some(rank) => Err(SimulationError::Speed { rank, speed: speeds[rank] }),
        None => Ok(()),
    }
}
