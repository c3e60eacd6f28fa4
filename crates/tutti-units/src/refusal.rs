//! What an error tells Python: the class of its exception, its kind and the fields of its variant.

use crate::ids::{LinkId, RankId, VertexId};
use crate::parameter::ParameterError;
use crate::{Bytes, Time, UnitError};

/// An error enum whose variants become exceptions: derive it with `#[derive(tutti_units::Refusal)]` and
/// `#[refusal(class = "...")]`.
pub trait Refusal: std::fmt::Display {
    /// The class in `tutti.errors` and the kind of every variant; together the anchor of its entry in the
    /// reference of errors.
    const KINDS: &'static [(&'static str, &'static str)];

    /// The class and the kind of this one.
    fn kind(&self) -> (&'static str, &'static str);

    /// The variant's fields, which become attributes.
    fn fields(&self) -> Vec<(&'static str, Value)>;
}

/// A field as any language can hold it.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// No value.
    None,
    /// Text.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// A real number.
    Real(f64),
    /// Values of one kind.
    List(Vec<Value>),
    /// Values that belong together.
    Tuple(Vec<Value>),
}

/// A type that fields of errors have.
pub trait Field {
    /// The field as a value.
    fn value(&self) -> Value;
}

/// Implements [`Field`] for types by what they come to: a value of another type that has it.
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
    u64 => |value| Value::Whole(*value),
    u32 => |value| Value::Whole(u64::from(*value)),
    u8 => |value| Value::Whole(u64::from(*value)),
    usize => |value| Value::Whole(*value as u64),
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
