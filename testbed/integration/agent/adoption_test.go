// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// existing is a state in which somebody left an operator, and what is to become of it. The operator is installed by an
// ordinary Subscription with automatic approval, from a catalog in its namespace with version 1.0.0. The catalog of the
// release has 1.0.0 and 1.1.0.
type existing struct {
	// theirs is their catalog, and ours that of the release, if it is another one.
	theirs, ours func(pkg string) []byte
	// subscribe changes the Subscription, and group the OperatorGroup, before they are made.
	subscribe func(*operatorsv1alpha1.Subscription)
	group     func(*operatorsv1.OperatorGroup)
	// prepare is called before anything of the operator is made.
	prepare func(*owned)
	// forAnother says that somebody installs another operator, for which OLM installs this one.
	forAnother bool
	// never says that the operator does not get installed, and unsettled that OLM goes on changing what there is.
	never, unsettled bool
	// change is made after it runs.
	change func(*owned)
	// release changes the release.
	release func(*v1alpha1.Release)
	// refused are texts of the message with which it is refused first; none: it is not. The reason is NotAdoptable
	// unless another one is given. pending are texts of a message with which the agent waits.
	refused []string
	reason  string
	pending []string
	// mend is done by somebody then.
	mend func(*owned)
	// accept are findings that are accepted then.
	accept []v1alpha1.AcceptedFinding
	// left says that it is not adopted at last.
	left bool
	// then checks what has become of it.
	then func(*owned)
}

// owned is an operator of somebody.
type owned struct {
	*harness
	server *serve.Server
	// sub, group and source are as somebody made them.
	sub    *operatorsv1alpha1.Subscription
	group  *operatorsv1.OperatorGroup
	source *operatorsv1alpha1.CatalogSource
	pin    v1alpha1.CatalogPin
	// before are the UIDs of everything that was there before the adoption.
	before map[string]types.UID
	thing  *unstructured.Unstructured
	// lost is the definition that somebody has deleted.
	lost *unstructured.Unstructured
}

// TestAdoption has operators that somebody installed, in the states in which fleets are found, and releases that permit
// to adopt them. Each is adopted as it runs, or refused with a reason and a way, or left alone. Whatever becomes of it,
// nothing that was there is deleted, custom resources are the same, and pods are the same ones.
func TestAdoption(t *testing.T) {
	t.Parallel()
	shared := start(t, quiet(t), "adoption")
	all := ordinary()
	maps.Copy(all, undecided())
	maps.Copy(all, unfinished())
	maps.Copy(all, related())
	for name, e := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &owned{harness: shared.of(t, "adopt-"+name)}
			o.install(e)
			o.adopt(e)
		})
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		nothingToAdopt(shared.of(t, "adopt-nothing"))
	})
	for name, isReached := range map[string]func(*owned) bool{
		"killed":       func(o *owned) bool { return o.current().Annotations[v1alpha1.AnnotationAdopted] != "" },
		"killed-later": func(o *owned) bool { return o.everything()["CatalogSource bellwether-"+o.operator] != "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &owned{harness: start(t, quiet(t), "adoption-"+name).of(t, "adopt-"+name)}
			o.install(existing{})
			o.admitAsInstalled(existing{})
			o.eventually("the agent has begun", func() bool { return isReached(o) })
			o.agent.Kill()
			o.startAgent()
			o.adopted()
		})
	}
}

// ordinary are states in which nothing is to be decided.
func ordinary() map[string]existing {
	env := []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	return map[string]existing{
		"automatic": {},
		"manual":    {subscribe: manual},
		"starting": {subscribe: func(s *operatorsv1alpha1.Subscription) {
			s.Spec.StartingCSV = csvName(s.Spec.Package, "1.0.0")
		}},
		"named": {subscribe: func(s *operatorsv1alpha1.Subscription) { s.Name = "somebodys" }},
		"source-gone": {change: func(o *owned) {
			o.delete(o.source)
			o.gone(o.source)
		}},
		"all-namespaces": {group: func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil },
			release: func(r *v1alpha1.Release) { r.Install.Mode = v1alpha1.InstallAllNamespaces }},
		"source-elsewhere": {subscribe: func(s *operatorsv1alpha1.Subscription) {
			s.Spec.CatalogSource, s.Spec.CatalogSourceNamespace = "theirs-"+s.Namespace, "olm"
		}},
		"configured": {subscribe: func(s *operatorsv1alpha1.Subscription) {
			s.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Env: env}
		}, release: func(r *v1alpha1.Release) { r.Install.Config = &v1alpha1.OperatorConfig{Env: env} },
			change: func(o *owned) {
				o.eventually("the pods have the settings", func() bool {
					d := o.deployment()
					return len(d.Spec.Template.Spec.Containers[0].Env) > 0 && d.Status.Replicas == 1 &&
						d.Status.UpdatedReplicas == 1 && d.Status.AvailableReplicas == 1
				})
			},
			// What somebody else has set can be taken away.
			then: func(o *owned) {
				o.to(o.pin, "1.0.0")
				o.eventually("the Subscription has no settings", func() bool {
					config := o.current().Spec.Config
					return config == nil || len(config.Env) == 0
				})
				o.runs()
			}},
		"finalized": {subscribe: func(s *operatorsv1alpha1.Subscription) {
			s.Finalizers = []string{keep}
		}, then: func(o *owned) {
			sub := o.current()
			if !slices.Contains(sub.Finalizers, keep) {
				o.t.Errorf("finalizers %v", sub.Finalizers)
			}
			patch := client.MergeFrom(sub.DeepCopy())
			sub.Finalizers = nil
			o.must(o.Patch(o.t.Context(), sub, patch))
		}},
		"scaled-by-hand": {change: func(o *owned) { o.scaleAndWait(2) }, then: func(o *owned) {
			if o.replicas() != 2 {
				o.t.Errorf("%d replicas", o.replicas())
			}
		}},
		"without-subscription": {change: func(o *owned) {
			o.delete(o.sub)
			o.gone(o.sub.DeepCopy())
			o.eventually("its InstallPlan, which it owns, is gone too", func() bool { return len(o.plans()) == 0 })
		}},
		"racing": {left: true, change: func(o *owned) {
			o.serveTo(o.server, fbc(o.operator, line("1.0.0", "1.1.0")...))
		}, then: func(o *owned) {
			o.isManual()
			o.sameThing()
		}},
		"goes-on": {then: func(o *owned) {
			r := releaseOf(o.operator, o.pin, "1.1.0")
			r.Adopt = &v1alpha1.OperatorAdoption{}
			o.admit(r)
			o.runs()
			o.only("1.1.0")
			o.sameThing()
		}},
		"late": {release: func(r *v1alpha1.Release) { r.AsInstalled = false }, left: true, then: func(o *owned) {
			oi := o.runs()
			if oi.Status.Adopted == nil || oi.Status.Installed.Version != "1.1.0" {
				o.t.Errorf("adopted %+v, installed %+v", oi.Status.Adopted, oi.Status.Installed)
			}
			o.sameThing()
		}},
		"uninstalled": {then: func(o *owned) {
			o.uninstall(v1alpha1.RemovalUninstall)
			o.gone(o.sub.DeepCopy())
			o.must(o.Get(o.t.Context(), client.ObjectKey{Name: o.operator}, &corev1.Namespace{}))
			o.must(o.Get(o.t.Context(), client.ObjectKeyFromObject(o.group), &operatorsv1.OperatorGroup{}))
			o.sameThing()
		}},
		"undone": {subscribe: func(s *operatorsv1alpha1.Subscription) {
			s.Labels, s.Spec.StartingCSV = map[string]string{"team": "blue"}, csvName(s.Spec.Package, "1.0.0")
		}, then: (*owned).undo},
	}
}

// undecided are states about which a person has to decide.
func undecided() map[string]existing {
	label := func(name, value string) func(*operatorsv1alpha1.Subscription) {
		return func(s *operatorsv1alpha1.Subscription) { s.Labels = map[string]string{name: value} }
	}
	only := func(version string) func(string) []byte {
		return func(pkg string) []byte { return fbc(pkg, line(version)...) }
	}
	return map[string]existing{
		"plan-pending": {subscribe: manual, change: func(o *owned) {
			o.serveTo(o.server, fbc(o.operator, line("1.0.0", "1.1.0")...))
			o.eventually("OLM has a plan for the next version", func() bool { return o.unapproved() != nil })
		}, refused: []string{"waits for approval"}, accept: []v1alpha1.AcceptedFinding{adoption.PlanPending},
			then: func(o *owned) {
				if o.unapproved() == nil {
					o.t.Error("the InstallPlan that waits is gone, or somebody approved it")
				}
				r := releaseOf(o.operator, o.pin, "1.1.0")
				r.Adopt = &v1alpha1.OperatorAdoption{}
				o.admit(r)
				o.runs()
				o.only("1.1.0")
			}},
		"channel-gone": {theirs: func(pkg string) []byte {
			return bytes.ReplaceAll(fbc(pkg, line("1.0.0")...), []byte(`"stable"`), []byte(`"old"`))
		}, subscribe: func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "old" },
			refused: []string{"It follows channel old"},
			accept:  []v1alpha1.AcceptedFinding{adoption.ChannelNotInCatalog}},
		"renamed": {theirs: func(pkg string) []byte {
			text := string(fbc(pkg, line("1.0.0")...))
			for _, field := range []string{`"name":"%s","schema"`, `"package":"%s"`, `"packageName":"%s"`} {
				text = strings.ReplaceAll(text, fmt.Sprintf(field, pkg), fmt.Sprintf(field, pkg+"-old"))
			}
			return []byte(text)
		}, subscribe: func(s *operatorsv1alpha1.Subscription) { s.Spec.Package += "-old" },
			refused: []string{"has the bundle adopt-renamed.v1.0.0", "Set spec.package"}, left: true},
		"version-gone": {theirs: only("1.0.5"), refused: []string{"It runs version 1.0.5", "catalog add"}, left: true},
		"newer":        {theirs: only("2.0.0"), refused: []string{"newer than every version"}, left: true},
		"config-differs": {release: func(r *v1alpha1.Release) {
			r.Install.Config = &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}}
		}, refused: []string{"spec.config.env", "Make spec.install.config"}, left: true},
		"volumes": {subscribe: func(s *operatorsv1alpha1.Subscription) {
			s.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Volumes: []corev1.Volume{{Name: "scratch",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}
		}, refused: []string{"spec.config.volumes"}, left: true},
		"too-large": {ours: func(pkg string) []byte {
			return fbc(pkg, bundle{version: "1.0.0", schemaBytes: 2 << 20}, bundle{version: "1.1.0", replaces: "1.0.0"})
		}, reason: v1alpha1.ReasonBundleTooLarge, refused: []string{"at most 1024 KiB fit"}, left: true},
		"two-groups": {change: func(o *owned) {
			o.create(&operatorsv1.OperatorGroup{ObjectMeta: o.meta("second")})
		}, refused: []string{"2 OperatorGroups", "Delete all but one"}, left: true},
		"other-mode": {group: func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil },
			refused: []string{"install mode AllNamespaces", "spec.install.mode"}, left: true},
		"edited": {change: func(o *owned) {
			csv := o.csv("1.0.0")
			patch := client.MergeFrom(csv.DeepCopy())
			csv.Spec.Description = "by hand"
			o.must(o.Patch(o.t.Context(), csv, patch, client.FieldOwner("kubectl-edit")))
		}, refused: []string{"edited by kubectl-edit"}, accept: []v1alpha1.AcceptedFinding{adoption.CSVEdited},
			then: func(o *owned) {
				if o.csv("1.0.0").Spec.Description != "by hand" {
					o.t.Error("what was edited is gone")
				}
			}},
		"git-ops": {subscribe: label("argocd.argoproj.io/instance", "team"), refused: []string{"Argo CD (team) writes"},
			accept: []v1alpha1.AcceptedFinding{adoption.GitOps}, then: (*owned).writeBack},
		"two-subscriptions": {change: func(o *owned) {
			o.create(&operatorsv1alpha1.Subscription{ObjectMeta: o.meta("second"), Spec: o.sub.Spec})
		}, refused: []string{"2 Subscriptions", "Delete all but one"}, left: true},
		"at-zero": {change: func(o *owned) { o.scaleAndWait(0) }, refused: []string{"was scaled to 0"},
			accept: []v1alpha1.AcceptedFinding{adoption.ScaledToZero}, then: func(o *owned) {
				if o.replicas() != 0 {
					o.t.Errorf("%d replicas", o.replicas())
				}
			}},
		"shared": {theirs: func(pkg string) []byte {
			return slices.Concat(fbc(pkg, line("1.0.0")...), fbc(pkg+"-more", line("1.0.0")...))
		}, change: func(o *owned) {
			spec := o.sub.Spec.DeepCopy()
			spec.Package += "-more"
			o.create(&operatorsv1alpha1.Subscription{ObjectMeta: o.meta("more"), Spec: spec})
			o.eventually("the other operator runs", func() bool {
				csv := &operatorsv1alpha1.ClusterServiceVersion{}
				return o.Get(o.t.Context(), client.ObjectKey{Namespace: o.operator,
					Name: csvName(spec.Package, "1.0.0")}, csv) == nil &&
					csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
			})
		}, refused: []string{"other operators too"}, accept: []v1alpha1.AcceptedFinding{adoption.SharedNamespace}},
		"dependency": {subscribe: func(s *operatorsv1alpha1.Subscription) {
			s.Name = strings.Join([]string{s.Spec.Package, "stable", "theirs", s.Namespace}, "-")
		}, refused: []string{"OLM installed it by itself"}, accept: []v1alpha1.AcceptedFinding{adoption.Dependency}},
	}
}

// unfinished are states in which the operator does not run.
func unfinished() map[string]existing {
	return map[string]existing{
		"not-installed": {never: true, subscribe: func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "none" },
			refused: []string{"has installed nothing", "delete the Subscription"}, left: true},
		"failed": {never: true, theirs: func(pkg string) []byte {
			return fbc(pkg, bundle{version: "1.0.0", change: neverReady(1)})
		}, change: func(o *owned) {
			o.eventually("OLM gives up", func() bool {
				csv := o.csv("1.0.0")
				return csv != nil && csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed &&
					o.current().Status.InstalledCSV == csv.Name
			})
		}, refused: []string{"has failed", "Repair it"}, left: true},
		"under-way": {unsettled: true, change: func(o *owned) {
			next := bundle{version: "1.1.0", replaces: "1.0.0", change: neverReady(3600)}
			o.serveTo(o.server, fbc(o.operator, bundle{version: "1.0.0"}, next))
			o.eventually("OLM installs the next version", func() bool {
				csv := o.csv("1.1.0")
				return csv != nil && csv.Status.Phase == operatorsv1alpha1.CSVPhaseInstalling
			})
		}, pending: []string{"OLM is at work"}, left: true},
		"csv-gone": {unsettled: true, change: func(o *owned) {
			csv := o.csv("1.0.0")
			o.delete(csv)
			o.gone(csv)
		}, refused: []string{"was deleted"}, left: true},
	}
}

// related are states of what is around the operator: other operators, definitions, and what the owner of the cluster
// permits.
func related() map[string]existing {
	needing := func(pkg, needed string) []byte {
		return fbc(pkg, bundle{version: "1.0.0", change: needsCRD(needed), properties: []object{
			property("olm.package.required", object{"packageName": needed, "versionRange": ">=1.0.0"})}})
	}
	withBase := func(pkg string) []byte {
		return slices.Concat(needing(pkg, pkg+"-base"), fbc(pkg+"-base", line("1.0.0")...))
	}
	return map[string]existing{
		"for-another": {forAnother: true, theirs: func(pkg string) []byte {
			return slices.Concat(fbc(pkg, line("1.0.0")...), needing(pkg+"-user", pkg))
		}, change: func(o *owned) { o.waitForCSV("adopt-for-another-user.v1.0.0") },
			refused: []string{"OLM installed it by itself, because adopt-for-another-user.v1.0.0 needs it"},
			accept:  []v1alpha1.AcceptedFinding{adoption.Dependency},
			then:    func(o *owned) { o.waitForCSV("adopt-for-another-user.v1.0.0") }},
		"with-another": {theirs: withBase, ours: withBase,
			change: func(o *owned) { o.waitForCSV("adopt-with-another-base.v1.0.0") },
			then: func(o *owned) {
				o.waitForCSV("adopt-with-another-base.v1.0.0")
				base := o.subscriptionFor("adopt-with-another-base")
				if base == nil || base.Spec.CatalogSource != "theirs" || base.Generation != 1 ||
					base.Annotations[v1alpha1.AnnotationAdopted] != "" {
					o.t.Errorf("the Subscription of the dependency was changed: %+v", base)
				}
			}},
		"limited": {prepare: (*owned).limit, group: func(g *operatorsv1.OperatorGroup) {
			g.Spec.ServiceAccountName = "limited"
		}, then: func(o *owned) {
			r := releaseOf(o.operator, o.pin, "1.1.0")
			r.Adopt = &v1alpha1.OperatorAdoption{}
			o.admit(r)
			o.runs()
			o.only("1.1.0")
			o.sameThing()
		}},
		"vetoed": {change: func(o *owned) {
			o.must(client.IgnoreAlreadyExists(o.Create(o.t.Context(), &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: agentNamespace}})))
			o.create(o.veto())
			o.t.Cleanup(func() { o.must(client.IgnoreNotFound(o.Delete(context.Background(), o.veto()))) })
		}, pending: []string{"The take-over of what is installed does not begin", "audit"},
			mend: func(o *owned) { o.delete(o.veto()) }},
		"definition-gone": {unsettled: true, change: (*owned).deleteDefinition,
			refused: []string{"owns things.adopt-definition-gone.example.com, which the cluster does not have",
				"Create the definitions again"}, mend: (*owned).makeDefinition},
		// An operator was there, and its definition and custom resources are left.
		"definition-left": {left: true, change: func(o *owned) {
			csv := o.csv("1.0.0")
			o.delete(o.sub)
			o.delete(csv)
			o.gone(o.sub.DeepCopy())
			o.gone(csv)
			o.eventually("what it owned is gone", func() bool { return len(o.everything()) == 2 })
		}, then: func(o *owned) {
			o.runs()
			o.says("nothing to adopt")
			if diff := gocmp.Diff(o.before, o.everything()); diff != "" {
				o.t.Errorf("objects (-before +after):\n%s", diff)
			}
			o.sameThing()
		}},
		"replaced": {change: func(o *owned) {
			o.setFinalizers("1.0.0", func(all []string) []string { return append(all, keep) })
			o.serveTo(o.server, fbc(o.operator, line("1.0.0", "1.1.0")...))
			o.waitForCSV(csvName(o.operator, "1.1.0"))
			o.eventually("OLM deletes the earlier version", func() bool {
				csv := o.csv("1.0.0")
				return csv != nil && csv.DeletionTimestamp != nil
			})
		}, pending: []string{"adopt-replaced.v1.0.0 was replaced, and OLM is deleting it", "metadata.finalizers"},
			mend: func(o *owned) {
				o.setFinalizers("1.0.0", func(all []string) []string {
					return slices.DeleteFunc(all, func(name string) bool { return name == keep })
				})
				o.only("1.1.0")
				o.before = o.everything()
			}},
	}
}

const (
	// keep is a finalizer of somebody.
	keep = "example.com/keep"
	// agentNamespace is where an agent looks for what the owner of the cluster refuses.
	agentNamespace = "bellwether-system"
)

// setFinalizers changes the finalizers of the CSV of a version.
func (o *owned) setFinalizers(version string, change func([]string) []string) {
	o.t.Helper()
	csv := o.csv(version)
	patch := client.MergeFrom(csv.DeepCopy())
	csv.Finalizers = change(csv.Finalizers)
	o.must(o.Patch(o.t.Context(), csv, patch))
}

// waitForCSV waits until an operator of the namespace runs.
func (o *owned) waitForCSV(name string) {
	o.t.Helper()
	o.eventually(name+" runs", func() bool {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		return o.Get(o.t.Context(), client.ObjectKey{Namespace: o.operator, Name: name}, csv) == nil &&
			csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
	})
}

// subscriptionFor is the Subscription for a package; nil where there is none.
func (o *owned) subscriptionFor(pkg string) *operatorsv1alpha1.Subscription {
	o.t.Helper()
	var list operatorsv1alpha1.SubscriptionList
	o.must(o.List(o.t.Context(), &list, client.InNamespace(o.operator)))
	for i, s := range list.Items {
		if s.Spec.Package == pkg {
			return &list.Items[i]
		}
	}
	return nil
}

// installAnother installs an operator that needs this one, and has OLM make the Subscription.
func (o *owned) installAnother() {
	o.t.Helper()
	spec := o.sub.Spec.DeepCopy()
	spec.Package += "-user"
	o.create(&operatorsv1alpha1.Subscription{ObjectMeta: o.meta("user"), Spec: spec})
	o.eventually("OLM makes the Subscription", func() bool {
		made := o.subscriptionFor(o.operator)
		if made != nil {
			o.sub = made
		}
		return made != nil
	})
}

// veto is the ConfigMap with which the owner of the cluster refuses the take-over.
func (o *owned) veto() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: v1alpha1.VetoConfigMap},
		Data:       map[string]string{"reason": "audit", "operators": "fleet/" + o.operator},
	}
}

// limit makes the ServiceAccount by which OLM is limited to the namespace, and to definitions.
func (o *owned) limit() {
	o.t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.operator, Name: "limited"}}
	role := &rbacv1.Role{ObjectMeta: o.meta("limited"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"},
		Resources: []string{"*"}, Verbs: []string{"*"}}}}
	definitions := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: o.operator}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
		Verbs: []string{"*"}}}}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: o.meta("limited")}, role, definitions,
		&rbacv1.RoleBinding{ObjectMeta: o.meta("limited"), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: definitions.ObjectMeta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: definitions.Name}},
	} {
		o.create(object)
	}
}

// definition is the operator's CustomResourceDefinition.
func (o *owned) definition() *unstructured.Unstructured {
	return unstructuredOf(object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": "things." + group(o.operator)}})
}

// deleteDefinition deletes the definition, and with it the custom resource, and waits until OLM has noticed.
func (o *owned) deleteDefinition() {
	o.t.Helper()
	o.lost = o.definition()
	o.must(o.Get(o.t.Context(), client.ObjectKeyFromObject(o.lost), o.lost))
	o.delete(o.lost.DeepCopy())
	o.gone(o.lost.DeepCopy())
	o.thing = nil
	o.eventually("OLM waits for the definition", func() bool { // it fails the CSV for a moment first
		return o.csv("1.0.0").Status.Phase == operatorsv1alpha1.CSVPhasePending
	})
}

// makeDefinition makes the definition again, and waits until the operator runs.
func (o *owned) makeDefinition() {
	o.t.Helper()
	again := o.definition()
	again.Object["spec"] = o.lost.Object["spec"]
	o.create(again)
	o.waitForCSV(csvName(o.operator, "1.0.0"))
	o.before = o.everything()
}

func manual(s *operatorsv1alpha1.Subscription) {
	s.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
}

// install installs the operator as somebody would.
func (o *owned) install(e existing) {
	o.t.Helper()
	o.makeNamespace()
	o.server, o.pin = o.newServer(), o.harness.pin(line("1.0.0", "1.1.0")...)
	if e.ours != nil {
		o.pin = o.catalog(e.ours(o.operator))
	}
	content := fbc(o.operator, line("1.0.0")...)
	if e.theirs != nil {
		content = e.theirs(o.operator)
	}
	o.group = &operatorsv1.OperatorGroup{ObjectMeta: o.meta("somebodys"),
		Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{o.operator}}}
	o.source = &operatorsv1alpha1.CatalogSource{ObjectMeta: o.meta("theirs"), Spec: operatorsv1alpha1.CatalogSourceSpec{
		SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: o.serveTo(o.server, content)}}
	o.sub = &operatorsv1alpha1.Subscription{ObjectMeta: o.meta(o.operator), Spec: &operatorsv1alpha1.SubscriptionSpec{
		CatalogSource: "theirs", CatalogSourceNamespace: o.operator, Package: o.operator, Channel: "stable"}}
	if e.group != nil {
		e.group(o.group)
	}
	if e.subscribe != nil {
		e.subscribe(o.sub)
	}
	o.source.Name, o.source.Namespace = o.sub.Spec.CatalogSource, o.sub.Spec.CatalogSourceNamespace
	if e.prepare != nil {
		e.prepare(o)
	}
	o.create(o.group)
	o.create(o.source)
	if e.forAnother {
		o.installAnother()
	} else {
		o.create(o.sub)
	}
	if o.source.Namespace != o.operator {
		// All namespaces see it: without its server, nothing would be resolved in any.
		o.t.Cleanup(func() { o.must(o.Delete(context.Background(), o.source)) })
	}
	if !e.never {
		o.waitForOLM()
		o.thing = o.harness.thing("mine")
		o.thing.Object["spec"] = object{"name": "kept"}
		o.create(o.thing)
	}
	if e.change != nil {
		e.change(o)
	}
	o.before = o.everything()
}

// waitForOLM waits until the operator runs, and approves its InstallPlan.
func (o *owned) waitForOLM() {
	o.t.Helper()
	o.eventually("the operator of somebody runs", func() bool {
		if p := o.unapproved(); p != nil && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
			patch := client.MergeFrom(p.DeepCopy())
			p.Spec.Approved = true
			o.must(client.IgnoreNotFound(o.Patch(o.t.Context(), p, patch)))
		}
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		d := &appsv1.Deployment{ObjectMeta: o.meta(o.operator)}
		name := o.current().Status.InstalledCSV
		return name != "" && o.Get(o.t.Context(), client.ObjectKey{Namespace: o.operator, Name: name}, csv) == nil &&
			csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded &&
			o.Get(o.t.Context(), client.ObjectKeyFromObject(d), d) == nil && d.Status.AvailableReplicas == 1
	})
}

// unapproved is an InstallPlan that nobody approved; nil where there is none.
func (o *owned) unapproved() *operatorsv1alpha1.InstallPlan {
	for _, p := range o.plans() {
		if !p.Spec.Approved {
			return &p
		}
	}
	return nil
}

// current is the Subscription as it is.
func (o *owned) current() *operatorsv1alpha1.Subscription {
	o.t.Helper()
	sub := &operatorsv1alpha1.Subscription{}
	o.must(o.Get(o.t.Context(), client.ObjectKeyFromObject(o.sub), sub))
	return sub
}

// scaleAndWait scales the Deployment, which OLM may set once more while it finishes.
func (o *owned) scaleAndWait(replicas int32) {
	o.t.Helper()
	o.eventually("the Deployment is scaled", func() bool {
		o.scaleTo(replicas)
		return o.replicas() == replicas && o.available() == replicas
	})
}

// everything are the UIDs of what is in the namespace, by kind and name.
func (o *owned) everything() map[string]types.UID {
	o.t.Helper()
	out := map[string]types.UID{}
	for kind, list := range map[string]client.ObjectList{
		"OperatorGroup": &operatorsv1.OperatorGroupList{}, "CatalogSource": &operatorsv1alpha1.CatalogSourceList{},
		"Subscription": &operatorsv1alpha1.SubscriptionList{}, "InstallPlan": &operatorsv1alpha1.InstallPlanList{},
		"ClusterServiceVersion": &operatorsv1alpha1.ClusterServiceVersionList{}, "Deployment": &appsv1.DeploymentList{},
		"ReplicaSet": &appsv1.ReplicaSetList{}, "Pod": &corev1.PodList{},
	} {
		o.must(o.List(o.t.Context(), list, client.InNamespace(o.operator)))
		items, err := meta.ExtractList(list)
		o.must(err)
		for _, item := range items {
			object := item.(client.Object)
			if object.GetLabels()[operatorsv1alpha1.CopiedLabelKey] == "" {
				out[kind+" "+object.GetName()] = object.GetUID()
			}
		}
	}
	return out
}

// admitAsInstalled admits the operator to be adopted as it is, unless the case says otherwise.
func (o *owned) admitAsInstalled(e existing, accept ...v1alpha1.AcceptedFinding) {
	o.t.Helper()
	r := releaseOf(o.operator, o.pin, "1.1.0")
	r.Adopt, r.AsInstalled = &v1alpha1.OperatorAdoption{Accept: accept}, true
	if e.release != nil {
		e.release(&r)
	}
	if r.AsInstalled { // as the hub makes it
		r.Version, r.Bundle = "", ""
	}
	o.admit(r)
}

// adopt has the agent adopt the operator, and checks what becomes of it.
func (o *owned) adopt(e existing) {
	o.t.Helper()
	o.admitAsInstalled(e)
	if len(e.pending) > 0 {
		o.says(e.pending...)
		o.untouched(e)
	}
	if len(e.refused) > 0 {
		o.stalls(cmp.Or(e.reason, v1alpha1.ReasonNotAdoptable), e.refused...)
		o.untouched(e)
		if e.accept != nil {
			o.admitAsInstalled(e, e.accept...)
		}
	}
	if e.mend != nil {
		e.mend(o)
	}
	if !e.left {
		o.adopted()
	}
	if e.then != nil {
		e.then(o)
	}
}

// untouched checks that nothing was changed, and nothing was made.
func (o *owned) untouched(e existing) {
	o.t.Helper()
	if diff := gocmp.Diff(o.sub.Spec, o.current().Spec); diff != "" {
		o.t.Errorf("the Subscription was changed (-before +after):\n%s", diff)
	}
	if e.never || e.unsettled {
		return
	}
	if diff := gocmp.Diff(o.before, o.everything()); diff != "" {
		o.t.Errorf("objects (-before +after):\n%s", diff)
	}
	o.sameThing()
}

// adopted waits until the operator is adopted. Everything is there that was there, and a CatalogSource.
func (o *owned) adopted() {
	o.t.Helper()
	oi := o.runs()
	if a := oi.Status.Adopted; o.before["Subscription "+o.sub.Name] != "" && (a == nil || a.Name != o.sub.Name ||
		a.Source != o.source.Name || a.Bundle != oi.Status.Installed.Bundle) {
		o.t.Errorf("status.adopted: %+v", a)
	}
	want := maps.Clone(o.before)
	got := o.everything()
	for _, made := range []string{"CatalogSource bellwether-" + o.operator, "Subscription " + o.operator} {
		if want[made] == "" && got[made] != "" {
			want[made] = got[made]
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		o.t.Errorf("objects (-before +after):\n%s", diff)
	}
	o.isManual()
	o.sameThing()
	group := &operatorsv1.OperatorGroup{}
	o.must(o.Get(o.t.Context(), client.ObjectKeyFromObject(o.group), group))
	if diff := gocmp.Diff(o.group.Spec, group.Spec); diff != "" {
		o.t.Errorf("OperatorGroup (-before +after):\n%s", diff)
	}
}

// isManual waits until the Subscription has the view and manual approval.
func (o *owned) isManual() {
	o.t.Helper()
	o.runs()
	if s := o.current().Spec; s.InstallPlanApproval != operatorsv1alpha1.ApprovalManual ||
		s.CatalogSource != "bellwether-"+o.operator {
		o.t.Errorf("Subscription: %+v", s)
	}
}

// sameThing checks that the custom resource is as it was, field by field.
func (o *owned) sameThing() {
	o.t.Helper()
	if o.thing == nil {
		return
	}
	now := o.harness.thing("mine")
	o.must(o.Get(o.t.Context(), client.ObjectKeyFromObject(now), now))
	if diff := gocmp.Diff(o.thing.Object, now.Object); diff != "" {
		o.t.Errorf("custom resource (-before +after):\n%s", diff)
	}
}

// writeBack writes the Subscription as a GitOps tool does, again and again. The agent gives it the view each time.
func (o *owned) writeBack() {
	for range 3 {
		sub := o.current()
		patch := client.MergeFrom(sub.DeepCopy())
		sub.Spec.CatalogSource, sub.Spec.InstallPlanApproval = "theirs", operatorsv1alpha1.ApprovalAutomatic
		o.must(o.Patch(o.t.Context(), sub, patch, client.FieldOwner("argocd-controller")))
		o.eventually("it has the view again", func() bool {
			s := o.current().Spec
			return s.CatalogSource == "bellwether-"+o.operator &&
				s.InstallPlanApproval == operatorsv1alpha1.ApprovalManual
		})
	}
	o.adopted()
}

// undo gives the operator back.
func (o *owned) undo() {
	o.uninstall(v1alpha1.RemovalRestore)
	sub := o.current()
	if diff := gocmp.Diff(o.sub.Spec, sub.Spec); diff != "" {
		o.t.Errorf("Subscription (-before +after):\n%s", diff)
	}
	for name := range sub.Labels {
		if strings.HasPrefix(name, "operators.coreos.com/") {
			delete(sub.Labels, name) // OLM's
		}
	}
	if diff := gocmp.Diff(o.sub.Labels, sub.Labels); diff != "" || len(sub.Annotations) > 0 {
		o.t.Errorf("annotations %v; labels (-before +after):\n%s", sub.Annotations, diff)
	}
	if diff := gocmp.Diff(o.before, o.everything()); diff != "" {
		o.t.Errorf("objects (-before +after):\n%s", diff)
	}
	o.sameThing()
	o.serveTo(o.server, fbc(o.operator, line("1.0.0", "1.1.0")...))
	o.eventually("OLM upgrades it from its own catalog as before", func() bool {
		csv := o.csv("1.1.0")
		return csv != nil && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
	})
}

// nothingToAdopt has no operator where one is to be adopted, and none is installed.
func nothingToAdopt(h *harness) {
	r := releaseOf(h.operator, h.pin(line("1.0.0")...), "1.0.0")
	r.Adopt, r.AsInstalled, r.Version, r.Bundle = &v1alpha1.OperatorAdoption{}, true, "", ""
	h.admit(r)
	oi := h.runs()
	ready := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionReady)
	if oi.Status.Installed != nil || !strings.Contains(ready.Message, "nothing to adopt") {
		h.t.Errorf("installed %+v, %s", oi.Status.Installed, ready.Message)
	}
	err := h.Get(h.t.Context(), client.ObjectKey{Name: h.operator}, &corev1.Namespace{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		h.t.Errorf("the namespace was made: %v", err)
	}
}
