//! Expressions over parameters, as the text grammar has them, evaluated over any [`Scalar`] so that derivatives pass.
//!
//! ```text
//! tern    = or ["?" tern ":" tern]
//! or      = and {"||" and}            and  = compare {"&&" compare}
//! compare = sum {("=="|"!="|"<"|"<="|">"|">=") sum}
//! sum     = term {("+"|"-") term}     term = power {("*"|"/"|"%") power}
//! power   = prefix ["**" power]       prefix = ("!"|"-") prefix | factor
//! factor  = number | "@infinity" | $v | $v "[" sum "]" | f "(" [sum {"," sum}] ")" | "(" tern ")"
//! ```
//!
//! Comparisons and logic give 1 and 0; anything but 0 is true. A sign before a factor, parentheses around a whole `tern`
//! and nested `tern` are allowed beyond the grammar of the LQN tools. An expression is kept in postfix order, so that
//! neither its evaluation nor its release recurses.
//!
//! Derivatives: `floor`, `ceil`, `round`, comparisons and logic are constant between their jumps; `a % b` is
//! `a - b trunc(a/b)`; `a ** b` with a negative base needs a whole exponent and is not differentiated in it.

mod read;
#[cfg(test)]
mod tests;

use super::{
    Bindings, Parameter, Scalar,
    lexer::{Cursor, SyntaxError},
};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    steps: Vec<Step>,
}

/// An expression that cannot be read or evaluated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// The text is not an expression.
    #[error("expression \"{text}\", column {column}: {reason}")]
    Syntax {
        /// The expression.
        text: String,
        /// Column, from 1.
        column: usize,
        /// What was expected, and what was found.
        reason: String,
    },
    /// A parameter has no value.
    #[error("expression \"{text}\": parameter ${name} has no value")]
    Unbound {
        /// The expression.
        text: String,
        /// The parameter, without its `$`.
        name: String,
    },
    /// An operation has no result.
    #[error("expression \"{text}\": {reason}")]
    Undefined {
        /// The expression.
        text: String,
        /// Which operation, on what.
        reason: String,
    },
}

/// One step of an evaluation on a stack.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Number(f64),
    Parameter(String),
    /// Pops an index, pushes that element of a list parameter.
    Element(String),
    Negate,
    Not,
    Binary(Operator),
    /// Pops as many values as the count says, pushes the function's.
    Call(String, usize),
    /// Pops a value; goes on at the given step if it is 0.
    SkipUnless(usize),
    /// Goes on at the given step.
    Skip(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

/// What an expression is evaluated under: values, and the definitions in which lists are found.
pub(super) struct Environment<'a, S> {
    pub(super) bindings: &'a Bindings<S>,
    pub(super) parameters: &'a [Parameter],
}

impl Expression {
    /// Reads `text`, all of it.
    ///
    /// # Errors
    /// [`ExpressionError::Syntax`] with the column of what was not expected.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut cursor = Cursor::new(text);
        let expression = Self::read(&mut cursor).and_then(|e| cursor.expect_end("an operator or the end").map(|()| e));
        expression.map_err(|e| e.into_expression_error(text))
    }

    /// Reads the longest expression that starts at the cursor.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let start = cursor.peek()?.start;
        let mut steps = Vec::new();
        read::read_conditional(cursor, &mut steps)?;
        let raw = cursor.slice(start, cursor.last_end());
        let text = if raw.contains(['\n', '\r', '#']) { read::on_one_line(raw)? } else { raw.to_owned() };
        Ok(Self { text, steps })
    }

    /// The expression that is `value`.
    pub(super) fn of_number(value: f64) -> Self {
        Self { text: super::Number::Value(value).to_string(), steps: vec![Step::Number(value)] }
    }

    /// The expression as it was written, on one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its value, if it is no more than a number, with or without a sign; `(0 - x)` is how the grammar writes a negative.
    pub fn literal(&self) -> Option<f64> {
        match self.steps.as_slice() {
            [Step::Number(value)] => Some(*value),
            [Step::Number(value), Step::Negate] => Some(-value),
            [Step::Number(0.0), Step::Number(value), Step::Binary(Operator::Subtract)] => Some(-value),
            _ => None,
        }
    }

    /// The parameters in it, without their `$`, in order of appearance, possibly repeated.
    pub fn parameters(&self) -> Vec<String> {
        let names = self.steps.iter().filter_map(|step| match step {
            Step::Parameter(name) | Step::Element(name) => Some(name.clone()),
            _ => None,
        });
        names.collect()
    }

    /// Its value under `bindings`; only the branch taken of `?:` is evaluated.
    ///
    /// # Errors
    /// [`ExpressionError::Unbound`] for a parameter without a value, [`ExpressionError::Undefined`] for an operation
    /// without a finite result, an unknown function, or an index into what is not a list.
    pub fn eval<S: Scalar>(&self, bindings: &Bindings<S>) -> Result<S, ExpressionError> {
        self.eval_in(&Environment { bindings, parameters: &[] })
    }

    pub(super) fn eval_in<S: Scalar>(&self, environment: &Environment<'_, S>) -> Result<S, ExpressionError> {
        let mut stack: Vec<S> = Vec::new();
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            at = self.step(step, at, &mut stack, environment)?;
        }
        let value = stack.pop().ok_or_else(|| self.undefined("it is empty"))?;
        if value.re().is_nan() { Err(self.undefined("its value is not a number")) } else { Ok(value) }
    }

    /// Executes one step; the position of the next.
    fn step<S: Scalar>(
        &self,
        step: &Step,
        at: usize,
        stack: &mut Vec<S>,
        environment: &Environment<'_, S>,
    ) -> Result<usize, ExpressionError> {
        let mut pop = || stack.pop().ok_or_else(|| self.undefined("an operand is missing"));
        let value = match step {
            Step::Skip(to) => return Ok(*to),
            Step::SkipUnless(to) => return Ok(if pop()?.re() == 0.0 { *to } else { at + 1 }),
            Step::Number(value) => S::from(*value),
            Step::Parameter(name) => {
                let unbound = || ExpressionError::Unbound { text: self.text.clone(), name: name.clone() };
                environment.bindings.get(name).ok_or_else(unbound)?
            }
            Step::Element(name) => S::from(self.element(name, pop()?.re(), environment)?),
            Step::Negate => -pop()?,
            Step::Not => truth(pop()?.re() == 0.0),
            Step::Binary(operator) => {
                let right = pop()?;
                let left = pop()?;
                self.binary(*operator, left, right)?
            }
            Step::Call(name, n_arguments) => {
                let start = stack.len().saturating_sub(*n_arguments);
                let arguments = stack.split_off(start);
                self.call(name, &arguments)?
            }
        };
        stack.push(value);
        Ok(at + 1)
    }

    fn undefined(&self, reason: impl Into<String>) -> ExpressionError {
        ExpressionError::Undefined { text: self.text.clone(), reason: reason.into() }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the index is whole and not negative here")]
    fn element<S>(&self, name: &str, index: f64, environment: &Environment<'_, S>) -> Result<f64, ExpressionError> {
        let values = environment.parameters.iter().find(|p| p.name == name).and_then(|p| p.value.values());
        let values = values.ok_or_else(|| self.undefined(format!("${name} is not a list of numbers")))?;
        let whole = index >= 0.0 && index.fract() == 0.0;
        let found = if whole { values.get(index as usize).copied() } else { None };
        found.ok_or_else(|| self.undefined(format!("${name} has no element {index}: it has {}, counted from 0", values.len())))
    }

    fn binary<S: Scalar>(&self, operator: Operator, a: S, b: S) -> Result<S, ExpressionError> {
        let (x, y) = (a.re(), b.re());
        #[expect(clippy::float_cmp, reason = "the language's == is exact")]
        Ok(match operator {
            Operator::Or => truth(x != 0.0 || y != 0.0),
            Operator::And => truth(x != 0.0 && y != 0.0),
            Operator::Equal => truth(x == y),
            Operator::NotEqual => truth(x != y),
            Operator::Less => truth(x < y),
            Operator::LessEqual => truth(x <= y),
            Operator::Greater => truth(x > y),
            Operator::GreaterEqual => truth(x >= y),
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide | Operator::Remainder if y == 0.0 => return Err(self.undefined("division by zero")),
            Operator::Divide => a / b,
            Operator::Remainder => a - b * (x / y).trunc(),
            Operator::Power => return self.power(a, b),
        })
    }

    /// `base ** exponent`; the value is exact for whole exponents, and the derivative in the exponent is taken where
    /// the base is positive.
    fn power<S: Scalar>(&self, base: S, exponent: S) -> Result<S, ExpressionError> {
        let (x, y) = (base.re(), exponent.re());
        if x > 0.0 {
            return Ok(base.powf(y) * ((exponent - y) * base.ln()).exp());
        }
        #[expect(clippy::cast_possible_truncation, reason = "the exponent is whole and in range here")]
        if y.fract() == 0.0 && y.abs() <= f64::from(i32::MAX) && (x != 0.0 || y >= 0.0) {
            return Ok(base.powi(y as i32));
        }
        if x == 0.0 && y > 0.0 {
            return Ok(S::from(0.0));
        }
        Err(self.undefined(format!("{x} ** {y} has no value")))
    }

    fn call<S: Scalar>(&self, name: &str, arguments: &[S]) -> Result<S, ExpressionError> {
        Ok(match (name, arguments) {
            ("abs", [a]) => a.abs(),
            ("ceil", [a]) => S::from(a.re().ceil()),
            ("floor", [a]) => S::from(a.re().floor()),
            ("round", [a]) => S::from(a.re().round()),
            ("exp", [a]) => a.exp(),
            ("log" | "ln", [a]) if a.re() > 0.0 => a.ln(),
            ("log10", [a]) if a.re() > 0.0 => a.log10(),
            ("sqrt", [a]) if a.re() >= 0.0 => a.sqrt(),
            ("sin", [a]) => a.sin(),
            ("cos", [a]) => a.cos(),
            ("tan", [a]) => a.tan(),
            ("atan", [a]) => a.atan(),
            ("pow", [a, b]) => return self.power(*a, *b),
            ("min", [first, rest @ ..]) => rest.iter().fold(*first, |m, a| if a.re() < m.re() { *a } else { m }),
            ("max", [first, rest @ ..]) => rest.iter().fold(*first, |m, a| if a.re() > m.re() { *a } else { m }),
            ("log" | "ln" | "log10", [a]) => return Err(self.undefined(format!("{name} of {}", a.re()))),
            ("sqrt", [a]) => return Err(self.undefined(format!("square root of {}", a.re()))),
            _ => return Err(self.undefined(format!("there is no function {name} of {} arguments", arguments.len()))),
        })
    }
}

fn truth<S: Scalar>(holds: bool) -> S {
    S::from(if holds { 1.0 } else { 0.0 })
}
