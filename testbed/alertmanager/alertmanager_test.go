// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func binaries(t *testing.T) map[string]string {
	t.Helper()
	paths, err := build.Ensure(t.Context(), t.Output(), build.Alertmanager, build.Amtool)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// config sends everything to a webhook.
func config(url string) []byte {
	return fmt.Appendf(nil, `
route:
  receiver: hook
  group_by: [alertname]
  group_wait: 100ms
  group_interval: 200ms
  routes: [{receiver: other, matchers: ['kind="other"']}]
receivers:
- name: hook
  webhook_configs: [{url: "%[1]s/hook"}]
- name: other
  webhook_configs: [{url: "%[1]s/other"}]
`, url)
}

// start runs a server that sends everything to a webhook.
func start(t *testing.T) (*alertmanager.Server, *alertmanager.Webhooks) {
	t.Helper()
	hooks := alertmanager.NewWebhooks()
	t.Cleanup(hooks.Close)
	s, err := alertmanager.Start(t.Context(), alertmanager.Options{
		Dir: t.TempDir(), Binary: binaries(t)[build.Alertmanager], Config: config(hooks.URL()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	return s, hooks
}

// post sends an alert as Prometheus does.
func post(ctx context.Context, s *alertmanager.Server, name string, ends time.Time) error {
	return s.Post(ctx, alertmanager.PostableAlert{Labels: map[string]string{"alertname": name}, EndsAt: ends})
}

// eventually waits until groups have had exactly these statuses.
func eventually(t *testing.T, w *alertmanager.Webhooks, want ...string) {
	t.Helper()
	testenv.Eventually(t, patience, "notifications", func(context.Context) error {
		var got []string
		for _, n := range w.At("/hook") {
			got = append(got, n.GroupLabels["alertname"]+" "+n.Status)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%w: %q, want %q", errNotYet, got, want)
		}
		return nil
	})
}

// untilNoted waits until Alertmanager has noted its first notification, which it does after the receiver has it: it
// looks at the group again only then, and its second look reads the log of notifications a second time.
func untilNoted(t *testing.T, s *alertmanager.Server) {
	t.Helper()
	testenv.Eventually(t, patience, "the notification is noted", func(ctx context.Context) error {
		reads, err := s.Counter(ctx, "alertmanager_nflog_queries_total")
		if err == nil && reads < 2 {
			err = fmt.Errorf("%w: the log was read %v times", errNotYet, reads)
		}
		return err
	})
}

const patience = 5 * time.Minute

var errNotYet = errors.New("not yet")

// TestNotifies follows an alert over a restart, which must not notify again.
func TestNotifies(t *testing.T) {
	s, hooks := start(t)
	later := time.Now().Add(time.Hour)
	if err := post(t.Context(), s, "Down", later); err != nil {
		t.Fatal(err)
	}
	eventually(t, hooks, "Down firing")
	untilNoted(t, s)

	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The second alert comes after the first, and is notified of later: what the first one says twice would be there.
	for _, name := range []string{"Down", "Second"} {
		if err := post(t.Context(), s, name, later); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, hooks, "Down firing", "Second firing")
	if err := post(t.Context(), s, "Down", time.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(t, hooks, "Down firing", "Second firing", "Down resolved")
}

// TestPostedInOrder posts alerts twice at once: what is posted last is what Alertmanager knows in the end.
func TestPostedInOrder(t *testing.T) {
	s, _ := start(t)
	const number = 200
	for i := range number {
		name := fmt.Sprintf("Down%d", i)
		for _, ends := range []time.Time{time.Now().Add(time.Hour), time.Now()} {
			if err := post(t.Context(), s, name, ends); err != nil {
				t.Fatal(err)
			}
		}
	}
	firing, err := s.Firing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(firing) > 0 {
		t.Errorf("%d of %d alerts that have ended are firing: %v", len(firing), number,
			slices.Collect(maps.Keys(firing)))
	}
}

// TestCrash shows what the guide says: an Alertmanager that crashes notifies again, with the key of the same group.
func TestCrash(t *testing.T) {
	s, hooks := start(t)
	later := time.Now().Add(time.Hour)
	if err := post(t.Context(), s, "Down", later); err != nil {
		t.Fatal(err)
	}
	eventually(t, hooks, "Down firing")
	s.Kill()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := post(t.Context(), s, "Down", later); err != nil {
		t.Fatal(err)
	}
	eventually(t, hooks, "Down firing", "Down firing")
	if groups := hooks.Statuses("/hook"); len(groups) != 1 {
		t.Errorf("the groups are %v, want one", groups)
	}
}

// TestBrokenConfiguration finds that neither amtool nor the server takes one, and that the server continues.
func TestBrokenConfiguration(t *testing.T) {
	s, hooks := start(t)
	paths, good := binaries(t), config(hooks.URL())
	broken := bytes.Replace(good, []byte("receiver: hook"), []byte("receiver: nobody"), 1)
	if err := alertmanager.Check(t.Context(), paths[build.Amtool], good); err != nil {
		t.Error(err)
	}
	if err := alertmanager.Check(t.Context(), paths[build.Amtool], broken); !errors.Is(err, alertmanager.ErrRefused) ||
		!strings.Contains(err.Error(), "nobody") {
		t.Errorf("amtool: %v", err)
	}
	for labels, want := range map[string]string{"kind=other": "other", "kind=x": "hook"} {
		got, err := alertmanager.Receiver(t.Context(), paths[build.Amtool], good, labels)
		if err != nil || got != want {
			t.Errorf("%s reaches %q (%v), want %q", labels, got, err, want)
		}
	}
	if err := s.SetConfig(t.Context(), broken); !errors.Is(err, alertmanager.ErrRefused) {
		t.Errorf("the server: %v", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatalf("restart after a broken configuration: %v", err)
	}
	if err := post(t.Context(), s, "Down", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	eventually(t, hooks, "Down firing")
}
