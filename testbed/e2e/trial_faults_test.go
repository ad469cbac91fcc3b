// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"strings"
	"syscall"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

// definition is the one that the sample operator owns.
const definition = "echoservers.echo.bellwether.dev"

// podFaults concern what runs: the operator's Deployment, its pods and what they need.
func podFaults() map[string]fault {
	return map[string]fault{
		// It comes first by its name: no alert about another fault fires yet.
		"15 configuration rollouts in a row": {inject: (*trial).rollOutRepeatedly},
		"quota takes the pods away": {
			inject: (*trial).takePods,
			shows:  notReady(v1alpha1.ReasonPodsUnavailable),
			why:    []string{"Failed (PodsUnavailable)", "Deployment trial-canary/echo-operator", "exceeded quota"},
			heal:   (*trial).undoAll,
		},
		"Deployment scaled to zero": {
			inject: func(x *trial) { x.scale(0) },
			shows:  notReady(v1alpha1.ReasonScaledToZero),
			why:    []string{"Deployment echo-operator", "kubectl"},
			heal:   func(x *trial) { x.scale(1) },
		},
		"CSV scaled to zero": {
			inject: func(x *trial) {
				x.editCSV(func(operator *appsv1.DeploymentSpec) { operator.Replicas = ptr.To[int32](0) })
			},
			shows: notReady(v1alpha1.ReasonScaledToZero),
			why:   []string{"Deployment echo-operator", "kubectl"},
			heal:  (*trial).undoAll,
		},
		"CSV edited": {
			inject: func(x *trial) {
				x.editCSV(func(operator *appsv1.DeploymentSpec) {
					args := operator.Template.Spec.Containers[0].Args
					args[len(args)-1] = "--leader-elect=true"
				})
			},
			shows: installHas(v1alpha1.ConditionDrifted, metav1.ConditionTrue, v1alpha1.ReasonDrifted),
			why:   []string{"Degraded (Drifted)", "args"},
			heal:  (*trial).undoAll,
		},
		"CSV edited so that the pods crash": {
			inject: func(x *trial) {
				x.editCSV(func(operator *appsv1.DeploymentSpec) {
					operator.Template.Spec.Containers[0].Args = []string{"--no-such-flag"}
				})
			},
			shows: installHas(v1alpha1.ConditionDrifted, metav1.ConditionTrue, v1alpha1.ReasonDrifted),
			why:   []string{"differs from the admitted release", "args"}, detail: []string{"no-such-flag"},
			heal: (*trial).undoAll,
		},
		"pods deleted":       {inject: (*trial).deletePods},
		"Deployment deleted": {inject: func(x *trial) { x.drop(x.deployment()) }},
		"ServiceAccount deleted": {
			inject: func(x *trial) {
				x.drop(&corev1.ServiceAccount{ObjectMeta: x.meta("echo-operator")})
				x.deletePods()
			},
			// The pods that cannot be created say it at once, and OLM after a minute.
			shows: notReady(v1alpha1.ReasonPodsUnavailable, v1alpha1.ReasonObjectsLost),
			why:   []string{`serviceaccount "echo-operator" not found`},
			holds: []func(*trial) error{
				installHas(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonObjectsLost),
				says([]string{"Failed (ObjectsLost)", "ServiceAccount echo-operator",
					"bellwether operator repair CLUSTER OPERATOR"}, "why", "CLUSTER", "OPERATOR")},
			heal: (*trial).repair,
		},
		"CustomResourceDefinition deleted": {
			inject: func(x *trial) {
				crd := &unstructured.Unstructured{}
				crd.SetAPIVersion("apiextensions.k8s.io/v1")
				crd.SetKind("CustomResourceDefinition")
				crd.SetName(definition)
				x.drop(crd)
			},
			shows: installHas(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonObjectsLost),
			why: []string{"Failed (ObjectsLost)", "CustomResourceDefinition " + definition +
				" (deleted, and with it all its custom resources)", "bellwether operator repair canary trial-canary"},
			heal: (*trial).repair,
		},
	}
}

// olmFaults concern the objects that OLM works with.
func olmFaults() map[string]fault {
	return map[string]fault{
		"Subscription deleted":  deletion(&operatorsv1alpha1.SubscriptionList{}, "the Subscription in namespace"),
		"CatalogSource deleted": deletion(&operatorsv1alpha1.CatalogSourceList{}, "the CatalogSource in namespace"),
		"OperatorGroup deleted": deletion(&operatorsv1.OperatorGroupList{}, "the OperatorGroup in namespace"),
		"CSV deleted":           deletion(&operatorsv1alpha1.ClusterServiceVersionList{}, "ClusterServiceVersion"),
		"namespace deleted": {inject: func(x *trial) {
			x.drop(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.key.Name}})
		}, holds: []func(*trial) error{toldDeleted("Namespace trial-prod-eu")}},
		"namespace deleted, with a finalizer that hangs": {
			inject: (*trial).hangNamespace,
			shows:  notReady(v1alpha1.ReasonNamespaceTerminating),
			why:    []string{"NamespaceTerminating", "amespace trial-prod-eu is being deleted"},
			detail: []string{"example.com/hangs"},
			holds: []func(*trial) error{says([]string{"0 ready"}, "operator", "get", "OPERATOR"),
				(*trial).runsNothing},
			heal: (*trial).undoAll,
		},
		"a second OperatorGroup": {
			inject: func(x *trial) { x.create(&operatorsv1.OperatorGroup{ObjectMeta: x.meta("second")}) },
			shows:  notReady(v1alpha1.ReasonOperatorGroupConflict),
			why:    []string{"second"},
			heal:   (*trial).undoAll,
		},
		"a foreign Subscription": {
			inject: func(x *trial) {
				x.create(&operatorsv1alpha1.Subscription{ObjectMeta: x.meta("foreign"),
					Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "echo-operator", Channel: "stable",
						CatalogSource: "nowhere", CatalogSourceNamespace: x.key.Name,
						InstallPlanApproval: operatorsv1alpha1.ApprovalManual}})
			},
			// The operator runs, and cannot be upgraded.
			shows: installHas(v1alpha1.ConditionResolved, metav1.ConditionFalse, v1alpha1.ReasonSubscriptionConflict),
			why: []string{"Degraded (SubscriptionConflict)",
				"Subscription trial-prod-eu/foreign subscribes to the same package"},
			heal: (*trial).undoAll,
		},
		"olm-operator killed": {inject: func(x *trial) {
			x.kill(build.OLM)
			x.drop(x.deployment())
		}},
		"catalog-operator killed": {inject: func(x *trial) {
			x.kill(build.OLMCatalog)
			x.dropAll(&operatorsv1alpha1.ClusterServiceVersionList{})
		}},
	}
}

// deletion deletes all objects of a kind. They are made again, and an Event tells of it.
func deletion(list client.ObjectList, what string) fault {
	return fault{inject: func(x *trial) { x.dropAll(list) }, holds: []func(*trial) error{toldDeleted(what)}}
}

// agentFaults concern the cluster's control plane and its agent. Those without a condition delete the Subscription too,
// which only an agent that works creates again.
func agentFaults() map[string]fault {
	unreachable := clusterHas(v1alpha1.ConditionAPIServerReachable, metav1.ConditionFalse,
		v1alpha1.ReasonAPIServerUnreachable)
	offline := clusterHas(v1alpha1.ConditionOnline, metav1.ConditionFalse, v1alpha1.ReasonLeaseExpired)
	stale := []func(*trial) error{says([]string{"CLUSTER"}, "fleet", "list", "--state", "stale"),
		says([]string{"stale (1)"}, "operator", "list", "--state", "stale"),
		says([]string{"stale (shown as last reported): CLUSTER"}, "operator", "get", "OPERATOR"),
		says([]string{"stale"}, "fleet", "get", "CLUSTER")}
	dropSubscription := func(x *trial) { x.dropAll(&operatorsv1alpha1.SubscriptionList{}) }
	restart := func(x *trial) { x.must(shared.Fleet.Cluster(x.cluster).RestartAPIServer(x.ctx())) }
	join := func(x *trial) { x.must(shared.Join(x.ctx(), memberOf(x.cluster))) }
	return map[string]fault{
		"API server killed": {
			inject: func(x *trial) { shared.Fleet.Cluster(x.cluster).KillAPIServer() },
			shows:  unreachable, why: []string{"API server of"}, heal: restart,
		},
		"API server stopped": {
			inject: func(x *trial) { x.signal(syscall.SIGSTOP, x.apiServer()) },
			shows:  unreachable, why: []string{"API server of"}, holds: stale,
			heal: func(x *trial) { x.signal(syscall.SIGCONT, x.apiServer()) },
		},
		"API server restarted": {inject: func(x *trial) {
			restart(x)
			dropSubscription(x)
		}},
		"agent killed": {inject: func(x *trial) {
			x.signal(syscall.SIGKILL, x.agent())
			dropSubscription(x)
		}},
		"agent stopped": { // its liveness probe fails in the end, so it may have been replaced when it is continued
			inject: func(x *trial) {
				pid := x.agent()
				x.signal(syscall.SIGSTOP, pid)
				x.undo = append(x.undo, func() { x.signal(syscall.SIGCONT, pid) })
				dropSubscription(x)
			},
			shows: offline, why: []string{"Unknown (LeaseExpired)", "Not current"}, holds: stale,
			heal: (*trial).undoAll,
		},
		"agent scaled to zero": {
			inject: func(x *trial) { scaleAgent(x.t, x.cluster, 0) },
			shows:  offline, why: []string{"agent"},
			heal: func(x *trial) { scaleAgent(x.t, x.cluster, 1) },
		},
		"credentials revoked, cluster joined again": {
			inject: func(x *trial) { x.run("fleet", "revoke", "CLUSTER", "--yes") },
			shows:  clusterHas(v1alpha1.ConditionOnline, metav1.ConditionFalse, v1alpha1.ReasonAccessRevoked),
			why:    []string{"Unknown (AccessRevoked)", "fleet join prod-us"}, heal: join,
		},
		"cluster joined again": {inject: func(x *trial) {
			join(x)
			dropSubscription(x)
		}},
	}
}

// hubFaults concern the hub, and what people write there.
func hubFaults() map[string]fault {
	faults := map[string]fault{}
	faults["every hub killed in a rollout"] = fault{inject: func(x *trial) {
		before, err := x.newestRollout()
		x.must(err)
		x.change(greeting("before every hub was killed"))
		x.nextRollout(before.Spec.Revision)
		for _, pid := range hubPIDs(x.t) {
			x.signal(syscall.SIGKILL, pid)
		}
	}}
	faults["each hub stopped in turn"] = fault{inject: func(x *trial) {
		for _, pid := range hubPIDs(x.t) {
			x.signal(syscall.SIGSTOP, pid)
			x.undo = append(x.undo, func() { x.signal(syscall.SIGCONT, pid) })
			x.change(greeting("while a hub is stopped"))
			x.recovers()
			x.undoAll()
			x.change(greeting("after a hub was stopped"))
			x.recovers()
		}
	}}
	faults["every hub stopped"] = fault{
		inject: func(x *trial) {
			for _, pid := range hubPIDs(x.t) {
				x.signal(syscall.SIGSTOP, pid)
				x.undo = append(x.undo, func() { x.signal(syscall.SIGCONT, pid) })
			}
			x.change(greeting("while every hub is stopped"))
		},
		// No condition can be set; that the status is old has to be told by what reads it.
		shows: func(*trial) error { return nil },
		why:   []string{"StatusOutdated"}, holds: isAwayForAll(), heal: (*trial).undoAll,
	}
	faults["hub's API server restarted"] = fault{inject: func(x *trial) {
		x.must(shared.Fleet.Hub.RestartAPIServer(x.ctx()))
		x.change(greeting("after the API server was restarted"))
	}}
	for _, more := range []map[string]fault{specFaults(), releaseFaults(), haltFaults(), steeringFaults(),
		secondOperatorFaults(), removalFaults(), requestFaults()} {
		maps.Copy(faults, more)
	}
	return faults
}

// isAwayForAll are checks that every reading command says that the hub is away.
func isAwayForAll() []func(*trial) error {
	var checks []func(*trial) error
	for _, args := range [][]string{{"why", "CLUSTER", "OPERATOR"}, {"operator", "get", "OPERATOR"},
		{"operator", "list"}, {"rollout", "get", "OPERATOR"}, {"rollout", "list"}, {"fleet", "list"},
		{"fleet", "get", "CLUSTER"}, {"versions"}, {"catalog", "list"}} {
		checks = append(checks, says([]string{"The hub was last seen at"}, args...))
	}
	return checks
}

// specFaults are mistakes in what people write on the hub.
func specFaults() map[string]fault {
	wanted := func(change func(*v1alpha1.ManagedOperatorSpec), reason string, why ...string) fault {
		return fault{inject: func(x *trial) { x.edit(change) },
			shows: operatorHas(v1alpha1.ConditionReady, metav1.ConditionFalse, reason), why: append(why, reason),
			heal: (*trial).undoAll}
	}
	catalog := func(change func(*trial, *v1alpha1.OperatorCatalogSpec), kind string, status metav1.ConditionStatus,
		reason string, why ...string) fault {
		return fault{inject: func(x *trial) {
			x.editCatalog(func(s *v1alpha1.OperatorCatalogSpec) { change(x, s) })
		}, shows: catalogHas(kind, status, reason), why: append(why, reason), heal: (*trial).undoAll}
	}
	return map[string]fault{
		"unknown version": wanted(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "9.9.9" },
			v1alpha1.ReasonUnknownVersion, "9.9.9"),
		"unknown channel": wanted(func(s *v1alpha1.ManagedOperatorSpec) { s.Channel = "nowhere" },
			v1alpha1.ReasonUnknownChannel, "nowhere"),
		"unknown catalog": wanted(func(s *v1alpha1.ManagedOperatorSpec) { s.Catalog.Name = "missing" },
			v1alpha1.ReasonCatalogNotFound, "missing"),
		"wrong wave selector": wanted(func(s *v1alpha1.ManagedOperatorSpec) {
			s.Strategy.Waves = []v1alpha1.Wave{{Name: "all", Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"ring": "no value!"}}}}
			greeting("with a wrong wave")(s)
		}, v1alpha1.ReasonInvalidSpec, "no value!"),
		"wrong cluster selector": wanted(func(s *v1alpha1.ManagedOperatorSpec) {
			s.ClusterSelector.MatchLabels = map[string]string{"ring": "no value!"}
		}, v1alpha1.ReasonInvalidSpec, "no value!"),
		"blocked version wanted": { // the block is there before anybody wants the version
			inject: func(x *trial) {
				x.editCatalog(block("1.1.0"))
				x.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.1.0" })
			},
			shows: operatorHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonVersionBlocked),
			why:   []string{"1.1.0", "data loss"}, heal: (*trial).undoAll,
		},
		"installed version blocked": catalog(func(_ *trial, s *v1alpha1.OperatorCatalogSpec) { block("1.0.0")(s) },
			v1alpha1.ConditionBlockedVersionInUse, metav1.ConditionTrue, v1alpha1.ReasonVersionBlocked, "data loss"),
		"unsigned catalog": catalog(func(x *trial, s *v1alpha1.OperatorCatalogSpec) {
			author, err := shared.Author(x.ctx(), x.key.Name)
			x.must(err)
			// A signature belongs to a digest in a repository, so the same catalog elsewhere has none.
			s.Source.Image = strings.TrimSuffix(author.Ref, ":latest") + "-unsigned:latest"
			x.must(author.Run(x.ctx(), "catalog", "push", "catalog", s.Source.Image))
			s.Verification = x.verification(x.key.Name)
		}, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSignatureMissing),
		"catalog signed by another key": catalog(func(x *trial, s *v1alpha1.OperatorCatalogSpec) {
			s.Verification = x.verification("somebody-else")
		}, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSignatureInvalid),
		"catalog that is not there": catalog(func(_ *trial, s *v1alpha1.OperatorCatalogSpec) {
			s.Source.Image += "-missing"
		}, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSourceNotFound),
		"configuration that cannot run": {
			inject: func(x *trial) {
				x.edit(func(s *v1alpha1.ManagedOperatorSpec) {
					s.Strategy.Waves = []v1alpha1.Wave{{Name: "all", Deadline: seconds(30)}}
					s.Install.Config = &v1alpha1.OperatorConfig{
						Env: []corev1.EnvVar{{Name: "POD_IP", Value: "nowhere"}}}
				})
			},
			shows:  rolloutHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonHalted),
			why:    []string{"Failed", "was not updated within the deadline of its wave"},
			detail: []string{"CrashLoopBackOff"}, heal: (*trial).undoAll,
		},
	}
}

func block(version string) func(*v1alpha1.OperatorCatalogSpec) {
	return func(s *v1alpha1.OperatorCatalogSpec) {
		s.Blocks = []v1alpha1.VersionBlock{{Package: "echo-operator", Version: version, Reason: "data loss"}}
	}
}
