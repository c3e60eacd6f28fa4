//! The events of each flit under synthetic traffic.

use std::collections::VecDeque;

use super::run::{check, give};
use super::traffic::{Order, generators};
use super::{Load, Phases};
use crate::FlitError;
use crate::smart::fabric::Fabric;
use crate::smart::mesh::Mesh;
use crate::smart::message::Arrival;
use crate::smart::record::Event;
use crate::smart::settings::{FanOut, Settings};

/// A packet that was sent; [`Event::packet`] is its place among all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// In which cycle.
    pub cycle: u64,
    /// Of which load.
    pub load: u32,
    /// Of which message, counted from 0: those of a reduction are of one, and unicasts that a
    /// multicast was built from.
    pub message: u32,
    /// By which node.
    pub source: u32,
    /// To which nodes.
    pub to: Vec<u32>,
}

/// What happened on a mesh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watched {
    /// All of it, in order.
    pub events: Vec<Event>,
    /// The packets.
    pub sent: Vec<Sent>,
}

/// Messages of a load that wait until fewer are in flight, with their numbers, and how many were
/// sent, of which reductions that are over do not count.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Order, u32)>,
    in_flight: u32,
}

/// Runs synthetic traffic on an empty mesh for so many cycles.
///
/// # Errors
/// As [`check`].
pub fn watch(
    settings: &Settings,
    loads: &[Load],
    cycles: u64,
    seed: u64,
) -> Result<Watched, FlitError> {
    check(settings, loads, &Phases { warmup: 0, measure: cycles, drain: 0 })?;
    let mut mesh = Mesh::new(settings)?;
    mesh.record(true);
    let mut generators = generators(settings, loads, seed);
    let mut sent = Vec::new();
    let mut messages = 0;
    let mut arrivals: Vec<Arrival> = Vec::new();
    let mut queues: Vec<Queue> = loads.iter().map(|_| Queue::default()).collect();
    for cycle in 0..cycles {
        for (load, (generator, queue)) in (0..).zip(generators.iter_mut().zip(&mut queues)) {
            generator.take(cycle, |order| {
                queue.waiting.push_back((order, messages));
                messages += 1;
            });
            while generator.load.outstanding.is_none_or(|most| queue.in_flight < most) {
                let Some((order, message)) = queue.waiting.pop_front() else { break };
                queue.in_flight += 1;
                let packet = |source, to| Sent { cycle, load, message, source, to };
                note(&order, settings, packet, &mut sent);
                let tag = u64::from(load);
                give(&mut mesh, order, generator.load.class, tag, settings.nodes())?;
            }
        }
        mesh.step(&mut arrivals);
        arrivals.drain(..).for_each(|arrival| complete(&arrival, &mut queues));
        if mesh.stalled_since().is_some() {
            break;
        }
    }
    Ok(Watched { events: mesh.take_record(), sent })
}

/// Counts a message as no longer in flight if its last response arrived.
fn complete(arrival: &Arrival, queues: &mut [Queue]) {
    let ends = arrival.responses.is_some_and(|responses| responses.last);
    let load = usize::try_from(arrival.tag).unwrap_or(usize::MAX);
    if let Some(queue) = queues.get_mut(load).filter(|_| ends) {
        queue.in_flight -= 1;
    }
}

/// Notes the packets that an order is built from, in the order in which the mesh counts them.
fn note(
    order: &Order,
    settings: &Settings,
    packet: impl Fn(u32, Vec<u32>) -> Sent,
    sent: &mut Vec<Sent>,
) {
    match order {
        &Order::Unicast { source, destination, .. } => sent.push(packet(source, vec![destination])),
        Order::Multicast { source, members } if settings.fan_out == FanOut::Unicasts => {
            sent.extend(members.iter().map(|node| packet(*source, vec![node])));
        }
        Order::Multicast { source, members } => {
            sent.push(packet(*source, members.iter().collect()));
        }
        &Order::Reduction { destination } => {
            let others = (0..settings.nodes()).filter(|&node| node != destination);
            sent.extend(others.map(|node| packet(node, vec![destination])));
        }
    }
}
