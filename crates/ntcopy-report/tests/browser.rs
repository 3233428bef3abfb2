//! The page of the records that the project keeps: its rules, and what a browser makes of it, where
//! there is one.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ntcopy_judge::{Judged, judge};
use ntcopy_record::{FILE_NAME, Record};

/// What is in a folder, by name.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of records");
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

/// Every record of the repository.
fn kept() -> Vec<Judged> {
    let days = inside(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/record"));
    let names = days.iter().filter(|day| day.is_dir()).flat_map(|day| inside(day));
    let names = names.filter(|name| name.join(FILE_NAME).is_file());
    let read = |name: PathBuf| judge(&Record::read(name).expect("a record"));
    let records: Vec<Judged> = names.map(read).collect();
    assert!(records.len() >= 19, "{} records", records.len());
    records
}

fn written(name: &str, html: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, html).unwrap();
    path
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    attributes.split(&format!("{name}=\"")).nth(1)?.split('"').next()
}

#[test]
fn the_kept_records_make_a_page_that_keeps_the_rules() {
    let html = common::page(&kept(), &["ntcopy".into(), "report".into()]);
    let path = written("kept.html", &html);
    println!("{}: {} bytes", path.display(), html.len());
    keeps_the_rules(&html);
}

#[test]
fn every_kind_of_record_keeps_the_rules() {
    let records = [
        common::synthetic_rounds(),
        common::synthetic_published(),
        common::synthetic_sweep(),
        common::synthetic_retention(),
        common::synthetic_empty("empty"),
    ];
    let records = records.map(|record| judge(&record));
    keeps_the_rules(&common::page(&records, &[]));
    keeps_the_rules(&common::page(&[], &[]));
}

/// What a checker of accessibility looks for that needs no browser.
fn keeps_the_rules(html: &str) {
    let elements = common::elements(html);
    let mut ids: Vec<&str> = Vec::new();
    let mut level = 0;
    let count = |wanted: &str| elements.iter().filter(|(name, _)| *name == wanted).count();
    for landmark in ["header", "main", "footer", "h1", "title"] {
        // A plot has a title too.
        assert!(count(landmark) == 1 || landmark == "title", "{landmark}: {}", count(landmark));
    }
    for (name, attributes) in &elements {
        let is_first = attributes.starts_with("id=\"");
        if let Some(id) = attribute(attributes, if is_first { "id" } else { " id" }) {
            assert!(!ids.contains(&id), "id {id} twice");
            ids.push(id);
        }
        if let Some(next) = name.strip_prefix('h').and_then(|n| n.parse::<u32>().ok()) {
            assert!(next <= level + 1, "h{next} after h{level}: {attributes}");
            level = next;
        }
        match *name {
            "th" => assert!(attributes.contains("scope="), "a th without scope: {attributes}"),
            "svg" => assert!(
                ["role=\"img\"", "aria-hidden=\"true\""].iter().any(|one| attributes.contains(one)),
                "{attributes}"
            ),
            "img" => assert!(attributes.contains("alt="), "{attributes}"),
            _ => {}
        }
        if attributes.contains("tabindex=") {
            assert!(attributes.contains("role=\"group\""), "{attributes}");
            let names = ["aria-label", "aria-labelledby"].map(|name| attribute(attributes, name));
            assert!(names.into_iter().flatten().any(|name| !name.is_empty()), "{attributes}");
        }
    }
    for (_, attributes) in &elements {
        for reference in ["aria-labelledby", "aria-describedby"] {
            let named = attribute(attributes, reference).unwrap_or_default();
            for id in named.split_whitespace() {
                assert!(ids.contains(&id), "{reference} names {id}, which is not there");
            }
        }
        if let Some(id) = attribute(attributes, "href").and_then(|href| href.strip_prefix('#')) {
            assert!(ids.contains(&id), "a link to {id}, which is not there");
        }
    }
    for (at, _) in html.match_indices("<table") {
        let before = &html[..at];
        let (opened, closed) = (before.rfind("<div class=\"scroll"), before.rfind("</div>"));
        assert!(opened.is_some() && opened > closed, "a table that cannot scroll by itself");
    }
}

/// Relative luminance as WCAG has it, of `#rrggbb`.
fn luminance(colour: &str) -> f64 {
    let part = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn letters_and_lines_stand_out_in_both_colour_schemes() {
    let html = common::page(&[], &[]);
    let style = html.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    let schemes: Vec<&str> =
        style.split(":root {").skip(1).map(|s| s.split('}').next().unwrap()).collect();
    assert!(schemes.len() >= 2, "a light and a dark scheme");
    for scheme in &schemes[..2] {
        let colour = |name: &str| {
            let value = scheme.split(&format!("--{name}: ")).nth(1).expect(name);
            value.split(';').next().unwrap()
        };
        for paper in ["paper", "panel"] {
            for letters in ["ink", "muted", "win", "loss", "m0"] {
                let found = contrast(colour(letters), colour(paper));
                assert!(found >= 4.5, "{letters} on {paper}: {found:.2}");
            }
            for line in ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"] {
                let found = contrast(colour(line), colour(paper));
                assert!(found >= 3.0, "{line} on {paper}: {found:.2}");
            }
        }
        assert!(contrast(colour("ink"), colour("alert")) >= 4.5);
    }
}

/// The first of the browser's names that can be started.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let starts = |name: &&str| {
        let said = Command::new(name).arg("--version").output();
        said.is_ok_and(|output| output.status.success())
    };
    names.into_iter().find(starts)
}

fn opened(browser: &str, page: &Path, more: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a folder for the browser");
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        "--virtual-time-budget=5000",
        "--dump-dom",
    ];
    let mut command = Command::new(browser);
    command.args(flags).args(more).arg(format!("--user-data-dir={}", home.path().display()));
    command.arg(format!("file://{}", page.display()));
    command.output().expect("the browser runs")
}

/// A page around the page: a frame of a phone's width, which says how wide its contents are.
fn framed(html: &str, width: u32) -> String {
    let inner = html.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><title>frame</title><iframe id=f width={width} height=800 \
         style=\"border:0\" srcdoc=\"{inner}\"></iframe><p id=said></p><script>\
         f.onload = () => {{ const d = f.contentDocument; const r = d.documentElement;\
         const past = [...d.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && \
         !e.closest('svg') && e.getBoundingClientRect().right > {width} + 1).map(e => e.tagName + '.' + \
         e.className).slice(0, 5);\
         const s = getComputedStyle(d.body);\
         said.textContent = `beyond ${{r.scrollWidth - r.clientWidth}} past [${{past}}] paper ${{s.backgroundColor}} \
         plots ${{d.querySelectorAll('svg').length}}.`; }}</script>"
    )
}

#[test]
#[ignore = "make test-page"]
fn a_browser_opens_the_page_without_complaint_and_a_phone_need_not_scroll_sideways() {
    let browser = browser().expect("chromium; scripts/setup.sh browser installs it");
    let html = common::page(&kept(), &["ntcopy".into(), "report".into()]);
    let alone = opened(browser, &written("opened.html", &html), &[]);
    let log = String::from_utf8_lossy(&alone.stderr);
    let complaints: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(alone.status.success() && complaints.is_empty(), "{complaints:?}");
    assert!(String::from_utf8_lossy(&alone.stdout).contains("</footer>"), "the page is whole");
    let frame = written("framed.html", &framed(&html, 360));
    // The light one is what a browser without a wish has just shown.
    let output = opened(browser, &frame, &["--blink-settings=preferredColorScheme=0"]);
    let dom = String::from_utf8_lossy(&output.stdout);
    let said = dom.rsplit("<p id=\"said\">").next().unwrap().split('<').next().unwrap();
    assert!(said.contains("beyond 0 past []"), "{said}");
    assert!(said.contains("paper rgb(21, 24, 28)"), "{said}");
}
