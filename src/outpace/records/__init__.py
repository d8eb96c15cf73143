"""The run folder: everything a run leaves behind, written so that a kill at any moment leaves it readable.

    runs/<name>/
    ├── recipe.yaml        the resolved recipe
    ├── provenance.json    versions, seeds, machine, isolation, each start and resume
    ├── metrics.jsonl      one record per logged step
    ├── samples/*.jsonl    one file per generation: completions with verdicts and rewards
    ├── checkpoint-N/      a model that training resumes from, marked complete and hashed
    └── *.json, report.*   evaluations and reports, each replaced as a whole

Does not know what the values mean, and never imports torch.
"""

from outpace.records.checkpoints import Checkpoint, find_checkpoint, list_checkpoints, mark_complete
from outpace.records.files import append_jsonl, read_json, read_jsonl, write_atomic, write_json, write_jsonl
from outpace.records.folder import RunFolder
from outpace.records.provenance import describe_machine

__all__ = [
    "Checkpoint",
    "RunFolder",
    "append_jsonl",
    "describe_machine",
    "find_checkpoint",
    "list_checkpoints",
    "mark_complete",
    "read_json",
    "read_jsonl",
    "write_atomic",
    "write_json",
    "write_jsonl",
]
