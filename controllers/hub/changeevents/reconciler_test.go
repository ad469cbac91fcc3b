// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changeevents

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit/kittest"
)

// rollout has change events in these states.
func rollout(name string, states ...v1alpha1.ChangeEventState) *v1alpha1.OperatorRollout {
	ro := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: name}}
	ro.Spec.Operator.Name = "echo"
	for _, state := range states {
		ro.Status.ChangeEvents = append(ro.Status.ChangeEvents, v1alpha1.ChangeEventDelivery{Transition: "Started",
			Receiver: "a/platform/oncall", State: state})
	}
	return ro
}

func TestGaugesCountByState(t *testing.T) {
	kittest.NewGauges(t, collect,
		rollout("echo-1", v1alpha1.ChangeEventSent, v1alpha1.ChangeEventSent, v1alpha1.ChangeEventRefused),
		rollout("echo-2", v1alpha1.ChangeEventSent), rollout("echo-3")).Compare(t, `
# HELP bellwether_rollout_change_events Change events of an operator's rollouts for PagerDuty, by what became of them.
# TYPE bellwether_rollout_change_events gauge
bellwether_rollout_change_events{operator="echo",operator_namespace="tools",state="Refused"} 1
bellwether_rollout_change_events{operator="echo",operator_namespace="tools",state="Sent"} 3
`, series.RolloutChangeEvents)
}

func TestLostChangeEventIsAnEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	ro := rollout("echo-1", v1alpha1.ChangeEventRefused, v1alpha1.ChangeEventGivenUp)
	ro.Status.ChangeEvents[0].Message = "the key is unknown"
	(&Reconciler{Events: recorder}).emitLostEvents(ro, ro.Status.ChangeEvents)
	for _, want := range [][]string{
		{"Warning ChangeEventRefused", "Started", "a/platform/oncall", "the key is unknown"},
		{"Warning ChangeEventGivenUp", "within an hour"},
	} {
		got := <-recorder.Events
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("event %q, want %q in it", got, part)
			}
		}
	}
}
