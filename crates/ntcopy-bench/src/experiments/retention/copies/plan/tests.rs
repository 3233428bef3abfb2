use super::*;

fn here() -> Here {
    Here {
        allowed: vec![0, 1, 2, 3],
        victim_cpu: 0,
        sharing_llc: Some(vec![0, 1, 2]),
        sharing_core: Some(vec![0, 1]),
        l2_bytes: 2 << 20,
        llc_bytes: 300 << 20,
    }
}

fn cells(settings: &Settings, here: &Here) -> Vec<CopiesCell> {
    plan(settings, here).unwrap().cells
}

#[test]
fn hot_sets_go_from_half_of_l2_to_the_last_level() {
    let plan = plan(&Settings::default(), &here()).unwrap();
    let sizes = |victim| -> Vec<u64> {
        let ours = plan.cells.iter().filter(|cell| cell.victim == victim);
        ours.map(|cell| cell.hot_set_bytes >> 20).collect()
    };
    assert_eq!(sizes(Victim::SameCore), [1, 4, 16, 64, 300]);
    assert_eq!(sizes(Victim::Neighbour), [1, 4, 16, 64, 300]);
    assert!(plan.cells.iter().all(|cell| cell.pass_bytes == 1 << 20));
    assert_eq!((plan.dataset_bytes >> 20, plan.samples()), (600, 10 * 15 * 4));
    let quick = Settings { quick: true, ..Settings::default() };
    assert_eq!(cells(&quick, &here()).len(), 4);
}

#[test]
fn only_a_neighbour_has_a_rate_and_each_rate_its_cells() {
    let rates = vec![5_000_000_000, 10_000_000_000];
    let settings = Settings { rates_bytes_per_s: rates.clone(), ..Settings::default() };
    let cells = cells(&settings, &here());
    assert_eq!(cells.len(), 5 + 2 * 5);
    for cell in cells {
        match cell.rate_bytes_per_s {
            None => assert_eq!(cell.victim, Victim::SameCore),
            Some(rate) => assert!(cell.victim == Victim::Neighbour && rates.contains(&rate)),
        }
    }
}

#[test]
fn a_neighbour_is_another_core_before_it_is_a_thread_of_the_same() {
    let streamer = |here: &Here, settings: &Settings| {
        let cells = cells(settings, here);
        cells.iter().find(|cell| cell.victim == Victim::Neighbour).unwrap().streamer.clone()
    };
    let default = Settings::default();
    assert_eq!(streamer(&here(), &default), Ok(Neighbour { cpu: 2, note: None }));
    let threads = Here { allowed: vec![0, 1], ..here() };
    let thread = streamer(&threads, &default).unwrap();
    assert!(thread.cpu == 1 && thread.note.unwrap().contains("one core"));
    let silent = Here { sharing_llc: None, sharing_core: None, ..here() };
    assert!(streamer(&silent, &default).unwrap().note.unwrap().contains("does not tell"));
    let lonely = Here { allowed: vec![0, 3], ..here() };
    assert!(streamer(&lonely, &default).unwrap_err().contains("second CPU"));
}

#[test]
fn what_cannot_be_is_refused_by_the_option_that_asks_for_it() {
    let ask = |change: fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        plan(&settings, &here()).unwrap_err().to_string()
    };
    for (text, words) in [
        (ask(|s| s.pairs = Some(4)), "--pairs 4"),
        (ask(|s| s.hot_set_bytes = vec![64]), "--hot-set"),
        (ask(|s| s.hot_set_bytes = vec![1 << 40]), "--hot-set"),
        (ask(|s| s.object_bytes = vec![0]), "--object 0"),
        (ask(|s| s.object_bytes = vec![1 << 30]), "--object 1 GiB"),
        (ask(|s| s.dataset_bytes = Some(1 << 10)), "--dataset 1 KiB"),
        (ask(|s| s.rates_bytes_per_s = vec![0]), "--rate"),
    ] {
        assert!(text.starts_with(words), "{text}");
    }
}

#[test]
fn a_rate_that_was_not_reached_stands_beside_the_one_that_was_asked_for() {
    let cells = cells(&Settings::default(), &here());
    let params = cells.last().unwrap().params(600, Some(8_000_000_000), &BTreeMap::new());
    assert_eq!(params["rate_bytes_per_s"], 8_000_000_000_u64);
    assert_eq!(params["asked_rate_bytes_per_s"], 10_000_000_000_u64);
    let params = cells.last().unwrap().params(600, Some(10_000_000_000), &BTreeMap::new());
    assert!(!params.contains_key("asked_rate_bytes_per_s"));
    let paths = [("nt", "avx2-nt".to_owned())].into();
    let params = cells[0].params(600, None, &paths);
    assert!(!params.contains_key("rate_bytes_per_s") && params["path_nt"] == "avx2-nt");
}
