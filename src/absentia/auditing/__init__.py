"""The audit of absences: whether a masking method removes the signal, and adds none."""

from absentia.auditing.auditor import audit, cross_audit
from absentia.auditing.findings import Audit, AuditRecord, CrossAudit

__all__ = ["Audit", "AuditRecord", "CrossAudit", "audit", "cross_audit"]
