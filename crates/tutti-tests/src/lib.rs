//! What several tests share: one model of each kind, and a disturbance that shakes everything.
#![expect(missing_docs, reason = "names say what tests need to know")]

pub mod packets;

use tutti_engine::Disturbance;
use tutti_network::Model;
use tutti_units::Time;
use tutti_units::ids::RankId;

/// A model and its parameters, as in a configuration file.
pub type Parameters = (&'static str, &'static [(&'static str, &'static str)]);

/// One of each kind, with odd numbers, so that a term left out is seen.
pub const MODELS: &[Parameters] = &[
    ("postal", &[("alpha", "1.31 us"), ("beta", "0.37 ns/B")]),
    ("pipelining_postal", &[("alpha_p", "1.34 us"), ("alpha_r", "0.34 us"), ("beta", "0.1 ns/B")]),
    ("logp", &[("L", "2.5 us"), ("o", "1.5 us"), ("g", "1.9 us")]),
    (
        "lop",
        &[
            ("L", "2.1 us"),
            ("o_first", "0.9 us"),
            ("o_next", "0.3 us"),
            ("processing", "0.25 us"),
            ("saturation", "0.13 us"),
            ("knee", "2"),
        ],
    ),
    ("logfp", &[("L", "2.5 us"), ("o", "0.3 us"), ("g", "1.7 us"), ("f", "3")]),
    ("loggp", &[("L", "2.5 us"), ("o", "0.7 us"), ("g", "1.1 us"), ("G", "6 ns/B")]),
    (
        "protocols",
        &[
            ("eager_limit", "1000 B"),
            ("alpha_p", "1.34 us"),
            ("alpha_r", "0.34 us"),
            ("beta", "0.17 ns/B"),
            ("alpha_p_rendezvous", "2.9 us"),
            ("alpha_r_rendezvous", "0.51 us"),
            ("beta_rendezvous", "0.07 ns/B"),
            ("beta_long", "0.13 ns/B"),
            ("long_from", "20 KB"),
        ],
    ),
];

/// The model that `parameters` describe.
pub fn model((name, given): &Parameters) -> Model {
    tutti_network::build(name, given).unwrap_or_else(|error| panic!("{error}"))
}

/// Skew, noise on steps and messages, and slow ranks, all drawn from a seed.
pub struct Shaken {
    pub seed: u64,
}

/// The same but for noise on messages.
pub struct Staggered(pub Shaken);

impl Disturbance for Staggered {
    fn start(&self, rank: RankId) -> Time {
        self.0.start(rank)
    }

    fn before_step(&self, rank: RankId, step: u32) -> Time {
        self.0.before_step(rank, step)
    }

    fn on_message(&self, _: RankId, _: u32, _: u32) -> Time {
        Time::ZERO
    }

    fn local(&self, rank: RankId, nominal: Time) -> Time {
        self.0.local(rank, nominal)
    }

    fn delays_messages(&self) -> bool {
        false
    }
}

impl Shaken {
    pub fn draw(&self, parts: [u32; 4], below: u64) -> Time {
        let mut state = self.seed;
        for part in parts {
            state = (state ^ u64::from(part)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            state ^= state >> 29;
        }
        Time::from_ps(state % below)
    }
}

impl Disturbance for Shaken {
    fn start(&self, rank: RankId) -> Time {
        self.draw([0, rank.0, 0, 0], 5_000_000)
    }

    fn before_step(&self, rank: RankId, step: u32) -> Time {
        self.draw([1, rank.0, step, 0], 700_000)
    }

    fn on_message(&self, rank: RankId, step: u32, index: u32) -> Time {
        self.draw([2, rank.0, step, index], 9_000_000)
    }

    fn local(&self, rank: RankId, nominal: Time) -> Time {
        nominal.times(1 + u64::from(rank.0 % 3))
    }
}
