//! A few nodes that are named send or receive.

use super::{Call, Entry, Rule, TrafficError, Weighted};

pub(super) const HOTSPOT: Entry = Entry {
    name: "hotspot",
    argument: "NODE,.../WEIGHT,...",
    summary: "one of the listed nodes, with probability proportional to its weight; equal without weights",
    build: hotspot,
};

pub(super) const ONE_TO_MANY: Entry = Entry {
    name: "one_to_many",
    argument: "NODE/NODE,...",
    summary: "one node sends, to any of those named, or to any other where none are named",
    build: one_to_many,
};

pub(super) const MANY_TO_ONE: Entry = Entry {
    name: "many_to_one",
    argument: "NODE,.../NODE",
    summary: "the nodes named send to one; `many_to_one:NODE`: all others send to it",
    build: many_to_one,
};

pub(super) const MATRIX: Entry = Entry {
    name: "matrix",
    argument: "WEIGHT,...;WEIGHT,...;...",
    summary: "a row for each source: any node, with probability proportional to its weight there; a node \
              with a row of zeros sends nothing",
    build: matrix,
};

fn hotspot(call: &Call<'_>) -> Result<Rule, TrafficError> {
    let argument = call.argument()?;
    let (nodes, weights) = argument.split_once('/').unwrap_or((argument, ""));
    let nodes = call.distinct(nodes)?;
    let weights = match argument.contains('/') {
        false => vec![1; nodes.len()],
        true => call.numbers(weights)?,
    };
    let expected = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    call.count("weights", weights.len(), expected)?;
    let no_weight = || TrafficError::NoWeight { text: call.text.to_owned() };
    Ok(Rule::Among(Weighted::new(nodes, &weights).ok_or_else(no_weight)?.into()))
}

fn one_to_many(call: &Call<'_>) -> Result<Rule, TrafficError> {
    let argument = call.argument()?;
    let (source, destinations) = match argument.split_once('/') {
        None => {
            let source = call.node(argument)?;
            (source, others(call, source))
        }
        Some((source, list)) => (call.node(source)?, call.distinct(list)?),
    };
    let none = || TrafficError::NoDestination { pattern: call.text.to_owned() };
    Ok(Rule::From(source, Weighted::equal(destinations).ok_or_else(none)?.into()))
}

fn many_to_one(call: &Call<'_>) -> Result<Rule, TrafficError> {
    let argument = call.argument()?;
    let (sources, destination) = match argument.split_once('/') {
        None => {
            call.at_least(2, "at least two")?;
            let destination = call.node(argument)?;
            (others(call, destination), destination)
        }
        Some((list, destination)) => (call.distinct(list)?, call.node(destination)?),
    };
    let mut fixed = vec![None; call.nodes as usize];
    for source in sources {
        fixed[source as usize] = Some(destination);
    }
    Ok(Rule::Fixed(fixed.into()))
}

fn matrix(call: &Call<'_>) -> Result<Rule, TrafficError> {
    let row = |text: &str| -> Result<Option<Weighted>, TrafficError> {
        let weights = call.numbers(text)?;
        call.count("weights in a row", weights.len(), call.nodes)?;
        let weighted = (0..call.nodes).zip(weights).filter(|&(_, weight)| weight > 0);
        let (nodes, weights): (Vec<u32>, Vec<u32>) = weighted.unzip();
        Ok(Weighted::new(nodes, &weights))
    };
    let rows: Vec<_> = call.argument()?.split(';').map(row).collect::<Result<_, _>>()?;
    call.count("rows", rows.len(), call.nodes)?;
    if rows.iter().all(Option::is_none) {
        return Err(TrafficError::NoDestination { pattern: call.text.to_owned() });
    }
    Ok(Rule::Rows(rows.into()))
}

fn others(call: &Call<'_>, one: u32) -> Vec<u32> {
    (0..call.nodes).filter(|&node| node != one).collect()
}
