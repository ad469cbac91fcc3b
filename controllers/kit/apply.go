// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	applyconfig "github.com/bellwether-dev/bellwether/apis/v1alpha1/applyconfiguration/apis/v1alpha1"
)

// Field managers, one for each group of fields. A manager's apply states all fields
// that it owns: what it leaves out is removed. Who writes what is in
// docs/architecture.md.
const (
	// RolloutManager owns an OperatorInstall's identity, labels and admission. The operator
	// controller writes as this manager the admissions that it adopts.
	RolloutManager = client.FieldOwner("bellwether-rollout")
	// OperatorManager owns spec.blocks and spec.holds of OperatorInstalls, spec.holds of
	// ManagedOperators together with people, and spec.blocked and spec.abort (where
	// it is superseded) of OperatorRollouts.
	OperatorManager = client.FieldOwner("bellwether-operator")
	// DriftManager owns spec.drift of OperatorInstalls.
	DriftManager = client.FieldOwner("bellwether-drift")
	// BackupManager owns spec.backup of OperatorInstalls.
	BackupManager = client.FieldOwner("bellwether-backup")
	// MigrationManager owns spec.storageMigration of OperatorInstalls.
	MigrationManager = client.FieldOwner("bellwether-storage-migration")
	// JobManager owns spec.jobs of OperatorInstalls, and their status.jobs as the manager
	// of the agent.
	JobManager = client.FieldOwner("bellwether-job")
	// SLOManager owns spec.services and spec.monitor of OperatorInstalls.
	SLOManager = client.FieldOwner("bellwether-slo")
	// RemovalManager owns spec.removalPolicy of OperatorInstalls. Remove is the only
	// writer; package removal says which controller calls it for which install.
	RemovalManager = client.FieldOwner("bellwether-removal")
	// PagingManager owns what is written for Alertmanager.
	PagingManager = client.FieldOwner("bellwether-paging")
	// SilenceManager owns the hub's own AlertSilences, and what it remembers of incidents.
	SilenceManager = client.FieldOwner("bellwether-silence")
	// ChangeEventManager owns status.changeEvents of OperatorRollouts.
	ChangeEventManager = client.FieldOwner("bellwether-change-events")
	// DiscoveryManager owns what a FleetCluster has of its source: labels that are mapped,
	// spec.sourceRef where discovery made it, and status.source.
	DiscoveryManager = client.FieldOwner("bellwether-discovery")
	// FleetManager owns what is created for an agent.
	FleetManager = client.FieldOwner("bellwether-fleet")
)

// parallelWrites bounds the writes of one reconcile, so that one object with
// ten thousand clusters does not take the whole client.
const parallelWrites = 16

// ForEach calls write for each element, several at a time. One that fails does not
// keep the others from being written; the errors are joined.
func ForEach[T any](elements []T, write func(T) error) error {
	var (
		group  errgroup.Group
		mu     sync.Mutex
		failed []error
	)
	group.SetLimit(parallelWrites)
	for _, element := range elements {
		group.Go(func() error {
			if err := write(element); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors
	return errors.Join(failed...)
}

// ApplyInstall applies a part of the spec of an OperatorInstall that exists. One that
// is gone, or was created again since the cache saw it, is left alone: an apply would
// create it.
func ApplyInstall(ctx context.Context, c client.Client, manager client.FieldOwner, key client.ObjectKey,
	spec *applyconfig.OperatorInstallSpecApplyConfiguration) error {
	var install v1alpha1.OperatorInstall
	if err := c.Get(ctx, key, &install); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("read OperatorInstall %s: %w", key, err))
	}
	config := applyconfig.OperatorInstall(key.Name, key.Namespace).
		WithUID(install.UID).WithResourceVersion(install.ResourceVersion).WithSpec(spec)
	if err := c.Apply(ctx, config, manager, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply OperatorInstall %s: %w", key, err)
	}
	return nil
}

// Configuration turns a value of the API into its apply configuration, whose JSON is
// the same.
func Configuration[C any](value any) (*C, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	config := new(C)
	if err := json.Unmarshal(text, config); err != nil {
		return nil, fmt.Errorf("decode %T: %w", config, err)
	}
	return config, nil
}
