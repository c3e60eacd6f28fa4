//! One destination for each node, drawn once or listed.

use super::{Call, Entry, Pattern, Rule, TrafficError, below};
use crate::traffic::draw::{Stream, bits};

pub(super) const RANDOM: Entry = Entry {
    name: "random_permutation",
    argument: "SEED",
    summary: "a random permutation of destinations, drawn once",
    build: |call| {
        let drawn = shuffled(call.nodes, call.number(call.argument()?)?);
        Ok(Pattern::fixed(call.nodes, |source| drawn[source as usize]))
    },
};

pub(super) const GIVEN: Entry = Entry {
    name: "permutation",
    argument: "NODE,NODE,...",
    summary: "the destinations of all nodes in order; no two nodes share one",
    build: |call| {
        let given = call.distinct(call.argument()?)?;
        call.count("destinations", given.len(), call.nodes)?;
        Ok(Pattern::fixed(call.nodes, |source| given[source as usize]))
    },
};

pub(super) const DESTINATIONS: Entry = Entry {
    name: "destinations",
    argument: "NODE,NODE,...",
    summary: "the destinations of all nodes in order; `-` for a node that sends nothing",
    build: destinations,
};

fn destinations(call: &Call<'_>) -> Result<Rule, TrafficError> {
    let entry = |text: &str| match text.trim() {
        "-" => Ok(None),
        node => call.node(node).map(Some),
    };
    let given: Vec<_> = call.argument()?.split(',').map(entry).collect::<Result<_, _>>()?;
    call.count("destinations", given.len(), call.nodes)?;
    if given.iter().all(Option::is_none) {
        return Err(TrafficError::NoDestination { pattern: call.text.to_owned() });
    }
    Ok(Rule::Fixed(given.into()))
}

/// All nodes in an order of which each is as likely (Fisher and Yates).
fn shuffled(nodes: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..nodes).collect();
    for last in (1..nodes).rev() {
        let other = below(bits(seed, Stream::Permutation, last, 0), last + 1);
        order.swap(last as usize, other as usize);
    }
    order
}
