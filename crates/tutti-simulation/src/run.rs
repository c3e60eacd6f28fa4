//! Runs of cases.

use std::sync::atomic::{AtomicBool, AtomicU64};

use tutti_engine::{
    Conditions, Disturbance, EngineError, Loaded, Outcome, Routed, Silent, Simulation, Timeline,
    TimelineProbe,
};
use tutti_network::flow::FlowNetwork;
use tutti_network::packet::{Ends, LinkUse, PacketNetwork};
use tutti_network::{Carrier, MessageModel, Model, Uncontended, dispatch};
use tutti_noc::smart::Counts;
use tutti_units::Time;

use crate::{Case, Contention, MeshFlits, Routing};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Times of ranks, and counts of messages.
    pub outcome: Outcome,
    /// The use of the network.
    pub network: NetworkUse,
    /// Every activity and message, if recorded.
    pub timeline: Option<Timeline>,
}

impl Run {
    /// From the first rank's entry to the last rank's end.
    #[must_use]
    pub fn completion_time(&self) -> Time {
        self.outcome.completion_time()
    }
}

/// What to record, and when to end early.
struct Limits<'a> {
    record: bool,
    stop: &'a AtomicBool,
    latest: &'a AtomicU64,
}

/// The use of the network.
#[derive(Clone, Debug)]
pub enum NetworkUse {
    /// No contention.
    Nothing,
    /// By link of the topology, `packets` being messages.
    Flows(Vec<LinkUse>),
    /// By link of the topology.
    Packets(Vec<LinkUse>),
    /// Use of routers and links.
    Flits {
        /// By link of the topology, `packets` being flits.
        links: Vec<LinkUse>,
        /// Flits over each channel.
        sent: Vec<u64>,
        /// VCs granted to packets.
        vc_grants: u64,
    },
    /// Use of a SMART mesh.
    Mesh {
        /// Its event counters.
        counts: Box<Counts>,
        /// Reductions started while its tables were full.
        beyond: u64,
    },
}

impl Case {
    /// Runs to completion.
    ///
    /// # Errors
    /// When a message has no path, ranks are blocked forever, messages are never received, no
    /// message is sent, or the time is out of range.
    pub fn run(&self) -> Result<Run, EngineError> {
        self.run_until(false, &AtomicBool::new(false))
    }

    /// Runs to completion and records every activity and message.
    ///
    /// # Errors
    /// As [`Case::run`].
    pub fn run_recorded(&self) -> Result<Run, EngineError> {
        self.run_until(true, &AtomicBool::new(false))
    }

    /// Runs to completion, or until `stop` is set; `record` keeps every activity and message.
    ///
    /// # Errors
    /// As [`Case::run`], and when it was stopped.
    pub fn run_until(&self, record: bool, stop: &AtomicBool) -> Result<Run, EngineError> {
        self.run_limited(&Limits { record, stop, latest: &AtomicU64::new(u64::MAX) })
    }

    /// Runs to completion, or until `stop` is set or a rank exceeds `latest`, a time in ps that
    /// other threads may lower; then there is no result.
    ///
    /// # Errors
    /// As [`Case::run`], and when it was stopped.
    pub fn run_before(
        &self,
        latest: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<Option<Run>, EngineError> {
        match self.run_limited(&Limits { record: false, stop, latest }) {
            Err(EngineError::TooLate) => Ok(None),
            result => result.map(Some),
        }
    }

    fn run_limited(&self, limits: &Limits<'_>) -> Result<Run, EngineError> {
        let (model, distances) = (self.platform.model(), self.platform.free_routing());
        if limits.record || self.platform.contention().is_some() {
            return self
                .simulated(model, distances, |simulation| self.run_over(simulation, limits));
        }
        let outcome = self.run_free(distances, limits.latest, limits.stop)?;
        Ok(Run { outcome, network: NetworkUse::Nothing, timeline: None })
    }

    /// Runs without contention: messages take the time of their route as if they were alone on it.
    /// Ends with [`EngineError::TooLate`] once a rank exceeds `latest`.
    pub(crate) fn run_uncontended(
        &self,
        latest: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<Outcome, EngineError> {
        self.run_free(self.platform.routing(), latest, stop)
    }

    /// Runs without contention and records nothing. The engine is compiled for each model, since
    /// nothing else takes time here; other runs choose the model at each message.
    fn run_free(
        &self,
        distances: Option<&Routing>,
        latest: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<Outcome, EngineError> {
        dispatch!(self.platform.model(), model => {
            self.simulated(model, distances, |simulation| {
                simulation.run_before(latest, &mut Uncontended, stop, &mut Silent)
            })
        })
    }

    /// Passes on the simulation of this case, in which the routes of `distances` delay messages.
    fn simulated<M: MessageModel, R>(
        &self,
        model: &M,
        distances: Option<&Routing>,
        run: impl FnOnce(&Simulation<'_, M>) -> R,
    ) -> R {
        let ranks = &self.conditions;
        let loaded = self.load.as_deref().zip(self.platform.routing());
        let loaded = loaded.map(|(load, routing)| Loaded { ranks, routes: routing.routes(), load });
        let disturbance: Option<&dyn Disturbance> = match &loaded {
            Some(loaded) => Some(loaded),
            None if ranks.is_quiet() => None,
            None => Some(ranks),
        };
        let included = self.platform.model().serialization();
        let routed = distances.map(|routing| Routed { routes: routing.routes(), included });
        let distance = routed.as_ref().map(|routed| routed as &dyn tutti_engine::Distance);
        run(&Simulation {
            schedule: &*self.schedule,
            layout: self.layout(),
            model,
            costs: *self.platform.costs(),
            conditions: Conditions { disturbance, distance },
        })
    }

    /// Runs over the network with contention, if there is one.
    fn run_over(
        &self,
        simulation: &Simulation<'_, Model>,
        limits: &Limits<'_>,
    ) -> Result<Run, EngineError> {
        let ends = Ends::of(self.platform.model());
        let routing = self.platform.routing();
        match (self.platform.contention(), routing) {
            (Contention::Flits(flits), _) => {
                let mut carrier = flits.carrier(ends, self.seed, limits.stop);
                let run = run_through(simulation, &mut carrier, limits)?;
                Ok(Run { network: flits.network_use(&carrier), ..run })
            }
            (Contention::Mesh(mesh), _) => {
                let mut carrier = mesh.carrier(ends, limits.stop);
                let run = run_through(simulation, &mut carrier, limits)?;
                Ok(Run { network: MeshFlits::network_use(&carrier), ..run })
            }
            (Contention::Flow(flow), Some(routing)) => {
                let network = FlowNetwork::new(routing.of_flows(), flow.clone(), ends);
                let mut network = network.with_background(&self.flows);
                let run = run_through(simulation, &mut network, limits)?;
                Ok(Run { network: NetworkUse::Flows(network.link_use()), ..run })
            }
            (Contention::Packets(packets), Some(routing)) => {
                let routing = routing.of_packets(self.seed);
                let network = PacketNetwork::new(routing, packets.clone(), ends);
                let mut network = network.with_background(&self.flows);
                let run = run_through(simulation, &mut network, limits)?;
                Ok(Run { network: NetworkUse::Packets(network.link_use().collect()), ..run })
            }
            // The platform's constructor rejects flows and packets without a topology.
            (Contention::Free | Contention::Flow(_) | Contention::Packets(_), _) => {
                run_through(simulation, &mut Uncontended, limits)
            }
        }
    }
}

fn run_through<C: Carrier>(
    simulation: &Simulation<'_, Model>,
    carrier: &mut C,
    &Limits { record, stop, latest }: &Limits<'_>,
) -> Result<Run, EngineError> {
    let network = NetworkUse::Nothing;
    if record {
        let mut probe = TimelineProbe::default();
        let outcome = simulation.run_before(latest, carrier, stop, &mut probe)?;
        let timeline = probe.into_timeline().by_rank(simulation.schedule);
        Ok(Run { outcome, network, timeline: Some(timeline) })
    } else {
        let outcome = simulation.run_before(latest, carrier, stop, &mut Silent)?;
        Ok(Run { outcome, network, timeline: None })
    }
}
