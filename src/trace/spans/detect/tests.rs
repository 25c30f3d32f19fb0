use super::*;

fn check(text: &str, expected: Found) {
    assert_eq!(detect(text.as_bytes()), expected, "{text}");
}

#[test]
fn json_by_the_first_key_that_one_format_has() {
    check(r#"{"resourceSpans":[]}"#, Found::OtlpJson);
    check("\n\u{feff}", Found::Other("text of no known format (first line: \u{feff})".to_owned()));
    check("\u{feff}{\"batches\": []}", Found::OtlpJson);
    check(r#"{"resourceLogs":[{"resourceSpans":1}]}"#, Found::OtherSignals);
    check(r#"{"data":[{"traceID":"1","spans":[]}]}"#, Found::Jaeger);
    check("{\"index\":{}}\n{\"traceID\":\"1\"}", Found::Jaeger);
    check(r#"{"traceId":"AA==","spanId":"AA==","operationName":"x"}"#, Found::Jaeger);
    check(r#"[{"traceId":"1","id":"2"}]"#, Found::Zipkin);
    check(r#"[[{"id":"2","traceId":"1"}]]"#, Found::Zipkin);
    check(r#"[{"name":"x","localEndpoint":{}}]"#, Found::Zipkin);
    check(r#"{"a":"\"resourceSpans\":","id":1}"#, Found::OtherJson(vec!["a".to_owned(), "id".to_owned()]));
    check("{}", Found::OtherJson(Vec::new()));
    check("nonsense\n42\n{\"resourceSpans\":[]}", Found::OtlpJson);
    check("nonsense\n{\"a\":1}", Found::Other("text of no known format (first line: nonsense)".to_owned()));
    check("{nonsense\n{\"resourceSpans\":[]}", Found::OtlpJson);
}

#[test]
fn an_answer_without_traces_is_told_from_what_is_none() {
    let empty = ["[]", "[[]]", r#"{"data":[]}"#, r#"{"data":null,"total":0,"errors":null}"#, r#"{"traces":[], "metrics":{"n":1}}"#];
    empty.iter().for_each(|text| check(text, Found::EmptyAnswer));
    check(r#"{"data":[1]}"#, Found::OtherJson(vec!["data".to_owned()]));
    check(r#"{"items":[]}"#, Found::OtherJson(vec!["items".to_owned()]));
}

/// Logs of events and messages have to be asked for by name, which is said.
#[test]
fn logs_that_are_no_spans_are_named() {
    let named = |text: &str, format: &str| {
        let said = detect(text.as_bytes()).to_string();
        assert!(said.ends_with(&format!(", which is read as {format} where that is asked for")), "{said}");
    };
    named("$0;1378894834.5;...\n$1;...", "kieker");
    named("operation,Thread,Next Thread,event,type,task,entry\n", "event-trace");
    named("scenario;thread;thread_node;kind;child_thread;task;task_node\n", "angio");
    named("time\tkind\tcomponent\tmethod\tcontext_id\n", "call-path");
    named("\"sender\",\"receiver\",\"time\"\n", "same");
    named("# recorded by hand\n\ntime,kind,process,message_type,msg_id\n", "same");
    named(r#"{"operation":1,"thread":1,"next_thread":2}"#, "event-trace");
    for text in ["$;a;b", "$x;1", "time,kind\n", r#"{"method":"GET","component":"x"}"#] {
        assert!(!detect(text.as_bytes()).to_string().contains("asked for"), "{text}");
    }
}

#[test]
fn what_is_nothing_for_us_is_described() {
    check("", Found::Other("empty".to_owned()));
    check("a,b,c\n1,2,3\n", Found::Other("comma-separated values (first line: a,b,c)".to_owned()));
    check("a;b", Found::Other("semicolon-separated values (first line: a;b)".to_owned()));
    check("hello", Found::Other("text of no known format (first line: hello)".to_owned()));
    check("<html>", Found::Other("XML or HTML (first line: <html>)".to_owned()));
    check("{nonsense", Found::Other("text that is not JSON (first line: {nonsense)".to_owned()));
    assert_eq!(detect(b"\x7fELF\xff\xfe"), Found::Other("binary data (first byte 0x7f)".to_owned()));
    assert_eq!(detect(b"\xff\xfe{\0"), Found::Other("text in UTF-16".to_owned()));
}

#[test]
fn protobuf_by_its_nesting() {
    // field 1 (resource spans) of 4 bytes: field 1 (resource) of 2 bytes: field 1 (attribute) of 0 bytes
    let request = [0x0a, 4, 0x0a, 2, 0x0a, 0];
    assert_eq!(detect(&request), Found::Protobuf(Framing::Whole));
    assert_eq!(detect(&[&[6], &request[..]].concat()), Found::Protobuf(Framing::Varint));
    assert_eq!(detect(&[&[0, 0, 0, 6], &request[..]].concat()), Found::Protobuf(Framing::Fixed32));
    assert_eq!(detect(&[0, 0, 0, 40, 0x28, 0xb5, 0x2f, 0xfd, 1]), Found::Protobuf(Framing::Fixed32Compressed));
    assert!(matches!(detect(&[0x0a, 4, 0x08, 2, 0x0a, 0]), Found::Other(_)));
}

#[test]
fn json_that_starts_like_protobuf_is_json() {
    check("\n{\n  \"resourceSpans\": []}", Found::OtlpJson);
    check("\n{\n\"resourceSpans\": []}", Found::OtlpJson);
}
