"""Layers with options that have no effect, that hide inputs, or that cannot be copied."""

from __future__ import annotations

import threading

import torch
from honest_twins import HonestHead, HonestScalars, twin  # test_broken_twins adds this folder to the path
from torch import nn

import protgraph as pg


@twin("options")
class OptionWithoutEffect(HonestScalars):
    def __init__(self, fields, *, dim: int = 8, temperature: float = 1.0):
        super().__init__(fields, dim=dim)


@twin("options")
class IgnoredSwitch(HonestScalars):
    def __init__(self, fields, *, dim: int = 8, residual: bool = True):
        super().__init__(fields, dim=dim)
        self.residual = residual


@twin("options")
class IgnoredChoice(HonestScalars):
    def __init__(self, fields, *, dim: int = 8, reduce: str = "mean"):
        super().__init__(fields, dim=dim)
        if reduce not in ("mean", "sum", "max"):
            raise pg.OptionError(f"reduce={reduce!r}. Allowed: mean, sum or max.")


@twin("options")
class IgnoredWidth(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=8)


@twin("options")
class DropoutThatIsIgnored(HonestScalars):
    def __init__(self, fields, *, dim: int = 8, dropout: float = 0.0):
        super().__init__(fields, dim=dim)
        self.dropout = nn.Dropout(dropout)


@twin("copies")
class LambdaAsAttribute(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.act = lambda x: x.tanh()

    def forward(self, f):
        return {"h": self.act(super().forward(f)["h"])}


@twin("copies")
class LocalFunctionAsAttribute(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)

        def act(x):
            return x.tanh()

        self.act = act

    def forward(self, f):
        return {"h": self.act(super().forward(f)["h"])}


_SHARED: dict[int, nn.Linear] = {}


@twin("copies", first="seed")
class WeightsOfAllInstances(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        width = self.scalar_width("h")
        self.other = _SHARED.setdefault(width, nn.Linear(width, dim)) if dim == 8 else self.other


class _Holder:
    """A parameter of the class."""

    scale: nn.Parameter | None = None


@twin("copies", first="gradients")
class ParameterOfTheClass(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        if _Holder.scale is None:
            _Holder.scale = nn.Parameter(torch.tensor([1.5, 2.0]).repeat(dim // 2))
        self.scale = _Holder.scale

    def forward(self, f):
        return {"h": super().forward(f)["h"] * self.scale}


class _Unpickled:
    """An object that loses its value when it is pickled."""

    def __init__(self, value):
        self.value = value

    def __getstate__(self):
        return {"value": 0.0}


@twin("copies", first="autocast")
class LosesAValueWhenPickled(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.offset = _Unpickled(0.5)

    def forward(self, f):
        return {"h": super().forward(f)["h"] + self.offset.value}


@twin("copies", first="global_state")  # the first check that copies a layer
class HoldsALock(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.lock = threading.Lock()


@twin("rotation")
class HidesThatItAcceptsVectors(HonestScalars):
    conformity = pg.Conformity(inputs={"h": "16x0e"})

    def __init__(self, fields, *, dim: int = 8):
        pg.GraphLayer.__init__(self, fields)
        self.own, self.other = nn.Linear(fields["h"].dim, dim), nn.Linear(fields["h"].dim, dim)
        self.declare(h=f"{dim}x0e")


@twin("rotation")
class HidesVectorsBehindAFieldSpec(HidesThatItAcceptsVectors):
    conformity = pg.Conformity(inputs={"h": pg.FieldSpec("h", "node", "16x0e")})


@twin("rotation")
class HeadThatHidesVectors(HonestHead):
    conformity = pg.Conformity(inputs={"h": "16x0e"})

    def __init__(self, fields, target):
        pg.Head.__init__(self, fields, target)
        self.linear = nn.Linear(fields["h"].dim, target.size)
        self.declare(logits=pg.FieldSpec("logits", "node", f"{target.size}x0e"))


class _AutocastInside(HonestScalars):
    """A layer that computes in another type than the user chose."""

    device_type = "cpu"

    def forward(self, f):
        with torch.autocast(self.device_type, torch.bfloat16):
            h = super().forward(f)["h"]
        return {"h": h.to(f["h"].dtype)}


@twin("float32")
class AutocastInside(_AutocastInside):
    pass


@twin("autocast")
class IndexAddOfTwoTypes(HonestScalars):
    def forward(self, f):
        edges, h = f["edges"], f["h"]
        total = torch.zeros(len(h), self.other.out_features, dtype=h.dtype, device=h.device)
        total = total.index_add(0, edges.index[1], edges.source(self.other(h)))
        return {"h": self.own(h) + total / (1 + edges.count)[:, None]}


@twin("autocast")
class RefusesBfloat16(HonestScalars):
    def forward(self, f):
        h = self.other(f["h"])
        if h.dtype not in (torch.float32, torch.float64):
            raise TypeError("only float32")
        return {"h": self.own(f["h"]) + f["edges"].mean(f["edges"].source(h))}


@twin("numbering")
class ReadsAuthorNumbers(HonestScalars):
    reads = ("h", "edges", "res_id")

    def forward(self, f):
        return {"h": super().forward(f)["h"] + torch.sin(f["res_id"].to(f["h"]))[:, None]}


@twin("numbering")
class ParityOfTheAuthorNumber(HonestScalars):
    reads = ("h", "edges", "res_id")

    def forward(self, f):
        return {"h": super().forward(f)["h"] * (1 + f["res_id"] % 2)[:, None]}
