// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovery loses the hub of a fleet of real clusters with OLM, and makes another one from the manifests that
// people keep in Git. In make test-long it loses an agent too, and brings it back.
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

// world is a fleet that loses its hub.
type world struct {
	t   *testing.T
	p   *platform.Platform
	hub client.WithWatch
}

func start(t *testing.T) *world {
	t.Helper()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	p, err := platform.StartFleet(ctx, platform.Options{Name: fmt.Sprintf("recovery-%d", os.Getpid()),
		Members: members(), Quick: true, Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background(), t.Failed()); err != nil {
			t.Errorf("stop platform: %v", err)
		}
	})
	w := &world{t: t, p: p}
	w.makeHub()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// makeHub installs the hub on its cluster, as people do.
func (w *world) makeHub() {
	w.t.Helper()
	w.must(w.p.InstallHub(w.t.Context()))
	var err error
	w.hub, err = w.p.Client("hub", platform.Scheme())
	w.must(err)
	w.must(w.hub.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform.Namespace}}))
}

func (w *world) joinAll() {
	w.t.Helper()
	for _, m := range members() {
		w.must(w.p.Join(w.t.Context(), m))
	}
}

// until polls until there is no objection.
func (w *world) until(what string, objection func(ctx context.Context) error) {
	w.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(w.t.Context(), look, patience, true, func(ctx context.Context) (bool, error) {
		last = objection(ctx)
		return last == nil, nil
	})
	if err != nil {
		out, _ := w.p.Bellwether(context.WithoutCancel(w.t.Context()), "operator", "get", name)
		w.t.Fatalf("%s: %v: %v\n%s", what, err, last, out)
	}
}

func (w *world) bellwether(args ...string) string {
	w.t.Helper()
	out, err := w.p.Bellwether(w.t.Context(), args...)
	w.must(err)
	return out
}

func (w *world) operator() *v1alpha1.ManagedOperator {
	w.t.Helper()
	mo := &v1alpha1.ManagedOperator{}
	w.must(w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: platform.Namespace, Name: name}, mo))
	return mo
}

func (w *world) setVersion(version string) {
	w.t.Helper()
	mo := w.operator()
	patch := client.MergeFrom(mo.DeepCopy())
	mo.Spec.Version = version
	w.must(w.hub.Patch(w.t.Context(), mo, patch))
}

func (w *world) install(ctx context.Context, cluster string) (*v1alpha1.OperatorInstall, error) {
	oi := &v1alpha1.OperatorInstall{}
	reference := v1alpha1.OperatorReference{Namespace: platform.Namespace, Name: name}
	return oi, w.hub.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster),
		Name: reference.InstallName()}, oi)
}

// runs waits until the clusters run these versions, and are Ready.
func (w *world) runs(versions ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("run %v", versions), func(ctx context.Context) error {
		for i, m := range members() {
			oi, err := w.install(ctx, m.Name)
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

func (w *world) says(reason string, parts ...string) {
	w.t.Helper()
	w.until("operator says "+reason, func(ctx context.Context) error {
		mo := &v1alpha1.ManagedOperator{}
		if err := w.hub.Get(ctx, client.ObjectKey{Namespace: platform.Namespace, Name: name}, mo); err != nil {
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

// gated waits until a rollout of a version waits for the approval of its second wave.
func (w *world) gated(version string) {
	w.t.Helper()
	w.until("gate before "+version, func(ctx context.Context) error {
		var list v1alpha1.OperatorRolloutList
		if err := w.hub.List(ctx, &list, client.InNamespace(platform.Namespace)); err != nil {
			return err
		}
		for _, ro := range list.Items {
			if ro.Spec.Release.Version == version && ro.Spec.Abort == nil && len(ro.Status.Waves) > 1 &&
				ro.Status.Waves[1].Phase == v1alpha1.WaveGated {
				return nil
			}
		}
		return errors.New("no such rollout")
	})
}

// manifests are what people keep in Git.
func (w *world) manifests(image string) []client.Object {
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
func (w *world) state() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, m := range members() {
		c, err := w.p.Client(m.Name, platform.Scheme())
		w.must(err)
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
			w.must(c.List(w.t.Context(), list))
			for i := range list.Items {
				o := &list.Items[i]
				if o.GetNamespace() == name || kind.Kind == "Namespace" && o.GetName() == name {
					all[m.Name+" "+kind.Kind+" "+o.GetName()] = w.text(o)
				}
			}
		}
	}
	return all
}

func (w *world) text(o *unstructured.Unstructured) string {
	w.t.Helper()
	o.SetManagedFields(nil)
	o.SetResourceVersion("") // the UID and the generation stay
	delete(o.Object, "status")
	text, err := json.MarshalIndent(o.Object, "", " ")
	w.must(err)
	return string(text)
}

// withdrawn waits until OLM and the garbage collector are done with a CSV that was rolled back: it is gone, and nobody
// names it as an owner any more.
func (w *world) withdrawn(csv string) {
	w.t.Helper()
	w.until(csv+" is gone", func(context.Context) error {
		for object, text := range w.state() {
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
func (w *world) settle(image string) {
	w.t.Helper()
	for _, o := range w.manifests(image) {
		if _, isCluster := o.(*v1alpha1.FleetCluster); isCluster {
			continue // made by fleet join
		}
		if mo, ok := o.(*v1alpha1.ManagedOperator); ok {
			mo.Spec.Version = "1.0.0"
		}
		w.must(w.hub.Create(w.t.Context(), o))
	}
	w.gated("1.0.0")
	w.bellwether("rollout", "approve", name, "--reason", "the canary is fine")
	w.runs("1.0.0", "1.0.0")
	w.setVersion("1.1.0")
	w.gated("1.1.0")
	w.setVersion("")
	w.gated("1.2.0")
	w.runs("1.2.0", "1.0.0")
	w.bellwether("rollout", "rollback", name, "--reason", "it fails half of its reconciles")
	w.runs("1.1.0", "1.0.0")
	w.gated("1.1.0")
	w.until("agents keep the hold", func(ctx context.Context) error {
		for _, m := range members() {
			c, err := w.p.Client(m.Name, platform.Scheme())
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

// TestLostHub throws the hub away, its etcd too, and makes another one from the manifests. The new one adopts what
// runs, changes nothing on any cluster, admits nothing before a person resumes the operator, and still holds the
// version that was rolled back on the hub before.
func TestLostHub(t *testing.T) {
	w := start(t)
	w.joinAll()
	image, err := w.p.Publish(t.Context(), name, "1.0.0", "1.1.0", "1.2.0")
	w.must(err)
	w.settle(image)
	w.withdrawn("echo-operator.v1.2.0")
	before := map[string]*v1alpha1.OperatorInstall{}
	for _, m := range members() {
		before[m.Name], err = w.install(t.Context(), m.Name)
		w.must(err)
	}
	clusters := w.state()

	w.must(w.p.Fleet.ReplaceHub(t.Context()))
	lost := time.Now()
	w.makeHub()
	for _, o := range w.manifests(image) {
		w.must(w.hub.Create(t.Context(), o))
	}
	w.joinAll()
	joined := time.Now()
	w.says(v1alpha1.ReasonAdopted, "found on 2 clusters", "bellwether operator resume echo", "1.2.0")
	w.runs("1.1.0", "1.0.0")
	t.Logf("adopted %s after the new hub's API server was there, %s after the last cluster had joined",
		time.Since(lost).Round(time.Second), time.Since(joined).Round(100*time.Millisecond))

	w.heldBack()
	for _, m := range members() {
		w.sameAdmission(before[m.Name])
	}
	if diff := cmp.Diff(clusters, w.state()); diff != "" {
		t.Errorf("the clusters were changed (-before +after):\n%s", diff)
	}
	if out := w.bellwether("operator", "get", name); !strings.Contains(out, "bellwether operator resume echo") {
		t.Errorf("operator get does not say how to go on:\n%s", out)
	}

	w.bellwether("operator", "resume", name)
	w.gated("1.1.0") // the newest version that is not held; the canary runs it already
	w.bellwether("rollout", "approve", name, "--reason", "go on")
	w.runs("1.1.0", "1.1.0")
	if holds := w.operator().Spec.Holds; len(holds) != 1 || holds[0].Version != "1.2.0" ||
		!strings.Contains(holds[0].Reason, "it fails half of its reconciles") {
		t.Errorf("holds of the new hub: %+v", holds)
	}
	for _, m := range members() {
		w.neverHad(m.Name, "echo-operator.v1.2.0")
	}
}

// heldBack waits until the new hub's rollout goes no further: it holds clusters back because of the adoption, or is
// halted, because the version that it began with before any cluster had joined turned out to be held.
func (w *world) heldBack() {
	w.t.Helper()
	w.until("hold back", func(ctx context.Context) error {
		var list v1alpha1.OperatorRolloutList
		if err := w.hub.List(ctx, &list); err != nil {
			return err
		}
		for _, ro := range list.Items {
			if ro.Status.Batch != nil {
				w.t.Fatalf("rollout %s is about to admit %+v", ro.Name, ro.Status.Batch)
			}
		}
		if !slices.ContainsFunc(list.Items, func(ro v1alpha1.OperatorRollout) bool {
			if ro.Status.Phase == v1alpha1.RolloutHalted {
				return ro.Spec.Release.Version == "1.2.0" && strings.Contains(ro.Spec.Blocked, "it was rolled back")
			}
			return slices.ContainsFunc(ro.Status.HeldBack, func(g v1alpha1.HeldBackClusters) bool {
				return g.Reason == v1alpha1.ReasonAdopted
			})
		}) {
			return errors.New("no rollout holds a cluster back because of the adoption or of the hold")
		}
		return nil
	})
}

// sameAdmission compares an install with the one that the lost hub had.
func (w *world) sameAdmission(before *v1alpha1.OperatorInstall) {
	w.t.Helper()
	after, err := w.install(w.t.Context(), before.Spec.Cluster)
	w.must(err)
	want := before.Spec.Admission.DeepCopy()
	want.Adopted = true
	if diff := cmp.Diff(want, after.Spec.Admission); diff != "" {
		w.t.Errorf("admission of %s (-lost hub +new hub):\n%s", before.Spec.Cluster, diff)
	}
	if after.UID == before.UID {
		w.t.Error("the hub was not lost")
	}
}

// neverHad objects to a version that went to a cluster since the hub was lost.
func (w *world) neverHad(cluster, csv string) {
	w.t.Helper()
	c, err := w.p.Client(cluster, platform.Scheme())
	w.must(err)
	var plans operatorsv1alpha1.InstallPlanList
	w.must(c.List(w.t.Context(), &plans, client.InNamespace(name)))
	adopted, err := w.install(w.t.Context(), cluster)
	w.must(err)
	for _, p := range plans.Items {
		if slices.Contains(p.Spec.ClusterServiceVersionNames, csv) &&
			p.CreationTimestamp.After(adopted.CreationTimestamp.Time) {
			w.t.Errorf("%s has InstallPlan %s for %s", cluster, p.Name, csv)
		}
	}
}
