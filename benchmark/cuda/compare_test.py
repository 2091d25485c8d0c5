"""The tables of compare.py, from results that stand here."""

import contextlib
import io
import unittest

import compare


def column(where, milliseconds, heap_bytes=0, wrong=0, error=0):
    return {"where": where, "ms": milliseconds, "heap_bytes": heap_bytes, "wrong": wrong, "error": error}


def by_hand(case="64-fast", **other):
    columns = [column("heap 1/1", 0.08, 52e6), column("heap 1/4", 0.13, 13e6),
               column("shared x3", 0.05), column("shared x2", 0.04, error=1)]
    return {"bench": "tape-uniform", "case": case, "hand_ms": 0.07, "protocol_ms": 0.05, "protocol_adding_ms": 0.06,
            "pair_ms": 1.0, "wrong": 0, "columns": columns, **other}


def ours(case="64-fast", **other):
    return {"bench": "tape-uniform", "case": case, "device": "cuda", "threads": 1, "gradient_ms": 0.055, "graph_ms": 0.052,
            "heap_bytes": 0.0, **other}


def printed(group, mine, theirs):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        complete = compare.show({group: {"ours": mine, "theirs": theirs}})
    return text.getvalue(), complete


def row(text, start):
    line = next(line for line in text.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.split("|")[1:-1]]


class Tables(unittest.TestCase):
    def test_ours_stands_beside_the_best_column_without_an_error(self):
        text, complete = printed("tapes", [ours()], [by_hand()])
        self.assertTrue(complete)
        self.assertEqual(row(text, "uniform 64-fast")[1:7],
                         ["0.055", "0.052", "0.05 shared x3", "1.04", "0.06", "0.87"])

    def test_the_sorted_protocol_stands_in_a_column_of_its_own(self):
        sorted_case = by_hand("64-fast-sorted")
        sorted_case["columns"][2]["ms"] = 0.022
        text, _ = printed("tapes", [ours()], [by_hand(), sorted_case])
        self.assertEqual(row(text, "uniform 64-fast")[3:10],
                         ["0.05 shared x3", "1.04", "0.06", "0.87", "0.07", "0.022", "2.36"])
        self.assertNotIn("64-fast-sorted", text)

    def test_a_budget_stands_beside_the_column_of_the_same_part(self):
        mine = [ours(), ours("64-fast 1/4", budget_bytes=1e6, differing=0), ours("64-fast none", refused=1)]
        text, _ = printed("tapes", mine, [by_hand()])
        self.assertEqual(row(text, "64-fast")[:8], ["64-fast", "1/4", "1.0", "0.0", "0.052", "0.13", "0.40", "0"])
        self.assertIn("| 64-fast | none | - | 0.0 | refused | 0.05 |", text)

    def test_rounds_keep_the_best_times_and_the_worst_mistakes(self):
        merged = {}
        worse = by_hand(hand_ms=0.09, wrong=3)
        worse["columns"][2] = column("shared x3", 0.03, wrong=7)
        compare.merge(merged, [by_hand()])
        compare.merge(merged, [worse])
        result = merged["tape-uniform", "64-fast"]
        self.assertEqual((result["hand_ms"], result["wrong"]), (0.07, 3))
        self.assertEqual((result["columns"][2]["ms"], result["columns"][2]["wrong"]), (0.03, 7))

    def test_bits_of_sines_are_compared(self):
        mine = [{"bench": "sine", "case": "sin-fast", "primal_ms": 2.0, "checksum": 5.0},
                {"bench": "sine", "case": "cos-fast", "primal_ms": 2.0, "checksum": 6.0}]
        theirs = [{"bench": "sine", "case": case, "cuda_ms": 1.0, "same_ms": 1.5, "checksum": 5}
                  for case in ("sin-fast", "cos-fast")]
        text, _ = printed("sines", mine, theirs)
        self.assertEqual(row(text, "sin-fast")[-1], "yes")
        self.assertEqual(row(text, "cos-fast")[-1], "no: 6.0, 5")

    def test_sums_stand_beside_the_fastest_way(self):
        theirs = [{"bench": "uniform-read", "case": "9-f32-sum", "atomic_per_thread_ms": 1.0,
                   "persistent_per_block_ms": 0.004, "deterministic_ms": 0.005, "stream_ms": 0.006}]
        mine = [{"bench": "uniform-read", "case": "9-f32-sum", "gradient_ms": 0.009, "graph_ms": 0.006},
                {"bench": "uniform-read", "case": "9-f32-sum-deterministic", "gradient_ms": 0.01}]
        text, _ = printed("reads", mine, theirs)
        self.assertEqual(row(text, "9-f32-sum")[1:10],
                         ["0.009", "0.006", "0.01", "0.004 persistent_per_block", "1.50", "0.005", "2.00", "0.006",
                          "1.50"])

    def test_lines_hold_ours_and_what_is_by_hand(self):
        sums = {"bench": "uniform-read", "case": "9-f32-sum", "atomic_ms": 1.0, "tree_ms": 0.5, "deterministic_ms": 0.7, "stream_ms": 0.1}
        lines = list(compare.lines({"tapes": {"ours": [ours()], "theirs": [by_hand()]}, "reads": {"ours": [], "theirs": [sums]}}))
        self.assertEqual(lines[0], ours())
        self.assertEqual([(line["label"], line["best_ms"]) for line in lines[1:]], [("by hand", 0.05), ("by hand", 0.5)])
        self.assertEqual(lines[2]["fixed_ms"], 0.7)

    def test_what_is_missing_is_said(self):
        text, complete = printed("tapes", [], [by_hand()])
        self.assertFalse(complete)
        self.assertIn("no results of costate-bench", text)


if __name__ == "__main__":
    unittest.main()
