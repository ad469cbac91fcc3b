// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const limit = 4 * time.Minute

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually polls until check returns nil and fails the test with its last error otherwise.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testenv.Eventually(t, limit, what, check)
}

func TestAPIServerRestartKeepsAddressAndData(t *testing.T) {
	c := testenv.Cluster(t, cluster.Options{APIServerOnly: true})
	client := clientset(t, c.RESTConfig())
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"},
		Data: map[string]string{"a": "b"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), want, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	url, pid := c.URL(), c.PID(build.KubeAPIServer)

	c.KillAPIServer()
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
		t.Fatal("the API server answers after it was killed")
	}
	if c.Failure() == nil {
		t.Error("a dead API server is not reported")
	}
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Data["a"] != "b" || c.URL() != url || c.PID(build.KubeAPIServer) == pid || c.Failure() != nil {
		t.Errorf("after the restart: data %v, address %s (was %s), pid %d (was %d), failure %v",
			got.Data, c.URL(), url, c.PID(build.KubeAPIServer), pid, c.Failure())
	}
}

func TestStopLeavesNoProcess(t *testing.T) {
	c := testenv.Cluster(t, cluster.Options{})
	processes := c.Processes()
	if len(processes) != 2 {
		t.Fatalf("want API server and controller-manager, have %+v", processes)
	}
	c.Stop(t.Context())
	for _, p := range processes {
		if err := syscall.Kill(p.PID, 0); err == nil {
			t.Errorf("%s (%d) still runs", p.Name, p.PID)
		}
	}
}

func TestKilledComponentComesBack(t *testing.T) {
	c := testenv.Cluster(t, cluster.Options{})
	pid := c.PID(build.KubeControllerManager)
	if err := c.Kill(build.KubeControllerManager); err != nil {
		t.Fatal(err)
	}
	eventually(t, "controller-manager comes back", func(context.Context) error {
		i := slices.IndexFunc(c.Processes(),
			func(s cluster.Status) bool { return s.Name == build.KubeControllerManager })
		if s := c.Processes()[i]; s.PID == pid || !s.Running || s.Restarts != 1 {
			return fmt.Errorf("have %+v", s)
		}
		return nil
	})
	if err := c.Kill("no-such-component"); err == nil {
		t.Error("killing what does not exist is no error")
	}
}

// TestTokensAndRBAC shows that the rights of a ServiceAccount's token are exactly those that RBAC grants.
func TestTokensAndRBAC(t *testing.T) {
	c := testenv.Shared(t, cluster.Options{})
	admin := clientset(t, c.RESTConfig())
	ns := testenv.Namespace(t, c.RESTConfig(), "rbac")

	var token string
	eventually(t, "TokenRequest for the default ServiceAccount", func(ctx context.Context) error {
		answer, err := admin.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "default", &authenticationv1.TokenRequest{},
			metav1.CreateOptions{})
		if err == nil {
			token = answer.Status.Token
		}
		return err
	})
	config := rest.AnonymousClientConfig(c.RESTConfig())
	config.BearerToken = token
	pod := clientset(t, config)
	if _, err := pod.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("listing Secrets without a role: want Forbidden, have %v", err)
	}

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}}}
	if _, err := admin.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: ns}},
	}
	if _, err := admin.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "role takes effect", func(ctx context.Context) error {
		_, err := pod.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{})
		return err
	})
	if _, err := pod.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets of another namespace: want Forbidden, have %v", err)
	}
}

func TestUserConfigHasOnlyItsGroupsRights(t *testing.T) {
	c := testenv.Shared(t, cluster.Options{})
	config, err := c.UserConfig("jane", "developers")
	if err != nil {
		t.Fatal(err)
	}
	client := clientset(t, config)
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if who.Status.UserInfo.Username != "jane" || !slices.Contains(who.Status.UserInfo.Groups, "developers") {
		t.Errorf("authenticated as %+v", who.Status.UserInfo)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing namespaces: want Forbidden, have %v", err)
	}
}

func TestClusterRolesAreAggregated(t *testing.T) {
	c := testenv.Shared(t, cluster.Options{})
	client := clientset(t, c.RESTConfig())
	rule := rbacv1.PolicyRule{APIGroups: []string{"testbed.bellwether.dev"}, Resources: []string{"things"},
		Verbs: []string{"get"}}
	extra := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "view-things",
			Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules: []rbacv1.PolicyRule{rule},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), extra, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "view gets the rule", func(ctx context.Context) error {
		view, err := client.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(view.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Equal(r.Resources,
				rule.Resources)
		}) {
			return fmt.Errorf("%d rules, none for things", len(view.Rules))
		}
		return nil
	})
}

func TestOptionsAreChecked(t *testing.T) {
	tests := map[string]cluster.Options{
		"no name":              {Dir: "x"},
		"OLM without KCM":      {Name: "x", Dir: "x", APIServerOnly: true, OLM: true},
		"binaries are missing": {Name: "x", Dir: "x"},
		"pod runner is missing": {Name: "x", Dir: "x", Pods: true,
			Binaries: map[string]string{build.Etcd: "x", build.KubeAPIServer: "x", build.KubeControllerManager: "x"}},
	}
	for name, opts := range tests {
		t.Run(name, func(t *testing.T) {
			if c, err := cluster.Start(t.Context(), opts); err == nil {
				c.Stop(t.Context())
				t.Error("want an error")
			}
		})
	}
}

// TestFailureCarriesTheLog starts a cluster whose API server cannot run.
func TestFailureCarriesTheLog(t *testing.T) {
	binaries, err := build.Ensure(t.Context(), t.Output(), build.Etcd)
	if err != nil {
		t.Fatal(err)
	}
	binaries[build.KubeAPIServer] = binaries[build.Etcd] // refuses the flags
	_, err = cluster.Start(t.Context(), cluster.Options{Name: "broken", Dir: t.TempDir(), APIServerOnly: true,
		Binaries: binaries})
	if err == nil {
		t.Fatal("want an error")
	}
	if text := err.Error(); !contains(text, "kube-apiserver ended", "flag provided but not defined") {
		t.Errorf("the error does not say why:\n%s", text)
	}
}
