//! Parameters: name, kind, default, range and meaning, declared once. Configuration files, Python
//! classes, schemas and reference pages are generated from these declarations.
//!
//! [`parameters!`](crate::parameters) declares a struct together with its [`Group`]. Values are
//! text, as in a configuration file; parameter types implement [`ParameterValue`].

use super::{Bytes, Time, TimePerByte, UnitError};

/// A group of parameters, such as those of a network model, a router, or packets.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The name in configuration files.
    pub name: &'static str,
    /// The name of the class.
    pub class: &'static str,
    /// A summary of one sentence.
    pub summary: &'static str,
    /// The publication; empty for a design of tutti.
    pub source: &'static str,
    /// The parameters in the usual order.
    pub parameters: &'static [Parameter],
}

/// The type of a parameter's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A time, such as `1.34 us`.
    Time,
    /// A time per byte, such as `0.4 ns/B`, or its inverse, the rate `2.5 GB/s`.
    TimePerByte,
    /// A size, such as `64 KiB`.
    Size,
    /// An integer without a unit.
    Count,
    /// A real number without a unit.
    Number,
    /// `true` or `false`.
    Flag,
    /// `true`, `false`, or names separated by commas.
    FlagOrNames,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Text in the notation that the meaning describes.
    Text,
}

impl Kind {
    /// The name for lists and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Time => "time",
            Kind::TimePerByte => "time per byte",
            Kind::Size => "size",
            Kind::Count => "count",
            Kind::Number => "number",
            Kind::Flag => "flag",
            Kind::FlagOrNames => "flag or list of names",
            Kind::Choice(_) => "choice",
            Kind::Text => "text",
        }
    }
}

/// A parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// The name in files and classes.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// The meaning, as the pieces of a doc comment.
    pub meaning: &'static [&'static str],
    /// The default value as text.
    pub default: Option<&'static str>,
    /// Whether the value may be absent.
    pub optional: bool,
    /// The minimum and maximum of a count or a number.
    pub range: Option<(f64, f64)>,
}

impl Parameter {
    /// The meaning as part of a sentence.
    #[must_use]
    pub fn phrase(&self) -> String {
        let meaning = self.meaning();
        let mut letters = meaning.trim_end_matches('.').chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
    }

    /// The meaning on one line.
    #[must_use]
    pub fn meaning(&self) -> String {
        self.meaning.iter().map(|piece| piece.trim()).collect::<Vec<_>>().join(" ")
    }
}

/// An unknown or missing parameter, or an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "ModelError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ParameterError {
    /// The group has no such parameter.
    #[error("{group} has no parameter `{parameter}`: expected one of {known}")]
    #[refusal(kind = "unknown_parameter")]
    Unknown { group: &'static str, parameter: String, known: String },
    /// A parameter without a default was not given.
    #[error("{group} needs `{parameter}`, a {kind}: {meaning}")]
    Missing { group: &'static str, parameter: &'static str, kind: &'static str, meaning: String },
    /// Text that cannot be parsed.
    #[error("`{text}` is not a {kind}")]
    #[refusal(kind = "value")]
    Malformed { kind: &'static str, text: String },
    /// A number outside the parameter's range.
    #[error("`{parameter}` is {value}: expected {expected}")]
    #[refusal(kind = "value")]
    OutOfRange { parameter: &'static str, value: u64, expected: String },
    /// A value below that of another parameter.
    #[error("`{parameter}` is {value}: expected at least `{other}`, which is {least}")]
    #[refusal(kind = "value")]
    BelowAnother { parameter: &'static str, value: String, other: &'static str, least: String },
    /// A quantity that cannot be parsed.
    #[error(transparent)]
    #[refusal(kind = "value")]
    Unit {
        #[from]
        source: UnitError,
    },
}

impl Group {
    /// Checks that all names are known and that no parameter without a default is missing.
    ///
    /// # Errors
    /// A name is unknown or missing.
    pub fn check_names(&self, given: &[(&str, &str)]) -> Result<(), ParameterError> {
        let (group, all) = (self.name, self.parameters);
        if let Some((name, _)) = given.iter().find(|(name, _)| all.iter().all(|p| p.name != *name))
        {
            let known: Vec<&str> = all.iter().map(|known| known.name).collect();
            let (parameter, known) = ((*name).to_owned(), known.join(", "));
            return Err(ParameterError::Unknown { group, parameter, known });
        }
        let missing = all.iter().find(|parameter| {
            let required = parameter.default.is_none() && !parameter.optional;
            required && given.iter().all(|(name, _)| *name != parameter.name)
        });
        missing.map_or(Ok(()), |missing| Err(self.missing(missing)))
    }

    /// The error for a parameter that was not given.
    #[must_use]
    pub fn missing(&self, missing: &Parameter) -> ParameterError {
        let (group, parameter) = (self.name, missing.name);
        let (kind, meaning) = (missing.kind.name(), missing.phrase());
        ParameterError::Missing { group, parameter, kind, meaning }
    }
}

/// A type of parameter values.
pub trait ParameterValue: Sized {
    /// The error for invalid text.
    type Error;
    /// The kind of its values.
    const KIND: Kind;
    /// Whether a value may be absent.
    const OPTIONAL: bool = false;

    /// Parses a value.
    ///
    /// # Errors
    /// The text is invalid.
    fn read(text: &str) -> Result<Self, Self::Error>;

    /// The magnitude, for parameters with a range.
    fn magnitude(&self) -> Option<f64> {
        None
    }
}

impl<T: ParameterValue> ParameterValue for Option<T> {
    type Error = T::Error;
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;

    fn read(text: &str) -> Result<Self, T::Error> {
        T::read(text).map(Some)
    }

    fn magnitude(&self) -> Option<f64> {
        self.as_ref().and_then(T::magnitude)
    }
}

/// Implements [`ParameterValue`] for types that the standard library parses.
macro_rules! of_standard_library {
    ($($type:ty, $kind:ident, $magnitude:expr;)*) => {$(
        impl ParameterValue for $type {
            type Error = ParameterError;
            const KIND: Kind = Kind::$kind;

            fn read(text: &str) -> Result<Self, ParameterError> {
                let kind = Kind::$kind.name();
                text.trim().parse().map_err(|_| {
                    ParameterError::Malformed { kind, text: text.to_owned() }
                })
            }

            fn magnitude(&self) -> Option<f64> {
                $magnitude(*self)
            }
        }
    )*};
}

of_standard_library! {
    u32, Count, |value| Some(f64::from(value));
    f64, Number, Some;
    bool, Flag, |_| None;
}

/// Implements [`ParameterValue`] for quantities with a unit.
macro_rules! quantity {
    ($($type:ty, $kind:ident;)*) => {$(
        impl ParameterValue for $type {
            type Error = ParameterError;
            const KIND: Kind = Kind::$kind;

            fn read(text: &str) -> Result<Self, ParameterError> {
                Ok(<$type>::parse(text)?)
            }
        }
    )*};
}

quantity! { Time, Time; TimePerByte, TimePerByte; Bytes, Size; }

/// Rejects a value outside its range.
///
/// # Errors
/// The value is out of range.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shown to people; the cast saturates"
)]
pub fn check_range(
    parameter: &'static str,
    value: Option<f64>,
    range: Option<(f64, f64)>,
) -> Result<(), ParameterError> {
    match (value, range) {
        (Some(value), Some((least, most))) if !(least..=most).contains(&value) => {
            let (value, expected) = (value as u64, format!("{least} to {most}"));
            Err(ParameterError::OutOfRange { parameter, value, expected })
        }
        _ => Ok(()),
    }
}

/// Declares a struct whose fields are parameters, and its [`Group`](crate::parameter::Group).
///
/// A field is `name: Type = "default"`, `name: Option<Type>`, or `name: Type` for a required value,
/// each with an optional range `[least..=most]`. Fields after `with` are not parameters; other code
/// sets them. The struct gets `GROUP`, `Default` (zero without a default), `from_texts` (from names
/// and texts) and `check_ranges`.
///
/// ```
/// use tutti_units::{Time, parameter::ParameterError};
///
/// tutti_units::parameters! {
///     /// A queue.
///     #[derive(Debug)]
///     pub struct Queue("queue" as "Queue", "Kleinrock 1975", ParameterError) {
///         /// The capacity in customers.
///         length: u32 = "8" [1..=64],
///         /// The service time of a customer.
///         service: Time = "1 us",
///         /// The time after which customers leave.
///         patience: Option<Time>,
///     }
/// }
///
/// let queue = Queue::from_texts([("length", "4")]).unwrap();
/// assert_eq!((queue.length, queue.service.ps(), queue.patience), (4, 1_000_000, None));
/// assert!(Queue { length: 65, ..queue }.check_ranges().is_err());
/// assert_eq!(Queue::GROUP.parameters[0].meaning(), "The capacity in customers.");
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[doc = $summary:literal])+
        #[derive($($derived:ident),*)]
        pub struct $name:ident($group:literal as $class:literal, $source:literal, $error:ty) {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident: $type:ty $(= $default:literal)? $([$least:tt..=$most:expr])?
            ),* $(,)?
        }
        $(with {
            $( $(#[$other_doc:meta])* $other:ident: $other_type:ty = $other_default:expr ),* $(,)?
        })?
    ) => {
        $(#[doc = $summary])+
        #[derive($($derived),*)]
        pub struct $name {
            $( $(#[doc = $meaning])+ pub $field: $type, )*
            $($( $(#[$other_doc])* pub $other: $other_type, )*)?
        }

        impl $name {
            /// The declarations.
            pub const GROUP: $crate::parameter::Group = $crate::parameter::Group {
                name: $group,
                class: $class,
                summary: $crate::first_of!($($summary),+),
                source: $source,
                parameters: &[$(
                    $crate::parameter::Parameter {
                        name: stringify!($field),
                        kind: <$type as $crate::parameter::ParameterValue>::KIND,
                        meaning: &[$($meaning),+],
                        default: $crate::first_of!($(Some($default),)? None),
                        optional: <$type as $crate::parameter::ParameterValue>::OPTIONAL,
                        range: $crate::first_of!($(Some(($least as f64, $most as f64)),)? None),
                    }
                ),*],
            };

            /// Parses the given parameters; the others take their defaults.
            ///
            /// # Errors
            /// A parameter is unknown or missing, or its text is invalid.
            pub fn from_texts<'t>(
                given: impl IntoIterator<Item = (&'t str, &'t str)>,
            ) -> Result<Self, $error> {
                let given: Vec<_> = given.into_iter().collect();
                Self::GROUP.check_names(&given)?;
                let mut made = Self::default();
                for (name, text) in given {
                    $(if name == stringify!($field) {
                        made.$field = $crate::parameter::ParameterValue::read(text)?;
                    })*
                }
                Ok(made)
            }

            /// Rejects the first parameter outside its range.
            ///
            /// # Errors
            /// A parameter is out of range.
            pub fn check_ranges(&self) -> Result<(), $crate::parameter::ParameterError> {
                let mut parameters = Self::GROUP.parameters.iter();
                $(
                    let value = $crate::parameter::ParameterValue::magnitude(&self.$field);
                    let range = parameters.next().and_then(|parameter| parameter.range);
                    $crate::parameter::check_range(stringify!($field), value, range)?;
                )*
                Ok(())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: $crate::default_of!($field $(, $default)?), )*
                    $($( $other: $other_default, )*)?
                }
            }
        }
    };
}

/// The value of a default; `None` or zero for a parameter without a default.
#[doc(hidden)]
#[macro_export]
macro_rules! default_of {
    ($field:ident) => {
        Default::default()
    };
    ($field:ident, $default:literal) => {
        match $crate::parameter::ParameterValue::read($default) {
            Ok(value) => value,
            Err(_) => unreachable!("the default of a parameter is one of its values"),
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! first_of {
    ($first:expr $(, $other:expr)* $(,)?) => {
        $first
    };
}
