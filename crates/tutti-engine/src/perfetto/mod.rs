//! Native Perfetto traces of runs, for ui.perfetto.dev and `trace_processor`.
//!
//! A track per rank, and per channel if channels progress concurrently, holds steps with their ops.
//! Below it are the messages in flight from it, on as many tracks as overlap. An arrow (flow) leads
//! from each send through its message to the receive. The arguments of each slice have the exact
//! picoseconds.

mod wire;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

pub use wire::{Events, Kind, Place, Track, Value};

use wire::Flow;

/// An op of a rank. Its names are indices of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns of a timeline frame")]
pub struct Bar {
    pub rank: i64,
    pub channel: i64,
    pub step: i64,
    pub name: usize,
    pub kind: usize,
    pub start: i64,
    pub end: i64,
    pub peer: Option<i64>,
    pub bytes: Option<i64>,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns of a message frame")]
pub struct Arrow {
    pub source: i64,
    pub destination: i64,
    pub channel: i64,
    pub index: i64,
    pub bytes: i64,
    pub sent: i64,
    pub arrival: i64,
    pub received: i64,
}

/// A rank and a channel.
type Program = (i64, i64);

/// Returns the trace of a run.
///
/// # Arguments
/// `bars` are ops by rank, channel and time, `texts` the names of their kinds and steps, and `arrows`
/// the messages by the time of their sends.
#[must_use]
pub fn run_trace(bars: &[Bar], texts: &[String], arrows: &[Arrow]) -> Vec<u8> {
    let ends = Ends::of(bars, texts, arrows);
    let mut programs: BTreeMap<Program, Sides> = BTreeMap::new();
    for (index, bar) in bars.iter().enumerate() {
        let sides = programs.entry((bar.rank, bar.channel)).or_default();
        sides.bars.get_or_insert(index..index).end = index + 1;
    }
    for (index, arrow) in arrows.iter().enumerate() {
        programs.entry((arrow.source, arrow.channel)).or_default().sent.push(index);
        programs.entry((arrow.destination, arrow.channel)).or_default();
    }
    let several = bars.iter().any(|bar| bar.channel != 0);
    let mut drawing = Drawing { bars, texts, arrows, ends, events: Events::default() };
    let mut tracks: Vec<Track> = Vec::new();
    for (order, (&(rank, channel), sides)) in (0..).zip(&programs) {
        let name = if several {
            format!("rank {rank}, channel {channel}")
        } else {
            format!("rank {rank}")
        };
        let home = tracks.len() as u64 + 1;
        let order = if several { order } else { rank };
        tracks.push(Track { uuid: home, name, parent: None, order });
        drawing.program(home, (rank, channel), sides.bars.clone().unwrap_or_default());
        for (number, lane) in (0..).zip(lanes(&sides.sent, arrows)) {
            let (uuid, name) = (tracks.len() as u64 + 1, format!("messages {number}"));
            tracks.push(Track { uuid, name, parent: Some(home), order: number });
            lane.iter().for_each(|&message| drawing.message(uuid, message));
        }
    }
    drawing.events.trace(&tracks)
}

/// The ops of a rank and channel, and the messages that it sends.
#[derive(Default)]
struct Sides {
    bars: Option<std::ops::Range<usize>>,
    sent: Vec<usize>,
}

/// Assigns messages, in order of their starts, to the fewest lanes without overlap: each to the first
/// that is free.
fn lanes(sent: &[usize], arrows: &[Arrow]) -> Vec<Vec<usize>> {
    let mut lanes: Vec<Vec<usize>> = Vec::new();
    let (mut free, mut busy) = (BTreeSet::new(), BinaryHeap::new());
    for &message in sent {
        let Arrow { sent, arrival, .. } = arrows[message];
        while let Some(&Reverse((end, lane))) = busy.peek()
            && end <= sent
        {
            busy.pop();
            free.insert(lane);
        }
        let lane = free.pop_first().unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[lane].push(message);
        busy.push(Reverse((arrival, lane)));
    }
    lanes
}

/// Where the arrows of messages, numbered from 1 in the order of sending, start and end.
#[derive(Default)]
struct Ends {
    /// The arrows of ops, by the index of the op.
    flows: Vec<(usize, Flow)>,
    /// The messages whose receive takes no time, by destination, last first.
    loose: BTreeMap<Program, Vec<(i64, usize)>>,
}

impl Ends {
    fn of(bars: &[Bar], texts: &[String], arrows: &[Arrow]) -> Ends {
        let mut ends = Ends::default();
        let (mut sends, mut recvs) = (BTreeMap::new(), BTreeMap::new());
        for (index, bar) in bars.iter().enumerate() {
            let at = (bar.rank, bar.channel);
            match texts[bar.kind].as_str() {
                "send" => _ = sends.insert((at, bar.peer, bar.start), index),
                "recv" if bar.end > bar.start => _ = recvs.insert((at, bar.peer, bar.end), index),
                _ => {}
            }
        }
        for (message, arrow) in arrows.iter().enumerate() {
            let source = (arrow.source, arrow.channel);
            let destination = (arrow.destination, arrow.channel);
            let send = sends
                .remove(&(source, Some(arrow.destination), arrow.sent))
                .or_else(|| sends.get(&(source, None, arrow.sent)).copied()); // A multicast.
            ends.flows.extend(send.map(|send| (send, Flow::Through(number(message)))));
            match recvs.remove(&(destination, Some(arrow.source), arrow.received)) {
                Some(recv) => ends.flows.push((recv, Flow::End(number(message)))),
                None => {
                    ends.loose.entry(destination).or_default().push((arrow.received, message));
                }
            }
        }
        ends.flows.sort_by_key(|&(bar, _)| bar);
        ends.loose.values_mut().for_each(|loose| loose.sort_unstable_by_key(|&one| Reverse(one)));
        ends
    }

    /// The arrows of an op.
    fn flows(&self, bar: usize) -> impl Iterator<Item = Flow> + '_ {
        let first = self.flows.partition_point(|&(of, _)| of < bar);
        self.flows[first..].iter().take_while(move |&&(of, _)| of == bar).map(|&(_, flow)| flow)
    }
}

/// The number of a message.
fn number(message: usize) -> u64 {
    message as u64 + 1
}

/// A trace that is being drawn.
struct Drawing<'a> {
    bars: &'a [Bar],
    texts: &'a [String],
    arrows: &'a [Arrow],
    ends: Ends,
    events: Events,
}

impl Drawing<'_> {
    /// Adds the steps of a rank with their ops, and an instant per receive that takes no time.
    fn program(&mut self, track: u64, at: Program, range: std::ops::Range<usize>) {
        let mut loose = self.ends.loose.remove(&at).unwrap_or_default();
        let mut index = range.start;
        while index < range.end {
            let first = self.bars[index];
            let rest = &self.bars[index..range.end];
            let group = rest.iter().take_while(|bar| bar.step == first.step).count();
            let until = rest[..group].iter().map(|bar| bar.end).fold(i64::MIN, i64::max);
            self.marks_before(track, first.start, &mut loose);
            self.start_step(track, first, until);
            for op in index..index + group {
                let Bar { start, end, .. } = self.bars[op];
                self.marks_before(track, start + 1, &mut loose);
                self.start_op(track, op, first);
                self.marks_before(track, end, &mut loose);
                self.end(track, end);
            }
            self.marks_before(track, until + 1, &mut loose);
            self.end(track, until);
            index += group;
        }
        while let Some((_, message)) = loose.pop() {
            self.mark(track, message);
        }
    }

    fn start_step(&mut self, track: u64, first: Bar, until: i64) {
        let name = &self.texts[first.name];
        let place = Place { at_ps: first.start, track, kind: Kind::Start };
        let unnamed = if name.is_empty() { first.step.to_string() } else { String::new() };
        let shown = if name.is_empty() { &unnamed } else { name };
        let times = [("start_ps", first.start), ("end_ps", until)];
        let times = times.map(|(key, time)| (key, Value::Integer(time)));
        self.events.add(place, ("step", shown), of_step(first, name).into_iter().chain(times));
    }

    /// Adds the start of an op in the step of the op `first`.
    fn start_op(&mut self, track: u64, op: usize, first: Bar) {
        let Bar { kind, start, end, peer, bytes, .. } = self.bars[op];
        let kind = &self.texts[kind];
        let place = Place { at_ps: start, track, kind: Kind::Start };
        let given = [("peer", peer), ("bytes", bytes)];
        let given = given.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let times = [("start_ps", start), ("end_ps", end)];
        let rest = given.chain(times).map(|(key, value)| (key, Value::Integer(value)));
        let arguments = of_step(first, &self.texts[first.name]).into_iter().chain(rest);
        let label = label(kind, peer);
        self.events.add_with_flows(place, (kind, &label), arguments, self.ends.flows(op));
    }

    fn end(&mut self, track: u64, at_ps: i64) {
        self.events.add(Place { at_ps, track, kind: Kind::End }, ("", ""), []);
    }

    /// Adds the instants before a time.
    fn marks_before(&mut self, track: u64, time: i64, loose: &mut Vec<(i64, usize)>) {
        while let Some((_, message)) = loose.pop_if(|&mut (received, _)| received < time) {
            self.mark(track, message);
        }
    }

    /// Adds the instant of a receive that takes no time.
    fn mark(&mut self, track: u64, message: usize) {
        let Arrow { source, bytes, received, .. } = self.arrows[message];
        let place = Place { at_ps: received, track, kind: Kind::Instant };
        let arguments = [("peer", source), ("bytes", bytes), ("at_ps", received)];
        let arguments = arguments.map(|(key, value)| (key, Value::Integer(value)));
        let name = format!("recv from {source}");
        let flows = [Flow::End(number(message))];
        self.events.add_with_flows(place, ("recv", &name), arguments, flows);
    }

    /// Adds a message in flight.
    fn message(&mut self, track: u64, message: usize) {
        let arrow = self.arrows[message];
        let arguments = [
            ("source", arrow.source),
            ("destination", arrow.destination),
            ("channel", arrow.channel),
            ("index", arrow.index),
            ("bytes", arrow.bytes),
            ("sent_ps", arrow.sent),
            ("arrival_ps", arrow.arrival),
            ("received_ps", arrow.received),
        ];
        let arguments = arguments.map(|(key, value)| (key, Value::Integer(value)));
        let place = Place { at_ps: arrow.sent, track, kind: Kind::Start };
        let name = format!("to {}", arrow.destination);
        let flows = [Flow::Through(number(message))];
        self.events.add_with_flows(place, ("message", &name), arguments, flows);
        self.end(track, arrow.arrival);
    }
}

/// The arguments of a step.
fn of_step(first: Bar, name: &str) -> [(&'static str, Value<'_>); 2] {
    [("step", Value::Integer(first.step)), ("step_name", Value::Text(name))]
}

/// For example `send to 3`, `recv from 2`, `multicast` or the kind of a local op.
fn label(kind: &str, peer: Option<i64>) -> String {
    match (kind, peer) {
        ("send", None) => "multicast".to_owned(),
        (_, None) => kind.to_owned(),
        ("send", Some(peer)) => format!("send to {peer}"),
        (_, Some(peer)) => format!("{kind} from {peer}"),
    }
}
