//! Sizes in an argument, such as `8x16`: of the levels of a hierarchy or the dimensions of a grid.

/// An invalid argument: the byte at which it fails, and the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) at: usize,
    pub(super) problem: String,
}

pub(super) fn misfit<T>(at: usize, problem: String) -> Result<T, Misfit> {
    Err(Misfit { at, problem })
}

/// Reads at least two sizes, each at least two; `of` names them.
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
                    format!("`{digits}` is not a {of} size: expected sizes such as `8x16`");
                return misfit(start, problem);
            }
        }
        at += part.len() + 1;
    }
    if sizes.len() < 2 {
        let problem = format!("only one {of}: expected at least two, such as `8x16`");
        return misfit(text.len(), problem);
    }
    Ok(sizes)
}

/// Checks that the product of the sizes is the rank count.
pub(super) fn fits(sizes: &[u32], ranks: u32) -> Result<(), Misfit> {
    let product = sizes.iter().fold(1u64, |product, &size| product.saturating_mul(size.into()));
    if product == u64::from(ranks) {
        return Ok(());
    }
    let sizes = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
    misfit(0, format!("{sizes} is {product} ranks: expected sizes whose product is {ranks}"))
}

/// Returns the two factors closest to each other, the smaller first; `None` for a prime.
pub(super) fn near_square(ranks: u32) -> Option<Vec<u32>> {
    let inner = (2..=ranks.isqrt()).rev().find(|&size| ranks.is_multiple_of(size));
    inner.map(|size| vec![size, ranks / size])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sizes_are_nearly_square() {
        assert_eq!(near_square(12), Some(vec![3, 4]));
        assert_eq!(near_square(26), Some(vec![2, 13]));
        assert_eq!((near_square(2), near_square(3), near_square(13)), (None, None, None));
    }

    #[test]
    fn errors_name_the_kind_of_size() {
        let problem = |text| read(text, "dimension").unwrap_err();
        assert_eq!(
            problem("4").problem,
            "only one dimension: expected at least two, such as `8x16`"
        );
        assert_eq!((problem("4x1").at, problem("4x 0").at, problem("4xx").at), (2, 3, 2));
        assert_eq!(read(" 4 x 2 ", "dimension"), Ok(vec![4, 2]));
        assert!(fits(&[4, 2], 8).is_ok() && fits(&[4, 2], 9).is_err());
    }
}
