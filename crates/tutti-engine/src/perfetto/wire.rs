//! Events on tracks, in the wire format of native Perfetto traces (TrackEvent protobuf).
//!
//! The clock of a trace counts nanoseconds: timestamps are rounded down, which preserves order and
//! nesting. Fields follow each other in the order of their numbers, as protobuf's encoders write
//! them.

/// All packets belong to one writer sequence.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u64 = 1;
/// `TrackDescriptor.ChildTracksOrdering`: by `sibling_order_rank`.
const EXPLICIT: u64 = 3;

const VARINT: u64 = 0;
const FIXED: u64 = 1;
const BYTES: u64 = 2;

/// A track: its parent, if any, and its position among the children of the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its number, from 1.
    pub uuid: u64,
    /// Its name.
    pub name: String,
    /// The number of its parent.
    pub parent: Option<u64>,
    /// Its position among the children of its parent.
    pub order: i64,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A slice starts.
    Start = 1,
    /// The last slice that started on the track ends.
    End = 2,
    /// An event without duration.
    Instant = 3,
}

/// The value of an argument of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An integer.
    Integer(i64),
    /// A text.
    Text(&'a str),
}

/// An arrow between events, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// It starts at an event, or continues.
    Through(u64),
    /// It ends at an event.
    End(u64),
}

/// Where an event is, and its type.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The time in picoseconds.
    pub at_ps: i64,
    /// The track.
    pub track: u64,
    /// The type.
    pub kind: Kind,
}

/// Encoded events.
#[derive(Default)]
pub struct Events {
    /// The time of each event, and where its packet ends.
    ends: Vec<(i64, usize)>,
    packets: Vec<u8>,
    /// Working memory: the event that is being encoded, and one of its arguments.
    body: Vec<u8>,
    argument: Vec<u8>,
}

impl Events {
    /// Adds an event with its category and name, if not empty, and its arguments.
    pub fn add<'a>(
        &mut self,
        place: Place,
        names: (&str, &str),
        arguments: impl IntoIterator<Item = (&'a str, Value<'a>)>,
    ) {
        self.add_with_flows(place, names, arguments, []);
    }

    /// Adds an event at which arrows start or end.
    pub(super) fn add_with_flows<'a>(
        &mut self,
        place: Place,
        (category, name): (&str, &str),
        arguments: impl IntoIterator<Item = (&'a str, Value<'a>)>,
        flows: impl IntoIterator<Item = Flow>,
    ) {
        self.body.clear();
        for (key, value) in arguments {
            self.argument.clear();
            match value {
                Value::Integer(value) => number(&mut self.argument, 4, value.cast_unsigned()),
                Value::Text(text) => bytes(&mut self.argument, 6, text.as_bytes()),
            }
            bytes(&mut self.argument, 10, key.as_bytes());
            bytes(&mut self.body, 4, &self.argument);
        }
        number(&mut self.body, 9, place.kind as u64);
        number(&mut self.body, 11, place.track);
        for (field, text) in [(22, category), (23, name)] {
            if !text.is_empty() {
                bytes(&mut self.body, field, text.as_bytes());
            }
        }
        for flow in flows {
            let (field, of) = match flow {
                Flow::Through(of) => (47, of),
                Flow::End(of) => (48, of),
            };
            key(&mut self.body, field, FIXED);
            self.body.extend_from_slice(&of.to_le_bytes());
        }
        self.pack(place.at_ps);
    }

    /// Adds the packet of the encoded event.
    fn pack(&mut self, at_ps: i64) {
        self.argument.clear();
        let head = &mut self.argument;
        number(head, 8, at_ps.div_euclid(1000).cast_unsigned());
        number(head, 10, SEQUENCE);
        key(head, 11, BYTES);
        varint(head, self.body.len() as u64);
        key(&mut self.packets, 1, BYTES);
        varint(&mut self.packets, (self.argument.len() + self.body.len()) as u64);
        self.packets.extend_from_slice(&self.argument);
        self.packets.extend_from_slice(&self.body);
        self.ends.push((at_ps, self.packets.len()));
    }

    /// Returns a trace with these tracks, parents before their children, and the events in order of
    /// time; those of equal times in the order in which they were added.
    #[must_use]
    pub fn trace(&self, tracks: &[Track]) -> Vec<u8> {
        let mut trace = Vec::with_capacity(self.packets.len() + 64 * tracks.len());
        for (index, track) in tracks.iter().enumerate() {
            describe(track, index == 0, &mut trace);
        }
        let mut start = 0;
        let mut ordered: Vec<_> = self
            .ends
            .iter()
            .map(|&(at, end)| (at, std::mem::replace(&mut start, end), end))
            .collect();
        ordered.sort_by_key(|&(at, ..)| at);
        for (_, start, end) in ordered {
            trace.extend_from_slice(&self.packets[start..end]);
        }
        trace
    }
}

/// Encodes a `TrackDescriptor`; the first packet clears the state of the sequence.
fn describe(track: &Track, is_first: bool, out: &mut Vec<u8>) {
    let (mut fields, mut packet) = (Vec::new(), Vec::new());
    number(&mut fields, 1, track.uuid);
    bytes(&mut fields, 2, track.name.as_bytes());
    if let Some(parent) = track.parent {
        number(&mut fields, 5, parent);
    }
    number(&mut fields, 11, EXPLICIT);
    number(&mut fields, 12, track.order.cast_unsigned());
    number(&mut packet, 10, SEQUENCE);
    if is_first {
        number(&mut packet, 13, CLEARED);
    }
    bytes(&mut packet, 60, &fields);
    bytes(out, 1, &packet);
}

fn key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    varint(out, field << 3 | wire_type);
}

/// Negative numbers have the 64 bits of their two's complement.
fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    key(out, field, VARINT);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(out, field, BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push((value & 127) as u8 | 128);
        value >>= 7;
    }
    out.push((value & 127) as u8);
}
