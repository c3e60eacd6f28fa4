//! The routes of messages on the network of a run, and whether all NPUs use the same.

use std::sync::Arc;

use super::group::Groups;
use super::network::StepNetwork;
use super::transfers::{Plan, Plans};
use super::{Population, TrainingFabric, TrainingRunError};
use crate::dataflow::{Dataflow, Outgoing};
use crate::workload::Transfer;

/// The links of each send, if all NPUs use the same.
pub(super) fn routes(
    fabric: &TrainingFabric,
    groups: &Groups,
    flow: &Dataflow,
) -> Result<Option<Arc<Vec<Vec<u16>>>>, TrainingRunError> {
    let same = flow.symmetry.as_ref().filter(|digits| groups.are_along(digits));
    match (&fabric.network, fabric.population) {
        (StepNetwork::Torus(_), Population::One) if same.is_none() => {
            Err(TrainingRunError::NotSymmetric)
        }
        (StepNetwork::Torus(torus), _) if same.is_some() => {
            let route = |send: &Outgoing| {
                let offset = groups.npu_offset(send.peer.0);
                match &torus.route(offset)[..] {
                    [_] => vec![torus.first_link(0, offset, send.channel)],
                    route => route.to_vec(),
                }
            };
            Ok(Some(Arc::new(flow.messages(0).sends.iter().map(route).collect())))
        }
        (StepNetwork::Torus(_), _) | (_, Population::All) => {
            check_paths(&fabric.network, groups, flow).map(|()| None)
        }
        (_, Population::One) => Err(TrainingRunError::NotSymmetric),
    }
}

impl TrainingFabric {
    /// Whether all NPUs do the same in these collectives, so that one of them can represent all.
    ///
    /// # Errors
    /// When a collective has no schedule for its groups.
    pub fn acts_alike(&self, transfers: &[Transfer]) -> Result<bool, TrainingRunError> {
        if !matches!(self.network, StepNetwork::Torus(_)) {
            return Ok(false);
        }
        let mut plans = Plans::default();
        let along = |plan: &Plan, flow: &Dataflow| {
            flow.symmetry.as_ref().is_some_and(|digits| plan.groups.are_along(digits))
        };
        for &transfer in transfers {
            let plan = plans.of(self, transfer)?;
            if !plan.flows.iter().all(|flow| along(&plan, flow)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The links of a message on a torus.
pub(super) fn hop_routes(
    fabric: &TrainingFabric,
    groups: &Groups,
    ahead: u32,
) -> Result<Option<Arc<Vec<Vec<u16>>>>, TrainingRunError> {
    let StepNetwork::Torus(torus) = &fabric.network else {
        for from in 0..fabric.network.npus() {
            fabric.network.check_path(from, groups.ahead(from, ahead))?;
        }
        return Ok(None);
    };
    // A message to a rank ahead passes the same links from every NPU, but where ranks wrap around
    // over several dimensions.
    let route = |from| torus.route(torus.offset(from, groups.ahead(from, ahead)));
    let first = route(0);
    let is_same = (1..fabric.network.npus()).all(|from| route(from) == first);
    Ok(is_same.then(|| Arc::new(vec![first])))
}

/// Checks that every message has a path.
pub(super) fn check_paths(
    network: &StepNetwork,
    groups: &Groups,
    flow: &Dataflow,
) -> Result<(), TrainingRunError> {
    for from in 0..network.npus() {
        let rank = groups.rank(from);
        for send in &flow.messages(rank).sends {
            let to = groups.member(from, flow.peer(rank, send.peer));
            network.check_path(from, to)?;
        }
    }
    Ok(())
}
