"""What a plan says of a gpt-oss layer that is computed twice is what is allocated while its backward runs."""

import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from peft import LoraConfig  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402
from transformers import GptOssConfig  # noqa: E402

from outpace.policy.geometry import Geometry  # noqa: E402
from outpace.policy.mxfp4 import Storage, attach, random_network  # noqa: E402
from outpace.policy.mxfp4.build import set_engine  # noqa: E402
from outpace.policy.mxfp4.host_checkpoint import keep_on_host  # noqa: E402


class Allocations(TorchDispatchMode):
    """Adds up the bytes of all tensors made inside that are alive."""

    def __init__(self):
        super().__init__()
        self.alive, self.most = {}, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.alive:
                    self.alive[storage._cdata] = storage.nbytes()
                    weakref.finalize(storage, self.alive.pop, storage._cdata, None)
        self.most = max(self.most, sum(self.alive.values()))
        return out


class OnlyAllocates:
    """An engine with the results' sizes; unpacking happens inside a kernel on a GPU."""

    def forward(self, rows, packed, routes, *, by_token, bias=None):
        return rows.new_zeros(routes.pairs, packed.rows)

    def backward(self, grads, packed, routes):
        return grads.new_zeros(routes.pairs, packed.columns)

    def swiglu(self, gate_up, alpha, limit):
        return gate_up.new_zeros(gate_up.shape[0], gate_up.shape[1] // 2)

    def swiglu_backward(self, gate_up, grad, alpha, limit):
        return torch.zeros_like(gate_up)


TOKENS, HIDDEN, RANK = 1024, 256, 4


@pytest.mark.parametrize(
    ("inner", "tokens_at_once"),
    [(256, None), (3072, None), (3072, 600), (6144, 600)],  # attention takes most, experts, attention, experts
)
def test_a_layer_in_two_parts_takes_what_is_forecast(inner, tokens_at_once):
    config = GptOssConfig(
        num_hidden_layers=1,
        num_local_experts=4,
        num_experts_per_tok=2,
        vocab_size=64,
        hidden_size=HIDDEN,
        intermediate_size=inner,
        head_dim=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        max_position_embeddings=TOKENS,
    )
    compact = Storage(attention="mxfp4", head="int8", embedding="host")
    network = random_network(config, dtype=torch.bfloat16, device=torch.device("cpu"), storage=compact)
    targets = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]
    lora = LoraConfig(r=RANK, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"], target_parameters=targets)
    attach(network, lora, dtype=torch.bfloat16).train()
    set_engine(network, OnlyAllocates())
    for parameter in network.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    layer = network.model.layers[0]
    layer.gradient_checkpointing = True
    assert keep_on_host(layer, tokens_at_once) == 1
    hidden = torch.randn(1, TOKENS, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    places = torch.arange(TOKENS)[None]
    angles = network.model.rotary_emb(hidden, places)
    mask = torch.zeros(1, 1, TOKENS, TOKENS, dtype=torch.bfloat16)
    with Allocations() as seen, torch.autocast("cpu", torch.bfloat16):
        layer(hidden, attention_mask=mask, position_embeddings=angles, position_ids=places).sum().backward()
    shape = Geometry(
        layers=1,
        hidden=HIDDEN,
        intermediate=inner,
        heads=4,
        kv_heads=2,
        head_size=64,
        vocab=64,
        experts=4,
        top_k=2,
    )
    on_host = 2 * 2 * TOKENS * HIDDEN  # here the host's copies are counted, too
    assert shape.recomputed_bytes(TOKENS, 1, RANK, tokens_at_once) == pytest.approx(seen.most - on_host, rel=0.1)
