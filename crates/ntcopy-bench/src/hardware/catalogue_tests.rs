use super::super::testing::Tree;
use super::*;

/// What the catalogue says of a machine whose kernel answers that way.
fn offers(
    tree: &Tree,
    signature: &str,
    guest: bool,
    attempt: &dyn Fn(&Request, bool) -> Result<(), Absent>,
) -> Vec<HardwareCounter> {
    let machine = Surroundings { root: tree.root(), signature, guest, attempt };
    Catalogue::find(&machine).offers().to_vec()
}

fn missing<'a>(offers: &'a [HardwareCounter], name: &str) -> Option<&'a str> {
    let offer = offers.iter().find(|offer| offer.name == name);
    offer.unwrap_or_else(|| panic!("{name}: {offers:?}")).missing.as_deref()
}

fn refuse(errno: Errno) -> impl Fn(&Request, bool) -> Result<(), Absent> {
    move |_, _| Err(Absent::Refused(errno))
}

#[test]
fn a_server_offers_everything() {
    let tree = Tree::monitored();
    let found = offers(&tree, "GenuineIntel-6-85-4", false, &|_, _| Ok(()));
    assert!(found.iter().all(|offer| offer.missing.is_none()), "{found:?}");
    let names: Vec<&str> = found.iter().map(|offer| offer.name.as_str()).collect();
    let others = ["mbm-total-bytes", "mbm-local-bytes"];
    assert_eq!(names, [&events::NAMES[..], &others].concat());
    let l3 = found.iter().find(|offer| offer.name == "l3-load-misses").unwrap();
    assert_eq!(l3.source, "MEM_LOAD_RETIRED.L3_MISS");
}

#[test]
fn a_guest_without_a_pmu_says_so_of_every_event_and_tries_but_one() {
    let tree = Tree::guest();
    let tried = std::cell::Cell::new(0);
    let found = offers(&tree, "GenuineIntel-6-207-2", true, &|_, _| {
        tried.set(tried.get() + 1);
        Err(Absent::Refused(Errno::NOENT))
    });
    assert_eq!(tried.get(), 1);
    for name in events::NAMES {
        assert_eq!(missing(&found, name), Some("no PMU in this guest"));
    }
    assert!(missing(&found, "mbm-total-bytes").unwrap().starts_with("no resctrl"));
}

#[test]
fn a_counter_that_stands_still_is_none() {
    let tree = Tree::server();
    let silent = |_: &Request, moves: bool| if moves { Err(Absent::Silent) } else { Ok(()) };
    let found = offers(&tree, "GenuineIntel-6-85-4", true, &silent);
    for name in events::NAMES {
        assert!(missing(&found, name).unwrap().contains("does not count"), "{name}");
    }
}

#[test]
fn what_is_not_allowed_is_counted_in_user_space_and_the_rest_says_what_it_needs() {
    let tree = Tree::server();
    let paranoid = |request: &Request, _| match request.kernel {
        true => Err(Absent::Refused(Errno::ACCESS)),
        false => Ok(()),
    };
    let found = offers(&tree, "AuthenticAMD-26-2-1", false, &paranoid);
    let cycles = found.iter().find(|offer| offer.name == "cycles").unwrap();
    assert_eq!(
        (cycles.source.as_str(), &cycles.missing),
        ("CPU cycles, in user space only", &None)
    );
    assert!(missing(&found, "llc-misses").unwrap().contains("no event of this CPU's cores"));
    assert!(missing(&found, "mbm-local-bytes").unwrap().contains("mount -t resctrl"));
}

#[test]
fn each_refusal_has_its_words() {
    let tree = Tree::server();
    for (errno, guest, words) in [
        (Errno::NOENT, true, "not offered by this CPU or its hypervisor"),
        (Errno::NOSYS, false, "no performance events"),
        (Errno::ACCESS, false, "perf_event_paranoid"),
    ] {
        let found = offers(&tree, "GenuineIntel-6-85-4", guest, &refuse(errno));
        let why = missing(&found, "instructions").unwrap();
        assert!(why.contains(words), "{errno}: {why}");
    }
    let bare = Tree::guest();
    let found = offers(&bare, "GenuineIntel-6-85-4", false, &refuse(Errno::NOENT));
    assert_eq!(missing(&found, "cycles"), Some("no PMU that this kernel drives"));
}
