//! What collectives cost at least, on a network with an endpoint. Real numbers are in ps.

use tutti_engine::workload::Rings;
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time};

use super::cuts::Cuts;
use super::needs::Needs;
use super::{BoundedStep, EndpointCosts, Moved, floor, real};

/// The busy times of servers of an endpoint.
type Served = Vec<(&'static str, f64)>;

/// The least costs of transfers.
pub(super) struct Costs<'a> {
    cuts: Cuts<'a>,
    endpoint: EndpointCosts,
    /// The time from the issue of a collective until its start on an NPU.
    pub(super) launch: Time,
}

impl<'a> Costs<'a> {
    pub(super) fn new(step: &BoundedStep<'a>) -> Costs<'a> {
        let &BoundedStep { endpoint, launch, .. } = step;
        Costs { cuts: Cuts::new(step.dimensions, step.network), endpoint, launch }
    }

    fn needs(&self, moved: &Moved, group: &[usize]) -> Needs {
        Needs::of(moved.collective, self.cuts.ranks(group), moved.bytes)
    }

    /// The least time from the first start to the first completion.
    pub(super) fn first(&self, moved: &Moved) -> Time {
        let group = self.cuts.group(moved.rings);
        let enters = self.needs(moved, &group).enters;
        self.at_least(&group, enters / self.cuts.entry(&group), &self.endpoint.arriving(enters))
    }

    /// The least time from the last start to the last completion.
    pub(super) fn last(&self, moved: &Moved) -> Time {
        let group = self.cuts.group(moved.rings);
        let leaves = self.needs(moved, &group).leaves;
        // A rank sends what it has reduced completely without reading it.
        let read = if moved.collective == Some(Collective::AllReduce) { 0.0 } else { leaves };
        let served = self.endpoint.leaving(leaves, read);
        self.at_least(&group, leaves / self.cuts.exit(&group), &served)
    }

    /// The largest of latency, the time on links after the shortest latency, and that of each server.
    fn at_least(&self, group: &[usize], on_links: f64, served: &Served) -> Time {
        if group.is_empty() {
            return Time::ZERO;
        }
        let through = real(self.cuts.nearest(group).ps().into()) + on_links;
        let longest = served.iter().fold(through, |most, &(_, time)| most.max(time));
        self.launch + self.cuts.eccentricity(group).max(floor(longest))
    }

    /// The least time of a message.
    pub(super) fn message(&self, size: Bytes) -> Time {
        let group = self.cuts.group(Rings::ALL);
        if group.is_empty() {
            return Time::ZERO;
        }
        let bytes = real(size.0.into());
        let nearest = real(self.cuts.nearest(&group).ps().into());
        let mut served = self.endpoint.leaving(bytes, bytes);
        served.extend(self.endpoint.arriving(bytes));
        let through = nearest + bytes / self.cuts.exit(&group);
        floor(served.iter().fold(through, |most, &(_, time)| most.max(time)))
    }

    /// The busy time of resources; of an NPU's, that of the average NPU.
    pub(super) fn loads(&self, moved: &Moved) -> Vec<(String, f64)> {
        let group = self.cuts.group(moved.rings);
        if group.is_empty() {
            return Vec::new();
        }
        let needs = self.needs(moved, &group);
        let (out, read, into) = match self.endpoint {
            EndpointCosts::Baseline { .. } => (needs.sends, needs.reads, needs.sends),
            EndpointCosts::Ideal | EndpointCosts::Ace { .. } => {
                (needs.leaves, needs.leaves, needs.enters)
            }
        };
        let served = [self.endpoint.leaving(out, read), self.endpoint.arriving(into)];
        let served = served.into_iter().flatten().map(|(name, time)| (name.to_owned(), time));
        self.cuts.loads(moved).into_iter().chain(served).collect()
    }
}

impl EndpointCosts {
    /// The busy times of servers between memory and links for bytes that leave, of which the
    /// baseline reads `read`.
    fn leaving(&self, bytes: f64, read: f64) -> Served {
        match *self {
            EndpointCosts::Ideal => Vec::new(),
            EndpointCosts::Baseline { memory, per_sm, sms, bus } => vec![
                ("bus out", bytes * bus.ps_per_byte()),
                ("memory reads", read * memory.ps_per_byte()),
                ("SMs", read * per_sm.ps_per_byte() / f64::from(sms.max(1))),
            ],
            EndpointCosts::Ace { memory, bus } => vec![
                ("bus out", bytes * bus.ps_per_byte()),
                ("memory reads", bytes * memory.ps_per_byte()),
            ],
        }
    }

    /// The busy times of servers between links and memory for bytes that enter.
    fn arriving(&self, bytes: f64) -> Served {
        match *self {
            EndpointCosts::Ideal => Vec::new(),
            EndpointCosts::Baseline { bus, .. } => vec![("bus in", bytes * bus.ps_per_byte())],
            EndpointCosts::Ace { memory, bus } => vec![
                ("bus in", bytes * bus.ps_per_byte()),
                ("memory writes", bytes * memory.ps_per_byte()),
            ],
        }
    }
}
