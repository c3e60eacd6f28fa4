//! Sizes in an argument, as in `8x16`: of the levels of a nested machine, of the dimensions of a grid.

/// What is wrong with an argument, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) at: usize,
    pub(super) problem: String,
}

pub(super) fn misfit<T>(at: usize, problem: String) -> Result<T, Misfit> {
    Err(Misfit { at, problem })
}

/// Reads at least two sizes, each at least two, of what is called `of`.
pub(super) fn read(text: &str, of: &str) -> Result<Vec<u32>, Misfit> {
    let mut sizes = Vec::new();
    let mut at = 0;
    for part in text.split('x') {
        let digits = part.trim();
        let start = at + (part.len() - part.trim_start().len());
        let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse());
        match number {
            Some(Ok(0 | 1)) => return misfit(start, format!("a {of} has at least 2 ranks")),
            Some(Ok(size)) => sizes.push(size),
            _ => {
                let problem =
                    format!("`{digits}` is no size of a {of}: expected sizes as in `8x16`");
                return misfit(start, problem);
            }
        }
        at += part.len() + 1;
    }
    if sizes.len() < 2 {
        let problem = format!("there is one {of}: expected at least two, as in `8x16`");
        return misfit(text.len(), problem);
    }
    Ok(sizes)
}

/// Whether the sizes make up the ranks.
pub(super) fn fits(sizes: &[u32], ranks: u32) -> Result<(), Misfit> {
    let product = sizes.iter().fold(1u64, |product, &size| product.saturating_mul(size.into()));
    if product == u64::from(ranks) {
        return Ok(());
    }
    let sizes = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
    misfit(0, format!("{sizes} is {product} ranks: expected sizes whose product is {ranks}"))
}

/// Two sizes that are as alike as they can be, the smaller first; nothing for a prime.
pub(super) fn two_alike(ranks: u32) -> Option<Vec<u32>> {
    let inner = (2..=ranks.isqrt()).rev().find(|&size| ranks.is_multiple_of(size));
    inner.map(|size| vec![size, ranks / size])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sizes_are_as_alike_as_can_be() {
        assert_eq!(two_alike(12), Some(vec![3, 4]));
        assert_eq!(two_alike(26), Some(vec![2, 13]));
        assert_eq!((two_alike(2), two_alike(3), two_alike(13)), (None, None, None));
    }

    #[test]
    fn misfits_name_the_thing() {
        let problem = |text| read(text, "dimension").unwrap_err();
        assert_eq!(
            problem("4").problem,
            "there is one dimension: expected at least two, as in `8x16`"
        );
        assert_eq!((problem("4x1").at, problem("4x 0").at, problem("4xx").at), (2, 3, 2));
        assert_eq!(read(" 4 x 2 ", "dimension"), Ok(vec![4, 2]));
        assert!(fits(&[4, 2], 8).is_ok() && fits(&[4, 2], 9).is_err());
    }
}
