// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// IndexOperator is the field that OperatorInstalls are indexed by on the hub, so
// that those of one operator are found without a look at all.
const IndexOperator = "spec.operator"

// OfOperator selects the OperatorInstalls of one ManagedOperator by IndexOperator.
func OfOperator(r v1alpha1.OperatorReference) client.MatchingFields {
	return client.MatchingFields{IndexOperator: r.InstallName()}
}

// IndexInstalls builds IndexOperator. It must be called once for each cache.
func IndexInstalls(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.OperatorInstall{}, IndexOperator, func(obj client.Object) []string {
		return []string{obj.(*v1alpha1.OperatorInstall).Spec.Operator.InstallName()}
	})
	if err != nil {
		return fmt.Errorf("index OperatorInstalls by operator: %w", err)
	}
	return nil
}
