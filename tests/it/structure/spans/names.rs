//! Names of tasks and entries: routes, statements, ids cut out, bounds, the user's rules.

use layerfit::structure::spans::EntryRule;

use super::*;

/// Tasks and entries of requests seen from their clients, by attributes.
fn peer(name: &str, attributes: &[(Attribute, &str)]) -> String {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    let mut client = b.client((2, 1), "web", name, (10.0, 60.0));
    for (attribute, text) in attributes {
        client = client.with(*attribute, text);
    }
    b.run().calls().into_iter().find(|call| call.starts_with("web.get")).unwrap().replace("web.get sync ", "")
}

fn served(name: &str, attributes: &[(Attribute, &str)]) -> String {
    let mut b = Build::default();
    let mut server = b.server((1, 0), "web", name, (0.0, 100.0));
    for (attribute, text) in attributes {
        server = server.with(*attribute, text);
    }
    b.run().calls()[0].replace("Client sync web.", "")
}

#[test]
fn databases_queues_and_third_parties_are_named_by_what_their_clients_say() {
    use Attribute as A;
    let statement = (A::DbStatement, "SELECT * FROM orders WHERE id = 17");
    assert_eq!(peer("q", &[(A::DbSystem, "postgresql"), (A::DbNamespace, "shop"), statement]), "postgresql/shop.SELECT orders");
    assert_eq!(peer("GET", &[(A::DbSystem, "redis"), (A::ServerAddress, "cache"), (A::ServerPort, "6379")]), "redis/cache:6379.GET");
    let mongo = [(A::DbSystem, "mongodb"), (A::DbOperation, "find"), (A::DbCollection, "carts")];
    assert_eq!(peer("carts.find", &mongo), "mongodb.find carts");
    assert_eq!(
        peer("GET", &[(A::ServerAddress, "api.example"), (A::HttpMethod, "get"), (A::Url, "https://api.example/v1/pay/99")]),
        "api.example.GET /v1/pay/{id}"
    );
    assert_eq!(peer("HTTP POST", &[(A::ServerAddress, "h"), (A::HttpMethod, "POST"), (A::Url, "/pay/9")]), "h.POST /pay/{id}");
    for n in ["42", "'x'"] {
        assert_eq!(peer(&format!("SELECT * FROM t WHERE id = {n}"), &[(A::PeerService, "shop")]), "shop.SELECT t");
    }
    for (statement, expected) in
        [("/* load User */ SELECT a FROM t", "mysql.SELECT t"), ("-- by shop\nINSERT INTO u VALUES (1)", "mysql.INSERT u")]
    {
        assert_eq!(peer("shop", &[(A::DbSystem, "mysql"), (A::DbStatement, statement)]), expected);
        assert_eq!(peer(statement, &[(A::DbSystem, "mysql")]), expected);
    }
    let nested = (A::DbStatement, "SELECT n FROM (SELECT COUNT(*) n FROM orders) t");
    assert_eq!(peer("q", &[(A::DbSystem, "mysql"), nested]), "mysql.SELECT orders");
    let doubled = [(A::DbSystem, "mysql"), (A::DbOperation, "SELECT orders"), (A::DbCollection, "orders")];
    assert_eq!(peer("q", &doubled), "mysql.SELECT orders");
    assert_eq!(peer("pay", &[(A::PeerService, "bank"), (A::ServerAddress, "10.0.0.1")]), "bank.pay");
    assert_eq!(peer("mystery", &[]), "web.peer.mystery");
}

#[test]
fn served_requests_are_named_by_route_rpc_or_name_without_ids() {
    use Attribute as A;
    assert_eq!(served("GET", &[(A::HttpMethod, "GET"), (A::HttpRoute, "/users/{uid}"), (A::Url, "/users/4")]), "GET /users/{uid}");
    assert_eq!(served("x", &[(A::RpcService, "shop.Cart"), (A::RpcMethod, "Get")]), "shop.Cart/Get");
    assert_eq!(served("GET /users/42/orders", &[]), "GET /users/{id}/orders");
    assert_eq!(served("GET", &[(A::HttpMethod, "GET"), (A::Url, "http://h/users/42?full=1")]), "GET /users/{id}");
    assert_eq!(served("HTTP GET", &[(A::Url, "/users/42")]), "GET /users/{id}");
    assert_eq!(served("HTTP GET", &[]), "HTTP GET", "nothing says more");
    assert_eq!(served("GET /search?q=a", &[]), "GET /search");
    assert_eq!(served("http://h:80/item/3f2504e0-4f89-11d3-9a0c-0305e82c3301", &[]), "/item/{id}");
    assert_eq!(served("", &[]), "(unnamed)");
}

/// A proxy before its application, both of one service: the application knows what is asked.
#[test]
fn the_one_route_below_a_request_without_any_names_it() {
    let route = |b: &mut Build, ids, route: &str| {
        b.server(ids, "web", "GET", (5.0, 90.0)).with(Attribute::HttpMethod, "GET").with(Attribute::HttpRoute, route);
    };
    let mut b = Build::default();
    b.server((1, 0), "web", "ingress", (0.0, 100.0));
    route(&mut b, (2, 1), "/a");
    let run = b.run();
    run.check(&["Client sync web.GET /a"]);
    assert_eq!(run.self_ms("web.GET /a"), [Some(100.0), None]);
    let mut two = b.clone();
    route(&mut two, (3, 1), "/b");
    two.run().check(&["Client sync web.ingress"]);
    let mut own = Build::default();
    route(&mut own, (1, 0), "/outer");
    route(&mut own, (2, 1), "/inner");
    own.run().check(&["Client sync web.GET /outer"]);
}

#[test]
fn spans_without_service_are_of_the_unknown_service() {
    let mut b = Build::default();
    let name = b.texts.text("get");
    let resource = b.texts.resource_number(Resource::default());
    b.spans.push(Span { trace: TraceId(1), id: SpanId(1), resource, name, duration_ns: Some(5), ..Span::default() });
    b.run().check(&["Client sync unknown_service.get"]);
}

#[test]
fn entries_of_a_task_are_bounded() {
    let mut b = Build::default();
    for n in 0..30_u32 {
        let name = format!("op-{}", char::from_u32('a' as u32 + n % 26).unwrap().to_string().repeat(1 + n as usize / 26));
        b.server((u64::from(n) + 1, 0), "web", &name, (f64::from(n), f64::from(n) + 0.5)).trace(u128::from(n) + 1);
    }
    let run = b.run_with(&SpanOptions { entries_per_task: 10, ..SpanOptions::default() });
    let entries = &run.quality.tasks["web"].entries;
    assert_eq!((entries.len(), entries["(other)"].occurrences), (11, 20));
    assert_eq!(run.count("other_entries"), 20);
}

/// A crawler's one-off URLs come first: they become one entry, and what is asked often keeps its place; in any order, and in parts.
#[test]
fn one_off_paths_leave_room_for_what_is_asked_often() {
    let mut b = Build::default();
    let mut trace = 0;
    let mut ask = |b: &mut Build, path: &str, route: bool| {
        trace += 1;
        let at = trace as f64;
        let made = b.server((1, 0), "web", "GET", (at, at + 0.5)).trace(trace).with(Attribute::HttpMethod, "GET");
        made.with(if route { Attribute::HttpRoute } else { Attribute::Url }, path);
    };
    let letters = || (b'a'..=b'z').map(char::from);
    for (x, y) in letters().take(6).flat_map(|x| letters().map(move |y| (x, y))) {
        ask(&mut b, &format!("/junk/{x}{y}"), false);
        ask(&mut b, &format!("/shop/{x}{y}/parts"), false);
    }
    for (n, path) in ["/checkout", "/cart"].into_iter().cycle().take(20).enumerate() {
        ask(&mut b, path, n % 4 == 0);
    }
    letters().for_each(|x| ask(&mut b, &format!("/routes/{x}"), true));
    let run = b.run_with(&SpanOptions { entries_per_task: 60, ..SpanOptions::default() });
    let entries = &run.quality.tasks["web"].entries;
    assert_eq!((entries["GET /checkout"].occurrences, entries["GET /cart"].occurrences), (10, 10), "{:?}", entries.keys());
    assert!(run.count("many_paths") > 100 && entries.len() <= 61, "{:?}", entries.keys());
    let mut reversed = b.clone();
    reversed.spans.reverse();
    let again = reversed.run_with(&SpanOptions { entries_per_task: 60, ..SpanOptions::default() });
    assert_eq!(again.quality.tasks["web"].entries.keys().collect::<Vec<_>>(), entries.keys().collect::<Vec<_>>());
}

#[test]
fn queues_hosts_and_ports_that_come_and_go_are_one_task() {
    use Attribute as A;
    for queue in ["amq.gen-JzTY20BRgKO-HjmUJj0wLg", "amq.gen-XaTcCRhfgKO-ABmUJjawLg"] {
        let name = format!("{queue} publish");
        let expected = "rabbitmq/amq.gen-{id}.amq.gen-{id} publish";
        assert_eq!(peer(&name, &[(A::MessagingSystem, "rabbitmq"), (A::MessagingDestination, queue)]), expected);
    }
    for (host, port) in [("3f2504e04f89", "49153"), ("0305e82c3301", "40000")] {
        assert_eq!(peer("q", &[(A::DbSystem, "mysql"), (A::ServerAddress, host), (A::ServerPort, port)]), "mysql/{id}:{port}.q");
    }
}

#[test]
fn tasks_known_from_their_clients_are_bounded() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    for n in 0..30_u32 {
        let address = format!("10.0.0.{n}");
        b.client((2 + u64::from(n), 1), "web", "GET", (f64::from(n), f64::from(n) + 0.5)).with(Attribute::ServerAddress, &address);
    }
    b.client((40, 1), "web", "q", (50.0, 60.0)).with(Attribute::DbSystem, "mysql");
    // One that has spans of its own is none of them, though this request of it shows no serving half.
    b.client((41, 1), "web", "ask", (61.0, 62.0)).with(Attribute::PeerService, "bank");
    b.request((42, 1), "web", "bank", "ask", (63.0, 64.0), 0.1);
    let run = b.run_with(&SpanOptions { peer_tasks: 10, ..SpanOptions::default() });
    let tasks: Vec<&str> = run.quality.tasks.keys().map(String::as_str).collect();
    assert_eq!(tasks.len(), 14, "{tasks:?}");
    assert_eq!(run.quality.tasks["(other third parties)"].entries["GET"].occurrences, 20);
    assert_eq!(run.quality.tasks["(other databases)"].entries["q"].occurrences, 1);
    assert_eq!(run.quality.tasks["bank"].entries["ask"].occurrences, 2);
    assert_eq!(run.count("other_peers"), 21);
    assert!(run.hints.processes["(other third parties)"].infinite && !run.hints.processes["(other databases)"].infinite);
}

#[test]
fn the_users_rules_name_entries_first() {
    let rule: EntryRule = "/shop/*/item/*=item".parse().unwrap();
    let options = SpanOptions { entry_rules: vec![rule], ..SpanOptions::default() };
    let mut b = Build::default();
    b.server((1, 0), "web", "/shop/berlin/item/screw", (0.0, 1.0));
    b.server((1, 0), "web", "/shop/berlin/cart", (2.0, 3.0)).trace(2);
    b.run_with(&options).check(&["Client sync web./shop/berlin/cart", "Client sync web.item"]);
    for (pattern, text, matches) in [
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*c", "acb", false),
        ("*", "", true),
        ("a", "ab", false),
        ("*a*b*", "xxaxxbxx", true),
        ("*a*a", "a", false),
    ] {
        let rule = EntryRule { pattern: pattern.to_owned(), name: "n".to_owned() };
        assert_eq!(rule.matches(text), matches, "{pattern} {text}");
    }
    for bad in ["", "=x", "x=", "x"] {
        assert!(bad.parse::<EntryRule>().is_err(), "{bad}");
    }
}

#[test]
fn the_tracings_own_traffic_is_left_out() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "POST", (10.0, 20.0)).with(Attribute::Url, "http://collector:4318/v1/traces");
    b.server((3, 2), "collector", "POST /v1/traces", (11.0, 19.0));
    b.client((1, 0), "web", "opentelemetry.proto.collector.trace.v1.TraceService/Export", (200.0, 210.0)).trace(2);
    let run = b.run();
    run.check(&["Client sync web.get"]);
    assert_eq!((run.count("tracing_itself"), run.quality.spans.used), (3, 1));
    assert_eq!(run.self_ms("web.get"), [Some(100.0), None]);
    // Somebody else's paths that begin alike are not.
    let mut b = Build::default();
    b.server((1, 0), "audit", "POST /v1/logs/write", (0.0, 100.0));
    let run = b.run();
    assert_eq!((run.count("tracing_itself"), run.quality.spans.used), (0, 1));
}

#[test]
fn hosts_are_processors_and_instances_threads() {
    let mut b = shop();
    b.server((1, 0), "cart", "cart/Get", (15.0, 45.0)).trace(2).on("h4", "cart-2");
    let run = b.run();
    let hint = |task: &str| run.hints.processes[task].clone();
    assert_eq!((hint("web").processor.as_deref(), hint("web").threads), (Some("h1"), Some(1)));
    assert_eq!((hint("cart").processor.as_deref(), hint("cart").threads), (Some("cart_cpu"), Some(2)), "two instances, one at a time each");
    assert_eq!(run.hints.processors["cart_cpu"].machines, Some(2));
    assert_eq!((hint("postgresql").processor, hint("postgresql").threads, hint("postgresql").infinite), (None, Some(1), false));
    assert_eq!(run.quality.tasks["cart"].instances, 2);
}
