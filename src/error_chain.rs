//! An error with its causes in words, for people and logs.

use std::error::Error;

/// `error` and its sources, `a: b: c`. A source that the text before it ends with already is not said again.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let cause = inner.to_string();
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = inner.source();
    }
    text
}
