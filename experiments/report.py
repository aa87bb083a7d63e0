"""The report: all records as one Markdown file and one HTML page, with the verdicts in one table at the top.

Nothing is measured here, and no figure is typed: a report can be made again from the records at any time. Statements
of a record that turned out untrue are replaced by the corrections of its experiment.
"""

from __future__ import annotations

import base64
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.experiment import MEANINGS, RESULTS, Experiment, Record, Verdict, best_record
from experiments.tables import HOW, ResultTable, markdown_line

PAGE = "report.html"
USUAL = "learned_against_usual.md"
ABOUT_USUAL = (
    "How learned baselines compare with the usual ones on ten problems, and which goals they miss (measured before "
    "the audit told leak from invention, with its recommendations of then)"
)
# What is called the paper's loss is not minimised as the paper does it. Said once, for all experiments.
PAPERS_LOSSES = (
    "The paper's losses: where absentia's search minimises L_Shapley or L_marginal (table-4, fig-8, the tables of "
    "fig-3 and cost, L_Shapley in table-1), the loss also has two terms that decide ties, with a weight of 1 %; the "
    "search starts again from the mean, the median or the middle of the bounds if one of them is lower than where it "
    "ended; and in table-4, fig-8, the tables of fig-3 and those of cost that are not called gradient alone, it "
    "sweeps: it tries the bounds and quantiles of the data for one value at a time. The paper has none of this. "
    "Elsewhere (L_marginal on images, table-7, table-8, the published schedule of cost), the loss is taken alone."
)
_HEADS = ("experiment", "the paper claims", "ours", "verdict", "reason")
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
    "td,th{border:1px solid #bbb;padding:.25em .6em;text-align:left;vertical-align:top}th{background:#eee}"
    "img{max-width:100%}.note{color:#444}"
)


def write_report(experiments: Sequence[Experiment], folder: Path = RESULTS, markdown: Path | None = None) -> Path:
    """Write RESULTS.md beside the folder of records and a page into it, and return the path of the first."""
    entries = [(experiment, best_record(folder, experiment.name)) for experiment in experiments]
    path = folder.parent / "RESULTS.md" if markdown is None else markdown
    path.write_text(as_markdown(entries, folder), encoding="utf-8")
    (folder / PAGE).write_text(as_html(entries, folder), encoding="utf-8")
    return path


def verdict_of(experiment: Experiment, record: Record) -> Verdict:
    """Judge a record; one without any figures is untestable, or not measured."""
    figures = record.figures()
    if figures:
        return experiment.judge(figures)
    reasons = [part.missing for part in record.parts.values() if part.missing]
    if reasons:
        return Verdict("untestable", "–", " ".join(reasons))
    return Verdict("not measured", "–", "")


def corrected_tables(experiment: Experiment, record: Record, part: str) -> list[ResultTable]:
    """Return the tables of a part, with the experiment's corrections in their notes."""
    found = record.parts[part].found
    if found is None:
        return []
    tables = []
    for table in found.tables:
        note = table.note
        for correction in experiment.corrections:
            if correction.part == part:
                note = note.replace(correction.said, correction.now)
        tables.append(replace(table, note=note))
    return tables


def as_markdown(entries: Sequence[tuple[Experiment, Record]], folder: Path) -> str:
    """Write the report as Markdown; links lead into the folder of the records."""
    lines = ["# The paper's experiments", ""]
    for paragraph in _introduction(entries):
        lines += [paragraph, ""]
    if (folder / USUAL).is_file():
        lines += [f"{ABOUT_USUAL}: [{USUAL}]({folder.name}/{USUAL}).", ""]
    lines += [markdown_line(_HEADS), "|---|---|---|---|---|"]
    lines += [markdown_line(row) for row in _summary(entries, link=True)]
    for experiment, record in entries:
        lines += ["", f"## {experiment.name}", "", f"**{experiment.title}.** {experiment.settings}"]
        lines += [f"\n*{name}*: {note}" for name, note in _notes(experiment, record)]
        for name, part in record.parts.items():
            if part.found is not None:
                lines += ["", *(table.markdown(level=3) for table in corrected_tables(experiment, record, name))]
                lines += [f"![{experiment.title}]({folder.name}/{picture})" for picture in part.found.pictures]
    return "\n".join(lines) + "\n"


def as_html(entries: Sequence[tuple[Experiment, Record]], folder: Path) -> str:
    """Write the report as one HTML page that holds its pictures."""
    body = ["<h1>The paper's experiments</h1>"]
    body += [_paragraph(paragraph) for paragraph in _introduction(entries)]
    if (folder / USUAL).is_file():
        body.append(f'<p class="note">{html.escape(ABOUT_USUAL)}: <a href="{USUAL}">{USUAL}</a>.</p>')
    body.append(_rows(_HEADS, _summary(entries)))
    for experiment, record in entries:
        body.append(f'<h2 id="{experiment.name}">{experiment.name}: {html.escape(experiment.title)}</h2>')
        body.append(_paragraph(experiment.settings))
        body += [_paragraph(f"{name}: {note}") for name, note in _notes(experiment, record)]
        for name, part in record.parts.items():
            if part.found is not None:
                body += [_table(table) for table in corrected_tables(experiment, record, name)]
                body += [_picture(folder / picture, experiment.title) for picture in part.found.pictures]
    head = f'<meta charset="utf-8"><title>The paper\'s experiments</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _introduction(entries: Sequence[tuple[Experiment, Record]]) -> list[str]:
    """Return the paragraphs before the table of verdicts."""
    paragraphs = [_about(entries)]
    again = [f"{experiment.name} ({experiment.again})" for experiment, _ in entries if experiment.again]
    if again:
        paragraphs.append(f"These figures will be measured again: {'; '.join(again)}.")
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items())
    paragraphs.append(f"The verdicts: {meanings}.")
    paragraphs.append(PAPERS_LOSSES)
    return paragraphs


def _about(entries: Sequence[tuple[Experiment, Record]]) -> str:
    """Count the verdicts on the paper's claims."""
    words = Counter(verdict_of(*entry).word for entry in entries if entry[0].claims)
    others = sorted(words.keys() - MEANINGS.keys())
    counts = ", ".join(f"{word} {words[word]}" for word in [*MEANINGS, *others] if words[word])
    times = {experiment.name: minutes_on_two_cores(experiment, record) for experiment, record in entries}
    longest = max(times, key=times.__getitem__, default="")
    slow = f"The longest, {longest}, takes about {times[longest]:.0f} minutes on two cores. " if longest else ""
    return (
        "Written by `python -m experiments report` from the records in `experiments/results`; not to be edited. "
        f"Of {sum(words.values())} experiments of the paper: {counts}. {slow}Where a part was measured at the quick "
        "size only, the text says so, and its verdict is preliminary."
    )


def minutes_on_two_cores(experiment: Experiment, record: Record) -> float:
    """Return the time of an experiment: its parts side by side, each on a core, then those that use all cores."""
    whole = [part.seconds for name, part in record.parts.items() if name not in experiment.many_jobs]
    spread = [part.seconds for name, part in record.parts.items() if name in experiment.many_jobs]
    return (max([0.0, sum(whole) / 2, *whole]) + sum(spread)) / 60


def _summary(entries: Iterable[tuple[Experiment, Record]], link: bool = False) -> list[list[str]]:
    rows = []
    for experiment, record in entries:
        verdict = verdict_of(experiment, record)
        claims = "; ".join(f"{claim.says} ({claim.place})" for claim in experiment.claims) or "– (beyond the paper)"
        sizes = {part.size for part in record.parts.values()} - {"full"}
        left = [name for name in experiment.parts if name not in record.parts]
        notes = ["quick size" if sizes == {part.size for part in record.parts.values()} else "partly quick size"]
        notes = notes * bool(sizes) + [f"without {', '.join(left)}"] * bool(left and record.parts)
        word = f"{verdict.word} ({'; '.join(notes)})" if notes else verdict.word
        name = f"[{experiment.name}](#{experiment.name})" if link else experiment.name
        rows.append([name, claims, verdict.ours, word, verdict.reason])
    return rows


def _notes(experiment: Experiment, record: Record) -> list[tuple[str, str]]:
    """Say of each part how it was measured, or why it was not."""
    notes = []
    for name in experiment.parts:
        part = record.parts.get(name)
        if part is None:
            notes.append((name, f"not measured; run `python -m experiments {experiment.name} --only {name}`"))
        elif part.missing:
            notes.append((name, f"not to be had: {part.missing}"))
        else:
            took = f"{part.seconds:,.0f} s" if part.seconds else "time not kept"
            notes.append((name, f"{part.size} size, seed {part.seed}, {took}; {part.versions}"))
    return notes


def _paragraph(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def _table(table: ResultTable) -> str:
    title, rows = f"<h3>{html.escape(table.title)}</h3>", _rows(table.columns, table.rows)
    if not table.sentences:
        return f"{title}{_paragraph(table.note)}{rows}"
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in table.sentences)
    return f"{title}{rows}<details><summary>{HOW}</summary><ul>{items}</ul></details>"


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{html.escape(head)}</th>" for head in heads)]
    lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _picture(path: Path, title: str) -> str:
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<p><img alt="{html.escape(title)}" src="data:image/png;base64,{content}"></p>'
