#!/usr/bin/env python3
"""Tests of the tools of make mutation and make coverage, without a compiler; the last line is
"N passed, N failed"."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests/coverage"), os.path.join(ROOT, "scripts")]

import faults  # noqa: E402
import mutation  # noqa: E402
import mutator  # noqa: E402
import noticed_by  # noqa: E402
import survivors  # noqa: E402
import unreached  # noqa: E402
from cpp_tokens import Source  # noqa: E402


def body(statements):
    return "void f() {\n" + statements + "\n}\n"


def found(text, kind):
    return [each for each in mutator.Finder("f.cc", text).candidates() if each.kind == kind]


def planted(text, kind, which=0):
    return mutator.plant(text, [(7, found(text, kind)[which])])


class Tokens(unittest.TestCase):
    def test_comments_directives_and_strings_are_no_code(self):
        source = Source('#define A (\n// if (a) {\nint a = f("if (b)", \'{\'); /* ( */\n')
        self.assertEqual([token.text for token in source.tokens],
                         ["int", "a", "=", "f", "(", '"if (b)"', ",", "'{'", ")", ";"])

    def test_brackets_know_their_partners_and_contents(self):
        source = Source("f(a[1], {b});")
        self.assertEqual(source.partner[1], 10)
        self.assertEqual(source.owner[4], 3)

    def test_lines_count_from_one(self):
        source = Source("a;\nb;\n")
        self.assertEqual([source.line_of(token.begin) for token in source.tokens], [1, 1, 2, 2])


class Kinds(unittest.TestCase):
    def test_a_condition_is_never_or_always_true(self):
        text = body("  if (a && b) return;")
        self.assertIn("if (!::rdmacc::planted::fault(7) && (a && b)) return;",
                      planted(text, "never"))
        self.assertIn("if (::rdmacc::planted::fault(7) || (a && b)) return;",
                      planted(text, "always"))

    def test_an_if_that_declares_is_left_alone(self):
        self.assertEqual(found(body("  if (const int* x = f()) return;"), "never"), [])
        self.assertEqual(found(body("  if constexpr (kYes) return;"), "never"), [])

    def test_each_operand_of_a_chain_can_be_dropped(self):
        text = body("  const bool x = a(1, 2) && b.c == d && !e;")
        self.assertEqual([each.original for each in found(text, "dropped-check")],
                         ["a(1, 2) &&", "&& b.c == d", "&& !e"])
        self.assertIn("(::rdmacc::planted::fault(7) || (b.c == d))",
                      planted(text, "dropped-check", 1))

    def test_an_operand_of_a_disjunction_becomes_false(self):
        text = body("  return a || b && c;")
        self.assertIn("(!::rdmacc::planted::fault(7) && (a))", planted(text, "dropped-check", 0))
        self.assertIn("(!::rdmacc::planted::fault(7) && (b && c))",
                      planted(text, "dropped-check", 1))

    def test_references_and_templates_are_no_operators(self):
        text = body("  std::vector<int> a; f(std::move<int&&>(a));")
        self.assertEqual(found(text, "comparison") + found(text, "dropped-check"), [])

    def test_a_comparison_is_off_by_one(self):
        text = body("  for (int i = 0; i < n + 1; i++) g();")
        self.assertIn("(::rdmacc::planted::fault(7) ? (i <= n + 1) : (i < n + 1))",
                      planted(text, "comparison"))

    def test_a_comparison_across_lines_keeps_them(self):
        text = body("  return a ==\n      b;")
        changed = planted(text, "comparison")
        self.assertEqual(changed.count("\n"), text.count("\n"))
        self.assertIn("? (a !=       b) : (a ==\n      b))", changed)

    def test_one_more_or_less(self):
        text = body("  x = (a + b) - 1;")
        self.assertIn("(a + b) - (::rdmacc::planted::fault(7) ? 0 : 1);", planted(text, "one-off"))
        self.assertEqual(found(body("  x = a + 1 << 3;"), "one-off"), [])

    def test_a_bit_of_a_constant_is_dropped(self):
        text = body("  post(kCas | kPreRead);")
        self.assertIn("(::rdmacc::planted::fault(7) ? decltype(kCas){} : kCas) | kPreRead",
                      planted(text, "dropped-bit"))

    def test_constants_of_the_compiler_are_left_alone(self):
        text = body("  constexpr int kBoth = kA | kB;\n  static_assert(a == b);\n"
                    "  switch (x) {\n    case a == b:\n      break;\n  }")
        self.assertEqual(found(text, "dropped-bit") + found(text, "comparison"), [])

    def test_statements_are_dropped_and_swapped(self):
        text = body("  a.store(1);\n  b = c();\n  d = 2;\n  return;")
        self.assertEqual([each.original for each in found(text, "dropped-statement")],
                         ["a.store(1);", "b = c();", "d = 2;"])
        self.assertEqual(len(found(text, "swapped-statements")), 1)
        changed = planted(text, "swapped-statements")
        self.assertIn("if (!::rdmacc::planted::fault(7)) { a.store(1); }\n  b = c(); "
                      "if (::rdmacc::planted::fault(7)) { a.store(1); }", changed)

    def test_a_statement_behind_an_if_keeps_its_else(self):
        text = body("  if (a) b(); else c();")
        self.assertIn("if (a) { if (!::rdmacc::planted::fault(7)) { b(); } } else c();",
                      planted(text, "dropped-statement"))
        self.assertEqual(found(text, "swapped-statements"), [])

    def test_declarations_are_no_statements(self):
        text = body("  int a = f();\n  Header b(c);\n  const auto d = g();\n  T* e = h();\n  T& i = j();")
        self.assertEqual(found(text, "dropped-statement"), [])

    def test_members_are_no_statements(self):
        text = "class A : public B {\n  A(int b);\n  enum { kC } d = kC;\n  void e() { f(); }\n};\n"
        self.assertEqual([each.original for each in found(text, "dropped-statement")], ["f();"])

    def test_checks_are_left_alone(self):
        self.assertEqual(found(body("  CHECK(a);"), "dropped-statement"), [])

    def test_values_are_negated_and_extrema_exchanged(self):
        text = body("  return true;")
        self.assertIn("(::rdmacc::planted::fault(7) ? false : true)", planted(text, "negated-value"))
        text = body("  x = std::max<int>(a, b);")
        self.assertIn("? (std::min<int>(a, b)) : (std::max<int>(a, b)))", planted(text, "extremum"))

    def test_an_error_is_ignored(self):
        text = body("  RDMACC_RETURN_IF_ERROR(f(a));")
        self.assertIn("RETURN_IF_ERROR(::rdmacc::planted::fault(7) ? (static_cast<void>(f(a)), "
                      "::rdmacc::Status()) : (f(a)));", planted(text, "ignored-error"))

    def test_lines_can_be_skipped(self):
        text = body("  stats.a++;\n  b = 2;")
        kept = mutator.Finder("f.cc", text, lambda line: "stats" in line).candidates()
        self.assertEqual({each.original for each in kept}, {"b = 2;"})


class Choice(unittest.TestCase):
    TEXT = body("".join(f"  if (a{i} == b && c) d(e{i}, 1);\n" for i in range(60)))

    def test_the_same_seed_chooses_the_same(self):
        candidates = mutator.Finder("f.cc", self.TEXT).candidates()
        keys = [each.key for each in mutator.choose(candidates, 3, 0.2)]
        self.assertEqual(keys, [each.key for each in mutator.choose(candidates[::-1], 3, 0.2)])
        self.assertNotEqual(keys, [each.key for each in mutator.choose(candidates, 4, 0.2)])

    def test_a_choice_outlives_changes_elsewhere(self):
        before = {each.key for each in mutator.choose(
            mutator.Finder("f.cc", self.TEXT).candidates(), 3, 0.05)}
        text = "int more() {\n  if (x) return 2;\n}\n" + self.TEXT
        after = {each.key for each in mutator.choose(
            mutator.Finder("f.cc", text).candidates(), 3, 0.05)}
        self.assertLessEqual(before, after)

    def test_chosen_faults_do_not_overlap(self):
        chosen = mutator.choose(mutator.Finder("f.cc", self.TEXT).candidates(), 3, 1.0)
        self.assertTrue(all(a.end <= b.begin for a, b in zip(chosen, chosen[1:])))

    def test_every_file_has_one(self):
        candidates = [each for name in ("a.cc", "b.cc")
                      for each in mutator.Finder(name, body("  if (a) b();")).candidates()]
        self.assertEqual({each.path for each in mutator.choose(candidates, 3, 0.0)},
                         {"a.cc", "b.cc"})

    def test_a_file_that_moves_to_another_room_keeps_its_faults(self):
        def hashes(path):
            candidates = mutator.Finder(path, body("  if (a < 1) b();")).candidates()
            return [each.hash(1) for each in candidates]
        self.assertEqual(hashes("engine/txn/f.cc"), hashes("engine/txn/stages/f.cc"))
        self.assertNotEqual(hashes("engine/txn/f.cc"), hashes("engine/txn/g.cc"))
        self.assertNotEqual(hashes("engine/txn/f.cc"), hashes("engine/storage/owner/f.cc"))

    def test_equal_places_have_keys_of_their_own(self):
        candidates = mutator.Finder("f.cc", body("  a();\n  a();")).candidates()
        self.assertEqual(len({each.key for each in candidates}), len(candidates))


class Tree(unittest.TestCase):
    def test_what_is_planted_here(self):
        chosen = faults.chosen(ROOT)
        self.assertGreaterEqual(len(chosen), 200)
        free = [each.key for each in chosen if each.kind != "named"]
        self.assertEqual(len(set(free)), len(free))
        self.assertEqual({each.path.split("/")[1] for each in chosen}, set(faults.FOLDERS))

    def test_a_fault_by_hand_stands_in_one_place(self):
        with self.assertRaises(ValueError):
            mutator.named_candidate("f.cc", "a; a;", "twice", "a;", "FAULT;")

    def test_lists_are_sound(self):
        with open(survivors.LIST, encoding="utf-8") as file:
            survivors.parse(file.read())
        self.assertTrue(unreached.read_rules())


class Judgement(unittest.TestCase):
    ROWS = [{"path": "engine/txn/a.cc", "key": "a", "noticed": "cycle"},
            {"path": "engine/log/b.cc", "key": "b", "noticed": None},
            {"path": "engine/log/c.cc", "key": "c", "noticed": None}]

    def test_a_survivor_with_a_reason_does_not_count(self):
        reasons = survivors.parse("b\n  equivalent: for\n  two lines\n")
        self.assertEqual(reasons["b"], ("equivalent", "for two lines"))
        tallies = survivors.tally(self.ROWS, reasons)
        self.assertEqual(survivors.rate_of(tallies["all"]), 0.5)
        self.assertEqual(survivors.rate_of(tallies["engine/txn"]), 1.0)

    def test_a_missing_workload_counts(self):
        reasons = survivors.parse("b\n  missing: DROP\nc\n  speed: a cache\n")
        self.assertEqual(survivors.rate_of(survivors.tally(self.ROWS, reasons)["all"]), 0.5)

    def test_what_is_noticed_is_stale_in_the_list(self):
        reasons = survivors.parse("a\n  equivalent: x\nb\n  equivalent: x\ngone\n  speed: x\n")
        self.assertEqual(survivors.stale(self.ROWS, reasons), ["a", "gone"])

    def test_a_list_without_reasons_is_refused(self):
        for text in ("a\nb\n  speed: x\n", "a\n", "a\n  because\n", "  speed: x\n"):
            with self.assertRaises(ValueError):
                survivors.parse(text)


class NoticedBy(unittest.TestCase):
    ROWS = [{"key": "slow", "noticed": "cycle", "run": "occ 3", "seconds": 30.0},
            {"key": "quick", "noticed": "cycle", "run": "occ 4", "seconds": 0.1},
            {"key": "kept", "noticed": "cycle", "run": "mvcc 5", "seconds": 0.1},
            {"key": "moved", "noticed": "cycle", "run": "mvcc 7", "seconds": 0.1},
            {"key": "lost", "noticed": None, "run": "", "seconds": 60.0}]
    KEPT = {"kept": "mvcc 5", "moved": "mvcc 6", "lost": "occ 9"}

    def test_what_is_slow_to_notice_is_kept_and_what_is_kept_stays(self):
        self.assertEqual(noticed_by.worth_keeping(self.ROWS, self.KEPT),
                         {"slow": "occ 3", "kept": "mvcc 5"})

    def test_what_is_written_is_what_is_read(self):
        self.assertEqual(noticed_by.parse(noticed_by.text_of(self.KEPT)), self.KEPT)

    def test_a_list_without_runs_is_refused(self):
        for text in ("a\nb\n  occ 1\n", "a\n", "  occ 1\n", "a\n  occ\n", "a\n  occ x\n"):
            with self.assertRaises(ValueError):
                noticed_by.parse(text)

    def test_known_runs_come_first(self):
        lines = [{"variant": "occ", "seed": seed, "kind": "turn 1", "cpu_s": seed,
                  "reached": {"9": 1}} for seed in (1, 2, 3)]
        order = mutation.in_order(9, lines, {"occ 3", None})
        self.assertEqual([line["seed"] for line in order], [3, 1, 2])

    def test_what_is_kept_is_planted_here(self):
        planted = {each.key for each in faults.chosen(ROOT)}
        self.assertEqual(sorted(set(noticed_by.read()) - planted), [])


class Unreached(unittest.TestCase):
    LINES = [unreached.Line("engine/txn/a.cc", 3, "return x;", "A::f", False, 0, 0),
             unreached.Line("engine/txn/a.cc", 9, "if (y) {", "A::g", True, 1, 2),
             unreached.Line("engine/log/b.cc", 1, "z();", "B::h", False, 0, 0)]

    def test_a_rule_is_a_path_and_a_text_or_a_function(self):
        rules = unreached.parse("engine/txn/* | /return x/ | one\nengine/log/b.cc | B::h() | two\n")
        left, stale = unreached.explain(self.LINES, rules)
        self.assertEqual([line.number for line in left], [9])
        self.assertEqual(stale, [])

    def test_a_rule_that_explains_nothing_is_stale(self):
        rules = unreached.parse("engine/txn/a.cc | * | all\nengine/index/* | * | none\n")
        left, stale = unreached.explain(self.LINES, rules)
        self.assertEqual([line.path for line in left], ["engine/log/b.cc"])
        self.assertEqual([rule.path for rule in stale], ["engine/index/*"])

    def test_what_chance_reaches_is_not_stale_while_it_is_there(self):
        rules = unreached.parse("engine/log/b.cc | B::h() | chance: rare\n"
                                "engine/log/b.cc | B::gone() | chance: rare\n")
        left, stale = unreached.explain(self.LINES[:2], rules, self.LINES)
        self.assertEqual(len(left), 2)
        self.assertEqual([rule.what for rule in stale], ["B::gone()"])

    def test_a_rule_without_a_reason_is_refused(self):
        with self.assertRaises(ValueError):
            unreached.parse("engine/txn/a.cc | *\n")


if __name__ == "__main__":
    ran = unittest.main(exit=False, verbosity=0).result
    failed = len(ran.failures) + len(ran.errors)
    print(f"{ran.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
