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
	// test must find the fault; empty means the simulator. Table tests find faults that need five rare conditions, or
	// that only affect times.
	test string
}

const tables = "^(TestNext|TestSoakJudges|TestSoakClock|TestUnreadyIsRemembered|TestVerifiedWaveKeepsItsCounts|" +
	"TestRecheck)$"

const gateTables = "^(TestSLOGate|TestBaselineGate|TestPromQLGate|TestGatesHoldTheWave)$"
const observations = "^(TestNothingObservedIsNotVerified|TestSkippedWaves)$"
const rollbacks = "^(TestRollbackSimulator|TestRollback|TestRollbackIsDecided|TestPreviousOf)$"

var mutantsOf = map[string]mutant{
	"ignore the batch when counting slots": {file: "classify.go", old: "m.takesSlot = f.isWritten ||",
		new: "m.takesSlot ="},
	"drop a batch entry before it is seen": {file: "choose.go",
		old: "entries = append(entries, markHeld(renewEntry(e, isStopping, in.Live, in.Now), isHeld, in.Now))",
		new: "_, _, _ = e, isStopping, isHeld"},
	"act on the batch that was just decided": {file: "choose.go",
		old: "\t\tc.batch = &v1alpha1.AdmissionBatch{Clusters: entries}\n",
		new: "\t\tc.batch = &v1alpha1.AdmissionBatch{Clusters: entries}\n" +
			"\t\tc.actions = slices.DeleteFunc(c.actions, func(a Action) bool { return a.Kind == ActionAdmit })\n" +
			"\t\tfor _, e := range entries { c.actions = append(c.actions, Action{Kind: ActionAdmit, " +
			"Cluster: e.Cluster, Wave: e.Wave, AdmittedAt: e.AdmittedAt, Attempt: e.Attempt}) }\n"},
	"one slot too many": {file: "choose.go", old: "return own+busy < w.maxConcurrency }",
		new: "return own+busy <= w.maxConcurrency }"},
	"forget clusters busy with an older one": {file: "choose.go", old: "return own+busy < w.maxConcurrency }",
		new: "return own < w.maxConcurrency }"},
	"percentages of slots rounded up": {file: "waves.go",
		old: "GetScaledValueFromIntOrPercent(w.MaxConcurrency, total, false)",
		new: "GetScaledValueFromIntOrPercent(w.MaxConcurrency, total, true)"},
	"one failure too many": {file: "judge.go", old: "int(w.Failed) > w.maxFailures",
		new: "int(w.Failed) > w.maxFailures+1"},
	"trust a cache that is behind": {file: "observe.go", old: "return err != nil || order < 0",
		new: "return err != nil && order > 0"},
	"trust a cache when a wave is verified": {file: "record.go", old: "&& !in.Live", new: "&& false"},
	"freeze the membership from a cache": {file: "observe.go",
		old: "if status.PlanHash == \"\" {\n\t\treturn true\n\t}", new: ""},
	"freeze without the labels": {file: "membership.go", old: "len(actions) > 0 || !o.in.Live", new: "!o.in.Live"},
	"let the soak end with its first second": {file: "judge.go", old: "return w.UpdatedAt.Add(spec.Soak.Duration)",
		new: "return w.UpdatedAt.Add(spec.Soak.Duration / 2)"},
	"never move the soak": {file: "judge.go", old: "succeeded := w.updated > previous.Updated ||",
		new: "succeeded := previous.Updated == 0 && w.updated > 0 ||"},
	"skip the gate": {file: "gates.go", old: "t.open = reached && hasAllApprovals(w.Gates, t.gates)",
		new: "t.open = reached"},
	"open every wave": {file: "gates.go", old: "reached = reached && t.prior.IsDone()",
		new: ""},
	"go on while paused":                  {file: "judge.go", old: "spec.Paused || spec.Blocked", new: "spec.Blocked"},
	"go on though the version is blocked": {file: "judge.go", old: "spec.Blocked != \"\" ||", new: ""},
	"go on after an abort": {file: "judge.go", old: "return !ro.MayAdmit() ||",
		new: "return ro.IsStopped() ||"},
	"admit offline clusters": {file: "classify.go", old: "isReachable := f.cluster.Online && !f.cluster.Paused",
		new: "isReachable := !f.cluster.Paused"},
	"fail a slow cluster never": {file: "classify.go", old: "start.Add(allowed)",
		new: "start.Add(1_000_000 * allowed)"},
	"deadline at half time": {file: "classify.go", old: "start.Add(allowed)",
		new: "start.Add(allowed / 2)"},
	"forget late joiners": {file: "choose.go", old: "o.strategy.LateJoiners != v1alpha1.LateIgnore && ro.MayAdmit()",
		new: "false"},
	"late joiners to any wave": {file: "membership.go", old: "place := findLateJoinerWave(c, waves)",
		new: "place := 0"},
	"verify while clusters are in progress": {file: "record.go",
		old: "w.Pending > 0 || w.InProgress > w.unready ||", new: "w.Pending > 0 ||"},
	"verify while clusters are pending": {file: "record.go",
		old: "w.Pending > 0 || w.InProgress > w.unready ||", new: "w.InProgress > w.unready ||"},
	"never give up on a lapsed entry": {file: "batch.go", old: "if !in.Live || !isLapsed {",
		new: "if isLapsed || !isLapsed {"},
	"count a removed cluster twice": {file: "classify.go", old: "t.Removed += t.Total - existing",
		new: "t.Removed += t.Total"},
	"let the total shrink": {file: "classify.go", old: "t.Total = max(total, existing)",
		new: "t.Total = existing"},
	"leave a phase that ended": {file: "record.go",
		old: "case ro.Status.Phase.Ended():\n\t\treturn ro.Status.Phase\n", new: ""},
	"free the slot of a cluster that left": {file: "classify.go",
		old: "m.Class, m.Reason, m.Message, m.Since = ClassRemoved,",
		new: "m.takesSlot = false; m.Class, m.Reason, m.Message, m.Since = ClassRemoved,"},
	"depend on the order of the cache": {file: "classify.go",
		old: "slices.SortFunc(w.members, func(a, b member) int { return w.compareClusters(a.cluster, b.cluster) })",
		new: "_ = slices.Clone[[]member]"},
	"keep a halted rollout halted": {file: "record.go", old: "case isHalted:\n",
		new: "case isHalted || ro.Status.Phase == v1alpha1.RolloutHalted:\n"},
	"succeeded is any success of any release": {file: "classify.go",
		old: "hash := selectReleaseHash(ro, releaseHash, install)\n\treturn install.SucceededHash == hash && " +
			"install.Stamp.Hash == hash",
		new: "return install.SucceededHash != \"\""},
	"take in clusters that are not selected": {file: "classify.go", old: "case !f.isSelected || f.install.Deleting:",
		new: "case f.install.Deleting:"},
	"act on entries of clusters that are held back": {file: "choose.go", old: "e.Held || m.hold != nil {",
		new: "e.Held {"},
	"act on an entry in the pass in which its hold ends": {file: "choose.go", old: "e.Held || m.hold != nil {",
		new: "m.hold != nil {"},
	"drop an entry as soon as its cluster is held back": {file: "batch.go", test: "^TestHolds$",
		old: "isDoubtful && (isHalting(in.Rollout.Status.Phase) || isEntryDropped(in.Rollout, e, clusters))",
		new: "isDoubtful && isHalting(in.Rollout.Status.Phase) || isEntryDropped(in.Rollout, e, clusters)"},
	"admit after the window has closed": {file: "choose.go",
		old: "NotAfter: toNotAfter(readOpenUntil(&ro.Spec, m.cluster)),", new: ""},
	"admit clusters that are held back": {file: "classify.go",
		old: "isEligible := isReachable && f.hold == nil", new: "isEligible := isReachable"},
	"wait without a wake-up for a window": {file: "recheck.go", test: tables,
		old: "times = append(times, listHoldTimes(&ro.Spec, w, batch)...)", new: ""},
	"wait without a wake-up for a soak": {file: "recheck.go", test: tables,
		old: "times = append(times, computeSoakEnd(w))", new: ""},
	"wait without a wake-up for a deadline or a grace": {file: "recheck.go", old: "times = append(times, m.Until)",
		new: "_ = m"},

	"roll back in spite of a freeze": {file: "hold.go", test: "^TestHolds$",
		old: "v1alpha1.ReasonAccessNotPermitted,\n\t\tv1alpha1.ReasonFrozen:",
		new: "v1alpha1.ReasonAccessNotPermitted:"},
	"fail what a freeze has stopped": {file: "input.go", test: "^TestHolds$",
		old: "if !c.FrozenSince.IsZero() && c.FrozenSince.Before(now) {", new: "if false {"},
	"count the time of a freeze": {file: "input.go", test: "^TestHolds$",
		old: "end = end.Add(f.EndedAt.Sub(maxTime(began, f.Since)))", new: ""},
	"weigh clusters by what they report": {file: "weights.go", test: "^TestOneCluster",
		old: "weight := min(m.samples, limit)", new: "weight := m.samples"},
	"let a cluster with next to none make others count for nothing": {file: "weights.go", test: "^TestOneCluster",
		old: "limit = max(limit, minSampleLimit)", new: ""},
	"pass what cannot be measured": {file: "verdicts.go", test: "^TestOneCluster",
		old: "return cmp.Or(s.explainImpossible(), e.explainGap())", new: "return e.explainGap()"},
	"ignore the operator that comes first": {file: "holds/holds.go",
		old: "findUnmetDependency(in.Dependencies, c.Name),", new: "nil,"},

	"succeeded once is succeeded for ever": {file: "classify.go",
		old: "case t.prior.IsDone(), f.install.Ready && f.cluster.Online:", new: "case true:"},
	"verify while a cluster is not Ready": {file: "record.go",
		old: "case w.unready > 0 || now.Before(", new: "case now.Before("},
	"a grace without end": {file: "classify.go", old: "m.Since.Add(t.UnreadyGrace.Duration)",
		new: "f.clock.Add(time.Hour)"},
	"no grace": {file: "classify.go", test: tables, old: "m.Since.Add(t.UnreadyGrace.Duration)", new: "m.Since"},
	"forget since when a cluster is not Ready": {file: "record.go",
		old: "status.Unready = listUnreadyClusters(c.waves, o.unready)", new: "status.Unready = nil"},
	"forget it for those that are tried again": {file: "record.go",
		old: "if m.unreadySince.IsZero() || m.Class == ClassRemoved {",
		new: "if m.Reason != ReasonNotReady || m.unreadySince.IsZero() {"},
	"judge verified waves": {file: "classify.go", old: "case t.prior.IsDone(), f.install.Ready",
		new:  "case f.install.Ready",
		test: tables},
	"the soak runs while a cluster is not Ready": {file: "judge.go", test: tables,
		old: "roundUp(clock.updatedAt.Add(now.Sub(clock.interruptedAt.Time)))", new: "previous.UpdatedAt"},
	"the soak goes on after a halt": {file: "judge.go", test: tables, old: "case succeeded || recovered ||",
		new: "case succeeded || recovered && false ||"},
	"the soak goes on when a cluster is tried again": {file: "judge.go",
		old: "case isReadmitting(w.members):", new: "case false:"},
	"trust the last report of an offline cluster": {file: "classify.go", test: tables,
		old: "f.install.Ready && f.cluster.Online:", new: "f.install.Ready:"},
	"silence makes it better": {file: "classify.go", test: tables, old: "\tcase f.install.Ready:\n",
		new: "\tcase !f.cluster.Online:\n"},
	"try for ever": {file: "classify.go", old: "readAttempt(ro, install) < ro.Spec.Retries",
		new: "ro.Spec.Retries > 0"},
	"never try again": {file: "classify.go", test: tables, old: "readAttempt(ro, install) < ro.Spec.Retries",
		new: "readAttempt(ro, install) < 0"},
	"take the first stamp for that of the next attempt": {file: "batch.go", test: tables,
		old: " && stamp.Attempt >= e.Attempt", new: ""},
	"verify without the gates": {file: "record.go", old: "case !hasOnlyPassedGates(w.gates):", new: "case false:"},
	"pass by an error": {file: "verdicts.go", test: gateTables,
		old: "if e.Failure != \"\" {\n\t\treturn 0, errors.New(e.Failure)\n\t}", new: ""},
	"pass before the window is over": {file: "verdicts.go", old: "case f.outcome == good && over:",
		new: "case f.outcome == good:"},
	"pass by an answer about an earlier soak": {file: "evidence.go", test: gateTables,
		old: "!a.Since.Equal(q.Since) ||", new: ""},
	"pass by an answer about other clusters": {file: "evidence.go", test: gateTables,
		old: "!slices.Equal(a.Clusters, q.Clusters) ||",
		new: "false ||"},
	"pass by an old answer": {file: "gates.go", test: gateTables,
		old: "ok = ok && in.now.Sub(a.At) <= maxMeasurementAge", new: ""},
	"pass without data": {file: "verdicts.go", test: gateTables,
		old: "if gap := cmp.Or(s.explainImpossible(), baseline.explainImpossible(), e.explainGap()); gap != \"\" {",
		new: "if gap := \"\"; false {"},
	"forget a failure": {file: "gates.go",
		old: "case hasFailedGate(&ro.Spec, w.prior), hasFailed(previous, ro.Spec.Retries):", new: "case false:"},
	"go on though a gate failed": {file: "judge.go", old: "w.isFailing = w.hasTooManyFailed || w.failedGate != nil",
		new: "w.isFailing = w.hasTooManyFailed"},
	"override gates of other waves": {file: "gates.go", old: "case o.Wave != prior.Name || o.Gate != current.Name:",
		new: "case o.Gate != current.Name:"},
	"override approvals": {file: "gates.go", test: gateTables,
		old: "gates = append(gates, judgeApproval(ro, g, prior, now))",
		new: "gates = append(gates, applyOverride(ro.Spec.Overrides, prior, judgeApproval(ro, g, prior, now), now))"},
	"wait without a wake-up for a measurement": {file: "evidence.go",
		old: "times = append(times, end, end.Add(verdictSlack), now.Add(MeasureInterval))", new: "_ = end"},

	"roll back nothing though the policy says so": {file: "rollback.go", test: rollbacks,
		old: "onFailure != v1alpha1.FailureRollback",
		new: "onFailure == v1alpha1.FailureRollback"},
	"take back clusters that were never touched": {file: "rollback.go", test: rollbacks,
		old: "return isOurs && install.Previous != nil",
		new: "_ = isOurs; return install.Previous != nil"},
	"take every cluster back to the same release": {file: "rollback.go", test: rollbacks,
		old: "return ReleaseFor(ro, install.Previous).Hash()", new: "return releaseHash"},
	"take back to what never succeeded": {file: "rollback.go", test: rollbacks,
		old: ", install.Status.SucceededHash != previous.Hash:", new: ":"},
	"go back to what is gone back from": {file: "rollback.go", test: rollbacks,
		old: "case ro.Spec.Rollback != nil, previous.RolloutUID", new: "case previous.RolloutUID"},
	"forget the rest when one cannot be taken back": {file: "judge.go", test: rollbacks,
		old: "(!w.isFailing || ro.Spec.Rollback != nil)", new: "!w.isFailing"},
	"wait for what is to be taken back": {file: "choose.go", test: rollbacks, old: "if isRollback {\n\t\tbusy = 0",
		new: "if false {\n\t\tbusy = 0"},
	"wait for offline clusters before the way back ends": {file: "judge.go", test: rollbacks,
		old: "w.Deferred == 0 || ro.Spec.Rollback != nil", new: "w.Deferred == 0"},

	"verify a wave that lost all clusters": {file: "judge.go", old: "w.unobserved = judgeUnobserved(ro, w, o.in.Now)",
		new: "_ = judgeUnobserved(ro, w, o.in.Now)"},
	"verify a wave in which every cluster failed": {file: "unobserved.go", test: observations,
		old: "(w.Failed > 0 || w.Deferred == 0)", new: "w.Failed == 0 && w.Deferred == 0"},
	"wait for an observation in a rollback": {file: "unobserved.go", test: observations,
		old: "return ro.Spec.Rollback == nil && ro.MayAdmit()", new: "return ro.MayAdmit()"},
	"wait for an observation where clusters succeeded": {file: "unobserved.go",
		old: "w.Total > 0 && w.Succeeded == 0 &&", new: "w.Total > 0 &&"},
	"let the observation pass by itself": {file: "record.go",
		old: "case w.unobserved != nil && !w.unobserved.IsPassed():", new: "case false:"},
	"skip a wave that lost all clusters": {file: "record.go",
		old: "case w.Total == 0 && w.present == 0:", new: "case w.present == 0:"},
	"verify a wave that never had a cluster": {file: "record.go",
		old: "case w.Total == 0 && w.present == 0:", new: "case false:"},
	"forget that a wave was skipped": {file: "record.go", test: observations,
		old: "case w.prior.Phase == v1alpha1.WaveSkipped:", new: "case false:"},
	"ask for gates of a wave that is skipped": {file: "policies.go", test: observations,
		old: "if phase == v1alpha1.WaveSkipped {", new: "if false {"},

	"go on though a policy is not met": {file: "judge.go", old: "unmet != \"\" ||", new: ""},
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
	"trust an old error budget": {file: "pace.go", old: "in.Now.Sub(previous.At.Time) <= maxMeasurementAge",
		new: "true"},

	"admit others before those that are tried again": {file: "choose.go",
		old: "return m.isRetry }, isFree) > 0 || hasHeldRetry(w.members) {",
		new: "return m.isRetry }, isFree) > 1000 {"},
}

// TestMutantsApply checks every mutant against the current code: the text to replace occurs once, and the changed
// code compiles.
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
