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
	"github.com/bellwether-dev/bellwether/engines/olmv0/drift"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

var (
	errChangedMeanwhile = errors.New("it was changed since it was compared")
	errNoManifests      = errors.New("the catalog view does not have the manifests of the bundle")
)

// correct puts back the observed fields of a CSV or a Deployment. The bundle is the
// one that is served to OLM, so that no registry is needed.
func (e *Engine) correct(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation,
	a plan.Action) error {
	release := install.Spec.Admission.Release
	text := e.Views.CSV(viewKey(install), release.Package, release.Bundle)
	if text == nil {
		return fmt.Errorf("%w %q", errNoManifests, release.Bundle)
	}
	bundle := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := json.Unmarshal(text, bundle); err != nil {
		return fmt.Errorf("decode ClusterServiceVersion of bundle %q: %w", release.Bundle, err)
	}
	live := objectFor(install, a)
	if err := e.Live.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if objectOf(live) != a.Object {
		return apierrors.NewConflict(schema.GroupResource{Group: kinds[a.Kind].Group, Resource: a.Kind}, a.Name,
			errChangedMeanwhile)
	}
	before := live.DeepCopy()
	spec, _, err := unstructured.NestedMap(live.Object, "spec")
	if err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	spec, err = drift.Correct(bundle, release.Install.Config, o.Cluster.FieldsOf(a.Kind, a.Name), spec)
	if err != nil {
		return fmt.Errorf("work out spec: %w", err)
	}
	live.Object["spec"] = spec
	return e.Local.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		fieldOwner)
}
