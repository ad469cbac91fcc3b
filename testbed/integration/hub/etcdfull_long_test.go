// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// etcdQuota is several times what a cluster without a fleet takes.
const etcdQuota = 48 << 20

var filler = map[string]string{"test": "filler"}

// TestHubOutlivesAFullEtcd fills the etcd of the hub's cluster while a rollout is under way. The hub's program cannot
// renew its Lease, ends, and is not ready once it was started again; it changes nothing. After the repair, as the
// documentation of etcd has it, the rollout goes on to its end.
func TestHubOutlivesAFullEtcd(t *testing.T) {
	h := &harness{scheme: runtime.NewScheme(), whole: true}
	h.prepare(t, testenv.Cluster(t, cluster.Options{EtcdQuota: etcdQuota}))
	s := &standby{Client: h.Client, name: "full", cluster: h.cluster}
	s.start(t)
	f := newFixtureOn(t, h, first, "a", "b", "c")
	f.operator.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "rest"}}
	f.agents["a"].work(t) // the others are admitted once they report
	f.create()
	eventually(t, func() error { return h.admitted(t, 1) })

	h.fillEtcd(t)
	full := time.Now()
	before := h.objects(t)
	f.agents["b"].work(t) // what they report is refused
	f.agents["c"].work(t)
	eventually(t, func() error {
		if !s.ended() {
			return errors.New("the hub goes on without a Lease that it can renew")
		}
		return nil
	})
	t.Logf("the hub ended %s after etcd was full", time.Since(full).Round(time.Second))
	s.start(t)
	eventually(t, func() error {
		if status, text := page(t, s.health, "/readyz?verbose"); status != http.StatusInternalServerError {
			return fmt.Errorf("/readyz: %d %s", status, text)
		}
		return nil
	})
	t.Logf("the hub is not ready %s after etcd was full", time.Since(full).Round(time.Second))
	if s.ended() {
		t.Error("the hub that waits for the Lease has ended")
	}
	if diff := cmp.Diff(before, h.objects(t)); diff != "" {
		t.Errorf("while etcd was full (-before +after):\n%s", diff)
	}

	h.repairEtcd(t)
	repaired := time.Now()
	eventually(t, func() error {
		if s.ended() {
			s.start(t)
		}
		if status, text := page(t, s.health, "/readyz?verbose"); status != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", status, text)
		}
		return h.is(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.0.0")
	})
	t.Logf("the rollout has ended %s after the repair", time.Since(repaired).Round(time.Second))
	after := h.objects(t)
	maps.DeleteFunc(after, func(name string, _ string) bool { return before[name] == "" }) // what came since
	if diff := cmp.Diff(identities(before), identities(after)); diff != "" {
		t.Errorf("objects that were replaced or deleted (-before +after):\n%s", diff)
	}
}

// admitted objects to another number of clusters that were admitted.
func (h *harness) admitted(t *testing.T, want int) error {
	t.Helper()
	var installs v1alpha1.OperatorInstallList
	must(t, h.List(t.Context(), &installs))
	n := 0
	for _, o := range installs.Items {
		if o.Spec.Admission != nil {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%w: %d clusters are admitted", errNotYet, n)
	}
	return nil
}

// fillEtcd creates ConfigMaps until nothing can be written any more.
func (h *harness) fillEtcd(t *testing.T) {
	t.Helper()
	text := strings.Repeat("x", 900<<10)
	eventually(t, func() error {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "filler-",
			Labels: filler}, Data: map[string]string{"text": text}}
		err := h.Create(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "database space exceeded") {
			return fmt.Errorf("%w: etcd is not full: %w", errNotYet, err)
		}
		text = "" // nothing that is small fits either
		o = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "filler-",
			Labels: filler}}
		if h.Create(t.Context(), o) == nil {
			return fmt.Errorf("%w: small objects can be written", errNotYet)
		}
		return nil
	})
}

// repairEtcd deletes the filler and does what etcd's documentation says about the alarm NOSPACE.
func (h *harness) repairEtcd(t *testing.T) {
	t.Helper()
	must(t, h.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("default"),
		client.MatchingLabels(filler)))
	var head struct {
		Header struct {
			Revision string `json:"revision"`
			MemberID string `json:"member_id"`
		} `json:"header"`
	}
	h.callEtcd(t, "/v3/kv/range", `{"key":"YQ=="}`, &head)
	h.callEtcd(t, "/v3/kv/compaction", fmt.Sprintf(`{"revision":"%s","physical":true}`, head.Header.Revision), nil)
	h.callEtcd(t, "/v3/maintenance/defragment", "{}", nil)
	h.callEtcd(t, "/v3/maintenance/alarm", fmt.Sprintf(`{"action":"DEACTIVATE","alarm":"NOSPACE","memberID":"%s"}`,
		head.Header.MemberID), nil)
}

// callEtcd calls etcd's API in JSON.
func (h *harness) callEtcd(t *testing.T, path, body string, out any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.cluster.Etcd().URL()+path,
		strings.NewReader(body))
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, response.Status)
	}
	if out != nil {
		must(t, json.NewDecoder(response.Body).Decode(out))
	}
}

// objects are those that the hub reads and writes, with the UID, the generation, and whether they are being deleted.
func (h *harness) objects(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{&v1alpha1.FleetClusterList{}, &v1alpha1.OperatorCatalogList{},
		&v1alpha1.ManagedOperatorList{}, &v1alpha1.OperatorRolloutList{}, &v1alpha1.OperatorInstallList{},
		&corev1.NamespaceList{}, &corev1.ServiceAccountList{}, &corev1.ResourceQuotaList{}, &rbacv1.RoleList{},
		&rbacv1.RoleBindingList{}} {
		must(t, h.List(t.Context(), list))
		must(t, meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			if err != nil {
				return err
			}
			key := fmt.Sprintf("%T %s/%s", o, object.GetNamespace(), object.GetName())
			out[key] = fmt.Sprintf("%s generation %d deleted %s", object.GetUID(), object.GetGeneration(),
				object.GetDeletionTimestamp())
			return nil
		}))
	}
	return out
}

// identities leaves out the generations.
func identities(objects map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range objects {
		out[name], _, _ = strings.Cut(text, " ")
	}
	return out
}
