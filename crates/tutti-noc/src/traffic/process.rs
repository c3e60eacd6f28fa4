//! Injection processes: when packets are generated.

use super::TrafficError;

/// By how much a parameter that follows from others may be above 1.
const ROUNDING: f64 = 1e-9;

/// When a node generates packets, independently of other nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Process {
    /// In every cycle with the same probability.
    Bernoulli {
        /// Packets per cycle.
        rate: f64,
    },
    /// In bursts. At the start of every cycle a node that is off turns on with chance `alpha` and
    /// one that is on turns off with chance `beta`; while it is on, every cycle has a packet with
    /// chance `r1`. Before the first cycle a node is on or off, each as likely.
    OnOff {
        /// The chance to turn on.
        alpha: f64,
        /// The chance to turn off.
        beta: f64,
        /// Packets per cycle while on.
        r1: f64,
    },
    /// At a fixed period.
    Periodic {
        /// Packets per cycle.
        rate: f64,
        /// Whether all nodes do so at the same time; else each starts with a random offset.
        aligned: bool,
    },
}

impl Process {
    /// A packet in each cycle with chance `rate`.
    ///
    /// # Errors
    /// When the rate is not from 0 to 1.
    pub fn bernoulli(rate: f64) -> Result<Process, TrafficError> {
        Ok(Process::Bernoulli { rate: chance("a rate", rate)? })
    }

    /// A packet every 1 / `rate` cycles.
    ///
    /// # Errors
    /// When the rate is not from 0 to 1.
    pub fn periodic(rate: f64, aligned: bool) -> Result<Process, TrafficError> {
        Ok(Process::Periodic { rate: chance("a rate", rate)?, aligned })
    }

    /// Bursts that make `rate` packets per cycle in the long run, rate = r1 x alpha / (alpha +
    /// beta): two of the three parameters are given, the third follows.
    ///
    /// # Errors
    /// When not two of them are given, one is not from 0 to 1, or the third would not be.
    pub fn on_off(
        rate: f64,
        alpha: Option<f64>,
        beta: Option<f64>,
        r1: Option<f64>,
    ) -> Result<Process, TrafficError> {
        let rate = chance("a rate", rate)?;
        let given = [("alpha", alpha), ("beta", beta), ("r1", r1)];
        for (name, value) in given {
            value.map_or(Ok(0.0), |value| chance(name, value))?;
        }
        let within = |name, value: f64| {
            if (0.0..=1.0 + ROUNDING).contains(&value) {
                return Ok(value.min(1.0));
            }
            let (rate, value) = (rate.to_string(), value.to_string());
            Err(TrafficError::OutOfReach { rate, name, value })
        };
        let (alpha, beta, r1) = match (alpha, beta, r1) {
            (None, Some(beta), Some(r1)) => (within("alpha", beta * rate / (r1 - rate))?, beta, r1),
            (Some(alpha), None, Some(r1)) => {
                (alpha, within("beta", alpha * (r1 - rate) / rate)?, r1)
            }
            (Some(alpha), Some(beta), None) => {
                (alpha, beta, within("r1", rate * (alpha + beta) / alpha)?)
            }
            _ => {
                let given = given.iter().filter(|(_, value)| value.is_some()).count();
                return Err(TrafficError::Bursts { given });
            }
        };
        if alpha + beta <= 0.0 {
            return Err(TrafficError::Stuck);
        }
        Ok(Process::OnOff { alpha, beta, r1 })
    }

    /// A process of that rate in packets per cycle from its notation: `bernoulli`, `periodic`,
    /// `periodic:aligned`, or `on_off:` with two of `alpha=`, `beta=` and `r1=`.
    ///
    /// # Errors
    /// When the process is unknown, or cannot have that rate.
    pub fn parse(text: &str, rate: f64) -> Result<Process, TrafficError> {
        let text = text.trim();
        match text.split_once(':') {
            None if text == "bernoulli" => Process::bernoulli(rate),
            None if text == "periodic" => Process::periodic(rate, false),
            None if text == "on_off" => Err(TrafficError::Bursts { given: 0 }),
            Some(("periodic", "aligned")) => Process::periodic(rate, true),
            Some(("on_off", arguments)) => bursts(text, arguments, rate),
            _ => Err(TrafficError::UnknownProcess { text: text.to_owned() }),
        }
    }

    /// Packets per cycle in the long run.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match *self {
            Process::Bernoulli { rate } | Process::Periodic { rate, .. } => rate,
            Process::OnOff { alpha, beta, r1 } => r1 * alpha / (alpha + beta),
        }
    }
}

fn bursts(text: &str, arguments: &str, rate: f64) -> Result<Process, TrafficError> {
    let malformed = || TrafficError::Malformed {
        text: text.to_owned(),
        expected: "two of alpha, beta and r1, such as `on_off:alpha=0.1,r1=0.5`".to_owned(),
    };
    let [mut alpha, mut beta, mut r1] = [None; 3];
    for argument in arguments.split(',') {
        let (name, value) = argument.split_once('=').ok_or_else(malformed)?;
        let parameter = match name.trim() {
            "alpha" => &mut alpha,
            "beta" => &mut beta,
            "r1" => &mut r1,
            _ => return Err(malformed()),
        };
        let value: f64 = value.trim().parse().map_err(|_| malformed())?;
        if parameter.replace(value).is_some() {
            return Err(malformed());
        }
    }
    Process::on_off(rate, alpha, beta, r1)
}

fn chance(what: &'static str, value: f64) -> Result<f64, TrafficError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(TrafficError::Chance { what, value: value.to_string() })
}
