//! The grammar of expressions: tokens to steps.

use super::{Operator, Step};
use crate::model::lexer::{Cursor, SyntaxError, Token, value_of};

/// Left-associative operators by level, loosest first.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessEqual),
        (">=", Operator::GreaterEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)],
];

/// The tokens of `raw` joined by blanks: without line ends and comments.
pub(super) fn on_one_line(raw: &str) -> Result<String, SyntaxError> {
    let mut cursor = Cursor::new(raw);
    let mut words: Vec<&str> = Vec::new();
    loop {
        let spanned = cursor.next()?;
        if spanned.token == Token::End {
            return Ok(words.join(" "));
        }
        words.push(cursor.slice(spanned.start, spanned.end));
    }
}

/// Reads a `tern`.
pub(super) fn read_conditional(cursor: &mut Cursor<'_>, steps: &mut Vec<Step>) -> Result<(), SyntaxError> {
    cursor.descend()?;
    read_level(cursor, steps, 0)?;
    if cursor.accept("?")? {
        let test = steps.len();
        steps.push(Step::SkipUnless(0));
        read_conditional(cursor, steps)?;
        cursor.expect(":", "\":\" and the other branch of \"?\"")?;
        let branch = steps.len();
        steps.push(Step::Skip(0));
        set(steps, test, Step::SkipUnless(branch + 1));
        read_conditional(cursor, steps)?;
        let end = steps.len();
        set(steps, branch, Step::Skip(end));
    }
    cursor.ascend();
    Ok(())
}

fn set(steps: &mut [Step], at: usize, step: Step) {
    if let Some(slot) = steps.get_mut(at) {
        *slot = step;
    }
}

fn read_level(cursor: &mut Cursor<'_>, steps: &mut Vec<Step>, level: usize) -> Result<(), SyntaxError> {
    let Some(operators) = LEVELS.get(level) else {
        return read_power(cursor, steps);
    };
    read_level(cursor, steps, level + 1)?;
    loop {
        let Token::Symbol(symbol) = cursor.peek()?.token else {
            return Ok(());
        };
        let Some((_, operator)) = operators.iter().find(|(s, _)| *s == symbol) else {
            return Ok(());
        };
        cursor.next()?;
        read_level(cursor, steps, level + 1)?;
        steps.push(Step::Binary(*operator));
    }
}

fn read_power(cursor: &mut Cursor<'_>, steps: &mut Vec<Step>) -> Result<(), SyntaxError> {
    cursor.descend()?;
    if cursor.accept("-")? {
        read_power(cursor, steps)?;
        steps.push(Step::Negate);
    } else if cursor.accept("!")? {
        read_power(cursor, steps)?;
        steps.push(Step::Not);
    } else {
        read_factor(cursor, steps)?;
        if cursor.accept("**")? {
            read_power(cursor, steps)?;
            steps.push(Step::Binary(Operator::Power));
        }
    }
    cursor.ascend();
    Ok(())
}

fn read_factor(cursor: &mut Cursor<'_>, steps: &mut Vec<Step>) -> Result<(), SyntaxError> {
    const EXPECTED: &str = "a number, a parameter, a function or \"(\"";
    match cursor.peek()?.token {
        Token::Number(number) => {
            let value = value_of(number).ok_or_else(|| cursor.error_here("the number is too large"))?;
            cursor.next()?;
            steps.push(Step::Number(value));
        }
        Token::Infinity => {
            cursor.next()?;
            steps.push(Step::Number(f64::INFINITY));
        }
        Token::Variable(name) => {
            cursor.next()?;
            read_element(cursor, steps, name)?;
        }
        Token::Name(name) => {
            cursor.next()?;
            read_call(cursor, steps, name)?;
        }
        Token::Symbol("(") => {
            cursor.next()?;
            let bracket = cursor.open_bracket();
            read_conditional(cursor, steps)?;
            cursor.close_bracket(bracket);
            cursor.expect(")", "an operator or \")\"")?;
        }
        _ => return Err(cursor.unexpected(EXPECTED)),
    }
    Ok(())
}

fn read_element(cursor: &mut Cursor<'_>, steps: &mut Vec<Step>, name: &str) -> Result<(), SyntaxError> {
    if !cursor.accept("[")? {
        steps.push(Step::Parameter(name.to_owned()));
        return Ok(());
    }
    let bracket = cursor.open_bracket();
    read_conditional(cursor, steps)?;
    cursor.close_bracket(bracket);
    cursor.expect("]", "an operator or \"]\"")?;
    steps.push(Step::Element(name.to_owned()));
    Ok(())
}

fn read_call(cursor: &mut Cursor<'_>, steps: &mut Vec<Step>, name: &str) -> Result<(), SyntaxError> {
    cursor.expect("(", "\"(\" after a function's name")?;
    let bracket = cursor.open_bracket();
    let mut n_arguments = 0;
    if cursor.peek()?.token != Token::Symbol(")") {
        read_conditional(cursor, steps)?;
        n_arguments = 1;
        while cursor.accept(",")? {
            read_conditional(cursor, steps)?;
            n_arguments += 1;
        }
    }
    cursor.close_bracket(bracket);
    cursor.expect(")", "a comma or \")\"")?;
    steps.push(Step::Call(name.to_owned(), n_arguments));
    Ok(())
}
