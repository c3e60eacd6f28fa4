//! Routing of tokens to experts.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tutti_engine::workload::{Limit, Router};
use tutti_units::random::Pcg64;

use crate::errors::refuse;
use crate::threads::watched;

/// Samples the experts of each token of each rank, as 32-bit integers: `top_k` per token, `tokens`
/// tokens per rank. A limit has the part of each expert and the number of parts that a token
/// selects; `states` has the state and the increment of each rank's generator.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
pub(crate) fn sample_experts<'py>(
    py: Python<'py>,
    shares: Vec<f64>,
    tokens: usize,
    top_k: usize,
    limits: Vec<(Vec<usize>, usize)>,
    states: Vec<(u128, u128)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let refused = |message: &str| refuse("WorkloadError", "experts", message);
    if limits.iter().any(|(part_of, _)| part_of.len() != shares.len()) {
        return Err(refused("layer of experts: expected a share and a part of each expert"));
    }
    let limits = limits.iter().map(|(part_of, most)| Limit::new(part_of, *most)).collect();
    let router = Router::new(&shares, top_k, limits);
    let sampled = watched(py, |stop| {
        let mut chosen = Vec::with_capacity(states.len() * tokens * top_k);
        let mut route = |&(state, increment): &(u128, u128)| {
            router.route(tokens, Pcg64::new(state, increment), stop, &mut chosen)
        };
        states.iter().all(&mut route).then_some(chosen)
    })?;
    let Some(chosen) = sampled else {
        let message = format!(
            "layer of experts: the selected groups and nodes of a token have fewer experts than \
             top_k = {top_k}"
        );
        return Err(refused(&message));
    };
    PyBytes::new_with(py, size_of_val(chosen.as_slice()), |bytes| {
        for (to, from) in bytes.chunks_exact_mut(size_of::<u32>()).zip(&chosen) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        Ok(())
    })
}
