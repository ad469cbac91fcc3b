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
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// fixture is a namespace with a catalog and a ManagedOperator, and clusters that
// it selects. The tests play the rollout.
type fixture struct {
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
func newFixture(t *testing.T, notation string, clusters ...string) *fixture {
	t.Helper()
	return newFixtureOn(t, start(t), notation, clusters...)
}

func newFixtureOn(t *testing.T, h *harness, notation string, clusters ...string) *fixture {
	t.Helper()
	f := &fixture{harness: h, t: t, namespace: testenv.Namespace(t, h.cluster.RESTConfig(), "op"), dir: t.TempDir(),
		agents: map[string]*agent{}}
	publish(t, f.dir, notation)
	f.catalog = h.catalog(t, f.namespace, v1alpha1.CatalogSource{Directory: f.dir})
	h.reaches(t, f.catalog, "True Succeeded")
	for _, name := range clusters {
		f.addCluster(name)
	}
	f.operator = &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "echo"},
		Spec: v1alpha1.ManagedOperatorSpec{
			Package: "echo", Catalog: v1alpha1.LocalReference{Name: "main"},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"world": f.namespace}},
		},
	}
	t.Cleanup(func() { f.cleanUp() })
	return f
}

func (f *fixture) addCluster(name string) *agent {
	f.t.Helper()
	cluster := fleetCluster(f.namespace + "-" + name)
	cluster.Labels = map[string]string{"world": f.namespace, "name": name}
	a := f.join(f.t, cluster)
	die := a.live(f.t)
	f.t.Cleanup(die)
	f.reaches(f.t, cluster, "True Succeeded")
	f.agents[name] = a
	return a
}

func (f *fixture) cleanUp() {
	var operators v1alpha1.ManagedOperatorList
	ctx := context.Background() // the test's own has ended
	_ = f.List(ctx, &operators, client.InNamespace(f.namespace))
	for i := range operators.Items {
		operators.Items[i].Finalizers = nil
		_ = f.Update(ctx, &operators.Items[i])
		_ = f.Delete(ctx, &operators.Items[i])
	}
}

func (f *fixture) create() { must(f.t, f.Create(f.t.Context(), f.operator)) }

func (f *fixture) edit(change func(*v1alpha1.ManagedOperatorSpec)) {
	f.t.Helper()
	f.change(f.t, f.operator, func() { change(&f.operator.Spec) })
}

func (f *fixture) republish(notation string) {
	f.t.Helper()
	publish(f.t, f.dir, notation)
	f.lookAgain(f.t, f.catalog)
}

// rollouts waits for the rollouts with these names, and no others.
func (f *fixture) rollouts(want ...string) map[string]*v1alpha1.OperatorRollout {
	f.t.Helper()
	found := map[string]*v1alpha1.OperatorRollout{}
	eventually(f.t, func() error {
		var list v1alpha1.OperatorRolloutList
		if err := f.List(f.t.Context(), &list, client.InNamespace(f.namespace)); err != nil {
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

func (f *fixture) phase(r *v1alpha1.OperatorRollout, phase v1alpha1.RolloutPhase) {
	f.t.Helper()
	f.changeStatus(f.t, r, func() { r.Status.Phase, r.Status.Message = phase, "as the test says" })
}

// runs plays the rollout and the agent: the release runs on the cluster.
func (f *fixture) runs(name string, r *v1alpha1.OperatorRollout) *v1alpha1.OperatorInstall {
	f.t.Helper()
	a := f.agents[name]
	install := &v1alpha1.OperatorInstall{}
	reference := v1alpha1.OperatorReference{Namespace: f.namespace, Name: "echo"}
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(a.cluster.Name), Name: reference.InstallName()}
	if err := f.Get(f.t.Context(), key, install); err != nil {
		install = f.install(f.t, a.cluster.Name, reference)
		a.hold(f.t, install)
	}
	release := r.Spec.Release
	f.change(f.t, install, func() {
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
	must(f.t, a.Status().Patch(f.t.Context(), install, client.MergeFrom(before)))
	return install
}

// settled is a fixture where 1.1.0 runs on two clusters.
func settled(t *testing.T) (*fixture, *v1alpha1.OperatorRollout) {
	t.Helper()
	f := newFixture(t, second, "a", "b")
	f.create()
	r := f.rollouts("echo-1")["echo-1"]
	f.runs("a", r)
	f.runs("b", r)
	f.phase(r, v1alpha1.RolloutSucceeded)
	f.reaches(t, f.operator, "True Succeeded", "2 of 2 clusters run 1.1.0")
	return f, r
}

func TestOperatorWaitsForItsCatalog(t *testing.T) {
	f := newFixture(t, second, "a")
	f.operator.Spec.Catalog.Name = "other"
	f.create()
	f.reaches(t, f.operator, "Stalled CatalogNotFound", "OperatorCatalog other not found in namespace "+f.namespace)
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Catalog.Name = "main" })
	f.reaches(t, f.operator, "False Progressing")
	r := f.rollouts("echo-1")["echo-1"]
	want := v1alpha1.Release{
		Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0",
		Catalog: v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Directory: f.dir}, Digest: f.catalog.Status.Digest},
		Install: v1alpha1.InstallSettings{Namespace: "echo", Mode: v1alpha1.InstallAllNamespaces},
	}
	if diff := cmp.Diff(want, r.Spec.Release); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(r, f.operator) {
		t.Error("the rollout is not owned by its operator")
	}
	if len(r.Spec.Strategy.Waves) == 0 || r.Spec.Strategy.OnFailure == "" {
		t.Errorf("defaults are not spelt out: %+v", r.Spec.Strategy)
	}
	if f.operator.Status.Target == nil || f.operator.Status.Target.Version != "1.1.0" {
		t.Errorf("target: %+v", f.operator.Status.Target)
	}
}

func TestOperatorNamesWhatTheCatalogLacks(t *testing.T) {
	f := newFixture(t, second, "a")
	f.operator.Spec.Version = "9.9.9"
	f.create()
	f.reaches(t, f.operator, "Stalled UnknownVersion", "it offers 1.1.0, 1.0.0")
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Channel = "fast" })
	f.reaches(t, f.operator, "Stalled UnknownChannel", `"fast"`, "stable")
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Channel = "" })
	f.reaches(t, f.operator, "Stalled UnknownVersion")
	f.rollouts()
	f.republish(second + "\n9.9.9 replaces 1.1.0")
	f.reaches(t, f.operator, "False Progressing", "9.9.9")
	f.rollouts("echo-1")
	other := f.operator.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: f.namespace, Name: "other"}
	other.Spec.Package, other.Spec.Version = "ecco", ""
	must(t, f.Create(t.Context(), other))
	f.reaches(t, other, "Stalled UnknownPackage", "the catalog has echo")
}

// TestOperatorFollowsARange: patches flow, a minor version waits in the status and in an Event, and an approved one is
// rolled out.
func TestOperatorFollowsARange(t *testing.T) {
	f, _ := settled(t)
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.Version, s.Updates = ">=1.0.0 <2.0.0", &v1alpha1.VersionUpdates{Minor: v1alpha1.UpdateApproval}
	})
	f.republish(third + "\n2.0.0 replaces 1.2.0")
	f.reaches(t, f.operator, "True Succeeded", "2 of 2 clusters run 1.1.0; version 1.2.0 waits for an approval since",
		"bellwether operator approve echo 1.2.0 --reason TEXT")
	if a := f.operator.Status.Available; a == nil || a.Version != "1.2.0" || a.Update != v1alpha1.UpdateMinor {
		t.Errorf("available: %+v", a)
	}
	if got := f.operator.Status.Target.Reason; !strings.HasPrefix(got, "the highest version in ") {
		t.Errorf("1.1.0 is the target because %q", got)
	}
	eventually(t, func() error {
		var list eventsv1.EventList
		if err := f.List(t.Context(), &list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "UpdateAvailable" && strings.HasPrefix(e.Note, "version 1.2.0 waits for an approval") {
				return nil
			}
		}
		return fmt.Errorf("%w: no event about 1.2.0 among %d", errNotYet, len(list.Items))
	})
	f.rollouts("echo-1")
	review := &authenticationv1.SelfSubjectReview{}
	must(t, f.Create(t.Context(), review))
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.Updates.Approved = &v1alpha1.VersionApproval{Version: "1.2.0", By: review.Status.UserInfo.Username,
			Reason: "tested", At: metav1.Now()}
	})
	if r := f.rollouts("echo-1", "echo-2")["echo-2"]; r.Spec.Release.Version != "1.2.0" {
		t.Errorf("rolls out %s", r.Spec.Release.Version)
	}
	f.reaches(t, f.operator, "False Progressing")
	if f.operator.Status.Available != nil {
		t.Errorf("still available: %+v", f.operator.Status.Available)
	}
}

func TestOperatorFollowsTheHead(t *testing.T) {
	f, first := settled(t)
	f.republish(third)
	second := f.rollouts("echo-1", "echo-2")["echo-2"]
	if second.Spec.Release.Version != "1.2.0" {
		t.Errorf("rolls out %s", second.Spec.Release.Version)
	}
	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(first), first))
	if first.Spec.Abort != nil {
		t.Error("a rollout that had ended was aborted")
	}
	f.phase(second, v1alpha1.RolloutProgressing)
	f.reaches(t, f.operator, "False Progressing", "as the test says")
	f.phase(second, v1alpha1.RolloutHalted)
	f.reaches(t, f.operator, "Stalled Halted", "as the test says")
	f.runs("a", second)
	f.runs("b", second)
	f.phase(second, v1alpha1.RolloutSucceeded)
	f.reaches(t, f.operator, "True Succeeded", "2 of 2 clusters run 1.2.0")
	if diff := cmp.Diff([]v1alpha1.VersionCount{{Version: "1.2.0", Clusters: 2}},
		f.operator.Status.Versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestNewTargetWhileARolloutRuns(t *testing.T) {
	t.Run("Supersede", func(t *testing.T) {
		f := newFixture(t, second, "a")
		f.create()
		r := f.rollouts("echo-1")["echo-1"]
		f.phase(r, v1alpha1.RolloutProgressing)
		f.republish(third)
		f.rollouts("echo-1", "echo-2")
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		if r.Spec.Abort == nil || !r.Spec.Abort.Superseded {
			t.Errorf("the running rollout was not superseded: %+v", r.Spec.Abort)
		}
		checkApplied(t, "superseded", r)
	})
	t.Run("Finish", func(t *testing.T) {
		f := newFixture(t, second, "a")
		f.operator.Spec.Strategy.NewTarget = v1alpha1.NewTargetFinish
		f.create()
		r := f.rollouts("echo-1")["echo-1"]
		f.phase(r, v1alpha1.RolloutProgressing)
		f.republish(third)
		f.reaches(t, f.operator, "False Waiting", "1.2.0 waits for rollout echo-1 (1.1.0) to end")
		f.phase(r, v1alpha1.RolloutSucceeded)
		f.rollouts("echo-1", "echo-2")
	})
}

func TestNoUpgradePath(t *testing.T) {
	f, _ := settled(t)
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.0.0" })
	f.reaches(t, f.operator, "Stalled NoUpgradePath", "2 of 2 clusters", "this is a downgrade")
	f.rollouts("echo-1")
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "" })
	f.reaches(t, f.operator, "True Succeeded")

	f.republish("2.0.0")
	f.reaches(t, f.catalog, "Stalled WouldStrand", "would strand echo 1.1.0 on "+f.agents["a"].cluster.Name,
		"stays in use")
	f.reaches(t, f.operator, "True Succeeded")
	f.rollouts("echo-1")
	f.republish("1.1.0\n2.0.0 replaces 1.1.0")
	f.reaches(t, f.operator, "False Progressing")
	f.rollouts("echo-1", "echo-2")
}

func TestSelection(t *testing.T) {
	f, _ := settled(t)
	t.Run("a selector that matches nothing removes nothing", func(t *testing.T) {
		f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.ClusterSelector.MatchLabels["name"] = "nobody" })
		f.reaches(t, f.operator, "Stalled NoClusters", "nothing is removed")
		f.edit(func(s *v1alpha1.ManagedOperatorSpec) { delete(s.ClusterSelector.MatchLabels, "name") })
		f.change(t, f.operator,
			func() { f.operator.Spec.ClusterSelector.MatchLabels = map[string]string{"world": f.namespace} })
		f.reaches(t, f.operator, "True Succeeded", "2 of 2")
		f.rollouts("echo-1")
	})
	t.Run("a late joiner is awaited", func(t *testing.T) {
		f.addCluster("c")
		f.reaches(t, f.operator, "False Progressing", "2 of 3", "not updated yet: "+f.namespace+"-c")
		f.runs("c", f.rollouts("echo-1")["echo-1"])
		f.reaches(t, f.operator, "True Succeeded", "3 of 3")
	})
	t.Run("a deselected cluster is removed by the policy", func(t *testing.T) {
		f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.RemovalPolicy = v1alpha1.RemovalUninstall })
		b := f.agents["b"]
		install := f.runs("b", f.rollouts("echo-1")["echo-1"])
		f.change(t, b.cluster, func() { delete(b.cluster.Labels, "world") })
		if policy := b.deleted(t, install).Spec.RemovalPolicy; policy != v1alpha1.RemovalUninstall {
			t.Errorf("the agent finds policy %s", policy)
		}
		f.reaches(t, f.operator, "True Succeeded", "2 of 2")
		b.letGo(t, install)
		f.gone(t, install)
	})
	t.Run("a changed selector takes another rollout", func(t *testing.T) {
		f.edit(func(s *v1alpha1.ManagedOperatorSpec) {
			s.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "name",
				Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}}}
		})
		r := f.rollouts("echo-1", "echo-2")["echo-2"]
		c := f.agents["c"]
		install := f.runs("c", f.rollouts("echo-1", "echo-2")["echo-1"])
		c.deleted(t, install)
		c.letGo(t, install)
		f.runs("a", r)
		f.phase(r, v1alpha1.RolloutSucceeded)
		f.reaches(t, f.operator, "True Succeeded", "1 of 1")
	})
}

func TestTwoOperatorsClaimOneNamespace(t *testing.T) {
	f := newFixture(t, second, "a", "b")
	f.operator.Spec.Install.Mode = v1alpha1.InstallOwnNamespace
	f.create()
	r := f.rollouts("echo-1")["echo-1"]
	f.runs("a", r)
	f.runs("b", r)
	f.phase(r, v1alpha1.RolloutSucceeded)
	f.reaches(t, f.operator, "True Succeeded")
	other := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "younger"},
		Spec: *f.operator.Spec.DeepCopy()}
	must(t, f.Create(t.Context(), other))
	f.reaches(t, other, "Stalled NamespaceConflict",
		f.namespace+"/echo is older and installs into namespace echo as well")
	f.reaches(t, f.operator, "True Succeeded")
	f.change(t, other, func() {
		other.Spec.Install.Namespace, other.Spec.Install.Mode = "elsewhere", v1alpha1.InstallAllNamespaces
	})
	f.reaches(t, other, "Stalled InstalledElsewhere",
		f.namespace+"/echo is older and installs package echo into namespace echo")
	f.change(t, other, func() { other.Spec.Install.Mode = v1alpha1.InstallOwnNamespace })
	f.reaches(t, other, "False Progressing")
	f.rollouts("echo-1", "younger-1")

	third := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "third"},
		Spec: *f.operator.Spec.DeepCopy()}
	must(t, f.Create(t.Context(), third))
	f.reaches(t, third, "Stalled NamespaceConflict")
	must(t, f.Delete(t.Context(), f.operator))
	for _, name := range []string{"a", "b"} {
		install := &v1alpha1.OperatorInstall{}
		install.Namespace = v1alpha1.ClusterNamespace(f.agents[name].cluster.Name)
		install.Name = v1alpha1.OperatorReference{Namespace: f.namespace, Name: "echo"}.InstallName()
		f.agents[name].letGo(t, f.agents[name].deleted(t, install))
	}
	f.gone(t, f.operator)
	f.reaches(t, third, "False Progressing")
}

func TestHistoryIsPruned(t *testing.T) {
	f := newFixture(t, first, "a")
	limit := int32(2)
	f.operator.Spec.HistoryLimit = &limit
	f.create()
	notation := first
	for i := 1; i <= 4; i++ {
		eventually(t, func() error {
			return f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: fmt.Sprintf("echo-%d", i)},
				&v1alpha1.OperatorRollout{})
		})
		r := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace,
			Name: fmt.Sprintf("echo-%d", i)}}
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		f.runs("a", r)
		f.phase(r, v1alpha1.RolloutSucceeded)
		notation += fmt.Sprintf("\n1.%d.0 replaces 1.%d.0", i, i-1)
		f.republish(notation)
	}
	eventually(t, func() error {
		return f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "echo-5"}, &v1alpha1.OperatorRollout{})
	})
	f.rollouts("echo-3", "echo-4", "echo-5")
}

func TestDeletedRolloutsDoNotResetRevisions(t *testing.T) {
	f, r := settled(t)
	must(t, f.Delete(t.Context(), r))
	f.rollouts("echo-2")
}

func TestOperatorIsDeleted(t *testing.T) {
	f, _ := settled(t)
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.RemovalPolicy = v1alpha1.RemovalUninstall
		s.Removal = &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(1))}
	})
	must(t, f.Delete(t.Context(), f.operator))
	f.rollouts()
	f.reaches(t, f.operator, "Stalled RemovalUnconfirmed", "from 2 clusters, which needs a confirmation")
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Removal.Confirm = f.operator.Status.Removal.Request })
	f.reaches(t, f.operator, "False Deleting", "waiting for 2 clusters to remove it")
	for _, name := range []string{"a", "b"} {
		// A wave of two clusters is changed one by one.
		if progress := f.operator.Status.Removal; progress.Uninstalling > 1 || progress.Request != "" {
			t.Errorf("progress is %+v", progress)
		}
		a, install := f.agents[name], &v1alpha1.OperatorInstall{}
		install.Namespace = v1alpha1.ClusterNamespace(a.cluster.Name)
		install.Name = v1alpha1.OperatorReference{Namespace: f.namespace, Name: "echo"}.InstallName()
		if a.deleted(t, install).Spec.RemovalPolicy != v1alpha1.RemovalUninstall {
			t.Errorf("cluster %s was told to do %q", name, install.Spec.RemovalPolicy)
		}
		a.letGo(t, install)
	}
	f.gone(t, f.operator)
}

func TestHubRestartsBetweenAnyTwoSteps(t *testing.T) {
	f := newFixture(t, second, "a", "b")
	f.create()
	f.restartHub(t)
	r := f.rollouts("echo-1")["echo-1"]
	f.runs("a", r)
	f.restartHub(t)
	f.runs("b", r)
	f.phase(r, v1alpha1.RolloutSucceeded)
	f.restartHub(t)
	f.reaches(t, f.operator, "True Succeeded", "2 of 2")
	f.republish(third)
	f.restartHub(t)
	f.rollouts("echo-1", "echo-2")
	must(t, f.Delete(t.Context(), f.operator))
	f.restartHub(t)
	for _, a := range f.agents {
		install := &v1alpha1.OperatorInstall{}
		install.Namespace = v1alpha1.ClusterNamespace(a.cluster.Name)
		install.Name = v1alpha1.OperatorReference{Namespace: f.namespace, Name: "echo"}.InstallName()
		a.letGo(t, a.deleted(t, install))
		f.restartHub(t)
	}
	f.gone(t, f.operator)
}

func TestOperatorRefusesInvalidSelectors(t *testing.T) {
	f, first := settled(t)
	invalid := []v1alpha1.Wave{{Name: "canary", Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}}}
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Strategy.Waves, s.Restart = invalid, "1" })
	f.reaches(t, f.operator, "Stalled InvalidSpec",
		`spec.strategy.waves[0].selector.matchExpressions[0].operator: Invalid value: "Near"`)
	f.rollouts(first.Name)
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Strategy.Waves = nil })
	again := f.rollouts("echo-1", "echo-2")["echo-2"]
	if again.Spec.Release.Version != first.Spec.Release.Version || again.Spec.Restart != "1" {
		t.Errorf("restarted with %s, %q", again.Spec.Release.Version, again.Spec.Restart)
	}
}

func TestOperatorKeepsTheOutcomeOfADeletedRollout(t *testing.T) {
	f, first := settled(t)
	must(t, f.Delete(t.Context(), first))
	eventually(t, func() error {
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(f.operator), f.operator); err != nil {
			return err
		}
		for _, o := range f.operator.Status.History {
			if o.Name == first.Name && o.Deleted && o.Phase == v1alpha1.RolloutSucceeded {
				return nil
			}
		}
		return fmt.Errorf("the history is %+v", f.operator.Status.History)
	})
	eventually(t, func() error {
		var all corev1.EventList
		if err := f.List(t.Context(), &all, client.InNamespace(f.namespace)); err != nil {
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
