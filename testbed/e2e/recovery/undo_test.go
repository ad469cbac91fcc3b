// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// theirs is the name of the Subscription and of the CatalogSource that somebody made.
const theirs = "community"

// offer serves somebody's catalog with version 1.0.0, and returns its address.
func (f *fixture) offer() string {
	f.t.Helper()
	content, err := echo.FBC("1.0.0")
	f.must(err)
	packages, err := catalogs.ReadAll(catalogs.SingleFile("catalog.json", bytes.NewReader(content)))
	f.must(err)
	all, err := view.All(packages)
	f.must(err)
	server := serve.New(serve.Options{})
	f.t.Cleanup(server.Close)
	address, _, err := server.Set(theirs, all, 0)
	f.must(err)
	return address
}

// preinstall has somebody install the operator on every cluster by an ordinary Subscription.
func (f *fixture) preinstall(address string) {
	f.t.Helper()
	for _, m := range members() {
		c, err := f.p.Client(m.Name, platform.Scheme())
		f.must(err)
		own := metav1.ObjectMeta{Namespace: name, Name: theirs, Labels: map[string]string{"team": "blue"}}
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&operatorsv1.OperatorGroup{ObjectMeta: own},
			&operatorsv1alpha1.CatalogSource{ObjectMeta: own, Spec: operatorsv1alpha1.CatalogSourceSpec{
				SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address}},
			&operatorsv1alpha1.Subscription{ObjectMeta: own, Spec: &operatorsv1alpha1.SubscriptionSpec{
				CatalogSource: theirs, CatalogSourceNamespace: name, Package: bundle.Package, Channel: bundle.Channel,
				StartingCSV: bundle.CSVName("1.0.0"), InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic,
				Config: &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}}}},
		} {
			f.must(c.Create(f.t.Context(), o))
		}
	}
	for _, m := range members() {
		f.until("somebody's operator runs on "+m.Name, func(ctx context.Context) error {
			c, err := f.p.Client(m.Name, platform.Scheme())
			if err != nil {
				return err
			}
			csv := &operatorsv1alpha1.ClusterServiceVersion{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: name, Name: bundle.CSVName("1.0.0")}, csv); err != nil {
				return err
			}
			if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
				return fmt.Errorf("phase %q: %s", csv.Status.Phase, csv.Status.Message)
			}
			return nil
		})
	}
}

// generation of a Subscription: it counts the changes, and so does not go back.
var generation = regexp.MustCompile(`\n *"generation": \d+,`)

// objects is what state has and the UIDs of the pods.
func (f *fixture) objects() map[string]string {
	f.t.Helper()
	all := f.state()
	for object, text := range all {
		if strings.Contains(object, " Subscription ") {
			all[object] = generation.ReplaceAllString(text, "")
		}
	}
	for _, m := range members() {
		c, err := f.p.Client(m.Name, platform.Scheme())
		f.must(err)
		var pods corev1.PodList
		f.must(c.List(f.t.Context(), &pods, client.InNamespace(name)))
		if len(pods.Items) == 0 {
			f.t.Fatalf("no pod runs on %s", m.Name)
		}
		for _, p := range pods.Items {
			all[m.Name+" Pod "+p.Name] = string(p.UID)
		}
	}
	return all
}

// adoptWith makes the ManagedOperator that operator adopt proposes, with a gate before the second wave, and returns it
// as people keep it in Git.
func (f *fixture) adoptWith(image, version string) *v1alpha1.ManagedOperator {
	f.t.Helper()
	var strategy v1alpha1.RolloutStrategy
	for _, o := range f.manifests(image) {
		switch o := o.(type) {
		case *v1alpha1.OperatorCatalog:
			f.must(f.hub.Create(f.t.Context(), o))
		case *v1alpha1.ManagedOperator:
			strategy = o.Spec.Strategy
		}
	}
	var manifest string
	f.until("operator adopt proposes a ManagedOperator", func(ctx context.Context) error {
		out, err := f.p.Bellwether(ctx, "operator", "adopt", bundle.Package, "--name", name, "--all-clusters",
			"--dry-run")
		if plan := strings.Join(strings.Fields(out), " "); strings.Count(plan, "Automatic taken over") != 2 {
			return fmt.Errorf("not both clusters are taken over: %w:\n%s", err, out)
		}
		manifest, err = f.p.Bellwether(ctx, "operator", "adopt", bundle.Package, "--name", name, "--all-clusters", "-o",
			"yaml")
		return err
	})
	mo := &v1alpha1.ManagedOperator{}
	f.must(yaml.UnmarshalStrict([]byte(manifest), mo))
	mo.Spec.Strategy, mo.Spec.Version = strategy, version
	f.must(f.hub.Create(f.t.Context(), mo.DeepCopy()))
	return mo
}

// takenOver waits until the first cluster is taken over, and the second one waits for an approval.
func (f *fixture) takenOver() {
	f.t.Helper()
	f.until("the canary is taken over", func(ctx context.Context) error {
		canary, err := f.install(ctx, members()[0].Name)
		if err != nil {
			return err
		}
		if canary.Status.Adopted == nil || !conditions.IsTrue(canary.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("adopted %+v: %+v", canary.Status.Adopted,
				conditions.Get(canary.Status.Conditions, v1alpha1.ConditionReady))
		}
		prod, err := f.install(ctx, members()[1].Name)
		if err == nil && prod.Spec.Admission != nil {
			f.t.Fatalf("%s is admitted: %+v", members()[1].Name, prod.Spec.Admission)
		}
		return client.IgnoreNotFound(err)
	})
	f.gated("") // it has no version
}

// TestUndo takes an operator over with a real hub, agents and OLM, and puts it back before the second cluster was taken
// over: Subscriptions are what they were, nothing of Bellwether is left, and all objects and pods are the same ones.
// The command can be run again where it did not wait for the end.
func TestUndo(t *testing.T) {
	f := start(t)
	f.preinstall(f.offer())
	f.joinAll()
	image, err := f.p.Publish(t.Context(), name, "1.0.0", "1.1.0")
	f.must(err)
	before := f.objects()

	f.adoptWith(image, "")
	f.takenOver()
	if diff := cmp.Diff(before, f.objects()); !strings.Contains(diff, v1alpha1.AnnotationAdopted) {
		t.Errorf("nothing was taken over:\n%s", diff)
	}

	if out, err := f.p.Bellwether(t.Context(), "operator", "adopt", name, "--undo", "--yes", "--timeout",
		"1ms"); err == nil || !strings.Contains(out, "Undo the take-over by ManagedOperator") {
		t.Errorf("%v:\n%s", err, out)
	}
	// The hub may have done it all by now.
	if out, err := f.p.Bellwether(t.Context(), "operator", "adopt", name, "--undo", "--yes"); err != nil &&
		!strings.Contains(out, "there is no operator") {
		t.Errorf("again: %v:\n%s", err, out)
	}
	f.until("no OperatorInstall is left", func(ctx context.Context) error {
		var installs v1alpha1.OperatorInstallList
		if err := f.hub.List(ctx, &installs); err != nil || len(installs.Items) > 0 {
			return fmt.Errorf("%d are left: %w", len(installs.Items), err)
		}
		return nil
	})
	f.until("the clusters are as before", func(context.Context) error {
		if diff := cmp.Diff(before, f.objects()); diff != "" {
			return errors.New("(-before +after):\n" + diff)
		}
		return nil
	})
	if out, err := f.p.Bellwether(t.Context(), "operator", "adopt", name, "--undo", "--yes"); err == nil ||
		!strings.Contains(out, "there is no operator") {
		t.Errorf("when it is undone: %v:\n%s", err, out)
	}
}

// TestLostHubTakesOver throws the hub away when it has taken over one of two clusters. The new one goes on from that
// cluster and leaves the other one as it is, until a person has resumed the operator; then it takes that over too. No
// version changes, and it can all be put back.
func TestLostHubTakesOver(t *testing.T) {
	f := start(t)
	f.preinstall(f.offer())
	f.joinAll()
	image, err := f.p.Publish(t.Context(), name, "1.0.0", "1.1.0")
	f.must(err)
	before := f.objects()
	mo := f.adoptWith(image, "1.0.0")
	f.takenOver()
	admitted, err := f.install(t.Context(), members()[0].Name)
	f.must(err)
	half := f.objects()

	f.must(f.p.Fleet.ReplaceHub(t.Context()))
	f.makeHub()
	for _, o := range f.manifests(image) {
		if _, isOperator := o.(*v1alpha1.ManagedOperator); !isOperator {
			f.must(f.hub.Create(t.Context(), o))
		}
	}
	f.must(f.hub.Create(t.Context(), mo))
	f.joinAll()
	f.says(v1alpha1.ReasonRecovered, "found on 1 cluster", "1.0.0 on 1",
		"what is installed is then taken over, before version 1.0.0 is rolled out")
	f.sameAdmission(admitted)
	if diff := cmp.Diff(half, f.objects()); diff != "" {
		t.Errorf("the clusters were changed (-before +after):\n%s", diff)
	}

	f.resume()
	f.takenOver()
	f.bellwether("rollout", "approve", name, "--reason", "the canary is fine")
	f.until("both are taken over", func(ctx context.Context) error {
		for _, m := range members() {
			if oi, err := f.install(ctx, m.Name); err != nil || oi.Status.Adopted == nil {
				return fmt.Errorf("%s: %+v: %w", m.Name, oi.Status.Adopted, err)
			}
		}
		if f.operator().Status.Adoption == nil {
			return errors.New("the take-over goes on")
		}
		return nil
	})
	f.runs("1.0.0", "1.0.0")
	f.bellwether("operator", "adopt", name, "--undo", "--yes")
	f.until("the clusters are as before", func(context.Context) error {
		if diff := cmp.Diff(before, f.objects()); diff != "" {
			return errors.New("(-before +after):\n" + diff)
		}
		return nil
	})
}
