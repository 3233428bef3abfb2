use proptest::prelude::*;

use super::*;

fn parsed(method: &str, text: &str) -> Option<(Option<String>, String, String)> {
    parse_target(method, text).ok().map(|target| {
        (target.authority.map(str::to_owned), target.path.to_owned(), target.query.to_owned())
    })
}

fn good_authority() -> impl Strategy<Value = String> {
    let host = prop_oneof![
        "([a-zA-Z0-9._~!$&'()*+;=-]|%[0-9a-fA-F]{2}){1,12}",
        any::<u128>().prop_map(|bits| format!("[{}]", Ipv6Addr::from_bits(bits))),
        "\\[(::|[0-9a-f]{1,4}::[0-9A-F]{0,4}|::ffff:192\\.0\\.2\\.[1-9])\\]",
    ];
    (host, "(:[0-9]{0,4})?").prop_map(|(host, port)| host + &port)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_was_put_together_comes_apart(
        authority in good_authority(),
        path in "(/[a-z.%20:@/]{0,6})?",
        query in "(\\?[a-z/=?:@%]{0,8})?",
    ) {
        prop_assert_eq!(parse_authority(authority.as_bytes()), Ok(authority.as_str()));
        let path_or_root = if path.is_empty() { "/" } else { &path };
        let absolute = parsed("GET", &format!("http://{authority}{path}{query}"));
        prop_assert_eq!(absolute, Some((Some(authority), path_or_root.to_owned(), query.clone())));
        let origin = parsed("GET", &format!("{path_or_root}{query}"));
        prop_assert_eq!(origin, Some((None, path_or_root.to_owned(), query)));
    }

    /// No delimiter of RFC 3986 hides in what is taken for a host.
    #[test]
    fn an_authority_has_no_delimiter(text in "[\\[\\]:@%,a1./?#\\\\ vg+-]{0,10}") {
        if let Ok(host) = parse_authority(text.as_bytes()) {
            prop_assert!(!host.contains(['@', '/', '?', '#', '\\', ' ', ',']) || host.contains('['));
            prop_assert!(host.matches(['[', ']']).count() % 2 == 0, "{}", host);
        }
    }
}

#[test]
fn a_slash_of_the_query_begins_no_path() {
    let target = |text| parsed("PUT", text).unwrap();
    let is = |path: &str, query: &str| (Some("h".to_owned()), path.to_owned(), query.to_owned());
    assert_eq!(target("http://h?uploads=/secret"), is("/", "?uploads=/secret"));
    assert_eq!(target("http://h"), is("/", ""));
    assert_eq!(target("http://h/?/a?b"), is("/", "?/a?b"));
    assert_eq!(parsed("OPTIONS", "http://h").unwrap(), is("*", ""));
    assert_eq!(parsed("OPTIONS", "http://h?").unwrap(), is("/", "?"));
    for (method, bad) in [("GET", "http:/p"), ("GET", "http:"), ("OPTIONS", "*?"), ("GET", "")] {
        assert_eq!(parsed(method, bad), None, "{method} {bad}");
    }
}
