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

// annotationProperties is what OLM adds to a ClusterServiceVersion: the properties that the catalog has of it.
const annotationProperties = "operatorframework.io/properties"

// Bundle is what OLM installs of a bundle, in little memory.
type Bundle struct {
	csv      digest
	replaces string
	objects  map[object]digest
	// accounts are those that OLM makes, and grants the rules that it gives them, each as often as it does.
	accounts map[string]bool
	grants   map[grant]int
}

type digest = [sha256.Size]byte

type object struct{ kind, name string }

// grant is a list of rules that OLM makes a role of, and a binding for one account.
type grant struct {
	account string
	cluster bool
	rules   digest
}

// Of returns the bundle that a view serves with these manifests, as a successor of another one where replaces is not
// empty. The error wraps bundles.ErrNotBundle.
func Of(manifests [][]byte, replaces string) (*Bundle, error) {
	b := &Bundle{replaces: replaces, objects: map[object]digest{}, accounts: map[string]bool{}, grants: map[grant]int{}}
	for _, manifest := range manifests {
		content, err := untrusted.Object(manifest)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", bundles.ErrNotBundle, err)
		}
		if bundles.IsCSV(manifest) {
			if err := b.addCSV(manifest); err != nil {
				return nil, fmt.Errorf("%w: decode %s: %w", bundles.ErrNotBundle,
					operatorsv1alpha1.ClusterServiceVersionKind, err)
			}
			continue
		}
		at := objectOf(content)
		if b.objects[at], err = sum(content); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *Bundle) addCSV(manifest []byte) error {
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
	csv.Spec.Replaces = ""
	b.csv, err = sum(csv)
	return err
}

// csvOf returns what a ClusterServiceVersion says that is its bundle's, and not OLM's.
func csvOf(manifest []byte) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := json.Unmarshal(manifest, csv); err != nil {
		return nil, err
	}
	csv.Namespace, csv.CreationTimestamp = "", metav1.Time{}
	csv.Status = operatorsv1alpha1.ClusterServiceVersionStatus{}
	delete(csv.Annotations, annotationProperties)
	if len(csv.Annotations) == 0 {
		csv.Annotations = nil
	}
	return csv, nil
}

func objectOf(content map[string]any) object {
	kind, _ := content["kind"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	generated, _ := metadata["generateName"].(string)
	if kind == "Secret" {
		kind = kindBundleSecret
	}
	return object{kind, cmp.Or(name, generated)}
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
	Steps             []*operatorsv1alpha1.Step
}

// Differs says, as a clause, how a plan differs from what the view serves of its ClusterServiceVersion; empty where it
// does not. What a step is named and labelled that OLM made for permissions is not compared, since versions of OLM do
// that in different ways: what it gives is.
func (b *Bundle) Differs(p Plan) string {
	c := comparison{Bundle: b, Plan: p, seen: map[object]bool{}, roles: map[object]digest{}, granted: map[grant]int{}}
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
	seen     map[object]bool
	roles    map[object]digest
	bindings []binding
	granted  map[grant]int
}

// binding is one that OLM made for permissions.
type binding struct {
	role    object
	account string
	cluster bool
}

var (
	errChanged    = errors.New("is not as the bundle has it")
	errUnreadable = errors.New("cannot be read")
	errReference  = errors.New("is what a ConfigMap of the cluster has when OLM carries the plan out")
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
	at := object{step.Resource.Kind, step.Resource.Name}
	if at.kind == operatorsv1alpha1.ClusterServiceVersionKind {
		return c.csv(manifest)
	}
	if want, ok := c.objects[at]; ok {
		if got, err := sum(content); err == nil && got == want {
			if c.seen[at] {
				return errTwice
			}
			c.seen[at] = true
			return nil
		}
	}
	switch at.kind {
	case operatorsv1alpha1.SubscriptionKind:
		return c.subscription(manifest)
	case "ServiceAccount":
		return c.account(manifest)
	case "Role", "ClusterRole":
		return c.role(at, manifest)
	case "RoleBinding", "ClusterRoleBinding":
		return c.binding(at, manifest)
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
	if csv.Spec.Replaces != "" && csv.Spec.Replaces != c.replaces {
		return fmt.Errorf("replaces %s, and the view has it replace %q", csv.Spec.Replaces, c.replaces)
	}
	csv.Spec.Replaces = ""
	if got, err := sum(csv); err != nil || got != c.Bundle.csv {
		return errChanged
	}
	return nil
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
func (c *comparison) role(at object, manifest []byte) error {
	var role rbacv1.ClusterRole // a Role has no other fields
	if err := decode(manifest, &role); err != nil {
		return errUnreadable
	}
	if _, twice := c.roles[at]; twice {
		return errTwice
	}
	if role.Name != at.name || !c.isMade(role.ObjectMeta) || role.AggregationRule != nil {
		return errChanged
	}
	var err error
	c.roles[at], err = sum(role.Rules)
	return err
}

func (c *comparison) binding(at object, manifest []byte) error {
	var b rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	if err := decode(manifest, &b); err != nil {
		return errUnreadable
	}
	if len(b.Subjects) != 1 || !c.isMade(b.ObjectMeta) || b.RoleRef.APIGroup != rbacv1.GroupName {
		return errChanged
	}
	if s := b.Subjects[0]; s.Kind != rbacv1.ServiceAccountKind || s.APIGroup != "" || s.Namespace != c.Namespace {
		return errChanged
	}
	c.bindings = append(c.bindings, binding{object{b.RoleRef.Kind, b.RoleRef.Name}, b.Subjects[0].Name,
		at.kind == "ClusterRoleBinding"})
	return nil
}

// namedAfter is how much of the name of a ClusterServiceVersion is in those of the roles and bindings that OLM makes
// for it. It writes to what has such a name already.
const namedAfter = 30

// isMade tells whether metadata is that of a role or binding that OLM makes for permissions.
func (c *comparison) isMade(m metav1.ObjectMeta) bool {
	return strings.HasPrefix(m.Name, c.CSV[:min(len(c.CSV), namedAfter)]) && c.isOLMs(m)
}

// isOLMs tells whether metadata has nothing but what OLM gives to what it makes for permissions.
func (c *comparison) isOLMs(m metav1.ObjectMeta) bool {
	if m.Namespace != "" && m.Namespace != c.Namespace {
		return false
	}
	for label := range m.Labels {
		if !strings.HasPrefix(label, "olm.") && !strings.HasPrefix(label, "operators.coreos.com/") {
			return false
		}
	}
	return len(m.Annotations) == 0 && len(m.Finalizers) == 0
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
	used := map[object]bool{}
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
	for _, role := range sorted(c.roles) {
		if !used[role] {
			return fmt.Sprintf("it has %s %s, and the bundle does not", role.kind, role.name)
		}
	}
	for _, o := range sorted(c.objects) {
		if !c.seen[o] {
			return fmt.Sprintf("it lacks %s %s", o.kind, o.name)
		}
	}
	switch {
	case c.csvs != 1:
		return fmt.Sprintf("it has %d steps with the ClusterServiceVersion", c.csvs)
	case len(c.granted) < len(c.grants):
		return "it lacks permissions that the bundle asks for"
	default:
		return ""
	}
}

func sorted[V any](objects map[object]V) []object {
	var out []object
	for o := range objects {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
	return out
}
