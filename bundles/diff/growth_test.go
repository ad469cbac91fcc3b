// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAddedPermissions: rights count from wherever they come, and those that are covered
// by what was there before do not.
func TestAddedPermissions(t *testing.T) {
	asks := func(field, rules string) string {
		return permitted(field + ": [{serviceAccountName: a, rules: [" + rules + "]}]")
	}
	const (
		reads  = `{apiGroups: [""], resources: [configmaps], verbs: [get, list]}`
		writes = `{apiGroups: [""], resources: [configmaps], verbs: [get, update]}`
		secret = `{apiGroups: [""], resources: [secrets], verbs: [list]}`
		all    = `{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`
		role   = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules: [` + secret + `]`
		binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `
		subjects = `}
subjects: [{kind: ServiceAccount, name: a}]`
		everywhere = " (service account a, in all namespaces)"
	)
	for name, test := range map[string]struct{ from, to, want []string }{
		"nothing": {from: []string{asks("permissions", reads)}, to: []string{asks("permissions", reads)}},
		"less":    {from: []string{asks("clusterPermissions", all)}, to: []string{asks("permissions", reads)}},
		"a verb": {from: []string{asks("permissions", reads)}, to: []string{asks("permissions", writes)},
			want: []string{"update configmaps (service account a, in its namespaces)"}},
		"in all namespaces": {from: []string{asks("permissions", secret)}, to: []string{asks("clusterPermissions",
			secret)}, want: []string{"list secrets" + everywhere + ": it reads the secrets of all namespaces"}},
		"by a role among the manifests": {from: []string{asks("permissions", reads), role},
			to:   []string{asks("permissions", reads), role, binding + "r" + subjects},
			want: []string{"list secrets" + everywhere + ": it reads the secrets of all namespaces"}},
		"by a role of the cluster": {from: []string{asks("permissions", reads)},
			to:   []string{asks("permissions", reads), binding + "cluster-admin" + subjects},
			want: []string{"* all that ClusterRole cluster-admin permits" + everywhere}},
	} {
		if diff := cmp.Diff(test.want, AddedPermissions(bundle(t, test.from...), bundle(t, test.to...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
