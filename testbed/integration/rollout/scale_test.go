// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestWritesOfARollout counts what a hub writes for a rollout over a wave of 40 clusters.
func TestWritesOfARollout(t *testing.T) {
	t.Parallel()
	const clusters, batches = 40, 2
	f := newFixture(t)
	f.enrollMany(clusters)
	var requests testenv.Requests
	requests.Count(f.hub)
	stop := f.startHub()
	defer stop()
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", clusters/batches)}})
	// Agents begin once the first batch is admitted, and all of it.
	f.eventually(func() error {
		if n := len(f.recorder.admittedBy(ro.Name)); n < clusters/batches {
			return fmt.Errorf("%d admitted", n)
		}
		return nil
	})
	f.runAgents()
	f.reaches(ro, v1alpha1.RolloutSucceeded)
	got := requests.Take()
	t.Logf("requests: %v", got)
	if n := got["POST operatorinstalls"] + got["PATCH operatorinstalls"]; n != 2*clusters {
		t.Errorf("%d writes of %d OperatorInstalls, want 2 for each", n, clusters)
	}
	// Each admission was preceded by a look at the rollout, and by one at what else
	// changes on the cluster.
	if n := got["GET operatorinstalls"]; n > 2*clusters+10 {
		t.Errorf("%d reads of OperatorInstalls", n)
	}
	// Freezing the plan, each batch, the end, and what becomes of the clusters meanwhile.
	if n := got["PATCH operatorrollouts/status"]; n > clusters+batches+10 {
		t.Errorf("%d writes of the rollout's status", n)
	}
}

// deny has the API server refuse an operation on OperatorInstalls of a cluster, until the
// test ends or the returned function is called.
func (f *fixture) deny(operation admissionregistrationv1.OperationType, cluster string) (allow func()) {
	f.t.Helper()
	name := "deny-" + cluster
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{
		"kubernetes.io/metadata.name": v1alpha1.ClusterNamespace(cluster)}}
	operations := []admissionregistrationv1.OperationType{operation}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: selector,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: operations,
						Rule: admissionregistrationv1.Rule{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group},
							APIVersions: []string{"*"}, Resources: []string{"operatorinstalls"}}}}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "the quota is used up"}},
		}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}
	must(f.t, f.Create(f.t.Context(), policy))
	must(f.t, f.Create(f.t.Context(), binding))
	allow = func() {
		_ = client.IgnoreNotFound(f.Delete(f.t.Context(), binding))
		_ = client.IgnoreNotFound(f.Delete(f.t.Context(), policy))
	}
	f.t.Cleanup(allow)
	return allow
}

// inForce waits until a write is refused.
func (f *fixture) inForce(write func() error) {
	f.t.Helper()
	f.eventually(func() error {
		if err := write(); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("the write is not refused: %w", errors.Join(err))
		}
		return nil
	})
}

// TestClustersThatCannotBeWritten has the API server refuse to make the OperatorInstall
// of one cluster, and to admit another one that comes first in a wave of one slot. The
// others are updated meanwhile, and the two once they can be.
func TestClustersThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(5)
	unmade, stuck := names[1], names[0]
	allowCreate := f.deny(admissionregistrationv1.Create, unmade)
	f.inForce(func() error {
		return f.Create(f.t.Context(), &v1alpha1.OperatorInstall{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(unmade), Name: "trial"},
			Spec: v1alpha1.OperatorInstallSpec{Cluster: unmade,
				Operator: v1alpha1.OperatorReference{Namespace: f.namespace, Name: "trial"}}}, client.DryRunAll)
	})
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}})
	f.change(ro, func() { ro.Spec.Paused = true })
	stop := f.startHub()
	defer stop()
	f.reaches(ro, v1alpha1.RolloutPaused)
	allowUpdate := f.deny(admissionregistrationv1.Update, stuck)
	f.inForce(func() error {
		install := f.install(stuck)
		install.Labels["trial"] = "yes"
		return f.Update(f.t.Context(), install, client.DryRunAll)
	})
	f.change(ro, func() { ro.Spec.Paused = false })
	f.runAgents()

	f.eventually(func() error {
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
		if n := len(f.recorder.admittedBy(ro.Name)); n != 3 {
			return fmt.Errorf("%d of 3 others admitted; held back: %+v; %s", n, ro.Status.HeldBack, ro.Status.Message)
		}
		return nil
	})
	f.eventually(func() error {
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
		var clusters []string
		for _, g := range ro.Status.HeldBack {
			if g.Reason == v1alpha1.ReasonClusterNotWritable {
				clusters = append(clusters, g.Clusters...)
			}
		}
		if slices.Sort(clusters); !slices.Equal(clusters, []string{stuck, unmade}) {
			return fmt.Errorf("reported as not writable: %q; %s", clusters, ro.Status.Message)
		}
		return nil
	})
	allowCreate()
	allowUpdate()
	f.eventually(func() error {
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
		if ro.Status.Phase != v1alpha1.RolloutSucceeded || ro.Status.Clusters.Succeeded != 5 {
			return fmt.Errorf("%s, %+v: %s", ro.Status.Phase, ro.Status.Clusters, ro.Status.Message)
		}
		return nil
	})
	if peak := f.recorder.peakOf("echo-1/all"); peak > 1 {
		t.Errorf("%d clusters were in progress at a time, 1 may", peak)
	}
}
