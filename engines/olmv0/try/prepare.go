// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// objectName is the name of the OperatorGroup, the CatalogSource and the Subscription.
	objectName = "bellwether-try"
	// annotationExcludeGlobal makes OLM ignore the catalogs of its global namespace.
	annotationExcludeGlobal = "olm.operatorframework.io/exclude-global-namespace-resolution"

	catalogReady = "READY"
)

// record is what a trial creates outside its namespace.
type record struct {
	// Package is the package that was tried.
	Package string `json:"package"`
	// Objects are the cluster-scoped objects that did not exist before.
	Objects []object `json:"objects,omitempty"`
	// Examples are the examples that the trial created. The removal needs them for kinds that existed before.
	Examples []Example `json:"examples,omitempty"`
}

// prepare chooses the install mode, and creates the namespace with the record of the trial and its OperatorGroup.
func (t *trial) prepare(ctx context.Context) (string, error) {
	mode, err := chooseMode(t.Mode, t.listBundles()...)
	if err != nil {
		return "", err
	}
	t.report.InstallMode = mode
	t.record = record{Package: t.Bundle.Bundle.Package}
	text, err := json.Marshal(t.record)
	if err != nil {
		return "", fmt.Errorf("encode record: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bellwether-try-", Labels: map[string]string{LabelTry: t.record.Package},
		Annotations: map[string]string{annotationRecord: string(text)},
	}}
	// After an interrupt, the name of the new namespace must be known, so that it can be removed.
	if err := t.Create(context.WithoutCancel(ctx), namespace, fieldOwner); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	t.namespace, t.report.Namespace = namespace.Name, namespace.Name
	group := &operatorsv1.OperatorGroup{ObjectMeta: t.newObjectMeta()}
	group.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyDefault
	if mode != operatorsv1alpha1.InstallModeTypeAllNamespaces {
		group.Spec.TargetNamespaces = []string{t.namespace}
	}
	isIndependent, err := t.hasNoDependencies()
	if err != nil {
		return "", err
	}
	if isIndependent {
		group.Annotations = map[string]string{annotationExcludeGlobal: "true"}
	} else {
		t.report.addNote("%s has dependencies. OLM takes them from the catalogs of its global namespace.",
			t.report.Bundle)
	}
	if err := t.Create(ctx, group, fieldOwner); err != nil {
		return "", fmt.Errorf("create OperatorGroup: %w", err)
	}
	return fmt.Sprintf("created namespace %s (install mode %s)", t.namespace, mode), nil
}

// hasNoDependencies reports whether no bundle has dependencies. Then OLM can ignore the catalogs of the cluster, and an
// unhealthy catalog does not prevent the trial.
func (t *trial) hasNoDependencies() (bool, error) {
	for _, r := range t.listReleases() {
		if needs, err := hasDependencies(r); needs || err != nil {
			return false, err
		}
	}
	return true, nil
}

// listReleases returns the bundles in the order of their installation.
func (t *trial) listReleases() []Release {
	if t.From != nil {
		return []Release{*t.From, t.Bundle}
	}
	return []Release{t.Bundle}
}

// newObjectMeta returns the metadata of the objects that the trial creates in its namespace.
func (t *trial) newObjectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: t.namespace, Name: objectName,
		Labels: map[string]string{LabelTry: t.record.Package}}
}

// serveCatalog creates the CatalogSource, waits until OLM has read it, and creates the Subscription.
func (t *trial) serveCatalog(ctx context.Context) (string, error) {
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: t.newObjectMeta(), Spec: operatorsv1alpha1.CatalogSourceSpec{
		SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: t.Catalog.Address, Image: t.Catalog.Image,
		DisplayName: "Trial of " + t.record.Package, Publisher: "Bellwether",
	}}
	if err := t.Create(ctx, source, fieldOwner); err != nil {
		return "", fmt.Errorf("create CatalogSource: %w", err)
	}
	location := cmp.Or(t.Catalog.Address, t.Catalog.Image)
	limit := min(t.Timeout, catalogLimit)
	if t.Catalog.Image != "" {
		limit = t.Timeout // the image must be pulled
	}
	state := ""
	err := t.poll(ctx, limit, func(ctx context.Context) (bool, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
			return false, fmt.Errorf("get CatalogSource: %w", err)
		}
		if s := source.Status.GRPCConnectionState; s != nil {
			state = s.LastObservedState
		}
		return state == catalogReady, nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("%w at %s within %s: the connection is %s", ErrCatalog, location, limit,
			cmp.Or(state, "not there: OLM might not be running"))
	case err != nil:
		return "", err
	}
	firstBundle := t.listReleases()[0].Bundle.Name
	err = t.Create(ctx, &operatorsv1alpha1.Subscription{ObjectMeta: t.newObjectMeta(),
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: t.record.Package, Channel: cmp.Or(t.Catalog.Channel, Channel), CatalogSource: objectName,
			CatalogSourceNamespace: t.namespace, StartingCSV: firstBundle,
			InstallPlanApproval: operatorsv1alpha1.ApprovalManual,
		}}, fieldOwner)
	if err != nil {
		return "", fmt.Errorf("create Subscription: %w", err)
	}
	return "OLM reads the catalog at " + location, nil
}

// recordCreated records objects in an annotation of the namespace before they are created.
func (t *trial) recordCreated(ctx context.Context, objects []object, examples []Example) error {
	next := t.record
	next.Objects = append(slices.Clone(next.Objects), objects...)
	next.Examples = append(slices.Clone(next.Examples), examples...)
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{annotationRecord: string(text)}}})
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}
	if err := t.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		return fmt.Errorf("write down what will be created: %w", err)
	}
	t.record = next
	return nil
}

// joinNames returns the names of objects, separated by commas.
func joinNames[T fmt.Stringer](objects []T) string {
	out := make([]string, 0, len(objects))
	for _, o := range objects {
		out = append(out, o.String())
	}
	return strings.Join(out, ", ")
}
