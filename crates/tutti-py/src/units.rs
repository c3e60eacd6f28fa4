//! Quantities with units: parsing and printing, nothing else.

use pyo3::prelude::*;

use crate::errors::OrRaise;

/// Picoseconds of a time such as "1.34 us".
#[pyfunction]
pub(crate) fn parse_time(text: &str) -> PyResult<u64> {
    tutti_units::Time::parse(text).or_raise().map(tutti_units::Time::ps)
}

/// A time in picoseconds in a fitting unit, without loss.
#[pyfunction]
pub(crate) fn format_time(ps: u64) -> String {
    tutti_units::Time::from_ps(ps).to_string()
}

/// Bytes of a size such as "64 KiB".
#[pyfunction]
pub(crate) fn parse_size(text: &str) -> PyResult<u64> {
    tutti_units::Bytes::parse(text).or_raise().map(|bytes| bytes.0)
}

/// A size in bytes in the largest binary unit that divides it.
#[pyfunction]
pub(crate) fn format_size(size: u64) -> String {
    tutti_units::Bytes(size).to_string()
}

/// Operations per second of a rate such as "120 TFLOP/s".
#[pyfunction]
pub(crate) fn parse_op_rate(text: &str) -> PyResult<u64> {
    tutti_units::OpRate::parse(text).or_raise().map(tutti_units::OpRate::operations)
}

/// Operations per second in a fitting unit, without loss.
#[pyfunction]
pub(crate) fn format_op_rate(per_second: u64) -> String {
    tutti_units::OpRate::per_second(per_second).to_string()
}

/// Cycles per second of a frequency such as "1245 MHz".
#[pyfunction]
pub(crate) fn parse_frequency(text: &str) -> PyResult<u64> {
    tutti_units::Frequency::parse(text).or_raise().map(tutti_units::Frequency::hertz)
}

/// Cycles per second in a fitting unit, without loss.
#[pyfunction]
pub(crate) fn format_frequency(hertz: u64) -> String {
    tutti_units::Frequency::per_second(hertz).to_string()
}

/// Picoseconds that so many cycles take, rounded up.
#[pyfunction]
pub(crate) fn time_of_cycles(hertz: u64, count: u64) -> u64 {
    tutti_units::Frequency::per_second(hertz).of(count).ps()
}

/// Time per byte as an exact fraction; written "0.4 ns/B", or as the rate that is its inverse, "68
/// GB/s".
#[pyclass(frozen, eq, hash, from_py_object, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TimePerByte(pub(crate) tutti_units::TimePerByte);

#[pymethods]
impl TimePerByte {
    #[new]
    fn new(text: &str) -> PyResult<TimePerByte> {
        tutti_units::TimePerByte::parse(text).or_raise().map(TimePerByte)
    }

    /// Picoseconds that `size` bytes take, rounded up.
    fn of(&self, size: u64) -> u64 {
        self.0.of(tutti_units::Bytes(size)).ps()
    }

    /// The inverse, for display only; infinite for no time at all.
    #[getter]
    fn bytes_per_second(&self) -> f64 {
        self.0.bytes_per_second()
    }

    /// As text that reads back as the same fraction; None where no finite decimal does.
    #[getter]
    fn exact_text(&self) -> Option<String> {
        self.0.exact_text()
    }

    /// Picoseconds per byte, for display and for closed forms in real numbers.
    #[getter]
    fn ps_per_byte(&self) -> f64 {
        self.0.ps_per_byte()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("TimePerByte('{}')", self.0)
    }
}
