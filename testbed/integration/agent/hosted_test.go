// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/proxy"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// hosting is a process that serves clusters by Secrets in its namespace. Hub, fleet
// clusters and the cluster with the Secrets are one; the ways to them differ.
type hosting struct {
	*harness
	dir     string
	metrics string
}

func startHosting(t *testing.T, c *cluster.Cluster, namespace string, args ...string) *hosting {
	t.Helper()
	h := &hosting{harness: &harness{Client: clientOf(t, c), t: t, whole: t, hub: c, cluster: c, name: namespace,
		namespace: namespace}, dir: t.TempDir()}
	h.must(h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	h.must(loopback.OnFreePorts(t.Context(), 1, func(ports []int) error {
		h.metrics = loopback.Address(ports[0])
		var err error
		h.agent, err = process.Start(process.Spec{
			Name: "agent-" + namespace, Path: testenv.Binary(t, build.Agent), Dir: h.dir,
			Log: filepath.Join(h.dir, "agent.log"),
			Args: append([]string{
				"--hosted-namespace", namespace, "--kubeconfig", c.Kubeconfig(), "--view-bind-address", "127.0.0.1",
				"--view-ports", "10000-32000", "--cache-dir", h.dir, "--metrics-bind-address", h.metrics,
				"--health-probe-bind-address", "0", "--lease-renew-interval", "1s", "-v",
			}, args...),
		})
		return err
	}))
	testenv.StopAtEnd(t, h.agent)
	return h
}

// member is a cluster that is hosted, reached by an address of its own.
func (h *hosting) member(name, operator, address string) *harness {
	h.t.Helper()
	m := h.newMember(name, operator)
	h.addMember(m, address, "")
	return m
}

// newMember is a cluster that is not hosted yet.
func (h *hosting) newMember(name, operator string) *harness {
	h.t.Helper()
	m := &harness{Client: h.Client, t: h.t, whole: h.t, hub: h.hub, cluster: h.cluster, name: name,
		namespace: v1alpha1.ClusterNamespace(name), ports: viewPorts(10), operator: operator}
	h.must(h.Create(h.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}}))
	return m
}

// addMember has a cluster served with a token, or as an administrator where there is none.
func (h *hosting) addMember(m *harness, address, token string) {
	h.t.Helper()
	config, err := clientcmd.LoadFromFile(h.cluster.Kubeconfig())
	h.must(err)
	hub, err := clientcmd.Write(*config)
	h.must(err)
	for _, c := range config.Clusters {
		c.Server = "https://" + address
	}
	if token != "" {
		for name := range config.AuthInfos {
			config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
		}
	}
	local, err := clientcmd.Write(*config)
	h.must(err)
	h.must(h.Create(h.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: m.name,
			Labels: map[string]string{v1alpha1.LabelHostedCluster: m.name}},
		Data: map[string][]byte{v1alpha1.HostedHubKey: hub, v1alpha1.HostedClusterKey: local,
			v1alpha1.HostedPortsKey: []byte(m.ports)},
	}))
}

// lease of the cluster's agent on the hub; nil while there is none.
func (h *harness) lease() *coordinationv1.Lease {
	h.t.Helper()
	lease := &coordinationv1.Lease{}
	err := h.Get(h.t.Context(), client.ObjectKey{Namespace: h.namespace, Name: v1alpha1.LeaseName}, lease)
	h.must(client.IgnoreNotFound(err))
	if err != nil || lease.Spec.RenewTime == nil {
		return nil
	}
	return lease
}

func (h *hosting) scrape() string {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.metrics+"/metrics", nil)
	h.must(err)
	response, err := http.DefaultClient.Do(request)
	h.must(err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	h.must(err)
	if response.StatusCode != http.StatusOK {
		h.t.Fatalf("metrics: %s: %s", response.Status, text)
	}
	return string(text)
}

// TestHosted: one process serves clusters that come and go, and one whose API server
// does not answer delays no other.
func TestHosted(t *testing.T) {
	t.Parallel()
	c := quiet(t)
	direct := strings.TrimPrefix(c.URL(), "https://")
	blocked, err := proxy.Start(t.Context(), "blocked", direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(blocked.Stop)
	if err := blocked.Cut(); err != nil {
		t.Fatal(err)
	}
	h := startHosting(t, c, "hosting")
	b := h.member("hosted-b", "hostedb", blocked.Address())
	a := h.member("hosted-a", "hosteda", direct)

	pinA, pinB := a.pin(line("1.0.0", "1.1.0")...), b.pin(line("1.0.0", "1.1.0")...)
	b.to(pinB, "1.0.0")
	a.to(pinA, "1.0.0")
	address := a.runs().Status.OLMDetails().ViewAddress
	h.must(blocked.Heal(t.Context()))
	b.runs()
	h.eventually("each cluster has its metrics", func() bool {
		text := h.scrape()
		return strings.Contains(text, `cluster="hosted-a"`) && strings.Contains(text, `cluster="hosted-b"`)
	})

	h.must(h.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: a.name}}))
	h.eventually("the view of the cluster that went is closed", func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	h.eventually("its metrics are gone", func() bool {
		return !strings.Contains(h.scrape(), `cluster="hosted-a"`)
	})
	last := a.lease().Spec.RenewTime.Time
	b.to(pinB, "1.1.0")
	b.runs()
	if now := a.lease().Spec.RenewTime.Time; !now.Equal(last) {
		t.Errorf("the Lease of a cluster that went is renewed at %s, after %s", now, last)
	}

	h.addMember(a, direct, "")
	a.to(pinA, "1.1.0")
	if again := a.runs().Status.OLMDetails().ViewAddress; again != address {
		t.Errorf("the view moved from %s to %s", address, again)
	}
	h.refusesPrograms()
}

// TestHostedPolicyOfTheOwner: the owner of a hosted cluster says what is permitted there, in the namespace of the
// ServiceAccount that the agent has on it, wherever the agent runs.
func TestHostedPolicyOfTheOwner(t *testing.T) {
	t.Parallel()
	const own = "hosted-owner"
	c := quiet(t)
	h := startHosting(t, c, "hostingowned", "--own-namespace", "hostingowned")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "bellwether-agent"}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}}, account,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: own},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own, Name: account.Name}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: localpolicy.ConfigMap},
			Data: map[string]string{localpolicy.Key: "permissions: {denyClusterWildcards: true}"}},
	} {
		h.create(o)
	}
	token := &authenticationv1.TokenRequest{}
	h.must(h.SubResource("token").Create(t.Context(), account, token))

	m := h.newMember("hosted-owned", "hostedowned")
	h.addMember(m, strings.TrimPrefix(c.URL(), "https://"), token.Status.Token)
	m.to(m.pin(takeover("1.0.0")...), "1.0.0")
	m.stalls(v1alpha1.ReasonLocalPolicy, "a wildcard in all namespaces", localpolicy.ConfigMap)
	m.madeNothing()
}

// refusesPrograms: a kubeconfig that would run a program is refused, and an Event says
// so.
func (h *hosting) refusesPrograms() {
	h.t.Helper()
	program := `{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: c, cluster: {server: "https://e:1"}}],
contexts: [{name: x, context: {cluster: c, user: u}}], users: [{name: u, user: {exec: {apiVersion:
client.authentication.k8s.io/v1, command: touch, args: ["` + h.dir + `/ran"], interactiveMode: Never}}}]}`
	h.must(h.Create(h.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "evil",
			Labels: map[string]string{v1alpha1.LabelHostedCluster: "evil"}},
		StringData: map[string]string{v1alpha1.HostedHubKey: program, v1alpha1.HostedClusterKey: program,
			v1alpha1.HostedPortsKey: "32000-32000"},
	}))
	h.eventually("an Event says why", func() bool {
		var events eventsv1.EventList
		h.must(h.List(h.t.Context(), &events, client.InNamespace(h.namespace)))
		for _, e := range events.Items {
			if e.Reason == "HostedClusterRefused" && e.Regarding.Name == "evil" &&
				strings.Contains(e.Note, "would run a program") {
				return true
			}
		}
		return false
	})
	if ran, err := filepath.Glob(filepath.Join(h.dir, "ran")); err != nil || len(ran) > 0 {
		h.t.Errorf("the program ran: %v, %v", ran, err)
	}
}

// TestViewUnreachable: OLM is given an address at which the view cannot be reached,
// and then the right one.
func TestViewUnreachable(t *testing.T) {
	t.Parallel()
	h := start(t, quiet(t), "unreachable", "--view-host", "127.0.0.2").of(t, "unreached")
	pin := h.pin(line("1.0.0")...)
	h.to(pin, "1.0.0")
	h.stalls(v1alpha1.ReasonViewUnreachable, "127.0.0.2", "no connection has arrived", "NetworkPolicies")
	h.agent.Stop(t.Context())
	h.args = []string{"--view-host", "127.0.0.1"}
	h.startAgent()
	h.runs()
}
