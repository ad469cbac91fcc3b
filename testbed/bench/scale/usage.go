// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

// operation is a kind of request to the API server.
type operation struct {
	verb, resource, subresource string
}

func (o operation) String() string {
	name := strings.ToLower(o.verb) + " " + o.resource
	if o.subresource != "" {
		name += "/" + o.subresource
	}
	return name
}

// isWrite tells whether the operation changes something, as the API server names verbs in its metrics.
func (o operation) isWrite() bool {
	switch o.verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE":
		return true
	}
	return false
}

// usage is what was used up to a time.
type usage struct {
	at time.Time
	// requests that the API server has answered, without those for its own metrics and health.
	requests map[operation]int
	// etcdWrites are keys put into etcd.
	etcdWrites float64
	// cpu is the processor time of each process, in seconds.
	cpu map[string]float64
	// resident is the memory of each process, in bytes.
	resident map[string]int64
	// heap is what the hub's garbage collector found in use last, in bytes.
	heap int64
	// agents are the requests of the hollow agents, and hub those of the hub.
	agents, hub int
}

// agents names this process in usage.cpu: the agents of all clusters run in it.
const agents = "agents"

// use reads what was used until now.
func (l *lab) use(ctx context.Context) (usage, error) {
	u := usage{at: time.Now(), requests: map[operation]int{}, cpu: map[string]float64{}, resident: map[string]int64{}}
	k, err := kubernetes.NewForConfig(l.api.RESTConfig())
	if err != nil {
		return u, fmt.Errorf("make client: %w", err)
	}
	text, err := k.Discovery().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return u, fmt.Errorf("read the API server's metrics: %w", err)
	}
	api, err := stage.ReadMetrics(bytes.NewReader(text))
	if err != nil {
		return u, err
	}
	api.Each("apiserver_request_total", func(labels map[string]string, value float64) {
		if labels["resource"] != "" && strings.HasPrefix(labels["code"], "2") {
			u.requests[operation{labels["verb"], labels["resource"], labels["subresource"]}] += int(value)
		}
	})
	for name, pid := range map[string]int{
		build.Hub: l.hub.PID(), build.KubeAPIServer: l.api.PID(build.KubeAPIServer), build.Etcd: l.etcd.Process().PID(),
	} {
		if u.resident[name], err = process.ResidentBytes(pid); err != nil {
			return u, fmt.Errorf("read memory of %s: %w", name, err)
		}
	}
	u.cpu[build.KubeAPIServer] = api.Sum("process_cpu_seconds_total")
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return u, fmt.Errorf("read processor time of the agents: %w", err)
	}
	u.cpu[agents] = seconds(own.Utime) + seconds(own.Stime)
	if err := l.useOfEtcd(ctx, &u); err != nil {
		return u, err
	}
	return u, l.useOfHub(ctx, &u)
}

func seconds(t syscall.Timeval) float64 { return time.Duration(t.Nano()).Seconds() }

func (l *lab) useOfHub(ctx context.Context, u *usage) error {
	hub, err := l.hub.Metrics(ctx)
	if err != nil {
		return err
	}
	u.cpu[build.Hub], u.hub = hub.Sum("process_cpu_seconds_total"), int(hub.Sum("rest_client_requests_total"))
	u.heap = int64(hub.Sum("go_gc_heap_live_bytes"))
	if l.fleet != nil {
		u.agents = l.fleet.Requests()
	}
	return nil
}

func (l *lab) useOfEtcd(ctx context.Context, u *usage) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.etcd.URL()+"/metrics", nil)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("read etcd's metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	etcd, err := stage.ReadMetrics(response.Body)
	if err != nil {
		return err
	}
	u.etcdWrites, u.cpu[build.Etcd] = etcd.Sum("etcd_mvcc_put_total"), etcd.Sum("process_cpu_seconds_total")
	return nil
}

// cpuSince returns the processor seconds of each process since an earlier time.
func (u usage) cpuSince(before usage) map[string]float64 {
	all := map[string]float64{}
	for name, used := range u.cpu {
		all[name] = used - before.cpu[name]
	}
	return all
}

// writesSince returns how often each thing was written since an earlier time.
func (u usage) writesSince(before usage) map[operation]int {
	writes := map[operation]int{}
	for o, n := range u.requests {
		if d := n - before.requests[o]; o.isWrite() && d > 0 {
			writes[o] = d
		}
	}
	return writes
}

func total(writes map[operation]int) int {
	n := 0
	for _, w := range writes {
		n += w
	}
	return n
}
