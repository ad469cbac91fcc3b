// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/controllers/hub/fleet"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hubchart"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestInstallHub installs and upgrades it, also over the CRDs that an earlier version left, which belonged to no
// release.
func TestInstallHub(t *testing.T) {
	h := connect(t, testenv.Cluster(t, cluster.Options{APIServerOnly: true}))
	if got := h.run(t, "fleet", "list"); got.code != 1 ||
		!strings.Contains(got.err, "this cluster is not a Bellwether hub") ||
		!strings.Contains(got.err, "install hub") {
		t.Errorf("on a cluster that is no hub it ends with %d and says\n%s", got.code, got.err)
	}
	older := h.applyOlderCRD(t)
	for _, how := range []string{"installed", "upgraded"} {
		if got := h.run(t, "install", "hub", "--wait=false"); got.code != 0 {
			t.Fatalf("the hub cannot be %s: %s%s", how, got.out, got.err)
		}
	}
	if got := h.run(t, "fleet", "list"); got.code != 0 || !strings.Contains(got.err, "No clusters found.") {
		t.Errorf("on a new hub it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	now := older.DeepCopy()
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(older), now))
	if diff := cmp.Diff(older, hubchart.Older(now), onlyVersions()); diff != "" || now.GetUID() != older.GetUID() ||
		cmp.Equal(older, now, onlyVersions()) || now.GetAnnotations()["meta.helm.sh/release-name"] != "bellwether" {
		t.Errorf("the earlier CRD is not the current one of the release: %v\n%s", now.GetAnnotations(), diff)
	}
}

// applyOlderCRD applies a CRD of an earlier version as the command line did then.
func (h *hub) applyOlderCRD(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	definitions, err := charts.Definitions()
	must(t, err)
	for _, crd := range definitions {
		if crd.GetName() != hubchart.OlderKind {
			continue
		}
		older := hubchart.Older(crd)
		must(t, h.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(older),
			client.FieldOwner("bellwether-cli"), client.ForceOwnership))
		must(t, h.Get(t.Context(), client.ObjectKeyFromObject(crd), older))
		return older
	}
	t.Fatalf("there is no CRD %s", hubchart.OlderKind)
	return nil
}

// onlyVersions compares the versions of CRDs.
func onlyVersions() cmp.Option {
	return cmp.Transformer("versions", func(crd *unstructured.Unstructured) any {
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		return versions
	})
}

func TestAnUnreachableHub(t *testing.T) {
	h := *newHub(t)
	if got := h.run(t, "fleet", "list", "--server", "https://127.0.0.1:1"); got.code != 1 ||
		!strings.Contains(got.err, "cannot reach the hub") {
		t.Errorf("it ends with %d and says\n%s", got.code, got.err)
	}
	h.kubeconfig = filepath.Join(t.TempDir(), "none")
	if got := h.run(t, "fleet", "list"); got.code != 1 ||
		!strings.Contains(got.err, "no kubeconfig for the hub") {
		t.Errorf("without a kubeconfig it ends with %d and says\n%s", got.code, got.err)
	}
}

func TestListsForPrograms(t *testing.T) {
	h := newHub(t)
	h.rollout(t, v1alpha1.RolloutProgressing, v1alpha1.WaveUpdating)
	got := h.run(t, "rollout", "get", "-o", "json")
	var list struct {
		Kind  string
		Items []struct {
			APIVersion, Kind string
			Metadata         metav1.ObjectMeta
		}
	}
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatalf("read what was printed: %v\n%s%s", err, got.out, got.err)
	}
	if list.Kind != "OperatorRolloutList" || len(list.Items) != 1 || list.Items[0].Kind != "OperatorRollout" ||
		list.Items[0].APIVersion != "bellwether.dev/v1alpha1" || len(list.Items[0].Metadata.ManagedFields) != 0 {
		t.Errorf("the list is\n%s", got.out)
	}
}

// TestRoles uses the chart's roles for people, and its policy on approvals.
func TestRoles(t *testing.T) {
	for name, test := range map[string]struct {
		role string
		args []string
		code int
		says string
	}{
		"view looks": {role: "view", args: []string{"rollout", "get", "echo-1"},
			says: "as the test says"},
		"view sees who runs what": {role: "view", args: []string{"versions"}},
		"view may not pause": {role: "view", args: []string{"rollout", "pause", "echo-1"}, code: 1,
			says: "bellwether-operate"},
		"operate pauses": {role: "operate", args: []string{"rollout", "pause", "echo-1"}, says: "is paused"},
		"operate aborts": {role: "operate", args: []string{"rollout", "abort", "echo-1", "--reason", "bad"},
			says: "is aborted"},
		"operate may not approve": {role: "operate",
			args: []string{"rollout", "approve", "echo-1", "--gate", "sre", "--reason", "fine"}, code: 1,
			says: "bellwether-approve"},
		"approve approves": {role: "approve",
			args: []string{"rollout", "approve", "echo-1", "--gate", "sre", "--reason", "fine"},
			says: "approved by approve-user"},
		"operate may not remove a cluster": {role: "operate",
			args: []string{"fleet", "remove", "roles-1", "--yes"}, code: 1, says: "bellwether-remove"},
		"remove is asked": {role: "remove", args: []string{"fleet", "remove", "roles-1"}, code: 1,
			says: "This removes cluster roles-1 from the fleet"},
		"operate may not revoke": {role: "operate", args: []string{"fleet", "revoke", "roles-1", "--yes"}, code: 1,
			says: "bellwether-join"},
		"without a role, no looks": {role: "none", args: []string{"rollout", "get", "echo-1"}, code: 1,
			says: "bellwether-view"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.rollout(t, v1alpha1.RolloutProgressing, v1alpha1.WaveGated)
			h.cluster(t, "roles-1")
			user := test.role + "-user"
			h.bind(t, user, "bellwether-"+test.role)
			eventually(t, "the binding is in force", func() bool {
				return test.role == "none" || h.run(t, "rollout", "get", "--as", user).code == 0
			})
			got := h.run(t, append(test.args, "--as", user)...)
			if got.code != test.code || !strings.Contains(got.out+got.err, test.says) {
				t.Errorf("exit code %d, want %d with %q:\n%s%s", got.code, test.code, test.says, got.out, got.err)
			}
		})
	}
}

// TestHubWasLastSeen: whoever has the role view reads the one Lease of the hub, wherever it is, and so learns that the
// hub is away.
func TestHubWasLastSeen(t *testing.T) {
	h := newHub(t)
	at := metav1.NewMicroTime(time.Now().Add(-10 * time.Minute))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: v1alpha1.HubLeaseName},
		Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
	must(t, h.Create(t.Context(), lease))
	t.Cleanup(func() { must(t, h.Delete(context.Background(), lease)) })
	h.bind(t, "seer", "bellwether-view")
	for user, want := range map[string]bool{"seer": true, "nobody-in-particular": false} {
		got := h.run(t, "fleet", "list", "--as", user)
		said := strings.Contains(got.err, "The hub was last seen at "+at.UTC().Format(time.RFC3339)+", 10m ago")
		if said != want {
			t.Errorf("%s is told: %v, want %v:\n%s", user, said, want, got.err)
		}
	}
}

func (h *hub) bind(t *testing.T, user, role string) {
	t.Helper()
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	testenv.Grant(t, h, b)
	t.Cleanup(func() { must(t, h.Delete(context.Background(), b)) })
}

// TestApprovalsAtTheSameTime lets two people approve two gates at once: neither
// may undo the other.
func TestApprovalsAtTheSameTime(t *testing.T) {
	h := newHub(t)
	r := h.rollout(t, v1alpha1.RolloutProgressing, v1alpha1.WaveGated)
	var both sync.WaitGroup
	for _, gate := range []string{"sre", "owner"} {
		both.Go(func() {
			if got := h.run(t, "rollout", "approve", "echo-1", "--gate", gate, "--reason", "fine"); got.code != 0 {
				t.Errorf("approve %s: %s", gate, got.err)
			}
		})
	}
	both.Wait()
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	if len(r.Spec.Approvals) != 2 {
		t.Errorf("approvals are %v, want one for each gate", r.Spec.Approvals)
	}
}

func TestWatch(t *testing.T) {
	h := newHub(t)
	r := h.rollout(t, v1alpha1.RolloutProgressing, v1alpha1.WaveGated)
	out := &buffer{}
	c := h.command(t.Context(), "rollout", "get", "echo-1", "-w")
	c.Stdout, c.Stderr = out, out
	must(t, c.Start())
	eventually(t, "the first look", func() bool { return strings.Contains(out.String(), "wave rest  Gated") })
	for _, step := range []struct {
		change func(*v1alpha1.OperatorRolloutStatus)
		says   string
	}{
		{func(s *v1alpha1.OperatorRolloutStatus) {
			s.Waves[1].Phase, s.Waves[1].Pending, s.Waves[1].InProgress = v1alpha1.WaveUpdating, 0, 1
		}, "wave rest  Updating: 0/1 updated, 1 in progress"},
		{func(s *v1alpha1.OperatorRolloutStatus) {
			s.Waves[1].Phase, s.Waves[1].InProgress, s.Waves[1].Succeeded = v1alpha1.WaveVerified, 0, 1
			s.Phase = v1alpha1.RolloutSucceeded
		}, "echo-1  Succeeded"},
	} {
		step.change(&r.Status)
		must(t, h.Status().Update(t.Context(), r))
		eventually(t, step.says, func() bool { return strings.Contains(out.String(), step.says) })
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, out)
	}
}

// buffer is written by a process and read by the test at the same time.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestStatusWaits(t *testing.T) {
	h := newHub(t)
	r := h.rollout(t, v1alpha1.RolloutProgressing, v1alpha1.WaveUpdating)
	out := &buffer{}
	c := h.command(t.Context(), "rollout", "status", "echo-1", "--wait")
	c.Stdout, c.Stderr = out, out
	must(t, c.Start())
	eventually(t, "the first look", func() bool { return strings.Contains(out.String(), "echo-1  Progressing") })
	r.Status.Phase = v1alpha1.RolloutHalted
	must(t, h.Status().Update(t.Context(), r))
	_ = c.Wait() // its exit code is what is tested
	if code := c.ProcessState.ExitCode(); code != 2 {
		t.Errorf("exit code %d, want 2:\n%s", code, out)
	}
}

// TestJoinWritesAKubeconfig plays the hub, which makes a ServiceAccount for the agent.
func TestJoinWritesAKubeconfig(t *testing.T) {
	h := newHub(t)
	file, manifest := filepath.Join(t.TempDir(), "agent.kubeconfig"), filepath.Join(t.TempDir(), "agent.yaml")
	out := &buffer{}
	name := h.namespace // unlike that of any other test
	c := h.command(t.Context(), "fleet", "join", name, "--labels", "stage=prod", "--write-kubeconfig", file,
		"--write-manifest", manifest,
		"--hub-server", "https://hub.example.com:6443")
	c.Stdout, c.Stderr = out, out
	must(t, c.Start())
	joined := &v1alpha1.FleetCluster{}
	eventually(t, "the FleetCluster is made",
		func() bool { return h.Get(t.Context(), client.ObjectKey{Name: name}, joined) == nil })
	t.Cleanup(func() { must(t, client.IgnoreNotFound(h.Delete(context.Background(), joined))) })
	namespace := v1alpha1.ClusterNamespace(name)
	must(t, h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	joined.Status.Namespace = namespace
	must(t, h.Status().Update(t.Context(), joined))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: v1alpha1.AgentServiceAccount}}
	must(t, h.Create(t.Context(), account))
	testenv.Grant(t, h, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: account.Name}, Rules: fleet.AgentRules()}, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: account.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}}})
	if err := c.Wait(); err != nil {
		t.Fatalf("it ended with %v:\n%s", err, out)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	must(t, err)
	if joined.Labels["stage"] != "prod" || config.Host != "https://hub.example.com:6443" {
		t.Errorf("labels %v, server %s", joined.Labels, config.Host)
	}
	for _, written := range []string{file, manifest} {
		if info, err := os.Stat(written); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v (%v), and must be for its owner alone", written, info.Mode(), err)
		}
	}
	text, err := os.ReadFile(manifest)
	must(t, err)
	if !strings.Contains(string(text), config.BearerToken) {
		t.Errorf("the manifest has another token than the kubeconfig:\n%s", text)
	}
	if who := h.whoIs(t, config.BearerToken); who != "system:serviceaccount:"+namespace+":bellwether-agent" {
		t.Errorf("the token is of %q", who)
	}
	if got := h.run(t, "fleet", "revoke", name, "--yes"); got.code != 0 ||
		!strings.Contains(got.out, "fleet join "+name) {
		t.Errorf("revoke ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	eventually(t, "the token is refused", func() bool { return h.whoIs(t, config.BearerToken) == "" })
	if got := h.run(t, "fleet", "revoke", name, "--yes"); got.code != 1 ||
		!strings.Contains(got.err, "has no access to the hub") {
		t.Errorf("revoke, a second time, ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
}

// whoIs returns whom a token authenticates at the API server; empty if nobody.
func (h *hub) whoIs(t *testing.T, token string) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig)
	must(t, err)
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	c, err := client.New(config, client.Options{Scheme: h.Scheme()})
	must(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(t.Context(), review); err != nil && !apierrors.IsUnauthorized(err) {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

func TestPlugin(t *testing.T) {
	h := newHub(t).asPlugin(t)
	got := h.run(t, "operator", "get", "nope")
	if got.code != 1 || !strings.Contains(got.err,
		fmt.Sprintf("there is no operator \"nope\" in namespace %q", h.namespace)) {
		t.Errorf("it ends with %d and says\n%s", got.code, got.err)
	}
	if got := h.run(t, "why", "--help"); !strings.Contains(got.out, "kubectl bellwether why CLUSTER OPERATOR") {
		t.Errorf("its help says\n%s", got.out)
	}
}

func TestCompletionAsksTheHub(t *testing.T) {
	h := newHub(t)
	h.cluster(t, h.namespace)
	if got := h.run(t, "__complete", "fleet", "get", ""); !strings.Contains(got.out, h.namespace) {
		t.Errorf("%s is not offered:\n%s%s", h.namespace, got.out, got.err)
	}
}
