// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// world is a namespace with a catalog and a ManagedOperator, and clusters that
// it selects. The tests play the rollout.
type world struct {
	*harness
	t         *testing.T
	namespace string
	dir       string
	catalog   *v1alpha1.OperatorCatalog
	operator  *v1alpha1.ManagedOperator
	agents    map[string]*agent
}

// newWorld makes online clusters named after the namespace. The operator does
// not exist yet.
func newWorld(t *testing.T, notation string, clusters ...string) *world {
	t.Helper()
	return newWorldOn(t, start(t), notation, clusters...)
}

func newWorldOn(t *testing.T, h *harness, notation string, clusters ...string) *world {
	t.Helper()
	w := &world{harness: h, t: t, namespace: testenv.Namespace(t, h.cluster.RESTConfig(), "op"), dir: t.TempDir(),
		agents: map[string]*agent{}}
	publish(t, w.dir, notation)
	w.catalog = h.catalog(t, w.namespace, v1alpha1.CatalogSource{Directory: w.dir})
	h.reaches(t, w.catalog, "True Succeeded")
	for _, name := range clusters {
		w.addCluster(name)
	}
	w.operator = &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "echo"},
		Spec: v1alpha1.ManagedOperatorSpec{
			Package: "echo", Catalog: v1alpha1.LocalReference{Name: "main"},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"world": w.namespace}},
		},
	}
	t.Cleanup(func() { w.cleanUp() })
	return w
}

func (w *world) addCluster(name string) *agent {
	w.t.Helper()
	cluster := fleetCluster(w.namespace + "-" + name)
	cluster.Labels = map[string]string{"world": w.namespace, "name": name}
	a := w.join(w.t, cluster)
	die := a.live(w.t)
	w.t.Cleanup(die)
	w.reaches(w.t, cluster, "True Succeeded")
	w.agents[name] = a
	return a
}

func (w *world) cleanUp() {
	var operators v1alpha1.ManagedOperatorList
	ctx := context.Background() // the test's own has ended
	_ = w.List(ctx, &operators, client.InNamespace(w.namespace))
	for i := range operators.Items {
		operators.Items[i].Finalizers = nil
		_ = w.Update(ctx, &operators.Items[i])
		_ = w.Delete(ctx, &operators.Items[i])
	}
}

func (w *world) create() { must(w.t, w.Create(w.t.Context(), w.operator)) }

func (w *world) edit(change func(*v1alpha1.ManagedOperatorSpec)) {
	w.t.Helper()
	w.change(w.t, w.operator, func() { change(&w.operator.Spec) })
}

func (w *world) republish(notation string) {
	w.t.Helper()
	publish(w.t, w.dir, notation)
	w.lookAgain(w.t, w.catalog)
}

// rollouts waits for the rollouts with these names, and no others.
func (w *world) rollouts(want ...string) map[string]*v1alpha1.OperatorRollout {
	w.t.Helper()
	found := map[string]*v1alpha1.OperatorRollout{}
	eventually(w.t, func() error {
		var list v1alpha1.OperatorRolloutList
		if err := w.List(w.t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		clear(found)
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
			found[list.Items[i].Name] = &list.Items[i]
		}
		slices.Sort(names)
		if diff := cmp.Diff(want, names); diff != "" {
			return errors.New("rollouts (-want +got):\n" + diff)
		}
		return nil
	})
	return found
}

func (w *world) phase(r *v1alpha1.OperatorRollout, phase v1alpha1.RolloutPhase) {
	w.t.Helper()
	w.changeStatus(w.t, r, func() { r.Status.Phase, r.Status.Message = phase, "as the test says" })
}

// runs plays the rollout and the agent: the release runs on the cluster.
func (w *world) runs(name string, r *v1alpha1.OperatorRollout) *v1alpha1.OperatorInstall {
	w.t.Helper()
	a := w.agents[name]
	install := &v1alpha1.OperatorInstall{}
	reference := v1alpha1.OperatorReference{Namespace: w.namespace, Name: "echo"}
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(a.cluster.Name), Name: reference.InstallName()}
	if err := w.Get(w.t.Context(), key, install); err != nil {
		install = w.install(w.t, a.cluster.Name, reference)
		a.hold(w.t, install)
	}
	release := r.Spec.Release
	w.change(w.t, install, func() {
		install.Labels[v1alpha1.LabelRollout] = r.Name
		install.Spec.Admission = &v1alpha1.Admission{
			Rollout: r.Name, RolloutUID: string(r.UID), Revision: r.Spec.Revision, Wave: "rest", Hash: release.Hash(),
			AdmittedAt: metav1.Now(), Release: release,
		}
	})
	before := install.DeepCopy()
	install.Status.Installed = &v1alpha1.InstalledVersion{Bundle: release.Bundle, Version: release.Version}
	install.Status.SucceededHash, install.Status.ObservedRevision = release.Hash(), r.Spec.Revision
	conditions.Summarize(&install.Status.Conditions, install.Generation,
		conditions.Summary{State: conditions.Current, Reason: "Succeeded"})
	must(w.t, a.Status().Patch(w.t.Context(), install, client.MergeFrom(before)))
	return install
}

// settled is a world where 1.1.0 runs on two clusters.
func settled(t *testing.T) (*world, *v1alpha1.OperatorRollout) {
	t.Helper()
	w := newWorld(t, second, "a", "b")
	w.create()
	r := w.rollouts("echo-1")["echo-1"]
	w.runs("a", r)
	w.runs("b", r)
	w.phase(r, v1alpha1.RolloutSucceeded)
	w.reaches(t, w.operator, "True Succeeded", "2 of 2 clusters run 1.1.0")
	return w, r
}

func TestOperatorWaitsForItsCatalog(t *testing.T) {
	w := newWorld(t, second, "a")
	w.operator.Spec.Catalog.Name = "other"
	w.create()
	w.reaches(t, w.operator, "Stalled CatalogNotFound", "OperatorCatalog other not found in namespace "+w.namespace)
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Catalog.Name = "main" })
	w.reaches(t, w.operator, "False Progressing")
	r := w.rollouts("echo-1")["echo-1"]
	want := v1alpha1.Release{
		Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0",
		Catalog: v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Directory: w.dir}, Digest: w.catalog.Status.Digest},
		Install: v1alpha1.InstallSettings{Namespace: "echo", Mode: v1alpha1.InstallAllNamespaces},
	}
	if diff := cmp.Diff(want, r.Spec.Release); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(r, w.operator) {
		t.Error("the rollout is not owned by its operator")
	}
	if len(r.Spec.Strategy.Waves) == 0 || r.Spec.Strategy.OnFailure == "" {
		t.Errorf("defaults are not spelt out: %+v", r.Spec.Strategy)
	}
	if w.operator.Status.Target == nil || w.operator.Status.Target.Version != "1.1.0" {
		t.Errorf("target: %+v", w.operator.Status.Target)
	}
}

func TestOperatorNamesWhatTheCatalogLacks(t *testing.T) {
	w := newWorld(t, second, "a")
	w.operator.Spec.Version = "9.9.9"
	w.create()
	w.reaches(t, w.operator, "Stalled UnknownVersion", "it offers 1.1.0, 1.0.0")
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Channel = "fast" })
	w.reaches(t, w.operator, "Stalled UnknownChannel", `"fast"`, "stable")
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Channel = "" })
	w.reaches(t, w.operator, "Stalled UnknownVersion")
	w.rollouts()
	w.republish(second + "\n9.9.9 replaces 1.1.0")
	w.reaches(t, w.operator, "False Progressing", "9.9.9")
	w.rollouts("echo-1")
	other := w.operator.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}
	other.Spec.Package, other.Spec.Version = "ecco", ""
	must(t, w.Create(t.Context(), other))
	w.reaches(t, other, "Stalled UnknownPackage", "the catalog has echo")
}

func TestOperatorFollowsTheHead(t *testing.T) {
	w, first := settled(t)
	w.republish(third)
	second := w.rollouts("echo-1", "echo-2")["echo-2"]
	if second.Spec.Release.Version != "1.2.0" {
		t.Errorf("rolls out %s", second.Spec.Release.Version)
	}
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(first), first))
	if first.Spec.Abort != nil {
		t.Error("a rollout that had ended was aborted")
	}
	w.phase(second, v1alpha1.RolloutProgressing)
	w.reaches(t, w.operator, "False Progressing", "as the test says")
	w.phase(second, v1alpha1.RolloutHalted)
	w.reaches(t, w.operator, "Stalled Halted", "as the test says")
	w.runs("a", second)
	w.runs("b", second)
	w.phase(second, v1alpha1.RolloutSucceeded)
	w.reaches(t, w.operator, "True Succeeded", "2 of 2 clusters run 1.2.0")
	if diff := cmp.Diff([]v1alpha1.VersionCount{{Version: "1.2.0", Clusters: 2}},
		w.operator.Status.Versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestNewTargetWhileARolloutRuns(t *testing.T) {
	t.Run("Supersede", func(t *testing.T) {
		w := newWorld(t, second, "a")
		w.create()
		r := w.rollouts("echo-1")["echo-1"]
		w.phase(r, v1alpha1.RolloutProgressing)
		w.republish(third)
		w.rollouts("echo-1", "echo-2")
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		if r.Spec.Abort == nil || !r.Spec.Abort.Superseded {
			t.Errorf("the running rollout was not superseded: %+v", r.Spec.Abort)
		}
		checkApplied(t, "superseded", r)
	})
	t.Run("Finish", func(t *testing.T) {
		w := newWorld(t, second, "a")
		w.operator.Spec.Strategy.NewTarget = v1alpha1.NewTargetFinish
		w.create()
		r := w.rollouts("echo-1")["echo-1"]
		w.phase(r, v1alpha1.RolloutProgressing)
		w.republish(third)
		w.reaches(t, w.operator, "False Waiting", "1.2.0 waits for rollout echo-1 (1.1.0) to end")
		w.phase(r, v1alpha1.RolloutSucceeded)
		w.rollouts("echo-1", "echo-2")
	})
}

func TestNoUpgradePath(t *testing.T) {
	w, _ := settled(t)
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.0.0" })
	w.reaches(t, w.operator, "Stalled NoUpgradePath", "2 of 2 clusters", "this is a downgrade")
	w.rollouts("echo-1")
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "" })
	w.reaches(t, w.operator, "True Succeeded")

	w.republish("2.0.0")
	w.reaches(t, w.catalog, "Stalled WouldStrand", "would strand echo 1.1.0 on "+w.agents["a"].cluster.Name,
		"stays in use")
	w.reaches(t, w.operator, "True Succeeded")
	w.rollouts("echo-1")
	w.republish("1.1.0\n2.0.0 replaces 1.1.0")
	w.reaches(t, w.operator, "False Progressing")
	w.rollouts("echo-1", "echo-2")
}

func TestSelection(t *testing.T) {
	w, _ := settled(t)
	t.Run("a selector that matches nothing removes nothing", func(t *testing.T) {
		w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.ClusterSelector.MatchLabels["name"] = "nobody" })
		w.reaches(t, w.operator, "Stalled NoClusters", "nothing is removed")
		w.edit(func(s *v1alpha1.ManagedOperatorSpec) { delete(s.ClusterSelector.MatchLabels, "name") })
		w.change(t, w.operator,
			func() { w.operator.Spec.ClusterSelector.MatchLabels = map[string]string{"world": w.namespace} })
		w.reaches(t, w.operator, "True Succeeded", "2 of 2")
		w.rollouts("echo-1")
	})
	t.Run("a late joiner is awaited", func(t *testing.T) {
		w.addCluster("c")
		w.reaches(t, w.operator, "False Progressing", "2 of 3", "not updated yet: "+w.namespace+"-c")
		w.runs("c", w.rollouts("echo-1")["echo-1"])
		w.reaches(t, w.operator, "True Succeeded", "3 of 3")
	})
	t.Run("a deselected cluster is removed by the policy", func(t *testing.T) {
		w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.RemovalPolicy = v1alpha1.RemovalUninstall })
		b := w.agents["b"]
		install := w.runs("b", w.rollouts("echo-1")["echo-1"])
		w.change(t, b.cluster, func() { delete(b.cluster.Labels, "world") })
		if policy := b.deleted(t, install).Spec.RemovalPolicy; policy != v1alpha1.RemovalUninstall {
			t.Errorf("the agent finds policy %s", policy)
		}
		w.reaches(t, w.operator, "True Succeeded", "2 of 2")
		b.letGo(t, install)
		w.gone(t, install)
	})
	t.Run("a changed selector takes another rollout", func(t *testing.T) {
		w.edit(func(s *v1alpha1.ManagedOperatorSpec) {
			s.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "name",
				Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}}}
		})
		r := w.rollouts("echo-1", "echo-2")["echo-2"]
		c := w.agents["c"]
		install := w.runs("c", w.rollouts("echo-1", "echo-2")["echo-1"])
		c.deleted(t, install)
		c.letGo(t, install)
		w.runs("a", r)
		w.phase(r, v1alpha1.RolloutSucceeded)
		w.reaches(t, w.operator, "True Succeeded", "1 of 1")
	})
}

func TestTwoOperatorsClaimOneNamespace(t *testing.T) {
	w, _ := settled(t)
	other := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "younger"},
		Spec: *w.operator.Spec.DeepCopy()}
	must(t, w.Create(t.Context(), other))
	w.reaches(t, other, "Stalled NamespaceConflict",
		w.namespace+"/echo is older and installs into namespace echo as well")
	w.reaches(t, w.operator, "True Succeeded")
	w.change(t, other, func() { other.Spec.Install.Namespace = "elsewhere" })
	w.reaches(t, other, "False Progressing")
	w.rollouts("echo-1", "younger-1")

	third := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "third"},
		Spec: *w.operator.Spec.DeepCopy()}
	must(t, w.Create(t.Context(), third))
	w.reaches(t, third, "Stalled NamespaceConflict")
	must(t, w.Delete(t.Context(), w.operator))
	for _, name := range []string{"a", "b"} {
		install := &v1alpha1.OperatorInstall{}
		install.Namespace = v1alpha1.ClusterNamespace(w.agents[name].cluster.Name)
		install.Name = v1alpha1.OperatorReference{Namespace: w.namespace, Name: "echo"}.InstallName()
		w.agents[name].letGo(t, w.agents[name].deleted(t, install))
	}
	w.gone(t, w.operator)
	w.reaches(t, third, "False Progressing")
}

func TestHistoryIsPruned(t *testing.T) {
	w := newWorld(t, first, "a")
	limit := int32(2)
	w.operator.Spec.HistoryLimit = &limit
	w.create()
	notation := first
	for i := 1; i <= 4; i++ {
		eventually(t, func() error {
			return w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: fmt.Sprintf("echo-%d", i)},
				&v1alpha1.OperatorRollout{})
		})
		r := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace,
			Name: fmt.Sprintf("echo-%d", i)}}
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		w.runs("a", r)
		w.phase(r, v1alpha1.RolloutSucceeded)
		notation += fmt.Sprintf("\n1.%d.0 replaces 1.%d.0", i, i-1)
		w.republish(notation)
	}
	eventually(t, func() error {
		return w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "echo-5"}, &v1alpha1.OperatorRollout{})
	})
	w.rollouts("echo-3", "echo-4", "echo-5")
}

func TestDeletedRolloutsDoNotResetRevisions(t *testing.T) {
	w, r := settled(t)
	must(t, w.Delete(t.Context(), r))
	w.rollouts("echo-2")
}

func TestOperatorIsDeleted(t *testing.T) {
	w, _ := settled(t)
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.RemovalPolicy = v1alpha1.RemovalUninstall
		s.Removal = &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(1))}
	})
	must(t, w.Delete(t.Context(), w.operator))
	w.rollouts()
	w.reaches(t, w.operator, "Stalled RemovalUnconfirmed", "from 2 clusters, which needs a confirmation")
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Removal.Confirm = w.operator.Status.Removal.Request })
	w.reaches(t, w.operator, "False Deleting", "waiting for 2 clusters to remove it")
	for _, name := range []string{"a", "b"} {
		// A wave of two clusters is changed one by one.
		if progress := w.operator.Status.Removal; progress.Uninstalling > 1 || progress.Request != "" {
			t.Errorf("progress is %+v", progress)
		}
		a, install := w.agents[name], &v1alpha1.OperatorInstall{}
		install.Namespace = v1alpha1.ClusterNamespace(a.cluster.Name)
		install.Name = v1alpha1.OperatorReference{Namespace: w.namespace, Name: "echo"}.InstallName()
		if a.deleted(t, install).Spec.RemovalPolicy != v1alpha1.RemovalUninstall {
			t.Errorf("cluster %s was told to do %q", name, install.Spec.RemovalPolicy)
		}
		a.letGo(t, install)
	}
	w.gone(t, w.operator)
}

func TestHubRestartsBetweenAnyTwoSteps(t *testing.T) {
	w := newWorld(t, second, "a", "b")
	w.create()
	w.restartHub(t)
	r := w.rollouts("echo-1")["echo-1"]
	w.runs("a", r)
	w.restartHub(t)
	w.runs("b", r)
	w.phase(r, v1alpha1.RolloutSucceeded)
	w.restartHub(t)
	w.reaches(t, w.operator, "True Succeeded", "2 of 2")
	w.republish(third)
	w.restartHub(t)
	w.rollouts("echo-1", "echo-2")
	must(t, w.Delete(t.Context(), w.operator))
	w.restartHub(t)
	for _, a := range w.agents {
		install := &v1alpha1.OperatorInstall{}
		install.Namespace = v1alpha1.ClusterNamespace(a.cluster.Name)
		install.Name = v1alpha1.OperatorReference{Namespace: w.namespace, Name: "echo"}.InstallName()
		a.letGo(t, a.deleted(t, install))
		w.restartHub(t)
	}
	w.gone(t, w.operator)
}

func TestOperatorRefusesInvalidSelectors(t *testing.T) {
	w, first := settled(t)
	invalid := []v1alpha1.Wave{{Name: "canary", Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}}}
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Strategy.Waves, s.Restart = invalid, "1" })
	w.reaches(t, w.operator, "Stalled InvalidSpec",
		`spec.strategy.waves[0].selector.matchExpressions[0].operator: Invalid value: "Near"`)
	w.rollouts(first.Name)
	w.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Strategy.Waves = nil })
	again := w.rollouts("echo-1", "echo-2")["echo-2"]
	if again.Spec.Release.Version != first.Spec.Release.Version || again.Spec.Restart != "1" {
		t.Errorf("restarted with %s, %q", again.Spec.Release.Version, again.Spec.Restart)
	}
}

func TestOperatorKeepsTheOutcomeOfADeletedRollout(t *testing.T) {
	w, first := settled(t)
	must(t, w.Delete(t.Context(), first))
	eventually(t, func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(w.operator), w.operator); err != nil {
			return err
		}
		for _, o := range w.operator.Status.History {
			if o.Name == first.Name && o.Deleted && o.Phase == v1alpha1.RolloutSucceeded {
				return nil
			}
		}
		return fmt.Errorf("the history is %+v", w.operator.Status.History)
	})
	eventually(t, func() error {
		var all corev1.EventList
		if err := w.List(t.Context(), &all, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(all.Items, func(e corev1.Event) bool {
			return e.Reason == "RolloutDeleted" && strings.Contains(e.Message, first.Name+" to 1.1.0 was deleted")
		}) {
			return errors.New("no Event RolloutDeleted")
		}
		return nil
	})
}
