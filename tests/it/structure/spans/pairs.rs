//! Client and server halves: together, or either alone; spans without a kind.

use super::*;

#[test]
fn zipkin_halves_share_an_id() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "read", (10.0, 60.0));
    b.server((2, 1), "store", "read", (20.0, 50.0)).shared();
    b.client((3, 2), "store", "load", (25.0, 35.0));
    b.server((3, 2), "disk", "load", (26.0, 34.0)).shared();
    let run = b.run();
    run.check(&["Client sync web.get", "web.get sync store.read", "store.read sync disk.load"]);
    assert_eq!(run.self_ms("store.read"), [Some(20.0), None]);
    assert_eq!(run.quality.n_set_aside(), 0);
}

#[test]
fn a_shared_server_half_alone_hangs_below_the_parent() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.server((2, 1), "store", "read", (20.0, 50.0)).shared();
    b.run().check(&["Client sync web.get", "web.get sync store.read"]);
}

#[test]
fn a_server_half_alone_implies_its_client() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.server((2, 1), "store", "read", (20.0, 50.0));
    let run = b.run();
    run.check(&["Client sync web.get", "web.get sync store.read"]);
    assert_eq!(run.self_ms("web.get"), [Some(70.0), None]);
    assert_eq!(run.count("missing_client_half"), 1);
}

#[test]
fn a_client_half_alone_calls_a_task_of_its_own() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "charge", (10.0, 60.0)).with(Attribute::PeerService, "payments");
    let run = b.run();
    run.check(&["Client sync web.get", "web.get sync payments.charge"]);
    assert_eq!(run.self_ms("payments.charge"), [Some(50.0), None]);
    assert!(run.hints.processes["payments"].infinite, "a third party has no threads that are known");
    assert_eq!(run.quality.tasks["payments"].entries["charge"].served, 0);
}

/// The peer has spans of its own elsewhere: its time here is not known.
#[test]
fn a_lost_server_half_of_a_known_service_has_no_self_time() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.request((2, 1), "web", "store", "read", (10.0, 30.0), 1.0);
    b.client((8, 1), "web", "read", (40.0, 60.0)).with(Attribute::PeerService, "store");
    let run = b.run();
    run.check(&["Client sync web.get", "web.get sync store.read", "web.get sync store.read"]);
    assert_eq!(run.quality.tasks["store"].entries["read"].self_s[0].count, 1);
    assert!(run.quality.explained.unknown_s > 0.0);
}

#[test]
fn a_missing_server_between_two_clients_is_implied() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "order", (10.0, 60.0));
    b.request((4, 2), "shop", "store", "read", (20.0, 30.0), 1.0);
    b.request((6, 2), "shop", "store", "write", (40.0, 50.0), 1.0);
    let run = b.run();
    run.check(&["Client sync web.get", "web.get sync shop.order", "shop.order sync store.read", "shop.order sync store.write"]);
    assert_eq!(run.self_ms("shop.order"), [None, None]);
    assert_eq!(run.count("missing_server_half"), 1);
}

#[test]
fn internal_spans_are_folded_or_kept() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.span((2, 1), "web", "render", SpanKind::Internal, (10.0, 60.0));
    b.request((3, 2), "web", "store", "read", (20.0, 40.0), 1.0);
    let folded = b.run();
    folded.check(&["Client sync web.get", "web.get sync store.read"]);
    assert_eq!(folded.self_ms("web.get"), [Some(80.0), None]);
    let keep = SpanOptions { internal: layerfit::structure::spans::InternalSpans::Keep, ..SpanOptions::default() };
    let kept = b.run_with(&keep);
    kept.check(&["Client sync web.get", "web(internal).render sync store.read", "web.get sync web(internal).render"]);
    assert_eq!(kept.self_ms("web.get"), [Some(50.0), None]);
    assert_eq!(kept.self_ms("web(internal).render"), [Some(30.0), None]);
    assert!(kept.hints.processes["web(internal)"].infinite);
    assert_eq!(kept.hints.processes["web(internal)"].processor, kept.hints.processes["web"].processor);
    assert_eq!(kept.hints.processes["web"].processor.as_deref(), Some("web_cpu"), "no host is said");
}

/// Two layers of instrumentation of one request, on either side.
#[test]
fn nested_instrumentation_is_one_request() {
    let mut b = Build::default();
    b.server((1, 0), "web", "GET", (0.0, 100.0));
    b.server((2, 1), "web", "get", (1.0, 99.0));
    b.client((3, 2), "web", "outer", (10.0, 60.0));
    b.client((4, 3), "web", "inner", (11.0, 59.0));
    b.server((5, 4), "store", "read", (20.0, 50.0));
    let run = b.run();
    run.check(&["Client sync web.GET", "web.GET sync store.read"]);
    assert_eq!(run.self_ms("web.GET"), [Some(52.0), None]);
}

/// A connection made inside a request is no parallel branch.
#[test]
fn a_request_inside_a_request_is_not_parallel_to_it() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "read", (10.0, 60.0));
    b.client((3, 2), "web", "lookup", (11.0, 20.0)).with(Attribute::PeerService, "names");
    b.server((4, 2), "store", "read", (25.0, 50.0));
    b.run().check(&["Client sync web.get", "web.get sync names.lookup", "web.get sync store.read"]);
}

/// A name that is looked up and a connection made for a request are parts of it, whether or not its server half was seen.
#[test]
fn what_tells_less_than_the_request_around_it_is_part_of_it() {
    for is_served in [false, true] {
        let mut b = Build::default();
        b.server((1, 0), "web", "get", (0.0, 20.0));
        let get = b.client((2, 1), "web", "GET", (1.0, 18.0)).with(Attribute::HttpMethod, "GET");
        get.with(Attribute::ServerAddress, "api.example").with(Attribute::Url, "https://api.example/v1/a");
        b.span((3, 2), "web", "connect", SpanKind::Internal, (1.0, 5.0));
        b.client((4, 3), "web", "dns.lookup", (1.1, 3.0));
        b.client((5, 2), "web", "tcp.connect", (3.0, 5.0)).with(Attribute::ServerAddress, "93.184.216.34");
        b.client((6, 5), "web", "tls.handshake", (4.0, 5.0));
        if is_served {
            b.server((7, 2), "api", "read", (6.0, 17.0));
        }
        let run = b.run();
        run.check(&["Client sync web.get", if is_served { "web.get sync api.read" } else { "web.get sync api.example.GET /v1/a" }]);
        assert_eq!(run.self_ms("web.get"), [Some(3.0), None]);
    }
}

/// The logical request and its attempts; a wrapper that says nothing; what is served far inside.
#[test]
fn what_tells_as_much_as_the_request_around_it_is_that_request() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "call", (1.0, 99.0)).with(Attribute::HttpMethod, "GET").with(Attribute::ServerAddress, "api");
    b.client((3, 2), "web", "try", (2.0, 40.0)).with(Attribute::HttpMethod, "GET").with(Attribute::ServerAddress, "api");
    b.client((4, 2), "web", "try", (50.0, 90.0)).with(Attribute::HttpMethod, "GET").with(Attribute::ServerAddress, "api");
    b.client((5, 2), "web", "dns", (41.0, 42.0));
    b.run().check(&["Client sync web.get", "web.get sync api.try", "web.get sync api.try"]);
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "fetch", (1.0, 99.0));
    b.client((3, 2), "web", "read", (2.0, 98.0)).with(Attribute::ServerAddress, "api");
    b.run().check(&["Client sync web.get", "web.get sync api.read"]);
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "call", (1.0, 99.0)).with(Attribute::PeerService, "stock");
    b.client((3, 2), "web", "proxy", (2.0, 98.0));
    b.client((4, 3), "web", "channel", (3.0, 97.0));
    b.server((5, 4), "store", "read", (5.0, 95.0));
    b.run().check(&["Client sync web.get", "web.get sync store.read"]);
}

/// What carries a request of a data base is part of it; a cache asked on the way to a third party is asked beside it.
#[test]
fn requests_of_another_kind_do_not_stand_for_the_one_around_them() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "search", (10.0, 60.0)).with(Attribute::DbSystem, "elasticsearch");
    b.client((3, 2), "web", "POST", (11.0, 59.0)).with(Attribute::HttpMethod, "POST").with(Attribute::ServerAddress, "es");
    b.span((4, 1), "web", "publish", SpanKind::Producer, (70.0, 80.0)).with(Attribute::MessagingSystem, "sqs");
    b.client((5, 4), "web", "POST", (71.0, 79.0)).with(Attribute::HttpMethod, "POST").with(Attribute::ServerAddress, "sqs.example");
    b.run().check(&["Client sync web.get", "web.get sync elasticsearch.search", "web.get async sqs.publish"]);
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "pay", (10.0, 60.0)).with(Attribute::HttpMethod, "POST").with(Attribute::ServerAddress, "bank");
    b.client((3, 2), "web", "token", (11.0, 13.0)).with(Attribute::DbSystem, "redis");
    let run = b.run();
    run.check(&["Client sync web.get", "web.get sync bank.pay", "web.get sync redis.token"]);
    assert_eq!(run.self_ms("web.get"), [Some(50.0), None]);
}

#[test]
fn kinds_are_inferred_where_they_are_not_said() {
    let mut b = Build::default();
    let u = SpanKind::Unspecified;
    b.span((1, 0), "nginx", "/compose", u, (0.0, 100.0));
    b.span((2, 1), "nginx", "compose_client", u, (10.0, 60.0));
    b.span((3, 2), "compose", "compose_server", u, (12.0, 58.0));
    b.span((4, 3), "compose", "work", u, (20.0, 30.0));
    b.span((5, 3), "compose", "find", u, (40.0, 50.0)).with(Attribute::DbSystem, "mongodb");
    let run = b.run();
    run.check(&["Client sync nginx./compose", "nginx./compose sync compose.compose_server", "compose.compose_server sync mongodb.find"]);
    assert_eq!(run.self_ms("nginx./compose"), [Some(50.0), None], "the requesting half was recognised");
    assert_eq!(run.self_ms("compose.compose_server"), [Some(36.0), None]);
}

#[test]
fn a_requesting_root_is_its_service_starting_on_its_own() {
    let mut b = Build::default();
    b.client((1, 0), "cron", "run", (0.0, 50.0));
    b.server((2, 1), "job", "run", (5.0, 45.0));
    let run = b.run();
    run.check(&["cron sync job.run"]);
    assert!(run.interactions.occurrences[0].originator);
    assert!(run.interactions.operations.len() == 1, "an originator has no entry");
}

/// How long it waited is not known, so neither is what of its time was no wait.
#[test]
fn a_caller_whose_call_did_not_finish_has_no_self_time() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "read", (10.0, 90.0)).with(Attribute::PeerService, "store").unfinished();
    let unfinished = b.run();
    unfinished.check(&["Client sync web.get", "web.get sync store.read"]);
    assert_eq!(unfinished.self_ms("web.get"), [None, None]);
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "read", (10.0, 5.0));
    b.server((3, 2), "store", "read", (20.0, 85.0));
    let backwards = b.run();
    assert_eq!(backwards.self_ms("web.get"), [Some(25.0), None], "the server tells when it was done");
}

/// What is served again below one request of the client waits for the serving before.
#[test]
fn servings_one_after_the_other_of_one_request_are_no_fork() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "read", (10.0, 90.0));
    b.server((3, 2), "store", "first", (15.0, 40.0));
    b.server((4, 2), "store", "second", (50.0, 85.0));
    let run = b.run();
    run.check(&["Client sync web.get", "web.get sync store.first", "web.get sync store.second"]);
    assert_eq!(run.self_ms("web.get"), [Some(20.0), None]);
}
