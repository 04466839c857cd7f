//! Provider backoff: how long a failed request waits before it is sent again, and how long a whole chain
//! of retries can stay silent.
//!
//! Source: PI-Desktop's provider retry code in three generations (`semantics.md` section 4). The waits emit no
//! event unless the harness announces them, so the sum of a chain is silence that an idle window must exceed.

use crate::{Decimal, Millis, Retry, RetrySchedule};

/// What the provider's failure was.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Class {
    /// Too many requests (429).
    RateLimit,
    /// Network, timeout, broken stream, 408, 409 or 5xx.
    Transient,
}

impl Class {
    /// The class's name in vectors and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Transient => "transient",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::RateLimit, Self::Transient]
            .into_iter()
            .find(|class| class.name() == name)
    }
}

/// A random draw from 0 to 1, in parts per million, so that no float decides a wait.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Draw(u32);

impl Draw {
    /// The draw that adds or removes nothing.
    pub const NONE: Self = Self(0);
    /// The draw that adds or removes the whole jitter.
    pub const FULL: Self = Self(1_000_000);

    /// `parts` of a million, at most [`Draw::FULL`].
    pub const fn from_parts_per_million(parts: u32) -> Self {
        Self(if parts > 1_000_000 { 1_000_000 } else { parts })
    }
}

impl RetrySchedule {
    /// The wait before retry number `attempt` (counted from 1; 0 reads as 1) when no header asks for one.
    ///
    /// The jitter's part of the base times the draw is added or taken so that the wait is rounded up, then the cap applies.
    pub fn scheduled(&self, attempt: u32, draw: Draw) -> Millis {
        let cap = self.cap.as_u64();
        let base = self
            .factor
            .checked_pow(attempt.saturating_sub(1))
            .map_or(u64::MAX, u64::from)
            .saturating_mul(self.first_delay.as_u64())
            .min(cap);
        let part = |percent: u32| u128::from(base) * u128::from(percent) * u128::from(draw.0);
        let longer = part(self.jitter_up_percent).div_ceil(PERCENT_OF_A_MILLION);
        let shorter = part(self.jitter_down_percent) / PERCENT_OF_A_MILLION;
        let wait = (u128::from(base) + longer).saturating_sub(shorter);
        Millis::new(u64::try_from(wait).unwrap_or(u64::MAX).min(cap))
    }

    /// The wait before retry number `attempt`: what a usable header asks for, held within 0 and the cap,
    /// else the schedule. A header also shortens a wait.
    pub fn delay(&self, attempt: u32, draw: Draw, asked: Option<Millis>) -> Millis {
        match asked {
            Some(asked) => asked.min(self.cap),
            None => self.scheduled(attempt, draw),
        }
    }

    /// What `retries` waits in a row add up to.
    pub fn envelope_of(&self, retries: u32) -> Envelope {
        let mut envelope = Envelope::default();
        for attempt in 1..=retries {
            let nominal = self.scheduled(attempt, Draw::NONE);
            let longest = nominal.max(self.scheduled(attempt, Draw::FULL));
            envelope = envelope.plus(Envelope {
                nominal,
                max_jitter: longest,
                max_header: self.cap,
            });
        }
        envelope
    }

    /// What all its waits in a row add up to.
    pub fn envelope(&self) -> Envelope {
        self.envelope_of(self.retries)
    }
}

/// A hundred times a million: a percentage of a [`Draw`].
const PERCENT_OF_A_MILLION: u128 = 100_000_000;

impl Retry {
    /// The schedule of a class; `None` where it is not retried.
    pub const fn of(&self, class: Class) -> Option<&RetrySchedule> {
        match class {
            Class::RateLimit => self.rate_limit.as_ref(),
            Class::Transient => self.transient.as_ref(),
        }
    }

    /// What the counters of both classes add up to when one run spends both; they are never given back by a success.
    pub fn envelope(&self) -> Envelope {
        [&self.rate_limit, &self.transient]
            .into_iter()
            .flatten()
            .fold(Envelope::default(), |sum, schedule| {
                sum.plus(schedule.envelope())
            })
    }
}

/// How long a chain of retries waits in sum. Each of the `retries + 1` requests takes its own time on top.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Envelope {
    /// Without jitter and headers.
    pub nominal: Millis,
    /// With every draw at its longest.
    pub max_jitter: Millis,
    /// With every header at the cap.
    pub max_header: Millis,
}

impl Envelope {
    /// Two chains in one run, one after the other.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            nominal: self.nominal.plus(other.nominal),
            max_jitter: self.max_jitter.plus(other.max_jitter),
            max_header: self.max_header.plus(other.max_header),
        }
    }
}

/// A generation of PI-Desktop's provider retry.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Era {
    /// The code of August 22.
    Aug22,
    /// The code that ADR 0129 describes.
    Adr0129,
    /// A later version with ten retries of each class.
    Later,
}

impl Era {
    /// Every generation, oldest first.
    pub const ALL: [Self; 3] = [Self::Aug22, Self::Adr0129, Self::Later];

    /// The generation's name in vectors and policy documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aug22 => "aug22",
            Self::Adr0129 => "0129",
            Self::Later => "later",
        }
    }

    /// The generation of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|era| era.name() == name)
    }

    /// The schedules of both classes.
    pub const fn schedules(self) -> Retry {
        let rate_limit = RetrySchedule {
            retries: 5,
            first_delay: Millis::from_secs(2),
            factor: 2,
            jitter_up_percent: 25,
            jitter_down_percent: 0,
            cap: Millis::from_secs(30),
        };
        let transient = RetrySchedule {
            retries: 4,
            first_delay: Millis::from_secs(1),
            factor: 2,
            jitter_up_percent: 0,
            jitter_down_percent: 0,
            cap: Millis::from_secs(8),
        };
        let (rate_limit, transient) = match self {
            Self::Aug22 => (
                rate_limit,
                RetrySchedule {
                    retries: 1,
                    first_delay: Millis::new(500),
                    jitter_down_percent: 25,
                    ..transient
                },
            ),
            Self::Adr0129 => (rate_limit, transient),
            Self::Later => (
                RetrySchedule {
                    retries: 10,
                    ..rate_limit
                },
                RetrySchedule {
                    retries: 10,
                    ..transient
                },
            ),
        };
        Retry {
            rate_limit: Some(rate_limit),
            transient: Some(transient),
        }
    }
}

/// Whether the headers of a response with that status are read at all (from the ADR 0129 generation on).
pub const fn reads_headers(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..)
}

/// The wait that a failed response's headers ask for, if a usable one is there.
///
/// `retry-after-ms` (rounded up) goes before `retry-after` in seconds before `retry-after` as an HTTP date
/// less `now`. Names are compared without case, negative waits are 0, and an unusable value falls through to the next rule.
/// `now` is the wall clock in milliseconds since 1970; without it dates are unusable.
///
/// ```
/// use policysim_policy::{Millis, retry::asked_by_headers};
/// let headers = [("Retry-After", "7"), ("retry-after-ms", "1500.2")];
/// assert_eq!(asked_by_headers(headers, None), Some(Millis::new(1501)));
/// ```
pub fn asked_by_headers<'h>(
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    now: Option<i64>,
) -> Option<Millis> {
    let mut in_ms = None;
    let mut in_seconds = None;
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("retry-after-ms") {
            in_ms = in_ms.or_else(|| Decimal::parse(value).map(Decimal::ceil));
        } else if name.eq_ignore_ascii_case("retry-after") {
            in_seconds = in_seconds.or_else(|| {
                Decimal::parse(value)
                    .map(|seconds| seconds.times(1000).ceil())
                    .or_else(|| Some(http_date(value)?.saturating_sub(now?)))
            });
        }
    }
    in_ms
        .or(in_seconds)
        .map(|ms| Millis::new(u64::try_from(ms).unwrap_or(0)))
}

/// Reads an HTTP date (`Wed, 21 Oct 2015 07:28:00 GMT`) as milliseconds since 1970.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_, date) = text.trim().split_once(", ")?;
    let mut fields = date.split(' ');
    let day = number(fields.next()?, 2, 31)?;
    let name = fields.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let year = number(fields.next()?, 4, 9999)?;
    let mut clock = fields.next()?.split(':');
    let hour = number(clock.next()?, 2, 23)?;
    let minute = number(clock.next()?, 2, 59)?;
    let second = number(clock.next()?, 2, 60)?;
    if day == 0 || clock.next().is_some() || fields.next() != Some("GMT") || fields.next().is_some()
    {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1000)
}

fn number(text: &str, width: usize, most: i64) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (text.len() == width && (0..=most).contains(&number)).then_some(number)
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar; a year counts from March so that the leap day is its last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn ms(envelope: Envelope) -> [u64; 3] {
        [
            envelope.nominal.as_u64(),
            envelope.max_jitter.as_u64(),
            envelope.max_header.as_u64(),
        ]
    }

    fn chain(era: Era, class: Class) -> [u64; 3] {
        era.schedules()
            .of(class)
            .map_or([0; 3], |schedule| ms(schedule.envelope()))
    }

    /// The table of `semantics.md` 4.4.
    #[test]
    fn silent_envelopes() {
        let (limit, transient) = (Class::RateLimit, Class::Transient);
        assert_eq!(chain(Era::Adr0129, limit), [60_000, 67_500, 150_000]);
        assert_eq!(chain(Era::Adr0129, transient), [15_000, 15_000, 32_000]);
        let both = Era::Adr0129.schedules().envelope();
        assert_eq!(ms(both), [75_000, 82_500, 182_000]);
        assert_eq!(chain(Era::Later, limit), [210_000, 217_500, 300_000]);
        assert_eq!(chain(Era::Later, transient), [63_000, 63_000, 80_000]);
    }

    /// The August 22 transient wait is 500 ms less up to a quarter.
    #[test]
    fn shorter_jitter_never_lengthens() {
        let transient = Era::Aug22.schedules().transient;
        let waits = [Draw::NONE, Draw::FULL].map(|draw| transient.map(|t| t.scheduled(1, draw)));
        assert_eq!(waits, [500, 375].map(|ms| Some(Millis::new(ms))));
        assert_eq!(chain(Era::Aug22, Class::Transient), [500, 500, 8000]);
    }

    #[test]
    fn waits_stay_within_the_cap_at_any_attempt() {
        for schedule in Era::ALL
            .into_iter()
            .filter_map(|era| era.schedules().rate_limit)
        {
            for attempt in [0, 1, 6, 63, 64, 65, u32::MAX] {
                assert!(schedule.scheduled(attempt, Draw::FULL) <= schedule.cap);
            }
        }
    }

    #[track_caller]
    fn asked(headers: &[(&str, &str)], now: Option<i64>, expected: Option<u64>) {
        assert_eq!(
            asked_by_headers(headers.iter().copied(), now),
            expected.map(Millis::new)
        );
    }

    #[test]
    fn headers_in_order_of_precision() {
        asked(&[("retry-after", "7")], None, Some(7000));
        asked(&[("RETRY-AFTER", "0.5")], None, Some(500));
        asked(
            &[("retry-after-ms", "soon"), ("retry-after", "9")],
            None,
            Some(9000),
        );
        asked(&[("retry-after", "soon")], None, None);
        asked(&[("retry-after", "")], None, None);
        asked(&[("retry-after", "-5")], None, Some(0));
        asked(&[("x-other", "5")], None, None);
    }

    /// The example date of RFC 9110 section 5.6.7 is 784111777 s after 1970.
    #[test]
    fn a_date_counts_from_now() {
        let date = [("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")];
        asked(&date, Some(784_111_770_000), Some(7000));
        asked(&date, Some(784_111_780_000), Some(0));
        asked(&date, None, None);
        asked(
            &[("retry-after", "Sun, 06 Nov 1994 08:49 GMT")],
            Some(0),
            None,
        );
    }

    #[test]
    fn headers_count_on_the_statuses_that_promise_a_retry() {
        let read: Vec<u16> = [400, 401, 404, 408, 409, 410, 429, 499, 500, 529]
            .into_iter()
            .filter(|&status| reads_headers(status))
            .collect();
        assert_eq!(read, [408, 409, 429, 500, 529]);
    }
}
