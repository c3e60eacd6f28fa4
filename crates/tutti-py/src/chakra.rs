//! The nodes of Chakra files as columns.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tutti_engine::trace::chakra;

/// The nodes of a Chakra file. Columns are little-endian bytes.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct ChakraNodes {
    metadata: Py<PyBytes>,
    ids: Py<PyBytes>,
    types: Py<PyBytes>,
    names: Py<PyBytes>,
    starts: Py<PyBytes>,
    durations: Py<PyBytes>,
    data: Py<PyBytes>,
    ends: Py<PyBytes>,
    parents: Py<PyBytes>,
    attribute_nodes: Py<PyBytes>,
    attributes: Py<PyBytes>,
    distinct_names: Vec<String>,
    distinct_attributes: Vec<Py<PyBytes>>,
    dropped: Vec<Py<PyBytes>>,
    inputs: Vec<(u32, Py<PyBytes>)>,
    tensors: u64,
}

macro_rules! column {
    ($py:ident, $values:expr) => {{
        let bytes: Vec<u8> = $values.iter().flat_map(|value| value.to_le_bytes()).collect();
        PyBytes::new($py, &bytes).unbind()
    }};
}

/// Reads the nodes of a Chakra file, given its bytes, the names of known attributes, and the number
/// of the type METADATA. Returns None for a file that it does not accept.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub(crate) fn read_chakra(
    py: Python<'_>,
    stream: &[u8],
    known: Vec<String>,
    metadata: i64,
) -> Option<ChakraNodes> {
    let nodes = py.detach(|| chakra::read(stream, &known, metadata))?;
    let raw = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
    Some(ChakraNodes {
        metadata: raw(nodes.metadata),
        ids: column!(py, nodes.ids),
        types: column!(py, nodes.types),
        names: column!(py, nodes.names),
        starts: column!(py, nodes.starts),
        durations: column!(py, nodes.durations),
        data: column!(py, nodes.data),
        ends: column!(py, nodes.ends),
        parents: column!(py, nodes.parents),
        attribute_nodes: column!(py, nodes.attribute_nodes),
        attributes: column!(py, nodes.attributes),
        distinct_names: nodes.distinct_names.iter().map(ToString::to_string).collect(),
        distinct_attributes: nodes.distinct_attributes.into_iter().map(raw).collect(),
        dropped: nodes.dropped.into_iter().map(raw).collect(),
        inputs: nodes.inputs.into_iter().map(|(node, bytes)| (node, raw(bytes))).collect(),
        tensors: nodes.tensors,
    })
}
