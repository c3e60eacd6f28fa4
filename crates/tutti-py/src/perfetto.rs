//! Native Perfetto traces.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tutti_engine::perfetto::{self, Arrow, Bar, Events, Kind, Place, Track, Value};

/// Returns the trace of a run.
///
/// `bars` has the columns rank, channel, step, name, kind, start_ps, end_ps, peer and bytes of its ops,
/// by rank, channel and time; name and kind are indices of `texts`. `arrows` has the columns source,
/// destination, channel, index, bytes, sent_ps, arrival_ps and received_ps of its messages, by sent_ps.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub(crate) fn run_trace<'py>(
    py: Python<'py>,
    bars: [Vec<Option<i64>>; 9],
    texts: Vec<String>,
    arrows: [Vec<i64>; 8],
) -> PyResult<Bound<'py, PyBytes>> {
    let wrong = || PyValueError::new_err("expected columns of equal lengths, and known texts");
    let trace = py.detach(|| {
        let bars: Option<Vec<_>> = (0..bars[0].len()).map(|at| bar(&bars, at, &texts)).collect();
        let arrows: Option<Vec<_>> = (0..arrows[0].len()).map(|at| arrow(&arrows, at)).collect();
        Some(perfetto::run_trace(&bars?, &texts, &arrows?))
    });
    trace.map(|trace| PyBytes::new(py, &trace)).ok_or_else(wrong)
}

/// The op of a row; None without a value that it requires, or with an unknown text.
fn bar(columns: &[Vec<Option<i64>>; 9], at: usize, texts: &[String]) -> Option<Bar> {
    let [rank, channel, step, name, kind, start, end, peer, bytes] =
        std::array::from_fn(|column| columns[column].get(at).copied().flatten());
    let text = |value: i64| usize::try_from(value).ok().filter(|&index| index < texts.len());
    let (name, kind) = (text(name?)?, text(kind?)?);
    let (rank, channel, step) = (rank?, channel?, step?);
    Some(Bar { rank, channel, step, name, kind, start: start?, end: end?, peer, bytes })
}

/// The message of a row.
fn arrow(columns: &[Vec<i64>; 8], at: usize) -> Option<Arrow> {
    let [source, destination, channel, index, bytes, sent, arrival, received] =
        std::array::from_fn(|column| columns[column].get(at).copied());
    let (source, destination, channel) = (source?, destination?, channel?);
    let (index, bytes, received) = (index?, bytes?, received?);
    let (sent, arrival) = (sent?, arrival?);
    Some(Arrow { source, destination, channel, index, bytes, sent, arrival, received })
}

/// The value of an argument.
#[derive(FromPyObject)]
pub(crate) enum Argument {
    Integer(i64),
    Text(String),
}

/// The time in ps, track, type, category, name and arguments of an event.
type Event = (i64, u64, u8, String, String, Vec<(String, Argument)>);

/// Returns a trace of events, given tracks (number, name, parent, order), parents before their
/// children, and events (time in ps, track, type, category, name, arguments). The types are 1 for the
/// start of a slice, 2 for the end, and 3 for an instant.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub(crate) fn track_events<'py>(
    py: Python<'py>,
    tracks: Vec<(u64, String, Option<u64>, i64)>,
    events: Vec<Event>,
) -> PyResult<Bound<'py, PyBytes>> {
    let track = |(uuid, name, parent, order)| Track { uuid, name, parent, order };
    let tracks: Vec<_> = tracks.into_iter().map(track).collect();
    let mut written = Events::default();
    for (at_ps, track, kind, category, name, arguments) in &events {
        let kind = match kind {
            1 => Kind::Start,
            2 => Kind::End,
            3 => Kind::Instant,
            _ => return Err(PyValueError::new_err("expected the types 1 to 3")),
        };
        let arguments = arguments.iter().map(|(key, value)| match value {
            Argument::Integer(value) => (key.as_str(), Value::Integer(*value)),
            Argument::Text(text) => (key.as_str(), Value::Text(text)),
        });
        written.add(Place { at_ps: *at_ps, track: *track, kind }, (category, name), arguments);
    }
    Ok(PyBytes::new(py, &written.trace(&tracks)))
}
