//! Trials: CSV and JSON in, CSV out, and every wrong cell by name.

use layerfit::fit::{Trials, TrialsError};

fn csv(text: &str) -> Result<Trials, TrialsError> {
    Trials::from_csv(text.as_bytes())
}

#[test]
fn all_columns_are_read() {
    let text = "trial,duration,$users,\"service_time(e,2)\",\"stderr(service_time(e,2))\",throughput(User),weight(throughput(User))\n\
                a,300,10,0.5,0.01,1.2,4\n\
                b,,20,,,1.9,0\n";
    let trials = csv(text).unwrap();
    assert_eq!(trials.measures.iter().map(ToString::to_string).collect::<Vec<_>>(), ["service_time(e,2)", "throughput(User)"]);
    let [a, b] = trials.trials.as_slice() else { panic!("{trials:?}") };
    assert_eq!((a.id.as_str(), a.duration, a.controlled.get("users")), ("a", Some(300.0), Some(10.0)));
    let first = a.measured[0].unwrap();
    assert_eq!((first.value, first.std_error, first.weight), (0.5, Some(0.01), None));
    assert_eq!((a.measured[1].unwrap().weight, b.measured[1].unwrap().weight), (Some(4.0), Some(0.0)));
    assert_eq!((b.duration, b.measured[0]), (None, None));
    assert_eq!((trials.n_measured(), trials.controlled_range("users")), (3, Some((10.0, 20.0))));
}

#[test]
fn what_other_programs_write_is_read() {
    let plain = csv("$users,throughput(User)\n1,0.5\n2,0.9\n").unwrap();
    for text in [
        "\u{feff}$users,throughput(User)\n1,0.5\n2,0.9\n",
        "$users,throughput(User)\r\n1,0.5\r\n2,0.9\r\n",
        " $users , throughput(User) \n 1 , 0.5 \n 2 , 0.9 ",
        "$users,throughput( User )\n1,5e-1\n\n2,.9\n",
        "\"$users\",\"throughput(User)\"\n\"1\",\"0.5\"\n\"2\",\"+0.9\"\n",
        "$users,throughput(User)\n1,0.5\n2,0.9\n,\n",
    ] {
        assert_eq!(csv(text).expect(text), plain, "{text:?}");
    }
}

#[test]
fn csv_survives_the_round_trip() {
    let text = "trial,duration,$users,\"service_time(e,2)\",\"stderr(service_time(e,2))\",throughput(User),weight(throughput(User))\n\
                \"a, first\",300,10,0.5,0.01,1.2,4\n\
                b,,20,,,1.9,\n";
    let trials = csv(text).unwrap();
    assert_eq!(csv(&trials.to_csv()).unwrap(), trials);
    assert_eq!(Trials::from_json(trials.to_json().to_string().as_bytes()).unwrap(), trials);
}

fn assert_refused(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(csv(text).expect_err(text).to_string(), *expected, "{text:?}");
    }
}

#[test]
fn a_wrong_header_is_refused_by_column() {
    let head = "$users,throughput(User),stderr(throughput(User))\n";
    let cases = [
        ("", "the file is empty: expected a header such as $users,throughput(User)"),
        ("\u{feff}", "the file is empty: expected a header such as $users,throughput(User)"),
        (head, "no trials: expected at least one, a row below the header of CSV or an element of \"trials\" of JSON"),
        (
            "trial;$users;throughput(User)\n1;2,0;3,5\n",
            "the cells of the header seem to be separated by semicolons: expected commas, and decimal points in numbers",
        ),
        (
            "$users\tthroughput(User)\n1\t2\n",
            "the cells of the header seem to be separated by tabs: expected commas, and decimal points in numbers",
        ),
        ("$users\n1\n", "no measure among the columns: expected at least one such as throughput(User)"),
        ("trial,$users\na,1\n", "no measure among the columns: expected at least one such as throughput(User)"),
        (
            "$users,speed\n1,2\n",
            "header cell \"speed\" (column 2): expected $NAME, a measure, stderr(MEASURE), weight(MEASURE), covariance(MEASURE;MEASURE), trial, time or duration",
        ),
        (
            "$users,\n1,2\n",
            "header cell \"\" (column 2): expected $NAME, a measure, stderr(MEASURE), weight(MEASURE), covariance(MEASURE;MEASURE), trial, time or duration",
        ),
        (
            "$2a,throughput(User)\n1,2\n",
            "header cell \"$2a\" (column 1): a name after $ is a letter or underscore, then letters, digits, underscores",
        ),
        (
            "$,throughput(User)\n1,2\n",
            "header cell \"$\" (column 1): a name after $ is a letter or underscore, then letters, digits, underscores",
        ),
        (
            "users,throughput(User)\n1,2\n",
            "header cell \"users\" (column 1): expected $NAME, a measure, stderr(MEASURE), weight(MEASURE), covariance(MEASURE;MEASURE), trial, time or duration",
        ),
        ("$u,$u,throughput(User)\n1,2,3\n", "header cell \"$u\" stands twice (columns 1 and 2)"),
        ("throughput(User),throughput( User)\n1,2\n", "header cell \"throughput( User)\" stands twice (columns 1 and 2)"),
        ("$u,stderr(throughput(User))\n1,2\n", "header cell \"stderr(throughput(User))\": there is no column throughput(User)"),
        ("$u,throughput(User),weight(throughput(X))\n1,2,3\n", "header cell \"weight(throughput(X))\": there is no column throughput(X)"),
        (
            "throughput(User),stderr(throughput(User)),weight(throughput(User))\n1,2,3\n",
            "throughput(User) has both a stderr and a weight: give one of the two",
        ),
        (
            "$users,service_time(e,2)\n1,2\n",
            "header cell \"service_time(e\" (column 2): expected $NAME, a measure, stderr(MEASURE), weight(MEASURE), covariance(MEASURE;MEASURE), trial, time or duration",
        ),
    ];
    assert_refused(&cases);
}

#[test]
fn wrong_rows_are_refused_by_row_and_column() {
    let cases = [
        ("$users,throughput(User)\n1\n", "row 1: 1 cells, the header has 2"),
        ("$users,throughput(User)\n1,2\n1,2,3\n", "row 2: 3 cells, the header has 2"),
        ("$users,throughput(User)\nx,2\n", "row 1, column $users: \"x\": expected a finite number"),
        ("$users,throughput(User)\n,2\n", "row 1, column $users: \"\": expected a finite number"),
        ("$users,throughput(User)\n1,2\n2,fast\n", "row 2, column throughput(User): \"fast\": expected a finite number"),
        ("$users,throughput(User)\n1,NaN\n", "row 1, column throughput(User): \"NaN\": expected a finite number"),
        ("$users,throughput(User)\n1,inf\n", "row 1, column throughput(User): \"inf\": expected a finite number"),
        ("$users,throughput(User)\n1,1e999\n", "row 1, column throughput(User): \"1e999\": expected a finite number"),
        (
            "$users,throughput(User)\n1,1e160\n",
            "row 1, column throughput(User): \"1e160\": expected 0, or a number from 1e-100 to 1e100 with either sign",
        ),
        (
            "$users,throughput(User),stderr(throughput(User))\n1,2,1e-300\n",
            "row 1, column stderr(throughput(User)): \"1e-300\": expected a number from 1e-100 to 1e100",
        ),
        ("$users,throughput(User)\n1,\"1,5\"\n", "row 1, column throughput(User): \"1,5\": expected a finite number"),
        ("$users,throughput(User)\n1,50%\n", "row 1, column throughput(User): \"50%\": expected a finite number"),
        (
            "$users,throughput(User),stderr(throughput(User))\n1,2,0\n",
            "row 1, column stderr(throughput(User)): \"0\": expected a finite number above 0",
        ),
        (
            "$users,throughput(User),stderr(throughput(User))\n1,2,-1\n",
            "row 1, column stderr(throughput(User)): \"-1\": expected a finite number above 0",
        ),
        (
            "$users,throughput(User),weight(throughput(User))\n1,2,-1\n",
            "row 1, column weight(throughput(User)): \"-1\": expected a finite number, 0 or more",
        ),
        (
            "$users,throughput(User),stderr(throughput(User))\n1,,0.1\n",
            "row 1, column stderr(throughput(User)): given although throughput(User) is missing in this row",
        ),
        ("$users,duration,throughput(User)\n1,0,2\n", "row 1, column duration: \"0\": expected a finite number above 0"),
        ("$users,throughput(User)\n1,2\n2,\n", "row 2 (trial \"2\"): nothing was measured"),
        ("trial,throughput(User)\na,2\na,3\n", "row 2: the trial id \"a\" is also that of row 1"),
    ];
    assert_refused(&cases);
    assert_eq!(Trials::from_csv(b"$u,throughput(U)\n1,\xff\n"), Err(TrialsError::NotUtf8 { byte: 19 }));
}

#[test]
fn json_is_read() {
    let text = r#"{"trials": [
        {"controlled": {"users": 10}, "measured": {"throughput(User)": 1.2, "utilization(P)": 0.5}, "stderr": {"throughput(User)": 0.1}},
        {"id": "b", "duration": 60, "controlled": {"$users": 20}, "measured": {"throughput(User)": null, "utilization(P)": 0.9}, "weight": {"utilization(P)": 2}}]}"#;
    let trials = Trials::from_json(text.as_bytes()).unwrap();
    assert_eq!(trials.trials.iter().map(|t| t.id.as_str()).collect::<Vec<_>>(), ["1", "b"]);
    assert_eq!(trials.trials[1].controlled.get("users"), Some(20.0));
    assert_eq!(trials.trials[0].measured[0].unwrap().std_error, Some(0.1));
    assert_eq!((trials.trials[1].measured[0], trials.trials[1].measured[1].unwrap().weight), (None, Some(2.0)));
}

#[test]
fn wrong_json_is_refused() {
    let one = |inside: &str| format!(r#"{{"trials": [{{{inside}}}]}}"#);
    let cases = [
        (String::new(), "line 1, column 0: EOF while parsing a value"),
        ("[]".into(), "line 1, column 1: expected an object with \"trials\", found a list"),
        (r#"{"trials": []}"#.into(), "no trials: expected at least one, a row below the header of CSV or an element of \"trials\" of JSON"),
        (one(r#""measured": {"speed(x)": 1}"#), "is not a measure"),
        (one(r#""measured": {"throughput(U)": "1"}"#), "invalid type: string \"1\", expected f64"),
        (one(r#""measured": {"throughput(U)": 1}, "stder": {}"#), "unknown field `stder`"),
        (one(r#""measured": {}"#), "no measure among the columns: expected at least one such as throughput(User)"),
        (one(r#""measured": {"throughput(U)": null}"#), "row 1 (trial \"1\"): nothing was measured"),
        (
            one(r#""measured": {"throughput(U)": 1}, "stderr": {"throughput(U)": 0}"#),
            "row 1, column stderr(throughput(U)): \"0\": expected a finite number above 0",
        ),
        (
            one(r#""measured": {"throughput(U)": 1}, "stderr": {"throughput(X)": 1}"#),
            "row 1, column stderr(throughput(X)): given although throughput(X) is missing in this row",
        ),
        (
            one(r#""measured": {"throughput(U)": 1}, "controlled": {"a b": 1}"#),
            "row 1, column controlled: \"a b\": expected a parameter's name",
        ),
        (one(r#""measured": {"throughput(U)": 1}, "duration": -5"#), "row 1, column duration: \"-5\": expected a finite number above 0"),
    ];
    for (text, expected) in cases {
        let error = Trials::from_json(text.as_bytes()).expect_err(&text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn names_that_stand_twice_are_refused_with_their_place() {
    let refused = |trial: &str, expected: &str| {
        let text = format!("{{\"trials\": [\n{trial}]}}");
        let message = Trials::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(message.starts_with("line 2, column ") && message.contains(expected), "{trial}: {message}");
    };
    refused(r#"{"controlled": {"n": 1, "n": 2}, "measured": {"throughput(c)": 1}}"#, "\"n\" stands twice");
    refused(r#"{"controlled": {"n": 1}, "measured": {"throughput(c)": 1, "throughput(c)": 2}}"#, "\"throughput(c)\" stands twice");
    let covariance = r#"{"measured": {"throughput(c)": 1}, "covariance": {"throughput(c)": {"throughput(c)": 1, "throughput(c)": 2}}}"#;
    refused(covariance, "\"throughput(c)\" stands twice");
}
