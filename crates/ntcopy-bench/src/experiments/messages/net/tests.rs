use super::*;

fn made(settings: &Settings) -> NetPlan {
    settings.plan(&Cpus::two()).unwrap()
}

#[test]
fn a_plan_of_nothing_asked_is_that_of_2011() {
    let plan = made(&Settings::default());
    assert_eq!(plan.sides.modes, [NetMode::Plain, NetMode::Hinted]);
    assert_eq!(plan.sides.between, Between::Loopback);
    assert!(plan.cells.iter().all(|cell| cell.transaction_bytes() == 28_000));
    // Every combination without a pause, and then on a schedule.
    assert_eq!((plan.cells[0].form, plan.cells[1].form), (LoadForm::Closed, LoadForm::Open));
    assert_eq!(plan.cells[0].connections, plan.cells[1].connections);
    let quick = made(&Settings { quick: true, ..Settings::default() });
    assert!(
        quick.samples() < plan.samples()
            && quick.lengths.closed.sample < plan.lengths.closed.sample
    );
}

#[test]
fn the_devices_own_way_is_measured_where_there_are_devices() {
    let plan = made(&Settings { veth: true, ..Settings::default() });
    assert_eq!(plan.sides.modes.last(), Some(&NetMode::Nocache));
    assert_eq!(plan.sides.between, Between::Veth { mtu_bytes: 1500 });
    let params = plan.params(&plan.cells[0], None);
    assert_eq!((&params["between"], &params["mtu_bytes"]), (&"veth".into(), &1500.into()));
    let settings = Settings { modes: vec![NetMode::Nocache], ..Settings::default() };
    assert_eq!(settings.plan(&Cpus::two()), Err(PlanError::no_device(WITH_VETH)));
}

#[test]
fn sizes_and_connections_multiply_and_a_rate_of_off_leaves_latencies_out() {
    let settings = Settings {
        families: vec![Family::Udp6],
        request_bytes: vec![64, 1 << 10],
        response_bytes: vec![1, 2],
        connections: vec![3],
        rate: Some(Rate::Off),
        ..Settings::default()
    };
    let plan = made(&settings);
    assert_eq!(plan.sides.families, [Family::Udp6; 4]);
    assert!(plan.cells.iter().all(|cell| cell.form == LoadForm::Closed));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |settings: Settings| settings.plan(&Cpus::two()).unwrap_err();
    let all = Settings::default;
    assert_eq!(refused(Settings { request_bytes: vec![0], ..all() }), PlanError::zero("request"));
    let cpus = refused(Settings { cpus: vec![0, 1, 0], ..all() }).to_string();
    assert!(cpus.ends_with("got 3"), "{cpus}");
    let large = Settings { request_bytes: vec![65_508], families: vec![Family::Udp], ..all() };
    assert!(refused(large).to_string().contains("at most 65507 bytes"));
    let many = refused(Settings { connections: vec![9999], ..all() });
    assert!(many.to_string().contains("at most 2048"), "{many}");
}

#[test]
fn memory_grows_with_connections_and_modes() {
    let one = made(&Settings { connections: vec![1], ..Settings::default() }).memory_bytes();
    let many = made(&Settings { connections: vec![128], ..Settings::default() }).memory_bytes();
    assert!(many > one && many < 1 << 30, "{one} {many}");
}
