//! The shorthand of a single condition:
//! `components.{product_id}.{variable} {op} {value}[, {value}…]`.
//!
//! *Invariant:* parsing a rendered condition returns the same condition. Conditions that have no
//! shorthand are not rendered.

use super::{
    dependency::{Comparison, Condition, ConditionTarget, Group, LogicalOperator, Node},
    text::{Label, Tag},
};

const PREFIX: &str = "components.";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}{}: expected {expected}", if *.at_end { ", the end of the text" } else { "" })]
pub struct ShorthandError {
    /// The position of the error, in code points from 1.
    pub at: usize,
    /// Whether only white space follows.
    pub at_end: bool,
    pub expected: &'static str,
}

/// Parses a shorthand: an AND of one condition.
pub fn parse(text: &str) -> Result<Group, ShorthandError> {
    let mut parser = ShorthandParser { text, byte: 0 };
    let condition = parser.condition()?;
    Ok(Group {
        operator: LogicalOperator::And,
        nodes: vec![Node::Condition(condition)],
    })
}

/// Renders dependencies; `None` unless they are exactly one condition that has a shorthand.
pub fn render(group: &Group) -> Option<String> {
    let (LogicalOperator::And, [Node::Condition(condition)]) =
        (group.operator, group.nodes.as_slice())
    else {
        return None;
    };
    let Condition {
        variable,
        operator,
        targets,
        path,
    } = condition;
    let product = path.as_str().strip_prefix(PREFIX)?;
    let variable = variable.as_str();
    let plain = !product.is_empty()
        && product.bytes().all(|b| b.is_ascii_digit())
        && variable.trim() == variable
        && !variable.contains(is_operator);
    if !plain || !(targets.len() == 1 || takes_several(*operator)) {
        return None;
    }
    let values: Vec<String> = targets.iter().map(render_value).collect::<Option<_>>()?;
    let (path, op) = (path.as_str(), operator.symbol());
    Some(format!("{path}.{variable} {op} {}", values.join(", ")))
}

fn render_value(target: &ConditionTarget) -> Option<String> {
    let ConditionTarget::Text(value) = target else {
        return None;
    };
    let quoted = value.is_empty() || value.trim() != value || value.contains([',', '"', '\\']);
    Some(if quoted {
        format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
    } else {
        value.clone()
    })
}

fn is_operator(c: char) -> bool {
    matches!(c, '=' | '<' | '>')
}

fn takes_several(operator: Comparison) -> bool {
    match operator {
        Comparison::Equal | Comparison::NotEqual => true,
        Comparison::Greater | Comparison::Less => false,
    }
}

struct ShorthandParser<'a> {
    text: &'a str,
    byte: usize,
}

impl<'a> ShorthandParser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.byte..).unwrap_or_default()
    }

    fn error<T>(&self, expected: &'static str) -> Result<T, ShorthandError> {
        let before = self.text.get(..self.byte).unwrap_or_default();
        Err(ShorthandError {
            at: before.chars().count() + 1,
            at_end: self.rest().trim_start().is_empty(),
            expected,
        })
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.byte += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.byte += token.len();
        }
        found
    }

    fn condition(&mut self) -> Result<Condition, ShorthandError> {
        self.skip_space();
        let start = self.byte;
        if !self.take(PREFIX) {
            return self.error("`components.`");
        }
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return self.error("the digits of a product id");
        }
        self.byte += digits;
        let path = self.text.get(start..self.byte).unwrap_or_default();
        let Ok(path) = Tag::parse(path.to_owned()) else {
            return self.error("a path of at most 1000 code points");
        };
        if !self.take(".") {
            return self.error("`.` and a variable");
        }
        let variable = self.variable()?;
        let operator = self.operator()?;
        let targets = self.values(operator)?;
        Ok(Condition {
            variable,
            operator,
            targets,
            path,
        })
    }

    fn variable(&mut self) -> Result<Label, ShorthandError> {
        let rest = self.rest();
        let Some(end) = rest.find(is_operator) else {
            self.byte = self.text.trim_end().len().max(self.byte);
            return self.error("an operator (`=`, `!=`, `>` or `<`)");
        };
        let (before, after) = rest.split_at(end);
        let variable = match before.strip_suffix('!') {
            Some(variable) if after.starts_with('=') => variable,
            _ => before,
        };
        let length = variable.len();
        let Ok(label) = Label::parse(variable.trim().to_owned()) else {
            return self.error("a variable of 1 to 1000 code points without U+0000");
        };
        self.byte += length;
        Ok(label)
    }

    fn operator(&mut self) -> Result<Comparison, ShorthandError> {
        let found = Comparison::ALL
            .into_iter()
            .find(|operator| self.take(operator.symbol()));
        match found {
            // A value after `>` cannot start with `=`, so that `>=` is refused.
            Some(_) if self.rest().starts_with(is_operator) => {
                self.error("a value (the operators are `=`, `!=`, `>` and `<`)")
            }
            Some(operator) => Ok(operator),
            None => self.error("an operator (`=`, `!=`, `>` or `<`)"),
        }
    }

    fn values(&mut self, operator: Comparison) -> Result<Vec<ConditionTarget>, ShorthandError> {
        let mut values = Vec::new();
        loop {
            self.skip_space();
            values.push(ConditionTarget::Text(self.value()?));
            self.skip_space();
            if self.rest().is_empty() {
                return Ok(values);
            }
            if !takes_several(operator) {
                return self.error("the end, as `>` and `<` take one value");
            }
            if !self.take(",") {
                return self.error("`,` or the end");
            }
        }
    }

    fn value(&mut self) -> Result<String, ShorthandError> {
        if self.take("\"") {
            return self.quoted();
        }
        let rest = self.rest();
        let end = rest.find([',', '"', '\\']).unwrap_or(rest.len());
        let (value, after) = rest.split_at(end);
        if value.contains('\0') {
            return self.error("a value without U+0000");
        }
        if after.starts_with(['"', '\\']) {
            self.byte += end;
            return self.error("a value in quotes, as it holds a quote or a backslash");
        }
        let value = value.trim_end();
        if value.is_empty() {
            return self.error("a value (an empty one is written `\"\"`)");
        }
        self.byte += value.len();
        Ok(value.to_owned())
    }

    fn quoted(&mut self) -> Result<String, ShorthandError> {
        let mut value = String::new();
        loop {
            let mut chars = self.rest().chars();
            match chars.next() {
                None => return self.error("a closing quote"),
                Some('\0') => return self.error("a value without U+0000"),
                Some('"') => {
                    self.byte += 1;
                    return Ok(value);
                }
                Some('\\') => match chars.next() {
                    Some(c @ ('"' | '\\')) => {
                        value.push(c);
                        self.byte += 2;
                    }
                    _ => {
                        self.byte += 1;
                        return self.error("`\"` or `\\` after a backslash");
                    }
                },
                Some(c) => {
                    value.push(c);
                    self.byte += c.len_utf8();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
