// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

var (
	errChangedMeanwhile = errors.New("it was changed since it was compared")
	errUnknownKind      = errors.New("the kind is not known")
	errNoManifests      = errors.New("the catalog view does not have the manifests of the bundle")
)

// correctFields sets the differing fields of a CSV or a Deployment back to the values of the bundle. It uses the
// bundle that is served to OLM, so that it needs no registry. It returns a Conflict if the object has changed since its
// fields were compared.
func (e *Engine) correctFields(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation,
	a plan.Action) error {
	release := install.Spec.Admission.Release
	text := e.Views.CSV(formatViewKey(install), release.Package, release.Bundle)
	if text == nil {
		return fmt.Errorf("%w %q", errNoManifests, release.Bundle)
	}
	bundle := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := json.Unmarshal(text, bundle); err != nil {
		return fmt.Errorf("decode ClusterServiceVersion of bundle %q: %w", release.Bundle, err)
	}
	live := newActionObject(install, a)
	if err := e.Live.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if plan.ObjectOf(live) != a.Object {
		return apierrors.NewConflict(schema.GroupResource{Group: kinds[a.Kind].Group, Resource: a.Kind}, a.Name,
			errChangedMeanwhile)
	}
	observed := live.DeepCopy()
	spec, _, err := unstructured.NestedMap(live.Object, "spec")
	if err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	spec, err = plan.CorrectDrift(bundle, release.Install.Config, o.facts.Cluster.FieldsOf(a.Kind, a.Name), spec)
	if err != nil {
		return fmt.Errorf("work out spec: %w", err)
	}
	live.Object["spec"] = spec
	return e.Local.Patch(ctx, live, client.MergeFromWithOptions(observed, client.MergeFromWithOptimisticLock{}),
		fieldOwner)
}
