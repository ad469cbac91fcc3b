// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var mutants = flag.Bool("mutants", false, "prove that the simulator finds planted faults (minutes)")

// TestMutants plants one fault at a time in the planner and expects the
// simulator to find it. A fault that survives is a check that is missing. Faults
// that show only when five rare things meet are for TestNext.
func TestMutants(t *testing.T) {
	if !*mutants {
		t.Skip("compiles the planner once per fault; run with -mutants")
	}
	found := regexp.MustCompile(`seed \d+: [^\n]{0,150}|panic: [^\n]*`)
	for name, m := range map[string]struct{ file, old, new string }{
		"ignore the batch when counting slots": {"count.go", "m.holds = true", "m.holds = false"},
		"drop a batch entry before it is seen": {"admit.go", "entries = append(entries, p.renewed(e))", "_ = e"},
		"act on the batch that was just decided": {"phase.go",
			"d := Decision{Actions: append(p.admissions(), p.adopt()...)}",
			"fresh := p.nextBatch(); d := Decision{Actions: p.adopt()}; if fresh != nil { for _, e := range " +
				"fresh.Clusters { d.Actions = append(d.Actions, Action{ActionAdmit, e.Cluster, e.Wave, " +
				"e.AdmittedAt}) } }"},
		"one slot too many": {"admit.go", "m.ready && ours+busy < s.maxConcurrency",
			"m.ready && ours+busy <= s.maxConcurrency"},
		"forget clusters busy with an older one": {"admit.go", "m.ready && ours+busy < s.maxConcurrency",
			"m.ready && ours < s.maxConcurrency"},
		"percentages of slots rounded up": {"waves.go",
			"GetScaledValueFromIntOrPercent(w.MaxConcurrency, total, false)",
			"GetScaledValueFromIntOrPercent(w.MaxConcurrency, total, true)"},
		"one failure too many": {"admit.go", "int(s.counts.Failed) > s.maxFailures",
			"int(s.counts.Failed) > s.maxFailures+1"},
		"trust a cache that is behind": {"plan.go", "return err != nil || order < 0",
			"return err != nil && order > 0"},
		"trust a cache when a wave is verified": {"phase.go", "&& !p.in.Live", "&& false"},
		"freeze the membership from a cache": {"plan.go", "if status.PlanHash == \"\" {\n\t\treturn true\n\t}",
			""},
		"freeze without the labels": {"freeze.go", "len(d.Actions) > 0 || !p.in.Live", "!p.in.Live"},
		"let the soak end with its first second": {"phase.go", "return w.UpdatedAt.Add(s.Soak.Duration)",
			"return w.UpdatedAt.Add(s.Soak.Duration / 2)"},
		"never move the soak": {"phase.go", "if p.succeededSince(s) {",
			"if w.UpdatedAt == nil && p.succeededSince(s) {"},
		"skip the gate": {"count.go", "s.open = reached && passed(s.gates)",
			"s.open = reached"},
		"open every wave":                     {"count.go", "reached = reached && s.prior.VerifiedAt != nil", ""},
		"go on while paused":                  {"admit.go", "spec.Paused || spec.Blocked", "spec.Blocked"},
		"go on though the version is blocked": {"admit.go", "spec.Blocked != \"\" ||", ""},
		"go on after an abort":                {"admit.go", "return p.in.Rollout.Spec.Abort != nil ||", "return"},
		"admit offline clusters": {"count.go", "m.ready = !m.ours && c.Online &&",
			"m.ready = !m.ours &&"},
		"fail a slow cluster never": {"count.go", "start.Add(s.Deadline.Duration)",
			"start.Add(1_000_000 * s.Deadline.Duration)"},
		"deadline at half time": {"count.go", "start.Add(s.Deadline.Duration)",
			"start.Add(s.Deadline.Duration / 2)"},
		"forget late joiners": {"phase.go", "append(p.admissions(), p.adopt()...)",
			"p.admissions()"},
		"late joiners to any wave": {"freeze.go", "i := p.waveOf(c)", "i := 0"},
		"verify while clusters are in progress": {"phase.go", "s.counts.Pending > 0 || s.counts.InProgress > 0 ||",
			"s.counts.Pending > 0 ||"},
		"verify while clusters are pending": {"phase.go", "s.counts.Pending > 0 || s.counts.InProgress > 0 ||",
			"s.counts.InProgress > 0 ||"},
		"never give up on a lapsed entry": {"admit.go", "delete(p.batch, name)", "_ = name"},
		"count a removed cluster twice":   {"count.go", "c.Removed += c.Total - seen", "c.Removed += c.Total"},
		"let the total shrink":            {"count.go", "c.Total = max(s.prior.Total, seen)", "c.Total = seen"},
		"leave a phase that ended": {"phase.go",
			"case p.prior.Phase.Ended():\n\t\treturn p.prior.Phase\n", ""},
		"free the slot of a cluster that left": {"count.go", "m.class, m.ready = removed, false",
			"m.class, m.ready, m.holds = removed, false, false"},
		"depend on the order of the cache": {"count.go",
			"slices.SortFunc(s.members, func(a, b member) int { return s.order(a.cluster, b.cluster) })", ""},
		"keep a halted rollout halted": {"phase.go", "case halted:\n",
			"case halted || p.prior.Phase == v1alpha1.RolloutHalted:\n"},
		"succeeded is any success of any release": {"count.go", "at.SucceededHash == p.hash && at.Stamp.Hash == p.hash",
			"at.SucceededHash != \"\""},
		"take in clusters that are not selected": {"count.go", "if !stays || at.Deleting {",
			"if !stays && false || at.Deleting {"},
		"wait without a wake-up for a soak":     {"phase.go", "consider(soakEnd(s, status.Waves[i]))", ""},
		"wait without a wake-up for a deadline": {"phase.go", "consider(m.deadline)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runMutant(t, m.file, m.old, m.new)
			if err == nil {
				t.Fatal("survived: " + name)
			}
			what := found.FindString(out)
			if what == "" {
				t.Fatalf("did not compile or failed otherwise:\n%s", out)
			}
			t.Log(name + ": " + what)
		})
	}
}

func runMutant(t *testing.T, file, old, replacement string) (string, error) {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(source), old) != 1 {
		t.Fatalf("%s has %q %d times", file, old, strings.Count(string(source), old))
	}
	dir := t.TempDir()
	mutant, overlay := filepath.Join(dir, file), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{mutant: strings.Replace(string(source), old, replacement, 1),
		overlay: string(text)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", overlay, "-run", "^TestSimulator$",
		".", "-args", "-seeds", strconv.Itoa(*seeds))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
