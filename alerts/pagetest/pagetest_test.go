// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/pagetest"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// The testbed has a real Alertmanager do this; here is what goes wrong.

var policy = types.NamespacedName{Namespace: "bellwether-system", Name: "platform"}

// fake is an Alertmanager that sends a notification at once for each post.
type fake struct {
	config string
	// fails and givesUp are how many attempts fail of each notification, and whether it
	// has no success after them; silent sends none.
	fails           int
	givesUp, silent bool
	pagerDuty       alertmanager.Attempts
	// ends are the ends of the posted alerts.
	ends []time.Time
	// ended means that Alertmanager accepted a post that ended the alert.
	ended bool
	// post and look are called when it is posted to, and when its attempts are read.
	post, look func()
}

func (f *fake) Configuration(context.Context) (string, error) { return f.config, nil }

func (f *fake) Post(ctx context.Context, a alertmanager.Alert, until time.Time) error {
	if a.Labels["alertname"] != paging.AlertTest || a.Annotations["summary"] == "" {
		return errors.New("not a test alert")
	}
	f.ends = append(f.ends, until)
	if f.post != nil {
		f.post()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.ended = !until.After(time.Now())
	if f.silent {
		return nil
	}
	f.pagerDuty.All += f.fails
	f.pagerDuty.Failed += f.fails
	if f.givesUp {
		f.pagerDuty.GivenUp++
	} else {
		f.pagerDuty.All++
	}
	return nil
}

func (f *fake) Attempts(ctx context.Context) (map[string]alertmanager.Attempts, error) {
	if f.look != nil {
		f.look()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return map[string]alertmanager.Attempts{"pagerduty": f.pagerDuty, "slack": {All: 7}}, nil
}

func config(t *testing.T) string {
	t.Helper()
	text, err := paging.BuildConfig([]paging.Policy{{Namespace: policy.Namespace, Name: policy.Name,
		Spec: v1alpha1.PagingPolicySpec{Scope: v1alpha1.PagingFleet,
			Pages:     v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{}}}}}},
		"/etc/alertmanager/config")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRun(t *testing.T) {
	accepted := map[string]pagetest.Delivery{"pagerduty": {Expected: 1, Accepted: 1}}
	for name, c := range map[string]struct {
		fake   fake
		policy types.NamespacedName
		want   map[string]pagetest.Delivery
		err    error
		failed bool
	}{
		"accepted": {want: accepted},
		"second attempt": {fake: fake{fails: 1},
			want: map[string]pagetest.Delivery{"pagerduty": {Expected: 1, Accepted: 1, Failed: 1}}},
		"given up": {fake: fake{fails: 2, givesUp: true}, failed: true,
			want: map[string]pagetest.Delivery{"pagerduty": {Expected: 1, Failed: 2}}},
		"nothing is sent": {fake: fake{silent: true}, err: pagetest.ErrNotSent, failed: true,
			want: map[string]pagetest.Delivery{"pagerduty": {Expected: 1}}},
		"unknown policy": {policy: types.NamespacedName{Namespace: "payments", Name: "team"}, err: pagetest.ErrNotRouted},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.fake
			f.config, f.pagerDuty = config(t), alertmanager.Attempts{All: 9, Failed: 3, GivenUp: 1}
			if c.policy.Name == "" {
				c.policy = policy
			}
			got, err := pagetest.Run(t.Context(), &f, pagetest.Test{Policy: c.policy, Severity: "page", By: "anna",
				Patience: 50 * time.Millisecond})
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if got == nil {
				if len(f.ends) > 0 {
					t.Error("an alert was posted that nobody gets")
				}
				return
			}
			if diff := cmp.Diff(c.want, got.Notified); diff != "" || (got.Problem() != "") != c.failed {
				t.Errorf("problem %q, want one %t; notified (-want +got):\n%s", got.Problem(), c.failed, diff)
			}
			if last := f.ends[len(f.ends)-1]; len(f.ends) != 2 || last.After(time.Now()) {
				t.Errorf("the alert was posted until %v, want two posts, the last one to end it", f.ends)
			}
		})
	}
}

// TestStoppedTestEndsItsAlert has a person stop the test while it waits.
func TestStoppedTestEndsItsAlert(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := fake{config: config(t), silent: true, post: cancel}
	_, err := pagetest.Run(ctx, &f, pagetest.Test{Policy: policy, Severity: "page", Patience: time.Minute})
	if !errors.Is(err, context.Canceled) || len(f.ends) != 2 || f.ends[1].After(time.Now()) {
		t.Errorf("error %v, posted until %v; want it cancelled and the alert ended", err, f.ends)
	}
}

// TestAlertEndsWheneverATestIsStopped has a test be stopped, as by a hub that ends, once people may have been notified.
func TestAlertEndsWheneverATestIsStopped(t *testing.T) {
	for name, moment := range map[string]struct{ posts, looks int }{
		"while it waits for the first notifications": {looks: 2},
		"before the alert is ended":                  {looks: 3},
		"while the alert is ended":                   {posts: 2},
		"while it waits for the last notifications":  {looks: 4},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			posts, looks := 0, 0
			count := func(n *int, last int) func() {
				return func() {
					if *n++; *n == last {
						cancel()
					}
				}
			}
			f := fake{config: config(t), post: count(&posts, moment.posts), look: count(&looks, moment.looks)}
			_, err := pagetest.Run(ctx, &f, pagetest.Test{Policy: policy, Severity: "page", Patience: time.Minute})
			if ctx.Err() == nil {
				t.Fatal("the test was not stopped")
			}
			if !f.ended || f.ends[len(f.ends)-1].After(time.Now()) {
				t.Errorf("error %v, posted until %v; want the alert ended", err, f.ends)
			}
		})
	}
}
