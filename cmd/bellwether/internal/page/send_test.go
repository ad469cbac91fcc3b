// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

// notifies starts an Alertmanager that makes one attempt for each alert that is posted, and returns its URL. If
// refused is set, all attempts fail.
func notifies(t *testing.T, config string, refused bool) string {
	t.Helper()
	reads := alertmanager(t, config, nil)
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics":
			failed := int32(0)
			if refused {
				failed = posts.Load()
			}
			for name, n := range map[string]int32{"alertmanager_notification_requests_total": posts.Load(),
				"alertmanager_notification_requests_failed_total": failed, "alertmanager_notifications_failed_total": failed} {
				_, _ = fmt.Fprintf(w, "# TYPE %[1]s counter\n%[1]s{integration=\"pagerduty\"} %[2]d\n", name, n)
			}
		case r.Method == http.MethodPost:
			posts.Add(1)
		default:
			reads.Config.Handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestPageTest(t *testing.T) {
	text, err := paging.BuildConfig([]paging.Policy{paging.ToPolicy(fleetPolicy())}, "/etc/alertmanager/config")
	if err != nil {
		t.Fatal(err)
	}
	h := clitest.NewHub()
	works, refuses := notifies(t, string(text), false), notifies(t, string(text), true)
	test := func(url string, more ...string) clitest.Result {
		return h.Run(t, append([]string{"page", "test", "platform", "-n", "bellwether-system", "--timeout", "1s",
			"--alertmanager", url}, more...)...)
	}
	wants(t, test(works), 0, "Waiting for pagerduty to be notified", "pagerduty", "accepted",
		"Receiver: bellwether-system/platform/pages", "Key in PagerDuty: ")
	wants(t, test(works, "-o", "json"), 0, `"accepted": 1`, `"dedupKey"`)
	wants(t, test(refuses), 1, "0 of 1 accepted, 1 attempts failed", "not sent", "not every notification was accepted",
		"log of Alertmanager")
	wants(t, test(works, "--severity", "ticket"), 1, "Alertmanager sent nothing within 1s", "silence")
	wants(t, test(works, "--severity", "info"), 1, "use page or ticket")
	wants(t, test(works, "-n", "payments"), 1, "does not have the policy payments/platform", "kubectl get pagingpolicy")
}
