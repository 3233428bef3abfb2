//! Histograms among a sample's series, in a hundredth of the lines' bytes.
//!
//! A histogram is two series: values, ascending, and how often each occurred. In memory they are
//! lists. In a file they are the HdrHistogram project's own compressed form (V2, in base64), which
//! its tools read in many languages; lists that it cannot give back number for number stay lists.

use std::collections::BTreeMap;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Hdr, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Series by name.
type Series = BTreeMap<String, Vec<u64>>;

/// The histograms that samples have: the series of the values, and that of the counts.
const PAIRS: [(&str, &str); 2] = [("latency_ns", "answers"), ("round_trip_ns", "answers")];

/// Significant digits that histograms of samples keep of their values.
const DIGITS: u8 = 3;

/// Bytes of one, before it is deflated: more than all counts of [`DIGITS`] digits take.
const LARGEST_BYTES: u64 = 1 << 20;

/// Bytes before the counts, and before the deflated bytes.
const HEAD_BYTES: usize = 40;
const DEFLATED_HEAD_BYTES: usize = 8;

/// A sample's series as a line has them.
#[derive(Default, Serialize, Deserialize)]
struct Written {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    series: Series,
    /// By the name of the values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    histograms: BTreeMap<String, Packed>,
}

#[derive(Serialize, Deserialize)]
struct Packed {
    counts: String,
    /// HdrHistogram V2, deflated, in base64.
    hdr: String,
}

/// Adds a sample's series to another's: histograms value by value, other lists behind one another.
pub fn add_series(whole: &mut Series, part: &Series) {
    let list = |series: &Series, name: &str| series.get(name).cloned().unwrap_or_default();
    for (values, counts) in PAIRS.iter().filter(|(values, _)| part.contains_key(*values)) {
        let mut sum: BTreeMap<u64, u64> = BTreeMap::new();
        for series in [&*whole, part] {
            for (value, count) in list(series, values).into_iter().zip(list(series, counts)) {
                *sum.entry(value).or_default() += count;
            }
        }
        whole.insert((*values).to_owned(), sum.keys().copied().collect());
        whole.insert((*counts).to_owned(), sum.values().copied().collect());
    }
    let is_added = |name: &str| {
        let names = |(values, counts): &(&str, &str)| [values, counts].contains(&&name);
        PAIRS.iter().any(|pair| part.contains_key(pair.0) && names(pair))
    };
    for (name, list) in part.iter().filter(|(name, _)| !is_added(name)) {
        whole.entry(name.clone()).or_default().extend(list);
    }
}

/// For serde: the histograms packed.
pub(super) fn serialize<S: Serializer>(series: &Series, to: S) -> Result<S::Ok, S::Error> {
    let mut written = Written { series: series.clone(), ..Written::default() };
    for (values, counts) in PAIRS {
        let lists = written.series.get(values).zip(written.series.get(counts));
        if let Some(hdr) = lists.and_then(|(values, counts)| packed(values, counts)) {
            written.series.remove(values);
            written.series.remove(counts);
            let packed = Packed { counts: counts.to_owned(), hdr };
            written.histograms.insert(values.to_owned(), packed);
        }
    }
    written.serialize(to)
}

/// For serde: all of them as lists.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Series, D::Error> {
    let Written { mut series, histograms } = Written::deserialize(from)?;
    for (name, packed) in histograms {
        let (values, counts) = unpacked(&packed.hdr)
            .map_err(|why| D::Error::custom(format!("histogram `{name}`: {why}")))?;
        series.insert(name, values);
        series.insert(packed.counts, counts);
    }
    Ok(series)
}

/// A histogram's text. None where it would not give back the same lists.
fn packed(values: &[u64], counts: &[u64]) -> Option<String> {
    if values.is_empty() || values.len() != counts.len() {
        return None;
    }
    let mut histogram = Histogram::<u64>::new(DIGITS).ok()?;
    for (value, count) in values.iter().zip(counts) {
        histogram.record_n(*value, *count).ok()?;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut bytes).ok()?;
    let text = STANDARD.encode(bytes);
    let (again, counted) = unpacked(&text).ok()?;
    (again == values && counted == counts).then_some(text)
}

/// The values and the counts of a histogram's text.
fn unpacked(text: &str) -> Result<(Vec<u64>, Vec<u64>), String> {
    let bytes = STANDARD.decode(text).map_err(|error| format!("not base64: {error}"))?;
    let histogram: Histogram<u64> = inflated(&bytes)
        .and_then(|bytes| Hdr::new().deserialize(&mut bytes.as_slice()).map_err(|e| e.to_string()))
        .map_err(|why| format!("not of HdrHistogram's form V2: {why}"))?;
    let steps = histogram.iter_recorded();
    Ok(steps.map(|step| (step.value_iterated_to(), step.count_at_value())).unzip())
}

/// The bytes that are deflated in these. The library makes as much room as they ask for, which is
/// looked at here.
fn inflated(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let deflated = bytes.get(DEFLATED_HEAD_BYTES..).ok_or("it is cut short")?;
    let mut inflated = Vec::new();
    let mut decoder = ZlibDecoder::new(deflated).take(LARGEST_BYTES);
    decoder.read_to_end(&mut inflated).map_err(|error| error.to_string())?;
    let number = |at: usize| Some(u32::from_be_bytes(inflated.get(at..at + 4)?.try_into().ok()?));
    let counts = inflated.len().checked_sub(HEAD_BYTES).ok_or("it is cut short")?;
    if number(4).map(|bytes| bytes as usize) != Some(counts) {
        return Err(format!("it has {counts} bytes of counts, and says another number"));
    }
    match number(12) {
        Some(digits) if digits <= u32::from(DIGITS) => Ok(inflated),
        _ => Err(format!("it is of more than {DIGITS} digits")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(flatten, with = "super")]
        series: Series,
    }

    fn text(series: &Series) -> String {
        serde_json::to_string(&Holder { series: series.clone() }).unwrap()
    }

    fn read(text: &str) -> Result<Series, serde_json::Error> {
        serde_json::from_str::<Holder>(text).map(|holder| holder.series)
    }

    /// A series as the experiments make it.
    fn recorded(values: &[u64]) -> Series {
        let mut histogram = Histogram::<u64>::new(DIGITS).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        let steps = histogram.iter_recorded();
        let (ns, answers) =
            steps.map(|step| (step.value_iterated_to(), step.count_at_value())).unzip();
        [("latency_ns".to_owned(), ns), ("answers".to_owned(), answers)].into()
    }

    #[test]
    fn histograms_are_added_value_by_value_and_lists_are_put_together() {
        let series = |lists: [(&str, &[u64]); 3]| -> Series {
            lists.map(|(name, list)| (name.to_owned(), list.to_vec())).into()
        };
        let mut whole =
            series([("latency_ns", &[10, 30]), ("answers", &[1, 2]), ("answered", &[3])]);
        let part = series([("latency_ns", &[20, 30]), ("answers", &[4, 5]), ("answered", &[9])]);
        add_series(&mut whole, &part);
        let sum =
            series([("latency_ns", &[10, 20, 30]), ("answers", &[1, 4, 7]), ("answered", &[3, 9])]);
        assert_eq!(whole, sum);
    }

    #[test]
    fn a_histogram_is_a_line_of_text_and_other_series_stay_lists() {
        let mut series = recorded(&(1..3000).map(|step| step * step).collect::<Vec<u64>>());
        series.insert("answered".into(), vec![2999]);
        let text = text(&series);
        assert!(text.starts_with(r#"{"series":{"answered":[2999]},"histograms":{"latency_ns":{"#));
        assert!(text.contains(r#""counts":"answers","hdr":"HISTF"#), "{text}");
        let lists = serde_json::to_string(&series).unwrap();
        assert!(text.len() * 4 < lists.len(), "{} against {}", text.len(), lists.len());
        assert_eq!(read(&text).unwrap(), series);
    }

    #[test]
    fn lists_that_are_no_histogram_of_three_digits_stay_as_they_are() {
        for (ns, answers) in [
            (vec![1_234_567, 2_345_678], vec![1, 1]),
            (vec![20, 10], vec![1, 1]),
            (vec![10, 20], vec![1]),
            (vec![10, 20], vec![1, 0]),
            (vec![], vec![]),
        ] {
            let series: Series = [("latency_ns".into(), ns), ("answers".into(), answers)].into();
            let text = text(&series);
            assert!(!text.contains("histograms"), "{text}");
            assert_eq!(read(&text).unwrap(), series);
        }
        assert_eq!(text(&Series::new()), "{}");
    }

    #[test]
    fn what_is_no_histogram_is_an_error_that_names_it() {
        for hdr in ["!", "AAAA", "SElTVA=="] {
            let line = json!({"histograms": {"latency_ns": {"counts": "answers", "hdr": hdr}}});
            let error = read(&line.to_string()).unwrap_err().to_string();
            assert!(error.contains("histogram `latency_ns`: not "), "{error}");
        }
    }

    #[test]
    fn a_histogram_that_asks_for_more_room_than_it_fills_is_refused() {
        let head = |counts: u32, digits: u32| -> Vec<u8> {
            let head = [0x1c84_9313, counts, 0, digits].map(u32::to_be_bytes).concat();
            let range = [1, 1 << 40, 1.0_f64.to_bits()].map(u64::to_be_bytes).concat();
            [head, range].concat()
        };
        let packed = |plain: &[u8]| {
            let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
            encoder.write_all(plain).unwrap();
            let deflated = encoder.finish().unwrap();
            bytes.extend(u32::try_from(deflated.len()).unwrap().to_be_bytes());
            STANDARD.encode([bytes, deflated].concat())
        };
        let filled =
            |counts: usize| [head(u32::try_from(counts).unwrap(), 3), vec![2; counts]].concat();
        assert_eq!(unpacked(&packed(&filled(3))).unwrap().1, [1, 1, 1]);
        let huge = vec![0; 100 << 20];
        for (plain, why) in [
            (head(u32::MAX, 3), "says another number"),
            ([head(u32::try_from(huge.len()).unwrap(), 3), huge].concat(), "says another number"),
            (head(0, 5), "of more than 3 digits"),
        ] {
            let error = unpacked(&packed(&plain)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_was_recorded_comes_back(
            values in prop::collection::vec(0..100_000_000_000_u64, 1..300),
        ) {
            let series = recorded(&values);
            let text = text(&series);
            prop_assert!(text.contains("histograms"), "{}", text);
            prop_assert_eq!(read(&text).unwrap(), series);
        }
    }
}
