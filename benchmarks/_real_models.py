"""Real models with random weights, for whoever has transformers, timm and peft: read as text into their environment.

Each is a function that gives a model and a batch of five examples: what the model is called with, and targets.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

try:  # torchvision of another build of PyTorch lacks an operator that nobody here uses
    torch.ops.torchvision.nms  # noqa: B018
except (AttributeError, RuntimeError):
    _MISSING = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _MISSING.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

ROWS, TOKENS = 5, 12


class Logits(nn.Module):
    """A model of transformers that gives logits alone, called by tokens or pictures and, where asked, a mask."""

    def __init__(self, model: Any, name: str = "input_ids", *, mask: bool = False, **options: Any) -> None:
        super().__init__()
        self.model, self.name, self.mask, self.options = model, name, mask, options

    def forward(self, x: Any) -> Any:
        more = {"attention_mask": torch.ones_like(x)} if self.mask else {}
        return self.model(**{self.name: x}, **more, **self.options).logits


def tokens(most: Any = 90) -> tuple[Any, ...]:
    return torch.randint(5, most, (ROWS, TOKENS)), torch.randint(0, 3, (ROWS,))


def pictures(size: int = 32) -> tuple[Any, ...]:
    return torch.randn(ROWS, 3, size, size), torch.randint(0, 3, (ROWS,))


def classifier(config: Any, family: Any, *, mask: bool = False, **options: Any) -> tuple[Any, ...]:
    import transformers

    shape = {"vocab_size": 100, "num_labels": 3, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2} | options
    model = getattr(transformers, family)(getattr(transformers, config)(**shape))
    return Logits(model, mask=mask), *tokens()


SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
LLAMA: dict[str, Any] = SMALL | {"num_key_value_heads": 2, "max_position_embeddings": 64, "use_cache": False}


def gpt2() -> Any:
    options: dict[str, Any] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "use_cache": False}
    return classifier("GPT2Config", "GPT2ForSequenceClassification", **options)


def bert() -> Any:
    return classifier("BertConfig", "BertForSequenceClassification", mask=True, **SMALL)


def distilbert() -> Any:
    options: dict[str, Any] = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    return classifier("DistilBertConfig", "DistilBertForSequenceClassification", **options)


def roberta() -> Any:
    return classifier("RobertaConfig", "RobertaForSequenceClassification", **SMALL)


def electra() -> Any:
    return classifier("ElectraConfig", "ElectraForSequenceClassification", embedding_size=16, **SMALL)


def deberta() -> Any:
    return classifier("DebertaV2Config", "DebertaV2ForSequenceClassification", **SMALL)


def albert() -> Any:
    return classifier("AlbertConfig", "AlbertForSequenceClassification", embedding_size=16, **SMALL)


def llama() -> Any:
    return classifier("LlamaConfig", "LlamaForSequenceClassification", **LLAMA)


def qwen() -> Any:
    return classifier("Qwen2Config", "Qwen2ForSequenceClassification", **LLAMA)


def gemma() -> Any:
    return classifier("GemmaConfig", "GemmaForSequenceClassification", head_dim=8, **LLAMA)


def mistral() -> Any:
    return classifier("MistralConfig", "MistralForSequenceClassification", **LLAMA)


def opt() -> Any:
    options: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "ffn_dim": 64,
        "use_cache": False,
    }
    return classifier("OPTConfig", "OPTForSequenceClassification", word_embed_proj_dim=32, **options)


def mixtral() -> Any:
    return classifier("MixtralConfig", "MixtralForSequenceClassification", num_local_experts=4, **LLAMA)


def t5() -> tuple[Any, ...]:
    import transformers

    shape = {"vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    settings = transformers.T5Config(**shape, num_labels=3, use_cache=False, decoder_start_token_id=0)
    x, y = tokens()
    x[:, -1] = settings.eos_token_id
    return Logits(transformers.T5ForSequenceClassification(settings)), x, y


def mamba() -> tuple[Any, ...]:
    import transformers

    class Head(nn.Module):
        def __init__(self, body: Any) -> None:
            super().__init__()
            self.body, self.head = body, nn.Linear(32, 3)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(input_ids=x, use_cache=False).last_hidden_state[:, -1])

    settings = transformers.MambaConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, state_size=8)
    return Head(transformers.MambaModel(settings)), *tokens()


def hugging_face_vit() -> tuple[Any, ...]:
    import transformers

    settings = transformers.ViTConfig(**SMALL, image_size=32, patch_size=8, num_labels=3)
    return Logits(transformers.ViTForImageClassification(settings), "pixel_values"), *pictures()


def lora(method: str = "lora") -> tuple[Any, ...]:
    import peft

    model, x, y = llama()
    kinds = {"lora": {}, "dora": {"use_dora": True}}
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], **kinds[method])
    model.model = peft.get_peft_model(model.model, config)
    return model, x, y


def dora() -> Any:
    return lora("dora")


def of_timm(name: Any, size: int = 32, **options: Any) -> tuple[Any, ...]:
    import timm

    return timm.create_model(name, num_classes=3, **options), *pictures(size)


def timm_vit() -> Any:
    return of_timm("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=2)


def timm_deit() -> Any:
    return of_timm("deit_tiny_patch16_224", img_size=32, patch_size=8, depth=2)


def timm_resnet() -> Any:
    from timm.layers import GroupNormAct

    return of_timm("resnet18", norm_layer=lambda c: GroupNormAct(c, 8, apply_act=False))


def timm_convnext() -> Any:
    return of_timm("convnext_atto")


def timm_efficientnet() -> Any:
    from timm.layers import GroupNormAct

    return of_timm("efficientnet_b0", norm_layer=lambda c, **k: GroupNormAct(c, 8 if c % 8 == 0 else 1, **k))


def timm_swin() -> Any:
    shape = {"img_size": 32, "window_size": 4, "depths": (2, 2), "num_heads": (2, 4), "embed_dim": 16}
    return of_timm("swin_tiny_patch4_window7_224", 32, **shape)


def timm_mixer() -> Any:
    return of_timm("mixer_s32_224", 64, img_size=64)


def timm_nfnet() -> Any:
    return of_timm("nf_resnet26")


REAL = {
    "GPT-2": gpt2,
    "BERT": bert,
    "DistilBERT": distilbert,
    "RoBERTa": roberta,
    "ELECTRA": electra,
    "DeBERTa v2": deberta,
    "ALBERT (shared layers)": albert,
    "Llama": llama,
    "Qwen2": qwen,
    "Gemma": gemma,
    "Mistral": mistral,
    "OPT": opt,
    "Mixtral (experts)": mixtral,
    "T5": t5,
    "Mamba": mamba,
    "ViT (transformers)": hugging_face_vit,
    "Llama with LoRA": lora,
    "Llama with DoRA": dora,
    "ViT-tiny (timm)": timm_vit,
    "DeiT-tiny (timm)": timm_deit,
    "ResNet-18, group norm (timm)": timm_resnet,
    "EfficientNet-B0, group norm (timm)": timm_efficientnet,
    "ConvNeXt (timm)": timm_convnext,
    "Swin (timm)": timm_swin,
    "MLP-Mixer (timm)": timm_mixer,
    "NF-ResNet-26 (timm)": timm_nfnet,
}


def wanted_sum(model: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """The sum of clipped gradients by a loop over single examples, and the clip: the median of their norms."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for row in range(len(x)):
        loss = functional.cross_entropy(model(x[row : row + 1]), y[row : row + 1])
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        given = zip(parameters, found, strict=True)
        rows.append(torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in given]).double())
    norms = torch.stack([row.norm() for row in rows])
    clip = float(norms.median())
    return sum(row * min(1.0, clip / float(norm)) for row, norm in zip(rows, norms, strict=True)), clip


def distance(found: Any, wanted: Any) -> float:
    return float((found.double() - wanted).norm() / wanted.norm())
