//! What a fabric carries: packets to one node, to many, and responses that are combined on their
//! path.

/// A set of nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeSet {
    /// The nodes below 64, a bit each: the only ones of most meshes, so their sets need no
    /// allocation.
    low: u64,
    /// The other nodes, 64 in each word.
    high: Box<[u64]>,
}

impl NodeSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> NodeSet {
        NodeSet::default()
    }

    /// All nodes below `nodes` but one.
    #[must_use]
    pub fn all_but(nodes: u32, node: u32) -> NodeSet {
        let end = if node + 1 == nodes { node } else { nodes };
        let word = |first: u32| match end.saturating_sub(first) {
            rest @ 0..64 => (1 << rest) - 1,
            _ => u64::MAX,
        };
        let high = (1..end.div_ceil(64)).map(|index| word(64 * index)).collect();
        let mut set = NodeSet { low: word(0), high };
        set.remove(node);
        set
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.low).chain(self.high.iter().copied())
    }

    /// The word of a node; grows the set if necessary.
    fn word_mut(&mut self, node: u32) -> &mut u64 {
        let Some(word) = (node as usize / 64).checked_sub(1) else { return &mut self.low };
        if self.high.len() <= word {
            let mut longer = std::mem::take(&mut self.high).into_vec();
            longer.resize(word + 1, 0);
            self.high = longer.into_boxed_slice();
        }
        &mut self.high[word]
    }

    /// Adds a node; returns whether it was new.
    pub fn insert(&mut self, node: u32) -> bool {
        let (word, bit) = (self.word_mut(node), 1 << (node % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Removes a node; returns whether it was in the set.
    pub fn remove(&mut self, node: u32) -> bool {
        let was = self.contains(node);
        if was {
            *self.word_mut(node) &= !(1 << (node % 64));
        }
        was
    }

    /// Whether a node is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, node: u32) -> bool {
        if node < 64 {
            return self.low >> node & 1 == 1;
        }
        let word = self.high.get(node as usize / 64 - 1);
        word.is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// The number of nodes.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.words().map(u64::count_ones).sum()
    }

    /// The highest node.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        let words = (0..).zip(self.words()).filter(|&(_, word)| word != 0);
        words.last().map(|(index, word): (u32, u64)| 64 * index + word.ilog2())
    }

    /// Whether the set is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|&word| word == 0)
    }

    /// The nodes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(self.words()).flat_map(|(index, word)| {
            let next = |&bits: &u64| Some(bits & (bits - 1)).filter(|&bits| bits != 0);
            std::iter::successors(Some(word).filter(|&bits| bits != 0), next)
                .map(move |bits| 64 * index + bits.trailing_zeros())
        })
    }
}

impl FromIterator<u32> for NodeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(nodes: I) -> NodeSet {
        let mut set = NodeSet::new();
        nodes.into_iter().for_each(|node| _ = set.insert(node));
        set
    }
}

/// The id of a reduction in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowId(pub u32);

/// The operation that combines the values of responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Combine {
    /// Responses are counted and values ignored. The only operation that needs no reducer.
    #[default]
    Count,
    /// Their sum, modulo 2^64.
    Sum,
    /// Bitwise or.
    Or,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
}

impl Combine {
    /// Combines two values.
    #[must_use]
    pub fn of(self, one: u64, other: u64) -> u64 {
        match self {
            Combine::Count => 0,
            Combine::Sum => one.wrapping_add(other),
            Combine::Or => one | other,
            Combine::Min => one.min(other),
            Combine::Max => one.max(other),
        }
    }
}

/// A reduction: each member sends one response ([`Cast::Response`]) to the destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The cycle from which its latency counts.
    pub created: u64,
    /// The node that receives the responses.
    pub destination: u32,
    /// The nodes that respond, without the destination.
    pub members: NodeSet,
    /// The message class of the responses.
    pub class: u8,
    /// The operation on the values.
    pub combine: Combine,
    /// Whether its table entry is held after the last response has arrived until
    /// [`super::Fabric::release`], as when the root of the broadcast is not the destination.
    pub held: bool,
    /// Returned with each arrival.
    pub tag: u64,
}

/// The destination of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cast {
    /// To one node; also to the sending node, through its ejection port.
    One(u32),
    /// To each of these nodes.
    Many(NodeSet),
    /// To the destination of a flow, as the sender's response with a value.
    Response(FlowId, u64),
}

/// A packet to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The cycle from which its latency counts: the current one, or an earlier one.
    pub created: u64,
    /// The node that sends it.
    pub source: u32,
    /// Its destination.
    pub cast: Cast,
    /// Its message class.
    pub class: u8,
    /// Its length; one for multicasts and responses.
    pub flits: u32,
    /// Returned with its arrival.
    pub tag: u64,
}

/// The arrival of a packet, or of responses of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Arrival {
    /// The cycle in which its last flit won the ejection port, and [`super::Settings::eject_cost`].
    pub arrived: u64,
    /// The node that it arrived at.
    pub node: u32,
    /// The node that sent it; of combined responses, one of their senders.
    pub source: u32,
    /// The cycle from which its latency counts: of its message, or of its flow.
    pub created: u64,
    /// Its message class.
    pub class: u8,
    /// The tag of its message, or of its flow.
    pub tag: u64,
    /// For responses, their number and value.
    pub responses: Option<Responses>,
}

/// Responses of a flow that have arrived together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Responses {
    /// Their flow.
    pub flow: FlowId,
    /// How many were combined into this one.
    pub count: u32,
    /// Their combined value.
    pub value: u64,
    /// Whether they complete the flow.
    pub last: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_one_equals_inserting_each() {
        for nodes in [1, 2, 16, 63, 64, 65, 66, 127, 128, 129, 200] {
            for node in 0..nodes {
                let one_by_one: NodeSet = (0..nodes).filter(|&other| other != node).collect();
                let all = NodeSet::all_but(nodes, node);
                assert_eq!(all, one_by_one, "{nodes} but {node}");
                assert_eq!(all.last(), one_by_one.iter().last());
            }
        }
        assert_eq!(NodeSet::new().last(), None);
    }
}
