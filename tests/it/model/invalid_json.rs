//! JSON that is not a model.

use layerfit::model::json;

fn check(input: &str, expected: &str) {
    let message = json::parse(input).expect_err(input).to_string();
    assert!(message.contains(expected), "{input}\nsaid: {message}\nexpected: {expected}");
}

#[test]
fn wrong_json_is_refused_with_its_place() {
    check("", "line 1, column 1: EOF");
    check("\n []", "line 2, column 2: expected a model in braces, found a list");
    check("{", "line 1, column 1: EOF");
    check("{\n  \"nme\": \"m\"}", "line 2, column 7: unknown field `nme`");
    check(r#"{"name": 3}"#, "invalid type: integer `3`, expected a string");
    check(r#"{"processors": [{"name": "P", "scheduling": "fifo"}]}"#, "unknown variant `fifo`, expected one of `fcfs`");
    check(r#"{"processors": [{"scheduling": "ps"}]}"#, "missing field `name`");
    check(r#"{"processors": [{"name": "P", "multiplicity": "many"}]}"#, "expected a number or \"$name\"");
    check(r#"{"processors": [{"name": "P", "multiplicity": "$"}]}"#, "expected a number or \"$name\"");
    check(r#"{"processors": [{"name": "P", "multiplicity": 1e999}]}"#, "number out of range");
    check(r#"{"tasks": [{"name": "T"}]}"#, "missing field `processor`");
    check(r#"{"tasks": [{"name": "T", "processor": "P", "colour": 1}]}"#, "unknown field `colour`");
    check(
        r#"{"tasks": [{"name": "T", "processor": "P", "entries": [{"name": "e", "phases": [{"phase": 1, "name": "a", "demand": 1}]}]}]}"#,
        "unknown field `demand`",
    );
    check(
        r#"{"tasks": [{"name": "T", "processor": "P", "entries": [{"name": "e", "phases": [{"phase": 300, "name": "a"}]}]}]}"#,
        "invalid value: integer `300`",
    );
    check(r#"{"tasks": [{"name": "T", "processor": "P", "activities": [{"name": "a", "demand": 1}]}]}"#, "unknown field `demand`");
    check(r#"{"parameters": [{"name": "a", "value": "1 +"}]}"#, "expected a number, a parameter");
    check(r#"{"parameters": [{"name": "a", "value": {"from": 1}}]}"#, "expected a number, an expression in a string");
    check(r#"{"parameters": [{"name": "a", "value": null}]}"#, "expected a number, an expression in a string");
    check(
        &format!("{{\"parameters\": [{{\"name\": \"a\", \"value\": {}", "[".repeat(10_000)),
        "expected a number, an expression in a string",
    );
    check(&format!(r#"{{"name": {}"#, "[".repeat(10_000)), "invalid type");
}

#[test]
fn numbers_are_numbers_or_names() {
    let model = json::parse(
        r#"{"processors": [{"name": "P", "multiplicity": "@infinity", "speed_factor": "$f", "quantum": "0.5"}],
            "parameters": [{"name": "f", "value": [1, "$g"]}, {"name": "g", "value": "2"}]}"#,
    )
    .expect("a model");
    let processor = &model.processors[0];
    assert_eq!((processor.multiplicity.literal(), processor.quantum.literal()), (Some(f64::INFINITY), Some(0.5)));
    assert_eq!(processor.speed_factor.parameter(), Some("f"));
    assert_eq!(model.parameters[1].value, layerfit::model::ParameterValue::Number(2.0));
}
