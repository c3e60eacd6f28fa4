//! Switches that multicast or reduce.

use std::collections::BTreeSet;
use std::sync::Arc;

use tutti_topology::{Topology, VertexKind};
use tutti_units::ids::VertexId;
use tutti_units::parameter::{Kind, ParameterError, ParameterValue};

/// The vertices of a topology that perform an operation: multicast or reduce.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Switches {
    /// None.
    None,
    /// All. With flows, this includes NPUs that forward messages.
    All,
    /// Those with these names; `*` stands for any characters.
    Named(Arc<[String]>),
}

impl ParameterValue for Switches {
    type Error = ParameterError;
    const KIND: Kind = Kind::FlagOrNames;

    fn read(text: &str) -> Result<Switches, ParameterError> {
        match text.trim() {
            "true" => Ok(Switches::All),
            "false" => Ok(Switches::None),
            names => {
                let names: Vec<String> =
                    names.split(',').map(|name| name.trim().to_owned()).collect();
                if names.iter().any(String::is_empty) {
                    let kind = Kind::FlagOrNames.name();
                    return Err(ParameterError::Malformed { kind, text: text.to_owned() });
                }
                Ok(Switches::Named(names.into()))
            }
        }
    }
}

impl Switches {
    /// Whether there may be any.
    #[must_use]
    pub fn is_some(&self) -> bool {
        *self != Switches::None
    }

    /// By vertex, whether it is one of them.
    #[must_use]
    pub fn on(&self, topology: &Topology) -> Vec<bool> {
        let is_one = |vertex| match self {
            Switches::None => false,
            Switches::All => true,
            Switches::Named(names) => {
                names.iter().any(|name| matches(name, topology.vertex_name(vertex)))
            }
        };
        topology.vertices().map(is_one).collect()
    }

    /// The first name that no vertex has.
    #[must_use]
    pub fn unknown_on(&self, topology: &Topology) -> Option<&str> {
        let Switches::Named(names) = self else { return None };
        let is_known = |name: &str| {
            topology.vertices().any(|vertex| matches(name, topology.vertex_name(vertex)))
        };
        names.iter().map(String::as_str).find(|name| !is_known(name))
    }
}

/// Returns the names of the switches and routers of a topology, with `*` instead of numbers.
#[must_use]
pub fn classes_of_switches(topology: &Topology) -> Vec<String> {
    let forwards = |vertex: &VertexId| topology.kind(*vertex) != VertexKind::Npu;
    let names = topology.vertices().filter(forwards).map(|vertex| topology.vertex_name(vertex));
    let class = |name: &str| {
        let mut class = String::new();
        for letter in name.chars() {
            match letter {
                '0'..='9' if class.ends_with('*') => {}
                '0'..='9' => class.push('*'),
                letter => class.push(letter),
            }
        }
        class
    };
    names.map(class).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a name has the form of a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    name.strip_prefix(start).is_some_and(|name| {
        let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
        ends.into_iter().any(|at| matches(rest, &name[at..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_topology::{LinkParameters, build};
    use tutti_units::{Time, TimePerByte};

    #[test]
    fn switches_are_selected_by_name() {
        let link = LinkParameters::new(TimePerByte::new(1, 1).unwrap(), Time::ZERO);
        let pods = build("rail_optimized:npus=2,hosts=2,spines=1", &[link]).unwrap();
        assert_eq!(classes_of_switches(&pods), ["host*.switch", "pod*.leaf*", "spine*"]);
        let count = |text: &str| {
            let on = Switches::read(text).unwrap().on(&pods);
            on.into_iter().filter(|&one| one).count()
        };
        assert_eq!(
            ["false", "true", "host*.switch", "spine0, pod0.leaf1"].map(count),
            [0, 9, 2, 2]
        );
        let unknown = Switches::read("spine*,leaf*").unwrap();
        assert_eq!(unknown.unknown_on(&pods), Some("leaf*"));
        assert!(Switches::read("spine*,").is_err());
    }
}
