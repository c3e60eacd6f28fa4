//! The Python side of an error: exception class, kind and fields.

use crate::ids::{LinkId, RankId, VertexId};
use crate::parameter::ParameterError;
use crate::{Bytes, Time, UnitError};

/// An error enum whose variants become exceptions: derive it with `#[derive(tutti_units::Refusal)]`
/// and `#[refusal(class = "...")]`.
pub trait Refusal: std::fmt::Display {
    /// The class in `tutti.errors` and the kind of every variant. Together they are the anchor in
    /// the error reference.
    const KINDS: &'static [(&'static str, &'static str)];

    /// The class and the kind of this error.
    fn kind(&self) -> (&'static str, &'static str);

    /// The fields of the variant, which become attributes.
    fn fields(&self) -> Vec<(&'static str, Value)>;
}

/// A field value in any language.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// No value.
    None,
    /// Text.
    Text(String),
    /// An integer.
    Integer(u64),
    /// A real number.
    Real(f64),
    /// Values of one type.
    List(Vec<Value>),
    /// Values of different types.
    Tuple(Vec<Value>),
}

/// A type of error fields.
pub trait Field {
    /// The field as a value.
    fn value(&self) -> Value;
}

/// Implements [`Field`] for types by conversion to another type that implements it.
#[macro_export]
macro_rules! fields {
    ($($kind:ty => |$value:ident| $shown:expr),* $(,)?) => {$(
        impl $crate::refusal::Field for $kind {
            fn value(&self) -> $crate::refusal::Value {
                let $value = self;
                $crate::refusal::Field::value(&$shown)
            }
        }
    )*};
}

macro_rules! values {
    ($($kind:ty => |$value:ident| $shown:expr),* $(,)?) => {$(
        impl Field for $kind {
            fn value(&self) -> Value {
                let $value = self;
                $shown
            }
        }
    )*};
}

values! {
    String => |value| Value::Text(value.clone()),
    &str => |value| Value::Text((*value).to_owned()),
    u64 => |value| Value::Integer(*value),
    u32 => |value| Value::Integer(u64::from(*value)),
    u8 => |value| Value::Integer(u64::from(*value)),
    usize => |value| Value::Integer(*value as u64),
    f64 => |value| Value::Real(*value),
}

crate::fields! {
    RankId => |value| value.0,
    VertexId => |value| value.0,
    LinkId => |value| value.0,
    Bytes => |value| value.0,
    Time => |value| value.ps(),
    UnitError => |value| value.to_string(),
    ParameterError => |value| value.to_string(),
}

impl<T: Field> Field for Vec<T> {
    fn value(&self) -> Value {
        Value::List(self.iter().map(Field::value).collect())
    }
}

impl<T: Field> Field for Option<T> {
    fn value(&self) -> Value {
        self.as_ref().map_or(Value::None, Field::value)
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn value(&self) -> Value {
        Value::Tuple(vec![self.0.value(), self.1.value()])
    }
}

impl<A: Field, B: Field, C: Field> Field for (A, B, C) {
    fn value(&self) -> Value {
        Value::Tuple(vec![self.0.value(), self.1.value(), self.2.value()])
    }
}
