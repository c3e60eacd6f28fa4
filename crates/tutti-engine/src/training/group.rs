//! Process groups: which NPUs perform a collective together.

use crate::workload::Rings;
use tutti_schedule::Digit;
use tutti_units::ids::RankId;

/// The process groups along some dimensions of the NPU numbers, and the rank of each NPU in its
/// group: the innermost dimension first.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// Ranks of a group.
    pub(super) size: u32,
    /// By NPU: its group and its rank.
    places: Vec<(u32, u32)>,
    /// The NPUs of all groups, by rank.
    members: Vec<u32>,
    /// The digits of a rank, and the distance of neighbouring NPUs along each.
    digits: Vec<(Digit, u32)>,
    /// The number of the dimension of each digit.
    dimensions: Vec<usize>,
}

impl Groups {
    /// Groups along the dimensions of `within`, of NPUs on a grid of these sizes.
    pub(super) fn new(sizes: &[u32], within: Rings) -> Groups {
        let (mut digits, mut dimensions, mut stride, mut size) = (Vec::new(), Vec::new(), 1, 1);
        for (dimension, &nodes) in sizes.iter().enumerate() {
            if nodes > 1 && within.contains(dimension) {
                digits.push((Digit { stride: size, size: nodes }, stride));
                dimensions.push(dimension);
                size *= nodes;
            }
            stride *= nodes;
        }
        let npus: u32 = sizes.iter().product();
        let rank_of = |npu: u32| -> u32 {
            digits.iter().map(|(digit, npus)| npu / npus % digit.size * digit.stride).sum()
        };
        let mut groups = Groups {
            size,
            places: vec![(0, 0); npus as usize],
            members: vec![0; npus as usize],
            digits: digits.clone(),
            dimensions,
        };
        for (group, npu) in (0..).zip((0..npus).filter(|&npu| rank_of(npu) == 0)) {
            for rank in 0..size {
                let member = npu + groups.npu_offset(rank);
                groups.places[member as usize] = (group, rank);
                groups.members[(group * size + rank) as usize] = member;
            }
        }
        groups
    }

    /// The rank of an NPU in its group.
    #[inline]
    pub(super) fn rank(&self, npu: u32) -> u32 {
        self.places[npu as usize].1
    }

    /// The NPU of a rank in the group of `npu`.
    #[inline]
    pub(super) fn member(&self, npu: u32, rank: u32) -> u32 {
        let (group, _) = self.places[npu as usize];
        self.npu(group, rank)
    }

    /// The NPU whose rank is `ahead` of that of `npu`, modulo the size of the group.
    #[inline]
    pub(super) fn ahead(&self, npu: u32, ahead: u32) -> u32 {
        self.member(npu, (self.rank(npu) + ahead) % self.size)
    }

    /// The NPU of a rank in a group.
    #[inline]
    pub(super) fn npu(&self, group: u32, rank: u32) -> u32 {
        self.members[(group * self.size + rank) as usize]
    }

    /// The group of an NPU.
    #[inline]
    pub(super) fn group(&self, npu: u32) -> u32 {
        self.places[npu as usize].0
    }

    /// The distance of NPUs whose ranks differ by `offset`, digit by digit.
    pub(super) fn npu_offset(&self, offset: u32) -> u32 {
        self.digits.iter().map(|(digit, npus)| digit.of(RankId(offset)) * npus).sum()
    }

    /// The first dimension along which ranks differ by `offset`.
    pub(super) fn dimension(&self, offset: u32) -> Option<usize> {
        let mut digits = self.digits.iter().zip(&self.dimensions);
        digits.find(|((digit, _), _)| digit.of(RankId(offset)) > 0).map(|(_, &found)| found)
    }

    /// Whether a rotation of each of these digits rotates a dimension of the NPUs.
    pub(super) fn are_along(&self, digits: &[Digit]) -> bool {
        digits.iter().all(|digit| self.digits.iter().any(|(own, _)| own == digit))
    }

    /// The sizes of the dimensions.
    pub(super) fn sizes(&self) -> Vec<u32> {
        self.digits.iter().map(|(digit, _)| digit.size).collect()
    }
}
