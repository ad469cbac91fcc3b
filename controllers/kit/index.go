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
	// IndexOperator is the index of OperatorInstalls and OperatorRollouts on the hub by
	// operator. It finds the objects of one operator without a list of all objects.
	IndexOperator = "spec.operator"
	// IndexChange is the index of OperatorInstalls on the hub that might be
	// changing: see holds.ChangeKey.
	IndexChange = "change"
)

// MatchOperator selects the objects of one ManagedOperator by IndexOperator.
func MatchOperator(r v1alpha1.OperatorReference) client.MatchingFields {
	return client.MatchingFields{IndexOperator: r.InstallName()}
}

// Index is a field by which a cache finds objects.
type Index struct {
	Object client.Object
	Field  string
	Keys   client.IndexerFunc
}

// Indexes returns the indexes of OperatorInstalls and OperatorRollouts on the hub.
func Indexes() []Index {
	return []Index{
		{Object: &v1alpha1.OperatorInstall{}, Field: IndexOperator, Keys: func(obj client.Object) []string {
			return []string{obj.(*v1alpha1.OperatorInstall).Spec.Operator.InstallName()}
		}},
		{Object: &v1alpha1.OperatorInstall{}, Field: IndexChange, Keys: func(obj client.Object) []string {
			if key := holds.ChangeKey(obj.(*v1alpha1.OperatorInstall)); key != "" {
				return []string{key}
			}
			return nil
		}},
		{Object: &v1alpha1.OperatorRollout{}, Field: IndexOperator, Keys: func(obj client.Object) []string {
			operator := v1alpha1.OperatorReference{Namespace: obj.GetNamespace(),
				Name: obj.(*v1alpha1.OperatorRollout).Spec.Operator.Name}
			return []string{operator.InstallName()}
		}},
	}
}

// IndexInstalls adds Indexes to a cache. It must be called once for each cache.
func IndexInstalls(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range Indexes() {
		if err := indexer.IndexField(ctx, index.Object, index.Field, index.Keys); err != nil {
			return fmt.Errorf("index %T by %s: %w", index.Object, index.Field, err)
		}
	}
	return nil
}
