use super::*;

#[test]
fn an_instrument_that_is_off_is_said_with_why() {
    let said = |how: How, found_lines, agrees| {
        let known_lines = 250.0;
        let off = (found_lines - known_lines) / known_lines;
        let checks = vec![Check { how, known_lines, found_lines, off, agrees }];
        let (level, curve, calls) = ("L2".to_owned(), vec![], vec![]);
        let (primed_lines, threshold_cycles) = (1000, 90);
        let (missing_lines, least_lines) = (10.0, 3.0);
        sentences(&LevelFigures {
            level,
            primed_lines,
            threshold_cycles,
            missing_lines,
            least_lines,
            curve,
            checks,
            calls,
        })
    };
    let [good, seen] = said(How::Flushed, 258.0, true);
    let expected = "L2: Known displacers are found within 5 %: 250 primed lines flushed are found \
                    as 258.";
    assert_eq!(good, expected);
    assert_eq!(seen, "L2: fewer than 3 lines read cannot be seen.");
    for (how, why) in
        [(How::Read, "prefetcher"), (How::Flushed, "the clock"), (How::WrittenNt, "stores")]
    {
        let [bad, _] = said(how, 160.0, false);
        assert!(bad.contains("off by more than 5 %") && bad.contains(why), "{bad}");
    }
}
