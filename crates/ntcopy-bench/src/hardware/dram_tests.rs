use super::super::testing::Tree;
use super::*;

fn found(tree: &str, signature: &str) -> Vec<Traffic> {
    find(Tree::new(tree).root(), signature)
}

#[test]
fn every_channel_of_every_socket_is_counted_in_bytes() {
    let traffic = found("skylake-sp", "GenuineIntel-6-85-4");
    let [read, write] = &traffic[..] else { panic!("{traffic:?}") };
    assert_eq!((read.name, write.name), (READ, WRITE));
    assert_eq!((read.parts.len(), write.parts.len()), (12, 12));
    assert_eq!(read.parts[0].config, Config([0x0304, 0, 0]));
    assert_eq!(write.parts[0].config, Config([0x0c04, 0, 0]));
    assert!(read.parts.iter().all(|part| part.bytes == 64.0 && part.kind == 14));
    assert_eq!(read.parts.iter().filter(|part| part.cpu == 16).count(), 6);
    assert_eq!(read.source, "6 x uncore_imc: cas_count_read");
}

#[test]
fn sub_channels_are_added() {
    let traffic = found("granite-rapids", "GenuineIntel-6-173-1");
    assert_eq!(traffic[0].parts.len(), 24);
    let configs: Vec<u64> = traffic[1].parts[..2].iter().map(|part| part.config.0[0]).collect();
    assert_eq!(configs, [0xf005, 0xf006]);
}

#[test]
fn free_running_counters_do_where_there_are_no_others() {
    let traffic = found("tiger-lake", "GenuineIntel-6-140-1");
    assert_eq!(traffic.iter().map(|one| one.parts.len()).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(traffic[1].parts[0].config, Config([0x30ff, 0, 0]));
}

#[test]
fn a_controller_that_lacks_the_event_takes_the_whole_direction_away() {
    let tree = Tree::new("skylake-sp");
    let path = "sys/bus/event_source/devices/uncore_imc_3/events/cas_count_read";
    std::fs::remove_file(tree.root().join(path)).unwrap();
    let traffic = find(tree.root(), "GenuineIntel-6-85-4");
    assert_eq!(traffic.iter().map(|one| one.name).collect::<Vec<_>>(), [WRITE]);
    // One whose unit is unknown is none.
    let path = "sys/bus/event_source/devices/uncore_imc_3/events/cas_count_write.unit";
    tree.write(path, "furlongs\n");
    assert_eq!(find(tree.root(), "GenuineIntel-6-85-4"), []);
}

#[test]
fn amd_s_controllers_go_before_its_fabric() {
    let traffic = found("turin", "AuthenticAMD-26-2-1");
    assert_eq!(traffic.iter().map(|one| one.parts.len()).collect::<Vec<_>>(), [12, 12]);
    assert_eq!(traffic[0].parts[0].config, Config([0x010a, 0, 0]));
    assert_eq!(traffic[1].parts[0].config, Config([0x020a, 0, 0]));
    assert_eq!(traffic[0].source, "12 x amd_umc: umc_cas_cmd.rd");
}

#[test]
fn the_fabric_s_events_are_put_into_their_pieces() {
    let traffic = found("genoa-old-kernel", "AuthenticAMD-25-17-1");
    assert_eq!(traffic.iter().map(|one| one.parts.len()).collect::<Vec<_>>(), [12, 12]);
    // Event 0x1f, unit mask 0x7fe: eight bits in 8 to 15, the others from 24 on.
    assert_eq!(traffic[0].parts[0].config, Config([0x1f | 0xfe << 8 | 0x7 << 24, 0, 0]));
    let last = traffic[1].parts[11].config.0[0];
    assert_eq!(last, 0xdf | 0x2 << 32 | 0xff << 8 | 0x7 << 24);

    let traffic = found("rome", "AuthenticAMD-23-49-0");
    assert_eq!((traffic.len(), traffic[0].name, traffic[0].parts.len()), (1, TOTAL, 16));
    assert_eq!(traffic[0].parts[0].config, Config([0x3807, 0, 0]));
    assert_eq!(traffic[0].parts[15].config, Config([0x38c7 | 1 << 32, 0, 0]));
    assert_eq!(traffic[0].parts[1].cpu, 64);
}

#[test]
fn a_machine_without_such_pmus_has_no_traffic() {
    assert_eq!(found("guest", "GenuineIntel-6-207-2"), []);
    assert_eq!(found("rome", "GenuineIntel-6-85-4"), []);
    assert_eq!(find(Path::new("/nonexistent"), ""), []);
}
