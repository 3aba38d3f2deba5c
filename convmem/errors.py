"""Everything that can go wrong, sorted by who can put it right.

    CallerError    the caller: change the request       -> tool result with isError and a code; nothing written
    RetryError     time: send the same request again    -> likewise, with retry_after_ms
    OperatorError  a person at the host                 -> the start is refused or the process stops; exit status

Anything else (AssertionError above all) is a bug of ours: it stops the writer, or is answered as an internal error
without a word of Python. Rejected: one class with a code argument. A class can be named in an `except` and in a table.
"""

from typing import Any, ClassVar


class ConvmemError(Exception):
    """Base of all three families. `details` are facts for programs that stand beside `code` and `message`."""

    code: ClassVar[str]

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def facts(self) -> dict[str, Any]:
        """The error as programs are told it: code, message, retryable, and the details beside them."""
        is_retryable = isinstance(self, RetryError)
        return {"code": self.code, "message": self.message, "retryable": is_retryable, **self.details}


class CallerError(ConvmemError):
    """The caller can act: another request will do."""


class Invalid(CallerError):
    """An argument is unknown, missing, of a wrong type or out of range. details: field."""

    code = "VALIDATION_ERROR"


class NotFound(CallerError):
    """What the request names is not there (any more). details: field when it was named inside another record."""

    code = "NOT_FOUND"


class Conflict(CallerError):
    """Somebody changed it meanwhile, or a known idempotency key has other arguments. details: current_revision."""

    code = "CONFLICT"


class SessionMismatch(CallerError):
    """The guard `session_id` of a deletion names another session."""

    code = "SESSION_MISMATCH"


class ContentTooLarge(CallerError):
    """Content over its limit in bytes of UTF-8. details: bytes, bytes_max."""

    code = "CONTENT_TOO_LARGE"


class InvalidOffset(CallerError):
    """A byte offset that is neither 0, the end nor a code point boundary. details: offset, total_bytes."""

    code = "INVALID_OFFSET"


class InvalidCursor(CallerError):
    """A cursor that this tool did not make."""

    code = "INVALID_CURSOR"


class Forbidden(CallerError):
    """The caller's token does not reach this far. details: needed."""

    code = "FORBIDDEN"


class QueryLimit(CallerError):
    """A read took longer than it may. details: ms_max."""

    code = "QUERY_LIMIT"


class DiskFault(CallerError):
    """The disk refused a file that this request needed beside the store; the store is as it was. details: path."""

    code = "IO_ERROR"


class BackupRefused(CallerError):
    """A directory that holds no backup or not this one, or a copy that is not what was written. details: part."""

    code = "BACKUP_ERROR"


class SchemaError(CallerError):
    """A schema.yaml that breaks a rule. details: line, column."""

    code = "SCHEMA_ERROR"


class StorageFault(CallerError):
    """A table's file is damaged, cannot be written or was taken away; everything else goes on."""

    code = "STORAGE_ERROR"


class TextNotFound(CallerError):
    """The text to replace does not stand in the field, or not in the lines that were named. details: total_lines."""

    code = "STRING_NOT_FOUND"


class AmbiguousMatch(CallerError):
    """The text to replace stands there more than once. details: kind, matches, candidates."""

    code = "AMBIGUOUS_MATCH"


class OutOfRange(CallerError):
    """A line that the field does not have. details: total_lines."""

    code = "OUT_OF_RANGE"


class WrongType(CallerError):
    """The field holds something else than a text. details: field."""

    code = "TYPE_ERROR"


class ParamsRequired(CallerError):
    """An alias was run without what its template needs. details: missing."""

    code = "ALIAS_PARAMS_REQUIRED"


class TemplateRefused(CallerError):
    """A template that breaks the rules, or with these parameters makes no filter. details: line."""

    code = "ALIAS_TEMPLATE_ERROR"


class AggregateRefused(CallerError):
    """No table to look at, too many of them, or a sum that no number holds."""

    code = "AGGREGATOR_ERROR"


class TableRequired(CallerError):
    """The call must say which table it means. details: field."""

    code = "TABLE_REQUIRED"


class TableNotFound(CallerError):
    """There is no such table, or its schema or file is broken. details: table, reason."""

    code = "TABLE_NOT_FOUND"


class AmbiguousId(CallerError):
    """The beginning of an id, or the name of an alias, that several have. details: matches, candidates."""

    code = "AMBIGUOUS_ID"


class SchemaExists(CallerError):
    """A table of this name is there, or a file with rows that was not to be adopted. details: table."""

    code = "SCHEMA_EXISTS"


class BatchAborted(CallerError):
    """One operation of a batch was refused, so none was done; the cause is an error. details: op_index, cause."""

    code = "BATCH_ABORTED"


class AliasNotFound(CallerError):
    """There is no alias of this name for this table. details: name."""

    code = "ALIAS_NOT_FOUND"


class AliasExists(CallerError):
    """An alias of this name is there for this table and scope. details: name."""

    code = "ALIAS_ALREADY_EXISTS"


class SnapshotFault(CallerError):
    """A snapshot could not be made; those that are there stay. details: table."""

    code = "SNAPSHOT_ERROR"


class UploadNotConfigured(CallerError):
    """An upload was asked for without all settings that it needs. details: missing."""

    code = "UPLOAD_NOT_CONFIGURED"


class UploadFailed(CallerError):
    """The other host did not take a file; the local copy stays. details: file."""

    code = "UPLOAD_FAILED"


class RetryError(ConvmemError):
    """Time can act: the same request will do later. details always hold retry_after_ms."""

    def __init__(self, message: str, *, retry_after_ms: int, **details: Any) -> None:
        super().__init__(message, retry_after_ms=retry_after_ms, **details)


class Busy(RetryError):
    """The mailbox is full, or the index is being rebuilt. details: done, total while rebuilding."""

    code = "BUSY"


class Stopping(RetryError):
    """The daemon is going down; its successor will answer."""

    code = "STOPPING"


class StorageFull(RetryError):
    """The disk took no more; nothing of this request is stored. Works again once there is space."""

    code = "STORAGE_FULL"


class OperatorError(ConvmemError):
    """A person at the host can act. Refuses the start or stops the process with its own exit status."""


class StoreLocked(OperatorError):
    """Another process holds the data directory. details: holder."""

    code = "STORE_LOCKED"


class LogCorrupt(OperatorError):
    """The log holds damage where something acknowledged may have been. details: file, offset, sequence."""

    code = "LOG_CORRUPT"


class LogTooNew(OperatorError):
    """The log was written by a newer convmem. details: file, offset, version."""

    code = "LOG_TOO_NEW"


class StoreFailed(OperatorError):
    """A sync failed or the log is gone: nothing more is promised until a restart."""

    code = "STORE_FAILED"


class UnsafeBind(OperatorError):
    """An address that others reach, and no token."""

    code = "UNSAFE_BIND"


class DataDirectoryUnusable(OperatorError):
    """The data directory cannot be made, read or written. details: path, uid."""

    code = "DATA_DIRECTORY_UNUSABLE"


class AddressUnusable(OperatorError):
    """The address to listen on is taken or not ours. details: address."""

    code = "ADDRESS_UNUSABLE"


class SettingInvalid(OperatorError):
    """A flag, variable or line of convmem.env that cannot be meant. details: setting."""

    code = "SETTING_INVALID"


EXIT_STATUS: dict[type[OperatorError], int] = {
    AddressUnusable: 1,
    SettingInvalid: 2,
    StoreLocked: 10,
    LogCorrupt: 11,
    LogTooNew: 12,
    StoreFailed: 13,
    UnsafeBind: 14,
    DataDirectoryUnusable: 15,
}
