//! What a run meets besides its schedule and its network: local work, skew, noise, distance.

use std::sync::Arc;

use tutti_network::{LinkLoad, Noise, Serialization};
use tutti_topology::Routes;
use tutti_units::ids::RankId;
use tutti_units::parameter::ParameterError;
use tutti_units::{Bytes, Time, TimePerByte};

tutti_units::parameters! {
    /// What local work on a rank costs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LocalCosts("compute" as "LocalCosts", "", ParameterError) {
        /// Reducing one more operand into another, per byte.
        gamma: TimePerByte = "0 ns/B",
        /// Fixed time of each reduction.
        reduce_overhead: Time = "0 ns",
        /// Copying, per byte.
        copy: TimePerByte = "0 ns/B",
    }
}

impl LocalCosts {
    /// Local work takes no time.
    pub const FREE: LocalCosts = LocalCosts {
        gamma: TimePerByte::ZERO,
        reduce_overhead: Time::ZERO,
        copy: TimePerByte::ZERO,
    };

    /// Folding `operands` pieces of `bytes` into one.
    #[inline]
    #[must_use]
    pub fn reduce(&self, operands: u32, bytes: Bytes) -> Time {
        let folds = u64::from(operands.saturating_sub(1));
        self.reduce_overhead + self.gamma.of(bytes).times(folds)
    }
}

/// Injected disturbance. Every answer depends on the arguments alone, so the order in which a run asks
/// cannot change it.
pub trait Disturbance: Send + Sync {
    /// When `rank` enters the collective (arrival skew).
    fn start(&self, rank: RankId) -> Time;

    /// Time the processor of `rank` loses at the start of `step`.
    fn before_step(&self, rank: RankId, step: u32) -> Time;

    /// Time by which the `index`-th message that `rank` sends in `step` is late.
    fn on_message(&self, rank: RankId, step: u32, index: u32) -> Time;

    /// What local work of nominally this long takes on `rank` (its speed).
    fn local(&self, rank: RankId, nominal: Time) -> Time;

    /// When the processor of `rank` is done with `work` that it begins at `start`; later than `work` takes
    /// where it does something else meanwhile.
    fn done(&self, _rank: RankId, start: Time, work: Time) -> Time {
        start + work
    }

    /// Whether a rank ends a step only once all that it sent in it has arrived, as one that waits for its
    /// puts does.
    fn waits_for_sends(&self) -> bool {
        false
    }

    /// Whether messages may be late, be it through [`Disturbance::on_message`] or through
    /// [`Disturbance::on_way`].
    fn delays_messages(&self) -> bool {
        true
    }

    /// Time by which traffic of others holds up the `index`-th message that `rank` sends in `step`, on its
    /// way to `to`; `from` is (rank, step, index).
    fn on_way(&self, _from: (RankId, u32, u32), _to: RankId) -> Time {
        Time::ZERO
    }
}

/// What the way between two ranks adds to a model that knows no distance.
pub trait Distance: Send + Sync {
    /// The time by which a message of `bytes` arrives later than the model says.
    fn extra(&self, source: RankId, destination: RankId, bytes: Bytes) -> Time;

    /// Whether some ranks are out of reach of others.
    fn lacks_ways(&self) -> bool {
        false
    }

    /// Whether there is a way from one rank to another; where there is none, nobody asks for it.
    fn reaches(&self, _from: RankId, _to: RankId) -> bool {
        true
    }
}

/// Ranks as they are: noise on them and on the wire, and each with its own speed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// Skew and noise.
    pub noise: Noise,
    /// Speed of each rank's local work, 1 being nominal; ranks beyond the end are nominal.
    pub speeds: Vec<f64>,
    /// How late each rank enters the collective, besides what the noise draws; ranks beyond the end are
    /// on time.
    pub arrivals: Arc<[Time]>,
    /// Whether a rank ends a step only once all that it sent in it has arrived.
    pub wait_for_sends: bool,
}

impl Ranks {
    /// Whether every rank is nominal and undisturbed.
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

/// Ranks whose messages meet the traffic of others on their way.
pub struct Loaded<'a> {
    /// The ranks.
    pub ranks: &'a Ranks,
    /// The ways of their messages.
    pub routes: &'a Routes,
    /// What is on them.
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

    fn on_way(&self, from: (RankId, u32, u32), to: RankId) -> Time {
        self.load.wait(self.routes, &self.ranks.noise, from, to)
    }
}

/// The way through a topology: every hop's latency, and what the slowest link takes for the bytes of a message
/// beyond what the model charges for them anyway. No message is in another's way.
pub struct Routed<'a> {
    /// The routes; its first NPUs are the ranks.
    pub routes: &'a Routes,
    /// What the model itself charges for the bytes of a message.
    pub included: Serialization,
}

impl Distance for Routed<'_> {
    fn extra(&self, source: RankId, destination: RankId, bytes: Bytes) -> Time {
        let way = self.routes.pair(source, destination);
        way.latency + (way.bottleneck.of(bytes) - self.included.of(bytes))
    }

    fn lacks_ways(&self) -> bool {
        self.routes.has_unreachable_pairs()
    }

    fn reaches(&self, from: RankId, to: RankId) -> bool {
        self.routes.reach(from, to)
    }
}

/// What gets in the way of a run; the default is nothing.
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

    /// Whether a message may arrive later than the model says.
    pub(super) fn delay_messages(&self) -> bool {
        self.distance.is_some() || self.disturbance.is_some_and(Disturbance::delays_messages)
    }

    /// How much later than the model says a message arrives; `from` is (rank, step, index).
    #[inline]
    pub(super) fn late(&self, from: (RankId, u32, u32), to: RankId, bytes: Bytes) -> Time {
        let (rank, step, index) = from;
        let noise = self
            .disturbance
            .map_or(Time::ZERO, |d| d.on_message(rank, step, index) + d.on_way(from, to));
        noise + self.distance.map_or(Time::ZERO, |d| d.extra(rank, to, bytes))
    }
}
