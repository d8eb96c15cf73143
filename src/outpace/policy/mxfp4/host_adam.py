"""AdamW whose float32 weights and moments live in host memory: the GPU keeps a bfloat16 copy and its gradient only.

An update of 5e-5 is lost in bfloat16's 8 bits; here it is added in float32 and the copy rounded. Costs two copies of
the adapters over the bus per step, and exact moments where 8-bit optimisers round them. Not covered: sparse gradients.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class HostAdamW(torch.optim.Optimizer):
    """See the module docstring; arguments are those of `torch.optim.AdamW`."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)
        self._masters = [[_on_host(p) for p in group["params"]] for group in self.param_groups]
        self._grads = [[torch.empty_like(master) for master in masters] for masters in self._masters]
        groups = [{"params": masters} for masters in self._masters]
        self._inner = torch.optim.AdamW(groups, fused=True, **defaults)  # type: ignore[arg-type]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update on the host and copy the weights back."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group, inner, masters, grads in self._each():
            inner.update({key: value for key, value in group.items() if key != "params"})
            for parameter, master, grad in zip(group["params"], masters, grads, strict=True):
                master.grad = None if parameter.grad is None else grad.copy_(parameter.grad, non_blocking=True)
        if torch.cuda.is_available():
            torch.cuda.current_stream().synchronize()
        self._inner.step()
        for group, _, masters, _ in self._each():
            for parameter, master in zip(group["params"], masters, strict=True):
                parameter.copy_(master, non_blocking=True)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Moments and float32 weights, with the groups' settings."""
        groups = [{key: value for key, value in group.items() if key != "params"} for group in self.param_groups]
        return {"inner": self._inner.state_dict(), "masters": self._masters, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._inner.load_state_dict(state_dict["inner"])
        with torch.no_grad():
            for mine, theirs in zip(self._masters, state_dict["masters"], strict=True):
                for master, saved in zip(mine, theirs, strict=True):
                    master.copy_(saved)
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update(saved)

    def _each(self) -> Any:
        return zip(self.param_groups, self._inner.param_groups, self._masters, self._grads, strict=True)


def _on_host(parameter: Tensor) -> Tensor:
    master = torch.empty(parameter.shape, dtype=torch.float32, pin_memory=parameter.is_cuda)
    return master.copy_(parameter.detach())
