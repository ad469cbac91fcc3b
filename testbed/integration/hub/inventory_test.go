// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// asker asks the inventory of a hub with the command line.
type asker struct {
	program, server, caFile string
	// tokens are the files with the tokens of users.
	tokens map[string]string
}

// ask returns the rows as JSON, and what the command says beside them.
func (a *asker) ask(t *testing.T, user string, args ...string) (rows, message string, err error) {
	t.Helper()
	command := exec.CommandContext(
		t.Context(),
		a.program,
		append([]string{"query", "-o", "json", "--inventory", a.server,
			"--inventory-ca-file", a.caFile, "--inventory-token-file", a.tokens[user]}, args...)...)
	var errOut strings.Builder
	command.Stderr = &errOut
	out, err := command.Output()
	if err != nil {
		return "", errOut.String(), fmt.Errorf("%w: %s", err, errOut.String())
	}
	var values []map[string]any
	must(t, json.Unmarshal(out, &values))
	compact, err := json.Marshal(values)
	must(t, err)
	return string(compact), errOut.String(), nil
}

// answers waits until a query has an answer.
func (a *asker) answers(t *testing.T, user, want string, args ...string) {
	t.Helper()
	eventually(t, func() error {
		got, _, err := a.ask(t, user, args...)
		if err == nil && got != want {
			err = fmt.Errorf("%w: %v answers %s, want %s", errNotYet, args, got, want)
		}
		return err
	})
}

// addUser makes a service account, which may list ManagedOperators of a namespace, or everything if that is empty.
func (a *asker) addUser(t *testing.T, admin client.Client, name, namespace string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	must(t, admin.Create(t.Context(), account))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "inventory-" + name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{
			v1alpha1.SchemeGroupVersion.Group,
		}, Resources: []string{"managedoperators", "fleetclusters"},
		Verbs: []string{"list"}}}}
	must(t, admin.Create(t.Context(), role))
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		Subjects: subjects, RoleRef: ref}
	if namespace != "" {
		binding = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
			Subjects: subjects, RoleRef: ref}
	}
	must(t, admin.Create(t.Context(), binding))
	request := &authenticationv1.TokenRequest{}
	must(t, admin.SubResource("token").Create(t.Context(), account, request))
	a.tokens[name] = filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(a.tokens[name], []byte(request.Status.Token), 0o600))
}

// TestInventoryRemembers runs the hub's program with an inventory and asks it with the command line: as two users,
// about a time before a change, and about a time at which the hub did not run.
func TestInventoryRemembers(t *testing.T) {
	t.Parallel()
	c := testenv.Cluster(t, cluster.Options{APIServerOnly: true})
	testenv.InstallCRDs(t, c)
	admin, err := client.New(c.RESTConfig(), client.Options{Scheme: platform.Scheme()})
	must(t, err)
	certificates := t.TempDir() // the inventory serves with the API server's certificate
	for name, from := range map[string]string{"tls.crt": "apiserver.crt", "tls.key": "apiserver.key"} {
		must(t, os.Symlink(filepath.Join(c.Dir(), "pki", from), filepath.Join(certificates, name)))
	}
	file := filepath.Join(t.TempDir(), "inventory.db")
	a := &asker{program: testenv.Binary(t, build.Bellwether), caFile: c.CAFile(), tokens: map[string]string{}}
	startHub := func(name string) *replica {
		var hub *replica
		must(t, loopback.OnFreePorts(t.Context(), 1, func(ports []int) error {
			a.server = "https://" + loopback.Address(ports[0])
			hub = startReplica(t, c, name, "--inventory-file", file, "--inventory-tls-folder", certificates,
				"--inventory-bind-address", loopback.Address(ports[0]))
			return nil
		}))
		return hub
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		must(t, admin.Create(t.Context(), &v1alpha1.ManagedOperator{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"},
			Spec: v1alpha1.ManagedOperatorSpec{Package: "echo", Catalog: v1alpha1.LocalReference{Name: "main"},
				Version: "1.0.0"}}))
	}
	must(t, admin.Create(t.Context(), fleetCluster("prod-1")))
	a.addUser(t, admin, "admin", "")
	a.addUser(t, admin, "anna", "team-a")

	hub := startHub("first")
	const wanted = "SELECT namespace, wanted FROM operators ORDER BY namespace"
	a.answers(t, "admin", `[{"namespace":"team-a","wanted":"1.0.0"},{"namespace":"team-b","wanted":"1.0.0"}]`, wanted)
	a.answers(t, "anna", `[{"namespace":"team-a","wanted":"1.0.0"}]`, wanted)
	a.answers(t, "admin", `[{"cluster":"prod-1"}]`, "SELECT cluster FROM clusters")
	a.answers(t, "anna", `[]`, "SELECT cluster FROM clusters")
	a.answers(t, "anna", `[{"n":1}]`, "SELECT count(*) AS n FROM operators")
	if _, message, err := a.ask(t, "anna", "DROP VIEW operators"); err == nil ||
		!strings.Contains(message, "only SELECT") {
		t.Errorf("a statement that is no query: %s, error %v", message, err)
	}

	before := time.Now()
	eventually(t, func() error { // times are whole seconds
		if time.Now().Unix() == before.Unix() {
			return fmt.Errorf("%w: a change now would be in the same second", errNotYet)
		}
		return nil
	})
	operator := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "echo"}}
	must(t, admin.Patch(t.Context(), operator, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"version":"1.1.0"}}`))))
	a.answers(t, "anna", `[{"namespace":"team-a","wanted":"1.1.0"}]`, wanted)
	a.answers(t, "anna", `[{"namespace":"team-a","wanted":"1.0.0"}]`, wanted, "--at", before.Format(time.RFC3339))

	hub.process.Kill()
	must(t, admin.Patch(t.Context(), fleetCluster("prod-1"), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"region":"eu"}}}`))))
	startHub("second")
	const region = "SELECT labels ->> 'region' AS region FROM clusters"
	a.answers(t, "admin", `[{"region":"eu"}]`, region)
	a.answers(t, "admin", `[{"region":null}]`, region, "--at", before.Format(time.RFC3339))
	a.answers(t, "anna", `[{"namespace":"team-a","wanted":"1.1.0"}]`, wanted)
	_, message, err := a.ask(t, "admin", wanted, "--at", before.Add(-time.Hour).Format(time.RFC3339))
	if err == nil || !strings.Contains(message, "the inventory begins at") {
		t.Errorf("about a time before the inventory: %s, error %v", message, err)
	}
}
