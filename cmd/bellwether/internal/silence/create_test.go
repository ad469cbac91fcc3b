// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

// acting is a hub whose controller writes the status of a silence immediately. The clock of its API server is two days
// behind the user's clock.
func acting(report func(*v1alpha1.AlertSilence)) *clitest.Hub {
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), clitest.Cluster("prod-1", map[string]string{"site": "eu"}))
	h.WithWatch = interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, with ...client.CreateOption) error {
			if s, is := o.(*v1alpha1.AlertSilence); is {
				s.CreationTimestamp = metav1.NewTime(serverNow)
				report(s)
			}
			return c.Create(ctx, o, with...)
		},
	})
	return h
}

var serverNow = fixture.Noon.Add(-48 * time.Hour).UTC().Truncate(time.Second)

// state makes the hub report a state.
func state(state conditions.State, active bool, reason, message string) func(*v1alpha1.AlertSilence) {
	return func(s *v1alpha1.AlertSilence) {
		conditions.Summarize(&s.Status.Conditions, 1,
			conditions.Summary{State: state, Reason: reason, Message: message})
		conditions.Set(&s.Status.Conditions, 1, v1alpha1.ConditionActive, active, reason, message)
	}
}

// TestCreate: a silence is reported as created only if Alertmanager has it.
func TestCreate(t *testing.T) {
	inForce := state(conditions.Current, true, v1alpha1.ReasonInForce, "in force")
	excluding := func(s *v1alpha1.AlertSilence) {
		state(conditions.Stalled, false, v1alpha1.ReasonNoAlertmanager, "the hub knows no Alertmanager")(s)
		conditions.Set(&s.Status.Conditions, 1, v1alpha1.ConditionBudgetsExcluded, true, v1alpha1.ReasonExcluding, "")
	}
	for name, test := range map[string]struct {
		report func(*v1alpha1.AlertSilence)
		args   []string
		// says is in the output; empty: the command fails, and the error has fails.
		says, fails string
	}{
		"in force": {inForce, []string{"--operator", "echo"}, "Silence s is in force until " +
			serverNow.Add(time.Hour).Format(time.RFC3339) + ".\n", ""},
		"for a day, by a clock that is ahead": {inForce, []string{"--operator", "echo", "--for", "24h"},
			"in force until " + serverNow.Add(24*time.Hour).Format(time.RFC3339), ""},
		"until a time that is over for the user only": {inForce, []string{"--operator", "echo", "--until",
			serverNow.Add(time.Minute).Format(time.RFC3339)}, "is in force until", ""},
		"about clusters": {inForce, []string{"--cluster-selector", "site=eu", "--cluster", "prod-1"}, "is in force until", ""},
		"without an Alertmanager": {state(conditions.Stalled, false, v1alpha1.ReasonNoAlertmanager, "none"),
			[]string{"--operator", "echo"}, "", "silence s was not made: the hub knows no Alertmanager\nHint:  set " +
				"hub.paging.alertmanagerURL of the hub's chart"},
		"without an Alertmanager, for budgets": {excluding, []string{"--operator", "echo", "--exclude-from-budgets"},
			"Silence s excludes time from error budgets until", ""},
		"too long": {state(conditions.Stalled, false, v1alpha1.ReasonEndTooLate, "a silence may last 24h0m0s"),
			[]string{"--operator", "echo", "--for", "90h"}, "", "silence s was not made: a silence may last 24h0m0s"},
		"Alertmanager does not answer": {state(conditions.InProgress, false, v1alpha1.ReasonAlertmanagerUnreachable,
			"connection refused"), []string{"--operator", "echo", "--timeout", "1ms"}, "",
			"silence s was not made: it was not in force within 1ms: connection refused"},
		"a hub that does not run": {func(*v1alpha1.AlertSilence) {}, []string{"--operator", "echo", "--timeout", "1ms"}, "",
			"silence s was not made: the hub has not acted on it within 1ms\nHint:  check that the hub runs"},
		"an operator that does not exist": {inForce, []string{"--operator", "ehco"}, "",
			"there is no operator \"ehco\" in namespace \"default\"\nHint:  available: echo"},
		"a cluster that does not exist": {inForce, []string{"--cluster", "prod-2"}, "",
			"there is no cluster \"prod-2\" in the fleet\nHint:  available: prod-1"},
		"labels of no cluster": {inForce, []string{"--cluster-selector", "site=us"}, "",
			"no cluster has the labels site=us of --cluster-selector"},
		"over already": {inForce, []string{"--operator", "echo", "--until",
			serverNow.Add(-time.Minute).Format(time.RFC3339)}, "", "which is over"},
	} {
		t.Run(name, func(t *testing.T) {
			h := acting(test.report)
			args := []string{"silence", "create", "s", "--owner", "anna", "--reason", "work"}
			got := h.Run(t, append(args, test.args...)...)
			var list v1alpha1.AlertSilenceList
			if err := h.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			if test.says != "" {
				if got.Code != exit.OK || !strings.Contains(got.Out, test.says) || len(list.Items) != 1 {
					t.Errorf("%+v with %d silences, want %q", got, len(list.Items), test.says)
				}
				return
			}
			if got.Code != exit.Error || !strings.Contains(got.Err, test.fails) || got.Out != "" ||
				len(list.Items) != 0 {
				t.Errorf("%+v with %d silences, want %q and none", got, len(list.Items), test.fails)
			}
		})
	}
}

// TestEnd: a silence is reported as ended only if Alertmanager has ended it.
func TestEnd(t *testing.T) {
	for name, test := range map[string]struct {
		report func(*v1alpha1.AlertSilence)
		want   string
		code   int
	}{
		"ended": {state(conditions.Current, false, v1alpha1.ReasonEnded, "ended"), "Silence s has ended.\n", exit.OK},
		"still in force": {state(conditions.InProgress, true, v1alpha1.ReasonAlertmanagerUnreachable, "connection refused"),
			"silence s is to end, and was still in force after 1ms: connection refused", exit.Error},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"},
				Spec: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "work", Operators: []string{"echo"},
					End: metav1.NewTime(fixture.Noon.Add(time.Hour))}}
			test.report(s)
			got := clitest.NewHub(s).Run(t, "silence", "end", "s", "--timeout", "1ms")
			if got.Code != test.code || !strings.Contains(got.Out+got.Err, test.want) {
				t.Errorf("%+v, want %d %q", got, test.code, test.want)
			}
		})
	}
}
