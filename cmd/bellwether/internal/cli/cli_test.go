// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a hub that is only a client.
type world struct {
	client.WithWatch
	// user is who the hub takes the caller for.
	user string
}

func newWorld(objects ...client.Object) *world {
	w := &world{user: "anna"}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.OperatorRollout{}, &v1alpha1.ManagedOperator{}, &v1alpha1.FleetCluster{},
			&v1alpha1.OperatorInstall{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: w.create}).Build()
	return w
}

// create answers who the caller is, which the fake client cannot.
func (w *world) create(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	if review, ok := obj.(*authenticationv1.SelfSubjectReview); ok {
		review.Status.UserInfo.Username = w.user
		return nil
	}
	return c.Create(ctx, obj, opts...)
}

// result is how a command line ended.
type result struct {
	code     int
	out, err string
}

func (w *world) run(t *testing.T, args ...string) result {
	t.Helper()
	return w.runAs(t, "bellwether", args...)
}

func (w *world) runAs(t *testing.T, program string, args ...string) result {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	a := newApp(program, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	a.now = func() time.Time { return noon }
	a.connect = func() (client.WithWatch, error) { return w.WithWatch, nil }
	a.watch = func(context.Context, client.ObjectKey) (client.Reader, <-chan struct{}, error) {
		return w.WithWatch, nil, nil
	}
	root := a.root()
	root.SetArgs(args)
	code := a.exit(root.ExecuteContext(t.Context()))
	return result{code, out.String(), errOut.String()}
}

func cluster(name string, labels map[string]string) *v1alpha1.FleetCluster {
	return &v1alpha1.FleetCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: v1alpha1.FleetClusterStatus{
			Namespace: v1alpha1.ClusterNamespace(name),
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonLeaseFresh},
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded},
			},
		},
	}
}

func operator(name, version string) *v1alpha1.ManagedOperator {
	return &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec: v1alpha1.ManagedOperatorSpec{
			Package: "echo-operator", Version: version, Catalog: v1alpha1.LocalReference{Name: "main"},
		},
		Status: v1alpha1.ManagedOperatorStatus{ObservedGeneration: 1,
			Target: &v1alpha1.TargetVersion{Version: version, Channel: "stable"}},
	}
}

func rollout(operator, name string, revision int64, phase v1alpha1.RolloutPhase) *v1alpha1.OperatorRollout {
	return &v1alpha1.OperatorRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec: v1alpha1.OperatorRolloutSpec{
			Operator: v1alpha1.LocalReference{Name: operator}, Revision: revision,
			Release: v1alpha1.Release{Package: "echo-operator", Channel: "stable", Version: "1.1.0",
				Bundle: "echo-operator.v1.1.0"},
			Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{
				{Name: "canary"}, {Name: "rest", Gates: []v1alpha1.Gate{{Name: "sre",
					Approval: &v1alpha1.ApprovalGate{}}}},
			}},
		},
		Status: v1alpha1.OperatorRolloutStatus{ObservedGeneration: 1, Phase: phase, Message: "as the test says"},
	}
}

// gated is a rollout that waits for an approval.
func gated() *v1alpha1.OperatorRollout {
	r := rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing)
	r.Status.Waves = []v1alpha1.WaveStatus{
		{Name: "canary", Phase: v1alpha1.WaveVerified},
		{Name: "rest", Phase: v1alpha1.WaveGated,
			Gates: []v1alpha1.GateStatus{{Name: "sre", Verdict: v1alpha1.GateWaiting}}},
	}
	return r
}

func (w *world) rollout(t *testing.T, name string) *v1alpha1.OperatorRollout {
	t.Helper()
	r := &v1alpha1.OperatorRollout{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, r); err != nil {
		t.Fatalf("get rollout: %v", err)
	}
	return r
}

func TestOutputs(t *testing.T) {
	w := newWorld(cluster("prod-1", map[string]string{"env": "prod"}),
		cluster("canary-1", map[string]string{"env": "canary"}), operator("echo", "1.1.0"))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"names": {[]string{"fleet", "list", "-o", "name"},
			"fleetcluster.bellwether.dev/canary-1\nfleetcluster.bellwether.dev/prod-1\n"},
		"selected": {[]string{"fleet", "list", "-o", "name", "-l", "env=prod"},
			"fleetcluster.bellwether.dev/prod-1\n"},
		"operators by name": {[]string{"operator", "list", "-o", "name"}, "managedoperator.bellwether.dev/echo\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(result{out: test.want}, w.run(t, test.args...),
				cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	for _, format := range []string{"json", "yaml"} {
		got := w.run(t, "operator", "get", "echo", "-o", format)
		if !strings.Contains(got.out, "ManagedOperator") || !strings.Contains(got.out, "bellwether.dev/v1alpha1") {
			t.Errorf("-o %s has no kind and version:\n%s", format, got.out)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	w := newWorld(operator("echo", "1.1.0"), rollout("echo", "echo-1", 1, v1alpha1.RolloutSucceeded),
		cluster("prod-1", nil))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown operator": {
			[]string{"operator", "get", "ecko"},
			"Error: there is no operator \"ecko\" in namespace \"default\"\nHint:  there is echo\n",
		},
		"unknown rollout": {
			[]string{"rollout", "get", "ecko"},
			"Error: there is no rollout and no operator \"ecko\" in namespace \"default\"\nHint:  there is echo\n",
		},
		"unknown cluster": {[]string{"why", "prod-9", "echo"},
			"Error: there is no cluster \"prod-9\" in the fleet\nHint:  there is prod-1\n"},
		"unknown command": {[]string{"rollout", "paus", "echo"},
			"Error: there is no command `bellwether rollout paus`\nHint:  did you mean `bellwether rollout pause`?\n"},
		"unknown flag": {[]string{"fleet", "list", "--wide"},
			"Error: unknown flag: --wide\nHint:  see `bellwether fleet list --help`\n"},
		"unknown format": {
			[]string{"fleet", "list", "-o", "xml"},
			"Error: -o xml is not an output format of this command\nHint:  choose one of [wide json yaml name], or " +
				"leave it out for a table\n",
		},
		"too few arguments": {[]string{"why", "prod-1"},
			"Error: give the operator's name\nHint:  usage: bellwether why CLUSTER OPERATOR [flags]\n"},
		"no reason": {[]string{"rollout", "abort", "echo"},
			"Error: say why\nHint:  add --reason \"…\"; it is kept with the rollout\n"},
		"ended": {
			[]string{"rollout", "pause", "echo"},
			"Error: rollout echo-1 has already ended (Succeeded)\nHint:  change the ManagedOperator to start another " +
				"rollout\n",
		},
		"bad selector": {[]string{"fleet", "list", "-l", "a=b=c"}, "Hint:  write it as env=prod,region!=eu\n"},
		"no kubeconfig to join": {
			[]string{"fleet", "join", "prod-2"},
			"Error: give the cluster's kubeconfig with --cluster-kubeconfig FILE\nHint:  or --write-kubeconfig FILE " +
				"to install the agent by other means\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.run(t, test.args...)
			if got.code != exitError || !strings.HasSuffix(got.err, test.want) {
				t.Errorf("exit code %d and\n%s\nwant %d and\n%s", got.code, got.err, exitError, test.want)
			}
		})
	}
}

func TestAsAKubectlPlugin(t *testing.T) {
	w := newWorld()
	if got := w.runAs(t, "/usr/local/bin/kubectl-bellwether", "rollout", "status", "--help"); !strings.Contains(got.out,
		"kubectl bellwether rollout status NAME") {
		t.Errorf("the usage does not say how to call a plugin:\n%s", got.out)
	}
	if got := w.runAs(t, "kubectl-bellwether", "why", "a"); !strings.Contains(got.err,
		"usage: kubectl bellwether why") {
		t.Errorf("the hint does not say how to call a plugin:\n%s", got.err)
	}
}

func TestApprove(t *testing.T) {
	approval := v1alpha1.Approval{Wave: "rest", Gate: "sre", By: "anna", Reason: "canary looks good",
		At: metav1.NewTime(noon)}
	for name, test := range map[string]struct {
		args []string
		from *v1alpha1.OperatorRollout
		want []v1alpha1.Approval
		err  string
	}{
		"what is waited for": {from: gated(), want: []v1alpha1.Approval{approval}},
		"by name": {from: gated(), args: []string{"--wave", "rest", "--gate", "sre"},
			want: []v1alpha1.Approval{approval}},
		"ahead": {from: rollout("echo", "echo-2", 2, v1alpha1.RolloutPending),
			args: []string{"--wave", "rest"}, want: []v1alpha1.Approval{approval}},
		"nothing waits": {from: rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing),
			err: "does not wait for an approval"},
		"no such gate": {from: gated(), args: []string{"--wave", "canary"}, err: "has no such approval gate"},
		"ended":        {from: rollout("echo", "echo-2", 2, v1alpha1.RolloutAborted), err: "has already ended"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(operator("echo", "1.1.0"), test.from)
			got := w.run(t, append([]string{"rollout", "approve", "echo", "--reason", "canary looks good"},
				test.args...)...)
			if !strings.Contains(got.err, test.err) || (got.code == exitOK) != (test.err == "") {
				t.Errorf("exit code %d, error %q, want an error with %q", got.code, got.err, test.err)
			}
			if diff := cmp.Diff(test.want, w.rollout(t, "echo-2").Spec.Approvals); diff != "" {
				t.Errorf("approvals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApproveTwiceKeepsTheFirst(t *testing.T) {
	w := newWorld(operator("echo", "1.1.0"), gated())
	w.run(t, "rollout", "approve", "echo", "--reason", "first")
	w.user = "bob"
	w.run(t, "rollout", "approve", "echo", "--reason", "second")
	if a := w.rollout(t, "echo-2").Spec.Approvals; len(a) != 1 || a[0].By != "anna" || a[0].Reason != "first" {
		t.Errorf("approvals are %v, want anna's alone", a)
	}
}

func TestPauseResumeAbort(t *testing.T) {
	w := newWorld(operator("echo", "1.1.0"), gated())
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
		got := w.run(t, append([]string{"rollout"}, step.args...)...)
		if got.code != exitOK {
			t.Fatalf("%v: %s", step.args, got.err)
		}
		spec := w.rollout(t, "echo-2").Spec
		if spec.Paused != step.paused || spec.PausedReason != step.reason || !cmp.Equal(spec.Abort, step.abort) {
			t.Errorf("%v: paused %t (%q), abort %v", step.args, spec.Paused, spec.PausedReason, spec.Abort)
		}
	}
}

func TestStatusExitCodes(t *testing.T) {
	aborted := rollout("echo", "echo-2", 2, v1alpha1.RolloutAborted)
	aborted.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "bad"}
	stalled := operator("echo", "1.9.0")
	stalled.Status.Target = nil
	stalled.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonUnknownVersion, Message: "no such version"}}
	unseen := operator("echo", "1.1.0")
	unseen.Generation = 2
	unread := rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded)
	unread.Generation = 2
	for name, test := range map[string]struct {
		operator *v1alpha1.ManagedOperator
		rollout  *v1alpha1.OperatorRollout
		name     string
		version  string
		want     int
	}{
		"succeeded":             {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), want: exitOK},
		"halted":                {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutHalted), want: exitFailed},
		"aborted by its policy": {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutAborted), want: exitFailed},
		"aborted by a person":   {rollout: aborted, want: exitAborted},
		"superseded": {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSuperseded),
			want: exitAborted},
		"progressing": {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing),
			want: exitTimeout},
		"paused":         {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutPaused), want: exitTimeout},
		"needs approval": {rollout: gated(), want: exitNeedsApproval},
		"changed since":  {rollout: unread, want: exitTimeout},
		"by the rollout's name": {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), name: "echo-2",
			want: exitOK},
		"unknown": {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), name: "nope",
			want: exitError},
		"operator not seen": {operator: unseen, rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded),
			want: exitTimeout},
		"operator has moved on": {operator: operator("echo", "1.2.0"),
			rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), want: exitTimeout},
		"operator is stalled": {operator: stalled, rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded),
			want: exitFailed},
		"version not yet": {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), version: "1.2.0",
			want: exitTimeout},
		"version there": {rollout: rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded), version: "1.1.0",
			want: exitOK},
		"operator has no target": {operator: &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "echo"}}, rollout: gated(), want: exitTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.operator
			if o == nil {
				o = operator("echo", "1.1.0")
			}
			asked := test.name
			if asked == "" {
				asked = "echo"
			}
			got := newWorld(o, test.rollout).run(t, "rollout", "status", asked, "--version", test.version)
			if got.code != test.want {
				t.Errorf("exit code %d, want %d; %s%s", got.code, test.want, got.out, got.err)
			}
		})
	}
}

func TestStatusWaitsUntilTheTimeout(t *testing.T) {
	w := newWorld(operator("echo", "1.1.0"), rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing))
	got := w.run(t, "rollout", "status", "echo", "--wait", "--timeout", "1ms")
	if got.code != exitTimeout || !strings.Contains(got.err, "has not ended within the timeout") {
		t.Errorf("exit code %d, %s", got.code, got.err)
	}
}

func TestWatchEndsWithTheRollout(t *testing.T) {
	w := newWorld(operator("echo", "1.1.0"), rollout("echo", "echo-2", 2, v1alpha1.RolloutSucceeded))
	want := result{out: "12:00:00  echo-2  Succeeded  as the test says\n"}
	if diff := cmp.Diff(want, w.run(t, "rollout", "get", "echo-2", "-w"), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

const catalogText = `---
schema: olm.package
name: echo-operator
defaultChannel: stable
---
schema: olm.channel
package: echo-operator
name: stable
entries:
- name: echo-operator.v1.0.0
- name: echo-operator.v1.1.0
  replaces: echo-operator.v1.0.0
---
schema: olm.bundle
package: echo-operator
name: echo-operator.v1.0.0
image: registry.example.com/echo:1.0.0
properties:
- {type: olm.package, value: {packageName: echo-operator, version: 1.0.0}}
---
schema: olm.bundle
package: echo-operator
name: echo-operator.v1.1.0
image: registry.example.com/echo:1.1.0
properties:
- {type: olm.package, value: {packageName: echo-operator, version: 1.1.0}}
`

// catalogDir is a catalog in a folder.
func catalogDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(catalogText), 0o600); err != nil {
		t.Fatalf("write catalog: %v", err)
	}
	return dir
}

func TestPlan(t *testing.T) {
	dir := catalogDir(t)
	access := registryFlags{}
	source, err := access.source(dir)
	if err != nil {
		t.Fatal(err)
	}
	digest := mustResolve(t, source)
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
	w := newWorld(catalog, install, operator("echo", "1.1.0"), cluster("prod-1", nil), cluster("prod-2", nil))
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"as asked": {want: []string{"echo-operator to 1.1.0 (channel stable", "1.0.0    1          → 1.1.0",
			"fresh install of 1.1.0"}},
		"another version": {args: []string{"--version", "1.0.0"}, want: []string{"already there"}},
		"unknown version": {args: []string{"--version", "9.9.9"}, code: exitError,
			want: []string{`no such version "9.9.9"`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.run(t, append([]string{"rollout", "plan", "echo"}, test.args...)...)
			for _, want := range test.want {
				if got.code != test.code || !strings.Contains(got.out+got.err, want) {
					t.Errorf("exit code %d, no %q in\n%s%s", got.code, want, got.out, got.err)
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
	w := newWorld(&v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"}},
		cluster("prod-1", nil))
	got := w.run(t, "rollout", "plan", "-f", file)
	if got.code != exitOK || !strings.Contains(got.out, "unknown: the hub has not read the catalog yet") {
		t.Errorf("exit code %d\n%s%s", got.code, got.out, got.err)
	}
}

func TestCatalogShow(t *testing.T) {
	w, dir := newWorld(), catalogDir(t)
	if got := w.run(t, "catalog", "show", dir, "echo-operator"); !strings.Contains(got.out,
		"1.1.0 (head)   echo-operator.v1.1.0   image     1.0.0") {
		t.Errorf("no upgrade graph in\n%s%s", got.out, got.err)
	}
	if got := w.run(t, "catalog", "show", dir, "-o", "yaml"); !strings.Contains(got.out, "defaultChannel: stable") {
		t.Errorf("no default channel in\n%s%s", got.out, got.err)
	}
	if got := w.run(t, "catalog", "show", t.TempDir()); got.code != exitError || !strings.Contains(got.err, "Hint:") {
		t.Errorf("an empty folder: exit code %d, %s", got.code, got.err)
	}
}

func TestCompletion(t *testing.T) {
	w := newWorld(operator("echo", "1.1.0"), gated(), cluster("prod-1", map[string]string{"region": "eu"}))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"clusters":        {[]string{"fleet", "get", ""}, "prod-1\teu\n"},
		"rollouts":        {[]string{"rollout", "get", ""}, "echo\techo-operator\necho-2\t1.1.0 Progressing\n"},
		"second argument": {[]string{"why", "prod-1", ""}, "echo\techo-operator\n"},
		"waves":           {[]string{"rollout", "approve", "echo", "--wave", ""}, "rest\n"},
		"formats":         {[]string{"fleet", "list", "-o", ""}, "wide\njson\nyaml\nname\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.run(t, append([]string{"__complete"}, test.args...)...)
			if !strings.HasPrefix(got.out, test.want) {
				t.Errorf("completes to\n%s\nwant\n%s", got.out, test.want)
			}
		})
	}
}

func TestAgentKubeconfig(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-1", Name: "token"},
		Data:       map[string][]byte{"token": []byte("t0ken"), "ca.crt": []byte("in-cluster CA")},
	}
	for name, test := range map[string]struct {
		hub        rest.Config
		server     string
		wantServer string
		wantCA     string
		wantErr    string
	}{
		"the user's address and CA": {hub: rest.Config{Host: "https://hub:6443",
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte("user CA")}}, wantServer: "https://hub:6443",
			wantCA: "user CA"},
		"another address": {hub: rest.Config{Host: "https://hub:6443",
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte("user CA")}}, server: "https://hub.example.com",
			wantServer: "https://hub.example.com", wantCA: "user CA"},
		"no CA in the kubeconfig": {hub: rest.Config{Host: "https://hub:6443"}, wantServer: "https://hub:6443",
			wantCA: "in-cluster CA"},
		"no URL": {hub: rest.Config{Host: "https://hub:6443"}, server: "hub", wantErr: "is no URL"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := agentKubeconfig(&test.hub, test.server, secret)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig(text)
			if err != nil {
				t.Fatalf("load what was written: %v", err)
			}
			if config.Host != test.wantServer || string(config.CAData) != test.wantCA || config.BearerToken != "t0ken" {
				t.Errorf("server %q, CA %q, token %q", config.Host, config.CAData, config.BearerToken)
			}
		})
	}
}

func TestDocs(t *testing.T) {
	dir := t.TempDir()
	if got := newWorld().run(t, "docs", dir, "--reasons", filepath.Join(dir, "reasons.md")); got.code != exitOK {
		t.Fatal(got.err)
	}
	for _, name := range []string{"bellwether.md", "bellwether_rollout_status.md", "bellwether_why.md", "reasons.md"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("no %s: %v", name, err)
		}
	}
}

// TestEveryCommandIsDocumented holds the help to a shape: what each command
// does in a phrase, and flags as sentences.
func TestEveryCommandIsDocumented(t *testing.T) {
	a := newApp("bellwether", genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	commands := a.root().Commands()
	for len(commands) > 0 {
		c := commands[0]
		commands = append(commands[1:], c.Commands()...)
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.ToUpper(c.Short[:1]) != c.Short[:1] {
			t.Errorf("%s: its short help is no phrase: %q", c.CommandPath(), c.Short)
		}
	}
}

func TestExplainKnowsInterrupts(t *testing.T) {
	a := newApp("bellwether", genericiooptions.IOStreams{})
	if message, _ := a.explain(errors.Join(errors.New("x"), context.Canceled)); message != "interrupted" {
		t.Errorf("an interrupt is explained as %q", message)
	}
}
