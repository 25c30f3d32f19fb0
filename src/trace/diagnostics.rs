//! Counted diagnostics: what in a trace was odd, how often, and the first examples.

use std::fmt::Write;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Examples kept of one kind.
const EXAMPLES_KEPT: usize = 5;

/// One kind of oddity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Stable code: `unpaired_send`, `zombie_on_pending`.
    pub code: String,
    /// What it means, for a person.
    pub message: String,
    /// How often it was met.
    pub count: u64,
    /// Where it was first met, a few times.
    pub examples: Vec<String>,
}

/// Oddities collected so far, by code, in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(IndexMap<&'static str, Diagnostic>);

impl Diagnostics {
    /// Counts one oddity of kind `code`; `example` is called only while examples are still kept.
    pub fn add(&mut self, code: &'static str, message: &'static str, example: impl FnOnce() -> String) {
        let known = self.0.entry(code).or_insert_with(|| Diagnostic {
            code: code.to_owned(),
            message: message.to_owned(),
            count: 0,
            examples: Vec::new(),
        });
        known.count += 1;
        if known.examples.len() < EXAMPLES_KEPT {
            known.examples.push(example());
        }
    }

    /// Counts `n` oddities of kind `code`, with the first of their examples; nothing when `n` is 0.
    pub fn add_times(&mut self, code: &'static str, message: &'static str, n: u64, examples: impl IntoIterator<Item = String>) {
        if n > 0 {
            let examples = examples.into_iter().take(EXAMPLES_KEPT).collect();
            let counted = Diagnostic { code: code.to_owned(), message: message.to_owned(), count: n, examples };
            self.merge(Self(IndexMap::from([(code, counted)])));
        }
    }

    /// Counts what `later` counted, after what is here.
    pub fn merge(&mut self, later: Self) {
        for (code, diagnostic) in later.0 {
            match self.0.get_mut(code) {
                None => {
                    self.0.insert(code, diagnostic);
                }
                Some(known) => {
                    known.count += diagnostic.count;
                    let room = EXAMPLES_KEPT - known.examples.len().min(EXAMPLES_KEPT);
                    known.examples.extend(diagnostic.examples.into_iter().take(room));
                }
            }
        }
    }

    /// How often `code` was met.
    pub fn count(&self, code: &str) -> u64 {
        self.0.get(code).map_or(0, |d| d.count)
    }

    /// The kinds met, in order of first appearance.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.0.into_values().collect()
    }
}

/// What was odd, as a section of a report; nothing where nothing was.
pub fn in_words(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    if !diagnostics.is_empty() {
        text += "\ndiagnostics\n";
    }
    for Diagnostic { code, message, count, examples } in diagnostics {
        let times = if *count == 1 { "time" } else { "times" };
        let _ = writeln!(text, "  {code} ({count} {times}): {message}");
        for example in examples {
            let _ = writeln!(text, "      {example}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(n: usize, label: &str) -> Diagnostics {
        let mut all = Diagnostics::default();
        for i in 0..n {
            all.add("odd", "something odd", || format!("{label}{i}"));
        }
        all
    }

    #[test]
    fn keeps_the_first_examples_and_counts_all() {
        let all = some(8, "a").into_vec();
        assert_eq!((all[0].count, all[0].examples.len()), (8, 5));
    }

    #[test]
    fn merging_adds_counts_and_fills_examples_in_order() {
        let mut all = some(3, "a");
        all.merge(some(4, "b"));
        assert_eq!(all.count("odd"), 7);
        assert_eq!(all.into_vec()[0].examples, ["a0", "a1", "a2", "b0", "b1"]);
    }
}
