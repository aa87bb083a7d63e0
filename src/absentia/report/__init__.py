"""The report: explanations, audits and learned baselines on one page that needs only a browser."""

from absentia.report.page import write_report

__all__ = ["write_report"]
