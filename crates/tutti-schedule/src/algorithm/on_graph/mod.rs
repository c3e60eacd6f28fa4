//! What the algorithms that are made for a graph have in common: which graph, who can reach whom on it, and
//! a timetable of messages that becomes a schedule.
//!
//! Such an algorithm takes a topology in its argument (`multi_tree:torus:4x4`, all links alike), or is
//! built on [`Routes`], then under its bare name ([`super::build_on`]). Without either it takes the ranks as
//! fully connected.

mod link_graph;
mod timetable;

use std::sync::Arc;

pub(super) use link_graph::{Edge, LinkGraph};
pub(super) use timetable::{Move, Receiving, Timetable};

use super::{AlgorithmError, Request};
use tutti_topology::{LinkParameters, Routes};
use tutti_units::{Time, TimePerByte};

/// The most ranks for which timetables are made: they hold every message.
pub(super) const MOST_RANKS: u32 = 1024;
/// The most ranks without a graph, where there are simpler ways to do the same.
pub(super) const MOST_FLAT_RANKS: u32 = 64;

/// An argument taken apart.
pub(super) struct Asked<'a> {
    /// The options before the topology, as (name, value, byte at which it begins).
    pub(super) options: Vec<(&'a str, &'a str, usize)>,
    /// The topology, and the byte at which it begins; `None` where none is named.
    topology: Option<(&'a str, usize)>,
}

/// Reads `OPTION=VALUE,...,TOPOLOGY`: what has a `=` before its first comma and colon is an option.
pub(super) fn read(argument: Option<&str>) -> Asked<'_> {
    let mut rest = argument.unwrap_or("");
    let whole = rest.len();
    let mut options = Vec::new();
    loop {
        let part = rest.split(',').next().unwrap_or("");
        let at = whole - rest.len();
        match part.split_once('=') {
            Some((name, value)) if !name.contains(':') => {
                options.push((name.trim(), value.trim(), at));
                rest = rest.get(part.len() + 1..).unwrap_or("");
            }
            _ => break,
        }
    }
    let at = whole - rest.len();
    Asked { options, topology: (!rest.trim().is_empty()).then_some((rest.trim(), at)) }
}

/// Whether an argument names a topology.
pub(super) fn names_one(argument: Option<&str>) -> bool {
    read(argument).topology.is_some()
}

/// The graph that a request names; fully connected ranks where it names none.
pub(super) fn routes(
    name: &'static str,
    request: &Request,
    asked: &Asked,
) -> Result<Routes, AlgorithmError> {
    let flat = format!("fully_connected:{}", request.ranks);
    let (notation, at) = asked.topology.unwrap_or((&flat, 0));
    let refused = |problem: String| request.refuse(name, at, problem);
    let most = if asked.topology.is_some() { MOST_RANKS } else { MOST_FLAT_RANKS };
    if request.ranks > most {
        return Err(request.wrong_ranks(name, format!("at most {most}")));
    }
    let family = tutti_topology::parse(notation).map_err(|error| refused(error.to_string()))?;
    if family.size() != u64::from(request.ranks) {
        let needs = format!("as many as {notation} has NPUs, {}", family.size());
        return Err(request.wrong_ranks(name, needs));
    }
    let alike = TimePerByte::new(1, 1).unwrap_or(TimePerByte::ZERO);
    let link = LinkParameters::new(alike, Time::ZERO);
    let built =
        tutti_topology::build(notation, &[link]).map_err(|error| refused(error.to_string()))?;
    let routes = Routes::shortest_path(Arc::new(built));
    if routes.has_unreachable_pairs() {
        let problem =
            format!("{notation} lacks ways between some ranks; expected one between any two");
        return Err(refused(problem));
    }
    Ok(routes)
}

/// Whether there are enough NPUs, few enough ranks, and a way between any two.
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
        format!("ways between all of them, which {} lacks", routes.topology().name())
    } else {
        return Ok(());
    };
    Err(request.wrong_ranks(name, needs))
}

/// Refuses an option; `known` says what there is.
pub(super) fn wrong_option(
    name: &'static str,
    request: &Request,
    (option, value, at): (&str, &str, usize),
    known: &str,
) -> AlgorithmError {
    request.refuse(name, at, format!("`{option}={value}` is no option; expected {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_the_topology() {
        let asked = read(Some("ports=4, pieces=2,hierarchical:switch:4/ring:4"));
        assert_eq!(asked.options, [("ports", "4", 0), ("pieces", "2", 8)]);
        assert_eq!(asked.topology, Some(("hierarchical:switch:4/ring:4", 18)));
        let asked = read(Some("edges:0-1,1-2"));
        assert_eq!((asked.options, asked.topology), (vec![], Some(("edges:0-1,1-2", 0))));
        assert_eq!(read(Some("ports=4")).topology, None);
        assert_eq!(read(None).topology, None);
    }
}
