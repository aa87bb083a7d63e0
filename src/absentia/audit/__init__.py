"""The audit of absences: whether a masking method removes the signal, and adds none."""

from absentia.audit.auditor import audit, cross_audit
from absentia.audit.findings import Audit, AuditRecord, CrossAudit

__all__ = ["Audit", "AuditRecord", "CrossAudit", "audit", "cross_audit"]
