//! LogGOPSim's finishing times, in `validation/loggopsim`, against the engine and the closed forms.

use std::path::Path;

use tutti_analysis::closed_form;
use tutti_engine::{Conditions, LocalCosts, Simulation};
use tutti_network::Model;
use tutti_schedule::Layout;
use tutti_schedule::algorithm;
use tutti_schedule::collective::Collective;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

struct Row {
    line: String,
    ranks: u32,
    size: Bytes,
    collective: Collective,
    notation: String,
    finish: Time,
}

fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation/loggopsim");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The value of a `key = "value"` or `key = number` line.
fn value(case: &str, key: &str) -> String {
    let lines = case.lines().filter_map(|line| line.split_once(" = "));
    let found = lines.filter(|(known, _)| *known == key).map(|(_, value)| value).next();
    found.unwrap_or_else(|| panic!("case.toml has no {key}")).trim_matches('"').to_owned()
}

fn the_model() -> Model {
    let case = file("case.toml");
    let values = ["L", "o", "g", "G"].map(|key| (key, value(&case, key)));
    let given: Vec<_> = values.iter().map(|(key, text)| (*key, text.as_str())).collect();
    tutti_network::build("loggp", &given).unwrap()
}

fn rows() -> Vec<Row> {
    let read = |line: &str| {
        let [_, ranks, size, collective, algorithm, finish]: [&str; 6] =
            line.split(',').collect::<Vec<_>>().try_into().unwrap();
        let ranks: u32 = ranks.parse().unwrap();
        let doubling = vec!["a2"; ranks.ilog2() as usize].join(",");
        Row {
            line: line.to_owned(),
            ranks,
            size: Bytes(size.parse().unwrap()),
            collective: Collective::from_name(collective, RankId(0)).unwrap(),
            notation: match algorithm {
                "recursive_doubling" => format!("recursive_multiplying:{doubling}"),
                other => other.to_owned(),
            },
            finish: Time::from_ps(finish.parse::<u64>().unwrap() * 1000),
        }
    };
    file("measured.csv").lines().skip(1).map(read).collect()
}

/// Within the case's tolerance, below and above.
fn assert_within(found: Time, row: &Row, by: &str) {
    let case = file("case.toml");
    let allowed = |key| row.finish.ps() / 1_000_000 * value(&case, key).parse::<u64>().unwrap();
    let (least, most) =
        (row.finish.ps() - allowed("below_ppm"), row.finish.ps() + allowed("above_ppm"));
    assert!((least..=most).contains(&found.ps()), "{by} takes {found}: {}", row.line);
}

#[test]
fn the_closed_form_takes_what_loggopsim_takes() {
    for row in rows() {
        let stages = algorithm::critical_path(&row.notation, row.collective, row.ranks);
        let stages = stages.unwrap().unwrap();
        let free = |_, _| Time::ZERO;
        let time = closed_form::time(&the_model(), &stages, row.size, 8, free).unwrap();
        assert_within(time, &row, "the closed form");
    }
}

#[test]
fn the_engine_takes_what_loggopsim_takes() {
    let model = the_model();
    for row in rows() {
        let schedule = algorithm::build(&row.notation, row.collective, row.ranks).unwrap();
        let layout = Layout::of(schedule.shape(), row.size, 8).unwrap();
        let run = Simulation {
            schedule: &*schedule,
            layout,
            model: &model,
            costs: LocalCosts::FREE,
            conditions: Conditions::default(),
        };
        assert_within(run.run().unwrap().completion_time(), &row, "the engine");
    }
}

#[test]
fn a_round_of_doubling_is_two_overheads_the_latency_and_seven_gaps() {
    // 55,420 ns / 10 rounds = 5,542 ns = 2 x 1500 + 2500 + 7 x 6.
    let round = closed_form::stage_time(&the_model(), 1, 1, Bytes(8));
    assert_eq!(round, Time::from_ps(5_542_000));
    assert_eq!(rows()[0].finish, round.times(10));
}
