// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// readBackups reads the cluster's OperatorBackups, where the policy of an install
// may make an upgrade wait for one.
func (e *Engine) readBackups(ctx context.Context, o *Observation, install *v1alpha1.OperatorInstall) error {
	if install.Spec.Backup == nil || e.Hub == nil {
		return nil
	}
	var list v1alpha1.OperatorBackupList
	if err := e.Hub.List(ctx, &list, client.InNamespace(install.Namespace)); err != nil {
		return fmt.Errorf("list OperatorBackups: %w", err)
	}
	o.backups = list.Items
	return nil
}

// rollbackClass returns what it takes to go back along a hop; empty where the
// catalog does not say.
func rollbackClass(pkg *catalogs.Package, from, to string) registryv1.RollbackClass {
	bundle, ok := pkg.Bundles[to]
	if !ok {
		return ""
	}
	for _, way := range bundle.Rollbacks() {
		if way.From == from {
			return way.Class
		}
	}
	return ""
}
