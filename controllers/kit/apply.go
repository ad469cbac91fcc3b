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

// Field managers, one for each group of fields. Each apply of a manager must contain all
// fields that the manager owns: a field that is left out is removed.
// docs/architecture.md lists the writers.
const (
	// RolloutManager owns an OperatorInstall's identity, labels and admission. The operator
	// controller uses this manager to write the admissions that it recovers.
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
	// RemovalManager owns spec.removalPolicy of OperatorInstalls. Only Remove writes it; package
	// removal documents which controller calls Remove for which install.
	RemovalManager = client.FieldOwner("bellwether-removal")
	// PagingManager owns the objects that are written for Alertmanager.
	PagingManager = client.FieldOwner("bellwether-paging")
	// SilenceManager owns the hub's own AlertSilences, and the ConfigMap with
	// the records of incidents.
	SilenceManager = client.FieldOwner("bellwether-silence")
	// ChangeEventManager owns status.changeEvents of OperatorRollouts.
	ChangeEventManager = client.FieldOwner("bellwether-change-events")
	// DiscoveryManager owns the parts of a FleetCluster that come from its source: mapped
	// labels, spec.sourceRef of a discovered cluster, and status.source.
	DiscoveryManager = client.FieldOwner("bellwether-discovery")
	// FleetManager owns the objects that are created for an agent.
	FleetManager = client.FieldOwner("bellwether-fleet")
	// FinalizersManager owns the finalizers of Bellwether. The chart's admission policy for
	// agents contains its name.
	FinalizersManager = client.FieldOwner("bellwether-finalizers")
)

// parallelWrites limits the parallel writes of one reconcile, so that an object with ten
// thousand clusters does not use the whole client.
const parallelWrites = 16

// ForEach calls write for each element, several in parallel. An error does not stop the other
// writes; the errors are joined.
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

// Part is the part of an object that one field manager owns. Owned fields that the
// part leaves out are removed.
type Part struct {
	// Object is the object that the part belongs to. Only its kind, namespace, name, UID and
	// resource version are used. UID and resource version are preconditions if they are set.
	Object              client.Object
	Labels, Annotations map[string]string
	// Spec and Status are encoded as JSON. The manager owns each encoded field. Zero values are
	// encoded too, except for times, so types must omit their empty fields. Nil: the manager
	// owns nothing in spec or status.
	Spec, Status any
}

// Apply applies a part of an object, and returns the object's resource version.
func (p Part) Apply(ctx context.Context, c client.Client, manager client.FieldOwner, opts ...client.ApplyOption) (
	string, error) {
	config, err := p.buildConfiguration(c)
	if err != nil {
		return "", err
	}
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), append(opts, manager)...)
	return config.GetResourceVersion(), err
}

// ApplyStatus applies a part of an object's status, and takes over fields from other managers.
func (p Part) ApplyStatus(ctx context.Context, c client.Client, manager client.FieldOwner) error {
	config, err := p.buildConfiguration(c)
	if err != nil {
		return err
	}
	return c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config), manager, client.ForceOwnership)
}

// buildConfiguration encodes the part as an unstructured apply configuration.
func (p Part) buildConfiguration(c client.Client) (*unstructured.Unstructured, error) {
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

// dropNulls removes fields that are null. A zero time is encoded as null, and the
// API server would refuse it.
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

// ApplyInstall applies a part of the spec of an existing OperatorInstall (see Part.Spec). It
// does not change an install that was deleted, or created again since the cache received it:
// an apply would create it.
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
