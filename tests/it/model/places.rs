//! Where what is wrong with a model that can be read stands in its file.

use layerfit::model::format::{Format, read};

/// The first defect that says `reason`, in words, and the text from its place on.
#[track_caller]
fn place<'a>(text: &'a str, format: Format, reason: &str) -> Option<&'a str> {
    let (model, places) = read(text, format).unwrap();
    let defects = model.validate();
    let found = defects.iter().position(|defect| defect.to_string().contains(reason)).unwrap_or_else(|| panic!("{reason}: {defects:#?}"));
    let (line, column) = places.of(&defects, text)[found]?;
    Some(&text.lines().nth(line - 1).unwrap()[column - 1..])
}

#[test]
fn text_has_the_line_of_what_is_wrong() {
    let at = |text: &'static str, reason: &str| place(text, Format::LqnText, reason).unwrap();
    let start = "P 0\np p1 f m 0\np p2 f\n-1\nT 0\nt c1 r cc -1 p1\nt t1 n e1 e2 -1 p1 m 0\n";
    let text = format!("{start}-1\nE 0\ns cc 1 -1\ny cc e1 1 -1\ns e1 1 -1 F e1 e2 1.5 -1\n-1\n").leak();
    assert_eq!(at(text, "processor \"p1\": its multiplicity is 0"), "p1 f m 0");
    assert_eq!(at(text, "processor \"p2\": "), "p2 f");
    assert_eq!(at(text, "task \"t1\": its multiplicity is 0"), "t1 n e1 e2 -1 p1 m 0");
    assert_eq!(at(text, "entry \"e1\" of task \"t1\": its forwarding"), "s e1 1 -1 F e1 e2 1.5 -1");
    let twice = format!("{start}t c1 n e1 -1 p1\n-1\nE 0\ns cc 1 -1\ny cc e1 1 -1\ns e1 1 -1\ns e2 1 -1\n-1\n").leak();
    assert_eq!(at(twice, "task \"c1\": another task has the same name"), "c1 n e1 -1 p1");
    assert_eq!(at(twice, "entry \"e1\" of task \"c1\": another entry"), "e1 -1 p1");
    let graph = format!("{start}-1\nE 0\ns cc 1 -1\ny cc e1 1 -1\nA e1 aa\ns e2 1 -1\n-1\nA t1\ns aa 1\ns bb 1\n:\naa[e1]\n-1\n").leak();
    assert_eq!(at(graph, "activity \"bb\" of task \"t1\""), "s bb 1");
}

#[test]
fn xml_has_the_line_of_what_is_wrong() {
    let text = r#"<lqn-model name="m">
<processor name="p"><task name="c" scheduling="ref"><entry name="e" type="PH1PH2"><entry-phase-activities>
<activity name="e1" phase="1" host-demand-mean="1"/>
<activity name="e2" phase="2" host-demand-mean="-1"/></entry-phase-activities></entry></task>
<task name="g"><entry name="f" type="NONE"/><task-activities>
<activity name="a" bound-to-entry="f" host-demand-mean="1"/>
<activity name="b" host-demand-mean="-3"/>
<precedence><pre><activity name="a"/></pre><post><activity name="b"/></post></precedence></task-activities></task></processor>
<processor name="q" multiplicity="0"/>
</lqn-model>"#;
    let at = |reason: &str| place(text, Format::Lqnx, reason).unwrap();
    assert!(at("phase 2 of entry \"e\"").starts_with("<activity name=\"e2\""));
    assert!(at("activity \"b\" of task \"g\": its host demand").starts_with("<activity name=\"b\" host-demand-mean"));
    assert!(at("processor \"q\": its multiplicity").starts_with("<processor name=\"q\""));
    assert!(at("entry \"f\" of task \"g\"").starts_with("<entry name=\"f\""));
}

#[test]
fn json_has_no_places() {
    let (model, _) = read("P 0 p p1 f m 0 -1 T 0 t c1 r cc -1 p1 -1 E 0 s cc 1 -1 -1", Format::LqnText).unwrap();
    let json = layerfit::model::json::write(&model);
    assert_eq!(place(&json, Format::Json, "its multiplicity is 0"), None);
}
