// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat renews the agent's Lease in its namespace on the hub, the
// only sign by which the hub knows that a cluster is alive. The Lease carries
// the versions of the agent, of Kubernetes and of OLM as annotations.
package heartbeat

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Lease renews the Lease until its context ends. It is a manager.Runnable.
type Lease struct {
	// Hub writes the Lease; it must not read through a cache.
	Hub client.Client
	// Namespace is the cluster's namespace on the hub.
	Namespace string
	// Holder names the agent's process.
	Holder string
	// Every is how often the Lease is renewed, and For how long it is valid.
	Every, For time.Duration

	AgentVersion string
	// Local asks the fleet cluster for its version, and OLM for its own.
	Local     discovery.ServerVersionInterface
	LocalLive client.Reader
	// OLM tells whether the cluster serves OLM's API, if that is known already.
	OLM func() (served, known bool)
	Now func() time.Time
}

// Start renews the Lease at once and then at the given interval. That the hub
// cannot be reached is an observation: it is logged once, and tried again.
func (l *Lease) Start(ctx context.Context) error {
	ticker := time.NewTicker(l.Every)
	defer ticker.Stop()
	reached := true
	for {
		err := l.renew(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && reached:
			log.FromContext(ctx).Error(err, "Cannot renew the Lease on the hub; trying again", "every", l.Every)
		case err == nil && !reached:
			log.FromContext(ctx).Info("The hub is reached again")
		}
		reached = err == nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (l *Lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Every)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: v1alpha1.LeaseName}}
	err := l.Hub.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get lease: %w", err)
	}
	l.fill(ctx, lease)
	if apierrors.IsNotFound(err) {
		if err := l.Hub.Create(ctx, lease); err != nil {
			return fmt.Errorf("create lease: %w", err)
		}
		return nil
	}
	if err := l.Hub.Update(ctx, lease); err != nil {
		return fmt.Errorf("update lease: %w", err)
	}
	return nil
}

func (l *Lease) fill(ctx context.Context, lease *coordinationv1.Lease) {
	now := metav1.NewMicroTime(l.Now())
	if ptr.Deref(lease.Spec.HolderIdentity, "") != l.Holder {
		lease.Spec.HolderIdentity, lease.Spec.AcquireTime = &l.Holder, &now
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	lease.Spec.RenewTime = &now
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(l.For / time.Second))
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[v1alpha1.AnnotationAgentVersion] = l.AgentVersion
	// An unreachable API server leaves what was known.
	if served, known := l.OLM(); known {
		lease.Annotations[v1alpha1.AnnotationOLMVersion] = l.olmVersion(ctx, served)
	}
	if version, err := l.Local.ServerVersion(); err == nil {
		lease.Annotations[v1alpha1.AnnotationKubernetesVersion] = version.GitVersion
	}
}

// olmVersion is the version of OLM's own CSV, where it manages itself, as it
// does in its released manifests and on OpenShift.
func (l *Lease) olmVersion(ctx context.Context, served bool) string {
	if !served {
		return ""
	}
	for _, namespace := range []string{"olm", "openshift-operator-lifecycle-manager"} {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := l.LocalLive.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "packageserver"}, csv); err == nil {
			return csv.Spec.Version.String()
		}
	}
	return unknown
}

const unknown = "unknown"
