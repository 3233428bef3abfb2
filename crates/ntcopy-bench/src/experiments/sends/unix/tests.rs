use proptest::prelude::*;

use super::*;
use crate::sample::Bootable as _;
use crate::sample::needs::OVERHEAD;

fn rounds(sockets: &[u32]) -> Settings {
    Settings { sockets: sockets.to_vec(), ..Settings::default() }
}

#[test]
fn sockets_make_rounds_with_exactly_sockets_times_object_in_flight() {
    let plan = plan(&rounds(&[1, 8, 64]), &Cpus::two()).unwrap();
    let in_flight: Vec<_> = plan.cells.iter().map(CellPlan::in_flight_bytes).collect();
    assert_eq!(in_flight, [Some(1 << 20), Some(8 << 20), Some(64 << 20)]);
    assert!(plan.cells.iter().all(|cell| cell.dataset_bytes == 256 << 20));
    assert_eq!(plan.cells[0].cpus, CpuPair { sender: 0, reader: 1 });
    assert_eq!(plan.samples(), 3 * 15 * 3);
}

#[test]
fn beside_a_bulk_sender_a_small_one_has_cells_for_both_times() {
    let settings = Settings { beside: vec![64 << 10, 96 << 10], ..Settings::default() };
    let plan = plan(&settings, &Cpus::two()).unwrap();
    assert!(!plan.modes.contains(&Mode::Vmsplice));
    let of = |cell: &CellPlan| {
        let params = cell.params(None);
        let name = |name: &str| params[name].to_string();
        format!("{} {} {}", name("small_bytes"), name("small_per_object"), name("clocked"))
    };
    let cells: Vec<String> = plan.cells.iter().map(of).collect();
    assert_eq!(cells.len(), 8);
    assert_eq!(cells[..2], ["65536 8 \"small\"", "65536 8 \"bulk\""]);
    assert_eq!(cells[7], "98304 24 \"bulk\"");
    assert_eq!(plan.cells[0].in_flight_bytes(), Some(64 << 20));
    let small = plan.cells[0].small().unwrap();
    assert_eq!((small.object_bytes, small.sockets()), (64 << 10, 1));
}

#[test]
fn without_sockets_the_published_form_runs_freely() {
    let plan = plan(&Settings::default(), &Cpus::two()).unwrap();
    let [cell] = &plan.cells[..] else { panic!("one cell") };
    assert_eq!(cell.form, Form::FreeRunning { iterations: None, most_iterations: 100_000 });
    assert_eq!((cell.pipe_bytes, cell.sndbuf_bytes), (Some(524_288), Some(524_288)));
    assert_eq!((cell.object_bytes, cell.dataset_bytes), (1 << 20, 1 << 20));
    assert_eq!(cell.in_flight_bytes(), None);
}

#[test]
fn published_runs_the_three_configurations_and_says_where() {
    let settings = Settings { published: true, ..Settings::default() };
    let cells = plan(&settings, &Cpus::two()).unwrap().cells;
    assert_eq!(cells.len(), 3);
    assert_eq!(cells[2].pipe_bytes, Some(131_072));
    assert_eq!(cells[0].note, None);
    let note = cells[1].note.as_deref().unwrap();
    assert!(note.contains("share an L2") && note.contains("CPUs 0 and 1"), "{note}");

    let pair = CpuPair { sender: 0, reader: 2 };
    let smt = Cpus { allowed: vec![0, 1, 2, 3], sharing_l2: Some(pair) };
    let cells = plan(&settings, &smt).unwrap().cells;
    assert_eq!((cells[0].cpus.reader, cells[1].cpus), (1, pair));
    assert_eq!((&cells[0].note, &cells[1].note), (&None, &None));
}

#[test]
fn iterations_are_exact_when_named_even_for_published_ones() {
    let settings = Settings { published: true, iterations: Some(7), ..Settings::default() };
    let cells = plan(&settings, &Cpus::two()).unwrap().cells;
    let exactly = Form::FreeRunning { iterations: Some(7), most_iterations: 7 };
    assert!(cells.iter().all(|cell| cell.form == exactly));
}

#[test]
fn lists_multiply() {
    let settings = Settings {
        object_bytes: vec![4096, 8192],
        dataset_bytes: vec![1 << 20, 2 << 20],
        ..rounds(&[1, 2, 3])
    };
    assert_eq!(plan(&settings, &Cpus::two()).unwrap().cells.len(), 12);
}

#[test]
fn a_single_cpu_runs_both_processes() {
    let one = Cpus { allowed: vec![5], sharing_l2: None };
    let plan = plan(&rounds(&[1]), &one).unwrap();
    assert_eq!(plan.cells[0].cpus, CpuPair { sender: 5, reader: 5 });
}

#[test]
fn nonsense_is_refused_with_what_to_change() {
    let refused = |settings: Settings| plan(&settings, &Cpus::two()).unwrap_err().to_string();
    let settings = || rounds(&[1]);
    for (settings, words) in [
        (Settings { pairs: Some(4), ..settings() }, "at least 5 pairs"),
        (Settings { object_bytes: vec![0], ..settings() }, "--object 0"),
        (rounds(&[0]), "--sockets 0"),
        (rounds(&[100_000]), "at most 8192"),
        (Settings { object_bytes: vec![2 << 30], ..settings() }, "at most 1 GiB"),
        (Settings { dataset_bytes: vec![4096], ..settings() }, "smaller than one object of 1 MiB"),
        (Settings { cpus: vec![7], ..settings() }, "CPU 0, 1"),
        (Settings { cpus: vec![0, 1, 0], ..settings() }, "got 3"),
    ] {
        let error = refused(settings);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn an_object_larger_than_the_default_data_set_is_its_own_data_set() {
    let settings = Settings { object_bytes: vec![512 << 20], ..rounds(&[1]) };
    assert_eq!(plan(&settings, &Cpus::two()).unwrap().cells[0].dataset_bytes, 512 << 20);
}

#[test]
fn params_name_the_form_and_its_sizes() {
    let plan = plan(&rounds(&[8]), &Cpus::two()).unwrap();
    let params = plan.cells[0].params(None);
    assert_eq!(params["form"], "rounds");
    assert_eq!(params["in_flight_bytes"], 8 << 20);
    assert!(!params.contains_key("iterations"));
    let free = super::plan(&Settings::default(), &Cpus::two()).unwrap();
    let params = free.cells[0].params(Some(123));
    assert_eq!((&params["form"], &params["iterations"]), (&"free-running".into(), &123.into()));
    assert!(!params.contains_key("in_flight_bytes"));
}

#[test]
fn a_sweep_is_144_cells_whose_data_sets_come_one_after_the_other() {
    let settings = Settings { sweep: true, ..Settings::default() };
    let plan = plan(&settings, &Cpus::two()).unwrap();
    assert_eq!((plan.cells.len(), plan.modes.len()), (144, 2));
    assert!(plan.cells.is_sorted_by_key(|cell| cell.dataset_bytes));
    let small = Settings { sockets: vec![1], object_bytes: vec![4096], ..settings };
    assert_eq!(super::plan(&small, &Cpus::two()).unwrap().cells.len(), 3);
}

#[test]
fn other_families_are_measured_in_rounds_and_need_room() {
    let settings = Settings { families: vec![Family::Udp, Family::Tcp6], ..rounds(&[1, 4]) };
    let planned = plan(&settings, &Cpus::two()).unwrap();
    let families: Vec<Family> = planned.cells.iter().map(|cell| cell.family).collect();
    assert_eq!(families, [Family::Tcp6, Family::Tcp6, Family::Udp, Family::Udp]);
    let needed = planned.sysctls();
    assert_eq!(needed.iter().map(|sysctl| sysctl.name).collect::<Vec<_>>().len(), 2);
    assert!(needed.iter().all(|sysctl| sysctl.pages * 4096 >= 4 * (4 << 20)), "{needed:?}");
    assert_eq!(plan(&rounds(&[1]), &Cpus::two()).unwrap().sysctls(), []);
    let free = Settings { families: vec![Family::Tcp], ..Settings::default() };
    assert!(plan(&free, &Cpus::two()).unwrap_err().to_string().contains("--sockets"));
}

proptest! {
    #[test]
    fn data_sets_are_whole_objects_and_memory_covers_them(
        object in 1u64..1 << 21, dataset in 1u64..1 << 28, sockets in 1u32..200,
    ) {
        let settings = Settings {
            object_bytes: vec![object], dataset_bytes: vec![dataset], ..rounds(&[sockets])
        };
        match plan(&settings, &Cpus::two()) {
            Ok(plan) => {
                let cell = &plan.cells[0];
                prop_assert_eq!(cell.dataset_bytes % object, 0);
                prop_assert!(cell.dataset_bytes >= object && cell.dataset_bytes <= dataset);
                prop_assert!(plan.memory_bytes() >= dataset / object * object + 2 * u64::from(sockets) * object);
            }
            Err(error) => {
                let too_small = error.to_string().starts_with("--dataset");
                prop_assert!(too_small);
                prop_assert!(dataset < object);
            }
        }
    }
}

#[test]
fn a_sweep_has_modes_and_pairs_of_its_own_unless_told_otherwise() {
    let sweep = Settings { sweep: true, ..Settings::default() };
    assert_eq!(sweep.modes(), [Mode::Plain, Mode::Hinted]);
    assert_eq!(sweep.pairs(), defaults(false).sweep.pairs);
    let told = Settings { modes: vec![Mode::Vmsplice], pairs: Some(9), ..sweep };
    assert_eq!((told.modes(), told.pairs()), (vec![Mode::Plain, Mode::Vmsplice], 9));
    let defaults = &defaults(false).sweep;
    let cells = [defaults.sockets.len(), defaults.dataset_bytes.len()];
    assert_eq!(cells.iter().product::<usize>() * defaults.object_bytes.len(), 144);
}

#[test]
fn families_come_once_and_pages_are_not_spliced_into_datagrams() {
    let settings = Settings { families: vec![Family::Udp, Family::Udp], ..Settings::default() };
    assert_eq!(settings.families(), [Family::Udp]);
    assert!(!settings.modes().contains(&Mode::Vmsplice));
    assert_eq!(Settings::default().families(), [Family::Unix]);
}

#[test]
fn only_a_run_whose_length_is_known_has_a_limit() {
    let needs = |settings: &Settings| plan(settings, &Cpus::two()).unwrap().needs();
    let rounds = Settings { sockets: vec![1, 128], ..Settings::default() };
    assert!(needs(&rounds).longest.is_some_and(|limit| limit > OVERHEAD));
    let free = Settings { iterations: Some(100_000), ..Settings::default() };
    assert_eq!(needs(&free).longest, None);
}
