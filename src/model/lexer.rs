//! Tokens of the text grammar, shared by models in text, parameter definitions and expressions.
//!
//! `#` starts a comment up to the end of its line, save `#pragma` at the start of a line. A lone `-1` ends lists; within
//! brackets, and where no list is open, it is a minus and a one.

use super::{expression::ExpressionError, format::ParseError};

/// One token; texts borrow from the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// Digits, with or without a fraction and an exponent; also a name where one is expected and it is digits alone.
    Number(&'a str),
    /// A letter or underscore with letters, digits and underscores.
    Name(&'a str),
    /// `$name`, without the `$`.
    Variable(&'a str),
    /// `"text"`, without its quotes, escapes kept.
    Text(&'a str),
    /// `%key`, without the `%`.
    Key(&'a str),
    /// `@infinity`.
    Infinity,
    /// `-1` by itself.
    EndOfList,
    /// An operator or separator.
    Symbol(&'static str),
    /// The end of the input.
    End,
}

/// A token and where it stands, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spanned<'a> {
    pub(super) token: Token<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What is wrong, and where, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SyntaxError {
    pub(super) offset: usize,
    pub(super) reason: String,
}

impl SyntaxError {
    /// With line and column of `text`.
    pub(super) fn into_parse_error(self, text: &str) -> ParseError {
        ParseError::at(text, self.offset, self.reason)
    }

    /// As the error of a single expression.
    pub(super) fn into_expression_error(self, text: &str) -> ExpressionError {
        let before = text.get(..self.offset).unwrap_or(text);
        ExpressionError::Syntax { text: text.to_owned(), column: before.chars().count() + 1, reason: self.reason }
    }
}

/// Operators and separators; longer ones first.
const SYMBOLS: &[&str] = &[
    "->", "**", "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "=", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}", ",", ":",
    ";", "?", "&", "^",
];

/// Keys of observations, longer ones first; a phase may follow without space.
const KEYS: &[&str] = &["time", "usr", "sys", "fb", "pu", "pw", "wv", "f", "i", "u", "s", "v", "w", "x"];

/// How a cursor takes `-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MinusOne {
    ends_list: bool,
}

/// Reads tokens one by one, with one token of lookahead.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    position: usize,
    peeked: Option<Spanned<'a>>,
    last_end: usize,
    minus_one: MinusOne,
    depth: usize,
    pragmas: Vec<&'a str>,
}

impl<'a> Cursor<'a> {
    /// At the start of `text`, with no list open.
    pub(super) fn new(text: &'a str) -> Self {
        let text_start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self {
            text,
            position: text_start,
            peeked: None,
            last_end: text_start,
            minus_one: MinusOne { ends_list: false },
            depth: 0,
            pragmas: Vec::new(),
        }
    }

    /// From here on `-1` ends a list.
    pub(super) fn open_list(&mut self) {
        self.minus_one.ends_list = true;
    }

    /// From here on `-1` is a number until [`Self::close_bracket`].
    pub(super) fn open_bracket(&mut self) -> MinusOne {
        std::mem::replace(&mut self.minus_one, MinusOne { ends_list: false })
    }

    /// Undoes [`Self::open_bracket`].
    pub(super) fn close_bracket(&mut self, outer: MinusOne) {
        self.minus_one = outer;
    }

    /// Goes one level deeper into nested expressions.
    pub(super) fn descend(&mut self) -> Result<(), SyntaxError> {
        /// Deepest nesting of parentheses; people write a handful, and the parser's stack must not overflow.
        const MAX_DEPTH: usize = 64;
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(self.error_here(format!("nested more than {MAX_DEPTH} deep"))) } else { Ok(()) }
    }

    /// Undoes [`Self::descend`].
    pub(super) fn ascend(&mut self) {
        self.depth -= 1;
    }

    /// The pragmas passed so far, as `param=value`.
    pub(super) fn pragmas(&self) -> &[&'a str] {
        &self.pragmas
    }

    /// Where the last token taken ended.
    pub(super) fn last_end(&self) -> usize {
        self.last_end
    }

    /// The input between two offsets.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The next token, not taken.
    pub(super) fn peek(&mut self) -> Result<Spanned<'a>, SyntaxError> {
        let spanned = match self.peeked {
            Some(spanned) => spanned,
            None => self.lex()?,
        };
        self.peeked = Some(spanned);
        if spanned.token == Token::EndOfList && !self.minus_one.ends_list {
            let minus = Spanned { token: Token::Symbol("-"), start: spanned.start, end: spanned.start + 1 };
            self.position = minus.end;
            self.peeked = Some(minus);
            return Ok(minus);
        }
        Ok(spanned)
    }

    /// The next token, taken.
    pub(super) fn next(&mut self) -> Result<Spanned<'a>, SyntaxError> {
        let spanned = self.peek()?;
        self.peeked = None;
        self.last_end = spanned.end;
        Ok(spanned)
    }

    /// Takes the symbol if it is next.
    pub(super) fn accept(&mut self, symbol: &str) -> Result<bool, SyntaxError> {
        let found = self.peek()?.token == Token::Symbol(symbol_of(symbol));
        if found {
            self.next()?;
        }
        Ok(found)
    }

    /// Takes the symbol, or fails saying what was `expected`.
    pub(super) fn expect(&mut self, symbol: &str, expected: &str) -> Result<(), SyntaxError> {
        if self.accept(symbol)? { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Fails unless the input is at its end.
    pub(super) fn expect_end(&mut self, expected: &str) -> Result<(), SyntaxError> {
        if self.peek()?.token == Token::End { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// An error at the next token, which is not what was `expected`.
    pub(super) fn unexpected(&mut self, expected: &str) -> SyntaxError {
        match self.peek() {
            Err(error) => error,
            Ok(spanned) => {
                let found = match spanned.token {
                    Token::End => "the end of the input".to_owned(),
                    _ => format!("\"{}\"", shortened(self.slice(spanned.start, spanned.end))),
                };
                SyntaxError { offset: spanned.start, reason: format!("expected {expected}, found {found}") }
            }
        }
    }

    /// An error where the last token taken ended, or at the next token if one was looked at.
    pub(super) fn error_here(&self, reason: impl Into<String>) -> SyntaxError {
        SyntaxError { offset: self.peeked.map_or(self.last_end, |s| s.start), reason: reason.into() }
    }

    fn lex(&mut self) -> Result<Spanned<'a>, SyntaxError> {
        self.skip_blanks();
        let start = self.position;
        let rest = self.text.get(start..).unwrap_or_default();
        let (token, length) = self.token(rest, start)?;
        self.position = start + length;
        Ok(Spanned { token, start, end: self.position })
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.text.get(self.position..).unwrap_or_default();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{b}', '\u{c}']);
            self.position += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            let line = trimmed.lines().next().unwrap_or_default();
            if self.at_pragma(line) {
                self.pragmas.push(line.trim_start_matches("#pragma").trim());
            }
            self.position += line.len();
        }
    }

    fn at_pragma(&self, line: &str) -> bool {
        let line_start = self.position == 0 || self.text.get(..self.position).is_some_and(|before| before.ends_with('\n'));
        line_start && line.strip_prefix("#pragma").is_some_and(|r| r.starts_with([' ', '\t']))
    }

    fn token(&self, rest: &'a str, start: usize) -> Result<(Token<'a>, usize), SyntaxError> {
        let Some(first) = rest.chars().next() else {
            return Ok((Token::End, 0));
        };
        match first {
            '"' => quoted(rest, start),
            '$' => {
                let name = word(rest.get(1..).unwrap_or_default());
                if name.is_empty() {
                    return Err(SyntaxError { offset: start, reason: "expected a parameter's name after \"$\"".into() });
                }
                Ok((Token::Variable(name), name.len() + 1))
            }
            '@' => {
                let name = word(rest.get(1..).unwrap_or_default());
                if !name.eq_ignore_ascii_case("infinity") {
                    return Err(SyntaxError { offset: start, reason: "expected \"@infinity\"".into() });
                }
                Ok((Token::Infinity, name.len() + 1))
            }
            '%' if rest.get(1..).is_some_and(|r| r.starts_with(|c: char| c.is_ascii_alphabetic())) => key(rest, start),
            '0'..='9' | '.' => number(rest, start),
            'a'..='z' | 'A'..='Z' | '_' => {
                let name = word(rest);
                Ok((Token::Name(name), name.len()))
            }
            _ => symbol(rest, first, start),
        }
    }
}

/// The one `&'static str` for a symbol, so that tokens compare cheaply; unknown symbols compare unequal to all.
fn symbol_of(symbol: &str) -> &'static str {
    SYMBOLS.iter().find(|s| **s == symbol).copied().unwrap_or("")
}

fn symbol(rest: &str, first: char, start: usize) -> Result<(Token<'_>, usize), SyntaxError> {
    let ends_list = rest.strip_prefix("-1").is_some_and(|r| !r.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.'));
    if ends_list {
        return Ok((Token::EndOfList, 2));
    }
    match SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
        Some(symbol) => Ok((Token::Symbol(symbol), symbol.len())),
        None => Err(SyntaxError { offset: start, reason: format!("unexpected character {first:?}") }),
    }
}

/// The longest prefix of letters, digits and underscores.
fn word(text: &str) -> &str {
    let length = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    text.get(..length).unwrap_or_default()
}

fn quoted(rest: &str, start: usize) -> Result<(Token<'_>, usize), SyntaxError> {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Ok((Token::Text(rest.get(1..i).unwrap_or_default()), i + 1)),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    Err(SyntaxError { offset: start, reason: "the text is not closed: a quote is missing".into() })
}

fn key(rest: &str, start: usize) -> Result<(Token<'_>, usize), SyntaxError> {
    let full = word(rest.get(1..).unwrap_or_default());
    let known = KEYS.iter().any(|k| full.strip_prefix(k).is_some_and(|phase| phase.is_empty() || matches!(phase, "0" | "1" | "2" | "3")));
    if known {
        return Ok((Token::Key(full), full.len() + 1));
    }
    // `$a %b` within an expression is a modulus.
    symbol(rest, '%', start)
}

fn number(rest: &str, start: usize) -> Result<(Token<'_>, usize), SyntaxError> {
    let digits = |from: usize| rest.get(from..).unwrap_or_default().bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(0);
    let mut n_digits = length;
    if rest.get(length..).is_some_and(|r| r.starts_with('.')) {
        let fraction = digits(length + 1);
        n_digits += fraction;
        length += 1 + fraction;
    }
    if n_digits == 0 {
        return Err(SyntaxError { offset: start, reason: "expected a digit beside \".\"".into() });
    }
    if rest.get(length..).is_some_and(|r| r.starts_with(['e', 'E', 'd', 'D'])) {
        let sign = usize::from(rest.get(length + 1..).is_some_and(|r| r.starts_with(['+', '-'])));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    Ok((Token::Number(rest.get(..length).unwrap_or_default()), length))
}

/// The value of a [`Token::Number`].
pub(super) fn value_of(number: &str) -> Option<f64> {
    let value: f64 = number.replace(['d', 'D'], "e").parse().ok()?;
    value.is_finite().then_some(value)
}

/// At most 40 characters, for messages.
pub(super) fn shortened(text: &str) -> String {
    const LENGTH: usize = 40;
    let mut short: String = text.chars().take(LENGTH).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
