//! From an empty fabric to a measurement.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use super::tally::Tally;
use super::traffic::{Generator, Order, generators};
use super::{Kind, Load, Measurement, Phases};
use crate::FlitError;
use crate::measure::check_pattern;
use crate::measure::phases::{self, Measurable, Verdict};
use crate::measure::window::Acceptance;
use crate::smart::counts::Counts;
use crate::smart::fabric::Fabric;
use crate::smart::message::{Arrival, Cast, Combine, Flow, Message, NodeSet};
use crate::smart::settings::Settings;

/// Refuses loads that a mesh cannot have, and plans that measure nothing.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(settings: &Settings, loads: &[Load], phases: &Phases) -> Result<(), FlitError> {
    let Phases { warmup, measure, drain } = *phases;
    if measure == 0 || warmup.max(measure).max(drain) > LONGEST {
        let expected = format!("a cycle or more of `measure`, and {LONGEST} at most of each part");
        return Err(FlitError::OutOfRange { what: "measure", value: measure, expected });
    }
    if loads.is_empty() {
        let problem = "the list is empty; expected one load or more".to_owned();
        return Err(FlitError::Clash { what: "loads", problem });
    }
    for load in loads {
        let Some(class) = settings.classes.get(usize::from(load.class)) else {
            let classes = settings.classes.len();
            let problem = format!("there are {classes} classes, 0 to {}", classes - 1);
            return Err(FlitError::BadPacket { class: load.class, problem });
        };
        check_outstanding(load)?;
        match &load.kind {
            Kind::Unicast { pattern, size } => {
                check_pattern(pattern, settings.nodes())?;
                let (packet, buffer) = (size.largest(), class.depth);
                if packet > buffer {
                    return Err(FlitError::BufferSmallerThanPacket { buffer, packet });
                }
            }
            Kind::Broadcast { .. } | Kind::Multicast { .. } if !class.multicasts => {
                let problem = "it takes no multicasts".to_owned();
                return Err(FlitError::BadPacket { class: load.class, problem });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Only reductions can be limited in number.
fn check_outstanding(load: &Load) -> Result<(), FlitError> {
    match (&load.kind, load.outstanding) {
        (_, None) | (Kind::Reduction { .. }, Some(1..)) => Ok(()),
        (Kind::Reduction { .. }, Some(value)) => {
            let (what, value) = ("outstanding", u64::from(value));
            Err(FlitError::OutOfRange { what, value, expected: "1 or more".to_owned() })
        }
        _ => {
            let problem = "only reductions have a limit; expected none".to_owned();
            Err(FlitError::Clash { what: "outstanding", problem })
        }
    }
}

/// Runs synthetic traffic on an empty fabric of these settings, until stopped.
///
/// # Errors
/// As [`check`], and when it was stopped.
pub fn measure(
    settings: &Settings,
    fabric: &mut dyn Fabric,
    loads: &[Load],
    phases: &Phases,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Measurement, FlitError> {
    check(settings, loads, phases)?;
    let mut run = MeshRun {
        fabric,
        phases: *phases,
        generators: generators(settings, loads, seed),
        tallies: loads.iter().map(|_| Tally::new(*phases)).collect(),
        waiting: loads.iter().map(|_| VecDeque::new()).collect(),
        arrivals: Vec::new(),
        counts: Counts::default(),
        nodes: settings.nodes(),
        stop,
    };
    let verdict = phases::run(&mut run, phases)?;
    Ok(run.report(verdict))
}

/// The most cycles of a phase.
const LONGEST: u64 = 1 << 40;

struct MeshRun<'a> {
    fabric: &'a mut dyn Fabric,
    phases: Phases,
    generators: Vec<Generator>,
    tallies: Vec<Tally>,
    /// By load: messages that wait for others to end, with their tags.
    waiting: Vec<VecDeque<(Order, u64)>>,
    arrivals: Vec<Arrival>,
    /// Events of the window.
    counts: Counts,
    nodes: u32,
    stop: &'a AtomicBool,
}

impl Measurable for MeshRun<'_> {
    const DRAINS_OVERLOADED: bool = false;

    fn advance(&mut self, end: u64) -> Result<bool, FlitError> {
        self.until(end, false)
    }

    fn advance_window(&mut self, end: u64, deadlocked: bool) -> Result<bool, FlitError> {
        let before = *self.fabric.counts();
        self.tallies.iter_mut().for_each(Tally::start);
        let deadlocked = deadlocked || self.advance(end)?;
        self.counts = self.fabric.counts().since(&before);
        Ok(deadlocked)
    }

    fn acceptance(&self) -> Acceptance {
        let each = self.tallies.iter().map(|tally| tally.acceptance(self.nodes));
        each.fold(Acceptance::Accepted, Acceptance::and)
    }

    fn has_drained(&mut self) -> bool {
        self.has_all()
    }

    fn drain(&mut self, end: u64) -> Result<bool, FlitError> {
        self.until(end, true)
    }
}

impl MeshRun<'_> {
    fn report(self, verdict: Verdict) -> Measurement {
        Measurement {
            ending: verdict.ending,
            long_enough: verdict.long_enough,
            cycles: self.fabric.now(),
            loads: self.tallies.iter().map(Tally::measured).collect(),
            counts: self.counts,
            routers: self.nodes,
        }
    }

    fn has_all(&self) -> bool {
        self.tallies.iter().all(|tally| tally.window.missing == 0)
    }

    /// Advances to a cycle, or until all messages of the window have ended if `drains`; whether the
    /// fabric deadlocked.
    fn until(&mut self, end: u64, drains: bool) -> Result<bool, FlitError> {
        while self.fabric.now() < end && !(drains && self.has_all()) {
            let now = self.fabric.now();
            if self.stop.load(Ordering::Relaxed) {
                return Err(FlitError::Stopped);
            }
            let next = self.generators.iter().map(Generator::next).min().unwrap_or(end).min(end);
            let none_waits = self.waiting.iter().all(VecDeque::is_empty);
            if next > now && self.fabric.is_empty() && none_waits {
                self.fabric.skip_to(next);
                continue;
            }
            self.send(now)?;
            self.fabric.step(&mut self.arrivals);
            self.record_arrivals();
            if self.phases.in_window(now).is_some() {
                for (tally, waiting) in self.tallies.iter_mut().zip(&self.waiting) {
                    tally.pass(waiting.len() as u64);
                }
            }
            if self.fabric.stalled_since().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Creates the messages of a cycle, and sends each message that need not wait.
    fn send(&mut self, now: u64) -> Result<(), FlitError> {
        let MeshRun { fabric, generators, tallies, waiting, nodes, .. } = self;
        let loads = generators.iter_mut().zip(tallies).zip(waiting);
        for (index, ((generator, tally), waiting)) in (0..).zip(loads) {
            let (class, outstanding) = (generator.load.class, generator.load.outstanding);
            generator.take(now, |order| {
                let place = tally.begin(now, order.parts(*nodes));
                waiting.push_back((order, index << 32 | u64::from(place)));
            });
            let most = outstanding.map_or(u64::MAX, u64::from);
            while tally.active - (waiting.len() as u64) < most {
                let Some((order, tag)) = waiting.pop_front() else { break };
                give(&mut **fabric, order, class, tag, *nodes)?;
            }
        }
        Ok(())
    }

    fn record_arrivals(&mut self) {
        for arrival in self.arrivals.drain(..) {
            let [load, place] = [arrival.tag >> 32, arrival.tag & u64::from(u32::MAX)];
            let (load, place) = (usize::try_from(load), u32::try_from(place));
            let (Ok(load), Ok(place)) = (load, place) else { continue };
            let parts = match (&self.generators[load].load.kind, arrival.responses) {
                (_, Some(responses)) => Some(u64::from(responses.count)),
                (Kind::Unicast { .. }, None) => None,
                (_, None) => Some(1),
            };
            self.tallies[load].arrive(place, arrival.arrived, parts);
        }
    }
}

impl Order {
    /// Flits of a unicast, destinations of a multicast, responses of a reduction.
    fn parts(&self, nodes: u32) -> u64 {
        u64::from(match self {
            Order::Unicast { flits, .. } => *flits,
            Order::Multicast { members, .. } => members.len(),
            Order::Reduction { .. } => nodes - 1,
        })
    }
}

/// Sends a message.
pub(super) fn give(
    fabric: &mut dyn Fabric,
    order: Order,
    class: u8,
    tag: u64,
    nodes: u32,
) -> Result<(), FlitError> {
    let created = fabric.now();
    let packet = |source, cast, flits| Message { created, source, cast, class, flits, tag };
    match order {
        Order::Unicast { source, destination, flits } => {
            fabric.send(packet(source, Cast::One(destination), flits))
        }
        Order::Multicast { source, members } => fabric.send(packet(source, Cast::Many(members), 1)),
        Order::Reduction { destination } => {
            let members = NodeSet::all_but(nodes, destination);
            let combine = Combine::Count;
            let flow = fabric.open(Flow {
                created,
                destination,
                members: members.clone(),
                class,
                combine,
                held: false,
                tag,
            })?;
            members
                .iter()
                .try_for_each(|node| fabric.send(packet(node, Cast::Response(flow, 0), 1)))
        }
    }
}
