//! What `ntcopy bench` refuses, and what it lists. What a plan refuses is tested where plans are
//! made; here is one of each experiment, and what the command line refuses itself. And what other
//! commands refuse.

use crate::common::{bench, daemons_built, ends, good, ntcopy};

const EXPERIMENTS: [&str; 10] =
    ["unix", "http", "app", "net", "pingpong", "memcpy", "memset", "pages", "retention", "order"];

#[test]
fn usage_errors_are_exit_code_2_and_say_what_to_write() {
    daemons_built();
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    for (line, words) in [
        ("unix --object 1MB", "1MiB"),
        ("unix --sockets 1 --kernel vms", "vms"),
        ("unix --modes idle", "plain, hinted, vmsplice"),
        ("unix --family inet", "unix, tcp, tcp6, udp, udp6, udp-gso, udplite"),
        ("unix --pairs 2", "at least 5 pairs"),
        ("unix --sockets 1 --published", "--published"),
        ("unix --sweep --published", "--sweep"),
        ("unix --own-caches --sockets 1", "--kernel um"),
        ("unix --against stock", "--kernel um"),
        ("unix --against module --kernel um+module", "no patches to compare"),
        ("unix --against /dev/null --kernel um", "nor a folder of patches"),
        ("unix --against . --kernel um", "holds no patches"),
        ("http --pairs 4", "at least 5 pairs"),
        ("http --stack apache", "haproxy+nginx"),
        ("http --against stock", "--kernel um"),
        ("http --against stock --modes auto", "plain, hinted, sendfile of http"),
        ("http --against module --rate 200", "--rate"),
        ("http --against stok --kernel um", "neither stock, module nor"),
        ("http --against stock --stack nginx+nginx,haproxy+nginx", "one stack"),
        ("http --rate 1.5", "requests per second"),
        ("app --modes vmsplice", "idle"),
        ("app --rate off", "multigets"),
        ("app --large-rate fast", "500MB/s"),
        ("app --against module --large-rate 0.5", "bytes per second"),
        ("net --modes nocache", "say --veth too"),
        ("pingpong --message 7", "takes 8 bytes"),
        ("memcpy --modes memmov", "rep-movsb"),
        ("memcpy --kernel um", "leave it out"),
        ("memset --pairs 4", "at least 5 pairs"),
        ("order --side 0", "--side 0"),
        ("pages --buffer 5000", "whole number of pages"),
        ("pages --read-back every", "none, some, all"),
        ("pages --kernel um", "add --form fork"),
        ("pages --form fork --action copy", "leave out --form fork"),
        ("pages --form fork --kernel um --modes movnti", "nt-copy"),
        ("retention --sockets 1 --hot-set 64", "two cache lines"),
        ("retention --against module", "--kernel um"),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        ends(&bench(&args, &out).output().unwrap(), 2, &[words]);
        assert!(!out.exists(), "{line}: nothing was begun");
    }
}

#[test]
fn what_other_commands_do_not_take_is_exit_code_2() {
    for line in [
        "kernel boot --mem 63M -- true",
        "kernel boot --mem 2T -- true",
        "kernel boot --sysctl =1 -- true",
        "kernel boot --sysctl net.core.ntcopy -- true",
        "try",
        "try --pairs 4 -- cat",
        "try --less -- cat",
        "try --ready true -- cat",
        "try --metric rate -- cat",
        "try --pairs 5 --budget 9 -- cat",
        "unix-nt-bench 1048576 10 2 524288 524288",
        "unix-nt-bench 0 10 0 524288 524288",
        "unix-nt-bench 1048576 10 0 524288",
        "footprint copi",
        "footprint copy:17MiB",
        "report x --out page.foo",
        "report x --out page",
        "report x --out x.html --json",
        "stat --pid 0",
        "stat --pid 1 --file x",
        "stat --prometheus --json",
        "stat --out x",
        "stat extra",
        "survey run --on kubernetes --nodes n1",
        "survey run --on slurm",
        "survey run --on ssh --with x --nodes n1",
        "survey run --with ssh --nodes n1",
        "survey run --on slurm --nodes n1 --partition p",
    ] {
        ends(&ntcopy(&line.split(' ').collect::<Vec<&str>>()), 2, &[]);
    }
}

#[test]
fn every_experiment_lists_its_defaults() {
    let all = good(&ntcopy(&["bench", "list"]));
    for name in EXPERIMENTS {
        let listed = good(&ntcopy(&["bench", name, "--list"]));
        assert!(listed.contains(&format!("name = \"{name}\"")) && all.contains(&listed), "{name}");
    }
}
