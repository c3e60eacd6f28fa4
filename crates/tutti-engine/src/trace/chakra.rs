//! The nodes of a Chakra file as columns, in one pass.
//!
//! A file is a stream of length-prefixed messages: metadata, then nodes. Attributes and names repeat,
//! so that each distinct one is returned once, as bytes.
//!
//! The reader takes well-formed files in the encoding that writers use. It returns `None` for any
//! other one: `tutti.formats.chakra.nodes` reads those message by message, and names the fault.
//!
//! Source: `et_def.proto` of mlcommons/chakra 1.0.0.

use std::ops::Range;

use super::labels::Labels;

/// The bytes by which an attribute is skipped: tag, length, and six letters or the complete name.
const PREFIX: usize = 8;
/// The largest number of such prefixes.
const MOST_PREFIXES: usize = 1 << 16;
/// The tag of a first field with bytes.
const FIRST: u8 = 0x0A;

/// The nodes of a file. Node i has element i of each column, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes<'a> {
    /// The metadata of the file.
    pub metadata: &'a [u8],
    /// The numbers.
    pub ids: Vec<u64>,
    /// The types.
    pub types: Vec<i64>,
    /// The names, as indices into `distinct_names`.
    pub names: Vec<u32>,
    /// Recorded start times in microseconds.
    pub starts: Vec<u64>,
    /// Recorded durations in microseconds.
    pub durations: Vec<u64>,
    /// Data dependencies per node.
    pub data: Vec<i64>,
    /// The end of the dependencies of each node in `parents`, after a 0.
    pub ends: Vec<i64>,
    /// The numbers of the nodes depended on: first those of data.
    pub parents: Vec<u64>,
    /// Indices of nodes with recorded inputs, and the inputs of nodes of the metadata type.
    pub inputs: Vec<(u32, &'a [u8])>,
    /// The number of nodes with recorded inputs.
    pub tensors: u64,
    /// The node of each attribute with a known name.
    pub attribute_nodes: Vec<u32>,
    /// These attributes, as indices into `distinct_attributes`.
    pub attributes: Vec<u32>,
    /// The distinct names, which are UTF-8.
    pub distinct_names: Vec<&'a str>,
    /// The distinct attributes with known names.
    pub distinct_attributes: Vec<&'a [u8]>,
    /// The first attribute of each prefix that is skipped.
    pub dropped: Vec<&'a [u8]>,
}

/// Reads the nodes of a file.
///
/// # Arguments
///
/// - `stream`: the bytes of the file, decompressed.
/// - `known`: the names of the attributes to return.
/// - `metadata`: the type of the nodes whose inputs are returned.
///
/// Returns `None` without nodes, and for anything that this reader does not accept.
#[must_use]
pub fn read<'a>(stream: &'a [u8], known: &[String], metadata: i64) -> Option<Nodes<'a>> {
    let mut messages = Fields { stream, at: 0, end: stream.len() };
    let mut reader = Reader {
        stream,
        known: known.iter().map(String::as_bytes).collect(),
        prefixes: known.iter().map(|name| prefix(name.as_bytes())).collect(),
        metadata,
        nodes: Nodes { metadata: &stream[messages.bytes()?], ends: vec![0], ..Nodes::default() },
        names: Distinct::new(stream),
        attributes: Distinct::new(stream),
        skipped: Distinct::new(stream),
        control: Vec::new(),
    };
    while messages.at < messages.end {
        let node = messages.bytes()?;
        reader.node(node)?;
    }
    reader.finished()
}

/// Reads nodes into columns.
struct Reader<'a, 'k> {
    stream: &'a [u8],
    known: Vec<&'k [u8]>,
    prefixes: Vec<Vec<u8>>,
    metadata: i64,
    nodes: Nodes<'a>,
    names: Distinct<'a>,
    attributes: Distinct<'a>,
    /// The prefixes of other attributes.
    skipped: Distinct<'a>,
    /// The control dependencies of the current node, which may precede those of data.
    control: Vec<u64>,
}

impl<'a> Reader<'a, '_> {
    /// Reads a node. Its attributes follow the other fields, as an error names the first fault.
    fn node(&mut self, place: Range<usize>) -> Option<()> {
        let index = u32::try_from(self.nodes.ids.len()).ok()?;
        let before = self.nodes.parents.len();
        let (mut id, mut start, mut duration, mut kind) = (0, 0, 0, 0);
        let (mut name, mut inputs) = (0..0, 0..0);
        let mut fields = Fields { stream: self.stream, at: place.start, end: place.end };
        self.control.clear();
        while fields.at < fields.end {
            match fields.key()? {
                (1, VARINT) => id = fields.varint()?,
                (2, BYTES) => name = fields.bytes()?,
                (3, VARINT) => kind = int32(fields.varint()?),
                (4, VARINT) => self.control.push(fields.varint()?),
                (4, BYTES) => fields.packed(&mut self.control)?,
                (5, VARINT) => self.nodes.parents.push(fields.varint()?),
                (5, BYTES) => fields.packed(&mut self.nodes.parents)?,
                (6, VARINT) => start = fields.varint()?,
                (7, VARINT) => duration = fields.varint()?,
                (8, BYTES) => inputs = fields.bytes()?,
                (10, BYTES) => {
                    let attribute = fields.bytes()?;
                    self.attribute(index, attribute)?;
                }
                // A field of another type is not one of the schema.
                (1..=8 | 10, _) => return None,
                (_, wire_type) => fields.skip(wire_type)?,
            }
        }
        let nodes = &mut self.nodes;
        nodes.ids.push(id);
        nodes.types.push(kind);
        nodes.names.push(self.names.index(name)?);
        nodes.starts.push(start);
        nodes.durations.push(duration);
        nodes.data.push((nodes.parents.len() - before) as i64);
        nodes.parents.append(&mut self.control);
        nodes.ends.push(nodes.parents.len() as i64);
        if !inputs.is_empty() {
            nodes.tensors += 1;
            if kind == self.metadata {
                nodes.inputs.push((index, &self.stream[inputs]));
            }
        }
        Some(())
    }

    /// Adds an attribute with a known name; skips others by their first bytes.
    fn attribute(&mut self, node: u32, place: Range<usize>) -> Option<()> {
        let raw = &self.stream[place.clone()];
        let first = place.start..place.end.min(place.start + PREFIX);
        if self.skipped.find(&self.stream[first.clone()]).is_some() {
            return Some(());
        }
        if let Some(known) = self.attributes.find(raw) {
            self.nodes.attribute_nodes.push(node);
            self.nodes.attributes.push(known);
            return Some(());
        }
        let (&[FIRST, length], rest) = raw.split_first_chunk()? else { return None };
        let name = rest.get(..usize::from(length))?;
        if length > 0x7F {
            return None;
        }
        if self.known.contains(&name) {
            self.nodes.attribute_nodes.push(node);
            self.nodes.attributes.push(self.attributes.index(place)?);
            return Some(());
        }
        if self.prefixes.contains(&prefix(name)) || self.skipped.places.len() == MOST_PREFIXES {
            return None;
        }
        self.nodes.dropped.push(raw);
        self.skipped.index(first).map(|_| ())
    }

    fn finished(self) -> Option<Nodes<'a>> {
        let mut nodes = self.nodes;
        let names = self.names.texts().map(std::str::from_utf8);
        nodes.distinct_names = names.collect::<Result<_, _>>().ok()?;
        nodes.distinct_attributes = self.attributes.texts().collect();
        (!nodes.ids.is_empty()).then_some(nodes)
    }
}

/// The first bytes of attributes of a name, which writers place first.
fn prefix(name: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap_or(0x7F).min(0x7F);
    [&[FIRST, length], &name[..name.len().min(PREFIX - 2)]].concat()
}

/// Distinct parts of a stream, in the order of their first occurrence.
struct Distinct<'a> {
    stream: &'a [u8],
    table: Labels,
    places: Vec<Range<usize>>,
}

impl<'a> Distinct<'a> {
    fn new(stream: &'a [u8]) -> Distinct<'a> {
        Distinct { stream, table: Labels::empty(), places: Vec::new() }
    }

    fn find(&self, part: &[u8]) -> Option<u32> {
        self.table.find(self.stream, part)
    }

    /// The index of a part, which is added if it is new.
    fn index(&mut self, place: Range<usize>) -> Option<u32> {
        if let Some(found) = self.find(&self.stream[place.clone()]) {
            return Some(found);
        }
        let index = u32::try_from(self.places.len()).ok()?;
        self.table.add(self.stream, place.clone(), index);
        self.places.push(place);
        Some(index)
    }

    fn texts(&self) -> impl Iterator<Item = &'a [u8]> {
        self.places.iter().map(|place| &self.stream[place.clone()])
    }
}

const VARINT: u8 = 0;
const EIGHT_BYTES: u8 = 1;
const BYTES: u8 = 2;
const FOUR_BYTES: u8 = 5;

/// The low 32 bits, with sign.
fn int32(value: u64) -> i64 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    i32::from_le_bytes([a, b, c, d]).into()
}

/// The fields of a protobuf message.
struct Fields<'a> {
    stream: &'a [u8],
    at: usize,
    end: usize,
}

impl Fields<'_> {
    /// The number and the wire type of a field.
    fn key(&mut self) -> Option<(u32, u8)> {
        let key = u32::try_from(self.varint()?).ok()?;
        let number = key >> 3;
        (number > 0).then_some((number, (key & 7) as u8))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if self.at == self.end {
                return None;
            }
            let byte = self.stream[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                // The tenth byte has one bit.
                return (shift < 63 || byte < 2).then_some(value);
            }
        }
        None
    }

    /// The place of bytes with their length.
    fn bytes(&mut self) -> Option<Range<usize>> {
        let length = usize::try_from(self.varint()?).ok()?;
        let start = self.at;
        self.at = start.checked_add(length).filter(|&at| at <= self.end)?;
        Some(start..self.at)
    }

    fn packed(&mut self, into: &mut Vec<u64>) -> Option<()> {
        let Range { start, end } = self.bytes()?;
        let mut values = Fields { stream: self.stream, at: start, end };
        while values.at < values.end {
            into.push(values.varint()?);
        }
        Some(())
    }

    fn skip(&mut self, wire_type: u8) -> Option<()> {
        match wire_type {
            VARINT => self.varint().map(|_| ()),
            BYTES => self.bytes().map(|_| ()),
            EIGHT_BYTES | FOUR_BYTES => {
                self.at += if wire_type == EIGHT_BYTES { 8 } else { 4 };
                (self.at <= self.end).then_some(())
            }
            _ => None,
        }
    }
}
