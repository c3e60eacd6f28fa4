//! The lower bound of a schedule: a time that its run exceeds, at the cost of a run without contention.
//!
//! It decides which schedules cannot be among the fastest, before their contention is simulated.

use std::sync::atomic::{AtomicBool, AtomicU64};

use tutti_engine::EngineError;
use tutti_schedule::algorithm::bound::by_link;
use tutti_topology::Routes;
use tutti_units::ids::LinkId;
use tutti_units::{Bytes, Time};

use crate::{Case, Contention};

impl Case {
    /// The lower bound of this schedule on this platform: the larger of its time without contention and
    /// the busy time of its most loaded link.
    ///
    /// The time without contention is a bound only if receivers take messages of any size in the same
    /// time: with contention, messages share the port of a receiver, and without they queue for it.
    ///
    /// A bound above `latest` is not computed to the end; it is then only known to exceed it.
    ///
    /// Returns `None` unless flows or packets share links on fixed routes, and if switches forward or
    /// reduce collectives.
    ///
    /// # Errors
    /// As [`Case::run`], and when it was stopped.
    pub fn schedule_bound(
        &self,
        latest: Time,
        stop: &AtomicBool,
    ) -> Result<Option<Time>, EngineError> {
        let (contention, model) = (self.platform.contention(), self.platform.model());
        let fixed = self.platform.routing().filter(|routing| routing.choice().is_none());
        let Some(routing) = fixed else { return Ok(None) };
        let shares = matches!(contention, Contention::Flow(_) | Contention::Packets(_));
        if !shares || contention.is_in_network() {
            return Ok(None);
        }
        let mut bound = Time::ZERO;
        if model.takes().is_none() {
            match self.run_uncontended(&AtomicU64::new(latest.ps()), stop) {
                Err(EngineError::TooLate) => return Ok(Some(latest + Time::from_ps(1))),
                run => bound = run?.completion_time(),
            }
        }
        if bound <= latest {
            bound = bound.max(self.busiest_link(routing.routes()));
        }
        Ok(Some(bound))
    }

    /// The busy time of the most loaded link; zero if a message has no route.
    fn busiest_link(&self, routes: &Routes) -> Time {
        let layout = self.layout();
        let bytes = by_link(&*self.schedule, routes, |message| layout.bytes(message.chunks).0);
        let times = (0..).zip(bytes.unwrap_or_default());
        let times =
            times.map(|(link, bytes)| routes.parameters(LinkId(link)).rate.of(Bytes(bytes)));
        // It is rounded up; the end of a transmission may be rounded down.
        times.max().unwrap_or(Time::ZERO) - Time::from_ps(1)
    }
}
