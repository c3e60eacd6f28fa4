//! The factorisations of a number into bases, and the permutations of their factors.

use super::products::Products;
use tutti_units::Time;

/// Visits the factorisations of `number`, factors in descending order, that cost less than [`Visit::under`],
/// which is called every time, since a visit may lower it. Returns false when [`Visit::product`] stops.
pub(super) fn each_product<V: Visit>(products: &Products, number: u32, visit: &mut V) -> bool {
    descend(products, (number, u32::MAX), Time::ZERO, &mut Vec::new(), visit)
}

/// What is done with every product.
pub(super) trait Visit {
    /// What a product must cost less than.
    fn under(&self) -> Time;
    /// The factors in descending order, and their cost; whether to go on.
    fn product(&mut self, factors: &[u32], cost: Time) -> bool;
}

fn descend<V: Visit>(
    products: &Products,
    (left, largest): (u32, u32),
    cost: Time,
    chosen: &mut Vec<u32>,
    visit: &mut V,
) -> bool {
    if left == 1 {
        return visit.product(chosen, cost);
    }
    for (base, more) in products.bases_of(left).filter(|(base, _)| *base <= largest) {
        let Some(rest) = products.least(left / base) else { continue };
        if cost + more + rest >= visit.under() {
            continue;
        }
        chosen.push(base);
        let go_on = descend(products, (left / base, base), cost + more, chosen, visit);
        chosen.pop();
        if !go_on {
            return false;
        }
    }
    true
}

/// Turns `factors` into the order that comes before it, lexicographically; false at the last one, the
/// ascending order. From the descending order on this goes through all of them, each once.
pub(super) fn next_order(factors: &mut [u32]) -> bool {
    let Some(at) = factors.windows(2).rposition(|pair| pair[0] > pair[1]) else { return false };
    let smaller = factors.iter().rposition(|factor| *factor < factors[at]);
    let smaller = smaller.expect("the neighbour is smaller");
    factors.swap(at, smaller);
    factors[at + 1..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_each_once_from_descending_to_ascending() {
        let mut factors = vec![4, 3, 3, 2];
        let mut orders = vec![factors.clone()];
        while next_order(&mut factors) {
            orders.push(factors.clone());
        }
        assert_eq!(orders.len(), 12);
        assert!(orders.is_sorted_by(|one, other| one > other));
        assert_eq!(orders[11], [2, 3, 3, 4]);
        assert!(!next_order(&mut []));
    }
}
