//! The declarations of all parameters, from which Python classes, schemas and reference pages are
//! generated.

use pyo3::prelude::*;
use tutti_engine::LocalCosts;
use tutti_network::REGISTRY;
use tutti_network::flow::FlowLevel;
use tutti_network::packet::Packets;
use tutti_noc::{Settings, Speculation};
use tutti_units::parameter::{Group, Kind, Parameter};

/// Every group except the network models.
const GROUPS: &[&Group] = &[
    &LocalCosts::GROUP,
    &FlowLevel::GROUP,
    &Packets::GROUP,
    &Speculation::GROUP,
    &Settings::GROUP,
];

/// Parameters that are set together.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct ParameterGroup {
    /// Its name in configuration files.
    name: &'static str,
    /// Its name as a class.
    #[pyo3(name = "class_")]
    class: &'static str,
    /// One sentence.
    summary: &'static str,
    /// Where it was published; empty for a design of tutti.
    source: &'static str,
    /// In the order in which people give them.
    parameters: Vec<ParameterEntry>,
}

/// A parameter.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct ParameterEntry {
    /// The field's name for it.
    name: &'static str,
    /// Its kind: time, time per byte, size, count, number, flag, choice or text.
    kind: &'static str,
    /// What it means.
    meaning: String,
    /// The default as text, where there is one.
    default: Option<&'static str>,
    /// Whether it may be absent.
    optional: bool,
    /// The least and the greatest value of a count or a number.
    range: Option<(f64, f64)>,
    /// The words of a choice.
    choices: Vec<&'static str>,
}

impl From<&Parameter> for ParameterEntry {
    fn from(parameter: &Parameter) -> ParameterEntry {
        let choices = if let Kind::Choice(words) = parameter.kind { words } else { &[] };
        ParameterEntry {
            name: parameter.name,
            kind: parameter.kind.name(),
            meaning: parameter.meaning(),
            default: parameter.default,
            optional: parameter.optional,
            range: parameter.range,
            choices: choices.to_vec(),
        }
    }
}

impl From<&Group> for ParameterGroup {
    fn from(group: &Group) -> ParameterGroup {
        let parameters = group.parameters.iter().map(ParameterEntry::from).collect();
        let Group { name, class, summary, source, .. } = *group;
        ParameterGroup { name, class, summary: summary.trim(), source, parameters }
    }
}

/// The groups of parameters: those of the network models if `models`, else all others.
#[pyfunction]
pub(crate) fn parameter_groups(models: bool) -> Vec<ParameterGroup> {
    if models {
        return REGISTRY.iter().map(Into::into).collect();
    }
    GROUPS.iter().map(|group| (*group).into()).collect()
}
