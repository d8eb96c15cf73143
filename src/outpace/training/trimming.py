"""Log-probabilities without the padding: rows of similar length share a forward pass, cut to the longest of them.

TRL pads every row of a generation to its longest prompt and longest completion; with completions of 20 to 400 tokens
most of a forward and backward pass is then spent on padding. Cutting it changes no number that counts: padding is
masked, and positions are relative. Not covered: several processes, whose passes must keep step with each other, images.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

CPU_PASS_TOKENS, GPU_PASS_TOKENS = 64, 8192
"""How many tokens take as long as what each further pass costs by itself: launching kernels, reading the weights."""
_MOST_CUTS = 32

Compute = Callable[[list[int], slice, int], tuple["torch.Tensor", "torch.Tensor | None"]]
"""(rows, columns, how many of those are completions) -> log-probabilities and entropies of the completions."""


def without_padding(
    compute: Compute,
    attention_mask: "torch.Tensor",
    completion_columns: int,
    *,
    prompt_R: Sequence[int] | None = None,
    most_rows: int | None = None,
) -> tuple["torch.Tensor", "torch.Tensor | None"]:
    """What `compute` gives for the whole batch, from as few padded tokens as pay; zeros where the mask is zero.

    Args:
        compute: one pass over some rows and columns.
        attention_mask: (rows, columns), 0 at padding: on the left of prompts and on the right of completions.
        completion_columns: how many of the last columns belong to completions.
        prompt_R: which distinct prompt each row follows, where prompts are computed apart (`shared_prompts`): a pass
            then has only the last column of the prompts, and its rows come in the order of these numbers.
        most_rows: of one pass; None: no limit.

    Returns:
        Two tensors of shape (rows, completion_columns); the second is None where `compute` gives none.
    """
    import torch
    from torch.nn.functional import pad

    prompt_columns = attention_mask.size(1) - completion_columns
    ends = torch.arange(1, attention_mask.size(1) + 1, device=attention_mask.device)
    prompts = (attention_mask[:, :prompt_columns] * ends[:prompt_columns].flip(0)).amax(1).tolist()
    completions = (attention_mask[:, prompt_columns:] * ends[:completion_columns]).amax(1).clamp(min=1).tolist()
    if prompt_R is not None:
        prompts = [1] * len(prompts)
    per_pass = CPU_PASS_TOKENS if attention_mask.device.type == "cpu" else GPU_PASS_TOKENS
    parts: list[tuple[torch.Tensor, torch.Tensor | None]] = []
    order: list[int] = []
    for rows in _at_most(group_by_length(prompts, completions, per_pass), most_rows):
        if prompt_R is not None:
            rows.sort(key=prompt_R.__getitem__)
        keep = max(completions[row] for row in rows)
        first = prompt_columns - max(prompts[row] for row in rows)
        found = compute(rows, slice(first, prompt_columns + keep), keep)
        parts.append(tuple(None if x is None else pad(x, (0, completion_columns - keep)) for x in found))  # type: ignore[arg-type]
        order += rows
    back = torch.tensor(order, device=attention_mask.device).argsort()
    logps = torch.cat([part[0] for part in parts])[back]
    entropies = [part[1] for part in parts if part[1] is not None]
    return logps, torch.cat(entropies)[back] if entropies else None


def group_by_length(prompts: Sequence[int], completions: Sequence[int], per_pass: int) -> list[list[int]]:
    """Rows in groups, each for one pass, so that tokens, padding included, plus `per_pass` for each pass are fewest.

    Rows are ordered by the length of their completion and cut in at most 32 places, evenly spaced.
    """
    order = sorted(range(len(completions)), key=lambda row: (completions[row], prompts[row]))
    cuts = sorted({round(k * len(order) / _MOST_CUTS) for k in range(_MOST_CUTS + 1)})

    def cost(i: int, j: int) -> int:
        rows = order[cuts[i] : cuts[j]]
        return len(rows) * (max(prompts[row] for row in rows) + max(completions[row] for row in rows)) + per_pass

    best: list[tuple[int, int]] = [(0, 0)]  # by number of cuts passed: the least cost so far, and the cut before
    for j in range(1, len(cuts)):
        best.append(min((best[i][0] + cost(i, j), i) for i in range(j)))
    groups, j = [], len(cuts) - 1
    while j:
        groups.append(order[cuts[best[j][1]] : cuts[j]])
        j = best[j][1]
    return groups[::-1]


def _at_most(groups: Sequence[list[int]], most_rows: int | None) -> list[list[int]]:
    """The groups, cut where they have more rows than that."""
    return [
        group[start : start + (most_rows or len(group))]
        for group in groups
        for start in range(0, len(group), most_rows or len(group))
    ]
