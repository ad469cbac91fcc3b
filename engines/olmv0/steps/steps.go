// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steps tells whether an InstallPlan installs what a view serves. OLM writes a plan from what it read, and
// later carries out what the plan says then. Meanwhile the view may have become another one, and whoever may write
// InstallPlans can change the plan.
//
// It is pure.
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
	"github.com/bellwether-dev/bellwether/untrusted"
)

// kindBundleSecret is what OLM calls a Secret that a bundle brings.
const kindBundleSecret = "BundleSecret"

// Bundle is what OLM installs of a bundle, in little memory.
type Bundle struct {
	csv csv
	// objects are the digests of the manifests, and how often each is there.
	objects map[object]map[digest]int
	// accounts are those that OLM makes, and grants the rules that it gives them, each as often as it does.
	accounts map[string]bool
	grants   map[grant]int
}

type digest = [sha256.Size]byte

type object struct{ group, kind, name string }

func (o object) String() string { return o.kind + " " + o.name }

// grant is a list of rules that OLM makes a role of, and a binding for one account.
type grant struct {
	account string
	cluster bool
	rules   digest
}

// Of returns the bundle that a view serves with these manifests, as a successor of another one where replaces is not
// empty. The error wraps bundles.ErrNotBundle.
func Of(manifests [][]byte, replaces string) (*Bundle, error) {
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
		at := objectOf(content)
		d, err := sum(content)
		if err != nil {
			return nil, err
		}
		if b.objects[at] == nil {
			b.objects[at] = map[digest]int{}
		}
		b.objects[at][d]++
	}
	return b, nil
}

func (b *Bundle) addCSV(manifest []byte, replaces string) error {
	csv, err := csvOf(manifest)
	if err != nil {
		return err
	}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	for cluster, list := range map[bool][]operatorsv1alpha1.StrategyDeploymentPermissions{
		false: strategy.Permissions, true: strategy.ClusterPermissions} {
		for _, p := range list {
			rules, err := sum(p.Rules)
			if err != nil {
				return err
			}
			b.accounts[p.ServiceAccountName] = true
			b.grants[grant{p.ServiceAccountName, cluster, rules}]++
		}
	}
	csv.ClusterServiceVersion, csv.replaces = nil, replaces
	b.csv = csv
	return nil
}

func objectOf(content map[string]any) object {
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
	return object{group, kind, cmp.Or(name, generated)}
}

func sum(content any) (digest, error) {
	text, err := json.Marshal(content)
	return sha256.Sum256(text), err
}

// Plan is the part of an InstallPlan that resolves one ClusterServiceVersion.
type Plan struct {
	// Namespace is that of the plan, and Source the name of the CatalogSource there that serves the view.
	Namespace, Source string
	CSV               string
	// Installed says that the ClusterServiceVersion is on the cluster already.
	Installed bool
	Steps     []*operatorsv1alpha1.Step
}

// Differs says, as a clause, how a plan differs from what the view serves of its ClusterServiceVersion; empty where it
// does not. What a step is named and labelled that OLM made for permissions is not compared, since versions of OLM do
// that in different ways: what it gives is.
func (b *Bundle) Differs(p Plan) string {
	c := comparison{Bundle: b, Plan: p, seen: map[object]map[digest]int{}, roles: map[role]digest{},
		granted: map[grant]int{}}
	for _, step := range p.Steps {
		if err := c.step(step); err != nil {
			return fmt.Sprintf("its step %s %s %s", step.Resource.Kind, step.Resource.Name, err)
		}
	}
	return c.whole()
}

// comparison is how far a plan was compared.
type comparison struct {
	*Bundle
	Plan
	csvs     int
	seen     map[object]map[digest]int
	roles    map[role]digest
	bindings []binding
	granted  map[grant]int
}

// role is one that OLM made for permissions.
type role struct{ kind, name string }

// binding is one that OLM made for permissions.
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

// step compares one step. The error says what is wrong with it.
func (c *comparison) step(step *operatorsv1alpha1.Step) error {
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
	at := object{step.Resource.Group, step.Resource.Kind, step.Resource.Name}
	if at.kind == operatorsv1alpha1.ClusterServiceVersionKind {
		return c.csv(manifest)
	}
	if d, err := sum(content); err == nil && c.seen[at][d] < c.objects[at][d] {
		if c.seen[at] == nil {
			c.seen[at] = map[digest]int{}
		}
		c.seen[at][d]++
		return nil
	}
	switch at.kind {
	case operatorsv1alpha1.SubscriptionKind:
		return c.subscription(manifest)
	case "ServiceAccount":
		return c.account(manifest)
	case "Role", "ClusterRole":
		return c.role(role{at.kind, at.name}, manifest)
	case "RoleBinding", "ClusterRoleBinding":
		return c.binding(at.kind, manifest)
	default:
		return errChanged
	}
}

func (c *comparison) csv(manifest []byte) error {
	csv, err := csvOf(manifest)
	if err != nil {
		return errUnreadable
	}
	c.csvs++
	if csv.Name != c.CSV {
		return errChanged
	}
	// A view of what is installed has no predecessor any more, and OLM never changes a ClusterServiceVersion that is
	// there.
	if csv.replaces != "" && csv.replaces != c.Bundle.csv.replaces && !c.Installed {
		return fmt.Errorf("replaces %s, and the view has it replace %q", csv.replaces, c.Bundle.csv.replaces)
	}
	beyond, err := csv.beyond(c.Bundle.csv)
	if err == nil && beyond != "" {
		err = fmt.Errorf("%w: %s", errChanged, beyond)
	}
	return err
}

// subscription compares what OLM makes for a dependency.
func (c *comparison) subscription(manifest []byte) error {
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

// account compares an account that OLM made for permissions: it has nothing but a name.
func (c *comparison) account(manifest []byte) error {
	var a corev1.ServiceAccount
	if err := decode(manifest, &a); err != nil {
		return errUnreadable
	}
	if !c.accounts[a.Name] || !c.isOLMs(a.ObjectMeta) || len(a.Secrets)+len(a.ImagePullSecrets) > 0 ||
		a.AutomountServiceAccountToken != nil {
		return errChanged
	}
	return nil
}

// role takes a role that OLM made for permissions.
func (c *comparison) role(at role, manifest []byte) error {
	var role rbacv1.ClusterRole // a Role has no other fields
	if err := decode(manifest, &role); err != nil {
		return errUnreadable
	}
	if role.Name != at.name || !c.isMade(at.kind, role.ObjectMeta) || role.AggregationRule != nil {
		return errChanged
	}
	d, err := sum(role.Rules)
	if err != nil {
		return err
	}
	// OLM makes two of one name where the bundle asks for the same twice.
	if known, found := c.roles[at]; found && known != d {
		return errTwice
	}
	c.roles[at] = d
	return nil
}

func (c *comparison) binding(kind string, manifest []byte) error {
	var b rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	if err := decode(manifest, &b); err != nil {
		return errUnreadable
	}
	if len(b.Subjects) != 1 || !c.isMade(kind, b.ObjectMeta) || b.RoleRef.APIGroup != rbacv1.GroupName {
		return errChanged
	}
	if s := b.Subjects[0]; s.Kind != rbacv1.ServiceAccountKind || s.APIGroup != "" || s.Namespace != c.Namespace {
		return errChanged
	}
	c.bindings = append(c.bindings, binding{role{b.RoleRef.Kind, b.RoleRef.Name}, b.Subjects[0].Name,
		kind == "ClusterRoleBinding"})
	return nil
}

// namedAfter is how much of the name of a ClusterServiceVersion is at least in those of the roles and bindings that OLM
// makes for it: a name has 63 characters, of which a hyphen and a hash take up to 39 (generateName in
// pkg/controller/registry/resolver/rbac.go). OLM writes to what has such a name already.
const namedAfter = 63 - 39

// isMade tells whether metadata is that of a role or binding that OLM makes for permissions.
func (c *comparison) isMade(kind string, m metav1.ObjectMeta) bool {
	// OLM corrects who owns those of the namespace, and has no owners of those of the cluster.
	isOwned := strings.HasPrefix(kind, "Cluster") && len(m.OwnerReferences) > 0
	return strings.HasPrefix(m.Name, c.CSV[:min(len(c.CSV), namedAfter)]) && c.isOLMs(m) && !isOwned
}

// isOLMs tells whether metadata has nothing but what OLM gives to what it makes for permissions.
func (c *comparison) isOLMs(m metav1.ObjectMeta) bool {
	if m.Namespace != "" && m.Namespace != c.Namespace {
		return false
	}
	ofOLM := map[string]string{"olm.owner": c.CSV, "olm.owner.namespace": c.Namespace,
		"olm.owner.kind": operatorsv1alpha1.ClusterServiceVersionKind, "olm.managed": "true"}
	for label, value := range m.Labels {
		if want, known := ofOLM[label]; label != "olm.permissions.hash" && (!known || want != value) {
			return false
		}
	}
	isOwned := func(r metav1.OwnerReference) bool {
		return r.Kind == operatorsv1alpha1.ClusterServiceVersionKind && r.Name == c.CSV
	}
	return len(m.Annotations) == 0 && len(m.Finalizers) == 0 &&
		!slices.ContainsFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return !isOwned(r) })
}

// decode decodes what OLM encoded. It refuses fields that the type does not have.
func decode(manifest []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(bytes.Clone(manifest), into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

// whole compares what no step says by itself.
func (c *comparison) whole() string {
	used := map[role]bool{}
	for _, b := range c.bindings {
		rules, found := c.roles[b.role]
		g := grant{b.account, b.cluster, rules}
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
		if !maps.Equal(c.seen[o], manifests) {
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
