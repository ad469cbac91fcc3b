// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steps compares the steps of an InstallPlan with the bundles that a view serves. OLM makes a plan from its
// reading of a view, and carries out the plan later. Meanwhile the view may have changed, and users who may write
// InstallPlans can change the plan.
//
// The package is pure.
package steps

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// kindBundleSecret is OLM's kind for a Secret in a bundle.
const kindBundleSecret = "BundleSecret"

// Bundle is the content that OLM installs of a bundle, in little memory.
type Bundle struct {
	csv csv
	// objects are the digests of the manifests, with the number of equal manifests.
	objects map[object]map[digest]int
	// accounts are the service accounts that OLM makes, and grants the rules that it gives them, with the number of
	// equal grants.
	accounts map[string]bool
	grants   map[grant]int
}

type digest = [sha256.Size]byte

type object struct{ group, kind, name string }

func (o object) String() string { return o.kind + " " + o.name }

// grant is a list of rules from which OLM makes a role and a binding for one account.
type grant struct {
	account string
	cluster bool
	rules   digest
}

// NewBundle returns the digests of a bundle's manifests as a view serves them. replaces is the bundle that it
// replaces in the view, or empty. The error wraps bundles.ErrNotBundle if a manifest cannot be decoded.
func NewBundle(manifests [][]byte, replaces string) (*Bundle, error) {
	b := &Bundle{objects: map[object]map[digest]int{}, accounts: map[string]bool{},
		grants: map[grant]int{}}
	for _, manifest := range manifests {
		content, err := untrusted.Object(manifest)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", bundles.ErrNotBundle, err)
		}
		if bundles.IsCSV(manifest) {
			if err := b.addCSV(manifest, replaces); err != nil {
				return nil, fmt.Errorf("%w: decode %s: %w", bundles.ErrNotBundle,
					operatorsv1alpha1.ClusterServiceVersionKind, err)
			}
			continue
		}
		id := readObject(content)
		d, err := hashContent(content)
		if err != nil {
			return nil, err
		}
		if b.objects[id] == nil {
			b.objects[id] = map[digest]int{}
		}
		b.objects[id][d]++
	}
	return b, nil
}

// addCSV adds the ClusterServiceVersion, its service accounts and their permissions.
func (b *Bundle) addCSV(manifest []byte, replaces string) error {
	csv, err := readCSV(manifest)
	if err != nil {
		return err
	}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	for cluster, list := range map[bool][]operatorsv1alpha1.StrategyDeploymentPermissions{
		false: strategy.Permissions, true: strategy.ClusterPermissions} {
		for _, p := range list {
			rules, err := hashContent(p.Rules)
			if err != nil {
				return err
			}
			b.accounts[p.ServiceAccountName] = true
			b.grants[grant{account: p.ServiceAccountName, cluster: cluster, rules: rules}]++
		}
	}
	csv.ClusterServiceVersion, csv.replaces = nil, replaces
	b.csv = csv
	return nil
}

// readObject returns the identity of an object as a step of OLM names it: OLM uses the kind BundleSecret for a
// Secret, and generateName if there is no name.
func readObject(content map[string]any) object {
	kind, _ := content["kind"].(string)
	version, _ := content["apiVersion"].(string)
	group, _, hasGroup := strings.Cut(version, "/")
	if !hasGroup {
		group = ""
	}
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	generated, _ := metadata["generateName"].(string)
	if kind == "Secret" {
		kind = kindBundleSecret
	}
	return object{group: group, kind: kind, name: cmp.Or(name, generated)}
}

// hashContent returns the digest of the content's JSON.
func hashContent(content any) (digest, error) {
	text, err := json.Marshal(content)
	return sha256.Sum256(text), err
}

// Plan is the part of an InstallPlan that resolves one ClusterServiceVersion.
type Plan struct {
	// Namespace is the namespace of the plan, and Source the name of the CatalogSource in it that serves the view.
	Namespace, Source string
	CSV               string
	// Installed is set if the ClusterServiceVersion already exists on the cluster.
	Installed bool
	Steps     []*operatorsv1alpha1.Step
}

// FindDifference returns how a plan differs from the bundle that the view serves, as a clause; empty if it does not
// differ. It does not compare the names and labels of roles and bindings that OLM makes for permissions, because they
// depend on the version of OLM. It compares the granted permissions.
func (b *Bundle) FindDifference(p Plan) string {
	c := comparison{Bundle: b, Plan: p, found: map[object]map[digest]int{}, roles: map[role]digest{},
		granted: map[grant]int{}}
	for _, step := range p.Steps {
		if err := c.compareStep(step); err != nil {
			return fmt.Sprintf("its step %s %s %s", step.Resource.Kind, step.Resource.Name, err)
		}
	}
	return c.compareWhole()
}

// comparison is the state of comparing a plan with a bundle.
type comparison struct {
	*Bundle
	Plan
	csvs     int
	found    map[object]map[digest]int
	roles    map[role]digest
	bindings []binding
	granted  map[grant]int
}

// role is a role that OLM made for permissions.
type role struct{ kind, name string }

// binding is a role binding that OLM made for permissions.
type binding struct {
	role    role
	account string
	cluster bool
}

var (
	errChanged    = errors.New("is not as the bundle has it")
	errUnreadable = errors.New("cannot be read")
	errReference  = errors.New("names a ConfigMap, whose content OLM would install instead")
	errTwice      = errors.New("is there twice")
)

// compareStep compares one step with the bundle: it must be a manifest of the bundle, or an object that OLM makes for
// the bundle. Roles and bindings are only collected here; compareWhole compares them. The error is the predicate of a
// clause about the step.
func (c *comparison) compareStep(step *operatorsv1alpha1.Step) error {
	manifest := []byte(step.Resource.Manifest)
	content, err := untrusted.Object(manifest)
	if err != nil || content == nil {
		return errUnreadable
	}
	for field := range content {
		if strings.EqualFold(field, "catalogSourceName") {
			return errReference
		}
	}
	id := object{group: step.Resource.Group, kind: step.Resource.Kind, name: step.Resource.Name}
	if id.kind == operatorsv1alpha1.ClusterServiceVersionKind {
		return c.compareCSV(manifest)
	}
	// A manifest of the bundle may be in as many steps as in the bundle. Every further step must be one that OLM makes.
	if d, err := hashContent(content); err == nil && c.found[id][d] < c.objects[id][d] {
		if c.found[id] == nil {
			c.found[id] = map[digest]int{}
		}
		c.found[id][d]++
		return nil
	}
	switch id.kind {
	case operatorsv1alpha1.SubscriptionKind:
		return c.compareSubscription(manifest)
	case "ServiceAccount":
		return c.compareAccount(manifest)
	case "Role", "ClusterRole":
		return c.addRole(role{id.kind, id.name}, manifest)
	case "RoleBinding", "ClusterRoleBinding":
		return c.addBinding(id.kind, manifest)
	default:
		return errChanged
	}
}

// compareCSV compares a ClusterServiceVersion. The CSV in the plan may lack values of the served CSV, but must have no
// other values; see csv.
func (c *comparison) compareCSV(manifest []byte) error {
	csv, err := readCSV(manifest)
	if err != nil {
		return errUnreadable
	}
	c.csvs++
	if csv.Name != c.CSV {
		return errChanged
	}
	// A view of an installed bundle has no predecessor, and OLM never changes an existing ClusterServiceVersion, so
	// the field is compared only for a CSV that is not installed.
	if csv.replaces != "" && csv.replaces != c.csv.replaces && !c.Installed {
		return fmt.Errorf("replaces %s, and the view has it replace %q", csv.replaces, c.csv.replaces)
	}
	extra, err := csv.findExtra(c.csv)
	if err == nil && extra != "" {
		err = fmt.Errorf("%w: %s", errChanged, extra)
	}
	return err
}

// compareSubscription compares a Subscription that OLM makes for a dependency: it must subscribe to the view and start
// with the CSV of the plan, without settings.
func (c *comparison) compareSubscription(manifest []byte) error {
	var s operatorsv1alpha1.Subscription
	if err := decode(manifest, &s); err != nil || s.Spec == nil {
		return errUnreadable
	}
	if s.Spec.CatalogSource != c.Source || s.Spec.CatalogSourceNamespace != c.Namespace ||
		s.Spec.StartingCSV != c.CSV || s.Spec.Config != nil {
		return errChanged
	}
	return nil
}

// compareAccount compares a service account that OLM made for permissions: only its name is set.
func (c *comparison) compareAccount(manifest []byte) error {
	var a corev1.ServiceAccount
	if err := decode(manifest, &a); err != nil {
		return errUnreadable
	}
	if !c.accounts[a.Name] || !c.hasOnlyOLMMetadata(a.ObjectMeta) || len(a.Secrets)+len(a.ImagePullSecrets) > 0 ||
		a.AutomountServiceAccountToken != nil {
		return errChanged
	}
	return nil
}

// addRole adds a role that OLM made for permissions. Its rules are compared later, with its bindings.
func (c *comparison) addRole(id role, manifest []byte) error {
	var role rbacv1.ClusterRole // a Role has no other fields
	if err := decode(manifest, &role); err != nil {
		return errUnreadable
	}
	if role.Name != id.name || !c.isMadeByOLM(id.kind, role.ObjectMeta) || role.AggregationRule != nil {
		return errChanged
	}
	d, err := hashContent(role.Rules)
	if err != nil {
		return err
	}
	// OLM makes two roles with one name if the bundle has the same permissions twice.
	if rules, found := c.roles[id]; found && rules != d {
		return errTwice
	}
	c.roles[id] = d
	return nil
}

// addBinding adds a binding that OLM made for permissions. It is compared later, with its role.
func (c *comparison) addBinding(kind string, manifest []byte) error {
	var b rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	if err := decode(manifest, &b); err != nil {
		return errUnreadable
	}
	if len(b.Subjects) != 1 || !c.isMadeByOLM(kind, b.ObjectMeta) || b.RoleRef.APIGroup != rbacv1.GroupName {
		return errChanged
	}
	if s := b.Subjects[0]; s.Kind != rbacv1.ServiceAccountKind || s.APIGroup != "" || s.Namespace != c.Namespace {
		return errChanged
	}
	c.bindings = append(c.bindings, binding{role: role{b.RoleRef.Kind, b.RoleRef.Name}, account: b.Subjects[0].Name,
		cluster: kind == "ClusterRoleBinding"})
	return nil
}

// minNamePrefix is the minimum length of the prefix of a ClusterServiceVersion's name in the names of its roles and
// bindings: a name has 63 characters, of which a hyphen and a hash take up to 39 (generateName in
// pkg/controller/registry/resolver/rbac.go). OLM overwrites an existing object with such a name.
const minNamePrefix = 63 - 39

// isMadeByOLM reports whether metadata is the metadata of a role or binding that OLM makes for permissions.
func (c *comparison) isMadeByOLM(kind string, m metav1.ObjectMeta) bool {
	// OLM corrects the owners of namespaced objects, and sets no owners on cluster-scoped objects.
	isOwned := strings.HasPrefix(kind, "Cluster") && len(m.OwnerReferences) > 0
	return strings.HasPrefix(m.Name, c.CSV[:min(len(c.CSV), minNamePrefix)]) && c.hasOnlyOLMMetadata(m) && !isOwned
}

// hasOnlyOLMMetadata reports whether metadata has only values that OLM sets on objects that it makes for permissions.
func (c *comparison) hasOnlyOLMMetadata(m metav1.ObjectMeta) bool {
	if m.Namespace != "" && m.Namespace != c.Namespace {
		return false
	}
	olmLabels := map[string]string{"olm.owner": c.CSV, "olm.owner.namespace": c.Namespace,
		"olm.owner.kind": operatorsv1alpha1.ClusterServiceVersionKind, "olm.managed": "true"}
	for label, value := range m.Labels {
		if want, isKnown := olmLabels[label]; label != "olm.permissions.hash" && (!isKnown || want != value) {
			return false
		}
	}
	isOwned := func(r metav1.OwnerReference) bool {
		return r.Kind == operatorsv1alpha1.ClusterServiceVersionKind && r.Name == c.CSV
	}
	return len(m.Annotations) == 0 && len(m.Finalizers) == 0 &&
		!slices.ContainsFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return !isOwned(r) })
}

// decode decodes JSON that OLM encoded. It returns an error for fields that the type does not have.
func decode(manifest []byte, target any) error {
	strict, err := kjson.UnmarshalStrict(bytes.Clone(manifest), target)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

// compareWhole compares what depends on several steps: bindings with their roles, and whether objects or permissions
// are missing. It returns a clause; empty if nothing differs.
func (c *comparison) compareWhole() string {
	used := map[role]bool{}
	for _, b := range c.bindings {
		rules, found := c.roles[b.role]
		g := grant{account: b.account, cluster: b.cluster, rules: rules}
		if !found || c.granted[g] == c.grants[g] {
			return fmt.Sprintf("it gives service account %s the rules of %s %s, and the bundle does not", b.account,
				b.role.kind, b.role.name)
		}
		used[b.role] = true
		c.granted[g]++
	}
	var problems []string
	for role := range c.roles {
		if !used[role] {
			problems = append(problems, fmt.Sprintf("it has %s %s, and the bundle does not", role.kind, role.name))
		}
	}
	for o, manifests := range c.objects {
		if !maps.Equal(c.found[o], manifests) {
			problems = append(problems, fmt.Sprintf("it lacks %s", o))
		}
	}
	switch {
	case len(problems) > 0:
		return slices.Min(problems)
	case c.csvs != 1:
		return fmt.Sprintf("it has %d steps with the ClusterServiceVersion", c.csvs)
	case !maps.Equal(c.granted, c.grants):
		return "it lacks permissions that the bundle asks for"
	default:
		return ""
	}
}
