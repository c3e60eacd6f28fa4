//! Rules of routers: expressions over integers that a file or a program states, such as
//! `64 + distance if response else -distance`.
//!
//! The notation is a subset of Python's: integers, variables, `+ - * // %`, comparisons, `and`,
//! `or`, `not`, `A if C else B`, `min`, `max` and parentheses. Comparisons and logical operators
//! give 0 or 1. Values are integers of 64 bits; results beyond them are clamped, and a division by
//! zero gives 0.

mod parse;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::FlitError;

/// The most characters of a rule.
pub(super) const LONGEST: usize = 400;

/// An expression over named variables.
#[derive(Clone, Debug)]
pub struct Rule {
    text: Arc<str>,
    root: Arc<Node>,
}

/// Rules are equal if their texts are.
impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

/// A part of an expression.
#[derive(Debug)]
enum Node {
    Number(i64),
    /// The index of a variable.
    Variable(usize),
    Negated(Box<Node>),
    Not(Box<Node>),
    Binary(Operator, Box<[Node; 2]>),
    /// The condition, and the values if it holds and if not.
    If(Box<[Node; 3]>),
}

/// An operator with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Minimum,
    Maximum,
}

impl Rule {
    /// Reads an expression over variables.
    ///
    /// # Errors
    /// [`FlitError::Clash`] for the setting `what`, which states what is wrong.
    pub fn parse(what: &'static str, text: &str, variables: &[&str]) -> Result<Rule, FlitError> {
        let root = parse::expression(text, variables).map_err(|problem| {
            let known = variables.join(", ");
            let problem =
                format!("`{text}` cannot be read: {problem}; expected an expression over {known}");
            FlitError::Clash { what, problem }
        })?;
        Ok(Rule { text: text.into(), root: Arc::new(root) })
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its value for the values of the variables, in the order in which they were named.
    #[must_use]
    pub(super) fn value(&self, variables: &[i64]) -> i64 {
        self.root.value(variables)
    }
}

impl Node {
    fn value(&self, variables: &[i64]) -> i64 {
        match self {
            &Node::Number(number) => number,
            &Node::Variable(index) => variables[index],
            Node::Negated(node) => node.value(variables).saturating_neg(),
            Node::Not(node) => i64::from(node.value(variables) == 0),
            Node::Binary(operator, operands) => {
                let [one, other] = &**operands;
                operator.of(one.value(variables), other.value(variables))
            }
            Node::If(parts) => {
                let [condition, then, otherwise] = &**parts;
                let chosen = if condition.value(variables) == 0 { otherwise } else { then };
                chosen.value(variables)
            }
        }
    }
}

impl Operator {
    fn of(self, one: i64, other: i64) -> i64 {
        match self {
            Operator::Or => i64::from(one != 0 || other != 0),
            Operator::And => i64::from(one != 0 && other != 0),
            Operator::Equal => i64::from(one == other),
            Operator::Unequal => i64::from(one != other),
            Operator::Less => i64::from(one < other),
            Operator::LessOrEqual => i64::from(one <= other),
            Operator::Greater => i64::from(one > other),
            Operator::GreaterOrEqual => i64::from(one >= other),
            Operator::Add => one.saturating_add(other),
            Operator::Subtract => one.saturating_sub(other),
            Operator::Multiply => one.saturating_mul(other),
            Operator::Divide => floor_divide(one, other),
            Operator::Remainder => {
                one.saturating_sub(floor_divide(one, other).saturating_mul(other))
            }
            Operator::Minimum => one.min(other),
            Operator::Maximum => one.max(other),
        }
    }
}

/// The quotient, rounded down as in Python; 0 if the divisor is 0.
fn floor_divide(one: i64, other: i64) -> i64 {
    let Some(quotient) = one.checked_div(other) else {
        return if other == 0 { 0 } else { i64::MAX };
    };
    let inexact = one.checked_rem(other).is_some_and(|rest| rest != 0);
    quotient - i64::from(inexact && (one < 0) != (other < 0))
}
