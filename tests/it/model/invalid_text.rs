//! Text that is not a model of the grammar, with where and why.

use layerfit::model::lqn_text;

fn check(input: &str, expected: &str) {
    let message = lqn_text::parse(input).expect_err(input).to_string();
    assert!(message.contains(expected), "{input}\nsaid: {message}\nexpected: {expected}");
}

/// With processors and tasks before the given rest.
fn after_tasks(rest: &str) -> String {
    format!("P 0 p p1 f -1\nT 0 t c1 r cc -1 p1 t t1 n e1 e2 -1 p1 -1\n{rest}")
}

/// With the given lines of the E section.
fn entries(lines: &str) -> String {
    after_tasks(&format!("E 0 {lines} -1"))
}

/// With the given A section of task `t1`.
fn activities(section: &str) -> String {
    after_tasks(&format!("E 0 A e1 aa -1\nA t1 s aa 1 s bb 1 {section}"))
}

#[test]
fn lines_that_stand_twice() {
    check(&entries("\ns e1 1 -1\ns e2 1 -1\ns e1 0 2 -1"), "line 6, column 1: entry \"e1\" has a line \"s\" already");
    for (letter, rest) in [("a", "0.5"), ("A", "aa"), ("c", "1 -1"), ("Z", "1 -1"), ("M", "1 -1"), ("f", "1 -1"), ("p", "2")] {
        check(&entries(&format!("{letter} e1 {rest} {letter} e1 {rest}")), &format!("entry \"e1\" has a line \"{letter}\" already"));
    }
    check(&activities("s aa 2 -1"), "activity \"aa\" has a line \"s\" already");
    check(&activities("c aa 2 c bb 2 c aa 3 -1"), "activity \"aa\" has a line \"c\" already");
}

#[test]
fn sections_and_tokens() {
    check("", "line 1, column 1: expected the processors' section \"P\", found the end of the input");
    check("X", "expected the processors' section \"P\", found \"X\"");
    check("P 0 p p1 f", "line 1, column 11: expected \"-1\" at the end of the list");
    check("P p p1 f -1", "column 3: expected a whole number, found \"p\"");
    check("P 0 p p1 f -1", "expected the tasks' section \"T\"");
    check("P 0 p p1 f -1 T 0 t t1 n e1 -1 p1 -1", "expected the entries' section \"E\"");
    check(&after_tasks("E 0 -1 Z"), "line 3, column 8: expected a section \"A\", \"R\" or \"C\", or the end");
    check("G 5 -1", "expected a comment in quotes, found \"5\"");
    check("G \"open", "the text is not closed");
    check("G \"\" 1 2 3 4 5 -1", "expected convergence, iterations, print interval and relaxation");
    check("P 0 \u{7f} -1", "unexpected character");
    check("P 0 p p1 f m 1e400 -1", "the number is too large");
    check("P 0 p p1 f m . -1", "expected a digit beside \".\"");
    check("P 0 p p1 f m @many -1", "expected \"@infinity\"");
    check("P 0 p p1 f m $ -1", "expected a parameter's name after \"$\"");
    check("P 0 p p1 f m {1 + -1", "expected an operator or \"}\"");
    check("$a 3", "expected \"=\" after the parameter, found \"3\"");
    check("$a = [1, 2", "expected a comma or \"]\"");
    check("$a, 3 = 2", "expected a second parameter");
}

#[test]
fn processors_groups_and_tasks() {
    check("P 0 q p1 f -1", "line 1, column 5: expected a processor \"p\" or \"-1\", found \"q\"");
    check("P 0 p p f -1", "expected a processor's name, of two characters or more");
    check("P 0 p p1 x -1", "expected a scheduling: f, i, r, h, p, c or s, found \"x\"");
    check("P 0 p p1 s m 2 -1", "expected a number, a $name or an expression in braces, found \"m\"");
    check("P 0 p p1 f m -2 -1", "expected a number");
    check("P 0 p p1 c 1 -1 U 0 g gg 0.5 p2 -1", "there is no processor \"p2\"");
    check("P 0 p p1 f -1 T 0 t t1 n e1 -1 p2 -1", "column 32: there is no processor \"p2\"");
    check("P 0 p p1 f -1 T 0 t t1 n -1 p1 -1", "expected an entry's name");
    check("P 0 p p1 f -1 T 0 t t1 q e1 -1 p1 -1", "expected a scheduling: r, b, u, n");
    check("P 0 p p1 f -1 T 0 s t1 -1", "expected a task \"t\", a fan \"I\" or \"O\", or \"-1\"");
    check("P 0 p p1 f -1 T 0 t t1 n e1 -1 p1 I t1 t2 1 -1", "there is no task \"t2\"");
    check("P 0 p p1 f -1 T 0 t t1 n e1 -1 p1 O t2 t1 1 -1", "there is no task \"t2\"");
}

#[test]
fn lines_of_entries() {
    check(&entries("q e1 1 -1"), "line 3, column 5: expected a line of an entry");
    check(&entries("s e9 1 -1"), "line 3, column 7: there is no entry \"e9\"");
    check(&entries("s e1 -1"), "expected a number");
    check(&entries("s e1 1 2 3 4 -1"), "expected a number for the next phase, or \"-1\", found \"4\"");
    check(&entries("s e1 1"), "line 3");
    check(&entries("f e1 2 -1"), "expected 0 (stochastic) or 1 (deterministic)");
    check(&entries("M e1 $m -1"), "no $name may stand here");
    check(&entries("H e1 4 0:1"), "expected a phase: 1, 2 or 3");
    check(&entries("H e1 1 0 1"), "expected \":\" and the upper end");
    check(&entries("H e1 1 $a:1"), "expected a number");
    check(&entries("y e1 e9 1 -1"), "there is no entry \"e9\"");
    check(&entries("F e1 e2 0.5 0.5 -1"), "expected \"-1\" after the probability");
    check(&entries("A e1 a"), "expected an activity's name, of two characters or more");
    check(&entries("s e1 1 -1 %s 90 $x"), "expected 95, 99 or a $name");
    check(&entries("s e1 1 -1 %i $x"), "only the solution has the result \"%i\"");
    check("G \"\" -1 %f $x P 0 -1", "the solution has no result \"%f\"");
}

#[test]
fn activity_sections() {
    check(&after_tasks("E 0 -1 A t9 s aa 1 -1"), "there is no task \"t9\"");
    check(&activities("q aa 1 -1"), "expected a line of an activity");
    check(&activities("f aa 2 -1"), "expected 0 (stochastic) or 1 (deterministic)");
    check(&activities("y aa e9 1 -1"), "there is no entry \"e9\"");
    check(&activities(": aa -> dd -1"), "line 4, column 28: there is no activity \"dd\"");
    check(&activities(": aa -> 7 -1"), "there is no activity \"7\"");
    check(&activities(": -1"), "expected an activity's name");
    check(&activities(": aa -> -1"), "expected a number");
    check(&activities(": aa -> bb bb -1"), "expected \";\", \"->\" or \"-1\", found \"bb\"");
    check(&activities(": aa[e9] -1"), "there is no entry \"e9\"");
    check(&activities(": aa[e1 -1"), "expected a comma or \"]\"");
    check(&activities(": aa & bb (2 -1"), "expected \")\" after the quorum");
    check(&activities(": aa -> (0.5) bb + dd -1"), "expected \"(\" and the branch's probability");
    check(&activities(": aa -> (0.5 bb -1"), "expected \")\" after the probability");
    check(&activities(": aa -> $n bb -1"), "expected \"*\" after the count of a loop");
    check(&activities(": aa -> 2 * bb, aa, bb -1"), "a loop ends with one activity");
    check(&activities(": aa -> 2 * bb"), "expected \"-1\" at the end of the list");
}

#[test]
fn results_and_convergence() {
    check(&after_tasks("E 0 -1 R 0 $a = -1"), "expected a number, a parameter, a function");
    check(&after_tasks("E 0 -1 R 0 $a"), "expected \"-1\" at the end of the list");
    check(&after_tasks("E 0 -1 C 0 3 -1"), "expected a parameter to iterate on");
    check(&after_tasks("E 0 -1 C 0 $a + 1 -1"), "expected \"=\" after the parameter");
}
