// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	patience = 8 * time.Minute
	look     = 200 * time.Millisecond
)

// operator is a ManagedOperator of one test.
type operator struct {
	t   *testing.T
	hub client.WithWatch
	key client.ObjectKey
}

// manage creates a catalog and a ManagedOperator, and removes both, with the
// operator on every cluster, when the test ends.
func manage(t *testing.T, name string, change func(*v1alpha1.ManagedOperatorSpec), versions ...string) *operator {
	t.Helper()
	hub, err := shared.Client("hub", platform.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{t: t, hub: hub, key: client.ObjectKey{Namespace: platform.Namespace, Name: name}}
	ref, err := shared.Publish(t.Context(), name, versions...)
	o.must(err)
	catalog := &v1alpha1.OperatorCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: name},
		Spec:       v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{Image: ref, Insecure: true}},
	}
	o.must(hub.Create(t.Context(), catalog))
	mo := &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: name},
		Spec: v1alpha1.ManagedOperatorSpec{
			Package: "echo-operator", Catalog: v1alpha1.LocalReference{Name: name}, Version: versions[0],
			Install:       v1alpha1.OperatorInstallation{InstallSettings: v1alpha1.InstallSettings{Namespace: name}},
			RemovalPolicy: v1alpha1.RemovalUninstall,
			Strategy:      v1alpha1.RolloutStrategy{Waves: twoWaves()},
		},
	}
	if change != nil {
		change(&mo.Spec)
	}
	o.must(hub.Create(t.Context(), mo))
	t.Cleanup(func() {
		o.remove(o.hub, mo, catalog)
		o.namespaceGone(name)
	})
	return o
}

// namespaceGone waits until the namespace of an operator is gone from every cluster: the agent made it, and nothing but
// the operator was in it.
func (o *operator) namespaceGone(name string) {
	o.t.Helper()
	for _, member := range platform.DefaultMembers() {
		c, err := shared.Client(member.Name, platform.Scheme())
		if err != nil {
			o.t.Error(err)
			continue
		}
		o.gone(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// twoWaves are the canary and the production clusters, one at a time.
func twoWaves() []v1alpha1.Wave {
	wave := func(name string) v1alpha1.Wave {
		return v1alpha1.Wave{
			Name: name, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": name}},
			MaxConcurrency: ptr.To(intstr.FromInt32(1)), Deadline: &metav1.Duration{Duration: patience},
		}
	}
	return []v1alpha1.Wave{wave("canary"), wave("prod")}
}

// remove deletes objects and waits until they are gone.
func (o *operator) remove(c client.Client, objects ...client.Object) {
	o.t.Helper()
	for _, object := range objects {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(o.t.Context()), object)); err != nil {
			o.t.Errorf("delete %s: %v", object.GetName(), err)
		}
		o.gone(c, object)
	}
}

// gone waits until an object is gone. The API server may be away meanwhile, where a test that runs beside this one has
// stopped it.
func (o *operator) gone(c client.Client, object client.Object) {
	o.t.Helper()
	var last error
	defer testenv.Waited(o.t, fmt.Sprintf("%T is gone", object))()
	err := wait.PollUntilContextTimeout(context.WithoutCancel(o.t.Context()), look, patience, true,
		func(ctx context.Context) (bool, error) {
			last = c.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(last), nil
		})
	if err != nil {
		o.t.Errorf("%T %s is still there: %v %+v", object, object.GetName(), last, object)
	}
}

func (o *operator) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// change changes the ManagedOperator's spec.
func (o *operator) change(do func(*v1alpha1.ManagedOperatorSpec)) {
	o.t.Helper()
	mo := o.managed()
	patch := client.MergeFrom(mo.DeepCopy())
	do(&mo.Spec)
	o.must(o.hub.Patch(context.WithoutCancel(o.t.Context()), mo, patch))
}

// greeting sets a variable in the operator's pods: the cheapest release.
func greeting(text string) func(*v1alpha1.ManagedOperatorSpec) {
	return func(s *v1alpha1.ManagedOperatorSpec) {
		s.Install.Config = &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "GREETING", Value: text}}}
	}
}

func (o *operator) managed() *v1alpha1.ManagedOperator {
	o.t.Helper()
	mo := &v1alpha1.ManagedOperator{}
	o.must(o.hub.Get(context.WithoutCancel(o.t.Context()), o.key, mo))
	return mo
}

// rollout waits for a rollout to be as wanted.
func (o *operator) rollout(revision int64, what string,
	holds func(*v1alpha1.OperatorRollout) bool) *v1alpha1.OperatorRollout {
	o.t.Helper()
	return o.within(patience, revision, what, holds)
}

func (o *operator) within(limit time.Duration, revision int64, what string,
	holds func(*v1alpha1.OperatorRollout) bool) *v1alpha1.OperatorRollout {
	o.t.Helper()
	ro := &v1alpha1.OperatorRollout{}
	key := client.ObjectKey{Namespace: o.key.Namespace, Name: fmt.Sprintf("%s-%d", o.key.Name, revision)}
	defer testenv.Waited(o.t, fmt.Sprintf("rollout %d is %s", revision, what))()
	err := wait.PollUntilContextTimeout(o.t.Context(), look, limit, true, func(ctx context.Context) (bool, error) {
		if err := o.hub.Get(ctx, key, ro); err != nil {
			return false, nil //nolint:nilerr // not there yet, or the API server restarts
		}
		return holds(ro), nil
	})
	if err != nil {
		o.t.Fatalf("rollout %d is not %s: %v\n%s: %s\n%s", revision, what, err, ro.Status.Phase, ro.Status.Message,
			o.why())
	}
	return ro
}

// newestRollout returns the operator's rollout with the highest revision.
func (o *operator) newestRollout() (*v1alpha1.OperatorRollout, error) {
	var list v1alpha1.OperatorRolloutList
	if err := o.hub.List(context.WithoutCancel(o.t.Context()), &list, client.InNamespace(o.key.Namespace)); err != nil {
		return nil, err
	}
	var newest *v1alpha1.OperatorRollout
	for i := range list.Items {
		ro := &list.Items[i]
		if ro.Spec.Operator.Name == o.key.Name && (newest == nil || ro.Spec.Revision > newest.Spec.Revision) {
			newest = ro
		}
	}
	if newest == nil {
		return nil, errors.New("the operator has no rollout")
	}
	return newest, nil
}

func (o *operator) phase(revision int64, phase v1alpha1.RolloutPhase) *v1alpha1.OperatorRollout {
	o.t.Helper()
	return o.rollout(revision, string(phase),
		func(ro *v1alpha1.OperatorRollout) bool { return ro.Status.Phase == phase })
}

// everywhere waits until a rollout has succeeded on every cluster. One that was offline for a moment is deferred, and
// caught up with after the rollout has succeeded.
func (o *operator) everywhere(revision int64) *v1alpha1.OperatorRollout {
	o.t.Helper()
	return o.rollout(revision, "on every cluster", func(ro *v1alpha1.OperatorRollout) bool {
		of := ro.Status.Clusters
		return ro.Status.Phase == v1alpha1.RolloutSucceeded && of.Succeeded == of.Total
	})
}

// why is what the command line says, for failed tests.
func (o *operator) why() string {
	out, err := shared.Bellwether(context.WithoutCancel(o.t.Context()), "operator", "get", o.key.Name)
	installs, _ := shared.Bellwether(context.WithoutCancel(o.t.Context()), "rollout", "get", o.key.Name)
	return fmt.Sprint(out, installs, err)
}

// install reads the OperatorInstall of a cluster.
func (o *operator) install(cluster string) *v1alpha1.OperatorInstall {
	o.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	name := v1alpha1.OperatorReference{Namespace: o.key.Namespace, Name: o.key.Name}.InstallName()
	o.must(o.hub.Get(o.t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: name}, oi))
	return oi
}

// online waits for a cluster to be online, or offline.
func (o *operator) online(cluster string, want bool) {
	o.t.Helper()
	testenv.Eventually(o.t, patience, fmt.Sprintf("cluster %s is online: %t", cluster, want),
		func(ctx context.Context) error {
			fc := &v1alpha1.FleetCluster{}
			if err := o.hub.Get(ctx, client.ObjectKey{Name: cluster}, fc); err != nil {
				return err
			}
			if conditions.IsTrue(fc.Status.Conditions, v1alpha1.ConditionOnline) != want {
				return fmt.Errorf("not yet: %+v", fc.Status.Conditions)
			}
			return nil
		})
}

// bellwether runs the command line and returns its output and exit status.
func (o *operator) bellwether(args ...string) (string, int) {
	o.t.Helper()
	out, err := shared.Bellwether(o.t.Context(), args...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out, 0
	case errors.As(err, &exit):
		return out, exit.ExitCode()
	}
	o.t.Fatal(err)
	return "", 0
}

// hubPIDs returns the processes that are the hubs of this fleet. There has to be one.
func hubPIDs(t *testing.T) []int {
	t.Helper()
	found, err := hubs()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no hub runs")
	}
	return found
}

func hubs() ([]int, error) { return processes(shared.HubPath()) }

// agentsOf returns the processes that are the agent of a cluster, whatever their clock.
func agentsOf(cluster string) ([]int, error) { return processes(shared.AgentPath(cluster)) }

// processes returns the processes that were started by a path.
func processes(path string) ([]int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []int
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err != nil || !strings.HasPrefix(string(text), path+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(line, "/")[2]); err == nil {
			found = append(found, pid)
		}
	}
	return found, nil
}

// restartAgent has another program be the agent of a cluster.
func restartAgent(cluster, program string) error {
	if err := shared.ReplaceAgent(cluster, program); err != nil {
		return err
	}
	found, err := agentsOf(cluster)
	if err != nil {
		return err
	}
	return signalAll(syscall.SIGKILL, found)
}

// signalAll sends a signal to processes, unless they have ended.
func signalAll(s syscall.Signal, pids []int) error {
	for _, pid := range pids {
		if pid <= 1 {
			return fmt.Errorf("send signal %s: there is no such process", s)
		}
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send signal %s to process %d: %w", s, pid, err)
		}
	}
	return nil
}
