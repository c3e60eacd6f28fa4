//! How long the verifier takes, as a table: `cargo bench --bench verify [NOTATION COLLECTIVE RANKS]`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark looks at the clock"
)]

use std::time::Instant;

use tutti_core::algorithm::{REGISTRY, build};
use tutti_core::collective::Collective;
use tutti_core::ids::RankId;
use tutti_core::schedule::verify;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    println!("{:<44} {:>14} {:>9} {:>14}", "verifier", "messages", "seconds", "messages/s");
    if let [notation, collective, ranks] = &arguments[..] {
        let ranks = ranks.parse().expect("the number of ranks");
        let collective = Collective::from_name(collective, RankId(0)).expect("a collective");
        return one(notation, collective, ranks);
    }
    everything_up_to(128);
    for (notation, ranks) in [("ring", 4096), ("direct", 4096)] {
        one(notation, Collective::AllReduce, ranks);
    }
}

fn one(notation: &str, collective: Collective, ranks: u32) {
    let schedule = build(notation, collective, ranks).expect("it can be laid out");
    let start = Instant::now();
    let proof = verify(schedule.as_ref()).expect("it is right");
    line(&format!("{notation} {collective}, {ranks} ranks"), proof.messages, start);
}

fn everything_up_to(most: u32) {
    let (start, mut messages) = (Instant::now(), 0);
    for entry in REGISTRY {
        for collective in Collective::ALL {
            for schedule in (2..=most).filter_map(|n| build(entry.name, collective, n).ok()) {
                messages += verify(schedule.as_ref()).expect("it is right").messages;
            }
        }
    }
    line(&format!("every algorithm, 2 to {most} ranks"), messages, start);
}

#[expect(clippy::cast_precision_loss, reason = "shown to people")]
fn line(what: &str, messages: u64, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{what:<44} {messages:>14} {seconds:>9.2} {:>14.0}", messages as f64 / seconds);
}
