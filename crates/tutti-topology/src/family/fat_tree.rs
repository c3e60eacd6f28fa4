//! Fat tree: NPUs under levels of switches, with several switches at the top of every subtree.
//!
//! All are extended generalised fat trees (Öhring, Ibel, Das and Kumar, "On generalized fat trees",
//! IPPS 1995), optionally with parallel cables (Zahavi's PGFT). In `m=16x16,w=1x8`, which has two
//! levels, a switch of level l has m_l children, and every vertex below level l has w_l parents in
//! it, with p_l cables each. Two spellings name the common ones:
//!
//! - `k=4,n=3`, the k-ary n-tree (Petrini and Vanneschi, IPPS 1997): n levels, m = k everywhere, w
//!   = 1, k, k, ...;
//! - `radix=64,levels=3`, of switches with that many ports, half of them up and, at the top, all
//!   down (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, for three levels): m = 32, 32, 64 and w =
//!   1, 32, 32.
//!
//! A level with fewer links up than down makes the tree tapered (oversubscribed). Links of higher
//! levels may have another rate.
//!
//! **Numbers.** NPU d is in subtree floor(d / M_l) of level l, where M_l = m_1 ... m_l. Such a
//! subtree has W_l = w_1 ... w_l switches at its top. Switch b of subtree s has the number s W_l +
//! b within its level. Its parents are the switches b + W_l c of the enclosing subtree, for each c
//! below w_(l + 1). Levels are numbered from the lowest.

use super::keyed::{Keyed, crossed, product};
use super::{Entry, Family, Join, TopologyError};
use tutti_units::ids::VertexId;

const NAME: &str = "fat_tree";
const KEYS: &[&str] = &["k", "n", "radix", "levels", "m", "w", "p"];
/// More levels than the limit of NPUs allows.
const MOST_LEVELS: u32 = 24;

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "levels of switches over the NPUs: k-ary n-tree, folded Clos, or generalised (XGFT)",
    argument: "k=ARITY,n=LEVELS | radix=PORTS,levels=LEVELS | m=DOWN[xDOWN...],w=UP[xUP...][,p=...]",
    example: "fat_tree:k=2,n=3",
    parse,
};

/// The parameters of a fat tree and the positions of its switches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FatTree {
    /// m: the children of a switch, per level.
    down: Vec<u32>,
    /// w: the parents of a vertex, per level.
    up: Vec<u32>,
    /// p: the cables to each parent, per level.
    cables: Vec<u32>,
    argument: String,
}

/// A switch: its level, its subtree, and its number among the switches at the top of the subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreePosition {
    /// 1 for the switches that NPUs attach to; 0 for an NPU.
    pub level: usize,
    /// The number of its subtree within the level.
    pub subtree: u64,
    /// Its number among the switches at the top of the subtree.
    pub top: u64,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let keyed = Keyed::read(NAME, argument, KEYS, &[])?;
    let made = if keyed.has("m") || keyed.has("w") || keyed.has("p") {
        only(&keyed, &["m", "w", "p"])?;
        generalised(&keyed)?
    } else if keyed.has("radix") || keyed.has("levels") {
        only(&keyed, &["radix", "levels"])?;
        of_radix(&keyed)?
    } else {
        k_ary(&keyed)?
    };
    if made.size() < 2 {
        let problem = "a single NPU has no neighbour; expected at least 2".to_owned();
        return Err(keyed.wrong("m", problem));
    }
    Ok(Box::new(made))
}

/// Rejects the keys of another spelling.
fn only(keyed: &Keyed<'_>, keys: &[&str]) -> Result<(), TopologyError> {
    match KEYS.iter().find(|key| keyed.has(key) && !keys.contains(key)) {
        None => Ok(()),
        Some(other) => {
            let problem = format!("`{other}` does not go with {}", keys.join(", "));
            Err(keyed.wrong(other, problem))
        }
    }
}

fn generalised(keyed: &Keyed<'_>) -> Result<FatTree, TopologyError> {
    let down = keyed.required("m", keyed.sizes("m", 1)?)?;
    let up = keyed.required("w", keyed.sizes("w", 1)?)?;
    if up.len() != down.len() {
        let problem = format!("{} levels; expected {}, as for `m`", up.len(), down.len());
        return Err(keyed.wrong("w", problem));
    }
    let cables = keyed.same_length("p", "m", down.len())?;
    let mut argument = format!("m={},w={}", crossed(&down), crossed(&up));
    if cables.iter().any(|&cables| cables > 1) {
        argument.push_str(&format!(",p={}", crossed(&cables)));
    }
    Ok(FatTree { down, up, cables, argument })
}

fn k_ary(keyed: &Keyed<'_>) -> Result<FatTree, TopologyError> {
    let arity = keyed.required("k", keyed.number("k", 2)?)?;
    let levels = levels(keyed, "n")?;
    let mut up = vec![arity; levels];
    up[0] = 1;
    let argument = format!("k={arity},n={levels}");
    Ok(FatTree { down: vec![arity; levels], up, cables: vec![1; levels], argument })
}

fn of_radix(keyed: &Keyed<'_>) -> Result<FatTree, TopologyError> {
    let radix = keyed.required("radix", keyed.number("radix", 2)?)?;
    if !radix.is_multiple_of(2) {
        let problem = format!("{radix} ports cannot be split evenly; expected an even number");
        return Err(keyed.wrong("radix", problem));
    }
    let levels = levels(keyed, "levels")?;
    let mut down = vec![radix / 2; levels];
    down[levels - 1] = radix;
    let mut up = vec![radix / 2; levels];
    up[0] = 1;
    let argument = format!("radix={radix},levels={levels}");
    Ok(FatTree { down, up, cables: vec![1; levels], argument })
}

fn levels(keyed: &Keyed<'_>, key: &str) -> Result<usize, TopologyError> {
    let levels = keyed.required(key, keyed.number(key, 1)?)?;
    if levels > MOST_LEVELS {
        let problem = format!("{levels} levels are too many: at most {MOST_LEVELS}");
        return Err(keyed.wrong(key, problem));
    }
    Ok(levels as usize)
}

impl FatTree {
    /// The number of switch levels.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.down.len()
    }

    /// The up-links of a vertex at `level`: w times p of the level above.
    #[must_use]
    pub fn up_links(&self, level: usize) -> u64 {
        u64::from(self.up[level]) * u64::from(self.cables[level])
    }

    /// The number of subtrees with their top at `level`; the NPUs for level 0.
    #[must_use]
    pub fn subtrees(&self, level: usize) -> u64 {
        product(&self.down[level..])
    }

    /// W, the number of switches at the top of a subtree.
    #[must_use]
    pub fn tops(&self, level: usize) -> u64 {
        product(&self.up[..level])
    }

    /// M, the number of NPUs below the top of a subtree.
    #[must_use]
    pub fn npus_below(&self, level: usize) -> u64 {
        product(&self.down[..level])
    }

    fn at_level(&self, level: usize) -> u64 {
        self.subtrees(level).saturating_mul(self.tops(level))
    }

    /// The position of a vertex.
    #[must_use]
    pub fn place(&self, vertex: VertexId) -> TreePosition {
        let mut number = u64::from(vertex.0);
        let mut level = 0;
        while level < self.levels() && number >= self.at_level(level) {
            number -= self.at_level(level);
            level += 1;
        }
        let tops = self.tops(level);
        TreePosition { level, subtree: number / tops, top: number % tops }
    }

    /// The vertex at a position.
    #[must_use]
    pub fn vertex(&self, place: TreePosition) -> VertexId {
        let below: u64 = (0..place.level).map(|level| self.at_level(level)).sum();
        let number = below + place.subtree * self.tops(place.level) + place.top;
        VertexId(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// One step of D-mod-K (Zahavi, "D-Mod-K routing providing non-blocking traffic for shift
    /// permutations on real life fat trees", CCIT report 776, Technion 2010): the next vertex
    /// towards NPU `destination`, and the index of the cable to it.
    ///
    /// Upwards from level l, the message uses port floor(d / W_l) mod (w p). Port q leads to switch
    /// q mod w over cable floor(q / w). Downwards there is one next switch, reached over the cable
    /// that D-mod-K uses upwards.
    #[must_use]
    pub fn d_mod_k(&self, at: TreePosition, destination: u64) -> (TreePosition, u64) {
        let TreePosition { level, subtree, top } = at;
        if level == 0 || destination / self.npus_below(level) != subtree {
            let (cable, parent) = self.port(level, destination);
            let subtree = subtree / u64::from(self.down[level]);
            let top = top + self.tops(level) * parent;
            return (TreePosition { level: level + 1, subtree, top }, cable);
        }
        let below = level - 1;
        let (cable, _) = self.port(below, destination);
        let subtree = destination / self.npus_below(below);
        (TreePosition { level: below, subtree, top: top % self.tops(below) }, cable)
    }

    /// The parent and cable that D-mod-K selects from `level` upwards.
    fn port(&self, level: usize, destination: u64) -> (u64, u64) {
        let port = destination / self.tops(level) % self.up_links(level);
        let parents = u64::from(self.up[level]);
        (port / parents, port % parents)
    }

    /// The number of cables between `level` and the switches above it; saturates.
    fn cables_above(&self, level: usize) -> u64 {
        self.at_level(level).saturating_mul(self.up_links(level))
    }
}

impl Family for FatTree {
    fn notation(&self) -> String {
        format!("{NAME}:{}", self.argument)
    }

    fn size(&self) -> u64 {
        self.subtrees(0)
    }

    fn added_vertices(&self) -> u64 {
        (1..=self.levels()).map(|level| self.at_level(level)).fold(0, u64::saturating_add)
    }

    fn link_count(&self) -> u64 {
        let cables = (0..self.levels()).map(|level| self.cables_above(level));
        cables.fold(0, u64::saturating_add).saturating_mul(2)
    }

    fn link_classes(&self) -> Vec<String> {
        (1..=self.levels()).map(|level| format!("level {level}")).collect()
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        let mut below = members.to_vec();
        for (level, &parameters) in links.iter().enumerate() {
            let made = (0..self.at_level(level + 1))
                .map(|number| builder.switch(format!("{prefix}level{}.switch{number}", level + 1)));
            let above: Vec<VertexId> = made.collect();
            let (tops, parents) = (self.tops(level), u64::from(self.up[level]));
            for (number, &vertex) in (0..).zip(&below) {
                let subtree = number / tops / u64::from(self.down[level]);
                for parent in 0..parents {
                    let top = number % tops + tops * parent;
                    let switch = subtree * tops * parents + top;
                    let switch = above[usize::try_from(switch).unwrap_or(usize::MAX)];
                    for _ in 0..self.cables[level] {
                        builder.cable(vertex, switch, parameters);
                    }
                }
            }
            below = above;
        }
        None
    }

    /// Up to the highest level with several subtrees, and down.
    fn diameter(&self) -> Option<u32> {
        let highest = self.down.iter().rposition(|&down| down > 1)?;
        u32::try_from(2 * (highest + 1)).ok()
    }

    /// Half of the cables of the level with the fewest.
    ///
    /// No cut is smaller: every NPU of one half can send to one of the other with its data spread
    /// evenly over all paths through the top. A cable between two levels then carries at most the
    /// number of NPUs divided by the cables of the level. If the number of subtrees below that
    /// level is even, half of them form such a cut.
    fn bisection(&self) -> Option<u64> {
        let least = (0..self.levels()).map(|level| self.cables_above(level)).min()?;
        let halves = (0..self.levels()).any(|level| {
            self.cables_above(level) == least && self.subtrees(level).is_multiple_of(2)
        });
        halves.then_some(least / 2)
    }

    /// NPUs are equivalent.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        Some(vec![VertexId(0)])
    }

    fn fat_tree(&self) -> Option<&FatTree> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
