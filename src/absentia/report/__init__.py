"""The report: explanations, audits and learned baselines on one page that needs nothing but a browser."""

from absentia.report.write import write_report

__all__ = ["write_report"]
