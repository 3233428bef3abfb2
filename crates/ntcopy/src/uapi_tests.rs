//! Holds the numbers against `uapi/ntcopy/uapi.h`.

use std::mem::offset_of;

use super::*;

/// What a `#define` of the header must be.
#[derive(Debug, PartialEq)]
enum Value {
    Number(i64),
    Text(&'static str),
}

const fn number(value: c_int) -> Value {
    Value::Number(value as i64)
}

/// The header's names and this file's constants.
fn rust() -> Vec<(&'static str, Value)> {
    vec![
        ("MSG_NTCOPY", Value::Number(MSG_NTCOPY.into())),
        ("SO_NTCOPY", number(SO_NTCOPY)),
        ("NTCOPY_MIN_BYTES", number(MIN_BYTES)),
        ("NTCOPY_FLAGGED", number(FLAGGED)),
        ("NTCOPY_SYSCTL_OFF", number(SYSCTL_OFF.into())),
        ("NTCOPY_SYSCTL_OBEY", number(SYSCTL_OBEY.into())),
        ("NTCOPY_SYSCTL_ALL", number(SYSCTL_ALL.into())),
        ("NTCOPY_STAT_PATH", Value::Text(STAT_PATH)),
        ("NTCOPY_STAT_BYTES", Value::Text(STAT_BYTES)),
        ("NTCOPY_STAT_HINTED", Value::Text(STAT_HINTED)),
        ("NTCOPY_STAT_BYPASSED", Value::Text(STAT_BYPASSED)),
        ("NTCOPY_MODULE_STAT_PATH", Value::Text(MODULE_STAT_PATH)),
        ("NTCOPY_MODULE_MIN_BYTES", Value::Number(MODULE_MIN_BYTES.into())),
        ("NTCOPY_MODULE_PATH", Value::Text(MODULE_PATH.to_str().expect("ASCII"))),
        ("NTCOPY_SOCKET_ATTACHED", Value::Number(SOCKET_ATTACHED.into())),
        ("NTCOPY_IOC_ATTACH", Value::Number(IOC_ATTACH.into())),
        ("NTCOPY_IOC_DETACH", Value::Number(IOC_DETACH.into())),
        ("NTCOPY_IOC_QUERY", Value::Number(IOC_QUERY.into())),
        ("NTCOPY_IOC_INFO", Value::Number(IOC_INFO.into())),
    ]
}

const HEADER: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../uapi/ntcopy/uapi.h"));

/// Every `#define NAME value` of the header, the include guard left out.
fn header() -> Vec<(&'static str, Value)> {
    HEADER
        .lines()
        .filter_map(|line| line.strip_prefix("#define"))
        .map(|rest| rest.split_once("/*").map_or(rest, |(value, _)| value).trim())
        .filter(|rest| *rest != "NTCOPY_UAPI_H")
        .map(|rest| {
            let (name, value) = rest.split_once(char::is_whitespace).expect("a value");
            (name, parse(value.trim()))
        })
        .collect()
}

fn parse(value: &'static str) -> Value {
    if let Some(text) = value.strip_prefix('"') {
        return Value::Text(text.strip_suffix('"').expect("a closing quote"));
    }
    if let Some((call, arguments)) = value.split_once('(') {
        return Value::Number(parse_ioctl(call, arguments.trim_end_matches(')')));
    }
    Value::Number(parse_number(value))
}

fn parse_number(value: &str) -> i64 {
    let number = match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    number.unwrap_or_else(|error| panic!("{value}: {error}"))
}

/// The number of `_IOW('N', 0xc0, struct name)`.
fn parse_ioctl(call: &str, arguments: &str) -> i64 {
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [kind, number, argument] = arguments[..] else { panic!("{arguments:?}") };
    let direction = match call {
        "_IOW" => 1,
        "_IOR" => 2,
        "_IOWR" => 3,
        _ => panic!("{call} is no ioctl"),
    };
    let kind = kind.trim_matches('\'').bytes().next().expect("a letter");
    let size_bytes = fields(argument).iter().map(|(_, size)| *size as i64).sum::<i64>();
    direction << 30 | size_bytes << 16 | i64::from(kind) << 8 | parse_number(number)
}

/// The fields of a `struct` of the header, each with its size in bytes. Whoever adds one sees to
/// it that nothing is padded.
fn fields(structure: &str) -> Vec<(&'static str, usize)> {
    let (_, text) = HEADER.split_once(&format!("{structure} {{")).expect("the header defines it");
    let (body, _) = text.split_once("};").expect("an end");
    let declarations = body.split('\n').filter_map(|line| line.split_once(';'));
    let field = |declaration: &'static str| {
        let (kind, name) = declaration.trim().split_once(' ').expect("a type and a name");
        let size_bytes = match kind {
            "__s32" | "__u32" => 4,
            "__u64" => 8,
            _ => panic!("{kind} is no type of this interface"),
        };
        (name, size_bytes)
    };
    declarations.map(|(declaration, _)| field(declaration)).collect()
}

/// Holds a structure's fields, in order, against the header's.
fn assert_laid_out(structure: &str, size_bytes: usize, rust: &[(&str, usize)]) {
    let mut offset = 0;
    let mut header = Vec::new();
    for (name, size) in fields(structure) {
        assert_eq!(offset % size, 0, "{structure}: {name} would be padded");
        header.push((name, offset));
        offset += size;
    }
    assert_eq!(header, rust, "{structure}; left: uapi/ntcopy/uapi.h, right: uapi.rs");
    assert_eq!(offset, size_bytes, "{structure}");
}

#[test]
fn the_structures_are_laid_out_as_in_the_header() {
    let socket = [
        ("fd", offset_of!(Socket, fd)),
        ("min_bytes", offset_of!(Socket, min_bytes)),
        ("flags", offset_of!(Socket, flags)),
        ("reserved", offset_of!(Socket, reserved)),
    ];
    assert_laid_out("struct ntcopy_socket", size_of::<Socket>(), &socket);
    let info = [
        ("version", offset_of!(ModuleInfo, version)),
        ("series", offset_of!(ModuleInfo, series)),
        ("attached", offset_of!(ModuleInfo, attached)),
        ("lingering", offset_of!(ModuleInfo, lingering)),
    ];
    assert_laid_out("struct ntcopy_module_info", size_of::<ModuleInfo>(), &info);
}

#[test]
fn the_kernel_s_own_headers_make_the_same_numbers() {
    // A C program printed these by <linux/ioctl.h> on x86-64.
    assert_eq!(IOC_ATTACH, 0x4010_4ec0);
    assert_eq!(IOC_DETACH, 0x4010_4ec1);
    assert_eq!(IOC_QUERY, 0xc010_4ec2);
    assert_eq!(IOC_INFO, 0x8018_4ec3);
}

#[test]
fn the_header_and_this_file_say_the_same() {
    let (mut header, mut rust) = (header(), rust());
    header.sort_by_key(|(name, _)| *name);
    rust.sort_by_key(|(name, _)| *name);
    assert_eq!(header, rust, "left: uapi/ntcopy/uapi.h, right: uapi.rs");
}

#[test]
fn every_constant_of_this_file_is_held_against_the_header() {
    // A constant that is added here but not to rust() above would be held against nothing.
    let constants =
        include_str!("uapi.rs").lines().filter(|line| line.starts_with("pub const ")).count();
    // The header says the module's series in a comment; the next test reads it.
    assert_eq!(constants, rust().len() + 1);
}

#[test]
fn the_module_s_series_is_the_one_of_the_header() {
    let (_, rest) = HEADER.split_once("series;").expect("struct ntcopy_module_info");
    let comment = rest.lines().next().expect("a line");
    assert!(comment.contains(&format!("of this interface: {MODULE_SERIES} ")), "{comment}");
}
