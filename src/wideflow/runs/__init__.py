"""What makes work durable: records of finished runs, the store that finds them, checkpoints."""

from .checkpoints import FileCheckpointer as FileCheckpointer
from .records import (
    Damage as Damage,
    DamagedRecordError as DamagedRecordError,
    Judged as Judged,
    Record as Record,
    read_record as read_record,
    write_record as write_record,
)
from .runner import Performed as Performed, perform as perform
from .store import Store as Store, address as address
