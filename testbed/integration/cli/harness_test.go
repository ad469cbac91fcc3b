// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli tests the bellwether program against a real API server. It plays
// the hub's controllers: what they do is tested elsewhere.
package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

const (
	patience = 5 * time.Minute
	look     = 50 * time.Millisecond
)

// hub is an API server on which the hub's objects were installed by the
// program under test.
type hub struct {
	client.Client
	program    string
	kubeconfig string
	namespace  string
}

var installOnce sync.Once

// newHub returns the hub that all tests share, with a namespace of the test's own.
func newHub(t *testing.T) *hub {
	t.Helper()
	c := testenv.Shared(t, cluster.Options{APIServerOnly: true})
	h := connect(t, c)
	installOnce.Do(func() {
		if got := h.run(t, "install", "hub", "--wait=false"); got.code != 0 {
			t.Fatalf("install hub: %s%s", got.out, got.err)
		}
		eventually(t, "the policy on approvals is in force", func() bool { return h.refusesForgedApproval(t) })
	})
	h.namespace = testenv.Namespace(t, c.RESTConfig(), "cli")
	return h
}

func connect(t *testing.T, c *cluster.Cluster) *hub {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	direct, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)
	return &hub{Client: direct, program: testenv.Binary(t, build.Bellwether), kubeconfig: c.Kubeconfig(),
		namespace: "default"}
}

// refusesForgedApproval tells whether the API server refuses an approval in another person's name. It evaluates an
// admission policy only some time after that was created.
func (h *hub) refusesForgedApproval(t *testing.T) bool {
	t.Helper()
	r := newRollout(h.namespace)
	r.Spec.Approvals = []v1alpha1.Approval{{Gate: "sre", By: "somebody-else", Reason: "fine", At: metav1.Now()}}
	err := h.Create(t.Context(), r, client.DryRunAll)
	return apierrors.IsForbidden(err)
}

// result is how the program ended.
type result struct {
	code     int
	out, err string
}

// command is the program with the hub's kubeconfig and the test's namespace.
func (h *hub) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, h.program, append([]string{"-n", h.namespace}, args...)...)
	c.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig)
	return c
}

func (h *hub) run(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errOut bytes.Buffer
	c := h.command(ctx, args...)
	c.Stdout, c.Stderr = &out, &errOut
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("bellwether %s: %v", strings.Join(args, " "), err)
	}
	return result{c.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// newRollout returns an operator's rollout with two waves, the second of which has two approval gates.
func newRollout(namespace string) *v1alpha1.OperatorRollout {
	gates := []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}},
		{Name: "owner", Approval: &v1alpha1.ApprovalGate{}}}
	return &v1alpha1.OperatorRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo-1"},
		Spec: v1alpha1.OperatorRolloutSpec{
			Operator: v1alpha1.LocalReference{Name: "echo"}, Revision: 1,
			Release: v1alpha1.Release{
				Package: "echo-operator", Channel: "stable", Version: "1.1.0", Bundle: "echo-operator.v1.1.0",
				Catalog: v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Image: "registry.example.com/main:latest"},
					Digest: "sha256:0"},
			},
			Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "canary"}, {Name: "rest", Gates: gates}}},
		},
	}
}

// rollout creates a rollout with a status.
func (h *hub) rollout(t *testing.T, phase v1alpha1.RolloutPhase, second v1alpha1.WavePhase) *v1alpha1.OperatorRollout {
	t.Helper()
	r := newRollout(h.namespace)
	must(t, h.Create(t.Context(), r))
	r.Status = v1alpha1.OperatorRolloutStatus{
		ObservedGeneration: r.Generation, Phase: phase, Message: "as the test says",
		Waves: []v1alpha1.WaveStatus{
			{Name: "canary", Phase: v1alpha1.WaveVerified, WaveCounts: v1alpha1.WaveCounts{Total: 1, Succeeded: 1}},
			{Name: "rest", Phase: second, WaveCounts: v1alpha1.WaveCounts{Total: 1, Pending: 1},
				Gates: []v1alpha1.GateStatus{
					{Name: "sre", Verdict: v1alpha1.GateWaiting}, {Name: "owner", Verdict: v1alpha1.GateWaiting},
				}},
		},
	}
	must(t, h.Status().Update(t.Context(), r))
	return r
}

// cluster makes a member of the fleet and deletes it at the end of the test.
func (h *hub) cluster(t *testing.T, name string) {
	t.Helper()
	c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(t, h.Create(t.Context(), c))
	t.Cleanup(func() { must(t, h.Delete(context.Background(), c)) })
}

// eventually asks again until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	testenv.EventuallyTrue(t, patience, what, holds)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asPlugin is the program under the name by which kubectl finds it.
func (h *hub) asPlugin(t *testing.T) *hub {
	t.Helper()
	plugin := *h
	plugin.program = filepath.Join(t.TempDir(), "kubectl-bellwether")
	must(t, os.Symlink(h.program, plugin.program))
	return &plugin
}
