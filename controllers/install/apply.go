// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/install/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

const (
	// fieldOwner owns the fields that the agent sets on the fleet cluster.
	fieldOwner = client.FieldOwner("bellwether-agent")

	// annotationKeep marks a namespace that must outlive its operator.
	annotationKeep = "bellwether.dev/keep"

	labelOLMOwner = "olm.owner"
)

// apply carries out the actions in order and stops at the first error; each is
// idempotent, so the next pass takes up the rest.
func (r *Reconciler) apply(ctx context.Context, oi *v1alpha1.OperatorInstall, s *seen, actions []plan.Action) error {
	for _, action := range actions {
		if err := r.act(ctx, oi, s, action); err != nil {
			return fmt.Errorf("%s %s %s: %w", action.Verb, action.Kind, action.Name, err)
		}
	}
	return nil
}

func (r *Reconciler) act(ctx context.Context, oi *v1alpha1.OperatorInstall, s *seen, action plan.Action) error {
	switch action.Verb {
	case plan.Hold:
		return kit.AddFinalizer(ctx, r.Hub, oi, v1alpha1.FinalizerAgent)
	case plan.LetGo:
		return kit.RemoveFinalizer(ctx, r.Hub, oi, v1alpha1.FinalizerAgent)
	case plan.Serve:
		_, _, err := r.Views.Set(s.key, s.view, s.servedPort())
		return err
	case plan.Unserve:
		r.Views.Remove(s.key)
		r.offers.forget(s.key)
		return nil
	case plan.Apply:
		log.FromContext(ctx).Info("Applying", "kind", action.Kind, "namespace", s.data.Namespace)
		rendered, ok := s.rendered[action.Kind].(*unstructured.Unstructured)
		if !ok {
			return nil // its template does not render; the status says so
		}
		return r.Local.Apply(ctx, client.ApplyConfigurationFromUnstructured(rendered), fieldOwner,
			client.ForceOwnership)
	case plan.Approve:
		return r.approve(ctx, s, action)
	case plan.Delete:
		return r.remove(ctx, s, action)
	case plan.Retry:
		return r.retry(ctx, s, action)
	case plan.Adopt:
		return r.adopt(ctx, s, action)
	case plan.Reset:
		return r.reset(ctx, s, action)
	case plan.Revive:
		return r.revive(ctx, s, action)
	case plan.Abandon:
		return r.abandon(ctx, s, action)
	case plan.Keep:
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotationKeep, s.Cluster.Namespace.Occupied)
		return r.Local.Patch(ctx, s.observed(action), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	return nil
}

// observed returns the object that an action names.
func (s *seen) observed(action plan.Action) client.Object {
	return s.live[plan.Action{Kind: action.Kind, Name: action.Name}]
}

// servedPort is the port that OLM was told before the agent started, so that a
// restart does not move the view; 0 for any.
func (s *seen) servedPort() int {
	for action, object := range s.live {
		source, ok := object.(*unstructured.Unstructured)
		if action.Kind != plan.KindCatalogSource || !ok || s.Cluster.CatalogSource == nil ||
			action.Name != s.Cluster.CatalogSource.Name {
			continue
		}
		address, _, _ := unstructured.NestedString(source.Object, "spec", "address")
		if _, port, err := net.SplitHostPort(address); err == nil {
			if n, err := strconv.Atoi(port); err == nil {
				return n
			}
		}
	}
	return 0
}

// approve approves the InstallPlan only as it was observed: the resource
// version is a precondition.
func (r *Reconciler) approve(ctx context.Context, s *seen, action plan.Action) error {
	observed, ok := s.observed(action).(*operatorsv1alpha1.InstallPlan)
	if !ok {
		return nil
	}
	log.FromContext(ctx).Info("Approving the InstallPlan", "plan", observed.Name, "namespace", observed.Namespace,
		"csvs", observed.Spec.ClusterServiceVersionNames)
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:"%d"}},"spec":{"approved":true}}`,
		observed.ResourceVersion, v1alpha1.AnnotationRevision, s.Install.Spec.Admission.Revision)
	return r.Local.Patch(ctx, observed.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), fieldOwner)
}

// retry sets a failed InstallPlan back to where OLM carries it out; steps that
// are done already stay done.
func (r *Reconciler) retry(ctx context.Context, s *seen, action plan.Action) error {
	log.FromContext(ctx).Info("Retrying the InstallPlan", "plan", action.Name, "namespace", s.data.Namespace)
	return r.patchStatus(ctx, s.observed(action),
		fmt.Sprintf(`"phase":%q,"message":null,"startTime":null,"conditions":null`,
			operatorsv1alpha1.InstallPlanPhaseInstalling))
}

// adopt writes into the Subscription's status what OLM would have written had
// it installed the CSV for it.
func (r *Reconciler) adopt(ctx context.Context, s *seen, action plan.Action) error {
	log.FromContext(ctx).Info("Adopting the ClusterServiceVersion", "name", action.Name, "namespace", s.data.Namespace)
	sub := s.live[plan.Action{Kind: plan.KindSubscription, Name: s.data.Package}]
	return r.patchStatus(ctx, sub,
		fmt.Sprintf(`"currentCSV":%[1]q,"installedCSV":%[1]q,"state":%[2]q,"lastUpdated":%[3]q`,
			action.Name, operatorsv1alpha1.SubscriptionStateAtLatest, s.Now.UTC().Format(time.RFC3339)))
}

// reset takes the Subscription back to what is installed. OLM resolves at once,
// and makes a plan only for what differs from the current CSV.
func (r *Reconciler) reset(ctx context.Context, s *seen, action plan.Action) error {
	log.FromContext(ctx).Info("Resetting the Subscription", "name", action.Name, "namespace", s.data.Namespace)
	current := "null"
	if csv, ok := s.Cluster.Installed(); ok {
		current = strconv.Quote(csv.Name)
	}
	return r.patchStatus(ctx, s.observed(action),
		`"installPlanRef":null,"installplan":null,"state":null,"currentCSV":`+current)
}

// revive lets OLM look at a CSV anew; what it made is there, so it is Succeeded
// again in a moment.
func (r *Reconciler) revive(ctx context.Context, s *seen, action plan.Action) error {
	log.FromContext(ctx).Info("Reviving the ClusterServiceVersion", "name", action.Name, "namespace", s.data.Namespace)
	return r.patchStatus(ctx, s.observed(action),
		fmt.Sprintf(`"phase":%q,"reason":%q,"message":"what was to replace it is gone"`,
			operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown))
}

// patchStatus changes fields of an object's status, if the object is as it was
// observed.
func (r *Reconciler) patchStatus(ctx context.Context, observed client.Object, fields string) error {
	if observed == nil {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{%s}}`, observed.GetResourceVersion(), fields)
	target, ok := observed.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	return r.Local.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, []byte(patch)), fieldOwner)
}

// strategyAbandoned is an install strategy that OLM does not know.
const strategyAbandoned = "abandoned-by-bellwether"

// abandon makes OLM fail a CSV: it fails one at once whose install strategy it
// does not know, keeps it Failed, and lets the next one replace it. What the
// CSV made stays until then.
func (r *Reconciler) abandon(ctx context.Context, s *seen, action plan.Action) error {
	observed, ok := s.observed(action).(*operatorsv1alpha1.ClusterServiceVersion)
	if !ok {
		return nil
	}
	log.FromContext(ctx).Info("Abandoning the ClusterServiceVersion", "name", observed.Name, "namespace",
		observed.Namespace, "phase", observed.Status.Phase)
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"install":{"strategy":%q}}}`,
		observed.ResourceVersion, strategyAbandoned)
	return r.Local.Patch(ctx, observed.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), fieldOwner)
}

// remove deletes an object only if it is the one that was observed.
func (r *Reconciler) remove(ctx context.Context, s *seen, action plan.Action) error {
	observed := s.observed(action)
	if observed == nil {
		return nil
	}
	log.FromContext(ctx).Info("Deleting", "kind", action.Kind, "name", action.Name, "namespace",
		observed.GetNamespace())
	uid := observed.GetUID()
	return client.IgnoreNotFound(r.Local.Delete(ctx, observed, client.Preconditions{UID: &uid}))
}
