"""The audit of absences: whether a masking method removes the signal and adds none."""

from absentia.auditing.audit_record import AuditRecord
from absentia.auditing.audits import audit, cross_audit
from absentia.auditing.cross_audits import CrossAudit
from absentia.auditing.findings import Audit

__all__ = ["Audit", "AuditRecord", "CrossAudit", "audit", "cross_audit"]
