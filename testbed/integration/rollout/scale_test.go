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
	w := newWorld(t)
	w.enrollMany(clusters)
	var requests testenv.Requests
	requests.Count(w.hub)
	stop := w.startHub()
	defer stop()
	ro := w.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", clusters/batches)}})
	// Agents begin once the first batch is admitted, and all of it.
	w.eventually(func() error {
		if n := len(w.witness.admittedBy(ro.Name)); n < clusters/batches {
			return fmt.Errorf("%d admitted", n)
		}
		return nil
	})
	w.runAgents()
	w.reaches(ro, v1alpha1.RolloutSucceeded)
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
func (w *world) deny(operation admissionregistrationv1.OperationType, cluster string) (allow func()) {
	w.t.Helper()
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
	must(w.t, w.Create(w.t.Context(), policy))
	must(w.t, w.Create(w.t.Context(), binding))
	allow = func() {
		_ = client.IgnoreNotFound(w.Delete(w.t.Context(), binding))
		_ = client.IgnoreNotFound(w.Delete(w.t.Context(), policy))
	}
	w.t.Cleanup(allow)
	return allow
}

// inForce waits until a write is refused.
func (w *world) inForce(write func() error) {
	w.t.Helper()
	w.eventually(func() error {
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
	w := newWorld(t)
	names := w.enrollMany(5)
	unmade, stuck := names[1], names[0]
	allowCreate := w.deny(admissionregistrationv1.Create, unmade)
	w.inForce(func() error {
		return w.Create(w.t.Context(), &v1alpha1.OperatorInstall{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(unmade), Name: "trial"},
			Spec: v1alpha1.OperatorInstallSpec{Cluster: unmade,
				Operator: v1alpha1.OperatorReference{Namespace: w.namespace, Name: "trial"}}}, client.DryRunAll)
	})
	ro := w.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}})
	w.change(ro, func() { ro.Spec.Paused = true })
	stop := w.startHub()
	defer stop()
	w.reaches(ro, v1alpha1.RolloutPaused)
	allowUpdate := w.deny(admissionregistrationv1.Update, stuck)
	w.inForce(func() error {
		install := w.install(stuck)
		install.Labels["trial"] = "yes"
		return w.Update(w.t.Context(), install, client.DryRunAll)
	})
	w.change(ro, func() { ro.Spec.Paused = false })
	w.runAgents()

	w.eventually(func() error {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
		if n := len(w.witness.admittedBy(ro.Name)); n != 3 {
			return fmt.Errorf("%d of 3 others admitted; held back: %+v; %s", n, ro.Status.HeldBack, ro.Status.Message)
		}
		return nil
	})
	w.eventually(func() error {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
		var told []string
		for _, g := range ro.Status.HeldBack {
			if g.Reason == v1alpha1.ReasonClusterNotWritable {
				told = append(told, g.Clusters...)
			}
		}
		if slices.Sort(told); !slices.Equal(told, []string{stuck, unmade}) {
			return fmt.Errorf("reported as not writable: %q; %s", told, ro.Status.Message)
		}
		return nil
	})
	allowCreate()
	allowUpdate()
	w.eventually(func() error {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
		if ro.Status.Phase != v1alpha1.RolloutSucceeded || ro.Status.Clusters.Succeeded != 5 {
			return fmt.Errorf("%s, %+v: %s", ro.Status.Phase, ro.Status.Clusters, ro.Status.Message)
		}
		return nil
	})
	if peak := w.witness.peakOf("echo-1/all"); peak > 1 {
		t.Errorf("%d clusters were in progress at a time, 1 may", peak)
	}
}
