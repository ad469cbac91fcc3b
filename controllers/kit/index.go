// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

const (
	// IndexOperator is the field that OperatorInstalls and OperatorRollouts are indexed
	// by on the hub, so that those of one operator are found without a look at all.
	IndexOperator = "spec.operator"
	// IndexChange is the field that OperatorInstalls are indexed by on the hub, so that
	// those that may be changing are found: see holds.ChangeKey.
	IndexChange = "change"
)

// OfOperator selects the objects of one ManagedOperator by IndexOperator.
func OfOperator(r v1alpha1.OperatorReference) client.MatchingFields {
	return client.MatchingFields{IndexOperator: r.InstallName()}
}

// Index is a field by which a cache finds objects.
type Index struct {
	Object client.Object
	Field  string
	Keys   client.IndexerFunc
}

// Indexes are those of OperatorInstalls and OperatorRollouts on the hub.
func Indexes() []Index {
	return []Index{
		{&v1alpha1.OperatorInstall{}, IndexOperator, func(obj client.Object) []string {
			return []string{obj.(*v1alpha1.OperatorInstall).Spec.Operator.InstallName()}
		}},
		{&v1alpha1.OperatorInstall{}, IndexChange, func(obj client.Object) []string {
			if key := holds.ChangeKey(obj.(*v1alpha1.OperatorInstall)); key != "" {
				return []string{key}
			}
			return nil
		}},
		{&v1alpha1.OperatorRollout{}, IndexOperator, func(obj client.Object) []string {
			operator := v1alpha1.OperatorReference{Namespace: obj.GetNamespace(),
				Name: obj.(*v1alpha1.OperatorRollout).Spec.Operator.Name}
			return []string{operator.InstallName()}
		}},
	}
}

// IndexInstalls builds Indexes. It must be called once for each cache.
func IndexInstalls(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range Indexes() {
		if err := indexer.IndexField(ctx, index.Object, index.Field, index.Keys); err != nil {
			return fmt.Errorf("index %T by %s: %w", index.Object, index.Field, err)
		}
	}
	return nil
}
