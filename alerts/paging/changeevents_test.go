// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// changeEvents returns the receivers of change events in the status
// of the policy at a minute after noon, with the time since when.
func (f *fixture) changeEvents(minute int) string {
	f.t.Helper()
	f.in.Now = time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC)
	f.next()
	var all []string
	for _, r := range f.find(hub, "platform").Status.ChangeEvents {
		all = append(all, r.Receiver+" "+r.Since.Format("15:04"))
	}
	return strings.Join(all, ", ")
}

// TestChangeEvents checks since when a policy requests change events, also while the policy is invalid.
func TestChangeEvents(t *testing.T) {
	f := newFixture(t)
	asks := func(receivers ...string) func(*v1alpha1.PagingPolicySpec) {
		return func(s *v1alpha1.PagingPolicySpec) {
			s.ChangeEvents = nil
			if len(receivers) > 0 {
				s.ChangeEvents = &v1alpha1.ChangeEventTarget{Receivers: receivers}
			}
		}
	}
	f.edit(hub, "platform", func(s *v1alpha1.PagingPolicySpec) {
		second := s.Receivers[0]
		second.Name = "second"
		s.Receivers = append(s.Receivers, second, v1alpha1.PagingReceiver{Name: "hook",
			Webhook: &v1alpha1.WebhookReceiver{URL: v1alpha1.SecretKey{Name: "hook", Key: "url"}}})
	})
	f.in.Secrets[paging.SecretRef{Namespace: hub, Name: "hook",
		Key: "url"}] = paging.Secret{Value: []byte("http://a/b")}
	for minute, step := range []struct {
		edit func(*v1alpha1.PagingPolicySpec)
		want string
	}{
		{nil, ""},
		{asks("oncall"), "oncall 12:01"},
		{asks("second", "oncall"), "second 12:02, oncall 12:01"},
		{asks("second"), "second 12:02"},
		{asks("second", "nobody"), "second 12:02"},
		{asks("second", "hook"), "second 12:02"},
		{asks("second", "oncall"), "second 12:02, oncall 12:06"},
		{asks(), ""},
	} {
		if step.edit != nil {
			f.edit(hub, "platform", step.edit)
		}
		if got := f.changeEvents(minute); got != step.want {
			t.Errorf("minute %d: %q, want %q", minute, got, step.want)
		}
		wrong := map[int]string{4: "no receiver \"nobody\"", 5: "receiver hook is not PagerDuty"}[minute]
		reason := v1alpha1.ReasonSucceeded
		if wrong != "" {
			reason = v1alpha1.ReasonInvalidSpec
		}
		f.wantReady(hub, "platform", reason, wrong)
	}
}
