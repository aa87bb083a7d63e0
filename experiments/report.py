"""The report: all records as a page that is read in three minutes, and a page for each experiment.

Nothing is measured here, and no figure is typed: a report can be made again from the records at any time. Statements
of a record that turned out untrue are replaced by the corrections of its experiment.
"""

from __future__ import annotations

import base64
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.assumptions import ASSUMPTIONS
from experiments.experiment import (
    MEANINGS,
    RESULTS,
    Claim,
    Experiment,
    Figures,
    Quantity,
    Record,
    Verdict,
    best_record,
    other_seeds,
)
from experiments.network_list import networks
from experiments.tables import HOW, ResultTable, markdown_line, mean_and_error

PAGE = "report.html"
SAME = 1e-9  # relative difference of figures that no seed changes
PAGES = "pages"
SETTINGS = "settings"  # the page of what holds for all experiments
USUAL = "learned_against_usual.md"
ABOUT_USUAL = (
    "How learned baselines compare with the usual ones on ten problems, with three seeds each, and which goals they "
    "miss (measured before the audit told leak from invention, with its recommendations of then)"
)
# What is called the paper's loss. Said once, for all experiments.
PAPERS_LOSSES = (
    "L_Shapley and L_marginal are those of Eq. 7, with the orders 0 … λ, along the gradient from the start alone. "
    "What absentia can add has names: ties (two small terms that decide between level values), restarts (from the "
    "mean, the median or the middle of the bounds), sweeps (over bounds and quantiles of the data). Parts that were "
    "not measured again have orders below λ, as the released code, and some of them have these additions; their "
    "pages say so."
)
EXPECTATIONS = (
    "A rule is the sentence by which a verdict is found; each has its day, and says whether the result was known. "
    "“Changed” is every rule that replaced an earlier one. “Before” is said only of what was not yet measured when "
    "the rule was fixed. Nearly all rules were fixed or changed after a review of earlier ones, so that most knew "
    "their results."
)
ERRORS = (
    "Errors are standard errors: over networks and draws of several seeds where there are several, unless no seed "
    "changes the figure, and otherwise over samples, functions, classes or images of one, as the pages say. Exact "
    "figures have none, and some records hold none. The column of seeds counts them. A claim with several seeds is "
    "judged by the first, and its page says what the others give."
)
# The meanings of the verdicts and of the columns, for the page that is read in three minutes.
IN_SHORT = (
    "**As stated**: in the paper's own setting. **In one reading**: in ours, where it is silent. **By another "
    "method**: by another loss or search. Errors are standard errors, over seeds if several. Rules: their day, "
    "before or after the result or a trial, “changed” if they replaced others."
)
CLAIM_HEADS = ("claim", "printed", "ours ± error", "seeds", "verdict", "rule fixed")
SHORT_HEADS = ("claim", "printed", "ours ± error", "seeds", "verdict", "rule")
NETWORK_HEADS = ("data", "network", "epochs", "accuracy", "read by")
ASSUMPTION_HEADS = ("setting", "stated in the paper", "released code", "ours")
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
    "td,th{border:1px solid #bbb;padding:.25em .6em;text-align:left;vertical-align:top}th{background:#eee}"
    "img{max-width:100%}.note{color:#444}"
)

Entry = tuple[Experiment, Record]


Repeats = dict[int, Figures]  # the figures of other seeds


@dataclass(frozen=True)
class JudgedClaim:
    """A claim of an experiment with its verdict, its figures in short, and the seeds that they are found from."""

    experiment: Experiment
    claim: Claim
    verdict: Verdict
    seeds: tuple[int, ...]
    quantities: tuple[Quantity, ...]  # over the seeds, if there are several
    each: tuple[tuple[int, tuple[Quantity, ...], Verdict | None], ...]  # what each of several seeds gives
    notes: tuple[str, ...]  # on the size of the records, and on parts that are missing

    @property
    def words(self) -> str:
        """The verdict in words."""
        if self.notes:
            return f"{self.verdict.words}; {', '.join(self.notes)}"
        return self.verdict.words

    @property
    def seed_count(self) -> str:
        """The number of seeds; exact figures have none."""
        if not self.seeds or (self.claim.line is not None and self.claim.line.exact):
            return "–"
        return f"{len(self.seeds)}"

    @property
    def ours_in_short(self) -> str:
        """The figures of the table of all claims."""
        if not self.quantities:
            return self.verdict.ours
        return ", ".join(str(quantity) for quantity in self.quantities)

    def cells(self) -> list[str]:
        """Return the row of the claim's own page."""
        says = f"{self.claim.says} ({self.claim.place})"
        return [says, self.claim.printed, self.verdict.ours, self.seed_count, self.words, self.claim.rule.when]

    def cells_in_short(self) -> list[str]:
        """Return the row of the table of all claims."""
        line = self.claim.line
        if line is None:
            says = self.claim.says
            printed = self.claim.printed
        else:
            says = line.says
            printed = line.printed
        word = self.verdict.word
        reading = self.verdict.which_in_short or self.verdict.which
        words = f"{word}: {reading}" if reading else word
        if self.notes:
            words += f"; {', '.join(self.notes)}"
        link = f"[{says}]({PAGES}/{self.experiment.name}.md)"
        return [link, printed, self.ours_in_short, self.seed_count, words, self.claim.rule.when_in_short]


def write_report(experiments: Sequence[Experiment], folder: Path = RESULTS, markdown: Path | None = None) -> Path:
    """Write RESULTS.md and the pages beside the folder of records and one HTML page into it; return the first."""
    entries = [(experiment, best_record(folder, experiment.name)) for experiment in experiments]
    path = folder.parent / "RESULTS.md" if markdown is None else markdown
    path.write_text(as_markdown(entries, folder), encoding="utf-8")
    pages = path.parent / PAGES
    pages.mkdir(exist_ok=True)
    for experiment, record in entries:
        page = pages / f"{experiment.name}.md"
        page.write_text(page_markdown(experiment, record, folder), encoding="utf-8")
    (pages / f"{SETTINGS}.md").write_text(settings_markdown(entries), encoding="utf-8")
    (folder / PAGE).write_text(as_html(entries, folder), encoding="utf-8")
    return path


def judged_claims(experiment: Experiment, record: Record, folder: Path | None = None) -> list[JudgedClaim]:
    """Judge the claims of an experiment by its record; the records of other seeds are in a folder."""
    repeats: Repeats = {}
    if folder is not None:
        repeats = {
            seed: record_of_seed.figures() for seed, record_of_seed in other_seeds(folder, experiment.name).items()
        }
    return [_judged(experiment, record, claim, repeats) for claim in experiment.claims]


def _judged(experiment: Experiment, record: Record, claim: Claim, repeats: Repeats) -> JudgedClaim:
    names = claim.parts or tuple(experiment.parts)
    parts = {name: record.parts[name] for name in names if name in record.parts}
    figures = {name: part.found.figures for name, part in parts.items() if part.found is not None}
    verdict = _verdict(claim, figures, [part.missing for part in parts.values() if part.missing])
    sizes = {part.size for part in parts.values()}
    notes = []
    if sizes - {"full"}:
        notes.append("partly quick size" if "full" in sizes else "quick size")
    left = [name for name in names if name not in parts]
    if left and parts:
        notes.append(f"without {', '.join(left)}")
    seeds = {part.seed for part in parts.values() if part.found is not None}
    quantities = _quantities(claim, figures)
    seed_results: list[tuple[int, tuple[Quantity, ...], Verdict | None]] = []
    for seed, of_seed in sorted(repeats.items()):
        seed_quantities = _quantities(claim, of_seed)
        if seed_quantities:
            judged = claim.judge(of_seed) if figures.keys() <= of_seed.keys() else None
            seed_results.append((seed, seed_quantities, judged))
            seeds.add(seed)
    over = _over_seeds([quantities, *(seed_quantities for _, seed_quantities, _ in seed_results)])
    if seed_results:
        seed_results.insert(0, (min(parts[name].seed for name in figures), quantities, verdict))
    by_seed = [judged.word for _, _, judged in seed_results if judged is not None]
    if len(set(by_seed)) > 1:
        notes.append(f"{by_seed.count(verdict.word)} of {len(by_seed)} seeds")
    return JudgedClaim(experiment, claim, verdict, tuple(sorted(seeds)), over, tuple(seed_results), tuple(notes))


def _quantities(claim: Claim, figures: Figures) -> tuple[Quantity, ...]:
    """Return the figures of the claim's line; none if a part that it reads is missing."""
    if claim.line is None or not set(claim.line.parts) <= figures.keys():
        return ()
    return tuple(claim.line.ours(figures))


def _over_seeds(of_seeds: Sequence[tuple[Quantity, ...]]) -> tuple[Quantity, ...]:
    """Average the figures of several seeds, with their standard errors over seeds."""
    first, *rest = of_seeds
    if not rest:
        return first
    combined = []
    for same in zip(*of_seeds, strict=True):
        values = [quantity.value for quantity in same]
        if max(values) - min(values) <= SAME * abs(values[0]):
            combined.append(same[0])  # the seed changes nothing: the error is that over samples
            continue
        mean, error = mean_and_error(values)
        combined.append(replace(same[0], value=mean, error=error))
    return tuple(combined)


def _verdict(claim: Claim, figures: Figures, reasons: Sequence[str]) -> Verdict:
    """Judge figures; a claim without any is untestable, or not measured."""
    if figures:
        return claim.judge(figures)
    if reasons:
        return Verdict("untestable", "–", " ".join(reasons))
    return Verdict("not measured", "–", "")


def summed_up(experiment: Experiment, record: Record) -> Verdict | None:
    """Return what an experiment beyond the paper found, or None without figures."""
    figures = record.figures()
    if experiment.beyond is None or not figures:
        return None
    return experiment.beyond(figures)


def corrected_tables(experiment: Experiment, record: Record, part: str) -> list[ResultTable]:
    """Return the tables of a part, with the experiment's corrections in their notes."""
    result = record.parts[part].found
    if result is None:
        return []
    tables = []
    for table in result.tables:
        note = table.note
        for correction in experiment.corrections:
            if correction.part == part:
                note = note.replace(correction.said, correction.now)
        tables.append(replace(table, note=note))
    return tables


def as_markdown(entries: Sequence[Entry], folder: Path) -> str:
    """Write the page that is read in three minutes: a line for each claim."""
    lines = ["# The paper's experiments", ""]
    for paragraph in (_about(entries, folder), IN_SHORT):
        lines += [paragraph, ""]
    rows = [judged.cells_in_short() for judged in _all_claims(entries, folder)]
    lines += _markdown_table(SHORT_HEADS, rows)
    beyond = [(experiment, summed_up(experiment, record)) for experiment, record in entries]
    links = [f"{_link(experiment)}: {summary.ours}." for experiment, summary in beyond if summary is not None]
    if links:
        lines += ["", f"Beyond the paper: {' '.join(links)}"]
    if (folder / USUAL).is_file():
        lines += [
            "",
            f"Against the usual baselines, with the goals that are missed: [{USUAL}]({folder.name}/{USUAL}).",
        ]
    return "\n".join(lines) + "\n"


def settings_markdown(entries: Sequence[Entry]) -> str:
    """Write the page of what holds for all experiments: the words, the losses, the networks and the assumptions."""
    lines = ["# How the experiments are read", ""]
    lines += ["Written by `python -m experiments report`; not to be edited. [All claims](../RESULTS.md).", ""]
    lines += [f"- **{word}**: {meaning}." for word, meaning in MEANINGS.items()]
    for paragraph in (EXPECTATIONS, ERRORS, PAPERS_LOSSES):
        lines += ["", paragraph]
    records = {experiment.name: record for experiment, record in entries}
    lines += ["", "## Networks", ""]
    lines += _markdown_table(NETWORK_HEADS, [network.cells() for network in networks(records)])
    lines += [
        "",
        "The paper prints no accuracies. Ours are of all test samples where the network comes along; where it does "
        "not and is trained on demand, of the first so many, by the record of an experiment if it has it.",
        "",
    ]
    lines += [_times_words(entries), ""]
    lines += ["## Assumptions", ""]
    lines += _markdown_table(
        ASSUMPTION_HEADS,
        [[assumption.topic, assumption.stated, assumption.released, assumption.ours] for assumption in ASSUMPTIONS],
    )
    return "\n".join(lines) + "\n"


def page_markdown(experiment: Experiment, record: Record, folder: Path) -> str:
    """Write the page of an experiment: pictures, the claims side by side, caveats, and its tables, grids folded."""
    lines = [f"# {experiment.name}: {experiment.title}", ""]
    lines += ["Written by `python -m experiments report`; not to be edited. [All claims](../RESULTS.md).", ""]
    for picture in _pictures(record):
        lines += [f"![{experiment.title}](../{folder.name}/{picture})", ""]
    judged = judged_claims(experiment, record, folder)
    if judged:
        lines += ["## Side by side", ""]
        lines += _markdown_table(CLAIM_HEADS, [judged_claim.cells() for judged_claim in judged])
        lines.append("")
        for judged_claim in judged:
            lines.append(
                f"- **{judged_claim.claim.says}**: {judged_claim.words}. {judged_claim.verdict.reason} *Rule*: "
                f"{judged_claim.claim.rule}"
            )
        lines.append("")
        lines += _seed_lines(judged)
    summary = summed_up(experiment, record)
    if summary is not None:
        lines += ["## Found", "", f"{summary.ours}. {summary.reason}", ""]
    if experiment.caveats:
        lines += ["## Caveats", "", *(f"- {caveat}" for caveat in experiment.caveats), ""]
    if experiment.not_again:
        lines += ["Not measured, or not again:", "", *(f"- {reason}" for reason in experiment.not_again), ""]
    shown, folded = _tables(experiment, record)
    lines += [table.markdown(level=2) for table in shown]
    lines += ["## Settings", "", experiment.settings, ""]
    for table in folded:
        lines += [f"<details><summary>{table.title}</summary>", "", table.markdown(level=3), "</details>", ""]
    lines += ["<details><summary>When and how the parts were measured</summary>", ""]
    lines += [f"- *{name}*: {note}" for name, note in _notes(experiment, record)]
    lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _seed_lines(judged: Sequence[JudgedClaim]) -> list[str]:
    """Set the figures and verdicts of several seeds beside each other."""
    rows = []
    for judged_claim in judged:
        for seed, quantities, verdict in judged_claim.each:
            figures = ", ".join(str(quantity) for quantity in quantities)
            rows.append([judged_claim.claim.says, f"{seed}", figures, "–" if verdict is None else verdict.word])
        if judged_claim.each:
            rows.append(
                [
                    judged_claim.claim.says,
                    f"mean of {len(judged_claim.seeds)} ± error over seeds",
                    judged_claim.ours_in_short,
                    "–",
                ]
            )
    if not rows:
        return []
    heads = ("claim", "seed", "figures", "verdict by the same rule")
    return ["### Several seeds", "", *_markdown_table(heads, rows), ""]


def _tables(experiment: Experiment, record: Record) -> tuple[list[ResultTable], list[ResultTable]]:
    """Return the tables that the page of an experiment shows, and those that it folds."""
    tables = [
        table
        for name in experiment.parts
        if name in record.parts
        for table in corrected_tables(experiment, record, name)
        if table.rows
    ]
    shown = [table for table in tables if table.title.startswith(experiment.shown)]
    return shown, [table for table in tables if table not in shown]


def _pictures(record: Record) -> list[str]:
    return [picture for part in record.parts.values() if part.found is not None for picture in part.found.pictures]


def _all_claims(entries: Iterable[Entry], folder: Path) -> list[JudgedClaim]:
    return [judged for experiment, record in entries for judged in judged_claims(experiment, record, folder)]


def _link(experiment: Experiment) -> str:
    return f"[{experiment.name}]({PAGES}/{experiment.name}.md)"


def _markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [markdown_line(heads), "|" + "---|" * len(heads), *(markdown_line(row) for row in rows)]


def as_html(entries: Sequence[Entry], folder: Path) -> str:
    """Write the report as one HTML page that holds its pictures."""
    body = ["<h1>The paper's experiments</h1>"]
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items())
    introduction = (_about(entries, folder), f"{meanings}.", EXPECTATIONS, PAPERS_LOSSES, ERRORS)
    body += [_paragraph(paragraph) for paragraph in introduction]
    rows = [[*judged.cells(), judged.experiment.name] for judged in _all_claims(entries, folder)]
    body.append(_rows((*CLAIM_HEADS, "experiment"), rows))
    if (folder / USUAL).is_file():
        body.append(f'<p class="note">{html.escape(ABOUT_USUAL)}: <a href="{USUAL}">{USUAL}</a>.</p>')
    records = {experiment.name: record for experiment, record in entries}
    body += ["<h2>Networks</h2>", _rows(NETWORK_HEADS, [network.cells() for network in networks(records)])]
    assumptions = [
        [assumption.topic, assumption.stated, assumption.released, assumption.ours] for assumption in ASSUMPTIONS
    ]
    body += ["<h2>Assumptions</h2>", _rows(ASSUMPTION_HEADS, assumptions)]
    for experiment, record in entries:
        body.append(f'<h2 id="{experiment.name}">{experiment.name}: {html.escape(experiment.title)}</h2>')
        body += [_picture(folder / picture, experiment.title) for picture in _pictures(record)]
        for judged in judged_claims(experiment, record):
            text = f"{judged.claim.says}: {judged.words}. {judged.verdict.reason} {judged.claim.rule}"
            body.append(_paragraph(text))
        body += [_paragraph(line) for line in (*experiment.caveats, *experiment.not_again, experiment.settings)]
        shown, folded = _tables(experiment, record)
        body += [_table(table) for table in shown]
        for table in folded:
            body.append(f"<details><summary>{html.escape(table.title)}</summary>{_table(table)}</details>")
        body += [_paragraph(f"{name}: {note}") for name, note in _notes(experiment, record)]
    head = f'<meta charset="utf-8"><title>The paper\'s experiments</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _about(entries: Sequence[Entry], folder: Path) -> str:
    """Count the verdicts on the paper's claims."""
    claims = _all_claims(entries, folder)
    words = Counter(judged.verdict.word for judged in claims)
    other_words = sorted(words.keys() - MEANINGS.keys())
    counts = ", ".join(f"{word} {words[word]}" for word in [*MEANINGS, *other_words] if words[word])
    changed = sum(judged.claim.rule.was_changed for judged in claims)
    return (
        "Written by `python -m experiments report`. "
        f"Of {len(claims)} claims: {counts}. {changed} rules replaced earlier ones. "
        f"[Words, networks and assumptions]({PAGES}/{SETTINGS}.md)."
    )


def _times_words(entries: Sequence[Entry]) -> str:
    """Say which experiment takes longest, and how many parts have no time."""
    times = {experiment.name: minutes_on_two_cores(experiment, record) for experiment, record in entries}
    longest = max(times, key=times.__getitem__, default="")
    if not longest:
        return "No times are kept."
    without = [
        f"{experiment.name} {part}"
        for experiment, record in entries
        for part in experiment.parts
        if part not in record.parts or (record.parts[part].found is not None and not record.parts[part].seconds)
    ]
    counted = f" Not counted, because their time was not kept: {', '.join(without)}." if without else ""
    return f"By the times that are kept, {longest} takes longest: {times[longest]:.0f} minutes on two cores.{counted}"


def minutes_on_two_cores(experiment: Experiment, record: Record) -> float:
    """Return the time of an experiment: its parts side by side, each on a core, then those that use all cores."""
    whole = [part.seconds for name, part in record.parts.items() if name not in experiment.many_jobs]
    spread = [part.seconds for name, part in record.parts.items() if name in experiment.many_jobs]
    return (max([0.0, sum(whole) / 2, *whole]) + sum(spread)) / 60


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
    title = f"<h3>{html.escape(table.title)}</h3>"
    rows = _rows(table.columns, table.rows)
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
