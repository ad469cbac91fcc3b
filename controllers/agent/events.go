// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"math/rand/v2"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// boundedEvents is a manager whose Events have one of maxEvents names. Kubernetes has
// no quota for Events, so the hub's admission policy bellwether-agents-events allows
// an agent only these names.
type boundedEvents struct {
	ctrl.Manager
	broadcaster events.EventBroadcaster
}

// WithBoundedEvents returns a manager of an agent whose recorders emit Events with the permitted names.
func WithBoundedEvents(hub ctrl.Manager) (ctrl.Manager, error) {
	client, err := eventsclient.NewForConfigAndClient(hub.GetConfig(), hub.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client for Events: %w", err)
	}
	broadcaster := events.NewBroadcaster(boundedSink{&events.EventSinkImpl{Interface: client}})
	return &boundedEvents{hub, broadcaster}, hub.Add(broadcasterRunnable{broadcaster})
}

// broadcasterRunnable sends Events while the manager runs. It starts before the controllers.
type broadcasterRunnable struct{ events.EventBroadcaster }

// Start implements manager.Runnable. It sends Events until the context ends.
func (r broadcasterRunnable) Start(ctx context.Context) error {
	if err := r.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("record Events: %w", err)
	}
	<-ctx.Done()
	r.Shutdown()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (broadcasterRunnable) NeedLeaderElection() bool { return false }

// GetEventRecorder implements ctrl.Manager.
func (b *boundedEvents) GetEventRecorder(name string) recorder.EventRecorder {
	return b.broadcaster.NewRecorder(b.GetScheme(), name).(recorder.EventRecorder) // as controller-runtime does
}

const (
	// maxEvents is the maximum number of an agent's Events that exist at the same time.
	// Kubernetes keeps each Event for an hour. Further Events are lost.
	maxEvents = 1 << 6
	// maxNames is how many names are tried if a name is already used.
	maxNames = 8
)

// boundedSink creates Events with one of maxEvents names.
type boundedSink struct{ events.EventSink }

// Create implements events.EventSink.
func (s boundedSink) Create(ctx context.Context, event *eventsv1.Event) (created *eventsv1.Event, err error) {
	named := event.DeepCopy()
	for range maxNames {
		named.Name = fmt.Sprintf("agent-%03x", rand.IntN(maxEvents)) //nolint:gosec // a name, no secret
		if created, err = s.EventSink.Create(ctx, named); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return created, err
}
