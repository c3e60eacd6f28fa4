//! The models by name, and the parameters each takes: what configuration files, Python and the
//! documentation walk. One line of [`REGISTRY`] per model.

use super::{Model, ModelError, REGISTRY};
use tutti_units::parameter::{Group, Kind, Parameter};
use tutti_units::{Time, TimePerByte};

/// A line of the registry.
pub struct Entry {
    /// Its name in configuration files and results, and what it takes.
    pub group: Group,
    /// From one value per parameter.
    pub build: fn(&Arguments) -> Result<Model, ModelError>,
}

pub(super) const LATENCY: Parameter = time("L", &["Latency of the wire."]);
pub(super) const OVERHEAD: Parameter =
    time("o", &["Overhead: how long a message occupies its sender, and its receiver."]);
pub(super) const GAP: Parameter =
    time("g", &["Gap: the least time between two messages of a rank."]);

pub(super) const fn time(name: &'static str, meaning: &'static [&'static str]) -> Parameter {
    Parameter::required(name, Kind::Time, meaning)
}

pub(super) const fn time_per_byte(
    name: &'static str,
    meaning: &'static [&'static str],
) -> Parameter {
    Parameter::required(name, Kind::TimePerByte, meaning)
}

pub(super) const fn count(name: &'static str, meaning: &'static [&'static str]) -> Parameter {
    let range = Some((0.0, u32::MAX as f64));
    Parameter { range, ..Parameter::required(name, Kind::Count, meaning) }
}

fn parse(parameter: &Parameter, model: &'static str, text: &str) -> Result<Value, ModelError> {
    let wrong = |problem| ModelError::Value { model, parameter: parameter.name, problem };
    match parameter.kind {
        Kind::Time => Time::parse(text).map(Value::Time).map_err(wrong),
        Kind::TimePerByte => TimePerByte::parse(text).map(Value::TimePerByte).map_err(wrong),
        Kind::Count => text.trim().parse().map(Value::Count).map_err(|_| ModelError::NotACount {
            model,
            parameter: parameter.name,
            text: text.to_owned(),
        }),
        other => unreachable!("no model has a parameter that is a {}", other.name()),
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the variants are those of Kind")]
pub enum Value {
    Time(Time),
    TimePerByte(TimePerByte),
    Count(u32),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Time(time) => time.fmt(f),
            Value::TimePerByte(rate) => rate.fmt(f),
            Value::Count(count) => count.fmt(f),
        }
    }
}

/// One value for each parameter of a model, none missing and none too many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arguments(Vec<(&'static str, Value)>);

impl Arguments {
    fn value(&self, name: &str) -> Value {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.expect("a model asks for its own parameters").1
    }

    pub(super) fn time(&self, name: &str) -> Time {
        match self.value(name) {
            Value::Time(time) => time,
            other => unreachable!("{name} was declared a time and read as {other:?}"),
        }
    }

    pub(super) fn time_per_byte(&self, name: &str) -> TimePerByte {
        match self.value(name) {
            Value::TimePerByte(rate) => rate,
            other => unreachable!("{name} was declared a time per byte and read as {other:?}"),
        }
    }

    pub(super) fn count(&self, name: &str) -> u32 {
        match self.value(name) {
            Value::Count(count) => count,
            other => unreachable!("{name} was declared a count and read as {other:?}"),
        }
    }
}

/// The entry of that name.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> Result<&'static Entry, ModelError> {
    REGISTRY.iter().find(|entry| entry.group.name == name).ok_or_else(|| ModelError::Unknown {
        name: name.to_owned(),
        known: join(REGISTRY.iter().map(|entry| entry.group.name)),
    })
}

/// A model from its name and its parameters as people write them: `build("logp", &[("L", "2 us"), ..])`.
///
/// # Errors
/// When there is no such model, a parameter is unknown, missing or given twice, a value cannot be read,
/// or the values make no sense together.
pub fn build(name: &str, given: &[(&str, &str)]) -> Result<Model, ModelError> {
    let entry = find(name)?;
    for (position, (parameter, _)) in given.iter().enumerate() {
        if !entry.group.parameters.iter().any(|known| known.name == *parameter) {
            return Err(ModelError::UnknownParameter {
                model: entry.group.name,
                parameter: (*parameter).to_owned(),
                known: join(entry.group.parameters.iter().map(|known| known.name)),
            });
        }
        if given[..position].iter().any(|(before, _)| before == parameter) {
            let parameter = (*parameter).to_owned();
            return Err(ModelError::GivenTwice { model: entry.group.name, parameter });
        }
    }
    let values = entry.group.parameters.iter().map(|parameter| {
        let text = given.iter().find(|(name, _)| *name == parameter.name).map(|(_, text)| *text);
        let Some(text) = text.or(parameter.default) else {
            return Err(ModelError::Missing {
                model: entry.group.name,
                parameter: parameter.name,
                kind: parameter.kind.name(),
                meaning: parameter.phrase(),
            });
        };
        parse(parameter, entry.group.name, text).map(|value| (parameter.name, value))
    });
    (entry.build)(&Arguments(values.collect::<Result<_, _>>()?))
}

fn join(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
