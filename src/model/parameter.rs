//! Parameters that a model gives values: numbers, lists to sweep, expressions over other parameters.
//!
//! A parameter's value reads `3`, `[1, 2, 3]`, `[1:10,3]` (from, to, step; both ends included), `"text"`, or any
//! expression of the text grammar. Lists are sweeps: a single solution takes their first value.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    Bindings, Expression, ExpressionError, Model, Number, Scalar,
    expression::Environment,
    lexer::{Cursor, Token},
};

/// Longest list of values that a range may stand for: beyond this a sweep is a mistake.
const MAX_VALUES: f64 = 1e6;

/// A parameter that the model gives a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name without the `$`.
    pub name: String,
    /// Its value.
    pub value: ParameterValue,
}

/// The value that a model gives one of its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// A number.
    #[serde(serialize_with = "serialize_number")]
    Number(f64),
    /// Several values, for a sweep over their cross product; the first is used for a single solution.
    #[serde(serialize_with = "serialize_numbers")]
    List(Vec<f64>),
    /// An expression over other parameters, in the text grammar's syntax.
    Expression(String),
    /// Several values of which at least one is an expression.
    Expressions(Vec<String>),
    /// Evenly spaced values, both ends included.
    Range {
        /// First value.
        from: f64,
        /// Last value, if a whole number of steps leads there.
        to: f64,
        /// Difference of neighbours.
        step: f64,
    },
    /// An expression evaluated anew for each value of the swept parameter `over`.
    ForEach {
        /// The swept parameter, without its `$`.
        over: String,
        /// The expression.
        expression: String,
    },
    /// A text, for the LQN tools' own controls; it has no numeric value.
    Text {
        /// The text.
        text: String,
    },
}

/// A parameter of a model whose value cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("parameter ${parameter}")]
pub struct BindingError {
    /// The parameter, without its `$`.
    pub parameter: String,
    /// Why.
    #[source]
    pub source: ExpressionError,
}

impl ParameterValue {
    /// Reads what stands right of the `=`: `3`, `[1, 2]`, `[1:9,2]`, `"text"`, `$a * 2`.
    ///
    /// # Errors
    /// [`ExpressionError::Syntax`] with the column of what was not expected.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut cursor = Cursor::new(text);
        let value = Self::read(&mut cursor).and_then(|value| cursor.expect_end("the end of the value").map(|()| value));
        value.map_err(|e| e.into_expression_error(text))
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, super::lexer::SyntaxError> {
        match cursor.peek()?.token {
            Token::Text(text) => {
                let text = unescape(text);
                cursor.next()?;
                Ok(Self::Text { text })
            }
            Token::Symbol("[") => {
                cursor.next()?;
                Self::read_list(cursor)
            }
            _ => Ok(Self::of_expression(&Expression::read(cursor)?)),
        }
    }

    fn of_expression(expression: &Expression) -> Self {
        expression.literal().map_or_else(|| Self::Expression(expression.text().to_owned()), Self::Number)
    }

    /// The rest of a list after its `[`.
    fn read_list(cursor: &mut Cursor<'_>) -> Result<Self, super::lexer::SyntaxError> {
        let bracket = cursor.open_bracket();
        let first = Expression::read(cursor)?;
        let value = if cursor.accept(":")? {
            let from = constant(&first, cursor)?;
            let end = Expression::read(cursor)?;
            let to = constant(&end, cursor)?;
            cursor.expect(",", "a comma and the step of the range")?;
            let step = Expression::read(cursor)?;
            Self::Range { from, to, step: constant(&step, cursor)? }
        } else {
            let mut items = vec![first];
            while cursor.accept(",")? {
                items.push(Expression::read(cursor)?);
            }
            Self::of_items(&items)
        };
        cursor.close_bracket(bracket);
        cursor.expect("]", "a comma or \"]\"")?;
        Ok(value)
    }

    fn of_items(items: &[Expression]) -> Self {
        let literals: Option<Vec<f64>> = items.iter().map(Expression::literal).collect();
        literals.map_or_else(|| Self::Expressions(items.iter().map(|e| e.text().to_owned()).collect()), Self::List)
    }

    /// All values of a list or range of numbers, in order; `None` for expressions, texts, and ranges of more than a
    /// million values.
    pub fn values(&self) -> Option<Vec<f64>> {
        match self {
            Self::Number(value) => Some(vec![*value]),
            Self::List(values) => Some(values.clone()),
            Self::Range { from, to, step } => range(*from, *to, *step),
            Self::Expression(_) | Self::Expressions(_) | Self::ForEach { .. } | Self::Text { .. } => None,
        }
    }

    /// The expressions in the value, unparsed.
    pub(super) fn expressions(&self) -> &[String] {
        match self {
            Self::Expression(text) | Self::ForEach { expression: text, .. } => std::slice::from_ref(text),
            Self::Expressions(texts) => texts,
            Self::Number(_) | Self::List(_) | Self::Range { .. } | Self::Text { .. } => &[],
        }
    }

    /// The value for a single solution; `None` for a text or an empty list.
    fn first<S: Scalar>(&self, environment: &Environment<'_, S>) -> Result<Option<S>, ExpressionError> {
        match self {
            Self::Number(value) | Self::Range { from: value, .. } => Ok(Some(S::from(*value))),
            Self::List(values) => Ok(values.first().map(|v| S::from(*v))),
            Self::Expression(text) | Self::ForEach { expression: text, .. } => Expression::parse(text)?.eval_in(environment).map(Some),
            Self::Expressions(texts) => texts.first().map(|text| Expression::parse(text)?.eval_in(environment)).transpose(),
            Self::Text { .. } => Ok(None),
        }
    }
}

fn constant(expression: &Expression, cursor: &Cursor<'_>) -> Result<f64, super::lexer::SyntaxError> {
    expression.literal().ok_or_else(|| cursor.error_here("a range holds numbers only"))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the count was compared with MAX_VALUES")]
#[expect(clippy::cast_precision_loss, reason = "counts are at most a million")]
fn range(from: f64, to: f64, step: f64) -> Option<Vec<f64>> {
    /// Share of a step by which rounding may miss the upper end.
    const SLACK: f64 = 1e-9;
    let n_steps = ((to - from) / step + SLACK).floor();
    let countable = (0.0..MAX_VALUES).contains(&n_steps);
    countable.then(|| (0..=n_steps as usize).map(|i| from + i as f64 * step).collect())
}

fn unescape(text: &str) -> String {
    text.replace("\\\"", "\"")
}

/// A number as the text grammar writes it, which has no signs.
fn unsigned(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_sign_negative() { write!(f, "(0 - {})", Number::Value(-value)) } else { write!(f, "{}", Number::Value(value)) }
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => unsigned(f, *value),
            Self::List(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    unsigned(f, *value)?;
                }
                f.write_str("]")
            }
            Self::Expression(text) | Self::ForEach { expression: text, .. } => f.write_str(text),
            Self::Expressions(texts) => write!(f, "[{}]", texts.join(", ")),
            Self::Range { from, to, step } => {
                f.write_str("[")?;
                unsigned(f, *from)?;
                f.write_str(":")?;
                unsigned(f, *to)?;
                f.write_str(",")?;
                unsigned(f, *step)?;
                f.write_str("]")
            }
            Self::Text { text } => write!(f, "\"{}\"", text.replace('"', "\\\"")),
        }
    }
}

/// `$name = value`, as in the text grammar.
impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ParameterValue::ForEach { over, .. } = &self.value {
            write!(f, "${over}, ")?;
        }
        write!(f, "${} = {}", self.name, self.value)
    }
}

/// A number as [`Number`] has it, since JSON has no infinity.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn serialize_number<Z: Serializer>(value: &f64, serializer: Z) -> Result<Z::Ok, Z::Error> {
    Number::Value(*value).serialize(serializer)
}

fn serialize_numbers<Z: Serializer>(values: &[f64], serializer: Z) -> Result<Z::Ok, Z::Error> {
    serializer.collect_seq(values.iter().map(|value| Number::Value(*value)))
}

/// A [`ParameterValue`] as it stands in JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Number(f64),
    Expression(String),
    List(Vec<Item>),
    Range(RangeForm),
    ForEach(ForEachForm),
    Text(TextForm),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Number(f64),
    Expression(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeForm {
    from: f64,
    to: f64,
    step: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForEachForm {
    over: String,
    expression: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextForm {
    text: String,
}

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "expected a number, an expression in a string, a list of these, {\"from\", \"to\", \"step\"}, \
                        {\"over\", \"expression\"} or {\"text\"}";
        let form = Form::deserialize(deserializer).map_err(|_| de::Error::custom(expected))?;
        let parse = |text: &str| Expression::parse(text).map_err(de::Error::custom);
        Ok(match form {
            Form::Number(value) => Self::Number(value),
            Form::Expression(text) => Self::of_expression(&parse(&text)?),
            Form::List(items) => {
                let items: Result<Vec<Expression>, D::Error> = items
                    .iter()
                    .map(|item| match item {
                        Item::Number(value) => Ok(Expression::of_number(*value)),
                        Item::Expression(text) => parse(text),
                    })
                    .collect();
                Self::of_items(&items?)
            }
            Form::Range(RangeForm { from, to, step }) => Self::Range { from, to, step },
            Form::ForEach(ForEachForm { over, expression }) => {
                parse(&expression)?;
                Self::ForEach { over, expression }
            }
            Form::Text(TextForm { text }) => Self::Text { text },
        })
    }
}

impl Model {
    /// The values of all parameters for a single solution: `overrides`, then the model's own definitions in their
    /// order, each evaluated under what stands before it. A definition whose name is in `overrides` is not evaluated.
    ///
    /// # Errors
    /// [`BindingError`] for a definition that needs a parameter without a value, or has no finite value itself.
    pub fn bindings<S: Scalar>(&self, overrides: &Bindings<S>) -> Result<Bindings<S>, BindingError> {
        let mut bindings = overrides.clone();
        for parameter in &self.parameters {
            if overrides.get(&parameter.name).is_some() {
                continue;
            }
            let environment = Environment { bindings: &bindings, parameters: &self.parameters };
            let value = parameter.value.first(&environment);
            let value = value.map_err(|source| BindingError { parameter: parameter.name.clone(), source })?;
            if let Some(value) = value {
                bindings.set(parameter.name.clone(), value);
            }
        }
        Ok(bindings)
    }

    /// Every `$name` among the model's numbers, in order of first use in the file.
    pub fn parameter_names(&self) -> Vec<String> {
        let mut names = indexmap::IndexSet::new();
        self.for_each_number(&mut |number| {
            if let Some(name) = number.parameter() {
                names.insert(name.to_owned());
            }
        });
        names.into_iter().collect()
    }

    /// The parameters that must come from outside: used by the model's numbers, or by the definitions of such, and not
    /// defined in the model.
    pub fn free_parameters(&self) -> Vec<String> {
        let mut pending: std::collections::VecDeque<String> = self.parameter_names().into();
        let mut seen = indexmap::IndexSet::new();
        let mut free = Vec::new();
        while let Some(name) = pending.pop_front() {
            if !seen.insert(name.clone()) {
                continue;
            }
            match self.parameters.iter().find(|p| p.name == name) {
                None => free.push(name),
                Some(definition) => {
                    let expressions = definition.value.expressions().iter().filter_map(|text| Expression::parse(text).ok());
                    pending.extend(expressions.flat_map(|e| e.parameters()));
                }
            }
        }
        free
    }
}
