use super::HttpMode::{Auto, Hinted, Plain, Sendfile};
use super::Stack::{self, HaproxyExample, HaproxyNginx, StoragedProxyd};
use super::*;

fn made(settings: &Settings) -> HttpPlan {
    plan(settings, &Cpus::two()).unwrap()
}

/// The name of the mode that the others are compared with.
fn baseline(plan: &HttpPlan) -> String {
    plan.name(plan.ways[0])
}

#[test]
fn a_plan_of_nothing_asked_is_the_defaults() {
    let plan = made(&Settings::default());
    let names: Vec<String> = plan.ways.iter().map(|way| plan.name(*way)).collect();
    assert_eq!(names, ["plain", "hinted", "sendfile"]);
    assert_eq!(baseline(&plan), "plain");
    // Every combination without a pause, and then on a schedule.
    let half = plan.cells.len() / 2;
    let closed = plan.cells.iter().filter(|cell| cell.form == HttpForm::Closed).count();
    assert_eq!((closed, plan.cells[1].form), (half, HttpForm::Open));
    assert_eq!(plan.cells[0].connections, plan.cells[1].connections);
    let quick = made(&Settings { quick: true, ..Settings::default() });
    assert!(
        quick.samples() < plan.samples()
            && quick.lengths.closed.sample < plan.lengths.closed.sample
    );
}

#[test]
fn daemons_are_started_for_each_group_or_as_often_as_was_asked() {
    let starts = |settings: &Settings| {
        let plan = made(settings);
        (0..plan.pairs).filter(|pair| plan.starts_at(*pair)).collect::<Vec<u32>>()
    };
    let pairs = |pairs: u32| Settings { pairs: Some(pairs), ..Settings::default() };
    assert_eq!(starts(&pairs(6)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(starts(&Settings { quick: true, ..pairs(6) }), [0]);
    assert_eq!(starts(&Settings { starts: Some(3), ..pairs(6) }), [0, 2, 4]);
    assert_eq!(starts(&Settings { starts: Some(2), ..pairs(5) }), [0, 3]);
    let many = Settings { starts: Some(100), ..pairs(5) };
    assert_eq!(starts(&many), [0, 1, 2, 3, 4]);
    assert_eq!(made(&many).params(&made(&many).cells[0], None)["starts"], 5);
    let none = Settings { starts: Some(0), ..Settings::default() };
    assert_eq!(plan(&none, &Cpus::two()), Err(PlanError::zero("starts")));
}

#[test]
fn the_first_stack_is_the_baseline_and_a_mode_is_where_a_stack_has_it() {
    let settings = Settings {
        stacks: vec![HaproxyNginx, StoragedProxyd],
        modes: vec![Hinted, Auto],
        ..Settings::default()
    };
    let plan = made(&settings);
    let ways: Vec<(Stack, HttpMode)> = plan.ways.iter().map(|way| (way.stack, way.mode)).collect();
    let expected = [
        (HaproxyNginx, Plain),
        (HaproxyNginx, Hinted),
        (StoragedProxyd, Plain),
        (StoragedProxyd, Hinted),
        (StoragedProxyd, Auto),
    ];
    assert_eq!(ways, expected);
    assert_eq!(baseline(&plan), "haproxy+nginx:plain");
    assert_eq!(plan.name(plan.ways[3]), "storaged+proxyd:hinted");
}

#[test]
fn another_baseline_stands_first_and_copy_is_there_if_it_was_asked_for() {
    let settings = Settings {
        stacks: vec![HaproxyNginx, StoragedProxyd],
        modes: vec![Sendfile],
        baseline: Some(Sendfile),
        ..Settings::default()
    };
    let plan = made(&settings);
    let names: Vec<String> = plan.ways.iter().map(|way| plan.name(*way)).collect();
    assert_eq!(names, ["haproxy+nginx:sendfile", "storaged+proxyd:sendfile"]);
    assert_eq!(baseline(&plan), "haproxy+nginx:sendfile");
    let with_copy = made(&Settings { modes: vec![Plain, Sendfile], ..settings.clone() });
    assert_eq!((with_copy.ways.len(), baseline(&with_copy)), (4, baseline(&plan)));
    let not_theirs = Settings { baseline: Some(Auto), ..settings };
    let error = super::plan(&not_theirs, &Cpus::two()).unwrap_err().to_string();
    assert!(error.starts_with("--baseline auto: haproxy+nginx"), "{error}");
}

#[test]
fn cells_with_the_same_data_follow_each_other() {
    let settings = Settings {
        object_bytes: vec![1000, 4096],
        dataset_bytes: vec![10_500, 40_960],
        connections: vec![1, 3],
        rate: Some(Rate::Off),
        ..Settings::default()
    };
    let plan = made(&settings);
    assert_eq!(plan.cells.len(), 8);
    assert_eq!((plan.cells[0].dataset_bytes, plan.cells[0].objects()), (10_000, 10));
    assert!(plan.cells[0].has_data_of(&plan.cells[1]));
    assert!(!plan.cells[1].has_data_of(&plan.cells[2]));
    assert_eq!(plan.cells[1].asked_bytes(), 3000);
}

#[test]
fn what_cannot_be_is_refused_with_what_to_change() {
    let with = |change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        plan(&settings, &Cpus::two()).unwrap_err().to_string()
    };
    for (error, words) in [
        (with(&|s| s.pairs = Some(4)), "at least 5 pairs"),
        (with(&|s| s.connections = vec![0]), "--connections 0"),
        (with(&|s| s.connections = vec![5000]), "at most 4096"),
        (with(&|s| s.object_bytes = vec![0]), "--object 0"),
        (with(&|s| s.dataset_bytes = vec![1]), "smaller than one object"),
        (with(&|s| s.workers = Some(0)), "--workers 0"),
        (with(&|s| s.cpus = vec![0, 1]), "client, proxy and backend"),
        (with(&|s| s.cpus = vec![9]), "--cpus 9"),
        (with(&|s| (s.stacks, s.modes) = (vec![HaproxyNginx], vec![Auto])), "auto"),
        (
            with(&|s| (s.stacks, s.transport) = (vec![HaproxyExample], Some(Transport::Tcp))),
            "haproxy+backend.c listens on a unix socket",
        ),
    ] {
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn params_say_where_and_how_and_what_was_offered() {
    let settings =
        Settings { cpus: vec![0, 1, 0], modes: vec![Hinted, Sendfile], ..Settings::default() };
    let plan = made(&settings);
    let params = plan.params(&plan.cells[1], Some(123_456));
    assert_eq!(params["form"], "open");
    assert_eq!(params["offered_requests_per_1000_s"], 123_456);
    assert_eq!((&params["proxy_cpu"], &params["stack"]), (&1.into(), &"storaged+proxyd".into()));
    assert!(!plan.params(&plan.cells[0], None).contains_key("offered_requests_per_1000_s"));
}

#[test]
fn memory_covers_the_data_and_what_is_in_flight() {
    let settings = Settings {
        stacks: vec![StoragedProxyd, HaproxyNginx],
        object_bytes: vec![1 << 20],
        connections: vec![64],
        dataset_bytes: vec![256 << 20],
        ..Settings::default()
    };
    let plan = made(&settings);
    assert!(plan.data_bytes(&plan.cells[0]) >= 512 << 20);
    assert!(plan.memory_bytes() >= (1024 + 128) << 20);
    assert_eq!(plan.sysctls()[0].name, "net.ipv4.tcp_mem");
}
