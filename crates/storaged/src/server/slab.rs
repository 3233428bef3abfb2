//! Things with small numbers that are never mistaken for one another.

/// The number of a thing: its place, and how many things were in that place before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id {
    slot: u32,
    generation: u32,
}

impl Id {
    pub fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub fn from_u64(value: u64) -> Id {
        Id { slot: value as u32, generation: (value >> 32) as u32 }
    }
}

#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    len: usize,
}

impl<T> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new(), len: 0 }
    }

    /// Puts a thing in; `make` gets its number.
    pub fn insert(&mut self, make: impl FnOnce(Id) -> T) -> Id {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let (generation, place) = &mut self.slots[slot as usize];
        let id = Id { slot, generation: *generation };
        *place = Some(make(id));
        self.len += 1;
        id
    }

    /// The thing, unless it is gone.
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        match self.slots.get_mut(id.slot as usize) {
            Some((generation, place)) if *generation == id.generation => place.as_mut(),
            _ => None,
        }
    }

    /// Takes the thing out; its number means nothing from now on.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        let (generation, place) = self.slots.get_mut(id.slot as usize)?;
        if *generation != id.generation {
            return None;
        }
        let thing = place.take()?;
        // The highest generation is left out: the numbers near u64::MAX are not connections'.
        *generation = (*generation + 1) % u32::MAX;
        self.free.push(id.slot);
        self.len -= 1;
        Some(thing)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn ids(&self) -> Vec<Id> {
        let there = |(slot, (generation, place)): (usize, &(u32, Option<T>))| {
            place.as_ref().map(|_| Id { slot: slot as u32, generation: *generation })
        };
        self.slots.iter().enumerate().filter_map(there).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_number_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.insert(|_| "first");
        let second = slab.insert(|_| "second");
        assert_eq!(slab.remove(first), Some("first"));
        assert_eq!((slab.remove(first), slab.len()), (None, 1));
        assert_eq!(slab.get_mut(first), None);
        let third = slab.insert(|_| "third");
        assert_ne!(first, third);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.get_mut(third), Some(&mut "third"));
        assert_eq!(Id::from_u64(third.to_u64()), third);
        assert_eq!(slab.ids(), [third, second]);
    }
}
