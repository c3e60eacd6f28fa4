//! The common part of the algorithms that are built on a graph: the graph, its direct connections,
//! and the conversion of a timetable to a schedule.
//!
//! Such an algorithm takes a topology in its argument (`multi_tree:torus:4x4`, with identical
//! links), or is built on [`Routes`] under its bare name ([`super::build_on`]). The default
//! topology is fully connected.

mod link_graph;
mod timetable;

use std::sync::Arc;

pub(super) use link_graph::{Edge, LinkGraph};
pub(super) use timetable::{Move, Receiving, Timetable};

use super::{AlgorithmError, Request};
use tutti_topology::{LinkParameters, Routes};
use tutti_units::{Time, TimePerByte};

/// The maximum number of ranks: a timetable stores every message.
pub(super) const MOST_RANKS: u32 = 1024;
/// The maximum number of ranks without a graph, for which there are simpler algorithms.
pub(super) const MOST_FLAT_RANKS: u32 = 64;

/// A parsed argument.
pub(super) struct GraphArgument<'a> {
    /// The options before the topology, as (name, value, byte at which it starts).
    pub(super) options: Vec<(&'a str, &'a str, usize)>,
    /// The topology, and the byte at which it starts; `None` if none is named.
    topology: Option<(&'a str, usize)>,
}

/// Parses `OPTION=VALUE,...,TOPOLOGY`: text with a `=` before its first comma and colon is an
/// option.
pub(super) fn read(argument: Option<&str>) -> GraphArgument<'_> {
    let mut rest = argument.unwrap_or("");
    let length = rest.len();
    let mut options = Vec::new();
    loop {
        let part = rest.split(',').next().unwrap_or("");
        let at = length - rest.len();
        match part.split_once('=') {
            Some((name, value)) if !name.contains(':') => {
                options.push((name.trim(), value.trim(), at));
                rest = rest.get(part.len() + 1..).unwrap_or("");
            }
            _ => break,
        }
    }
    let at = length - rest.len();
    GraphArgument { options, topology: (!rest.trim().is_empty()).then_some((rest.trim(), at)) }
}

/// Returns whether an argument names a topology.
pub(super) fn names_topology(argument: Option<&str>) -> bool {
    read(argument).topology.is_some()
}

/// Returns the routes of the graph that a request names; fully connected ranks by default.
pub(super) fn routes(
    name: &'static str,
    request: &Request,
    argument: &GraphArgument,
) -> Result<Routes, AlgorithmError> {
    let flat = format!("fully_connected:{}", request.ranks);
    let (notation, at) = argument.topology.unwrap_or((&flat, 0));
    let refused = |problem: String| request.refuse(name, at, problem);
    let most = if argument.topology.is_some() { MOST_RANKS } else { MOST_FLAT_RANKS };
    if request.ranks > most {
        return Err(request.wrong_ranks(name, format!("at most {most}")));
    }
    let family = tutti_topology::parse(notation).map_err(|error| refused(error.to_string()))?;
    if family.size() != u64::from(request.ranks) {
        let needs = format!("{}, the number of NPUs of {notation}", family.size());
        return Err(request.wrong_ranks(name, needs));
    }
    let alike = TimePerByte::new(1, 1).unwrap_or(TimePerByte::ZERO);
    let link = LinkParameters::new(alike, Time::ZERO);
    let built =
        tutti_topology::build(notation, &[link]).map_err(|error| refused(error.to_string()))?;
    let routes = Routes::shortest_path(Arc::new(built));
    if routes.has_unreachable_pairs() {
        let problem =
            format!("{notation} has no path between some ranks: expected a connected topology");
        return Err(refused(problem));
    }
    Ok(routes)
}

/// Checks that there are enough NPUs, few enough ranks, and a path between any two.
pub(super) fn check_ranks(
    name: &'static str,
    request: &Request,
    routes: &Routes,
) -> Result<(), AlgorithmError> {
    let (ranks, npus) = (request.ranks, routes.topology().npus());
    let needs = if ranks > npus {
        format!("at most the {npus} NPUs of {}", routes.topology().name())
    } else if ranks > MOST_RANKS {
        format!("at most {MOST_RANKS}")
    } else if routes.has_unreachable_pairs() {
        format!("a path between any two ranks, which {} lacks", routes.topology().name())
    } else {
        return Ok(());
    };
    Err(request.wrong_ranks(name, needs))
}

/// Returns the error for an invalid option; `known` lists the valid ones.
pub(super) fn wrong_option(
    name: &'static str,
    request: &Request,
    (option, value, at): (&str, &str, usize),
    known: &str,
) -> AlgorithmError {
    request.refuse(name, at, format!("invalid option `{option}={value}`: expected {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_the_topology() {
        let argument = read(Some("ports=4, pieces=2,hierarchical:switch:4/ring:4"));
        assert_eq!(argument.options, [("ports", "4", 0), ("pieces", "2", 8)]);
        assert_eq!(argument.topology, Some(("hierarchical:switch:4/ring:4", 18)));
        let argument = read(Some("edges:0-1,1-2"));
        assert_eq!((argument.options, argument.topology), (vec![], Some(("edges:0-1,1-2", 0))));
        assert_eq!(read(Some("ports=4")).topology, None);
        assert_eq!(read(None).topology, None);
    }
}
