//! Systolic arrays: cycles of a matrix product by dataflow, as SCALE-Sim counts them.
//!
//! A product of M x K by K x N runs in folds: tiles of the size of the array. Within a fold
//! operands enter skewed by one cycle per row or column, so a fold takes the length of its stream
//! plus rows and columns of the array. Folds run sequentially (Samajdar et al. 2020, section III;
//! the cycle counts are those of its public simulator, version 2).

use std::num::NonZeroU64;

/// The dataflow: the operand that stays in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dataflow {
    /// Output-stationary: each processing element holds one output.
    OutputStationary,
    /// Weight-stationary.
    WeightStationary,
    /// Input-stationary.
    InputStationary,
}

/// A matrix product: outputs by filters over a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Rows of the result: output pixels times samples.
    pub m: u64,
    /// Columns of the result: filters.
    pub n: u64,
    /// Terms of each sum: channels times filter pixels.
    pub k: u64,
}

impl Gemm {
    /// Multiply-accumulates.
    #[must_use]
    pub fn macs(self) -> u64 {
        self.m * self.n * self.k
    }
}

/// An array of processing elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystolicArray {
    rows: u64,
    columns: u64,
}

/// Why a systolic array is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "WorkloadError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum SystolicError {
    /// No processing element.
    #[error(
        "a systolic array of {rows} x {columns} has no processing elements: expected at least 1 x 1"
    )]
    #[refusal(kind = "empty_array")]
    Empty { rows: u64, columns: u64 },
    /// No array.
    #[error("the NPU has 0 systolic arrays: expected at least 1")]
    NoArrays,
}

impl SystolicArray {
    /// An array of `rows` x `columns`.
    ///
    /// # Errors
    /// When it would be empty.
    pub fn new(rows: u64, columns: u64) -> Result<SystolicArray, SystolicError> {
        if rows == 0 || columns == 0 {
            return Err(SystolicError::Empty { rows, columns });
        }
        Ok(SystolicArray { rows, columns })
    }

    /// Cycles of a product.
    #[must_use]
    pub fn cycles(&self, gemm: Gemm, dataflow: Dataflow) -> u64 {
        self.shared_cycles(gemm, dataflow, NonZeroU64::MIN)
    }

    /// Cycles of a product on `arrays` such arrays, which share its folds: those of the array with
    /// the most folds. Adding up partial sums takes no time.
    #[must_use]
    pub fn shared_cycles(&self, gemm: Gemm, dataflow: Dataflow, arrays: NonZeroU64) -> u64 {
        let (down, across, stream, load) = self.mapping(gemm, dataflow);
        let folds = down.div_ceil(self.rows) * across.div_ceil(self.columns);
        folds.div_ceil(arrays.get()) * (load + stream + self.rows + self.columns - 2)
    }

    /// The dimensions along rows, columns and the stream, and the cycles to load the stationary
    /// operand.
    fn mapping(&self, gemm: Gemm, dataflow: Dataflow) -> (u64, u64, u64, u64) {
        let Gemm { m, n, k } = gemm;
        match dataflow {
            Dataflow::OutputStationary => (m, n, k, 0),
            Dataflow::WeightStationary => (k, n, m, self.rows),
            Dataflow::InputStationary => (k, m, n, self.rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first convolution of ResNet-50 unpadded: 109 x 109 pixels, 64 filters, 7 x 7 x 3 terms.
    const CONV1: Gemm = Gemm { m: 109 * 109, n: 64, k: 147 };

    #[test]
    fn folds_times_their_length() {
        let array = SystolicArray::new(32, 32).unwrap();
        // 372 folds down x 2 across, each 147 + 32 + 32 - 2 cycles.
        assert_eq!(array.cycles(CONV1, Dataflow::OutputStationary), 372 * 2 * 209);
        // 5 x 2 folds, each 32 to load, 11881 to stream, 62 of skew.
        assert_eq!(array.cycles(CONV1, Dataflow::WeightStationary), 10 * (32 + 11_881 + 62));
        // 5 x 372 folds, each 32 to load, 64 to stream, 62 of skew.
        assert_eq!(array.cycles(CONV1, Dataflow::InputStationary), 5 * 372 * (32 + 64 + 62));
    }

    #[test]
    fn one_element_computes_one_term_per_cycle() {
        let array = SystolicArray::new(1, 1).unwrap();
        let gemm = Gemm { m: 3, n: 5, k: 7 };
        assert_eq!(array.cycles(gemm, Dataflow::OutputStationary), gemm.macs());
    }

    #[test]
    fn arrays_share_complete_folds() {
        let array = SystolicArray::new(32, 32).unwrap();
        let among = |arrays| {
            let arrays = NonZeroU64::new(arrays).unwrap();
            array.shared_cycles(CONV1, Dataflow::OutputStationary, arrays)
        };
        // 744 folds: 46 or 47 on each of 16 arrays, one on each of 744; further arrays are idle.
        assert_eq!([1, 16, 744, 1000].map(among), [744 * 209, 47 * 209, 209, 209]);
    }

    #[test]
    fn an_empty_array_is_rejected() {
        let refused = SystolicArray::new(0, 4).unwrap_err();
        assert_eq!(refused, SystolicError::Empty { rows: 0, columns: 4 });
    }
}
