// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestRestoredHub puts the hub's etcd back to what it was before an upgrade, as a restore from yesterday's backup
// does. The clusters keep what they run since. The hub believes their agents again, recovers what runs, and admits
// nothing before a person resumes the operator. Access that was revoked since is good again, and can be revoked
// again.
func TestRestoredHub(t *testing.T) {
	f := start(t)
	f.joinAll()
	image, err := f.p.Publish(t.Context(), name, "1.0.0", "1.1.0")
	f.must(err)
	for _, o := range f.manifests(image) {
		switch o := o.(type) {
		case *v1alpha1.FleetCluster: // made by fleet join
			continue
		case *v1alpha1.ManagedOperator:
			o.Spec.Version = "1.0.0"
		}
		f.must(f.hub.Create(t.Context(), o))
	}
	f.rollOut("1.0.0")

	yesterday := f.backUpEtcd()
	f.setVersion("1.1.0")
	f.rollOut("1.1.0")
	revoked := members()[1].Name
	f.bellwether("fleet", "revoke", revoked, "--yes")
	f.online(revoked, false)
	clusters := f.state()

	f.restoreEtcd(yesterday)
	restored := time.Now()
	for _, m := range members() {
		f.believed(m.Name, restored)
	}
	t.Logf("agents are believed again %s after the restore", time.Since(restored).Round(time.Second))
	f.says(v1alpha1.ReasonRecovered, "found on 2 clusters", "bellwether operator resume echo")
	t.Logf("what runs is recovered %s after the restore", time.Since(restored).Round(time.Second))
	f.runs("1.1.0", "1.1.0")
	if diff := cmp.Diff(clusters, f.state()); diff != "" {
		t.Errorf("the clusters were changed (-before +after):\n%s", diff)
	}
	f.setVersion("1.1.0")
	f.resume()
	f.rollOut("1.1.0")

	f.bellwether("fleet", "revoke", revoked, "--yes")
	f.online(revoked, false)
}

// believed waits until an agent has renewed its Lease since a time, and the hub takes it for online.
func (f *fixture) believed(cluster string, since time.Time) {
	f.t.Helper()
	f.until(cluster+" renews its Lease", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: v1alpha1.LeaseName}
		if err := f.hub.Get(ctx, key, lease); err != nil {
			return err
		}
		if !lease.Spec.RenewTime.After(since) {
			return fmt.Errorf("renewed at %s", lease.Spec.RenewTime)
		}
		return nil
	})
	f.online(cluster, true)
}

// rollOut approves the rollout of a version, and waits until all clusters run it. The hub may have to start it once
// more meanwhile, where it finds what clusters keep.
func (f *fixture) rollOut(version string) {
	f.t.Helper()
	f.until("the rollout of "+version+" is approved", func(ctx context.Context) error {
		_, err := f.p.Bellwether(ctx, "rollout", "approve", name, "--reason", "the canary is fine")
		return err
	})
	f.runs(version, version)
	f.says(v1alpha1.ReasonSucceeded)
}

// pair is a key of etcd with its value, in base64.
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// backUpEtcd reads everything of the hub in etcd, which the clusters of the testbed share.
func (f *fixture) backUpEtcd() map[string]string {
	f.t.Helper()
	address, err := url.Parse(f.p.Fleet.Hub.URL())
	f.must(err)
	prefix := "/" + f.p.Fleet.Hub.Name() + "-" + address.Port()
	all := map[string]string{}
	for from := []byte(prefix + "/"); ; {
		var page struct {
			Pairs []pair `json:"kvs"`
			More  bool   `json:"more"`
		}
		f.etcd("/v3/kv/range", map[string]any{"key": from, "range_end": []byte(prefix + "0"), "limit": 200}, &page)
		for _, p := range page.Pairs {
			all[p.Key] = p.Value
		}
		switch {
		case len(all) == 0:
			f.t.Fatalf("etcd has nothing below %s", prefix)
		case !page.More:
			return all
		}
		last, err := base64.StdEncoding.DecodeString(page.Pairs[len(page.Pairs)-1].Key)
		f.must(err)
		from = append(last, 0)
	}
}

// restoreEtcd puts everything back while no API server runs. Revisions go on from where they are, as with the flag
// --bump-revision of etcdutl.
func (f *fixture) restoreEtcd(backup map[string]string) {
	f.t.Helper()
	f.p.Fleet.Hub.KillAPIServer()
	now := f.backUpEtcd()
	for key := range now {
		if _, kept := backup[key]; !kept {
			f.etcd("/v3/kv/deleterange", map[string]any{"key": key}, nil)
		}
	}
	for key, value := range backup {
		if now[key] != value {
			f.etcd("/v3/kv/put", pair{key, value}, nil)
		}
	}
	f.must(f.p.Fleet.Hub.RestartAPIServer(f.t.Context()))
}

// etcd calls the API of the hub's etcd in JSON.
func (f *fixture) etcd(path string, in, out any) {
	f.t.Helper()
	body, err := json.Marshal(in)
	f.must(err)
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.p.Fleet.Hub.Etcd().URL()+path,
		bytes.NewReader(body))
	f.must(err)
	response, err := http.DefaultClient.Do(request)
	f.must(err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		f.must(fmt.Errorf("%s: %s", path, response.Status))
	}
	if out != nil {
		f.must(json.NewDecoder(response.Body).Decode(out))
	}
}
