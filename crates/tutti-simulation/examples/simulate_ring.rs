//! Simulates a ring all_reduce on a torus of 4x4 NPUs, whose messages share links, and prints its
//! time and the lower bound of any algorithm.
//!
//! `cargo run -p tutti-simulation --example simulate_ring`

use std::error::Error;
use std::sync::Arc;

use tutti_simulation::engine::LocalCosts;
use tutti_simulation::network::{self, flow::FlowLevel};
use tutti_simulation::schedule::collective::Collective;
use tutti_simulation::topology::{self, LinkParameters, Routes};
use tutti_simulation::units::{Bytes, Time, TimePerByte};
use tutti_simulation::{Case, Contention, Payload, Platform, Routing};

/// Returns the completion time and the lower bound of an all_reduce of 1 MiB.
pub(crate) fn simulate() -> Result<(Time, Time), Box<dyn Error>> {
    let link = LinkParameters {
        rate: TimePerByte::parse("50 GB/s")?,
        latency: Time::parse("500 ns")?,
        length: None,
    };
    let torus = Arc::new(topology::build("torus:4x4", &[link])?);
    let routing = Routing::fixed(Routes::dimension_order(torus)?);
    let model = network::build(
        "loggp",
        &[("L", "1 us"), ("o", "200 ns"), ("g", "200 ns"), ("G", "100 GB/s")],
    )?;
    let costs = LocalCosts::from_texts([("gamma", "200 GB/s")])?.checked()?;
    let contention = Contention::Flow(FlowLevel::from_texts([])?);
    let platform = Platform::new(model, costs, Some(routing), contention)?;

    let payload = Payload { size: Bytes::parse("1 MiB")?, element: 4 };
    let case = Case::of_algorithm("ring", Collective::AllReduce, 16, Arc::new(platform), payload)?;
    Ok((case.run()?.completion_time(), case.bound().at_least()))
}

#[expect(clippy::print_stdout, reason = "the purpose of the program")]
fn main() -> Result<(), Box<dyn Error>> {
    let (time, bound) = simulate()?;
    println!("time: {time} ({} ps)", time.ps());
    println!("lower bound: {bound} ({} ps)", bound.ps());
    Ok(())
}
