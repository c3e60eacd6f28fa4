//! The conditions of a run in addition to schedule and network: local work, skew, noise, distance.

use std::sync::Arc;

use tutti_network::{LinkLoad, Noise, Serialization};
use tutti_topology::Routes;
use tutti_units::ids::RankId;
use tutti_units::parameter::ParameterError;
use tutti_units::{Bytes, Time, TimePerByte};

tutti_units::parameters! {
    /// The cost of local work on a rank.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LocalCosts("compute" as "LocalCosts", "", ParameterError) {
        /// Time per byte of reducing one operand into another.
        gamma: TimePerByte = "0 ns/B",
        /// As gamma, for operands above cache; at least gamma.
        gamma_memory: Option<TimePerByte>,
        /// The largest operand that is reduced in the cache. Required with gamma_memory.
        cache: Option<Bytes>,
        /// Fixed time of each reduction.
        reduce_overhead: Time = "0 ns",
        /// Time per byte of copying.
        copy: TimePerByte = "0 ns/B",
        /// Fixed time from the call of a collective until its first step, on every rank.
        launch: Time = "0 ns",
    }
}

impl LocalCosts {
    /// Local work takes no time.
    pub const FREE: LocalCosts = LocalCosts {
        gamma: TimePerByte::ZERO,
        gamma_memory: None,
        cache: None,
        reduce_overhead: Time::ZERO,
        copy: TimePerByte::ZERO,
        launch: Time::ZERO,
    };

    /// Checks the costs of reductions.
    ///
    /// # Errors
    /// Only one of `gamma_memory` and `cache` is given, or `gamma_memory` is less than `gamma`.
    pub fn checked(self) -> Result<LocalCosts, ParameterError> {
        let missing = |name: &str| {
            let mut parameters = LocalCosts::GROUP.parameters.iter();
            let missing = parameters.find(|parameter| parameter.name == name);
            missing.map_or(Ok(self), |missing| Err(LocalCosts::GROUP.missing(missing)))
        };
        match (self.gamma_memory, self.cache) {
            (Some(memory), Some(_)) if memory < self.gamma => Err(ParameterError::BelowAnother {
                parameter: "gamma_memory",
                value: memory.to_string(),
                other: "gamma",
                least: self.gamma.to_string(),
            }),
            (Some(_), None) => missing("cache"),
            (None, Some(_)) => missing("gamma_memory"),
            _ => Ok(self),
        }
    }

    /// Time per byte of reducing an operand of `bytes` into another.
    #[inline]
    #[must_use]
    pub fn gamma_of(&self, bytes: Bytes) -> TimePerByte {
        let above = self.cache.is_some_and(|cache| bytes > cache);
        self.gamma_memory.filter(|_| above).unwrap_or(self.gamma)
    }

    /// Time of reducing `operands` operands of `bytes` into one.
    #[inline]
    #[must_use]
    pub fn reduce(&self, operands: u32, bytes: Bytes) -> Time {
        let folds = u64::from(operands.saturating_sub(1));
        self.reduce_overhead + self.gamma_of(bytes).of(bytes).times(folds)
    }
}

/// Injected noise. Every method is a pure function of its arguments, so the order of calls has no
/// effect.
pub trait Disturbance: Send + Sync {
    /// When `rank` enters the collective (arrival skew).
    fn start(&self, rank: RankId) -> Time;

    /// Time that the processor of `rank` loses at the start of `step`.
    fn before_step(&self, rank: RankId, step: u32) -> Time;

    /// Delay of the `index`-th message that `rank` sends in `step`.
    fn on_message(&self, rank: RankId, step: u32, index: u32) -> Time;

    /// Time of local work on `rank` (depends on its speed) that nominally takes `nominal`.
    fn local(&self, rank: RankId, nominal: Time) -> Time;

    /// When the processor of `rank` completes `work` that it starts at `start`, including detours.
    fn done(&self, _rank: RankId, start: Time, work: Time) -> Time {
        start + work
    }

    /// Whether a rank ends a step only after all its messages of the step have arrived, like a rank
    /// that waits for its puts.
    fn waits_for_sends(&self) -> bool {
        false
    }

    /// Whether [`Disturbance::on_message`] or [`Disturbance::on_route`] may delay messages.
    fn delays_messages(&self) -> bool {
        true
    }

    /// Queueing delay due to background traffic of a message on its route to `to`; `from` is (rank,
    /// step, index).
    fn on_route(&self, _from: (RankId, u32, u32), _to: RankId) -> Time {
        Time::ZERO
    }
}

/// Delay of the path between two ranks, in addition to a model without topology.
pub trait Distance: Send + Sync {
    /// Delay of a message of `bytes` in addition to the model's time.
    fn extra(&self, source: RankId, destination: RankId, bytes: Bytes) -> Time;

    /// Whether some ranks may be unable to reach others.
    fn has_unreachable_pairs(&self) -> bool {
        false
    }

    /// Whether a path connects one rank to another; [`Distance::extra`] is not called otherwise.
    fn reaches(&self, _from: RankId, _to: RankId) -> bool {
        true
    }
}

/// The conditions of ranks: noise on processors and messages, and a speed per rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// Skew and noise.
    pub noise: Noise,
    /// Speed of each rank's local work, 1 being nominal; ranks beyond the end are nominal.
    pub speeds: Vec<f64>,
    /// How late each rank enters the collective, in addition to the noise; ranks beyond the end are
    /// on time.
    pub arrivals: Arc<[Time]>,
    /// Whether a rank ends a step only after all its messages of the step have arrived.
    pub wait_for_sends: bool,
}

impl Ranks {
    /// Whether every rank is nominal and without noise.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        !self.wait_for_sends
            && self.noise.is_none()
            && self.speeds.iter().all(|speed| speed.total_cmp(&1.0).is_eq())
            && self.arrivals.iter().all(|arrival| *arrival == Time::ZERO)
    }
}

impl Disturbance for Ranks {
    fn start(&self, rank: RankId) -> Time {
        let recorded = self.arrivals.get(rank.index()).copied().unwrap_or_default();
        self.noise.on_start(rank) + recorded
    }

    fn before_step(&self, rank: RankId, step: u32) -> Time {
        self.noise.on_step(rank, step)
    }

    fn on_message(&self, rank: RankId, step: u32, index: u32) -> Time {
        self.noise.on_message(rank, step, index)
    }

    fn local(&self, rank: RankId, nominal: Time) -> Time {
        self.speeds.get(rank.index()).map_or(nominal, |&speed| nominal.at_speed(speed))
    }

    #[inline]
    fn done(&self, rank: RankId, start: Time, work: Time) -> Time {
        self.noise.done(rank, start, work)
    }

    fn waits_for_sends(&self) -> bool {
        self.wait_for_sends
    }

    fn delays_messages(&self) -> bool {
        !self.noise.message.is_none()
    }
}

/// Ranks with background traffic on the routes of their messages.
pub struct Loaded<'a> {
    /// The ranks.
    pub ranks: &'a Ranks,
    /// The routes of their messages.
    pub routes: &'a Routes,
    /// The background traffic.
    pub load: &'a LinkLoad,
}

impl Disturbance for Loaded<'_> {
    fn start(&self, rank: RankId) -> Time {
        self.ranks.start(rank)
    }

    fn before_step(&self, rank: RankId, step: u32) -> Time {
        self.ranks.before_step(rank, step)
    }

    fn on_message(&self, rank: RankId, step: u32, index: u32) -> Time {
        self.ranks.on_message(rank, step, index)
    }

    fn local(&self, rank: RankId, nominal: Time) -> Time {
        self.ranks.local(rank, nominal)
    }

    fn done(&self, rank: RankId, start: Time, work: Time) -> Time {
        self.ranks.done(rank, start, work)
    }

    fn waits_for_sends(&self) -> bool {
        self.ranks.wait_for_sends
    }

    fn on_route(&self, from: (RankId, u32, u32), to: RankId) -> Time {
        self.load.wait(self.routes, &self.ranks.noise, from, to)
    }
}

/// The contention-free delay of a path through a topology: the latencies of its hops, and the time
/// of the slowest link for the bytes of a message in excess of the model's serialization.
pub struct Routed<'a> {
    /// The routes; its first NPUs are the ranks.
    pub routes: &'a Routes,
    /// The model's serialization.
    pub included: Serialization,
}

impl Distance for Routed<'_> {
    fn extra(&self, source: RankId, destination: RankId, bytes: Bytes) -> Time {
        let path = self.routes.pair(source, destination);
        path.latency + (path.bottleneck.of(bytes) - self.included.of(bytes))
    }

    fn has_unreachable_pairs(&self) -> bool {
        self.routes.has_unreachable_pairs()
    }

    fn reaches(&self, from: RankId, to: RankId) -> bool {
        self.routes.reach(from, to)
    }
}

/// The conditions of a run; the default has no effect.
#[derive(Clone, Copy, Default)]
pub struct Conditions<'a> {
    /// Skew, noise and slow ranks.
    pub disturbance: Option<&'a dyn Disturbance>,
    /// Distance between ranks.
    pub distance: Option<&'a dyn Distance>,
}

impl Conditions<'_> {
    #[inline]
    pub(super) fn start(&self, rank: RankId) -> Time {
        self.disturbance.map_or(Time::ZERO, |d| d.start(rank))
    }

    #[inline]
    pub(super) fn before_step(&self, rank: RankId, step: u32) -> Time {
        self.disturbance.map_or(Time::ZERO, |d| d.before_step(rank, step))
    }

    #[inline]
    pub(super) fn local(&self, rank: RankId, nominal: Time) -> Time {
        self.disturbance.map_or(nominal, |d| d.local(rank, nominal))
    }

    #[inline]
    pub(super) fn done(&self, rank: RankId, start: Time, work: Time) -> Time {
        self.disturbance.map_or(start + work, |d| d.done(rank, start, work))
    }

    pub(super) fn waits_for_sends(&self) -> bool {
        self.disturbance.is_some_and(Disturbance::waits_for_sends)
    }

    /// Whether a message may arrive later than in the model.
    pub(super) fn delay_messages(&self) -> bool {
        self.distance.is_some() || self.disturbance.is_some_and(Disturbance::delays_messages)
    }

    /// Delay of a message in addition to the model; `from` is (rank, step, index).
    #[inline]
    pub(super) fn late(&self, from: (RankId, u32, u32), to: RankId, bytes: Bytes) -> Time {
        let (rank, step, index) = from;
        let noise = self
            .disturbance
            .map_or(Time::ZERO, |d| d.on_message(rank, step, index) + d.on_route(from, to));
        noise + self.distance.map_or(Time::ZERO, |d| d.extra(rank, to, bytes))
    }
}
