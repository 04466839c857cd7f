//! A gate as `JUnit` XML: a suite with a case per check. What could not be decided is skipped with its reason, never
//! passed, unless the rules say what it counts as.

use policysim_sim::gate::{Check, Code, Verdict};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::{GateResult, words};
use crate::table::one_line;

impl GateResult {
    /// The result as `JUnit` XML, without times or host names: the same result gives the same bytes.
    ///
    /// # Errors
    /// Never for memory; the serializer's errors are passed on.
    pub fn to_junit(&self) -> Result<String, quick_junit::SerializeError> {
        let mut suite = TestSuite::new(format!("policysim gate {}", one_line(&self.policy)));
        for (name, value) in [
            ("verdict", self.gate.verdict().name().to_owned()),
            ("answer", self.answer()),
            ("rules", one_line(&self.rules)),
        ] {
            suite.add_property(Property::new(name, value));
        }
        if let Some(data) = &self.data {
            suite.add_property(Property::new("window_digest", data.digest.as_str()));
            suite.add_property(Property::new("window_first_day", data.first_day.as_str()));
            suite.add_property(Property::new("window_last_day", data.last_day.as_str()));
        }
        for (check, place) in self.checks() {
            let words = words::observed(check);
            let mut case = TestCase::new(one_line(&check.name), status(check, &words));
            case.set_classname(format!("gate.{}", check.kind));
            case.extra.insert("file".into(), place.file.into());
            if let Some(line) = place.line {
                case.extra.insert("line".into(), line.to_string().into());
            }
            suite.add_test_case(case);
        }
        let mut report = Report::new("policysim gate");
        report.add_test_suite(suite);
        let xml = report.to_string()?;
        Ok(if xml.ends_with('\n') { xml } else { xml + "\n" })
    }
}

fn status(check: &Check, words: &str) -> TestCaseStatus {
    let code = check.code.map_or("counts_as", Code::name);
    match check.counts_as {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Fail => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(words).set_type(code);
            status
        }
        Verdict::Inconclusive | Verdict::NoData => {
            let mut status = TestCaseStatus::skipped();
            status
                .set_message(format!("{}: {words}", check.counts_as))
                .set_type(code);
            status
        }
    }
}
