// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups/capture"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Options configure the controllers.
type Options struct {
	// Cluster is the FleetCluster's name.
	Cluster string
	// Stores are the URLs of the stores that the agent may write to.
	Stores []string
	// SecretNamespace is where the Secrets with credentials of stores are.
	SecretNamespace string
	// Definitions reads the definitions of installed operators on the fleet cluster.
	Definitions Definitions
	// Now is the clock that schedules follow.
	Now func() time.Time
	// Frozen reports whether backups must not be removed: because of a FleetFreeze, or because
	// it is not known whether one exists.
	Frozen func(ctx context.Context) bool
}

// Add adds the controllers to an agent's manager. hub is a manager for the hub whose cache is
// restricted to the cluster's namespace. local is the fleet cluster.
func Add(hub ctrl.Manager, local cluster.Cluster, o Options) error {
	stores := Stores{Cluster: o.Cluster, Allowed: o.Stores, Secrets: local.GetAPIReader(),
		Namespace: o.SecretNamespace}
	pages, err := newPages(local)
	if err != nil {
		return err
	}
	recorder := hub.GetEventRecorder("bellwether-agent")
	err = ctrl.NewControllerManagedBy(hub).
		Named("backup").
		For(&v1alpha1.OperatorBackup{}).
		// Backups are taken one after the other, because each backup needs memory.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(kit.WrapReconciler(hub.GetClient(), recorder, &Reconciler{
			Cluster: o.Cluster, Hub: hub.GetClient(), Live: hub.GetAPIReader(), Pages: pages,
			Stores: stores, Now: o.Now,
			Local: Local{Definitions: o.Definitions, Writer: local.GetClient()},
		}))
	if err != nil {
		return fmt.Errorf("build backup controller: %w", err)
	}
	mapBackupToInstall := func(_ context.Context, object client.Object) []reconcile.Request {
		backup, ok := object.(*v1alpha1.OperatorBackup)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: backup.Namespace,
			Name: backup.Spec.Operator.InstallName()}}}
	}
	err = ctrl.NewControllerManagedBy(hub).
		Named("backup-policy").
		For(&v1alpha1.OperatorInstall{}).
		Watches(&v1alpha1.OperatorBackup{}, handler.EnqueueRequestsFromMapFunc(mapBackupToInstall)).
		Complete(&PolicyReconciler{Hub: hub.GetClient(), Stores: stores, Recorder: recorder, Now: o.Now,
			Frozen: o.Frozen})
	if err != nil {
		return fmt.Errorf("build backup-policy controller: %w", err)
	}
	return nil
}

// newPages returns a reader of object pages, whose client has no limit of requests per second.
func newPages(local cluster.Cluster) (capture.Pages, error) {
	config := rest.CopyConfig(local.GetConfig())
	config.QPS = -1
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.UnversionedRESTClientForConfigAndClient(config, local.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client for backups: %w", err)
	}
	return capture.REST{Client: c}, nil
}
