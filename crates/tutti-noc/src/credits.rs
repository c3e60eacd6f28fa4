//! Credit round trips, and the link throughput that they permit.

use tutti_units::Time;

use super::{Channel, ChannelParameters, End, Settings, Wiring};

/// Cycles from when a flit leaves a buffer to when the next flit can leave for the same downstream
/// slot, if both routers grant at once. As many flits of buffer space keep a channel of a flit per
/// cycle busy.
///
/// The flit crosses switch and channel, leaves its slot when it has the switch there, the credit
/// crosses the channel back, counts, and the next flit requests the switch. Between clocks, both
/// also pass a synchroniser, and wait for an edge of its clock: up to a cycle, not included.
#[must_use]
pub fn round_trip(settings: &Settings, channel: &Channel, cycle: Time) -> u64 {
    let [from, to] = settings.clocks_of(channel, cycle).map(|clock| clock.period.ps());
    let [there, back] = settings.synchronisers(channel, cycle);
    let ChannelParameters { latency, credit_latency, .. } = channel.parameters;
    let wires = cycle.ps() * (u64::from(latency) + u64::from(credit_latency));
    let here = settings.traversal_delay + back + settings.credit_delay + settings.switch_delay;
    let time = from * u64::from(here) + to * u64::from(there + settings.switch_delay) + wires;
    time.div_ceil(cycle.ps())
}

/// A link that cannot reach full throughput, since its downstream buffers are too small.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Throttled {
    /// The source of the link.
    pub from: String,
    /// The destination.
    pub to: String,
    /// Cycles of a credit round trip.
    pub round_trip: u64,
    /// Flits of buffer space that a class has there.
    pub slots: u64,
    /// Flits that a VC holds there.
    pub depth: u64,
    /// Flits that fill the link in a round trip.
    pub needs: u64,
    /// Flits per VC of that class with which it could be busy.
    pub buffer: u64,
    /// How many links are throttled.
    pub links: usize,
}

/// The link between routers that the buffers of a class throttle most, if they do: those of all its
/// VCs, or of one, where packets are longer than that.
#[must_use]
pub fn throttled(wiring: &Wiring, settings: &Settings, longest: u32) -> Option<Throttled> {
    let cycle = wiring.cycle().ps();
    let links = wiring.channels().iter().filter_map(|channel| {
        let (End::Router { .. }, End::Router { .. }) = (channel.from, channel.to) else {
            return None;
        };
        let round_trip = round_trip(settings, channel, wiring.cycle());
        let (vcs, slots) = slots_behind(settings, channel, longest);
        // A VC sends a flit each time that it has requested the switch.
        let flit_time = settings.flit_time(channel, wiring.cycle()).ps();
        let [from, _] = settings.clocks_of(channel, wiring.cycle());
        let each = from.period.ps() * u64::from(settings.switch_delay);
        let flit_time = if vcs == 1 { flit_time.max(each) } else { flit_time };
        let needs = (round_trip * cycle).div_ceil(flit_time);
        (needs > slots).then_some((needs, slots, vcs, round_trip, channel))
    });
    let links: Vec<_> = links.collect();
    // The first of those with the least share of the slots that they need.
    let share = |&&(needs, slots, ..): &&(u64, u64, u64, u64, &Channel)| (needs, slots);
    let scarcer = |one: (u64, u64), other: (u64, u64)| one.0 * other.1 > other.0 * one.1;
    let &(needs, slots, vcs, round_trip, channel) = links
        .iter()
        .reduce(|most, link| if scarcer(share(&link), share(&most)) { link } else { most })?;
    let (from, to) = (wiring.name(channel.from), wiring.name(channel.to));
    let buffer = needs.div_ceil(vcs);
    let depth = slots / vcs;
    Some(Throttled { from, to, round_trip, slots, depth, needs, buffer, links: links.len() })
}

/// The VCs behind a channel that the packets of a class can use at once, of the class with the
/// fewest, and their buffer space.
fn slots_behind(settings: &Settings, channel: &Channel, longest: u32) -> (u64, u64) {
    let buffers = settings.buffers_behind(channel);
    let there = settings.classes.iter().map(|&class| buffers.count(class));
    let fewest = there.min().unwrap_or(1);
    let vcs = u64::from(if longest > buffers.buffer { 1 } else { fewest });
    (vcs, vcs * u64::from(buffers.buffer))
}
