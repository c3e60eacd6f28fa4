//! Any node, each as likely.

use super::{Call, Entry, Rule, TrafficError, Weighted, below};

pub(super) const UNIFORM: Entry = Entry {
    name: "uniform",
    argument: "",
    summary: "any node, including the source",
    build: |_| Ok(Rule::Uniform),
};

pub(super) const OTHERS: Entry = Entry {
    name: "uniform_others",
    argument: "",
    summary: "any node but the source",
    build: |call| {
        call.at_least(2, "at least two")?;
        Ok(Rule::Others)
    },
};

pub(super) const BACKGROUND: Entry = Entry {
    name: "background",
    argument: "NODE,NODE,...",
    summary: "any node but those named, which still send",
    build: background,
};

fn background(call: &Call<'_>) -> Result<Rule, TrafficError> {
    let excluded = call.distinct(call.argument()?)?;
    let rest = (0..call.nodes).filter(|node| !excluded.contains(node)).collect();
    let none = || TrafficError::NoDestination { pattern: call.text.to_owned() };
    Ok(Rule::Among(Weighted::equal(rest).ok_or_else(none)?.into()))
}

/// Any node but the source.
#[inline]
pub(super) fn other(bits: u64, source: u32, nodes: u32) -> u32 {
    let drawn = below(bits, nodes - 1);
    drawn + u32::from(drawn >= source)
}
