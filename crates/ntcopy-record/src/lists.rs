//! Lists that keep their order.

/// Each item once, where it is met first.
pub fn unique<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

/// What has the same key together, each key where it is met first.
pub fn grouped<K: PartialEq, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, items)) => items.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_first_comes_first() {
        assert_eq!(unique([3, 1, 3, 2, 1]), [3, 1, 2]);
        assert_eq!(grouped([("b", 1), ("a", 2), ("b", 3)]), [("b", vec![1, 3]), ("a", vec![2])]);
    }
}
