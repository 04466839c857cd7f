//! A list that holds its first few items in place, so that usual runs allocate nothing.

use alloc::vec::Vec;

/// An ordered list of small values, the first `N` of them in place. Free places hold the default, so
/// that equal lists compare equal.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct InlineList<T, const N: usize> {
    inline: [T; N],
    inline_len: u8,
    spill: Vec<T>,
}

impl<T: Copy + Default, const N: usize> Default for InlineList<T, N> {
    fn default() -> Self {
        Self {
            inline: [T::default(); N],
            inline_len: 0,
            spill: Vec::new(),
        }
    }
}

impl<T: Copy + Default, const N: usize> InlineList<T, N> {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.inline_len) + self.spill.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.inline[..usize::from(self.inline_len)]
            .iter()
            .chain(&self.spill)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.inline[..usize::from(self.inline_len)]
            .iter_mut()
            .chain(&mut self.spill)
    }

    pub(crate) fn push(&mut self, item: T) {
        if usize::from(self.inline_len) < N {
            self.inline[usize::from(self.inline_len)] = item;
            self.inline_len += 1;
        } else {
            self.spill.push(item);
        }
    }

    /// Takes item `i` out; the others keep their order.
    ///
    /// # Panics
    /// When there is no item `i`.
    pub(crate) fn remove(&mut self, i: usize) -> T {
        let len = usize::from(self.inline_len);
        if i >= len {
            return self.spill.remove(i - len);
        }
        let item = self.inline[i];
        self.inline.copy_within(i + 1..len, i);
        if self.spill.is_empty() {
            self.inline_len -= 1;
            self.inline[len - 1] = T::default();
        } else {
            self.inline[len - 1] = self.spill.remove(0);
        }
        item
    }

    pub(crate) fn clear(&mut self) {
        if self.inline_len != 0 {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_vector_and_leaves_no_trace() {
        let mut list = InlineList::<u32, 2>::default();
        let mut plain = Vec::new();
        // every third step removes, the places differ
        for step in 1..60_u32 {
            if step % 3 == 0 {
                let i = step as usize * 7 % plain.len();
                assert_eq!(list.remove(i), plain.remove(i));
            } else {
                list.push(step);
                plain.push(step);
            }
            assert!(list.iter().eq(&plain));
        }
        while !plain.is_empty() {
            assert_eq!(list.remove(0), plain.remove(0));
        }
        assert_eq!(list, InlineList::default());
        assert_eq!(list.len(), 0);
    }
}
