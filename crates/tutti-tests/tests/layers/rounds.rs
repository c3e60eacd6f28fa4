//! How many rounds of messages an algorithm needs: its time where a message takes one unit and nothing
//! else takes any.

use tutti_engine::{Conditions, LocalCosts, Simulation};
use tutti_network::PipeliningPostal;
use tutti_schedule::Layout;
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time, TimePerByte};

fn rounds(name: &str, ranks: u32) -> u64 {
    let schedule = build(name, Collective::AllReduce, ranks).unwrap();
    let round = Time::from_ps(1000);
    let model = PipeliningPostal { alpha_p: round, alpha_r: Time::ZERO, beta: TimePerByte::ZERO }
        .checked()
        .unwrap();
    let simulation = Simulation {
        schedule: &*schedule,
        layout: Layout::new(Bytes(8), 8, 1).unwrap(),
        model: &model,
        costs: LocalCosts::FREE,
        conditions: Conditions::default(),
    };
    simulation.run().unwrap().completion_time().ps() / round.ps()
}

/// Derivation: the documentation of the module. With r ranks more than a power of two 2^f, the
/// non-overlapping protocol needs the least there can be, ceil(log2 N), when r is at most 2^(f-1).
#[test]
fn elimination_needs_at_most_one_round_over_the_least() {
    for ranks in 2..=300_u32 {
        let least = u64::from(ranks.next_power_of_two().ilog2());
        for name in ["elimination", "elimination:3-2_overlapping", "elimination:2-1"] {
            assert!(rounds(name, ranks) <= least + 1, "{name}, {ranks} ranks");
        }
        let power = 1 << ranks.ilog2();
        let expected = if 2 * (ranks - power) <= power { least } else { least + 1 };
        assert_eq!(rounds("elimination", ranks), expected, "{ranks} ranks");
    }
}

#[test]
fn merging_seven_ranks_takes_two_rounds_and_splitting_them_four() {
    assert_eq!(rounds("recursive_multiplying:m1g2a3,n1g3a2", 7), 2);
    assert_eq!(rounds("recursive_multiplying:m3g2a2,n3g2a2", 7), 2);
    assert_eq!(rounds("recursive_multiplying:c6m2,a2,a2,e6m2", 7), 4);
    assert_eq!(rounds("recursive_doubling", 7), 4);
}
