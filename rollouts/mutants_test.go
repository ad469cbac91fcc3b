// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"cmp"
	"encoding/json"
	"go/parser"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/bellwether-dev/bellwether/internal/tools/long"
)

// mutant is a fault that is planted in the planner.
type mutant struct {
	file, old, new string
	// test has to find it; the simulator where it is empty. Faults that show only
	// when five rare things meet, or only in times, are for the tables.
	test string
}

const tables = "^(TestNext|TestSoakJudges|TestSoakClock|TestUnreadyIsRemembered|TestVerifiedWaveKeepsItsCounts|" +
	"TestRecheck)$"

const gateTables = "^(TestSLOGate|TestBaselineGate|TestPromQLGate|TestGatesHoldTheWave)$"
const observations = "^(TestNothingObservedIsNotVerified|TestSkippedWaves)$"
const rollbacks = "^(TestRollbackSimulator|TestRollback|TestRollbackIsDecided|TestPreviousOf)$"

var mutantsOf = map[string]mutant{
	"ignore the batch when counting slots": {file: "members.go", old: "m.holds = written ||", new: "m.holds ="},
	"drop a batch entry before it is seen": {file: "admit.go",
		old: "entries = append(entries, p.heldEntry(p.renewed(e)))",
		new: "_ = e"},
	"act on the batch that was just decided": {file: "phase.go",
		old: "d := Decision{Actions: append(p.admissions(), p.adopt()...)}",
		new: "fresh := p.nextBatch(); d := Decision{Actions: p.adopt()}; if fresh != nil { for _, e := range " +
			"fresh.Clusters { d.Actions = append(d.Actions, Action{Kind: ActionAdmit, Cluster: e.Cluster, " +
			"Wave: e.Wave, AdmittedAt: e.AdmittedAt, Attempt: e.Attempt}) } }"},
	"one slot too many": {file: "admit.go", old: "return ours+busy < s.maxConcurrency }",
		new: "return ours+busy <= s.maxConcurrency }"},
	"forget clusters busy with an older one": {file: "admit.go", old: "return ours+busy < s.maxConcurrency }",
		new: "return ours < s.maxConcurrency }"},
	"percentages of slots rounded up": {file: "waves.go",
		old: "GetScaledValueFromIntOrPercent(w.MaxConcurrency, total, false)",
		new: "GetScaledValueFromIntOrPercent(w.MaxConcurrency, total, true)"},
	"one failure too many": {file: "admit.go", old: "int(s.counts.Failed) > s.maxFailures",
		new: "int(s.counts.Failed) > s.maxFailures+1"},
	"trust a cache that is behind": {file: "plan.go", old: "return err != nil || order < 0",
		new: "return err != nil && order > 0"},
	"trust a cache when a wave is verified": {file: "phase.go", old: "&& !p.in.Live", new: "&& false"},
	"freeze the membership from a cache": {file: "plan.go",
		old: "if status.PlanHash == \"\" {\n\t\treturn true\n\t}", new: ""},
	"freeze without the labels": {file: "freeze.go", old: "len(d.Actions) > 0 || !p.in.Live", new: "!p.in.Live"},
	"let the soak end with its first second": {file: "phase.go", old: "return w.UpdatedAt.Add(spec.Soak.Duration)",
		new: "return w.UpdatedAt.Add(spec.Soak.Duration / 2)"},
	"never move the soak": {file: "phase.go", old: "succeeded := s.updated > was.Updated ||",
		new: "succeeded := was.Updated == 0 && s.updated > 0 ||"},
	"skip the gate": {file: "count.go", old: "s.open = reached && s.mayAdmit()",
		new: "s.open = reached"},
	"open every wave": {file: "count.go", old: "reached = reached && s.prior.IsDone()",
		new: ""},
	"go on while paused":                  {file: "admit.go", old: "spec.Paused || spec.Blocked", new: "spec.Blocked"},
	"go on though the version is blocked": {file: "admit.go", old: "spec.Blocked != \"\" ||", new: ""},
	"go on after an abort": {file: "admit.go", old: "return !p.in.Rollout.MayAdmit()",
		new: "return p.in.Rollout.IsStopped()"},
	"admit offline clusters": {file: "members.go", old: "here := cluster.Online && !cluster.Paused",
		new: "here := !cluster.Paused"},
	"fail a slow cluster never": {file: "members.go", old: "start.Add(w.Deadline.Duration)",
		new: "start.Add(1_000_000 * w.Deadline.Duration)"},
	"deadline at half time": {file: "members.go", old: "start.Add(w.Deadline.Duration)",
		new: "start.Add(w.Deadline.Duration / 2)"},
	"forget late joiners": {file: "phase.go", old: "append(p.admissions(), p.adopt()...)",
		new: "p.admissions()"},
	"late joiners to any wave": {file: "freeze.go", old: "i := p.waveOf(c)", new: "i := 0"},
	"verify while clusters are in progress": {file: "phase.go",
		old: "s.counts.Pending > 0 || s.counts.InProgress > s.unready ||", new: "s.counts.Pending > 0 ||"},
	"verify while clusters are pending": {file: "phase.go",
		old: "s.counts.Pending > 0 || s.counts.InProgress > s.unready ||", new: "s.counts.InProgress > s.unready ||"},
	"never give up on a lapsed entry": {file: "admit.go", old: "delete(p.batch, name)", new: "_ = name"},
	"count a removed cluster twice": {file: "count.go", old: "c.Removed += c.Total - seen",
		new: "c.Removed += c.Total"},
	"let the total shrink": {file: "count.go", old: "c.Total = max(s.prior.Total, seen)",
		new: "c.Total = seen"},
	"leave a phase that ended": {file: "phase.go",
		old: "case p.prior.Phase.Ended():\n\t\treturn p.prior.Phase\n", new: ""},
	"free the slot of a cluster that left": {file: "members.go",
		old: "m.Class, m.Reason, m.Message, m.Since = ClassRemoved,",
		new: "m.holds = false; m.Class, m.Reason, m.Message, m.Since = ClassRemoved,"},
	"depend on the order of the cache": {file: "count.go",
		old: "slices.SortFunc(s.members, func(a, b member) int { return s.order(a.cluster, b.cluster) })", new: ""},
	"keep a halted rollout halted": {file: "phase.go", old: "case halted:\n",
		new: "case halted || p.prior.Phase == v1alpha1.RolloutHalted:\n"},
	"succeeded is any success of any release": {file: "members.go",
		old: "hash := p.hashOf(install)\n\treturn install.SucceededHash == hash && install.Stamp.Hash == hash",
		new: "return install.SucceededHash != \"\""},
	"take in clusters that are not selected": {file: "members.go", old: "case !stays || install.Deleting:",
		new: "case install.Deleting:"},
	"act on entries of clusters that are held back": {file: "admit.go", old: "e.Held || m.hold != nil {",
		new: "e.Held {"},
	"act on an entry in the pass in which its hold ends": {file: "admit.go", old: "e.Held || m.hold != nil {",
		new: "m.hold != nil {"},
	"drop an entry as soon as its cluster is held back": {file: "hold.go", test: "^TestHolds$",
		old: "&& p.in.Now.Sub(e.AdmittedAt.Time) > entryDoubt", new: ""},
	"admit after the window has closed": {file: "admit.go",
		old: "NotAfter: notAfter(p.openUntil(m.cluster)),", new: ""},
	"admit clusters that are held back": {file: "members.go",
		old: "fit := here && m.hold == nil", new: "fit := here"},
	"wait without a wake-up for a window": {file: "phase.go", test: tables,
		old: "times = append(times, p.holdTimes(s)...)", new: ""},
	"wait without a wake-up for a soak": {file: "phase.go", test: tables,
		old: "times = append(times, SoakEnd(s.Wave, status.Waves[i]))", new: ""},
	"wait without a wake-up for a deadline or a grace": {file: "phase.go", old: "times = append(times, m.Until)",
		new: "_ = m"},

	"roll back in spite of a freeze": {file: "hold.go", test: "^TestHolds$",
		old: "v1alpha1.ReasonAccessNotPermitted,\n\t\tv1alpha1.ReasonFrozen:",
		new: "v1alpha1.ReasonAccessNotPermitted:"},
	"fail what a freeze has stopped": {file: "plan.go", test: "^TestHolds$",
		old: "if !c.FrozenSince.IsZero() && c.FrozenSince.Before(now) {", new: "if false {"},
	"count the time of a freeze": {file: "plan.go", test: "^TestHolds$",
		old: "end = end.Add(f.EndedAt.Sub(latest(began, f.Since)))", new: ""},
	"weigh clusters by what they report": {file: "weights.go", test: "^TestOneCluster",
		old: "weight := min(m.samples, limit)", new: "weight := m.samples"},
	"let a cluster with next to none make others count for nothing": {file: "weights.go", test: "^TestOneCluster",
		old: "limit = max(limit, enough)", new: ""},
	"pass what cannot be measured": {file: "verdicts.go", test: "^TestOneCluster",
		old: "return cmp.Or(s.impossible(), e.gap())", new: "return e.gap()"},
	"ignore the operator that comes first": {file: "holds/holds.go", old: "unmet(in.Dependencies, c.Name), in.Changes",
		new: "nil, in.Changes"},

	"succeeded once is succeeded for ever": {file: "members.go",
		old: "case s.prior.IsDone(), install.Ready && m.cluster.Online:", new: "case true:"},
	"verify while a cluster is not Ready": {file: "phase.go",
		old: "case s.unready > 0 || p.in.Now.Before(", new: "case p.in.Now.Before("},
	"a grace without end": {file: "members.go", old: "m.Since.Add(s.UnreadyGrace.Duration)",
		new: "p.in.Now.Add(time.Hour)"},
	"no grace": {file: "members.go", test: tables, old: "m.Since.Add(s.UnreadyGrace.Duration)", new: "m.Since"},
	"forget since when a cluster is not Ready": {file: "phase.go", old: "status.Unready = p.unreadyClusters()",
		new: "status.Unready = nil"},
	"forget it for those that are tried again": {file: "count.go",
		old: "if m.unreadySince.IsZero() || m.Class == ClassRemoved {",
		new: "if m.Reason != ReasonNotReady || m.unreadySince.IsZero() {"},
	"judge verified waves": {file: "members.go", old: "case s.prior.IsDone(), install.Ready",
		new:  "case install.Ready",
		test: tables},
	"the soak runs while a cluster is not Ready": {file: "phase.go", test: tables,
		old: "roundUp(updatedAt.Add(p.in.Now.Sub(interruptedAt.Time)))", new: "updatedAt"},
	"the soak goes on after a halt": {file: "phase.go", test: tables, old: "case succeeded || recovered ||",
		new: "case succeeded || recovered && false ||"},
	"the soak goes on when a cluster is tried again": {file: "phase.go", old: "case s.readmits():", new: "case false:"},
	"trust the last report of an offline cluster": {file: "members.go", test: tables,
		old: "install.Ready && m.cluster.Online:", new: "install.Ready:"},
	"silence makes it better": {file: "members.go", test: tables, old: "\tcase install.Ready:\n",
		new: "\tcase !m.cluster.Online:\n"},
	"try for ever": {file: "members.go", old: "attempt < p.in.Rollout.Spec.Retries",
		new: "attempt >= 0 && p.in.Rollout.Spec.Retries > 0"},
	"never try again": {file: "members.go", test: tables, old: "attempt < p.in.Rollout.Spec.Retries",
		new: "attempt < 0"},
	"take the first stamp for that of the next attempt": {file: "changing.go", test: tables,
		old: " && stamp.Attempt >= e.Attempt", new: ""},
	"verify without the gates": {file: "phase.go", old: "case !s.mayVerify():", new: "case false:"},
	"pass by an error": {file: "verdicts.go", test: gateTables,
		old: "if e.Failure != \"\" {\n\t\treturn 0, errors.New(e.Failure)\n\t}", new: ""},
	"pass before the window is over": {file: "verdicts.go", old: "case f.outcome == good && over:",
		new: "case f.outcome == good:"},
	"pass by an answer about an earlier soak": {file: "evidence.go", test: gateTables,
		old: "!a.Since.Equal(s.updatedAt.Time) ||", new: ""},
	"pass by an answer about other clusters": {file: "evidence.go", test: gateTables,
		old: "!slices.Equal(a.Clusters, clusters) ||",
		new: "false ||"},
	"pass by an old answer": {file: "gates.go", test: gateTables,
		old: "ok = ok && p.in.Now.Sub(a.At) <= maxAge", new: ""},
	"pass without data": {file: "verdicts.go", test: gateTables,
		old: "if gap := cmp.Or(s.impossible(), others.impossible(), e.gap()); gap != \"\" {",
		new: "if gap := \"\"; false {"},
	"forget a failure": {file: "gates.go", old: "case p.isStopped(s), p.isFailed(was):", new: "case false:"},
	"go on though a gate failed": {file: "admit.go", old: "return s.hasTooManyFailed() || s.failedGate() != nil",
		new: "return s.hasTooManyFailed()"},
	"override gates of other waves": {file: "gates.go", old: "case o.Wave != s.Name || o.Gate != is.Name:",
		new: "case o.Gate != is.Name:"},
	"override approvals": {file: "gates.go", test: gateTables,
		old: "gates = append(gates, p.judgeApproval(w.Name, g))",
		new: "gates = append(gates, p.override(&waveState{wave: w, reached: true}, v1alpha1.GateStatus{}, " +
			"p.judgeApproval(w.Name, g)))"},
	"wait without a wake-up for a measurement": {file: "evidence.go",
		old: "times = append(times, end, end.Add(slack), p.in.Now.Add(MeasureInterval))", new: "_ = end"},

	"roll back nothing though the policy says so": {file: "rollback.go", test: rollbacks,
		old: "p.strategy.OnFailure != v1alpha1.FailureRollback",
		new: "p.strategy.OnFailure == v1alpha1.FailureRollback"},
	"take back clusters that were never touched": {file: "rollback.go", test: rollbacks,
		old: "return exists && ours && install.Previous != nil",
		new: "_ = ours; return exists && install.Previous != nil"},
	"take every cluster back to the same release": {file: "rollback.go", test: rollbacks,
		old: "return ReleaseFor(p.in.Rollout, install.Previous).Hash()", new: "return p.hash"},
	"take back to what never succeeded": {file: "rollback.go", test: rollbacks,
		old: ", install.Status.SucceededHash != was.Hash:", new: ":"},
	"go back to what is gone back from": {file: "rollback.go", test: rollbacks,
		old: "case ro.Spec.Rollback != nil, was.RolloutUID", new: "case was.RolloutUID"},
	"forget the rest when one cannot be taken back": {file: "admit.go", test: rollbacks,
		old: "(!s.failing() || s.undeterred)", new: "!s.failing()"},
	"wait for what is to be taken back": {file: "admit.go", test: rollbacks, old: "if s.undeterred {\n\t\tbusy = 0",
		new: "if false {\n\t\tbusy = 0"},
	"wait for offline clusters before the way back ends": {file: "phase.go", test: rollbacks,
		old: "s.counts.Deferred == 0 || p.isBack()", new: "s.counts.Deferred == 0"},

	"verify a wave that lost all clusters": {file: "observation.go", old: "s.observation = &is", new: "_ = is"},
	"verify a wave in which every cluster failed": {file: "observation.go", test: observations,
		old: "(c.Failed > 0 || c.Deferred == 0)", new: "c.Failed == 0 && c.Deferred == 0"},
	"wait for an observation in a rollback": {file: "observation.go", test: observations,
		old: "return !p.isBack() && !p.ending()", new: "return !p.ending()"},
	"wait for an observation where clusters succeeded": {file: "observation.go",
		old: "c.Total > 0 && c.Succeeded == 0 &&", new: "c.Total > 0 &&"},
	"let the observation pass by itself": {file: "phase.go",
		old: "case s.observation != nil && !s.observation.IsPassed():", new: "case false:"},
	"skip a wave that lost all clusters": {file: "phase.go",
		old: "case s.counts.Total == 0 && s.present == 0:", new: "case s.present == 0:"},
	"verify a wave that never had a cluster": {file: "phase.go",
		old: "case s.counts.Total == 0 && s.present == 0:", new: "case false:"},
	"forget that a wave was skipped": {file: "phase.go", test: observations,
		old: "case s.prior.Phase == v1alpha1.WaveSkipped:", new: "case false:"},
	"ask for gates of a wave that is skipped": {file: "policies.go", test: observations,
		old: "if phase == v1alpha1.WaveSkipped {", new: "if false {"},

	"go on though a policy is not met": {file: "admit.go", old: "p.unmet != \"\" ||", new: ""},
	"ignore the pace of policies": {file: "policies.go", old: "waves[i].Wave, waves[i].caps = b.Wave, b.Caps",
		new: "waves[i].Wave = b.Wave"},
	"ignore soak and gates of policies": {file: "policies.go", old: "waves[i].Wave, waves[i].caps = b.Wave, b.Caps",
		new: "waves[i].caps = b.Caps"},

	"go on though no error budget is left": {file: "pace.go", old: "pace.Percent == 0:\n\t\treturn 0",
		new: "pace.Percent == 0:\n\t\treturn 1"},
	"go on though the error budget is not known": {file: "pace.go",
		old: "pace.Reason = v1alpha1.ReasonErrorBudgetUnknown", new: "pace.Percent = fullPace"},
	"go at full pace on little error budget": {file: "pace.go", old: "case percent >= float64(fullAbove):",
		new: "case percent > 0:"},
	"trust an old error budget": {file: "pace.go", old: "p.in.Now.Sub(was.At.Time) <= maxAge", new: "true"},

	"admit others before those that are tried again": {file: "admit.go",
		old: "return m.retried }, isFree) > 0 || s.holdsRetry() {", new: "return m.retried }, isFree) > 1000 {"},
}

// TestMutantsApply holds every mutant to the code as it is: the fault is planted in one place, and the compiler takes
// it.
func TestMutantsApply(t *testing.T) {
	t.Parallel()
	loaded, err := packages.Load(&packages.Config{Context: t.Context(),
		Mode: packages.NeedName | packages.NeedImports | packages.NeedCompiledGoFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesSizes}, ".", "./holds")
	if err != nil {
		t.Fatal(err)
	}
	byFolder := map[string]*packages.Package{}
	for _, p := range loaded {
		byFolder[path.Base(p.PkgPath)] = p
	}
	for name, m := range mutantsOf {
		source, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("mutant %q: %s has %q %d times, want once", name, m.file, m.old, n)
			continue
		}
		folder := "rollouts"
		if dir := path.Dir(m.file); dir != "." {
			folder = dir
		}
		text := strings.Replace(string(source), m.old, m.new, 1)
		if err := compiles(byFolder[folder], path.Base(m.file), text); err != nil {
			t.Errorf("mutant %q does not compile: %v", name, err)
		}
	}
}

// compiles checks the types of a package in which one file has another text.
func compiles(p *packages.Package, file, text string) error {
	files := slices.Clone(p.Syntax)
	for i, name := range p.CompiledGoFiles {
		if filepath.Base(name) != file {
			continue
		}
		parsed, err := parser.ParseFile(p.Fset, file, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files[i] = parsed
	}
	_, err := (&types.Config{Importer: imported(p.Imports), Sizes: p.TypesSizes}).Check(p.PkgPath, p.Fset, files, nil)
	return err
}

// imported are packages that were loaded.
type imported map[string]*packages.Package

// Import implements types.Importer.
func (i imported) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return i[path].Types, nil
}

// TestMutants plants one fault at a time in the planner and expects a test to
// find it. A fault that survives is a check that is missing. Without the long
// tests it plants a few, from everywhere in the list.
func TestMutants(t *testing.T) {
	found := regexp.MustCompile(`seed \d+: [^\n]{0,150}|panic: [^\n]*|--- FAIL: Test\S*|test timed out`)
	names := slices.Sorted(maps.Keys(mutantsOf))
	every := max(1, len(names)/long.Cases(6, len(names)))
	for i := 0; i < len(names); i += every {
		name, m := names[i], mutantsOf[names[i]]
		t.Run(name, func(t *testing.T) {
			out, err := runMutant(t, m)
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

func runMutant(t *testing.T, m mutant) (string, error) {
	t.Helper()
	path, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		mutated: strings.Replace(string(source), m.old, m.new, 1), overlay: string(text),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", overlay, "-timeout", "5m", "-run",
		cmp.Or(m.test, "^TestSimulator$"), ".", "-args", "-seeds", strconv.Itoa(*seeds))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
