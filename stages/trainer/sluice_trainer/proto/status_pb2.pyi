import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from sluice_trainer.proto import work_pb2 as _work_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StageStatus(_message.Message):
    __slots__ = ("stage", "instance", "started_at", "reported_at", "interval_ms", "stopped", "ready", "notes", "last_error", "oldest", "steps")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    REPORTED_AT_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    stage: str
    instance: str
    started_at: _timestamp_pb2.Timestamp
    reported_at: _timestamp_pb2.Timestamp
    interval_ms: int
    stopped: bool
    ready: bool
    notes: _containers.RepeatedCompositeFieldContainer[StatusNote]
    last_error: StatusError
    oldest: OldestRecord
    steps: _containers.RepeatedCompositeFieldContainer[StepProgress]
    def __init__(self, stage: _Optional[str] = ..., instance: _Optional[str] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reported_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., interval_ms: _Optional[int] = ..., stopped: _Optional[bool] = ..., ready: _Optional[bool] = ..., notes: _Optional[_Iterable[_Union[StatusNote, _Mapping]]] = ..., last_error: _Optional[_Union[StatusError, _Mapping]] = ..., oldest: _Optional[_Union[OldestRecord, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[StepProgress, _Mapping]]] = ...) -> None: ...

class StepProgress(_message.Message):
    __slots__ = ("run_id", "incarnation", "step", "groups", "groups_closed", "open_slots", "batched", "moved_at")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_CLOSED_FIELD_NUMBER: _ClassVar[int]
    OPEN_SLOTS_FIELD_NUMBER: _ClassVar[int]
    BATCHED_FIELD_NUMBER: _ClassVar[int]
    MOVED_AT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    groups: int
    groups_closed: int
    open_slots: _containers.RepeatedScalarFieldContainer[int]
    batched: bool
    moved_at: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., groups: _Optional[int] = ..., groups_closed: _Optional[int] = ..., open_slots: _Optional[_Iterable[int]] = ..., batched: _Optional[bool] = ..., moved_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StatusNote(_message.Message):
    __slots__ = ("name", "text", "endpoint", "not_ready", "backend_away", "since")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    NOT_READY_FIELD_NUMBER: _ClassVar[int]
    BACKEND_AWAY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    endpoint: str
    not_ready: bool
    backend_away: bool
    since: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., endpoint: _Optional[str] = ..., not_ready: _Optional[bool] = ..., backend_away: _Optional[bool] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StatusError(_message.Message):
    __slots__ = ("error_type", "text", "at", "count")
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    error_type: str
    text: str
    at: _timestamp_pb2.Timestamp
    count: int
    def __init__(self, error_type: _Optional[str] = ..., text: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., count: _Optional[int] = ...) -> None: ...

class OldestRecord(_message.Message):
    __slots__ = ("topic", "partition", "offset", "since", "attempts", "text")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    since: _timestamp_pb2.Timestamp
    attempts: int
    text: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("run_id", "data_sha256", "rows", "mode", "seed", "group_size", "problems_per_step", "budgets", "sampling", "tool_enabled", "tool_protocol", "reward", "recorded_at")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_SHA256_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    GROUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    TOOL_ENABLED_FIELD_NUMBER: _ClassVar[int]
    TOOL_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    data_sha256: str
    rows: int
    mode: _work_pb2.Mode
    seed: int
    group_size: int
    problems_per_step: int
    budgets: _work_pb2.Budgets
    sampling: _work_pb2.SamplingParameters
    tool_enabled: bool
    tool_protocol: str
    reward: str
    recorded_at: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., data_sha256: _Optional[str] = ..., rows: _Optional[int] = ..., mode: _Optional[_Union[_work_pb2.Mode, str]] = ..., seed: _Optional[int] = ..., group_size: _Optional[int] = ..., problems_per_step: _Optional[int] = ..., budgets: _Optional[_Union[_work_pb2.Budgets, _Mapping]] = ..., sampling: _Optional[_Union[_work_pb2.SamplingParameters, _Mapping]] = ..., tool_enabled: _Optional[bool] = ..., tool_protocol: _Optional[str] = ..., reward: _Optional[str] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RunFed(_message.Message):
    __slots__ = ("run_id", "incarnation", "step")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ...) -> None: ...

class RunStop(_message.Message):
    __slots__ = ("run_id", "reason", "stage", "stopped_at")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    STOPPED_AT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    reason: str
    stage: str
    stopped_at: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., reason: _Optional[str] = ..., stage: _Optional[str] = ..., stopped_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CloseRequest(_message.Message):
    __slots__ = ("run_id", "incarnation", "step", "slot", "reason", "requested_at")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_AT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    slot: int
    reason: str
    requested_at: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., slot: _Optional[int] = ..., reason: _Optional[str] = ..., requested_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GroupOver(_message.Message):
    __slots__ = ("group", "reason", "closed_at")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    group: _work_pb2.GroupPlace
    reason: str
    closed_at: _timestamp_pb2.Timestamp
    def __init__(self, group: _Optional[_Union[_work_pb2.GroupPlace, _Mapping]] = ..., reason: _Optional[str] = ..., closed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
