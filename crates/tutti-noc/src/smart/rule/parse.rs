//! Reads rules.

use super::{LONGEST, Node, Operator};

/// The most nested parts of a rule.
const DEEPEST: usize = 40;

/// A word, number or operator, and the character at which it starts, from 1.
#[derive(Clone, Debug, PartialEq)]
struct Token {
    text: String,
    at: usize,
}

/// The operators by how strongly they bind, the weakest first. `not` binds between the second and
/// the third.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("//", Operator::Divide), ("%", Operator::Remainder)],
];

/// The level of comparisons.
const COMPARISONS: usize = 2;

/// Reads an expression; the error states what is wrong.
pub(super) fn expression(text: &str, variables: &[&str]) -> Result<Node, String> {
    if text.chars().count() > LONGEST {
        return Err(format!("it has more than {LONGEST} characters"));
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, variables, depth: 0 };
    let node = parser.conditional()?;
    match parser.peek() {
        None => Ok(node),
        Some(token) => Err(format!("unexpected `{}` at character {}", token.text, token.at)),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let first = characters[at];
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let is_word = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
        let length = if is_word(&first) {
            characters[at..].iter().take_while(|character| is_word(character)).count()
        } else {
            let pair: String = characters[at..].iter().take(2).collect();
            if ["==", "!=", "<=", ">=", "//"].contains(&pair.as_str()) {
                2
            } else if "<>+-*%(),".contains(first) {
                1
            } else {
                return Err(format!("unexpected `{first}` at character {}", at + 1));
            }
        };
        let text = characters[at..at + length].iter().collect();
        tokens.push(Token { text, at: at + 1 });
        at += length;
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: Vec<Token>,
    next: usize,
    variables: &'a [&'a str],
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    /// Takes the next token if it is this one.
    fn takes(&mut self, text: &str) -> bool {
        let is_it = self.peek().is_some_and(|token| token.text == text);
        self.next += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.takes(text) {
            return Ok(());
        }
        Err(match self.peek() {
            None => format!("`{text}` is missing at the end"),
            Some(token) => format!("`{text}` is missing before character {}", token.at),
        })
    }

    /// `A if C else B`.
    fn conditional(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("more than {DEEPEST} nested parts"));
        }
        let then = self.level(0)?;
        let node = if self.takes("if") {
            let condition = self.level(0)?;
            self.expect("else")?;
            Node::If(Box::new([condition, then, self.conditional()?]))
        } else {
            then
        };
        self.depth -= 1;
        Ok(node)
    }

    /// Operators of a level, from left to right.
    fn level(&mut self, level: usize) -> Result<Node, String> {
        let Some(operators) = LEVELS.get(level) else { return self.signed() };
        if level == COMPARISONS && self.takes("not") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(format!("more than {DEEPEST} nested parts"));
            }
            let node = Node::Not(Box::new(self.level(level)?));
            self.depth -= 1;
            return Ok(node);
        }
        let mut node = self.level(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            node = Node::Binary(operator, Box::new([node, self.level(level + 1)?]));
            if level == COMPARISONS && self.operator(operators).is_some() {
                return Err("comparisons in a chain".to_owned());
            }
        }
        Ok(node)
    }

    fn operator(&mut self, operators: &[(&str, Operator)]) -> Option<Operator> {
        operators.iter().find(|(text, _)| self.takes(text)).map(|&(_, operator)| operator)
    }

    /// An operand, or its negation.
    fn signed(&mut self) -> Result<Node, String> {
        if self.takes("-") {
            return Ok(Node::Negated(Box::new(self.operand()?)));
        }
        self.operand()
    }

    fn operand(&mut self) -> Result<Node, String> {
        let Some(token) = self.peek().cloned() else {
            return Err("an operand is missing at the end".to_owned());
        };
        self.next += 1;
        if token.text == "(" {
            let node = self.conditional()?;
            self.expect(")")?;
            return Ok(node);
        }
        if let Some(index) = self.variables.iter().position(|&name| name == token.text) {
            return Ok(Node::Variable(index));
        }
        match token.text.as_str() {
            "min" => self.extreme(Operator::Minimum),
            "max" => self.extreme(Operator::Maximum),
            text if text.starts_with(|first: char| first.is_ascii_digit()) => {
                let number = text.parse::<i64>().ok().filter(|number| *number <= 1_i64 << 32);
                number.map(Node::Number).ok_or_else(|| {
                    format!("`{text}` at character {} is not an integer up to 2^32", token.at)
                })
            }
            text if text.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                Err(format!("unknown name `{text}` at character {}", token.at))
            }
            text => Err(format!("unexpected `{text}` at character {}", token.at)),
        }
    }

    /// The arguments of `min` or `max`, two or more.
    fn extreme(&mut self, operator: Operator) -> Result<Node, String> {
        self.expect("(")?;
        let mut node = self.conditional()?;
        self.expect(",")?;
        loop {
            node = Node::Binary(operator, Box::new([node, self.conditional()?]));
            if !self.takes(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(node)
    }
}
