// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovery loses the hub of a fleet of real clusters with OLM, and makes another one from the manifests that
// people keep in Git. In make test-long it loses an agent too, and brings it back; and it upgrades a fleet from the
// release before, and goes back. And it takes an operator of somebody else over, and puts it back.
package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

const (
	patience = 8 * time.Minute
	look     = 200 * time.Millisecond
	name     = "echo"
)

func members() []platform.Member { return platform.DefaultMembers()[:2] }

// fixture is a fleet that loses its hub.
type fixture struct {
	t   *testing.T
	p   *platform.Platform
	hub client.WithWatch
}

func start(t *testing.T) *fixture {
	t.Helper()
	return startWith(t, platform.Options{})
}

// startWith starts a fleet with further options.
func startWith(t *testing.T, o platform.Options) *fixture {
	t.Helper()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	o.Name, o.Members, o.Quick, o.Out = fmt.Sprintf("recovery-%d", os.Getpid()), members(), true, os.Stderr
	p, err := platform.StartFleet(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background(), t.Failed()); err != nil {
			t.Errorf("stop platform: %v", err)
		}
	})
	f := &fixture{t: t, p: p}
	f.makeHub()
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// makeHub installs the hub on its cluster, as people do.
func (f *fixture) makeHub() {
	f.t.Helper()
	f.must(f.p.InstallHub(f.t.Context()))
	var err error
	f.hub, err = f.p.Client("hub", platform.Scheme())
	f.must(err)
	f.must(f.hub.Create(f.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform.Namespace}}))
}

func (f *fixture) joinAll() {
	f.t.Helper()
	for _, m := range members() {
		f.must(f.p.Join(f.t.Context(), m))
	}
}

// until polls until there is no objection.
func (f *fixture) until(what string, objection func(ctx context.Context) error) {
	f.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(f.t.Context(), look, patience, true, func(ctx context.Context) (bool, error) {
		last = objection(ctx)
		return last == nil, nil
	})
	if err != nil {
		out, _ := f.p.Bellwether(context.WithoutCancel(f.t.Context()), "operator", "get", name)
		f.t.Fatalf("%s: %v: %v\n%s", what, err, last, out)
	}
}

func (f *fixture) bellwether(args ...string) string {
	f.t.Helper()
	out, err := f.p.Bellwether(f.t.Context(), args...)
	f.must(err)
	return out
}

func (f *fixture) operator() *v1alpha1.ManagedOperator {
	f.t.Helper()
	mo := &v1alpha1.ManagedOperator{}
	f.must(f.hub.Get(f.t.Context(), client.ObjectKey{Namespace: platform.Namespace, Name: name}, mo))
	return mo
}

func (f *fixture) setVersion(version string) {
	f.t.Helper()
	mo := f.operator()
	patch := client.MergeFrom(mo.DeepCopy())
	mo.Spec.Version = version
	f.must(f.hub.Patch(f.t.Context(), mo, patch))
}

func (f *fixture) install(ctx context.Context, cluster string) (*v1alpha1.OperatorInstall, error) {
	oi := &v1alpha1.OperatorInstall{}
	reference := v1alpha1.OperatorReference{Namespace: platform.Namespace, Name: name}
	return oi, f.hub.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster),
		Name: reference.InstallName()}, oi)
}

// runs waits until the clusters run these versions, and are Ready.
func (f *fixture) runs(versions ...string) {
	f.t.Helper()
	f.until(fmt.Sprintf("run %v", versions), func(ctx context.Context) error {
		for i, m := range members() {
			oi, err := f.install(ctx, m.Name)
			switch {
			case err != nil:
				return err
			case oi.Status.Installed == nil || oi.Status.Installed.Version != versions[i],
				!conditions.IsTrue(oi.Status.Conditions, v1alpha1.ConditionReady):
				return fmt.Errorf("%s has %+v: %+v", m.Name, oi.Status.Installed,
					conditions.Get(oi.Status.Conditions, v1alpha1.ConditionReady))
			}
		}
		return nil
	})
}

func (f *fixture) says(reason string, parts ...string) {
	f.t.Helper()
	f.until("operator says "+reason, func(ctx context.Context) error {
		mo := &v1alpha1.ManagedOperator{}
		if err := f.hub.Get(ctx, client.ObjectKey{Namespace: platform.Namespace, Name: name}, mo); err != nil {
			return err
		}
		ready := conditions.Get(mo.Status.Conditions, v1alpha1.ConditionReady)
		if ready.Reason != reason {
			return fmt.Errorf("%s: %s", ready.Reason, ready.Message)
		}
		for _, part := range parts {
			if !strings.Contains(ready.Message, part) {
				return fmt.Errorf("no %q in %s", part, ready.Message)
			}
		}
		return nil
	})
}

func (f *fixture) online(cluster string, want bool) {
	f.t.Helper()
	f.until(fmt.Sprintf("%s is online: %v", cluster, want), func(ctx context.Context) error {
		fc := &v1alpha1.FleetCluster{}
		if err := f.hub.Get(ctx, client.ObjectKey{Name: cluster}, fc); err != nil {
			return err
		}
		if conditions.IsTrue(fc.Status.Conditions, v1alpha1.ConditionOnline) != want {
			return errors.New("it is the other way round")
		}
		return nil
	})
}

// newest is the rollout that began last.
func (f *fixture) newest(ctx context.Context) (v1alpha1.OperatorRollout, error) {
	var list v1alpha1.OperatorRolloutList
	if err := f.hub.List(ctx, &list, client.InNamespace(platform.Namespace)); err != nil {
		return v1alpha1.OperatorRollout{}, err
	}
	if len(list.Items) == 0 {
		return v1alpha1.OperatorRollout{}, errors.New("no rollout")
	}
	return slices.MaxFunc(list.Items, func(a, b v1alpha1.OperatorRollout) int {
		return int(a.Spec.Revision - b.Spec.Revision)
	}), nil
}

// gated waits until the newest rollout is one of a version, and waits for the approval of its second wave.
func (f *fixture) gated(version string) {
	f.t.Helper()
	f.until("gate before "+version, func(ctx context.Context) error {
		ro, err := f.newest(ctx)
		if err != nil {
			return err
		}
		if ro.Spec.Release.Version != version || ro.Spec.Abort != nil || len(ro.Status.Waves) < 2 ||
			ro.Status.Waves[1].Phase != v1alpha1.WaveGated {
			return fmt.Errorf("%s to %q: %+v", ro.Name, ro.Spec.Release.Version, ro.Status.Waves)
		}
		return nil
	})
}

// resume lets the hub go on. A rollout that it began before it had found the operator on a cluster admits none: another
// one replaces it.
func (f *fixture) resume() {
	f.t.Helper()
	f.bellwether("operator", "resume", name)
	f.until("a rollout that may go on", func(ctx context.Context) error {
		ro, err := f.newest(ctx)
		if err == nil && ro.Spec.Resumed == 0 {
			err = fmt.Errorf("%s may not", ro.Name)
		}
		return err
	})
}

// manifests are what people keep in Git.
func (f *fixture) manifests(image string) []client.Object {
	one := intstr.FromInt32(1)
	wave := func(ring string) v1alpha1.Wave {
		return v1alpha1.Wave{Name: ring, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}},
			MaxConcurrency: &one, Deadline: &metav1.Duration{Duration: patience}}
	}
	prod := wave("prod")
	prod.Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
	objects := []client.Object{
		&v1alpha1.OperatorCatalog{
			ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: name},
			Spec:       v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{Image: image, Insecure: true}},
		},
		&v1alpha1.ManagedOperator{
			ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: name},
			Spec: v1alpha1.ManagedOperatorSpec{
				Package: "echo-operator", Catalog: v1alpha1.LocalReference{Name: name},
				Install:  v1alpha1.OperatorInstallation{InstallSettings: v1alpha1.InstallSettings{Namespace: name}},
				Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("canary"), prod}},
			},
		},
	}
	for _, m := range members() {
		objects = append(objects, &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: m.Labels}})
	}
	return objects
}

// state is everything on the clusters that an operator consists of, without what OLM and the API server write down of
// their own accord: statuses, resource versions and managed fields.
func (f *fixture) state() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for _, m := range members() {
		c, err := f.p.Client(m.Name, platform.Scheme())
		f.must(err)
		for _, kind := range []schema.GroupVersionKind{
			corev1.SchemeGroupVersion.WithKind("Namespace"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
			corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
			operatorsv1.SchemeGroupVersion.WithKind("OperatorGroup"),
			operatorsv1alpha1.SchemeGroupVersion.WithKind("CatalogSource"),
			operatorsv1alpha1.SchemeGroupVersion.WithKind("Subscription"),
			operatorsv1alpha1.SchemeGroupVersion.WithKind("InstallPlan"),
			operatorsv1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion"),
			v1alpha1.SchemeGroupVersion.WithKind("EndpointProbe"),
		} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			f.must(c.List(f.t.Context(), list))
			for i := range list.Items {
				o := &list.Items[i]
				if o.GetNamespace() == name || kind.Kind == "Namespace" && o.GetName() == name {
					all[m.Name+" "+kind.Kind+" "+o.GetName()] = f.text(o)
				}
			}
		}
	}
	return all
}

func (f *fixture) text(o *unstructured.Unstructured) string {
	f.t.Helper()
	o.SetManagedFields(nil)
	o.SetResourceVersion("") // the UID and the generation stay
	delete(o.Object, "status")
	text, err := json.MarshalIndent(o.Object, "", " ")
	f.must(err)
	return string(text)
}

// withdrawn waits until OLM and the garbage collector are done with a CSV that was rolled back: it is gone, and nobody
// names it as an owner any more.
func (f *fixture) withdrawn(csv string) {
	f.t.Helper()
	f.until(csv+" is gone", func(context.Context) error {
		for object, text := range f.state() {
			if strings.Contains(object, " InstallPlan ") || strings.Contains(object, " Subscription ") {
				continue
			}
			if strings.Contains(text, fmt.Sprintf("\"name\": %q", csv)) {
				return fmt.Errorf("%s has it", object)
			}
		}
		return nil
	})
}

// settle brings the fleet to where its hub is lost: each cluster runs another version, and 1.2.0 is held because it was
// rolled back.
func (f *fixture) settle(image string) {
	f.t.Helper()
	for _, o := range f.manifests(image) {
		if _, isCluster := o.(*v1alpha1.FleetCluster); isCluster {
			continue // made by fleet join
		}
		if mo, ok := o.(*v1alpha1.ManagedOperator); ok {
			mo.Spec.Version = "1.0.0"
		}
		f.must(f.hub.Create(f.t.Context(), o))
	}
	f.gated("1.0.0")
	f.bellwether("rollout", "approve", name, "--reason", "the canary is fine")
	f.runs("1.0.0", "1.0.0")
	f.setVersion("1.1.0")
	f.gated("1.1.0")
	f.setVersion("")
	f.gated("1.2.0")
	f.runs("1.2.0", "1.0.0")
	f.bellwether("rollout", "rollback", name, "--reason", "it fails half of its reconciles")
	f.runs("1.1.0", "1.0.0")
	f.gated("1.1.0")
	f.until("agents keep the hold", func(ctx context.Context) error {
		for _, m := range members() {
			c, err := f.p.Client(m.Name, platform.Scheme())
			if err != nil {
				return err
			}
			sub := &operatorsv1alpha1.Subscription{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: name, Name: "echo-operator"}, sub); err != nil {
				return err
			}
			if kept := sub.Annotations[v1alpha1.AnnotationKept]; !strings.Contains(kept, `[{"version":"1.2.0"`) {
				return fmt.Errorf("%s keeps %q", m.Name, kept)
			}
		}
		return nil
	})
}

// TestLostHub throws the hub away, its etcd too, and makes another one from the manifests. The new one recovers what
// runs, changes nothing on any cluster, admits nothing before a person resumes the operator, and still holds the
// version that was rolled back on the hub before.
func TestLostHub(t *testing.T) {
	f := start(t)
	f.joinAll()
	image, err := f.p.Publish(t.Context(), name, "1.0.0", "1.1.0", "1.2.0")
	f.must(err)
	f.settle(image)
	f.withdrawn("echo-operator.v1.2.0")
	before := map[string]*v1alpha1.OperatorInstall{}
	for _, m := range members() {
		before[m.Name], err = f.install(t.Context(), m.Name)
		f.must(err)
	}
	clusters := f.state()

	f.must(f.p.Fleet.ReplaceHub(t.Context()))
	lost := time.Now()
	f.makeHub()
	for _, o := range f.manifests(image) {
		f.must(f.hub.Create(t.Context(), o))
	}
	f.joinAll()
	joined := time.Now()
	f.says(v1alpha1.ReasonRecovered, "found on 2 clusters", "bellwether operator resume echo", "1.2.0")
	f.runs("1.1.0", "1.0.0")
	t.Logf("recovered %s after the new hub's API server was there, %s after the last cluster had joined",
		time.Since(lost).Round(time.Second), time.Since(joined).Round(100*time.Millisecond))

	f.heldBack()
	for _, m := range members() {
		f.sameAdmission(before[m.Name])
	}
	if diff := cmp.Diff(clusters, f.state()); diff != "" {
		t.Errorf("the clusters were changed (-before +after):\n%s", diff)
	}
	out := f.bellwether("operator", "get", name)
	if !strings.Contains(strings.Join(strings.Fields(out), " "), "bellwether operator resume echo") {
		t.Errorf("operator get does not say how to go on:\n%s", out)
	}

	f.resume()
	f.gated("1.1.0") // the newest version that is not held; the canary runs it already
	f.bellwether("rollout", "approve", name, "--reason", "go on")
	f.runs("1.1.0", "1.1.0")
	if holds := f.operator().Spec.Holds; len(holds) != 1 || holds[0].Version != "1.2.0" ||
		!strings.Contains(holds[0].Reason, "it fails half of its reconciles") {
		t.Errorf("holds of the new hub: %+v", holds)
	}
	for _, m := range members() {
		f.neverHad(m.Name, "echo-operator.v1.2.0")
	}
}

// heldBack waits until the new hub's rollout goes no further: it holds clusters back because of the recovery, or is
// halted, because the version that it began with before any cluster had joined turned out to be held.
func (f *fixture) heldBack() {
	f.t.Helper()
	f.until("hold back", func(ctx context.Context) error {
		var list v1alpha1.OperatorRolloutList
		if err := f.hub.List(ctx, &list); err != nil {
			return err
		}
		for _, ro := range list.Items {
			if ro.Status.Batch != nil {
				f.t.Fatalf("rollout %s is about to admit %+v", ro.Name, ro.Status.Batch)
			}
		}
		if !slices.ContainsFunc(list.Items, func(ro v1alpha1.OperatorRollout) bool {
			if ro.Status.Phase == v1alpha1.RolloutHalted {
				return ro.Spec.Release.Version == "1.2.0" && strings.Contains(ro.Spec.Blocked, "it was rolled back")
			}
			return slices.ContainsFunc(ro.Status.HeldBack, func(g v1alpha1.HeldBackClusters) bool {
				return g.Reason == v1alpha1.ReasonRecovered
			})
		}) {
			return errors.New("no rollout holds a cluster back because of the recovery or of the hold")
		}
		return nil
	})
}

// sameAdmission compares an install with the one that the lost hub had.
func (f *fixture) sameAdmission(before *v1alpha1.OperatorInstall) {
	f.t.Helper()
	after, err := f.install(f.t.Context(), before.Spec.Cluster)
	f.must(err)
	want := before.Spec.Admission.DeepCopy()
	want.Recovered = true
	if diff := cmp.Diff(want, after.Spec.Admission); diff != "" {
		f.t.Errorf("admission of %s (-lost hub +new hub):\n%s", before.Spec.Cluster, diff)
	}
	if after.UID == before.UID {
		f.t.Error("the hub was not lost")
	}
}

// neverHad objects to a version that went to a cluster since the hub was lost.
func (f *fixture) neverHad(cluster, csv string) {
	f.t.Helper()
	c, err := f.p.Client(cluster, platform.Scheme())
	f.must(err)
	var plans operatorsv1alpha1.InstallPlanList
	f.must(c.List(f.t.Context(), &plans, client.InNamespace(name)))
	recovered, err := f.install(f.t.Context(), cluster)
	f.must(err)
	for _, p := range plans.Items {
		if slices.Contains(p.Spec.ClusterServiceVersionNames, csv) &&
			p.CreationTimestamp.After(recovered.CreationTimestamp.Time) {
			f.t.Errorf("%s has InstallPlan %s for %s", cluster, p.Name, csv)
		}
	}
}
