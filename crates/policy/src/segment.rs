//! The segment: from an outermost start or resume to its end.

use crate::Millis;

/// The current segment, or the last one when none is open.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Segment {
    /// When it began; polled policies count their ticks from here.
    pub(crate) origin: Millis,
    /// Its idle window.
    pub(crate) window: Option<Millis>,
    /// Starts that are not ended yet. 0 where the watchdog or a resume began it: the next start is outermost.
    depth: u32,
    /// Whether it goes on.
    pub(crate) is_open: bool,
    /// Whether the policy's own limits hold; not under a caller's deadline that replaces them.
    pub(crate) armed: bool,
}

impl Segment {
    /// A segment that begins with so many starts.
    pub(crate) const fn begin(
        origin: Millis,
        window: Option<Millis>,
        depth: u32,
        armed: bool,
    ) -> Self {
        Self {
            origin,
            window,
            depth,
            is_open: true,
            armed,
        }
    }

    /// Whether a start inside it is a nested one; such a one is counted.
    pub(crate) const fn nests(&mut self) -> bool {
        let nested = self.is_open && self.depth > 0;
        if nested {
            self.depth = self.depth.saturating_add(1);
        }
        nested
    }

    /// One start is ended; whether that closes the segment.
    pub(crate) const fn end_one(&mut self) -> bool {
        if !self.is_open {
            return false;
        }
        self.depth = self.depth.saturating_sub(1);
        self.is_open = self.depth > 0;
        !self.is_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_end_closes() {
        let mut segment = Segment::begin(Millis::ZERO, None, 1, true);
        assert!(segment.nests());
        assert!(!segment.end_one());
        assert!(segment.end_one());
        assert!(!segment.end_one() && !segment.nests());
    }

    #[test]
    fn a_start_in_a_segment_begun_without_one_is_outermost() {
        let mut segment = Segment::begin(Millis::ZERO, None, 0, true);
        assert!(!segment.nests());
        assert!(segment.end_one());
    }
}
