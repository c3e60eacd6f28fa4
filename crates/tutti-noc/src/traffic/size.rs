//! Sizes of packets.

use super::TrafficError;
use super::draw::{Stream, Weighted, bits};

/// The number of flits of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketSize {
    sizes: Weighted,
    /// The size, where there is only one.
    fixed: Option<u32>,
}

impl PacketSize {
    /// All packets have the same size.
    ///
    /// # Errors
    /// When it is zero.
    pub fn fixed(flits: u32) -> Result<PacketSize, TrafficError> {
        PacketSize::weighted(&[flits], &[1])
    }

    /// Each packet has one of these sizes, as likely as its weight among all.
    ///
    /// # Errors
    /// When a size or every weight is zero, or there are not as many weights as sizes.
    pub fn weighted(sizes: &[u32], weights: &[u32]) -> Result<PacketSize, TrafficError> {
        let list =
            |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        PacketSize::new(&format!("{}/{}", list(sizes), list(weights)), sizes, weights)
    }

    /// From `4`, `1,5` (each as likely) or `1,5/3,1` (sizes, then weights).
    ///
    /// # Errors
    /// When it cannot be read, or as [`PacketSize::weighted`].
    pub fn parse(text: &str) -> Result<PacketSize, TrafficError> {
        let malformed = |_| TrafficError::Malformed {
            text: text.to_owned(),
            expected: "sizes in flits, such as `4` or `1,5`, or with weights, `1,5/3,1`".to_owned(),
        };
        let list = |list: &str| {
            list.split(',').map(|n| n.trim().parse().map_err(malformed)).collect::<Result<_, _>>()
        };
        let (sizes, weights): (Vec<u32>, Vec<u32>) = match text.split_once('/') {
            Some((sizes, weights)) => (list(sizes)?, list(weights)?),
            None => {
                let sizes: Vec<u32> = list(text)?;
                let weights = vec![1; sizes.len()];
                (sizes, weights)
            }
        };
        PacketSize::new(text, &sizes, &weights)
    }

    fn new(text: &str, sizes: &[u32], weights: &[u32]) -> Result<PacketSize, TrafficError> {
        if sizes.len() != weights.len() {
            return Err(TrafficError::Count {
                pattern: text.to_owned(),
                what: "weights",
                given: weights.len(),
                expected: u32::try_from(sizes.len()).unwrap_or(u32::MAX),
            });
        }
        if sizes.contains(&0) {
            return Err(TrafficError::NoFlits { text: text.to_owned() });
        }
        let no_weight = || TrafficError::NoWeight { text: text.to_owned() };
        let fixed = match sizes {
            [one] => Some(*one),
            _ => None,
        };
        let sizes = Weighted::new(sizes.to_vec(), weights).ok_or_else(no_weight)?;
        Ok(PacketSize { sizes, fixed })
    }

    /// The flits of the packet of that number from `source`.
    #[inline]
    #[must_use]
    pub fn draw(&self, seed: u64, source: u32, serial: u64) -> u32 {
        match self.fixed {
            Some(flits) => flits,
            None => self.sizes.draw(bits(seed, Stream::Size, source, serial)),
        }
    }

    /// Flits per packet on average: a rate in flits divided by it is one in packets.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sizes.mean()
    }

    /// The largest size.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.sizes.largest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_by_weight() {
        let sizes = PacketSize::weighted(&[1, 5, 9], &[3, 1, 0]).unwrap();
        let drawn: Vec<_> = (0..8000).map(|serial| sizes.draw(1, 3, serial)).collect();
        // Of 8000, 2000 +- 38.7 (binomial); bound at five sigma.
        let long = drawn.iter().filter(|&&flits| flits == 5).count();
        assert!(long.abs_diff(2000) < 194, "{long}");
        assert!(drawn.iter().all(|flits| [1, 5].contains(flits)));
        assert!((sizes.mean() - 2.0).abs() < 1e-12);
        assert_eq!(sizes.largest(), 5, "9 is never drawn");
    }

    #[test]
    fn sizes_are_read_with_and_without_weights() {
        assert_eq!(PacketSize::parse("4"), PacketSize::fixed(4));
        assert_eq!(PacketSize::parse("4").unwrap().draw(0, 0, 0), 4);
        assert_eq!(PacketSize::parse("1, 5"), PacketSize::weighted(&[1, 5], &[1, 1]));
        assert_eq!(PacketSize::parse("1,5/3,1"), PacketSize::weighted(&[1, 5], &[3, 1]));
    }

    #[test]
    fn invalid_sizes_are_rejected() {
        let message = |text| PacketSize::parse(text).unwrap_err().to_string();
        for text in ["", "x", "1,", "1/", "-4", "1.5"] {
            let form = "expected sizes in flits, such as `4` or `1,5`, or with weights, `1,5/3,1`";
            assert_eq!(message(text), format!("`{text}` cannot be read: {form}"));
        }
        assert_eq!(message("2,0"), "`2,0` has a packet of 0 flits: expected at least one");
        assert_eq!(message("2,3/1"), "`2,3/1` gives 1 weights: expected 2");
        assert_eq!(
            message("2,3/0,0"),
            "`2,3/0,0` gives every weight as 0: expected at least one above"
        );
        assert!(PacketSize::fixed(0).is_err() && PacketSize::weighted(&[], &[]).is_err());
    }
}
