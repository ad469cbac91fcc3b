// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

var (
	errNotSoaking  = errors.New("the wave does not soak")
	errNotEnforced = errors.New("another pod may be created")
)

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func (x *trial) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: x.key.Name, Name: name}
}

// create creates an object on the cluster; undoAll deletes it.
func (x *trial) create(object client.Object) {
	x.t.Helper()
	x.must(x.local.Create(x.ctx(), object))
	x.undo = append(x.undo, func() { x.drop(object) })
}

func (x *trial) drop(object client.Object) {
	x.t.Helper()
	x.must(client.IgnoreNotFound(x.local.Delete(x.ctx(), object)))
}

// dropAll deletes every object of a kind in the operator's namespace.
func (x *trial) dropAll(list client.ObjectList) {
	x.t.Helper()
	x.must(x.local.List(x.ctx(), list, client.InNamespace(x.key.Name)))
	items, err := meta.ExtractList(list)
	x.must(err)
	if len(items) == 0 {
		x.t.Fatalf("there is no %T in %s", list, x.key.Name)
	}
	for _, item := range items {
		x.drop(item.(client.Object))
	}
}

// toldDeleted returns a function that returns nil once an Event on the hub says what somebody deleted on the cluster,
// and where it is told who did.
func toldDeleted(what string) func(*trial) error {
	return func(x *trial) error {
		var list eventsv1.EventList
		if err := x.hub.List(x.ctx(), &list, client.InNamespace(v1alpha1.ClusterNamespace(x.cluster))); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "DeletedOnCluster" && strings.Contains(e.Note, x.key.Name) &&
				strings.Contains(e.Note, what) {
				return contains(e.Note, []string{"is made again", "audit log"})
			}
		}
		return fmt.Errorf("no Event tells that %s was deleted", what)
	}
}

// undoAll takes back what a fault did, the last first.
func (x *trial) undoAll() {
	for _, undo := range slices.Backward(x.undo) {
		undo()
	}
	x.undo = nil
}

func (x *trial) deletePods() {
	x.t.Helper()
	x.must(x.local.DeleteAllOf(x.ctx(), &corev1.Pod{}, client.InNamespace(x.key.Name), client.GracePeriodSeconds(0)))
}

// takePods sets a quota of no pods, and deletes the operator's pods once the API server enforces it.
func (x *trial) takePods() {
	x.t.Helper()
	x.create(&corev1.ResourceQuota{ObjectMeta: x.meta("no-pods"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
	x.until("the quota is enforced", patience, func(x *trial) error {
		return refusesPods(x.ctx(), x.local, x.key.Name)
	})
	x.deletePods()
}

// refusesPods returns an error until an API server enforces a quota of no pods: its status is there before that.
func refusesPods(ctx context.Context, c client.Client, namespace string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one-more"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "none", Image: "example.com/none"}}}}
	if err := c.Create(ctx, pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		return errNotEnforced
	}
	return nil
}

// deployment returns the operator's Deployment.
func (x *trial) deployment() *appsv1.Deployment {
	x.t.Helper()
	var list appsv1.DeploymentList
	x.must(x.local.List(x.ctx(), &list, client.InNamespace(x.key.Name), client.HasLabels{"olm.owner"}))
	if len(list.Items) != 1 {
		x.t.Fatalf("the operator has %d Deployments in %s", len(list.Items), x.key.Name)
	}
	return &list.Items[0]
}

func (x *trial) scale(replicas int32) {
	x.t.Helper()
	deployment := x.deployment()
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = &replicas
	x.must(x.local.Patch(x.ctx(), deployment, patch))
}

// editCSV changes the Deployment in the installed CSV by hand; undoAll sets the CSV's spec back.
func (x *trial) editCSV(change func(*appsv1.DeploymentSpec)) {
	x.t.Helper()
	oi, err := x.read()
	x.must(err)
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	key := client.ObjectKey{Namespace: x.key.Name, Name: oi.Spec.Admission.Release.Bundle}
	x.must(x.local.Get(x.ctx(), key, csv))
	before := csv.Spec.DeepCopy()
	patch := client.MergeFrom(csv.DeepCopy())
	change(&csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec)
	x.must(x.local.Patch(x.ctx(), csv, patch))
	x.undo = append(x.undo, func() {
		x.must(x.local.Get(x.ctx(), key, csv))
		patch := client.MergeFrom(csv.DeepCopy())
		csv.Spec = *before
		x.must(x.local.Patch(x.ctx(), csv, patch))
	})
}

// edit changes the ManagedOperator's spec; undoAll sets it back.
func (x *trial) edit(change func(*v1alpha1.ManagedOperatorSpec)) {
	x.t.Helper()
	before := x.managed().Spec
	x.change(change)
	x.undo = append(x.undo, func() { x.change(func(s *v1alpha1.ManagedOperatorSpec) { *s = before }) })
}

// editCatalog changes the OperatorCatalog's spec; undoAll sets it back.
func (x *trial) editCatalog(change func(*v1alpha1.OperatorCatalogSpec)) {
	x.t.Helper()
	write := func(change func(*v1alpha1.OperatorCatalogSpec)) v1alpha1.OperatorCatalogSpec {
		oc := &v1alpha1.OperatorCatalog{}
		x.must(x.hub.Get(x.ctx(), x.key, oc))
		before := *oc.Spec.DeepCopy()
		patch := client.MergeFrom(oc.DeepCopy())
		change(&oc.Spec)
		x.must(x.hub.Patch(x.ctx(), oc, patch))
		return before
	}
	before := write(change)
	x.undo = append(x.undo, func() { write(func(s *v1alpha1.OperatorCatalogSpec) { *s = before }) })
}

// verification requires the signature of an author.
func (x *trial) verification(name string) *v1alpha1.CatalogVerification {
	x.t.Helper()
	author, err := shared.Author(x.ctx(), name)
	x.must(err)
	key, err := author.PublicKey()
	x.must(err)
	return &v1alpha1.CatalogVerification{PublicKeys: []string{key}}
}

func (x *trial) kill(component string) {
	x.t.Helper()
	x.must(shared.Fleet.Cluster(x.cluster).Kill(component))
}

// hangNamespace deletes the operator's namespace, in which something has a finalizer that nobody removes before
// undoAll.
func (x *trial) hangNamespace() {
	x.t.Helper()
	hangs := &corev1.ConfigMap{ObjectMeta: x.meta("hangs")}
	hangs.Finalizers = []string{"example.com/hangs"}
	x.must(x.local.Create(x.ctx(), hangs))
	x.undo = append(x.undo, func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		x.must(client.IgnoreNotFound(x.local.Patch(x.ctx(), hangs, patch)))
	})
	x.drop(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.key.Name}})
}

// runsNothing returns nil if no command says that the cluster runs the operator.
func (x *trial) runsNothing() error {
	var rows []struct {
		Operator, Version string
		Ready             int
	}
	out, err := shared.Bellwether(x.ctx(), "versions", x.key.Name, "-o", "json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		return fmt.Errorf("read what versions prints: %w\n%s", err, out)
	}
	for _, row := range rows {
		if row.Version != "" || row.Ready > 0 {
			return fmt.Errorf("versions says that a cluster runs %s: %s", row.Version, out)
		}
	}
	return nil
}

// signal sends a signal to a process, unless it has ended.
func (x *trial) signal(s syscall.Signal, pid int) {
	x.t.Helper()
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		x.t.Fatalf("send signal %s to process %d: %v", s, pid, err)
	}
}

func (x *trial) apiServer() int { return shared.Fleet.Cluster(x.cluster).PID(build.KubeAPIServer) }

// agent returns the process of the cluster's agent. It may be about to start again after what happened before.
func (x *trial) agent() int {
	x.t.Helper()
	var found []int
	x.until("the agent runs", patience, func(x *trial) error {
		var err error
		if found, err = agentsOf(x.cluster); err == nil && len(found) == 0 {
			err = fmt.Errorf("no agent of %s runs", x.cluster)
		}
		return err
	})
	return found[0]
}
