"""An import job: what the parts of one process that imports share."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from importer.failpoints import Observer
from importer.files import Folders
from importer.notices import FileReport, Remark
from importer.options import Options
from importer.slots import Slot
from resumes.store import Store


@dataclass(slots=True)
class Job:
    """The import of files from one ROOT into one store, by the process that holds the slot."""

    store: Store
    root: str
    options: Options
    slot: Slot
    on_filed: Callable[[FileReport], None]
    remark: Remark
    observe: Observer
    monotonic: Callable[[], float] = time.monotonic
    folders: Folders = field(init=False)
    """The folders that are open."""

    def __post_init__(self) -> None:
        self.folders = Folders(self.root)
