// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/bundles"
)

// object names an object that is in no namespace.
type object struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
}

func (o object) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}
}

func (o object) String() string { return o.Kind + " " + o.Name }

func (o object) isCRD() bool {
	return o.Group == apiextensionsv1.GroupName && o.Kind == "CustomResourceDefinition"
}

// inUse is what is on a cluster of an operator, or of its kinds.
type inUse struct {
	// objects are those of the bundles that are there.
	objects []object
	// subscriptions and csvs are all of the cluster, copies left out.
	subscriptions []operatorsv1alpha1.Subscription
	csvs          []operatorsv1alpha1.ClusterServiceVersion
}

// conflicts says what a trial of bundles of one package would change on a cluster. It
// is pure.
func conflicts(pkg string, all []*bundles.Bundle, in inUse) []string {
	var out []string
	for _, s := range in.subscriptions {
		if s.Spec != nil && s.Spec.Package == pkg {
			out = append(out, fmt.Sprintf("Subscription %s/%s subscribes to package %s", s.Namespace, s.Name, pkg))
		}
	}
	for _, csv := range in.csvs {
		if shared := sharedKinds(csv, all); shared != "" {
			out = append(out, fmt.Sprintf("ClusterServiceVersion %s/%s owns %s", csv.Namespace, csv.Name, shared))
		}
	}
	for _, o := range in.objects {
		out = append(out, o.String()+" exists")
	}
	return out
}

// sharedKinds names the kinds of the bundles that a ClusterServiceVersion owns.
func sharedKinds(csv operatorsv1alpha1.ClusterServiceVersion, all []*bundles.Bundle) string {
	var names []string
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		has := func(b *bundles.Bundle) bool {
			return slices.ContainsFunc(b.CSV.Spec.CustomResourceDefinitions.Owned,
				func(d operatorsv1alpha1.CRDDescription) bool { return d.Name == owned.Name })
		}
		if slices.ContainsFunc(all, has) && !slices.Contains(names, owned.Name) {
			names = append(names, owned.Name)
		}
	}
	return strings.Join(names, ", ")
}

// check looks for OLM, and for what the trial would change.
func (t *trial) check(ctx context.Context) (string, error) {
	in, err := t.observe(ctx)
	if err != nil {
		return "", err
	}
	found := conflicts(t.Bundle.Bundle.Package, t.bundles(), in)
	switch {
	case len(found) == 0:
		return "the cluster has OLM, and nothing of package " + t.Bundle.Bundle.Package, nil
	case !t.AllowExisting:
		return "", fmt.Errorf("%w: %s", ErrConflict, strings.Join(found, "; "))
	}
	for _, f := range found {
		t.report.note("It was there before the trial, and is not removed: %s.", f)
	}
	return "the cluster has OLM; trying the bundle beside what is there", nil
}

func (t *trial) bundles() []*bundles.Bundle {
	out := []*bundles.Bundle{t.Bundle.Bundle}
	if t.From != nil {
		out = append(out, t.From.Bundle)
	}
	return out
}

func (t *trial) observe(ctx context.Context) (inUse, error) {
	var subscriptions operatorsv1alpha1.SubscriptionList
	if err := t.List(ctx, &subscriptions); meta.IsNoMatchError(err) {
		return inUse{}, ErrNoOLM
	} else if err != nil {
		return inUse{}, fmt.Errorf("list Subscriptions: %w", err)
	}
	var csvs operatorsv1alpha1.ClusterServiceVersionList
	originals, err := labels.Parse("!" + operatorsv1alpha1.CopiedLabelKey)
	if err != nil {
		return inUse{}, fmt.Errorf("select ClusterServiceVersions: %w", err)
	}
	if err := t.List(ctx, &csvs, client.MatchingLabelsSelector{Selector: originals}); err != nil {
		return inUse{}, fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	in := inUse{subscriptions: subscriptions.Items, csvs: csvs.Items}
	var wanted []object
	for _, b := range t.bundles() {
		for _, o := range b.Objects {
			gvk := o.GroupVersionKind()
			wanted = append(wanted, object{gvk.Group, gvk.Version, gvk.Kind, o.GetName()})
		}
	}
	in.objects, err = t.existing(ctx, wanted)
	return in, err
}

// existing returns those of some objects that are in no namespace, and that are there,
// each once.
func (t *trial) existing(ctx context.Context, wanted []object) ([]object, error) {
	var out []object
	for _, o := range wanted {
		cluster, err := t.isClusterScoped(o)
		if err != nil {
			return nil, err
		}
		if !cluster || slices.ContainsFunc(out, func(have object) bool { return have == o }) {
			continue
		}
		there := &metav1.PartialObjectMetadata{}
		there.SetGroupVersionKind(o.gvk())
		switch err := t.Get(ctx, client.ObjectKey{Name: o.Name}, there); {
		case err == nil:
			out = append(out, o)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get %s: %w", o, err)
		}
	}
	return out, nil
}

// isClusterScoped tells whether objects of this kind are in no namespace. A kind that
// the cluster does not serve has no objects.
func (t *trial) isClusterScoped(o object) (bool, error) {
	mapping, err := t.RESTMapper().RESTMapping(o.gvk().GroupKind(), o.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out about kind %s: %w", o.Kind, err)
	}
	return mapping.Scope.Name() == meta.RESTScopeNameRoot, nil
}
