//! The one mapping from what the core refuses to the exceptions of `tutti.errors`.
//!
//! Each variant of each stage's error enum has a kind, its name in snake case; class and kind together
//! are the anchor of its entry in `docs/reference/errors.md`. Its fields become attributes.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tutti_core::algorithm::AlgorithmError;
use tutti_core::ids::RankId;
use tutti_core::schedule::LayoutError;
use tutti_core::units::{Bytes, UnitError};

/// A value that an error carries, as Python sees it.
trait Field {
    fn set(&self, fields: &Bound<'_, PyDict>, name: &str) -> PyResult<()>;
}

macro_rules! field {
    ($($kind:ty => |$value:ident| $python:expr),* $(,)?) => {$(
        impl Field for $kind {
            fn set(&self, fields: &Bound<'_, PyDict>, name: &str) -> PyResult<()> {
                let $value = self;
                fields.set_item(name, $python)
            }
        }
    )*};
}

field! {
    String => |value| value,
    &'static str => |value| *value,
    u32 => |value| *value,
    u64 => |value| *value,
    usize => |value| *value,
    RankId => |value| value.0,
    Bytes => |value| value.0,
}

/// An error enum of the core, taken apart for Python.
pub(crate) trait Refusal: std::fmt::Display {
    /// The class in `tutti.errors`.
    const CLASS: &'static str;
    /// Every kind there is.
    const KINDS: &'static [&'static str];
    /// The variant's name in snake case.
    fn kind(&self) -> &'static str;
    /// The variant's fields.
    fn fields(&self, fields: &Bound<'_, PyDict>) -> PyResult<()>;
}

/// Lists an enum's variants, with the kind and the fields of each; a variant that is missing here
/// does not compile.
macro_rules! refusal {
    ($error:ident as $class:literal {
        $($variant:ident { $($field:ident),* } => $kind:literal,)*
    }) => {
        impl Refusal for $error {
            const CLASS: &'static str = $class;
            const KINDS: &'static [&'static str] = &[$($kind),*];

            fn kind(&self) -> &'static str {
                match self { $($error::$variant { .. } => $kind,)* }
            }

            fn fields(&self, fields: &Bound<'_, PyDict>) -> PyResult<()> {
                match self {
                    $($error::$variant { $($field),* } => {
                        $($field.set(fields, stringify!($field))?;)*
                    })*
                }
                Ok(())
            }
        }
    };
}

refusal! { UnitError as "UnitError" {
    Malformed { text, quantity, example } => "malformed",
    MissingUnit { text, quantity, units, example } => "missing_unit",
    UnknownUnit { text, unit, quantity, units } => "unknown_unit",
    TooFine { text, quantity, finest } => "too_fine",
    TooLarge { text, quantity, largest } => "too_large",
    Zero { text, quantity } => "zero",
    Negative { text, quantity } => "negative",
}}

refusal! { LayoutError as "LayoutError" {
    PartialElement { size, element } => "partial_element",
    EmptyElement {} => "empty_element",
    NoChunks {} => "no_chunks",
}}

refusal! { AlgorithmError as "AlgorithmError" {
    Unknown { name, known } => "unknown",
    TooFewRanks { ranks } => "too_few_ranks",
    TooManyRanks { ranks } => "too_many_ranks",
    WrongCollective { name, collective, performs } => "wrong_collective",
    WrongRanks { name, ranks, needs } => "wrong_ranks",
    WrongRoot { root, last } => "wrong_root",
    Argument { name, argument, at, problem } => "argument",
}}

/// Every class and kind of error that the core raises; the reference page has an anchor for each.
#[pyfunction]
pub(crate) fn error_kinds() -> Vec<(&'static str, &'static str)> {
    fn of<E: Refusal>() -> impl Iterator<Item = (&'static str, &'static str)> {
        E::KINDS.iter().map(|kind| (E::CLASS, *kind))
    }
    of::<UnitError>().chain(of::<LayoutError>()).chain(of::<AlgorithmError>()).collect()
}

/// Turns the core's errors into Python's.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception of the error's class.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Refusal> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| raised(&error))
    }
}

/// An exception of `tutti.errors`.
fn raised<E: Refusal>(error: &E) -> PyErr {
    Python::attach(|py| {
        let fields = PyDict::new(py);
        error.fields(&fields)?;
        exception(py, E::CLASS, error.kind(), &error.to_string(), &fields)
    })
    .unwrap_or_else(|failure| failure)
}

/// The exception `tutti.errors.<class>(message, kind=kind, **fields)`.
fn exception(
    py: Python<'_>,
    class: &str,
    kind: &str,
    message: &str,
    fields: &Bound<'_, PyDict>,
) -> PyResult<PyErr> {
    let class = py.import("tutti.errors")?.getattr(class)?;
    let arguments = PyDict::new(py);
    arguments.set_item("kind", kind)?;
    arguments.set_item("fields", fields)?;
    Ok(PyErr::from_value(class.call((message,), Some(&arguments))?))
}

/// An exception for a mistake that only Python can make, such as a rank beyond the last.
pub(crate) fn refuse(class: &str, kind: &str, message: &str) -> PyErr {
    Python::attach(|py| exception(py, class, kind, message, &PyDict::new(py)))
        .unwrap_or_else(|failure| failure)
}
