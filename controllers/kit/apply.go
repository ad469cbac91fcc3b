// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Field managers, one for each group of fields. A manager's apply states all fields
// that it owns: what it leaves out is removed. Who writes what is in
// docs/architecture.md.
const (
	// RolloutManager owns an OperatorInstall's identity, labels and admission. The operator
	// controller writes as this manager the admissions that it recovers.
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
	// FinalizersManager owns the finalizers of Bellwether. The chart's policy for agents knows its name.
	FinalizersManager = client.FieldOwner("bellwether-finalizers")
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

// Part is what one field manager owns of an object. What the manager owned and the part leaves out is removed.
type Part struct {
	// Object is what the part is of. Only its kind, namespace and name are used, and its UID and resource version,
	// which are preconditions where they are set.
	Object              client.Object
	Labels, Annotations map[string]string
	// Spec and Status are encoded as JSON. Each field that is encoded becomes the manager's, zero values included but
	// for times, so that they are of types whose other fields are left out when they are empty. Nil: the manager owns
	// nothing there.
	Spec, Status any
}

// Apply applies a part of an object, and returns the object's resource version.
func (p Part) Apply(ctx context.Context, c client.Client, manager client.FieldOwner, opts ...client.ApplyOption) (
	string, error) {
	config, err := p.configuration(c)
	if err != nil {
		return "", err
	}
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), append(opts, manager)...)
	return config.GetResourceVersion(), err
}

// ApplyStatus applies a part of an object's status, and takes fields from other managers.
func (p Part) ApplyStatus(ctx context.Context, c client.Client, manager client.FieldOwner) error {
	config, err := p.configuration(c)
	if err != nil {
		return err
	}
	return c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config), manager, client.ForceOwnership)
}

func (p Part) configuration(c client.Client) (*unstructured.Unstructured, error) {
	kind, err := c.GroupVersionKindFor(p.Object)
	if err != nil {
		return nil, fmt.Errorf("find kind of %T: %w", p.Object, err)
	}
	config := &unstructured.Unstructured{Object: map[string]any{}}
	config.SetGroupVersionKind(kind)
	config.SetNamespace(p.Object.GetNamespace())
	config.SetName(p.Object.GetName())
	config.SetUID(p.Object.GetUID())
	config.SetResourceVersion(p.Object.GetResourceVersion())
	config.SetLabels(p.Labels)
	config.SetAnnotations(p.Annotations)
	for field, value := range map[string]any{"spec": p.Spec, "status": p.Status} {
		if value == nil {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", field, err)
		}
		var content map[string]any
		if err := json.Unmarshal(text, &content); err != nil {
			return nil, fmt.Errorf("decode %s: %w", field, err)
		}
		dropNulls(content)
		config.Object[field] = content
	}
	return config, nil
}

// dropNulls removes fields that are null, which is how a zero time is encoded: they are not set, and the API server
// would refuse them.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
			}
			dropNulls(field)
		}
	case []any:
		for _, element := range value {
			dropNulls(element)
		}
	}
}

// ApplyInstall applies a part of the spec of an OperatorInstall that exists (see Part.Spec). One that is gone, or was
// created again since the cache saw it, is left alone: an apply would create it.
func ApplyInstall(ctx context.Context, c client.Client, manager client.FieldOwner, key client.ObjectKey,
	spec any) error {
	var install v1alpha1.OperatorInstall
	if err := c.Get(ctx, key, &install); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("read OperatorInstall %s: %w", key, err))
	}
	part := Part{Object: &install, Spec: spec}
	if _, err := part.Apply(ctx, c, manager, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply OperatorInstall %s: %w", key, err)
	}
	return nil
}
