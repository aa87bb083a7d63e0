"""The page of the report: results become sections, of numbers, texts and images; sections become one HTML file.

The page holds its styles, scripts and data, and its content security policy allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor

from absentia.auditing import Audit, CrossAudit
from absentia.auditing.verdict import PRACTICAL_LEAK
from absentia.coalitions import coalition_sizes
from absentia.data import blocks
from absentia.errors import wrong
from absentia.explanation import Explanation
from absentia.learning import LearnedBaseline
from absentia.plots.absence_plots import name_unit, two_errors, two_errors_of_length
from absentia.plots.drawable import answer, ends, entries_of, largest_and_others, owner_names, players_of
from absentia.plots.look import LOOKS, looks_of
from absentia.storage import check_folder, write_whole
from absentia.terms import Interactions
from absentia.text import count_of, with_error, written
from absentia.version import __version__

# The page shows this many samples at most, and fewer if they have very many players.
MOST_SAMPLES, _MOST_VALUES = 200, 100_000
KEPT_UP_TO_EACH_ORDER = 15  # of the strongest effects of a sample, which are shown
_MOST_BARS, _MOST_ROWS = 20, 200  # players in a chart and in a table
# Coalitions that are processed at once, and up to which sparsity curves are computed.
_AT_A_TIME, _MOST_REBUILT = 2**17, 2**22
_MOST_DOTS = 400  # samples whose R is drawn, evenly picked
_CHARTS = ("leak", "invention", "score", "length", "distance", "R", "strength")
_LEAST_SHARE = 0.005  # of resamples that an absence wins, from which it is named
_PERCENT = ("removed", "low_orders", "wins")
_WHOLE = ("evaluations", "players_outside")
# The page shows at most this many baselines, entries and checks of the loss.
_MOST_OWNERS, _MOST_ENTRIES, _MOST_CHECKS = 50, 200, 300
_MEDIAN = 3  # the row of the quantiles
# The images of a section have about this many bytes before compression. Their sides have this many pixels at most,
# and are not reduced below this many.
_ALL_BYTES, _LARGEST_SIDE, _SMALLEST_SIDE = 1_500_000, 128, 16
_LIBRARIES = ("vendor/d3.min.js", "vendor/plot.umd.min.js")
SCRIPTS = (*_LIBRARIES, "charts.js", "explanation.js", "audit.js", "baseline.js", "report.js")
# The charting library adds this style to each of its charts, so the policy must allow it.
_CHART_STYLE = "vendor/plot.inline.css"


class Section(NamedTuple):
    """One result, prepared for the page. Python writes every number that is shown; scripts only place marks."""

    kind: Literal["explanation", "audit", "cross", "baseline"]  # selects the template and the script
    heading: str
    answer: str  # the first sentence
    result: Any  # what the template reads
    data: Mapping[str, Any]  # what it needs beside the result, and what the script draws, as JSON


def explanation_section(explanation: Explanation) -> Section:
    """Return the section of an explanation."""
    names, interactions, total = explanation.names, explanation.interactions, explanation.samples
    shown = min(total, MOST_SAMPLES, max(1, _MOST_VALUES // len(names)))
    samples = [_sample(explanation, number) for number in range(shown)]
    players = explanation.players
    text = players.integer or (len(players.shape) == 2 and not players.is_image)  # tokens, or their embedding
    data: dict[str, Any] = {"names": list(names), "samples": samples, "text": text, "single": players.single.tolist()}
    if total > 1:
        data["overall"] = explanation.shapley.ranked(None)[:_MOST_BARS]
    if interactions is not None:
        for sample, found in zip(samples, summarise(interactions, shown), strict=True):
            sample |= found
        data["counts"] = curve_counts(len(names))
    if players.is_image:
        data["picture"] = _sample_images(explanation, samples)
    heading = f"Explanation of {count_of(total, 'sample')}, {len(names)} players"
    return Section("explanation", heading, samples[0]["answer"], explanation, data)


def _sample(explanation: Explanation, number: int) -> dict[str, Any]:
    """Return the numbers of one sample: to draw, and as they are shown."""
    attribution, name, both = explanation.shapley, explanation.sample_name(number), ends(explanation, number)
    values = attribution.values[number]
    first, others = largest_and_others(values, _MOST_BARS)
    found = {
        "choice": f"{name}: {both[1]}",
        "answer": f"{name[0].upper()}{name[1:]}: {answer(explanation, number)}",
        "ends": both,
        "output": numbers(explanation.outputs[number]),
        "base": numbers(explanation.base_values[number]),
        "values": numbers(values),
        "ranked": attribution.ranked(number)[:_MOST_ROWS],
        "bars": len(first),
        "most": attribution.ranked(number)[0][1].split(" ± ")[0].lstrip("+−"),
    }
    if others:
        rest = float(values[others].sum())
        found["others"] = [len(others), float(f"{rest:.6g}"), written(rest, 4, plus=True)]
    if bool((attribution.errors > 0).any()):
        found["errors"] = numbers(attribution.errors[number], digits=2)
    if explanation.order_shapley is not None:
        found["orders"] = texts(explanation.order_shapley.values[number], 3, plus=True)
    for key, rows in {"inputs": explanation.x, "standIns": explanation.stand_ins}.items():
        if rows is not None and not explanation.players.is_image:
            (found[key],) = explanation.players.texts(rows[number : number + 1])
    return found


def _sample_images(explanation: Explanation, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Add images of inputs and stand-ins to the samples; return their size and the player of each pixel."""
    count, (height, width) = len(samples), explanation.players.shape[-2:]
    given = {"image": explanation.x, "standIn": explanation.stand_ins}
    images = {name: x[:count].reshape(count, -1, height, width) for name, x in given.items() if x is not None}
    scale = ImageScale.of(chain.from_iterable(images.values()), count=len(images) * count)
    for number, sample in enumerate(samples):
        sample |= {name: scale.address(some[number]) for name, some in images.items()}
    size = f"{scale.height} × {scale.width} of {height} × {width} pixels"
    shared: dict[str, Any] = {"width": scale.width, "height": scale.height}
    shared["shrunk"] = size if (scale.height, scale.width) != (height, width) else ""
    labels = explanation.players.labels.reshape(-1, height, width)
    if bool((labels == labels[:1]).all()):  # otherwise a pixel has several players
        shared["labels"] = scale.labels(labels[0])
    return shared


def summarise(interactions: Interactions, samples: int) -> Iterator[dict[str, Any]]:
    """Yield the kept effects, the strength by order and the sparsity curve of each of the first samples."""
    players = len(interactions.names)
    for few in blocks(samples, max(1, _AT_A_TIME >> players)):
        effects, noise = interactions.effects[few].detach().cpu(), interactions.noise[few].cpu()
        part = replace(interactions, effects=effects, noise=noise)
        shares, sure = 100 * part.by_order().ratios, part.measurable
        curve = 100 * sparsity_curve(part) if samples * 2**players <= _MOST_REBUILT else None
        for row, kept in enumerate(strongest(effects)):
            sets = zip(kept.tolist(), texts(effects[row, kept], plus=True), sure[row, kept].tolist(), strict=True)
            # A third entry marks an effect within rounding error.
            shown = [[number, text] if certain else [number, text, 1] for number, text, certain in sets]
            found = {"effects": shown, "shares": texts(shares[row, 1:], 3)}
            yield found if curve is None else found | {"curve": texts(curve[row], 3)}


def strongest(effects: Float[Tensor, "samples coalitions"]) -> list[Int[Tensor, " kept"]]:
    """Return the numbers of the coalitions to keep, the strongest effect first, without v(∅)."""
    strength, kept = effects.abs(), []
    sizes = coalition_sizes(effects.shape[1].bit_length() - 1)
    best = torch.empty(len(effects), 0, dtype=torch.int64)
    for order in range(1, int(sizes.max()) + 1):
        best = torch.cat([best, (sizes == order).nonzero()[:, 0].expand(len(effects), -1)], dim=1)
        best = best.gather(1, strength.gather(1, best).topk(min(KEPT_UP_TO_EACH_ORDER, best.shape[1])).indices)
        kept.append(best)
    rows = [row.unique() for row in torch.cat(kept, dim=1)]
    return [row[one[row].argsort(descending=True)] for one, row in zip(strength, rows, strict=True)]


def curve_counts(players: int) -> list[int]:
    """Return the numbers of effects at which a sparsity curve has points."""
    return [2**power for power in range(players)] + [2**players - 1]


def sparsity_curve(interactions: Interactions) -> Float[Tensor, "samples counts"]:
    """Return the error of values rebuilt from the strongest effects, for each of `curve_counts`; NaN if constant."""
    strength = interactions.effects.abs()
    strength[:, 0] = torch.inf
    ranked = strength.sort(1, descending=True).values
    values = interactions.reconstruct()
    spread = values.std(1, correction=0)
    spread = torch.where(spread > interactions.noise, spread, torch.nan)
    errors = [
        (interactions.reconstruct(keep=strength >= ranked[:, count, None]) - values).square_().mean(1).sqrt_()
        for count in curve_counts(len(interactions.names))
    ]
    return torch.stack(errors, dim=1) / spread[:, None]


def audit_section(audit: Audit) -> Section:
    """Return the section of an audit; absences are in its order, the recommended one first."""
    order = torch.tensor(audit.order)
    methods = [audit.methods[number] for number in order]
    columns = {key: values[order].double() for key, values in audit.columns().items()}
    curve = audit.curve
    scores = curve.scores.mean(1)
    per_sample = audit.removal.ratios[order].mean(-1)
    step = -(-max(per_sample.shape[1], 1) // _MOST_DOTS)
    data: dict[str, Any] = {
        "methods": methods,
        "recommended": audit.recommended is not None,
        "sure": how_sure(audit),
        "looks": [(look["color"], look["marker"]) for look in looks_of(methods)],
        "unit": name_unit(curve.unit),
        "figures": _figures(columns),
        "values": {key: numbers(columns[key]) for key in _CHARTS},
        "whiskers": {key: _whiskers(key, columns) for key in _CHARTS},
        "leakLimit": numbers(_least_leak(audit)),
        "inventionLimit": numbers(torch.tensor(curve.limit)),
        "unmasked": numbers(audit.removal.unmasked.value),
        "perSample": numbers(per_sample[:, ::step], digits=3),
        "sizes": numbers(curve.sizes),
        "prior": numbers(curve.prior.nanmean()),
        "scores": texts(scores[order], 3),
        "orders": texts(audit.companions.order_profile().value[order], 3),
        "agreement": texts(audit.companions.agreement()[order][:, order], 2),
    }
    if curve.inventions is not None:
        data["recalibrated"] = texts((scores - curve.inventions)[order], 3)
    heading = f"Audit of {len(methods)} absences on {count_of(audit.record.samples, 'sample')}"
    return Section("audit", heading, audit.verdict[0], audit, data)


def how_sure(audit: Audit) -> str:
    """Say in which share of resamples the answer is the same, or which absences are level; nothing if not judged."""
    judgement = audit.judgement
    if math.isnan(audit.confidence):
        return ""
    answer = len(audit.methods) if judgement.winner is None else judgement.winner
    names = (*audit.methods, "none")
    by_share = sorted(range(len(names)), key=lambda number: -judgement.shares[number])
    shown = [number for number in by_share if judgement.shares[number] >= _LEAST_SHARE]
    if judgement.clear:
        sentence = f"The same answer in {_percent(audit.confidence)} of resamples of the samples and draws."
        others = [f"{names[number]} {_percent(judgement.shares[number])}" for number in shown if number != answer]
        return f"{sentence} In the others: {', '.join(others)}." if others else sentence
    won = [f"{names[number]} wins {_percent(judgement.shares[number])}" for number in shown]
    sentence = f"Level: of resamples of the samples and draws, {', '.join(won)}."
    if judgement.samples_needed:
        return f"{sentence} About {judgement.samples_needed} times as many samples would tell them apart."
    return f"{sentence} More samples would not tell them apart."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _least_leak(audit: Audit) -> Float[Tensor, ""]:
    """Return the least leak that counts; NaN if it was not measured, or if entries that stay present may tell."""
    if audit.fully_masked is None or not audit.curve.all_absent:
        return torch.tensor(torch.nan)
    return PRACTICAL_LEAK * audit.fully_masked.prior.nanmean()


def _figures(columns: Mapping[str, Shaped[Tensor, " methods"]]) -> dict[str, list[str]]:
    """Return the figures of each absence as they are shown, by name, with their errors."""
    figures = {}
    for key, values in columns.items():
        if not key.endswith("_error"):
            errors = columns.get(f"{key}_error", torch.full_like(values, torch.nan))
            figures[key] = _texts(key, values, errors)
    return figures


def _whiskers(key: str, columns: Mapping[str, Shaped[Tensor, " methods"]]) -> list[Any]:
    """Return the ends of two standard errors around a figure of each absence: all lower ones, all upper ones."""
    errors = columns.get(f"{key}_error", torch.zeros_like(columns[key]))
    ends = two_errors_of_length if key == "length" else two_errors
    return [numbers(end) for end in ends(columns[key], errors)]


def _texts(key: str, values: Tensor, errors: Tensor) -> list[str]:
    """Return a figure of each absence as it is shown."""
    if key in _WHOLE:
        return [f"{value:,.0f}" for value in values.tolist()]
    if key == "agreement":
        return texts(values, 2)  # with as many digits as that of two absences
    factor = 100 if key in _PERCENT else 1
    return [with_error(*pair) for pair in (factor * torch.stack([values, errors], dim=1)).tolist()]


def cross_section(cross: CrossAudit) -> Section:
    """Return the section of a cross audit: a table."""
    sentence = "R of every absence (column) against every reference (row): 0 is that of white noise; lower is better."
    return Section("cross", f"Cross audit of {len(cross.methods)} absences", sentence, cross, data={})


def baseline_section(learned: LearnedBaseline) -> Section:
    """Return the section of a learned baseline."""
    record = learned.record
    if players_of(learned).is_image:
        shown = _baseline_images(learned)
    else:
        names, values, written_values, levels, undetermined = entries_of(learned, _MOST_ENTRIES, _MOST_OWNERS)
        shown = {"names": names, "values": numbers(values), "texts": written_values, "undetermined": undetermined}
        shown |= {} if levels is None else {"quantiles": numbers(levels.T), "levels": texts(levels.T)}
    how = "converged" if record.converged else "did not converge"
    loss = "not measured"
    if not math.isnan(learned.loss):
        loss = f"{written(learned.loss, 4)} ({record.loss}, orders up to {record.orders})"
    whose = "all samples" if learned.share == "all" else f"each {learned.share}"
    heading = f"Baseline learned for {whose}"
    sentence = f"{learned.outcome} The search {how}: {record.stopped}. Loss: {loss}.".strip()
    checks = torch.linspace(0, len(learned.history) - 1, min(len(learned.history), _MOST_CHECKS)).round().long()
    kept = learned.history[checks]
    history = [[*numbers(row), f"{row[0]:,.0f} evaluations: {written(float(row[1]), 4)}"] for row in kept]
    data = shown | {"colour": LOOKS["learned"][0], "loss": record.loss, "history": history}
    data["owners"] = owner_names(learned)[:_MOST_OWNERS]
    return Section("baseline", heading, sentence, learned, data)


def _baseline_images(learned: LearnedBaseline) -> dict[str, Any]:
    """Return images of the baselines, and of the median of the data."""
    values = (learned.values[None] if learned.share == "all" else learned.values)[:_MOST_OWNERS]
    levels = () if learned.quantiles is None else learned.quantiles
    owners, data = ([image[None].flatten(0, -3) for image in rows] for rows in (values, levels))
    scale = ImageScale.of(chain(owners, data), count=len(owners) + bool(data))
    found: dict[str, Any] = {"images": [scale.address(image) for image in owners]}
    return found | {"median": scale.address(data[_MEDIAN])} if data else found


def numbers(values: Shaped[Tensor, " *shape"], digits: int = 6) -> Any:
    """Convert a tensor to nested lists of rounded numbers to draw; NaN and infinity become None."""

    def short(value: float) -> float | None:
        value = float(f"{value:.{digits}g}")
        if value.is_integer() and abs(value) < 1e15:
            return int(value)
        return value if math.isfinite(value) else None

    return np.vectorize(short, otypes=[object])(values.detach().cpu()).tolist()


def texts(values: Shaped[Tensor, " *shape"], digits: int = 4, *, plus: bool = False) -> Any:
    """Convert a tensor to nested lists of numbers as they are shown."""
    write = np.vectorize(lambda value: written(value, digits, plus=plus), otypes=[object])
    return write(values.detach().cpu()).tolist()


class ImageScale(NamedTuple):
    """The range of values and the size in pixels that all images of a section share."""

    low: float
    high: float
    height: int
    width: int

    @classmethod
    def of(cls, images: Iterable[Shaped[Tensor, "channels height width"]], count: int) -> ImageScale:
        """Return the scale that fits these images, of which the page will hold ``count``."""
        low, high, channels, height, width = math.inf, -math.inf, 1, 1, 1
        for image in images:  # one by one: a copy of all in double precision may not fit into the memory
            channels, height, width = image.shape
            finite = image[torch.isfinite(image)]
            if len(finite):
                low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        side = math.sqrt(_ALL_BYTES / (channels * max(count, 1)))
        factor = min(1.0, int(min(max(side, _SMALLEST_SIDE), _LARGEST_SIDE)) / max(height, width))
        low, high = (low, high) if low <= high else (0.0, 1.0)
        return cls(low, high, max(1, round(height * factor)), max(1, round(width * factor)))

    def address(self, image: Shaped[Tensor, "channels height width"]) -> str:
        """Return an image as a PNG in a data address."""
        small: Float[Tensor, "channels height width"] = image.detach().cpu().double()
        if small.shape[1:] != (self.height, self.width):
            small = torch.nn.functional.adaptive_avg_pool2d(small, (self.height, self.width))
        shades = (small - self.low) / max(self.high - self.low, 1e-12)
        return png((shades.clamp(0, 1).nan_to_num() * 255).round().to(torch.uint8).permute(1, 2, 0))

    def labels(self, labels: Int[Tensor, "height width"]) -> list[int]:
        """Return the label at the middle of each pixel, row by row."""
        rows = ((torch.arange(self.height) + 0.5) * labels.shape[0] / self.height).long()
        columns = ((torch.arange(self.width) + 0.5) * labels.shape[1] / self.width).long()
        return labels.cpu()[rows][:, columns].flatten().tolist()


def png(pixels: UInt8[Tensor, "height width channels"]) -> str:
    """Encode pixels of one channel (grey) or three (red, green, blue) as a PNG in a data address."""
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    lines = b"".join(b"\x00" + row.numpy().tobytes() for row in pixels)  # each line begins with its filter: none
    file = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")):
        file += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return "data:image/png;base64," + base64.b64encode(file).decode()


_SECTIONS: dict[type, Any] = {
    Explanation: explanation_section,
    Audit: audit_section,
    CrossAudit: cross_section,
    LearnedBaseline: baseline_section,
}


def write_report(results: Any, path: str | Path, *, title: str | None = None) -> Path:
    """Write explanations, audits and learned baselines to one HTML file that any browser opens, without a network.

    Explanations come first, each with its answer in one sentence and its picture, then audits, then baselines. The
    file is complete whenever it exists. Large results are trimmed, and the page says to what.

    Parameters
    ----------
    results : Explanation, Audit, CrossAudit, LearnedBaseline, sequence or mapping
        One result, several, or several by name, which is shown in their headings.
    path : str or Path
        The file to write.
    title : str, optional
        Title of the page.

    Examples
    --------
    >>> import tempfile
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = ab.write_report(explanation, f"{folder}/report.html", title="A product")
    ...     "<title>A product</title>" in page.read_text(encoding="utf-8")
    True
    """
    named, target = _by_name(results), Path(path)
    if target.is_dir():
        raise wrong("path", "name a file", f"the folder {target}", f"Write to {target / 'report.html'}, for example.")
    check_folder("path", target)
    sections = []
    for name, result in sorted(named, key=lambda one: list(_SECTIONS).index(type(one[1]))):
        section = _SECTIONS[type(result)](result)
        sections.append(section._replace(heading=f"{name}: {section.heading}") if name else section)
    text = render_page(title or "What absence means to the model", sections)
    write_whole(target, lambda there: there.write_text(text, encoding="utf-8"))
    return target


def _by_name(results: Any) -> list[tuple[str, Any]]:
    """Return results with their names, which are empty where none are given."""
    if isinstance(results, Mapping):
        named = [(str(name), result) for name, result in results.items()]
    else:
        several = isinstance(results, Sequence) and not isinstance(results, str | bytes)
        named = [("", result) for result in (results if several else [results])]
    if not named:
        raise wrong("results", "hold at least one result", "none")
    for _, result in named:
        if type(result) not in _SECTIONS:
            then = "Read a saved result with absentia.load(path) first." if isinstance(result, str | Path) else ""
            raise wrong("results", "hold explanations, audits or learned baselines", type(result).__name__, then)
    return named


def render_page(title: str, sections: Sequence[Section]) -> str:
    """Return the HTML of the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    scripts, style = [_asset(name) for name in SCRIPTS], _asset("report.css")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:",
        f"script-src {' '.join(map(_hash, scripts))}",
        f"style-src {_hash(style)} {_hash(_asset(_CHART_STYLE))}",
        "require-trusted-types-for 'script'",  # no text becomes markup
    )
    templates = Environment(loader=PackageLoader("absentia.report"), autoescape=True, undefined=StrictUndefined)
    templates.trim_blocks = templates.lstrip_blocks = True
    templates.filters["count_of"] = count_of
    templates.globals |= {"with_error": with_error, "written": written}
    data = json_block([{"kind": section.kind, **section.data} for section in sections])
    return templates.get_template("report.html.jinja").render(
        title=title, sections=sections, policy="; ".join(policy), style=style, scripts=scripts, data=data,
        version=__version__,
    )  # fmt: skip


def json_block(data: Any) -> str:
    """Return JSON that can stand inside a script element: no text in it can end that element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate({ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


@lru_cache(maxsize=16)
def _asset(name: str) -> str:
    return resources.files("absentia.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which the policy allows a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
