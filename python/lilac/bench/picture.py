"""The picture of a run: mean speedup of each family as a bar, least and most as its error bar.

Plain SVG text, no library: the same numbers give the same bytes. The baseline, Triton's time, is 1.
"""

import math
from html import escape

from .measure import geometric_mean

WIDTH, HEIGHT = 1040, 452
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 90, 118
INK, SOFT, GRID = "#1f2328", "#59636e", "#e4e7eb"
FASTER, SLOWER = "#4c72b0", "#c8664f"
FONT = "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\""


def families(rows):
    """(family, mean, least, most, cases) of the rows that have a ratio, in order of their mean."""
    groups = {}
    for row in rows:
        if row.get("ratio"):
            groups.setdefault(row["family"], []).append(row["ratio"])
    summaries = [(name, geometric_mean(r), min(r), max(r), len(r)) for name, r in groups.items()]
    return sorted(summaries, key=lambda s: (s[1], s[0]))


def ticks(low, high):
    """Round numbers that cover low … high and 1, at most nine."""
    for step in (0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100):
        first, last = int(low / step + 1e-9), -int(-(high / step - 1e-9) // 1)
        if last - first <= 8:
            return [round(step * k, 2) for k in range(first, last + 1)]
    return [0, high]


def ceiling(groups):
    """Where the axis ends: above all families but the few that would leave the others no room, which
    are drawn cut off, with a number."""
    tops = sorted(g[3] for g in groups)
    usual = tops[math.ceil(0.85 * (len(tops) - 1))]
    return max(1.1, tops[-1] if tops[-1] - 1 <= 2 * (usual - 1) else usual)


def text(x, y, content, size=13, anchor="start", colour=INK, weight="normal", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}" font-weight="{weight}"{more}>{escape(content)}</text>')


def line(x1, y1, x2, y2, colour, width=1.0, more=""):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"{more}/>')


def svg(rows, title, subtitle):
    """The picture, as the text of an SVG file."""
    groups = families(rows)
    overall = geometric_mean(r["ratio"] for r in rows if r.get("ratio"))
    width = max(WIDTH, LEFT + RIGHT + 44 * (len(groups) + 1))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" '
           f'height="{HEIGHT}" {FONT}>',
           f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
           text(LEFT, 30, title, 18, weight="bold"), text(LEFT, 52, subtitle, 13, colour=SOFT)]
    if not groups:
        out += [text(width / 2, HEIGHT / 2, "no case was measured", 16, "middle", SOFT), "</svg>"]
        return "\n".join(out) + "\n"
    bars = groups + [("geometric mean", overall, None, None, sum(g[4] for g in groups))]

    marks = ticks(min(0.9, min(g[2] for g in groups)), ceiling(groups))
    low, high = marks[0], marks[-1]
    bottom = HEIGHT - BOTTOM

    def place(value):
        return bottom - (bottom - TOP) * (min(value, high) - low) / (high - low)

    for mark in marks:
        out.append(line(LEFT, place(mark), width - RIGHT, place(mark), GRID))
        out.append(text(LEFT - 8, place(mark) + 4, f"{mark:.2f}×", 12, "end", SOFT))
    middle = (TOP + bottom) / 2
    out.append(text(18, middle, "speedup over Triton", 13, "middle", SOFT,
                    more=f' transform="rotate(-90 18 {middle:.1f})"'))

    pitch = (width - RIGHT - LEFT) / len(bars)
    thick = min(34.0, 0.62 * pitch)
    for number, (name, mean, least, most, count) in enumerate(bars):
        x = LEFT + pitch * (number + 0.5)
        last = least is None
        colour = INK if last else FASTER if mean >= 1 else SLOWER
        top, foot = min(place(mean), place(1)), max(place(mean), place(1))
        if last:
            out.append(line(x - pitch / 2, TOP, x - pitch / 2, bottom, GRID))
        out.append(f'<g><title>{escape(name)}: {mean:.3f}, {count} cases'
                   + ("" if last else f", {least:.3f} to {most:.3f}") + "</title>")
        out.append(f'<rect x="{x - thick / 2:.1f}" y="{top:.1f}" width="{thick:.1f}" '
                   f'height="{max(1.0, foot - top):.1f}" fill="{colour}"/>')
        above = top
        if not last:
            cap = thick / 5
            out.append(line(x, place(least), x, place(most), INK, 1.2))
            out.append(line(x - cap, place(least), x + cap, place(least), INK, 1.2))
            if most <= high:
                out.append(line(x - cap, place(most), x + cap, place(most), INK, 1.2))
            else:  # goes on: an arrow, a gap in the bar, and how far
                out.append(f'<path d="M{x - cap:.1f} {TOP + 3} L{x:.1f} {TOP - 5} L{x + cap:.1f} {TOP + 3} Z" '
                           f'fill="{INK}"/>')
                if mean > high:
                    out.append(f'<path d="M{x - thick / 2 - 3:.1f} {TOP + 20} l{thick + 6:.1f} -7 l0 5 '
                               f'l{-thick - 6:.1f} 7 Z" fill="white"/>')
            above = min(top, place(most))
        if not last and most > high:
            out.append(text(x, TOP - 9, f"to {most:.2f}", 11, "middle", SOFT))
            above = TOP - 15
        out.append(text(x, above - 6, f"{mean:.2f}", 11, "middle", INK, "bold" if last else "normal"))
        # Labels slant where they would run into each other.
        out.append(text(x + 4, bottom + 16, name, 12, "end", INK, "bold" if last else "normal",
                        f' transform="rotate(-35 {x + 4:.1f} {bottom + 16:.1f})"'))
        out.append("</g>")
    out.append(line(LEFT, place(1), width - RIGHT, place(1), INK, 1.4, ' stroke-dasharray="5 4"'))
    out.append(text(LEFT, HEIGHT - 12, "bars: geometric mean of the family's cases; error bars: its "
                    "slowest and fastest case; 1×: Triton", 11, colour=SOFT))
    out.append("</svg>")
    return "\n".join(out) + "\n"
