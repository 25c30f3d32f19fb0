//! The parts of the text grammar that LQNX files hold too: parameter definitions, and the results and convergence lists.
//!
//! Results and convergence lists are checked and kept, one item a line; layerfit acts on neither.

use super::{
    Expression, Parameter, ParameterValue,
    lexer::{Cursor, SyntaxError, Token},
};

/// What a list of items is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collection {
    /// What to print: expressions, assignments, plots.
    Results,
    /// What to iterate on: assignments only.
    Convergence,
}

/// Reads definitions `$name = value` for as long as there are any.
pub(super) fn read_parameters(cursor: &mut Cursor<'_>, parameters: &mut Vec<Parameter>) -> Result<(), SyntaxError> {
    while let Token::Variable(first) = cursor.peek()?.token {
        cursor.next()?;
        if cursor.accept(",")? {
            let Token::Variable(name) = cursor.peek()?.token else {
                return Err(cursor.unexpected("a second parameter"));
            };
            cursor.next()?;
            cursor.expect("=", "\"=\" after the parameter")?;
            let expression = Expression::read(cursor)?.text().to_owned();
            parameters.push(Parameter { name: name.to_owned(), value: ParameterValue::ForEach { over: first.to_owned(), expression } });
        } else {
            cursor.expect("=", "\"=\" after the parameter")?;
            let value = ParameterValue::read(cursor)?;
            parameters.push(Parameter { name: first.to_owned(), value });
        }
    }
    Ok(())
}

/// Reads the items of a list up to its end, which is not taken.
pub(super) fn read_collection(cursor: &mut Cursor<'_>, kind: Collection) -> Result<Vec<String>, SyntaxError> {
    let mut items = Vec::new();
    while !matches!(cursor.peek()?.token, Token::End | Token::EndOfList) {
        items.push(read_item(cursor, kind)?);
    }
    Ok(items)
}

fn read_item(cursor: &mut Cursor<'_>, kind: Collection) -> Result<String, SyntaxError> {
    if kind == Collection::Convergence && !matches!(cursor.peek()?.token, Token::Variable(_)) {
        return Err(cursor.unexpected("a parameter to iterate on"));
    }
    let left = Expression::read(cursor)?;
    let is_parameter = matches!(left.parameters().as_slice(), [name] if left.text() == format!("${name}"));
    if is_parameter && cursor.accept("=")? {
        let right = Expression::read(cursor)?;
        return Ok(format!("{} = {}", left.text(), right.text()));
    }
    if kind == Collection::Convergence {
        return Err(cursor.unexpected("\"=\" after the parameter"));
    }
    Ok(left.text().to_owned())
}
