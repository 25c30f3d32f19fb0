//! Input that is out to harm: it gives an error, quickly, and never a panic.

use std::time::{Duration, Instant};

use layerfit::model::{format, format::Format, json, lqn_text, lqnx};

const SMALL: &str = r#"<?xml version="1.0"?>
<!-- c --><lqn-model name="m&amp;" xmlns:xsi="x"><parameters>$a = [1, $b ** 2]
</parameters><solver-params comment="c"><pragma param="p" value="v"/></solver-params>
<processor name="P" scheduling="cfs" quantum="1"><group name="g" share="0.5"><task name="Tä" scheduling="ref" multiplicity="$n">
<entry name="e" type="NONE"/><task-activities><activity name="a" bound-to-entry="e"><synch-call dest="f" calls-mean="1"/></activity>
<precedence><pre><activity name="a"/></pre><post-LOOP end="b"><activity name="c" count="2"/></post-LOOP></precedence>
<reply-entry name="e"><reply-activity name="a"/></reply-entry></task-activities></task></group></processor>
<results-collection>$0</results-collection></lqn-model>
"#;

const SMALL_TEXT: &str =
    "#pragma a=b\n$a = [1:2,3] $b = \"tä\"\nG \"x\" 1 2 3 0.5 -1 %i $v\nP 0 p p1 s {$a + 1} m @infinity -1 U 0 g gg 1 c p1 -1
T 0 t c1 r cc -1 p1 z 1 t t1 n e1 -1 p1 g gg O c1 t1 2 -1 E 0 s cc 1 -1 %s1 95 $x $y y cc e1 1.5 -1 A e1 aa H e1 1 0:1 3 F e1 e1 1 -1 -1
A t1 s aa 1 s bb 2 s 7 3 : aa -> 2 * bb, 7; 7[e1] -1 R 0 $0 plot($x, 1) -1 C 0 $a = $x ? 1 : 2 -1";

/// Far above what these need, far below what quadratic behaviour would take.
const LIMIT: Duration = Duration::from_secs(20);

fn refused(input: &str, expected: &str) {
    let start = Instant::now();
    let message = lqnx::parse(input).expect_err("hostile input").to_string();
    assert!(message.contains(expected), "{message}");
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn small_files_are_sound() {
    lqnx::parse(SMALL).expect("XML");
    lqn_text::parse(SMALL_TEXT).expect("text");
}

#[test]
fn document_types_and_entities_are_refused() {
    refused("<!DOCTYPE lqn-model><lqn-model/>", "document types and entities are not read");
    refused(
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><lqn-model name=\"&e;\"/>",
        "document types and entities are not read",
    );
    let laughs = "<!DOCTYPE x [<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;&a;&a;\">]><lqn-model><lqx>&b;</lqx></lqn-model>";
    refused(laughs, "document types and entities are not read");
    refused("<lqn-model name=\"&e;\"/>", "attribute \"name\"");
    refused("<lqn-model><lqx>&e;</lqx></lqn-model>", "unknown entity \"&e;\"");
    refused("<lqn-model><lqx>&#0;</lqx></lqn-model>", "line 1, column 17");
}

#[test]
fn deep_nesting_is_refused() {
    refused(&"<a>".repeat(10_000), "nested more than 24 deep");
    let deep = format!("<lqn-model>{}{}</lqn-model>", "<task>".repeat(10_000), "</task>".repeat(10_000));
    refused(&deep, "nested more than 24 deep");
    let results = format!("<lqn-model><result-x>{}</result-x></lqn-model>", "<b>".repeat(10_000));
    refused(&results, "nested more than 24 deep");
    let text = format!("$a = {}1", "(".repeat(100_000));
    assert!(lqn_text::parse(&text).expect_err("deep").to_string().contains("nested more than 64 deep"));
    let text = format!("$a = {}1", "! ".repeat(100_000));
    assert!(lqn_text::parse(&text).expect_err("deep").to_string().contains("nested more than 64 deep"));
    let text = format!("$a = {}1", "1 ? 1 : ".repeat(100_000));
    assert!(lqn_text::parse(&text).expect_err("deep").to_string().contains("nested more than 64 deep"));
}

#[test]
fn large_attributes_are_read_and_many_are_refused() {
    let name = "x".repeat(5_000_000);
    assert_eq!(lqnx::parse(&format!("<lqn-model name=\"{name}\"/>")).expect("a long name").name, name);
    let mut many = String::from("<lqn-model");
    (0..100_000).for_each(|i| many.push_str(&format!(" a{i}=\"\"")));
    refused(&format!("{many}/>"), "more than 64 attributes");
    refused(&format!("<lqn-model colour=\"{name}\"/>"), "unknown attribute \"colour\"");
    let message = lqnx::parse(&format!("<lqn-model><processor name=\"P\" quantum=\"{name}\"/></lqn-model>")).expect_err("long").to_string();
    assert!(message.len() < 200, "messages do not repeat long values: {} bytes", message.len());
}

#[test]
fn inputs_above_the_limit_are_refused() {
    let large = " ".repeat(format::MAX_INPUT_BYTES + 1);
    for format in [Format::Lqnx, Format::LqnText, Format::Json] {
        let message = format::parse(&large, format).expect_err("too large").to_string();
        assert!(message.contains("the input is larger than"), "{message}");
    }
}

#[test]
fn every_prefix_is_an_error_or_a_model() {
    for end in (0..SMALL.len()).filter(|end| SMALL.is_char_boundary(*end)) {
        let result = lqnx::parse(&SMALL[..end]);
        assert!(result.is_err() || SMALL[end..].trim().is_empty(), "{end}");
    }
    for end in (0..SMALL_TEXT.len()).filter(|end| SMALL_TEXT.is_char_boundary(*end)) {
        let _ = lqn_text::parse(&SMALL_TEXT[..end]);
    }
    let json = json::write(&lqnx::parse(SMALL).expect("XML"));
    for end in (0..json.len()).filter(|end| json.is_char_boundary(*end)) {
        assert!(json::parse(&json[..end]).is_err(), "{end}");
    }
}

#[test]
fn every_missing_character_is_survived() {
    for text in [SMALL, SMALL_TEXT] {
        for (at, c) in text.char_indices() {
            let without = format!("{}{}", &text[..at], &text[at + c.len_utf8()..]);
            if let Ok(model) = lqnx::parse(&without) {
                let _ = (model.validate(), lqnx::write(&model));
            }
            if let Ok(model) = lqn_text::parse(&without) {
                let _ = (model.validate(), lqnx::write(&model));
            }
        }
    }
}

#[test]
fn large_flat_inputs_take_linear_time() {
    let n = 20_000;
    let activities: String = (0..n).map(|i| format!("<activity name=\"a{i}\" bound-to-entry=\"e{i}\"/>")).collect();
    let entries: String = (0..n).map(|i| format!("<entry name=\"e{i}\" type=\"NONE\"/>")).collect();
    let start = Instant::now();
    let model = lqnx::parse(&format!(
        "<lqn-model><processor name=\"P\"><task name=\"T\">{entries}<task-activities>{activities}</task-activities></task></processor></lqn-model>"
    ))
    .expect("a model");
    let _ = (model.validate(), lqnx::write(&model), json::write(&model));
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    let start = Instant::now();
    let lines: String = (0..n).map(|i| format!("s a{i}a 1 ")).collect();
    let chain: String = (1..n).map(|i| format!("; a{}a -> a{i}a", i - 1)).collect();
    let text = format!("P 0 p p1 f -1 T 0 t t1 r e1 -1 p1 -1 E 0 A e1 a0a -1 A t1 {lines} : a0a{chain} -1");
    let model = lqn_text::parse(&text).expect("a model");
    assert_eq!(model.validate(), []);
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
}
