// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/rollout"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func TestApprove(t *testing.T) {
	joined := func(phase v1alpha1.RolloutPhase) *v1alpha1.OperatorRollout {
		r := clitest.GatedRollout()
		r.Status.Phase, r.Status.Waves[1].Phase = phase, v1alpha1.WaveSkipped
		r.Status.Waves[1].Gates[0].WaitingSince = fixture.AgoPtr(time.Minute)
		return r
	}
	approval := v1alpha1.Approval{Wave: "rest", Gate: "sre", By: "anna", Reason: "canary looks good",
		At: metav1.NewTime(fixture.Noon)}
	for name, test := range map[string]struct {
		args []string
		from *v1alpha1.OperatorRollout
		want []v1alpha1.Approval
		err  string
	}{
		"of a cluster that joined after the success": {from: joined(v1alpha1.RolloutSucceeded),
			want: []v1alpha1.Approval{approval}},
		"of a cluster that joined while it goes on": {from: joined(v1alpha1.RolloutProgressing),
			want: []v1alpha1.Approval{approval}},
		"what is waited for": {from: clitest.GatedRollout(), want: []v1alpha1.Approval{approval}},
		"by name": {from: clitest.GatedRollout(), args: []string{"--wave", "rest", "--gate", "sre"},
			want: []v1alpha1.Approval{approval}},
		"ahead": {from: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutPending),
			args: []string{"--wave", "rest"}, want: []v1alpha1.Approval{approval}},
		"nothing waits": {from: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing),
			err: "does not wait for an approval"},
		"no such gate": {from: clitest.GatedRollout(), args: []string{"--wave", "canary"},
			err: "has no approval gate with this name"},
		"ended": {from: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutAborted), err: "has already ended"},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), test.from)
			got := h.Run(t, append([]string{"rollout", "approve", "echo", "--reason", "canary looks good"},
				test.args...)...)
			if !strings.Contains(got.Err, test.err) || (got.Code == exit.OK) != (test.err == "") {
				t.Errorf("exit code %d, error %q, want an error with %q", got.Code, got.Err, test.err)
			}
			if diff := cmp.Diff(test.want, h.Rollout(t, "echo-2").Spec.Approvals); diff != "" {
				t.Errorf("approvals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApproveTwiceKeepsTheFirst(t *testing.T) {
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), clitest.GatedRollout())
	h.Run(t, "rollout", "approve", "echo", "--reason", "first")
	h.User = "bob"
	h.Run(t, "rollout", "approve", "echo", "--reason", "second")
	if a := h.Rollout(t, "echo-2").Spec.Approvals; len(a) != 1 || a[0].By != "anna" || a[0].Reason != "first" {
		t.Errorf("approvals are %v, want anna's alone", a)
	}
}

func TestPauseResumeAbort(t *testing.T) {
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), clitest.GatedRollout())
	steps := []struct {
		args   []string
		paused bool
		reason string
		abort  *v1alpha1.RolloutAbort
	}{
		{args: []string{"pause", "echo", "--reason", "incident"}, paused: true, reason: "incident"},
		{args: []string{"resume", "echo-2"}},
		{args: []string{"abort", "echo", "--reason", "bad release"},
			abort: &v1alpha1.RolloutAbort{Reason: "bad release"}},
	}
	for _, step := range steps {
		got := h.Run(t, append([]string{"rollout"}, step.args...)...)
		if got.Code != exit.OK {
			t.Fatalf("%v: %s", step.args, got.Err)
		}
		spec := h.Rollout(t, "echo-2").Spec
		if spec.Paused != step.paused || spec.PausedReason != step.reason || !cmp.Equal(spec.Abort, step.abort) {
			t.Errorf("%v: paused %t (%q), abort %v", step.args, spec.Paused, spec.PausedReason, spec.Abort)
		}
	}
}

// TestSteeringAfterTheSuccess: a rollout that has succeeded admits clusters that join late, so that it can be paused,
// aborted and let through windows, unless a newer rollout has started.
func TestSteeringAfterTheSuccess(t *testing.T) {
	type steered struct {
		Paused   bool
		Abort    *v1alpha1.RolloutAbort
		Override bool
	}
	for name, test := range map[string]struct {
		args []string
		set  func(*v1alpha1.OperatorRollout)
		want steered
		out  string
	}{
		"pause": {args: []string{"pause", "echo-2", "--reason", "incident"}, want: steered{Paused: true},
			out: "Rollout echo-2 is paused. It has succeeded; clusters that join later, or were deferred, are not " +
				"admitted."},
		"resume": {args: []string{"resume", "echo-2"},
			set: func(r *v1alpha1.OperatorRollout) { r.Spec.Paused = true }, out: "Rollout echo-2 is resumed."},
		"abort": {args: []string{"abort", "echo-2", "--reason", "bad release"},
			want: steered{Abort: &v1alpha1.RolloutAbort{Reason: "bad release"}},
			out: "Rollout echo-2 is aborted. It has succeeded; clusters that join later, or were deferred, are not " +
				"admitted."},
		"override-windows": {args: []string{"override-windows", "echo-2", "--reason", "CVE"},
			want: steered{Override: true}, out: "Rollout echo-2 ignores ChangeWindows, as anna decided."},
	} {
		t.Run(name, func(t *testing.T) {
			succeeded := clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded)
			if test.set != nil {
				test.set(succeeded)
			}
			h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), succeeded)
			got := h.Run(t, append([]string{"rollout"}, test.args...)...)
			spec := h.Rollout(t, "echo-2").Spec
			is := steered{Paused: spec.Paused, Abort: spec.Abort, Override: spec.WindowOverride != nil}
			if diff := cmp.Diff(test.want, is); diff != "" || got.Code != exit.OK || got.Out != test.out+"\n" {
				t.Errorf("exit code %d, (-want +got):\n%s\n%s%s", got.Code, diff, got.Out, got.Err)
			}
			newer := clitest.NewHub(clitest.Operator("echo", "1.1.0"), succeeded,
				clitest.Rollout("echo", "echo-3", 3, v1alpha1.RolloutProgressing))
			got = newer.Run(t, append([]string{"rollout"}, test.args...)...)
			if got.Code == exit.OK || !strings.Contains(got.Err, "rollout echo-2 is not the newest one of echo") {
				t.Errorf("with a newer one: exit code %d: %s%s", got.Code, got.Out, got.Err)
			}
		})
	}
}

func TestResumeOfAnAbortedRolloutFails(t *testing.T) {
	aborted := clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutAborted)
	aborted.Spec.Paused, aborted.Spec.Abort = true, &v1alpha1.RolloutAbort{Reason: "bad"}
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), aborted)
	got := h.Run(t, "rollout", "resume", "echo")
	if got.Code == exit.OK || !strings.Contains(got.Err, "rollout echo-2 has already ended (Aborted)") ||
		!strings.Contains(got.Err, "rollout restart echo") {
		t.Errorf("exit code %d: %s%s", got.Code, got.Out, got.Err)
	}
	if !h.Rollout(t, "echo-2").Spec.Paused {
		t.Error("the aborted rollout was changed")
	}
}

func TestRetry(t *testing.T) {
	failed := func(phase v1alpha1.RolloutPhase) *v1alpha1.OperatorRollout {
		r := clitest.Rollout("echo", "echo-2", 2, phase)
		r.Status.Clusters.Failed = 2
		return r
	}
	for name, test := range map[string]struct {
		from *v1alpha1.OperatorRollout
		want int64
		text string
	}{
		"halted":  {failed(v1alpha1.RolloutHalted), 1, "2 clusters that failed will be admitted again"},
		"aborted": {failed(v1alpha1.RolloutAborted), 0, "rollout restart echo"},
		"nothing failed": {clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing), 0,
			"no cluster of rollout echo-2 has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), test.from)
			got := h.Run(t, "rollout", "retry", "echo")
			if !strings.Contains(got.Out+got.Err, test.text) || h.Rollout(t, "echo-2").Spec.Retries != test.want {
				t.Errorf("exit code %d, %d retries: %s%s", got.Code, h.Rollout(t, "echo-2").Spec.Retries, got.Out,
					got.Err)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"))
	h.MustRun(t, "rollout", "restart", "echo")
	o := &v1alpha1.ManagedOperator{}
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "echo"}, o); err != nil {
		t.Fatal(err)
	}
	if want := fixture.Noon.Format(time.RFC3339); o.Spec.Restart != want {
		t.Errorf("restart is %q, want %q", o.Spec.Restart, want)
	}
}

func TestStatusExitCodes(t *testing.T) {
	aborted := clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutAborted)
	aborted.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "bad"}
	stalled := clitest.Operator("echo", "1.9.0")
	stalled.Status.Target = nil
	stalled.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonUnknownVersion, Message: "no such version"}}
	unseen := clitest.Operator("echo", "1.1.0")
	unseen.Generation = 2
	unread := clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded)
	unread.Generation = 2
	unobserved := clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing)
	unobserved.Status.Waves = []v1alpha1.WaveStatus{{Name: "canary", Phase: v1alpha1.WaveVerifying,
		Gates: []v1alpha1.GateStatus{{Name: v1alpha1.GateObservation, Verdict: v1alpha1.GateWaiting,
			WaitingSince: &metav1.Time{Time: time.Unix(1, 0)}}}}}
	for name, test := range map[string]struct {
		operator *v1alpha1.ManagedOperator
		rollout  *v1alpha1.OperatorRollout
		name     string
		version  string
		want     int
	}{
		"succeeded": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded),
			want: exit.OK},
		"halted": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutHalted),
			want: exit.Failed},
		"aborted by its policy": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutAborted),
			want: exit.Failed},
		"aborted by a person": {rollout: aborted, want: exit.Aborted},
		"superseded": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSuperseded),
			want: exit.Aborted},
		"progressing": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing),
			want: exit.Timeout},
		"paused":         {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutPaused), want: exit.Timeout},
		"needs approval": {rollout: clitest.GatedRollout(), want: exit.NeedsApproval},
		"not observed":   {rollout: unobserved, want: exit.NeedsApproval},
		"changed since":  {rollout: unread, want: exit.Timeout},
		"by the rollout's name": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded),
			name: "echo-2",
			want: exit.OK},
		"unknown": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), name: "nope",
			want: exit.Error},
		"operator not seen": {operator: unseen, rollout: clitest.Rollout("echo", "echo-2", 2,
			v1alpha1.RolloutSucceeded),
			want: exit.Timeout},
		"operator has moved on": {operator: clitest.Operator("echo", "1.2.0"),
			rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), want: exit.Timeout},
		"operator is stalled": {operator: stalled, rollout: clitest.Rollout("echo", "echo-2", 2,
			v1alpha1.RolloutSucceeded),
			want: exit.Failed},
		"version not yet": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), version: "1.2.0",
			want: exit.Timeout},
		"version there": {rollout: clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), version: "1.1.0",
			want: exit.OK},
		"operator has no target": {
			operator: &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "echo"}},
			rollout:  clitest.GatedRollout(), want: exit.Timeout,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.operator
			if o == nil {
				o = clitest.Operator("echo", "1.1.0")
			}
			asked := test.name
			if asked == "" {
				asked = "echo"
			}
			got := clitest.NewHub(o, test.rollout).Run(t, "rollout", "status", asked, "--version", test.version)
			if got.Code != test.want {
				t.Errorf("exit code %d, want %d; %s%s", got.Code, test.want, got.Out, got.Err)
			}
		})
	}
}

func TestStatusWaitsUntilTheTimeout(t *testing.T) {
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"),
		clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing))
	got := h.Run(t, "rollout", "status", "echo", "--wait", "--timeout", "1ms")
	if got.Code != exit.Timeout || !strings.Contains(got.Err, "has not ended within the timeout") {
		t.Errorf("exit code %d, %s", got.Code, got.Err)
	}
}

func TestWatchEndsWithTheRollout(t *testing.T) {
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"),
		clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded))
	want := clitest.Result{Out: "12:00:00Z  echo-2  Succeeded  as the test says\n"}
	if diff := cmp.Diff(want, h.Run(t, "rollout", "get", "echo-2", "-w")); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestPlan(t *testing.T) {
	dir := clitest.WriteCatalog(t)
	access := registry.Flags{}
	source, err := access.Source(dir)
	if err != nil {
		t.Fatal(err)
	}
	digest := clitest.MustResolve(t, source)
	catalog := &v1alpha1.OperatorCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"},
		Spec:       v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{Directory: dir}},
		Status:     v1alpha1.OperatorCatalogStatus{Digest: digest},
	}
	install := &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "bellwether-prod-1", Name: "default.echo",
			Labels: map[string]string{v1alpha1.LabelOperator: "echo", v1alpha1.LabelOperatorNamespace: "default"},
		},
		Spec: v1alpha1.OperatorInstallSpec{Cluster: "prod-1"},
		Status: v1alpha1.OperatorInstallStatus{Installed: &v1alpha1.InstalledVersion{Bundle: "echo-operator.v1.0.0",
			Version: "1.0.0"}},
	}
	waits := clitest.Operator("careful", "1.x")
	waits.Spec.Updates = &v1alpha1.VersionUpdates{Minor: v1alpha1.UpdateApproval}
	careful := install.DeepCopy()
	careful.Name, careful.Labels[v1alpha1.LabelOperator] = "default.careful", "careful"
	held := clitest.Operator("held", "1.1.0")
	held.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Rollout: "held-2", Reason: "it was rolled back"}}
	h := clitest.NewHub(catalog, install, careful, clitest.Operator("echo", "1.1.0"), waits, held,
		clitest.Cluster("prod-1", nil), clitest.Cluster("prod-2", nil))
	for name, test := range map[string]struct {
		operator string
		args     []string
		code     int
		want     []string
	}{
		"a range": {args: []string{"--version", ">=1.0.0"}, want: []string{"echo-operator to 1.1.0",
			`Target: the highest version in ">=1.0.0" that may be rolled out; minor updates, as from 1.0.0, are ` +
				"Automatic."}},
		"a range that is none": {args: []string{"--version", "^1.0.0"}, code: exit.Error,
			want: []string{"write it as"}},
		"a range with a version that waits": {operator: "careful", want: []string{"echo-operator to 1.0.0",
			"! Version 1.1.0 waits for an approval: 1.1.0 is a minor update of 1.0.0, and spec.updates.minor is " +
				"Approval."}},
		"a range with nothing else": {operator: "careful", args: []string{"--version", ">=1.1.0"}, code: exit.Error,
			want: []string{"approve it with `bellwether operator approve careful 1.1.0 --reason TEXT`"}},
		"a held version": {operator: "held", code: exit.Error, want: []string{"held for ManagedOperator held: it was " +
			"rolled back"}},
		"as asked": {want: []string{"echo-operator to 1.1.0 (channel stable", "1.0.0    1          → 1.1.0",
			"new installation of 1.1.0"}},
		"another version": {args: []string{"--version", "1.0.0"}, want: []string{"already installed"}},
		"unknown version": {args: []string{"--version", "9.9.9"}, code: exit.Error,
			want: []string{`no such version "9.9.9"`}},
	} {
		t.Run(name, func(t *testing.T) {
			operator := "echo"
			if test.operator != "" {
				operator = test.operator
			}
			got := h.Run(t, append([]string{"rollout", "plan", operator}, test.args...)...)
			for _, want := range test.want {
				if got.Code != test.code || !strings.Contains(got.Out+got.Err, want) {
					t.Errorf("exit code %d, no %q in\n%s%s", got.Code, want, got.Out, got.Err)
				}
			}
		})
	}
}

func TestPlanOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "echo.yaml")
	text := "apiVersion: bellwether.dev/v1alpha1\nkind: ManagedOperator\nmetadata: {name: echo}\nspec:\n  package: " +
		"echo-operator\n  catalog: {name: main}\n  clusterSelector: {}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := clitest.NewHub(&v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"}},
		clitest.Cluster("prod-1", nil))
	got := h.Run(t, "rollout", "plan", "-f", file)
	if got.Code != exit.OK || !strings.Contains(got.Out, "unknown: the hub has not read the catalog yet") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Out, got.Err)
	}
}

// TestForcedRollbackAsks: a rollback that may lose data needs a confirmation.
func TestForcedRollbackAsks(t *testing.T) {
	for name, c := range map[string]struct {
		of, args, answer string
		failed           int32
		want             string
		quiet            bool // the command does not ask
		ended            bool // the rollout is not a rollback, but was rolled back
	}{
		"rolled back already": {args: "--force", want: "Rollout echo-3 is rolled back already.", quiet: true,
			ended: true},
		"without a terminal": {args: "--force", want: "not confirmed, and nothing was changed"},
		"a no":               {args: "--force", answer: "n\n", want: "not confirmed, and nothing was changed"},
		"a yes":              {args: "--force", answer: "y\n", want: "Rollback echo-3: clusters that failed are"},
		"with the flag":      {args: "--force --yes", want: "Rollback echo-3: clusters that failed are"},
		"without --force":    {want: "rollout echo-3 is a rollback itself", quiet: true},
		"no such rollout":    {of: "echo-9", args: "--force", want: "echo-9", quiet: true},
		"no cluster failed": {failed: -1, args: "--force", want: "no cluster of rollback echo-3 has failed",
			quiet: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := clitest.Rollout("echo", "echo-3", 3, v1alpha1.RolloutHalted)
			r.Spec.Rollback, r.Status.Clusters.Failed = &v1alpha1.RolloutRollback{Of: "echo-2"}, 1+c.failed
			if c.ended {
				r.Spec.Rollback, r.Status.Phase = nil, v1alpha1.RolloutRolledBack
			}
			h := clitest.NewHub(r)
			h.Answer = c.answer
			of := "echo-3"
			if c.of != "" {
				of = c.of
			}
			got := h.Run(t, strings.Fields("rollout rollback "+of+" --reason bad "+c.args)...)
			if !strings.Contains(got.Out+got.Err, c.want) {
				t.Errorf("it says\n%s%swant %q", got.Out, got.Err, c.want)
			}
			if asks := strings.Contains(got.Err, "data of custom resources may be lost"); asks == c.quiet {
				t.Errorf("it says what may be lost: %v", asks)
			}
			after := h.Rollout(t, "echo-3").Spec
			forced := after.Rollback != nil && after.Rollback.Force
			if want := strings.HasPrefix(c.want, "Rollback"); after.Abort != nil || forced != want {
				t.Errorf("forced = %v, want %v", forced, want)
			}
		})
	}
}

// TestWatchTellsThatTheHubIsAway: the first line of the live view has the warning.
func TestWatchTellsThatTheHubIsAway(t *testing.T) {
	in := rollout.RolloutInput{Now: fixture.Noon, Rollout: fixture.HaltedRollout(),
		HubAway: "The hub was last seen long ago."}
	if got := rollout.RenderRollout(in, term.Style{}); !strings.HasPrefix(got, in.HubAway+"\necho-2  ") {
		t.Errorf("the picture is\n%s", got)
	}
}
