//! The values that a model gives its parameters, and what is left to be given.

use std::error::Error;

use layerfit::model::{Bindings, Model, Number, ParameterValue, Processor, Scalar, Task};
use num_dual::DualSVec64;

use super::text;

/// A model with the given definitions.
fn with(definitions: &str) -> Model {
    text(&format!("{definitions}\nP 0 p p1 f m $m -1 T 0 t t1 r e1 -1 p1 z $z m $n -1 E 0 s e1 {{$d * 2}} -1 y e1 e1 $m -1 -1"))
}

fn chain(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", chain(source)))
}

#[test]
fn definitions_are_evaluated_in_order() {
    let model = with(
        "$a = 2\n$b = $a ** 3\n$list = [4, 5, 6]\n$range = [7:9,1]\n$c = $list[1] + $range\n$t = \"text\"\n$e = [$a * 5, 1]\n$d = 0.5",
    );
    let bindings = model.bindings(&Bindings::<f64>::new()).expect("bindings");
    let found: Vec<(&str, f64)> = bindings.iter().collect();
    let expected = [("a", 2.0), ("b", 8.0), ("list", 4.0), ("range", 7.0), ("c", 12.0), ("e", 10.0), ("d", 0.5), ("_1", 1.0)];
    assert_eq!(found, expected);
}

#[test]
fn overrides_come_first_and_reach_what_depends_on_them() {
    let model = with("$a = 2\n$b = $a * 10\n$d = $nowhere");
    let overrides: Bindings = [("a", 3.0), ("d", 1.0), ("other", 9.0)].into_iter().collect();
    let bindings = model.bindings(&overrides).expect("bindings");
    assert_eq!((bindings.get("b"), bindings.get("a"), bindings.get("other")), (Some(30.0), Some(3.0), Some(9.0)));
}

#[test]
fn derivatives_pass_through_definitions() {
    let model = with("$d = $x ** 2");
    let overrides: Bindings<DualSVec64<1>> = [("x", DualSVec64::from_re(3.0).derivative(0))].into_iter().collect();
    let bindings = model.bindings(&overrides).expect("bindings");
    let generated = bindings.get("_1").expect("the demand");
    assert_eq!((generated.value(), generated.derivatives()), (18.0, &[12.0][..]));
}

#[test]
fn definitions_that_need_more_are_errors() {
    for (definitions, expected) in [
        ("$a = $b\n$b = 1", "parameter $a: expression \"$b\": parameter $b has no value"),
        ("$d = 1 / 0", "parameter $d: expression \"1 / 0\": division by zero"),
        ("$d = $list[7]\n$list = [1]", "parameter $d: expression \"$list[7]\": $list has no element 7: it has 1, counted from 0"),
    ] {
        let error = with(definitions).bindings(&Bindings::<f64>::new()).expect_err(definitions);
        assert_eq!(chain(&error), expected);
    }
}

#[test]
fn names_are_found_in_order_of_use() {
    let model = with("$d = $k + $z\n$k = $k2\n$m = 3");
    assert_eq!(model.parameter_names(), ["m", "n", "z", "_1"]);
    assert_eq!(model.free_parameters(), ["n", "z", "k2"]);
}

#[test]
fn values_are_read_as_they_are_written() {
    for (text, value) in [
        ("3", ParameterValue::Number(3.0)),
        ("-3", ParameterValue::Number(-3.0)),
        ("(0 - 3)", ParameterValue::Number(-3.0)),
        ("@infinity", ParameterValue::Number(f64::INFINITY)),
        ("[1, -2, 1e3]", ParameterValue::List(vec![1.0, -2.0, 1000.0])),
        ("[-1:1,0.5]", ParameterValue::Range { from: -1.0, to: 1.0, step: 0.5 }),
        ("[1, $a]", ParameterValue::Expressions(vec!["1".into(), "$a".into()])),
        ("\"a b\"", ParameterValue::Text { text: "a b".into() }),
        ("$a + 1", ParameterValue::Expression("$a + 1".into())),
        ("$a + # comment\n 1", ParameterValue::Expression("$a + 1".into())),
    ] {
        assert_eq!(ParameterValue::parse(text).expect(text), value, "{text}");
        assert_eq!(ParameterValue::parse(&value.to_string()).expect(text), value, "{value}");
        let json = serde_json::to_string(&value).expect("JSON");
        assert_eq!(serde_json::from_str::<ParameterValue>(&json).expect(&json), value, "{json}");
    }
    for text in ["", "[", "[]", "[1", "[1:2]", "[1:$a,2]", "\"open", "1 2", "[1, 2] 3", "$a ="] {
        assert!(ParameterValue::parse(text).is_err(), "{text}");
    }
}

#[test]
fn sweeps_list_their_values() {
    let values = |text: &str| ParameterValue::parse(text).expect(text).values();
    assert_eq!(values("[1:2,0.25]"), Some(vec![1.0, 1.25, 1.5, 1.75, 2.0]));
    assert_eq!(values("[0:1,0.1]").map(|v| v.len()), Some(11));
    assert_eq!(values("[5:1,-2]"), Some(vec![5.0, 3.0, 1.0]));
    assert_eq!(values("[1, 4]"), Some(vec![1.0, 4.0]));
    assert_eq!(values("[1:5,0]"), None);
    assert_eq!(values("[1:5,-1]"), None);
    assert_eq!(values("[0:1e12,1e-12]"), None);
    assert_eq!(values("$a"), None);
}

#[test]
fn unbound_numbers_are_named() {
    let mut model = Model { processors: vec![Processor::new("P")], tasks: vec![Task::new("T", "P")], ..Model::default() };
    model.tasks[0].multiplicity = Number::Parameter("users".into());
    assert_eq!(model.free_parameters(), ["users"]);
    let error = model.tasks[0].multiplicity.eval(&Bindings::<f64>::new()).expect_err("unbound");
    assert_eq!(error.name, "users");
}
