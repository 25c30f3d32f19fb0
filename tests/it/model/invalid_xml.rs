//! XML that is not LQNX, with where and why.

use layerfit::model::lqnx;

fn check(input: &str, expected: &str) {
    let message = lqnx::parse(input).expect_err(input).to_string();
    assert!(message.contains(expected), "{input}\nsaid: {message}\nexpected: {expected}");
}

/// Within a processor.
fn processor(inner: &str) -> String {
    format!("<lqn-model>\n<processor name=\"P\">\n{inner}</processor></lqn-model>")
}

/// Within a task with an entry `e`.
fn task(inner: &str) -> String {
    processor(&format!("<task name=\"T\"><entry name=\"e\"/>\n{inner}</task>"))
}

/// Within the activity of phase 1.
fn phase(inner: &str) -> String {
    processor(&format!(
        "<task name=\"T\"><entry name=\"e\"><entry-phase-activities>\n<activity name=\"a\" phase=\"1\">{inner}</activity></entry-phase-activities></entry></task>"
    ))
}

/// Within the graph of a task with entry `e` and activity `a`.
fn graph(inner: &str) -> String {
    task(&format!("<task-activities><activity name=\"a\" bound-to-entry=\"e\"/>\n{inner}</task-activities>"))
}

#[test]
fn documents_must_be_well_formed() {
    check("", "line 1, column 1: expected <lqn-model>, found the end");
    check("text", "expected <lqn-model>, found text");
    check("<lqn-model>", "line 1, column 1: <lqn-model> is not closed");
    check("<lqn-model>\n <processor", "line 2, column 2: syntax error");
    check("<lqn-model></lqn-modl>", "line 1, column 12");
    check("<lqn-model/><lqn-model/>", "line 1, column 13: expected the end of the input");
    check("</lqn-model>", "does not match any open tag");
    check("<lqn-model name=m/>", "line 1, column 1: in the tag");
    check("<lqn-model name/>", "in the tag");
    check("<lqn-model name=\"a\" Name=\"b\"/>", "column 21: attribute \"name\" stands twice");
    check("<lqn-model name=\"&nbsp;\"/>", "attribute \"name\"");
    check("<lqn-model><lqx>&nbsp;</lqx></lqn-model>", "unknown entity \"&nbsp;\"");
    check("<lqn-model><lqx>&#xFFFFFFF;</lqx></lqn-model>", "line 1, column 17");
    check("<lqn-model>stray</lqn-model>", "unexpected text in <lqn-model>");
}

#[test]
fn the_root_and_its_parts() {
    check("<model/>", "expected <lqn-model>, found <model>");
    check("<lqn-model colour=\"red\"/>", "column 12: unknown attribute \"colour\" of <lqn-model>: expected name, description");
    check("<lqn-model>\n  <task name=\"T\"/></lqn-model>", "line 2, column 3: unexpected element <task> in <lqn-model>");
    check("<lqn-model><solver-params/><solver-params/></lqn-model>", "<solver-params> stands twice");
    check("<lqn-model><solver-params it_limit=\"x\"/></lqn-model>", "it_limit=\"x\": expected a number or $name");
    check("<lqn-model><solver-params><pragma value=\"x\"/></solver-params></lqn-model>", "<pragma> lacks the attribute \"param\"");
    check("<lqn-model><parameters>$a = 1\n$b = </parameters></lqn-model>", "in <parameters>, line 2 of its text: expected a number");
    check("<lqn-model><parameters>a = 1</parameters></lqn-model>", "expected a definition \"$name = value\"");
    check("<lqn-model><parameters><a/></parameters></lqn-model>", "unexpected element <a> in <parameters>: it has none");
    check("<lqn-model><parameters>$a = 1</parameters><lqx>x</lqx></lqn-model>", "an LQX program or SPEX parameters, not both");
    check("<lqn-model><convergence-collection>1</convergence-collection></lqn-model>", "expected a parameter to iterate on");
    check("<lqn-model><convergence-collection>$a</convergence-collection></lqn-model>", "expected \"=\" after the parameter");
}

#[test]
fn processors_and_groups() {
    check("<lqn-model><processor/></lqn-model>", "<processor> lacks the attribute \"name\"");
    check("<lqn-model><processor name=\"P\" scheduling=\"FCFS\"/></lqn-model>", "scheduling=\"FCFS\": expected fcfs, inf, hol, pri");
    check("<lqn-model><processor name=\"P\" multiplicity=\"two\"/></lqn-model>", "multiplicity=\"two\": expected a number or $name");
    check(
        "<lqn-model>\n<processor name=\"P\" multiplicity=\"1e400\"/></lqn-model>",
        "line 2, column 21: multiplicity=\"1e400\": the number is too large",
    );
    check("<lqn-model><processor name=\"P\" multiplicity=\"$\"/></lqn-model>", "multiplicity=\"$\": expected a number or $name");
    check("<lqn-model><processor name=\"P\" speed-factor=\"nan\"/></lqn-model>", "speed-factor=\"nan\": expected a number");
    check("<lqn-model><processor name=\"P\" speed=\"1\"/></lqn-model>", "unknown attribute \"speed\" of <processor>");
    check(&processor("<entry name=\"e\"/>"), "line 3, column 1: unexpected element <entry> in <processor>: expected task, group");
    check(&processor("<group name=\"g\"/>"), "<group> lacks the attribute \"share\"");
    check(&processor("<group name=\"g\" share=\"1\" cap=\"maybe\"/>"), "cap=\"maybe\": expected yes, no, true or false");
    check(&processor("<result-observe utilization=\"u\"/>"), "utilization=\"u\": expected a $name");
    check(&processor("<result-observe speed=\"$u\"/>"), "unknown attribute \"speed\" of <result-observe>");
    check(
        &processor("<result-observe utilization=\"$u\"><result-conf-95 throughput=\"$d\"/></result-observe>"),
        "throughput=\"$d\": expected a result that is observed",
    );
}

#[test]
fn tasks_and_entries() {
    check(&processor("<task/>"), "<task> lacks the attribute \"name\"");
    check(&processor("<task name=\"T\" scheduling=\"lifo\"/>"), "scheduling=\"lifo\": expected ref, burst, uniform, fcfs");
    check(&task("<fan-in source=\"C\"/>"), "line 4, column 1: <fan-in> lacks the attribute \"value\"");
    check(&task("<fan-out source=\"C\" value=\"1\"/>"), "unknown attribute \"source\" of <fan-out>: expected dest or value");
    check(&task("<task-activities/><task-activities/>"), "<task-activities> stands twice");
    check(&task("<entry/>"), "<entry> lacks the attribute \"name\"");
    check(&task("<entry name=\"f\" type=\"GRAPH\"/>"), "type=\"GRAPH\": expected PH1PH2 or NONE");
    check(&task("<entry name=\"f\" type=\"ph1ph2\"/>"), "expected PH1PH2 or NONE");
    check(&task("<entry name=\"f\" semaphore=\"take\"/>"), "semaphore=\"take\": expected signal or wait");
    check(&task("<entry name=\"f\" rwlock=\"lock\"/>"), "expected r-lock, r-unlock, w-lock or w-unlock");
    check(&task("<entry name=\"f\" type=\"NONE\"><entry-phase-activities/></entry>"), "entry \"f\" has type NONE: phases need PH1PH2");
    check(&task("<entry name=\"f\"><forwarding dest=\"e\"/></entry>"), "<forwarding> lacks the attribute \"prob\"");
    check(&task("<entry name=\"f\"><forwarding prob=\"1\"/></entry>"), "<forwarding> lacks the attribute \"dest\"");
    check(&task("<entry name=\"f\"><entry-activity-graph/></entry>"), "unexpected element <entry-activity-graph> in <entry>");
    check(&task("<entry name=\"f\"><service-time-distribution min=\"0\" max=\"1\"/></entry>"), "lacks the attribute \"phase\"");
}

#[test]
fn phases_and_calls() {
    let phases = |inner: &str| task(&format!("<entry name=\"f\"><entry-phase-activities>{inner}</entry-phase-activities></entry>"));
    check(&phases("<activity name=\"a\"/>"), "<activity> lacks the attribute \"phase\"");
    for phase in ["0", "4", "one", "-1", "$p", "1.5"] {
        check(&phases(&format!("<activity name=\"a\" phase=\"{phase}\"/>")), "phase=");
    }
    check(&phases("<activity name=\"a\" phase=\"1\"/><activity name=\"b\" phase=\"1\"/>"), "entry \"f\" has phase 1 twice");
    check(&phases("<activity name=\"a\" phase=\"1\" bound-to-entry=\"f\"/>"), "unknown attribute \"bound-to-entry\"");
    check(&phases("<activity phase=\"1\"/>"), "<activity> lacks the attribute \"name\"");
    check(&phases("<phase/>"), "unexpected element <phase>");
    check(&phases("<activity name=\"a\" phase=\"1\" call-order=\"deterministic\"/>"), "expected STOCHASTIC, DETERMINISTIC or LIST");
    check(&phases("<activity name=\"a\" phase=\"1\" max-service-time=\"$m\"/>"), "no $name may stand here");
    check(&phase("<synch-call calls-mean=\"1\"/>"), "line 4, column 30: <synch-call> lacks the attribute \"dest\"");
    check(&phase("<synch-call dest=\"e\"/>"), "<synch-call> lacks the attribute \"calls-mean\"");
    check(&phase("<asynch-call dest=\"e\" calls-mean=\"\"/>"), "calls-mean=\"\": expected a number or $name");
    check(&phase("<call dest=\"e\"/>"), "unexpected element <call> in <activity>: expected synch-call, asynch-call");
    check(&phase("<service-time-distribution min=\"0\"/>"), "lacks the attribute \"max\"");
    check(&phase("<service-time-distribution min=\"0\" max=\"$m\"/>"), "no $name may stand here");
    check(&phase("<service-time-distribution min=\"0\" max=\"1\" number-bins=\"2.5\"/>"), "expected a whole number");
}

#[test]
fn graphs() {
    check(&graph("<activity name=\"b\" bound-to-entry=\"e\"/>"), "line 5, column 1: entry \"e\" already starts with activity \"a\"");
    check(&graph("<activity name=\"b\" bound-to-entry=\"x\"/>"), "bound-to-entry=\"x\": expected an entry of task \"T\"");
    check(&graph("<activity name=\"b\" phase=\"1\"/>"), "unknown attribute \"phase\"");
    check(&graph("<precedence/>"), "<precedence> lacks a pre list");
    check(&graph("<precedence><post><activity name=\"a\"/></post></precedence>"), "<precedence> lacks a pre list");
    check(&graph("<precedence><pre/></precedence>"), "<pre> has no activity");
    check(&graph("<precedence><pre><activity name=\"a\"/><activity name=\"a\"/></pre></precedence>"), "<pre> has more than one activity");
    check(&graph("<precedence><pre><activity/></pre></precedence>"), "<activity> lacks the attribute \"name\"");
    check(&graph("<precedence><pre quorum=\"1\"><activity name=\"a\"/></pre></precedence>"), "unknown attribute \"quorum\" of <pre>");
    check(&graph("<precedence><pre><activity name=\"a\" prob=\"1\"/></pre></precedence>"), "unknown attribute \"prob\" of <activity>");
    let pre = "<pre><activity name=\"a\"/></pre>";
    check(&graph(&format!("<precedence>{pre}{pre}</precedence>")), "one pre list and at most one post list");
    check(&graph(&format!("<precedence>{pre}<post-XOR/></precedence>")), "unexpected element <post-xor>");
    check(&graph(&format!("<precedence>{pre}<post-AND/></precedence>")), "<post-and> has no activity");
    check(
        &graph(&format!("<precedence>{pre}<post-OR><activity name=\"b\" count=\"1\"/></post-OR></precedence>")),
        "unknown attribute \"count\"",
    );
    check(&graph(&format!("<precedence>{pre}<post-LOOP><activity name=\"b\" count=\"few\"/></post-LOOP></precedence>")), "count=\"few\"");
    check(&graph("<reply-entry><reply-activity name=\"a\"/></reply-entry>"), "<reply-entry> lacks the attribute \"name\"");
    check(&graph("<reply-entry name=\"e\"/>"), "<reply-entry> has no <reply-activity>");
    check(&graph("<reply-entry name=\"e\"><activity name=\"a\"/></reply-entry>"), "unexpected element <activity> in <reply-entry>");
}
