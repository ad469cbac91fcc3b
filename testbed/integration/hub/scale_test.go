// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// asked is a proxy in front of the hub that keeps what an agent asks.
type asked struct {
	*httptest.Server
	mu   sync.Mutex
	last []string
}

// proxyTo has the hub's own certificate: client-go sends no token to a server without one.
func (h *harness) proxyTo(t *testing.T, hub *rest.Config) *asked {
	t.Helper()
	pki := filepath.Join(h.cluster.Dir(), "pki")
	certificate, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver.crt"), filepath.Join(pki, "apiserver.key"))
	must(t, err)
	upstream, err := url.Parse(hub.Host)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(hub.CAData)
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	proxy.FlushInterval = -1
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	a := &asked{}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.last = append(a.last, testenv.RequestName(r))
		a.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	a.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	a.StartTLS()
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// TestIdleAgentAsksTheHubOnceEachPeriod has the agent's program serve two installs and
// looks at what it asks of the hub once everything is reported.
func TestIdleAgentAsksTheHubOnceEachPeriod(t *testing.T) {
	h := start(t)
	c := fleetCluster("idle")
	h.join(t, c)
	for _, name := range []string{"one", "two"} {
		h.install(t, c.Name, v1alpha1.OperatorReference{Namespace: "team", Name: name})
	}
	var proxy *asked
	p := h.startProgramAt(t, c, func(hub *rest.Config) *rest.Config {
		proxy = h.proxyTo(t, hub)
		through := rest.CopyConfig(hub)
		through.Host = proxy.URL
		return through
	}, h.newToken(t))
	h.reaches(t, p.cluster, "Stalled OLMMissing")
	const renewals = 10
	eventually(t, func() error {
		proxy.mu.Lock()
		defer proxy.mu.Unlock()
		if len(proxy.last) < renewals {
			return fmt.Errorf("%w: %d requests", errNotYet, len(proxy.last))
		}
		for _, name := range proxy.last[len(proxy.last)-renewals:] {
			if name != "PUT leases" {
				return fmt.Errorf("an idle agent asks %v", proxy.last[len(proxy.last)-renewals:])
			}
		}
		return nil
	})
}

// TestRenewalsCostNothingElse has agents renew their Leases and counts what the whole hub
// does about it.
func TestRenewalsCostNothingElse(t *testing.T) {
	var requests testenv.Requests
	h := startWhole(t, requests.Count)
	var agents []*agent
	for _, name := range []string{"steady-1", "steady-2", "steady-3"} {
		a := h.join(t, fleetCluster(name))
		must(t, a.renew(t.Context()))
		h.install(t, a.cluster.Name, v1alpha1.OperatorReference{Namespace: "team", Name: "echo"})
		h.reaches(t, a.cluster, "True Succeeded")
		agents = append(agents, a)
	}
	controllers := []string{"operator", "rollout", "slo", "changeevents", "catalog"}
	settled, since := reconciles(t, controllers), time.Now()
	requests.Take()
	eventually(t, func() error { // the hub has dealt with what came before, also with what it gathers for a while
		if now := reconciles(t, controllers); now != settled || testenv.Writes(requests.Take()) > 0 {
			settled, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < 3*time.Second {
			return fmt.Errorf("%w: %.0f reconciles, quiet for %s", errNotYet, settled, quiet)
		}
		return nil
	})
	const rounds = 20
	var versions []string
	for range rounds {
		for _, a := range agents {
			must(t, a.renew(t.Context()))
		}
	}
	for _, a := range agents {
		must(t, h.Get(t.Context(), client.ObjectKeyFromObject(a.cluster), a.cluster))
		versions = append(versions, a.cluster.ResourceVersion)
		if is := state(a.cluster); is != "True Succeeded" {
			t.Errorf("cluster %s is %s", a.cluster.Name, is)
		}
	}
	if got := requests.Take(); testenv.Writes(got) > 0 {
		t.Errorf("for %d renewals the hub wrote: %v (clusters are at %v)", rounds*len(agents), got, versions)
	}
	if now := reconciles(t, controllers); now != settled {
		t.Errorf("for %d renewals %v reconciled %.0f times", rounds*len(agents), controllers, now-settled)
	}
}

// reconciles counts how often controllers of this process have reconciled.
func reconciles(t *testing.T, controllers []string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	n := 0.0
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				for _, c := range controllers {
					if l.GetName() == "controller" && l.GetValue() == c {
						n += m.GetCounter().GetValue()
					}
				}
			}
		}
	}
	return n
}
