// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clitest runs commands in tests. Their hub is a fake client.
package clitest

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

// Hub is a hub without an API server: a fake client that also answers access reviews.
type Hub struct {
	client.WithWatch
	// User is the name of the caller.
	User string
	// Denied are the rights that the caller lacks, as in "remove fleetclusters".
	Denied []string
	// Forbidden are the kinds of lists that the caller must not read, as in "LeaseList".
	Forbidden []string
	// Downstream is the cluster of --cluster-kubeconfig; if Downstream is nil, the command reads the kubeconfig file.
	Downstream client.Client
	// Answer is the user's input on a terminal; if Answer is empty, there is no terminal.
	Answer string
}

// NewHub returns a hub with the objects.
func NewHub(objects ...client.Object) *Hub {
	h := &Hub{User: "anna"}
	h.WithWatch = fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.OperatorRollout{}, &v1alpha1.ManagedOperator{}, &v1alpha1.FleetCluster{},
			&v1alpha1.OperatorInstall{}).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", indexName).
		WithInterceptorFuncs(interceptor.Funcs{Create: h.interceptCreate, List: h.interceptList}).Build()
	return h
}

func indexName(o client.Object) []string { return []string{o.GetName()} }

// interceptList refuses lists in h.Forbidden.
func (h *Hub) interceptList(ctx context.Context, c client.WithWatch, list client.ObjectList,
	opts ...client.ListOption) error {
	if kind, err := apiutil.GVKForObject(list, hub.Scheme); err == nil && slices.Contains(h.Forbidden, kind.Kind) {
		return apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, "", nil)
	}
	return c.List(ctx, list, opts...)
}

// interceptCreate answers reviews of the caller's name and rights, which the fake client does not support.
func (h *Hub) interceptCreate(ctx context.Context, c client.WithWatch, obj client.Object,
	opts ...client.CreateOption) error {
	if review, ok := obj.(*authenticationv1.SelfSubjectReview); ok {
		review.Status.UserInfo.Username = h.User
		return nil
	}
	if review, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok {
		attributes := review.Spec.ResourceAttributes
		review.Status.Allowed = !slices.Contains(h.Denied, attributes.Verb+" "+attributes.Resource)
		return nil
	}
	return c.Create(ctx, obj, opts...)
}

// Result is the result of a command line: the exit code and the output.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs the command line against the hub.
func (h *Hub) Run(t *testing.T, args ...string) Result {
	t.Helper()
	return h.RunAs(t, "bellwether", args...)
}

// RunAs runs the command line under another program name, such as the name of a kubectl plugin.
func (h *Hub) RunAs(t *testing.T, program string, args ...string) Result {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	env := command.NewEnv(program,
		genericiooptions.IOStreams{In: strings.NewReader(h.Answer), Out: &out, ErrOut: &errOut})
	env.Now = func() time.Time { return fixture.Noon }
	env.CanAsk = func() bool { return h.Answer != "" }
	env.Connect = func() (client.WithWatch, error) { return h.WithWatch, nil }
	if h.Downstream != nil {
		env.ConnectCluster = func(*hub.ClusterFlags) (client.Client, error) { return h.Downstream, nil }
	}
	env.Watch = func(context.Context, client.ObjectKey) (client.Reader, <-chan struct{}, error) {
		return h.WithWatch, nil, nil
	}
	c := root.New(env)
	c.SetArgs(args)
	code := env.Exit(c.ExecuteContext(t.Context()))
	return Result{Code: code, Out: out.String(), Err: errOut.String()}
}

// MustRun runs a command line and fails the test unless it succeeds.
func (h *Hub) MustRun(t *testing.T, args ...string) Result {
	t.Helper()
	r := h.Run(t, args...)
	if r.Code != exit.OK {
		t.Fatalf("%q ended with %d: %s", args, r.Code, r.Err)
	}
	return r
}

// Cluster returns a FleetCluster that is online.
func Cluster(name string, labels map[string]string) *v1alpha1.FleetCluster {
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

// Operator returns a ManagedOperator whose spec requests the version.
func Operator(name, version string) *v1alpha1.ManagedOperator {
	return &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec: v1alpha1.ManagedOperatorSpec{
			Package: "echo-operator", Version: version, Catalog: v1alpha1.LocalReference{Name: "main"},
		},
		Status: v1alpha1.ManagedOperatorStatus{ObservedGeneration: 1,
			Target: &v1alpha1.TargetVersion{Version: version, Channel: "stable"}},
	}
}

// Rollout returns an OperatorRollout in the phase.
func Rollout(operator, name string, revision int64, phase v1alpha1.RolloutPhase) *v1alpha1.OperatorRollout {
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

// GatedRollout returns a rollout that waits for an approval.
func GatedRollout() *v1alpha1.OperatorRollout {
	r := Rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing)
	r.Status.Waves = []v1alpha1.WaveStatus{
		{Name: "canary", Phase: v1alpha1.WaveVerified},
		{Name: "rest", Phase: v1alpha1.WaveGated,
			Gates: []v1alpha1.GateStatus{{Name: "sre", Verdict: v1alpha1.GateWaiting}}},
	}
	return r
}

// Rollout reads an OperatorRollout from the hub.
func (h *Hub) Rollout(t *testing.T, name string) *v1alpha1.OperatorRollout {
	t.Helper()
	r := &v1alpha1.OperatorRollout{}
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, r); err != nil {
		t.Fatalf("get rollout: %v", err)
	}
	return r
}
