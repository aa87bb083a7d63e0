"""The audit of absences: whether a masking method removes the signal, and adds none."""

from absentia.audit.cross import CrossAudit, cross_audit
from absentia.audit.record import Audit, AuditRecord
from absentia.audit.run import audit

__all__ = ["Audit", "AuditRecord", "CrossAudit", "audit", "cross_audit"]
