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

// object names a cluster-scoped object.
type object struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
}

// toGVK returns the kind of the object.
func (o object) toGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}
}

func (o object) String() string { return o.Kind + " " + o.Name }

// isCRD reports whether the object is a CustomResourceDefinition.
func (o object) isCRD() bool {
	return o.Group == apiextensionsv1.GroupName && o.Kind == "CustomResourceDefinition"
}

// usage is what a cluster already has of an operator, or of its kinds.
type usage struct {
	// objects are the existing objects of the bundles.
	objects []object
	// subscriptions and csvs are all objects of these kinds on the cluster, without copied CSVs.
	subscriptions []operatorsv1alpha1.Subscription
	csvs          []operatorsv1alpha1.ClusterServiceVersion
}

// listConflicts returns what a trial of bundles of one package would change on a cluster. It is pure.
func listConflicts(pkg string, all []*bundles.Bundle, existing usage) []string {
	var out []string
	for _, s := range existing.subscriptions {
		if s.Spec != nil && s.Spec.Package == pkg {
			out = append(out, fmt.Sprintf("Subscription %s/%s subscribes to package %s", s.Namespace, s.Name, pkg))
		}
	}
	for _, csv := range existing.csvs {
		if shared := listSharedKinds(csv, all); shared != "" {
			out = append(out, fmt.Sprintf("ClusterServiceVersion %s/%s owns %s", csv.Namespace, csv.Name, shared))
		}
	}
	for _, o := range existing.objects {
		out = append(out, o.String()+" exists")
	}
	return out
}

// listSharedKinds returns the kinds of the bundles that a ClusterServiceVersion owns, separated by commas.
func listSharedKinds(csv operatorsv1alpha1.ClusterServiceVersion, all []*bundles.Bundle) string {
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

// checkCluster returns an error if the cluster has no OLM, or if the trial would change existing objects. If the
// options allow existing objects, it adds a note for each of them instead.
func (t *trial) checkCluster(ctx context.Context) (string, error) {
	existing, err := t.readUsage(ctx)
	if err != nil {
		return "", err
	}
	found := listConflicts(t.Bundle.Bundle.Package, t.listBundles(), existing)
	switch {
	case len(found) == 0:
		return "the cluster has OLM, and nothing of package " + t.Bundle.Bundle.Package, nil
	case !t.AllowExisting:
		return "", fmt.Errorf("%w: %s", ErrConflict, strings.Join(found, "; "))
	}
	for _, f := range found {
		t.report.addNote("It was there before the trial, and is not removed: %s.", f)
	}
	return "the cluster has OLM; trying the bundle beside what is there", nil
}

// listBundles returns the bundles of the trial.
func (t *trial) listBundles() []*bundles.Bundle {
	out := []*bundles.Bundle{t.Bundle.Bundle}
	if t.From != nil {
		out = append(out, t.From.Bundle)
	}
	return out
}

// readUsage reads what the cluster already has of the operator.
func (t *trial) readUsage(ctx context.Context) (usage, error) {
	var subscriptions operatorsv1alpha1.SubscriptionList
	if err := t.List(ctx, &subscriptions); meta.IsNoMatchError(err) {
		return usage{}, ErrNoOLM
	} else if err != nil {
		return usage{}, fmt.Errorf("list Subscriptions: %w", err)
	}
	var csvs operatorsv1alpha1.ClusterServiceVersionList
	originals, err := labels.Parse("!" + operatorsv1alpha1.CopiedLabelKey)
	if err != nil {
		return usage{}, fmt.Errorf("select ClusterServiceVersions: %w", err)
	}
	if err := t.List(ctx, &csvs, client.MatchingLabelsSelector{Selector: originals}); err != nil {
		return usage{}, fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	existing := usage{subscriptions: subscriptions.Items, csvs: csvs.Items}
	var wanted []object
	for _, b := range t.listBundles() {
		for _, o := range b.Objects {
			gvk := o.GroupVersionKind()
			wanted = append(wanted, object{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: o.GetName()})
		}
	}
	existing.objects, err = t.listExisting(ctx, wanted)
	return existing, err
}

// listExisting returns the wanted objects that are cluster-scoped and exist, each once.
func (t *trial) listExisting(ctx context.Context, wanted []object) ([]object, error) {
	var out []object
	for _, o := range wanted {
		isClusterScoped, err := t.isClusterScoped(o)
		if err != nil {
			return nil, err
		}
		if !isClusterScoped || slices.ContainsFunc(out, func(have object) bool { return have == o }) {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(o.toGVK())
		switch err := t.Get(ctx, client.ObjectKey{Name: o.Name}, live); {
		case err == nil:
			out = append(out, o)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get %s: %w", o, err)
		}
	}
	return out, nil
}

// isClusterScoped reports whether objects of this kind are cluster-scoped; false for a kind that the cluster does
// not serve.
func (t *trial) isClusterScoped(o object) (bool, error) {
	mapping, err := t.RESTMapper().RESTMapping(o.toGVK().GroupKind(), o.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out about kind %s: %w", o.Kind, err)
	}
	return mapping.Scope.Name() == meta.RESTScopeNameRoot, nil
}
