// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

var (
	trialFaults = flag.Int("trial.faults", 1, "how many faults of each group to inject; 0 for all")
	trialSeed   = flag.Uint64("trial.seed", 25, "seed that chooses the faults where -trial.faults is not 0")
	trialOnly   = flag.String("trial.only", "", "inject all faults whose names match this regular expression, and no "+
		"others")
)

const (
	// showLimit is how long a fault may last before its condition is on the hub.
	showLimit = 5 * time.Minute
	// recoverLimit is how long the recovery may take. OLM gives up an installation that cannot finish only after five
	// minutes, and begins again with what was put right meanwhile (docs/olm.md, fact 24).
	recoverLimit = 15 * time.Minute
)

// fault is something that goes wrong in a fleet, and what its users must see.
type fault struct {
	// inject breaks something. It is nil where the fault is a request that is refused.
	inject func(*trial)
	// shows returns nil once a condition on the hub tells of the fault. It is nil where Bellwether or OLM repairs the
	// fault so fast that a condition may never be seen.
	shows func(*trial) error
	// why holds texts that `bellwether why` prints while the fault lasts.
	why []string
	// detail holds texts that it prints in addition if it may read the cluster (--cluster-kubeconfig).
	detail []string
	// holds returns nil once everything else is seen that has to be while the fault lasts, such as what other commands
	// print, or that a request is refused.
	holds []func(*trial) error
	// heal puts the fault right, as its remedy says. It is nil where Bellwether recovers without help.
	heal func(*trial)
}

// trial is an operator on one cluster, into which faults are injected.
type trial struct {
	*operator
	cluster string
	local   client.Client
	// undo holds what a fault leaves for its heal function.
	undo []func()
	// digest is that of the catalog before the fault, where that is about the catalog.
	digest string
	// other is a second operator that the fault is about, where it has made one: what must be seen is seen of that.
	other *trial
}

// TestTrial injects faults into a fleet. For each of them its users are told, by a condition on the hub and by
// `bellwether why`, which does not call the operator healthy then; and once the fault is put right, the fleet recovers
// without help. The faults of different clusters are injected side by side, those of one cluster one after the other,
// and at the end those of the hub.
func TestTrial(t *testing.T) {
	olm, agents, pods, hub := choose(t, olmFaults()), choose(t, agentFaults()), choose(t, podFaults()),
		choose(t, hubFaults())
	if len(olm)+len(agents)+len(pods)+len(hub) == 0 {
		t.Fatalf("no fault has a name that matches %q", *trialOnly)
	}
	var others sync.WaitGroup // not t.Parallel, which allows only as many tests at a time as there are processors
	defer others.Wait()
	for cluster, faults := range map[string]map[string]fault{"prod-eu": olm, "prod-us": agents} {
		if len(faults) > 0 {
			others.Go(func() {
				t.Run(cluster, func(t *testing.T) { injectAll(t, install(t, cluster), cluster, faults) })
			})
		}
	}
	if len(pods)+len(hub) == 0 {
		return
	}
	t.Run("canary", func(t *testing.T) {
		o := install(t, "canary")
		injectAll(t, o, "canary", pods)
		others.Wait()
		injectAll(t, o, "canary", hub)
	})
}

// install installs an operator on a cluster.
func install(t *testing.T, cluster string) *operator {
	t.Helper()
	o := manage(t, "trial-"+cluster, func(s *v1alpha1.ManagedOperatorSpec) {
		s.Install.Mode = v1alpha1.InstallOwnNamespace
		s.ClusterSelector.MatchLabels = memberOf(cluster).Labels
		s.Strategy.Waves = nil
	}, "1.0.0", "1.1.0")
	o.everywhere(1)
	return o
}

// injectAll injects the faults one after the other.
func injectAll(t *testing.T, o *operator, cluster string, faults map[string]fault) {
	t.Helper()
	local, err := shared.Client(cluster, platform.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		t.Run(name, func(t *testing.T) {
			x := &trial{operator: &operator{t: t, hub: o.hub, key: o.key}, cluster: cluster, local: local}
			x.play(faults[name])
		})
	}
}

func memberOf(cluster string) platform.Member {
	members := platform.DefaultMembers()
	return members[slices.IndexFunc(members, func(m platform.Member) bool { return m.Name == cluster })]
}

// choose returns the faults that -trial.only names, or as many as -trial.faults says, by the seed.
func choose(t *testing.T, faults map[string]fault) map[string]fault {
	t.Helper()
	only, err := regexp.Compile(*trialOnly)
	if err != nil {
		t.Fatalf("read -trial.only: %v", err)
	}
	names := slices.Sorted(maps.Keys(faults))
	names = slices.DeleteFunc(names, func(name string) bool { return !only.MatchString(name) })
	if *trialOnly == "" && *trialFaults > 0 && *trialFaults < len(names) {
		random := rand.New(rand.NewPCG(*trialSeed, uint64(len(names))))
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:*trialFaults]
	}
	chosen := map[string]fault{}
	for _, name := range names {
		chosen[name] = faults[name]
	}
	return chosen
}

// play injects one fault and follows it to its end.
func (x *trial) play(f fault) {
	x.recovers()
	healed := f.heal == nil
	x.t.Cleanup(func() { // what comes next begins without the fault
		if !healed {
			f.heal(x)
		}
	})
	if f.inject != nil {
		f.inject(x)
	}
	about := x
	if x.other != nil {
		about = x.other
	}
	about.isSeen(f)
	if !healed {
		healed = true
		f.heal(x)
	}
	began := time.Now()
	x.recovers()
	x.t.Logf("recovered after %s", time.Since(began).Round(100*time.Millisecond))
}

// isSeen waits until all is seen of a fault that has to be.
func (x *trial) isSeen(f fault) {
	x.t.Helper()
	began := time.Now()
	if f.shows != nil {
		x.until("a condition shows the fault", showLimit, f.shows)
		x.t.Logf("shown after %s", time.Since(began).Round(100*time.Millisecond))
		x.until("why explains the fault", showLimit, func(x *trial) error { return x.explains(f) })
		text, _ := x.why()
		x.t.Logf("why says:\n%s", text)
	}
	for _, holds := range f.holds {
		x.until("everything else is seen of the fault", showLimit, holds)
	}
}

// ctx is a context that is not cancelled before the test's cleanup.
func (x *trial) ctx() context.Context { return context.WithoutCancel(x.t.Context()) }

// until polls until the function returns nil.
func (x *trial) until(what string, limit time.Duration, holds func(*trial) error) {
	x.t.Helper()
	last := errors.New("it was not looked at")
	err := wait.PollUntilContextTimeout(x.ctx(), look, limit, true, func(context.Context) (bool, error) {
		last = holds(x)
		return last == nil, nil
	})
	if err != nil {
		text, _ := x.why(x.access()...)
		x.t.Fatalf("%s on %s: %v: %v\n%s", what, x.cluster, err, last, text)
	}
}

// recovers waits until the operator runs on the cluster as admitted, and `bellwether why` says so.
func (x *trial) recovers() {
	x.t.Helper()
	x.until("the operator runs", recoverLimit, (*trial).stands)
	x.until("the hub reports that the operator runs", recoverLimit, (*trial).reported)
	x.until("why says that the operator is healthy", recoverLimit, func(x *trial) error {
		if err := x.isHealthy(); err != nil {
			return err
		}
		return x.isHealthy(x.access()...)
	})
}

// stands returns nil if everything that the operator consists of is on the cluster, and is ready.
func (x *trial) stands() error {
	oi, err := x.read()
	switch {
	case err != nil:
		return err
	case oi.Spec.Admission == nil:
		return errors.New("the cluster is not admitted")
	}
	ns := &corev1.Namespace{}
	if err := x.local.Get(x.ctx(), client.ObjectKey{Name: x.key.Name}, ns); err != nil || ns.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s is being deleted, error %w", x.key.Name, err)
	}
	for _, list := range []client.ObjectList{&operatorsv1.OperatorGroupList{}, &operatorsv1alpha1.SubscriptionList{},
		&operatorsv1alpha1.CatalogSourceList{}} {
		if err := x.one(list); err != nil {
			return err
		}
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	key := client.ObjectKey{Namespace: x.key.Name, Name: oi.Spec.Admission.Release.Bundle}
	if err := x.local.Get(x.ctx(), key, csv); err != nil {
		return err
	}
	if csv.DeletionTimestamp != nil || csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		return fmt.Errorf("CSV %s is %s: %s", csv.Name, csv.Status.Phase, csv.Status.Message)
	}
	return x.hasPod()
}

// one returns nil if there is exactly one object of a kind in the operator's namespace, and it is not being deleted.
func (x *trial) one(list client.ObjectList) error {
	if err := x.local.List(x.ctx(), list, client.InNamespace(x.key.Name)); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	switch {
	case err != nil:
		return err
	case len(items) != 1:
		return fmt.Errorf("%T has %d items", list, len(items))
	case items[0].(client.Object).GetDeletionTimestamp() != nil:
		return fmt.Errorf("%T has an item that is being deleted", list)
	}
	return nil
}

// hasPod returns nil if exactly one pod of the operator runs, and is ready.
func (x *trial) hasPod() error {
	pods := &corev1.PodList{}
	err := x.local.List(x.ctx(), pods, client.InNamespace(x.key.Name),
		client.MatchingLabels{"app.kubernetes.io/name": "echo-operator"})
	switch {
	case err != nil:
		return err
	case len(pods.Items) != 1 || pods.Items[0].DeletionTimestamp != nil:
		return fmt.Errorf("the operator has %d pods", len(pods.Items))
	}
	for _, c := range pods.Items[0].Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return errors.New("the operator's pod is not ready")
}

// reported returns nil if the hub reports the admitted release, the operator and the cluster as Ready.
func (x *trial) reported() error {
	fc, mo := &v1alpha1.FleetCluster{}, &v1alpha1.ManagedOperator{}
	if err := errors.Join(x.hub.Get(x.ctx(), client.ObjectKey{Name: x.cluster}, fc),
		x.hub.Get(x.ctx(), x.key, mo)); err != nil {
		return err
	}
	oi, err := x.read()
	switch {
	case err != nil:
		return err
	case oi.Status.SucceededHash != oi.Spec.Admission.Hash:
		return errors.New("the admitted release has not succeeded")
	case conditions.IsTrue(oi.Status.Conditions, v1alpha1.ConditionDrifted):
		return errors.New(conditions.Get(oi.Status.Conditions, v1alpha1.ConditionDrifted).Message)
	}
	return errors.Join(isReady(fc, fc.Status.Conditions), isReady(mo, mo.Status.Conditions),
		isReady(oi, oi.Status.Conditions))
}

func isReady(object client.Object, all []metav1.Condition) error {
	ready := conditions.Get(all, v1alpha1.ConditionReady)
	if ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != object.GetGeneration() {
		return fmt.Errorf("%T %s is not Ready at generation %d: %+v", object, object.GetName(),
			object.GetGeneration(), ready)
	}
	return nil
}

// read returns the operator's OperatorInstall on the cluster.
func (x *trial) read() (*v1alpha1.OperatorInstall, error) {
	oi := &v1alpha1.OperatorInstall{}
	name := v1alpha1.OperatorReference(x.key).InstallName()
	err := x.hub.Get(x.ctx(), client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(x.cluster), Name: name}, oi)
	return oi, err
}

// why returns what `bellwether why` prints.
func (x *trial) why(args ...string) (string, error) {
	return shared.Bellwether(x.ctx(), append([]string{"why", x.cluster, x.key.Name}, args...)...)
}

// access are the arguments with which `bellwether why` reads the cluster too.
func (x *trial) access() []string {
	return []string{"--cluster-kubeconfig", shared.Fleet.Cluster(x.cluster).Kubeconfig()}
}

// explanation is what `bellwether why` prints as data.
func (x *trial) explanation(args ...string) (explain.Explanation, error) {
	var e explain.Explanation
	text, err := x.why(append(args, "-o", "json")...)
	if err != nil {
		return e, err
	}
	_, data, _ := strings.Cut("\n"+text, "\n{") // after what it says on stderr, such as that the hub is away
	return e, json.NewDecoder(strings.NewReader("{" + data)).Decode(&e)
}

// isHealthy returns nil if `bellwether why` calls the operator healthy. An alert may still fire, for as long as the
// fault is in its windows: it is named only where nothing else is wrong.
func (x *trial) isHealthy(args ...string) error {
	e, err := x.explanation(args...)
	isWell := e.State == explain.Healthy || e.Reason == remedy.AlertFiring
	if err == nil && (!isWell || len(e.Stale) > 0) {
		return fmt.Errorf("why says %s %s: %s %v", e.State, e.Reason, e.Summary, e.Stale)
	}
	return err
}

// explains returns nil if `bellwether why` does not call the operator healthy, says what to do or what happens next,
// and prints the texts of the fault, with and without access to the cluster.
func (x *trial) explains(f fault) error {
	e, err := x.explanation()
	switch {
	case err != nil:
		return err
	case e.State == explain.Healthy:
		return errors.New("why calls it healthy")
	case e.Reason == "" || e.Cause == nil || e.Cause.Text == "":
		return fmt.Errorf("why names no cause: %+v", e)
	case len(e.Remedies)+len(e.Next) == 0:
		return errors.New("why says neither what to do nor what happens next")
	}
	if err := x.prints(f.why); err != nil {
		return err
	}
	if e, err = x.explanation(x.access()...); err != nil || e.State == explain.Healthy {
		return fmt.Errorf("why with access to the cluster says %s, error %w", e.State, err)
	}
	return x.prints(append(slices.Clone(f.why), f.detail...), x.access()...)
}

// prints returns nil if the output of `bellwether why` contains the texts, wherever its lines are broken.
func (x *trial) prints(texts []string, args ...string) error {
	out, err := x.why(args...)
	if err != nil {
		return err
	}
	if err := contains(out, texts); err != nil {
		return fmt.Errorf("why %v: %w", args, err)
	}
	return nil
}

// contains returns an error unless an output contains the texts, wherever its lines are broken.
func contains(out string, texts []string) error {
	joined := strings.Join(strings.Fields(out), " ")
	for _, text := range texts {
		if !strings.Contains(joined, text) {
			return fmt.Errorf("it does not say %q:\n%s", text, out)
		}
	}
	return nil
}

// notReady returns a function that returns nil once the install's Ready is False for one of the reasons.
func notReady(reasons ...string) func(*trial) error {
	return func(x *trial) error {
		oi, err := x.read()
		if err != nil {
			return err
		}
		return matches(oi.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionFalse, reasons...)
	}
}

// installHas does the same for another condition of the install.
func installHas(kind string, status metav1.ConditionStatus, reasons ...string) func(*trial) error {
	return func(x *trial) error {
		oi, err := x.read()
		if err != nil {
			return err
		}
		return matches(oi.Status.Conditions, kind, status, reasons...)
	}
}

// clusterHas does the same for a condition of the FleetCluster.
func clusterHas(kind string, status metav1.ConditionStatus, reasons ...string) func(*trial) error {
	return func(x *trial) error {
		fc := &v1alpha1.FleetCluster{}
		if err := x.hub.Get(x.ctx(), client.ObjectKey{Name: x.cluster}, fc); err != nil {
			return err
		}
		return matches(fc.Status.Conditions, kind, status, reasons...)
	}
}

// operatorHas does the same for a condition of the ManagedOperator.
func operatorHas(kind string, status metav1.ConditionStatus, reasons ...string) func(*trial) error {
	return func(x *trial) error {
		mo := &v1alpha1.ManagedOperator{}
		if err := x.hub.Get(x.ctx(), x.key, mo); err != nil {
			return err
		}
		return matches(mo.Status.Conditions, kind, status, reasons...)
	}
}

// rolloutHas does the same for a condition of the operator's newest OperatorRollout.
func rolloutHas(kind string, status metav1.ConditionStatus, reasons ...string) func(*trial) error {
	return func(x *trial) error {
		ro, err := x.newestRollout()
		if err != nil {
			return err
		}
		return matches(ro.Status.Conditions, kind, status, reasons...)
	}
}

// catalogHas does the same for a condition of the OperatorCatalog.
func catalogHas(kind string, status metav1.ConditionStatus, reasons ...string) func(*trial) error {
	return func(x *trial) error {
		oc := &v1alpha1.OperatorCatalog{}
		if err := x.hub.Get(x.ctx(), x.key, oc); err != nil {
			return err
		}
		return matches(oc.Status.Conditions, kind, status, reasons...)
	}
}

func matches(all []metav1.Condition, kind string, status metav1.ConditionStatus, reasons ...string) error {
	c := conditions.Get(all, kind)
	if c.Status != status || !slices.Contains(reasons, c.Reason) {
		return fmt.Errorf("%s is %s, %s: %s; want %s for one of %v", kind, c.Status, c.Reason, c.Message, status,
			reasons)
	}
	return nil
}
