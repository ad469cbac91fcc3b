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
	// annotationAlone keeps OLM from looking at the catalogs of its global namespace.
	annotationAlone = "olm.operatorframework.io/exclude-global-namespace-resolution"

	catalogReady = "READY"
)

// record is what a trial makes outside of its namespace.
type record struct {
	// Package is the one that was tried.
	Package string `json:"package"`
	// Objects are in no namespace. They were not there before.
	Objects []object `json:"objects,omitempty"`
	// Examples are needed for kinds that were there before.
	Examples []Example `json:"examples,omitempty"`
}

// prepare makes the namespace and its OperatorGroup.
func (t *trial) prepare(ctx context.Context) (string, error) {
	mode, err := chooseMode(t.Mode, t.bundles()...)
	if err != nil {
		return "", err
	}
	t.report.InstallMode = mode
	t.made = record{Package: t.Bundle.Bundle.Package}
	text, err := json.Marshal(t.made)
	if err != nil {
		return "", fmt.Errorf("encode record: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bellwether-try-", Labels: map[string]string{LabelTry: t.made.Package},
		Annotations: map[string]string{annotationMade: string(text)},
	}}
	// An interrupt must not leave a namespace whose name was not learnt.
	if err := t.Create(context.WithoutCancel(ctx), namespace, fieldOwner); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	t.namespace, t.report.Namespace = namespace.Name, namespace.Name
	group := &operatorsv1.OperatorGroup{ObjectMeta: t.named()}
	group.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyDefault
	if mode != operatorsv1alpha1.InstallModeTypeAllNamespaces {
		group.Spec.TargetNamespaces = []string{t.namespace}
	}
	alone, err := t.standsAlone()
	if err != nil {
		return "", err
	}
	if alone {
		group.Annotations = map[string]string{annotationAlone: "true"}
	} else {
		t.report.note("%s has dependencies. OLM takes them from the catalogs of its global namespace.", t.report.Bundle)
	}
	if err := t.Create(ctx, group, fieldOwner); err != nil {
		return "", fmt.Errorf("create OperatorGroup: %w", err)
	}
	return fmt.Sprintf("created namespace %s (install mode %s)", t.namespace, mode), nil
}

// standsAlone tells whether no bundle has dependencies: an unhealthy catalog of the
// cluster then does not matter.
func (t *trial) standsAlone() (bool, error) {
	for _, r := range t.releases() {
		if needs, err := needsOthers(r); needs || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (t *trial) releases() []Release {
	if t.From != nil {
		return []Release{*t.From, t.Bundle}
	}
	return []Release{t.Bundle}
}

func (t *trial) named() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: t.namespace, Name: objectName,
		Labels: map[string]string{LabelTry: t.made.Package}}
}

// serve makes the CatalogSource, waits until OLM has read it, and subscribes.
func (t *trial) serve(ctx context.Context) (string, error) {
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: t.named(), Spec: operatorsv1alpha1.CatalogSourceSpec{
		SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: t.Catalog.Address, Image: t.Catalog.Image,
		DisplayName: "Trial of " + t.made.Package, Publisher: "Bellwether",
	}}
	if err := t.Create(ctx, source, fieldOwner); err != nil {
		return "", fmt.Errorf("create CatalogSource: %w", err)
	}
	where := cmp.Or(t.Catalog.Address, t.Catalog.Image)
	limit := min(t.Timeout, catalogLimit)
	if t.Catalog.Image != "" {
		limit = t.Timeout // the image has to be pulled
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
		return "", fmt.Errorf("%w at %s within %s: the connection is %s", ErrCatalog, where, limit,
			cmp.Or(state, "not there: OLM may not be running"))
	case err != nil:
		return "", err
	}
	first := t.releases()[0].Bundle.Name
	err = t.Create(ctx, &operatorsv1alpha1.Subscription{ObjectMeta: t.named(),
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: t.made.Package, Channel: cmp.Or(t.Catalog.Channel, Channel), CatalogSource: objectName,
			CatalogSourceNamespace: t.namespace, StartingCSV: first,
			InstallPlanApproval: operatorsv1alpha1.ApprovalManual,
		}}, fieldOwner)
	if err != nil {
		return "", fmt.Errorf("create Subscription: %w", err)
	}
	return "OLM reads the catalog at " + where, nil
}

// remember writes down what is going to be made, before it is.
func (t *trial) remember(ctx context.Context, objects []object, examples []Example) error {
	next := t.made
	next.Objects = append(slices.Clone(next.Objects), objects...)
	next.Examples = append(slices.Clone(next.Examples), examples...)
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{annotationMade: string(text)}}})
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}
	if err := t.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		return fmt.Errorf("write down what will be created: %w", err)
	}
	t.made = next
	return nil
}

// names lists objects in a sentence.
func names[T fmt.Stringer](in []T) string {
	out := make([]string, 0, len(in))
	for _, o := range in {
		out = append(out, o.String())
	}
	return strings.Join(out, ", ")
}
