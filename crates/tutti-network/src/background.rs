//! Background traffic on the links: as a load per link, or as messages.
//!
//! **Load.** Background traffic occupies a fraction rho of a link's rate, in bursts of b bytes (Poisson
//! arrivals, exponential length). A message on such a link waits as in an M/M/1 queue: with probability
//! 1 - rho not at all, else exponentially with mean b times per byte / (1 - rho). This is for contention-free
//! models: it requires only the route of a message.
//!
//! **Flows.** Messages from one NPU to another, once or periodically. This is for networks with contention,
//! which carry them like other messages.

use super::noise::{Distribution, Noise, NoiseError, Part};
use tutti_topology::{LinkParameters, Routes};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

/// A background flow of `count` messages, one per `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundFlow {
    /// The rank on the source NPU.
    pub source: RankId,
    /// The rank on the destination NPU.
    pub destination: RankId,
    /// The size of each message.
    pub bytes: Bytes,
    /// When the first message is sent.
    pub start: Time,
    /// The interval between messages.
    pub period: Time,
    /// The number of messages.
    pub count: u64,
}

impl BackgroundFlow {
    /// Takes a message off the count; `None` if all are sent. The result has the messages left.
    pub(crate) fn take(&mut self) -> Option<BackgroundFlow> {
        self.count = self.count.checked_sub(1)?;
        Some(*self)
    }
}

/// The queueing delay due to background traffic, per kind of link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoad {
    /// The queueing delay per kind of link, in the order of [`LinkLoad::kinds`].
    waits: Vec<(LinkParameters, Distribution)>,
}

impl LinkLoad {
    /// One load per kind of link, or one for all kinds; in bursts of `burst` bytes.
    ///
    /// # Errors
    /// When the number of loads is neither 1 nor the number of kinds, or a load is not in [0, 1).
    pub fn new(routes: &Routes, loads: &[f64], burst: Bytes) -> Result<LinkLoad, NoiseError> {
        if let Some(load) = loads.iter().find(|load| !(0.0..1.0).contains(*load)) {
            return Err(NoiseError::Load { load: load.to_string() });
        }
        let kinds = LinkLoad::kinds(routes);
        if loads.len() != 1 && loads.len() != kinds.len() {
            let (given, kinds) = (loads.len(), kinds.len());
            return Err(NoiseError::Loads { given, kinds });
        }
        let every = loads.iter().cycle();
        let wait = |(kind, load): (LinkParameters, &f64)| (kind, wait(*load, kind.rate, burst));
        Ok(LinkLoad { waits: kinds.into_iter().zip(every).map(wait).collect() })
    }

    /// The kinds of links of a topology, fastest first, then by latency and length.
    #[must_use]
    pub fn kinds(routes: &Routes) -> Vec<LinkParameters> {
        let topology = routes.topology();
        let mut kinds: Vec<_> = topology.links().map(|link| topology.parameters(link)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Queueing delay, on its route to `to`, of the `index`-th message that `rank` sends in `step`.
    #[must_use]
    pub fn wait(
        &self,
        routes: &Routes,
        noise: &Noise,
        (rank, step, index): (RankId, u32, u32),
        to: RankId,
    ) -> Time {
        let Ok(path) = routes.path(rank, to) else { return Time::ZERO };
        let mut waited = Time::ZERO;
        for (hop, link) in (0..).zip(path) {
            let kind = routes.topology().parameters(link);
            if let Ok(found) = self.waits.binary_search_by(|(known, _)| known.cmp(&kind)) {
                let bits = noise.bits_on_link(rank, step, index, hop);
                waited += self.waits[found].1.draw(bits);
            }
        }
        waited
    }
}

/// The distribution of the waiting time of an M/M/1 queue.
fn wait(load: f64, rate: TimePerByte, burst: Bytes) -> Distribution {
    let mean = rate.of(burst).at_speed(1.0 - load);
    let distribution = Distribution::Exponential(mean);
    Distribution::Mixture([Part { chance: load, distribution }].into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tutti_topology::build;

    #[expect(clippy::cast_precision_loss, reason = "a sample mean")]
    #[test]
    fn waits_are_those_of_a_queue() {
        let link = LinkParameters::new(TimePerByte::parse("10 GB/s").unwrap(), Time::ZERO);
        let topology = Arc::new(build("switch:4", &[link]).unwrap());
        let routes = Routes::shortest_path(topology);
        let load = LinkLoad::new(&routes, &[0.25], Bytes(1_000)).unwrap();
        let noise = Noise { seed: 7, ..Noise::default() };
        let wait = |step| load.wait(&routes, &noise, (RankId(0), step, 0), RankId(3)).ps();
        let waits: Vec<u64> = (0..40_000).map(wait).collect();
        // Two links, each rho / (1 - rho) x 100 ns on average: 66.67 ns. The variance of one wait is
        // rho (2 - rho) / (1 - rho)^2 (100 ns)^2 = (88.2 ns)^2, so sigma of the mean is 0.62 ns; five.
        let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
        assert!((mean - 66_667.0).abs() < 3_120.0, "mean {mean}");
        // No wait with probability (1 - rho)^2 = 0.5625; sigma 0.00248.
        let none = waits.iter().filter(|&&wait| wait == 0).count();
        assert!(none.abs_diff(22_500) < 496, "{none} did not wait");
    }

    #[test]
    fn invalid_loads_are_rejected() {
        let link = LinkParameters::new(TimePerByte::parse("10 GB/s").unwrap(), Time::ZERO);
        let routes = Routes::shortest_path(Arc::new(build("ring:4", &[link]).unwrap()));
        let error =
            |loads: &[f64]| LinkLoad::new(&routes, loads, Bytes(64)).unwrap_err().to_string();
        assert!(error(&[1.0]).starts_with("invalid load 1:"));
        assert!(error(&[f64::NAN]).starts_with("invalid load NaN:"));
        assert!(error(&[-0.1]).starts_with("invalid load -0.1:"));
        assert_eq!(
            error(&[0.1, 0.2]),
            "2 loads are given: expected one, or one per kind of link (1)"
        );
        assert_eq!(error(&[]), "0 loads are given: expected one, or one per kind of link (1)");
    }
}
