// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares an explanation with testdata/NAME.txt.
func golden(t *testing.T, name string, e Explanation) {
	t.Helper()
	text := lines(t, e)
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatalf("write golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden file: %v", err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-want +got); run with -update if it should:\n%s", path, diff)
	}
}

// lines is the JSON of an explanation with a line for each field, and for each element of a list.
func lines(t *testing.T, e Explanation) string {
	t.Helper()
	encoded, err := json.Marshal(e)
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(encoded, &fields)
	}
	if err != nil {
		t.Fatalf("encode explanation: %v", err)
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var elements []json.RawMessage
		if json.Unmarshal(fields[name], &elements) != nil {
			elements = []json.RawMessage{fields[name]}
		}
		for _, element := range elements {
			fmt.Fprintf(&text, "%s %s\n", name, element)
		}
	}
	return text.String()
}

// TestVetoWithNothingToChange: an operator waits for the end of a veto only where the veto keeps a change from it.
func TestVetoWithNothingToChange(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*InstallInput)
		want   State
	}{
		"nothing is to change": {func(*InstallInput) {}, Healthy},
		"it was admitted to another release": {func(in *InstallInput) {
			in.Install.Labels[v1alpha1.LabelRollout], in.Rollout.Name, in.Rollout.UID = "echo-3", "echo-3", "uid-3"
		}, Waiting},
		"that rollout was aborted": {func(in *InstallInput) {
			in.Install.Labels[v1alpha1.LabelRollout], in.Rollout.Name, in.Rollout.UID = "echo-3", "echo-3", "uid-3"
			in.Rollout.Status.Phase = v1alpha1.RolloutAborted
		}, Failed},
		"of other operators": {func(in *InstallInput) {
			in.Install.Labels[v1alpha1.LabelRollout], in.Rollout.Name, in.Rollout.UID = "echo-3", "echo-3", "uid-3"
			in.Cluster.Status.Veto.Operators = []string{"backup"}
		}, Healthy},
		"nothing is to change on a frozen cluster": {func(in *InstallInput) {
			in.Cluster.Status.Freeze = &v1alpha1.ClusterFreeze{Name: "now", Reason: "an incident"}
		}, Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthyInstall()
			in.Cluster.Status.Veto = &v1alpha1.ClusterVeto{Reason: "quarter end"}
			test.change(&in)
			e := Install(in)
			if e.State != test.want || (e.Reason == v1alpha1.ReasonVetoed) != (test.want == Waiting) {
				t.Errorf("it is %s (%s), want %s: %s", e.State, e.Reason, test.want, e.Summary)
			}
		})
	}
}

// fault is something that is wrong with an install.
type fault struct {
	change func(*InstallInput)
	state  State
	// reason of the explanation, and cause if that has another one.
	reason, cause string
	// contains is in the summary, the cause, a remedy or what happens next.
	contains string
}

func onInstall(f func(*v1alpha1.OperatorInstall)) func(*InstallInput) {
	return func(in *InstallInput) { f(in.Install) }
}

func stalledInstall(reason, message string) func(*InstallInput) {
	return onInstall(func(i *v1alpha1.OperatorInstall) { stall(&i.Status.Conditions, reason, message) })
}

func running(d Deployment) func(*InstallInput) {
	return func(in *InstallInput) { in.Downstream.Links = []Link{d.Link()} }
}

func onCluster(kind, reason, message string) func(*InstallInput) {
	return func(in *InstallInput) { set(&in.Cluster.Status.Conditions, kind, false, reason, message) }
}

// faults are faults of an install. The explanation must report each fault.
func faults() map[string]fault {
	all := clusterFaults()
	maps.Copy(all, hubFaults())
	maps.Copy(all, installFaults())
	maps.Copy(all, workloadFaults())
	return all
}

func isAPIServerReachable(c metav1.Condition) bool {
	return c.Type == v1alpha1.ConditionAPIServerReachable
}

func clusterFaults() map[string]fault {
	return map[string]fault{
		"offline": {onCluster(v1alpha1.ConditionOnline, v1alpha1.ReasonLeaseExpired, "the agent renewed its Lease "+
			"last at 11:58"), Unknown, v1alpha1.ReasonLeaseExpired, "", "cluster prod-1 is offline since 2026-11-21T" +
			"11:58:00Z"},
		"never joined": {onCluster(v1alpha1.ConditionOnline, v1alpha1.ReasonNeverJoined, "no agent has "+
			"reported"), Unknown,
			v1alpha1.ReasonNeverJoined, "", "bellwether fleet join prod-1"},
		"API server dead": {onCluster(v1alpha1.ConditionAPIServerReachable, v1alpha1.ReasonAPIServerUnreachable,
			"connection refused"), Unknown, v1alpha1.ReasonAPIServerUnreachable, "",
			"cannot reach the API server of its cluster since 2026-11-21T11:58:00Z"},
		"API server not reported": {func(in *InstallInput) {
			in.Cluster.Status.Conditions = slices.DeleteFunc(in.Cluster.Status.Conditions, isAPIServerReachable)
		}, Unknown, remedy.NotReported, "", "has not reported whether it reaches"},
		"OLM missing": {onCluster(v1alpha1.ConditionOLMAvailable, v1alpha1.ReasonOLMMissing, "no OLM"), Failed,
			v1alpha1.ReasonOLMMissing, "", "Install the Operator Lifecycle Manager"},
		"cluster paused": {func(in *InstallInput) { in.Cluster.Spec.Paused = true }, Waiting, v1alpha1.ReasonClusterPaused, "",
			"kubectl patch fleetcluster prod-1"},
		"cluster leaving": {func(in *InstallInput) { in.Cluster.DeletionTimestamp = agoPtr(time.Minute) }, Waiting,
			v1alpha1.ReasonDeleting, "", "is leaving the fleet"},
		"cluster status outdated": {func(in *InstallInput) { in.Cluster.Generation = 2 }, Progressing,
			remedy.StatusOutdated, "", "about generation 1"},
	}
}

func hubFaults() map[string]fault {
	phase := func(p v1alpha1.RolloutPhase, reason, message string) func(*InstallInput) {
		return func(in *InstallInput) {
			in.Rollout.Status.Phase, in.Rollout.Status.Message = p, message
			stall(&in.Rollout.Status.Conditions, reason, message)
		}
	}
	return map[string]fault{
		"not selected": {func(in *InstallInput) { in.Cluster.Labels, in.Install = nil, nil }, Waiting,
			remedy.NotSelected,
			"", "the cluster selector env=prod does not match"},
		"no longer selected": {func(in *InstallInput) { in.Cluster.Labels = nil }, Waiting, remedy.NotSelected, "",
			"does not match"},
		"no install": {func(in *InstallInput) { in.Install, in.Downstream = nil, nil }, Waiting, remedy.NoInstall, "",
			"has no OperatorInstall"},
		"unknown version": {func(in *InstallInput) {
			stall(&in.Operator.Status.Conditions, v1alpha1.ReasonUnknownVersion, "no such version 1.9.0")
		}, Failed, v1alpha1.ReasonUnknownVersion, "", "no such version 1.9.0"},
		"no upgrade path": {func(in *InstallInput) {
			stall(&in.Operator.Status.Conditions, v1alpha1.ReasonNoUpgradePath, "no upgrade path to 1.2.0")
		}, Failed, v1alpha1.ReasonNoUpgradePath, "", "bellwether rollout plan echo --version VERSION -n fleet"},
		"operator paused": {func(in *InstallInput) { in.Operator.Spec.Paused = true }, Waiting, remedy.OperatorPaused,
			"",
			"no new rollout is made"},
		"operator status outdated": {func(in *InstallInput) { in.Operator.Generation = 2 }, Progressing,
			remedy.StatusOutdated, "", "about generation 1"},
		"rollout paused": {func(in *InstallInput) {
			in.Rollout.Spec.Paused, in.Rollout.Status.Phase = true, v1alpha1.RolloutPaused
			notReady(&in.Rollout.Status.Conditions, v1alpha1.ReasonPaused, "paused")
		}, Waiting, v1alpha1.ReasonPaused, "", "bellwether rollout resume echo-2 -n fleet"},
		"rollout halted by others": {phase(v1alpha1.RolloutHalted, v1alpha1.ReasonHalted, "wave prod: 1 cluster "+
			"failed"),
			Waiting, v1alpha1.ReasonHalted, "", "wave prod: 1 cluster failed"},
		"rollout aborted": {phase(v1alpha1.RolloutAborted, v1alpha1.ReasonAborted, "aborted: bad release"), Waiting,
			v1alpha1.ReasonAborted, "", "aborted: bad release"},
		"rollout soaking": {func(in *InstallInput) {
			in.Rollout.Status.Phase = v1alpha1.RolloutProgressing
			in.Rollout.Status.Waves[0].Phase, in.Rollout.Status.Waves[0].VerifiedAt = v1alpha1.WaveSoaking, nil
			notReady(&in.Rollout.Status.Conditions, v1alpha1.ReasonSoaking, "wave prod soaks")
		}, Progressing, v1alpha1.ReasonSoaking, "", "The soak of wave prod ends."},
		"moved by its labels": {func(in *InstallInput) {
			in.Rollout.Spec.Strategy.Waves[0].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{
				"region": "us"}}
			in.Rollout.Status.Phase = v1alpha1.RolloutProgressing
			in.Rollout.Status.Waves[0].Phase, in.Rollout.Status.Waves[0].VerifiedAt = v1alpha1.WaveSoaking, nil
			notReady(&in.Rollout.Status.Conditions, v1alpha1.ReasonSoaking, "wave prod soaks")
		}, Progressing, v1alpha1.ReasonSoaking, "", "the labels of cluster prod-1 select wave rest now; " +
			"in this rollout wave prod still applies"},
		"gated": {func(in *InstallInput) {
			in.Rollout.Status.Phase = v1alpha1.RolloutProgressing
			in.Rollout.Status.Waves[0] = v1alpha1.WaveStatus{Name: "prod", Phase: v1alpha1.WaveGated,
				WaveCounts: v1alpha1.WaveCounts{Total: 1, Pending: 1},
				Gates: []v1alpha1.GateStatus{{Name: "sre", Approval: true,
					Verdict: v1alpha1.GateWaiting, Evidence: "not approved yet"}}}
			notReady(&in.Rollout.Status.Conditions, v1alpha1.ReasonGated, "wave prod waits for gate sre")
			in.Install.Spec.Admission = nil
		}, Waiting, v1alpha1.ReasonGated, "", "bellwether rollout approve echo-2 --reason TEXT -n fleet"},
		"verifying": {func(in *InstallInput) {
			verify(in, v1alpha1.GateWaiting, "too few slices of csv on prod-1: series bellwether:sli_bad:bool is "+
				"missing")
			notReady(&in.Rollout.Status.Conditions, v1alpha1.ReasonVerifying, "wave prod waits for 1 gate")
		}, Waiting, v1alpha1.ReasonVerifying, "", "series bellwether:sli_bad:bool is missing"},
		"not observed": {func(in *InstallInput) {
			verify(in, v1alpha1.GateWaiting, "no cluster of the wave that runs the release can be measured now")
			w := &in.Rollout.Status.Waves[0]
			w.Gates = append(w.Gates, v1alpha1.GateStatus{Name: v1alpha1.GateObservation, Verdict: v1alpha1.GateWaiting,
				Evidence: "no cluster of the wave was observed to run 1.1.0: 1 cluster left the fleet or the " +
					"selection"})
			stall(&in.Rollout.Status.Conditions, v1alpha1.ReasonNotObserved, "wave prod is not verified")
		}, Waiting, v1alpha1.ReasonNotObserved, "", "bellwether/observation"},
		"gate failed": {func(in *InstallInput) {
			verify(in, v1alpha1.GateFailed, "available: burn rate 30, at most 14.4 passes")
			in.Rollout.Status.Phase = v1alpha1.RolloutHalted
			stall(&in.Rollout.Status.Conditions, v1alpha1.ReasonGateFailed, "gate budget of wave prod failed")
		}, Failed, v1alpha1.ReasonGateFailed, "", "burn rate 30, at most 14.4 passes"},
		"catalog unreachable": {func(in *InstallInput) {
			stall(&in.Catalog.Status.Conditions, v1alpha1.ReasonCatalogUnreachable, "connection refused")
		}, Degraded, v1alpha1.ReasonCatalogUnreachable, "", "connection refused"},
	}
}

// verify gives the wave of the install a gate that measures it.
func verify(in *InstallInput, verdict v1alpha1.GateVerdict, evidence string) {
	in.Rollout.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "prod", Gates: []v1alpha1.Gate{{Name: "budget",
		SLO: &v1alpha1.SLOGate{Window: &metav1.Duration{Duration: time.Hour}}}}}}
	in.Rollout.Status.Phase = v1alpha1.RolloutProgressing
	w := &in.Rollout.Status.Waves[0]
	w.Phase, w.VerifiedAt, w.UpdatedAt = v1alpha1.WaveVerifying, nil, &metav1.Time{Time: in.Now.Add(-time.Minute)}
	w.Gates = []v1alpha1.GateStatus{{Name: "budget", Verdict: verdict, Evidence: evidence,
		Measurement: &v1alpha1.GateMeasurement{At: metav1.NewTime(in.Now),
			Window: metav1.Duration{Duration: time.Minute}, Query: "sum(bad)", Value: "30", Threshold: "14.4",
			Samples: 60}}}
}

func installFaults() map[string]fault {
	return map[string]fault{
		"status outdated": {onInstall(func(i *v1alpha1.OperatorInstall) {
			i.Generation = 2
			stall(&i.Status.Conditions, v1alpha1.ReasonCSVFailed, "the error of the release before")
		}), Progressing, remedy.StatusOutdated, "", "about generation 1 of the spec"},
		"revision outdated": {onInstall(func(i *v1alpha1.OperatorInstall) { i.Status.ObservedRevision = 1 }),
			Progressing,
			remedy.StatusOutdated, "", "revision 1 of the admissions, and the newest is 2"},
		"not admitted": {onInstall(func(i *v1alpha1.OperatorInstall) { i.Spec.Admission = nil }), Waiting,
			v1alpha1.ReasonNotAdmitted, "", "no rollout has admitted cluster prod-1"},
		"CSV failed": {stalledInstall(v1alpha1.ReasonCSVFailed, "install "+
			"timeout"), Failed, v1alpha1.ReasonCSVFailed, "",
			"install timeout"},
		"manifests not known": {onInstall(func(i *v1alpha1.OperatorInstall) {
			set(&i.Status.Conditions, v1alpha1.ConditionDrifted, false, v1alpha1.ReasonNotCompared, "OLM unpacks them")
			meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionDrifted).Status = metav1.ConditionUnknown
		}), Degraded, v1alpha1.ReasonNotCompared, "", "OLM unpacks them"},
		"correction stopped": {onInstall(func(i *v1alpha1.OperatorInstall) {
			set(&i.Status.Conditions, v1alpha1.ConditionDrifted, true, v1alpha1.ReasonCorrectionStopped,
				"image differs")
		}), Degraded, v1alpha1.ReasonCorrectionStopped, "", "image differs"},
		"drifted": {onInstall(func(i *v1alpha1.OperatorInstall) {
			set(&i.Status.Conditions, v1alpha1.ConditionDrifted, true, v1alpha1.ReasonDrifted, "image differs")
		}), Degraded, v1alpha1.ReasonDrifted, "", "image differs"},
		"foreign image": {onInstall(func(i *v1alpha1.OperatorInstall) {
			i.Status.SucceededHash = ""
			stall(&i.Status.Conditions, v1alpha1.ReasonDrifted, "echo-operator.v1.1.0 was changed to run another image")
		}), Failed, v1alpha1.ReasonDrifted, "", "was changed to run another image"},
		"scaled to zero": {onInstall(func(i *v1alpha1.OperatorInstall) {
			notReady(&i.Status.Conditions, v1alpha1.ReasonScaledToZero, "Deployment echo has 0 replicas")
		}), Failed, v1alpha1.ReasonScaledToZero, "", "kubectl -n echo-operator scale deployment"},
		"pods unavailable": {onInstall(func(i *v1alpha1.OperatorInstall) {
			notReady(&i.Status.Conditions, v1alpha1.ReasonPodsUnavailable, "Deployment echo misses 1 replica")
		}), Failed, v1alpha1.ReasonPodsUnavailable, "", "misses 1 replica"},
		"invalid cluster selector": {func(in *InstallInput) {
			in.Operator.Spec.ClusterSelector.MatchLabels = map[string]string{"env": "no value!"}
			stall(&in.Operator.Status.Conditions, v1alpha1.ReasonInvalidSpec, "spec.clusterSelector is invalid")
		}, Failed, v1alpha1.ReasonInvalidSpec, "", "spec.clusterSelector is invalid"},
		"definition deleted": {func(in *InstallInput) {
			stall(&in.Install.Status.Conditions, v1alpha1.ReasonObjectsLost,
				"echo-operator.v1.1.0 has lost what came with it: CustomResourceDefinition echoes. "+
					in.Install.RepairAdvice())
			in.Downstream = nil
			in.Budgets[0].Firing = []string{"BellwetherSLOBurn"}
		}, Failed, v1alpha1.ReasonObjectsLost, "",
			"bellwether operator repair prod-1 echo --cluster-kubeconfig FILE -n fleet"},
		"definition deleted, and the message was cut": {func(in *InstallInput) {
			stall(&in.Install.Status.Conditions, v1alpha1.ReasonObjectsLost,
				"echo-operator.v1.1.0 has lost what came with it: CustomResourceDefinition ech…")
			in.Downstream = nil
		}, Failed, v1alpha1.ReasonObjectsLost, "",
			"bellwether operator repair prod-1 echo --cluster-kubeconfig FILE -n fleet"},
		"definition of another operator deleted": {func(in *InstallInput) {
			stall(&in.Install.Status.Conditions, v1alpha1.ReasonRequirementsNotMet,
				"echo-operator.v1.1.0 needs what the cluster does not have: CustomResourceDefinition certificates.")
			in.Downstream = nil
		}, Failed, v1alpha1.ReasonRequirementsNotMet, "", "CustomResourceDefinition certificates"},
		"alert beside its cause": {func(in *InstallInput) {
			in.Budgets[0].Firing = []string{"BellwetherSLOBurn"}
			set(&in.Install.Status.Conditions, v1alpha1.ConditionDrifted, true, v1alpha1.ReasonDrifted, "an image")
		}, Degraded, v1alpha1.ReasonDrifted, "", "an image"},
		"quota as reported": {func(in *InstallInput) {
			notReady(&in.Install.Status.Conditions, v1alpha1.ReasonProgressing, "echo-operator.v1.1.0 is Installing")
			in.Install.Status.SucceededHash = ""
			in.Install.Status.Problems = []v1alpha1.WorkloadProblem{{Deployment: "echo-operator",
				Reason: "FailedCreate", Message: "pods are forbidden: exceeded quota: none"}}
			in.Budgets[0].Firing = []string{"BellwetherSLOBurn"}
			in.Downstream = nil
		}, Failed, remedy.FailedCreate, "", "exceeded quota: none"},
		"crash loop as reported": {func(in *InstallInput) {
			notReady(&in.Install.Status.Conditions, v1alpha1.ReasonPodsUnavailable, "2 of 2 replicas are not available")
			in.Install.Status.Problems = []v1alpha1.WorkloadProblem{{Deployment: "echo-operator", Container: "manager",
				Reason: "CrashLoopBackOff", Message: "it ended with exit code 1: Error: cannot parse flag", Pods: 2}}
			in.Downstream = nil
		}, Failed, v1alpha1.ReasonPodsUnavailable, remedy.CrashLoopBackOff,
			"2 pods of Deployment echo-operator, container manager: it ended with exit code 1: Error: cannot parse " +
				"flag"},
		"pods start, as reported": {func(in *InstallInput) {
			notReady(&in.Install.Status.Conditions, v1alpha1.ReasonProgressing, "echo-operator.v1.1.0 is Installing")
			in.Install.Status.SucceededHash = ""
			in.Install.Status.Problems = []v1alpha1.WorkloadProblem{{Deployment: "echo-operator", Container: "manager",
				Reason: "ContainerNotReady", Message: "it has not been started yet (ContainerCreating)", Pods: 1}}
			in.Downstream = nil
		}, Progressing, v1alpha1.ReasonProgressing, remedy.NotReadyYet, "it has not been started yet"},
		"requirements not met": {func(in *InstallInput) {
			notReady(&in.Install.Status.Conditions, v1alpha1.ReasonRequirementsNotMet, "ServiceAccount echo is missing")
			in.Install.Status.SucceededHash = ""
			notReady(&in.Operator.Status.Conditions, v1alpha1.ReasonClustersNotReady, "no longer Ready: prod-1")
			in.Downstream = nil
		}, Progressing, v1alpha1.ReasonRequirementsNotMet, "", "ServiceAccount echo is missing"},
		"ready but not served": {onInstall(func(i *v1alpha1.OperatorInstall) {
			set(&i.Status.Conditions, v1alpha1.ConditionCatalogServed, false, v1alpha1.ReasonCatalogNotReady,
				"CONNECTING")
		}), Degraded, v1alpha1.ReasonCatalogNotReady, "", "CatalogServed: CONNECTING"},
		"another release": {onInstall(func(i *v1alpha1.OperatorInstall) { i.Status.SucceededHash = "" }), Progressing,
			v1alpha1.ReasonProgressing, "", "has not been installed with the admitted settings"},
		"late": {func(in *InstallInput) {
			for i := range in.Cluster.Status.Conditions { // a cluster that was offline has the whole time again
				in.Cluster.Status.Conditions[i].LastTransitionTime = ago(time.Hour)
			}
			i := in.Install
			i.Spec.Admission.AdmittedAt, i.Status.SucceededHash = ago(11*time.Minute), ""
			notReady(&i.Status.Conditions, v1alpha1.ReasonProgressing, "echo-operator.v1.1.0 is Installing")
		}, Failed, remedy.Deadline, "", "deadline of its wave, which passed at 2026-11-21T11:59:00Z"},
		"blocked version": {func(in *InstallInput) {
			block := v1alpha1.VersionBlock{Package: "echo-operator", Version: "1.1.0", Reason: "it loses data"}
			in.Install.Spec.Blocks = []v1alpha1.VersionBlock{block}
			in.Catalog.Status.BlockedVersions = []v1alpha1.BlockedVersion{{VersionBlock: block, Clusters: 1,
				Proposal: "upgrade to 1.1.1"}}
		}, Degraded, v1alpha1.ReasonVersionBlocked, "", "The catalog proposes: upgrade to 1.1.1."},
		"removing": {onInstall(func(i *v1alpha1.OperatorInstall) { i.DeletionTimestamp = agoPtr(time.Minute) }),
			Waiting,
			v1alpha1.ReasonUninstalling, "", "is being removed"},
	}
}

func workloadFaults() map[string]fault {
	zero, noReplicas := int32(0), deployment()
	noReplicas.Deployment.Spec.Replicas, noReplicas.Pods = &zero, nil
	none := deployment()
	none.Deployment = nil
	pending := unavailable("", "")
	pending.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}}
	return map[string]fault{
		// The install reports only that it waits, and once that came to "Nothing: it passes by itself."
		"crash loop": {func(in *InstallInput) {
			notReady(&in.Install.Status.Conditions, v1alpha1.ReasonWaiting, "Deployment echo-operator misses 1 replica")
			running(unavailable("CrashLoopBackOff", "back-off 2m40s restarting failed container"))(in)
		}, Failed, remedy.CrashLoopBackOff, "", "Read the log of the container's last run"},
		"image": {running(unavailable("ImagePullBackOff", "not found")), Failed, remedy.ImagePull,
			"", "Check that the image exists"},
		"unschedulable": {running(pending), Failed, remedy.Unschedulable, "",
			"0/3 nodes are available"},
		"zero replicas": {running(noReplicas), Failed, v1alpha1.ReasonScaledToZero, "", "is scaled to 0 replicas"},
		"no deployment": {running(none), Failed, remedy.ObjectMissing, "", "does not exist"},
		"cluster unreadable": {func(in *InstallInput) { in.Downstream = &Downstream{Err: errors.New("refused")} },
			Unknown,
			remedy.ClusterUnreadable, "", "could not be read: refused"},
		"probe fails": {func(in *InstallInput) {
			set(&in.Downstream.Probes[0].Status.Conditions, v1alpha1.ConditionSuccess, false, v1alpha1.ReasonTimedOut,
				"no answer within 5s")
		}, Degraded, v1alpha1.ReasonTimedOut, "", "probe echo fails since 2026-11-21T11:58:00Z"},
		"alert fires": {func(in *InstallInput) { in.Budgets[0].Firing = []string{"BellwetherSLOBurn"} }, Degraded,
			remedy.AlertFiring, "", "1 firing alert for available on cluster prod-1: BellwetherSLOBurn"},
		"budget spent": {func(in *InstallInput) {
			left := -0.5
			in.Budgets[0].Left = &left
		}, Degraded, remedy.BudgetSpent, "", "bellwether slo get echo -n fleet"},
	}
}

func TestHealthyInstallListsWhatWasChecked(t *testing.T) {
	e := Install(healthyInstall())
	if e.State != Healthy || e.Summary != "1.1.0 is installed and Ready since 2026-11-21T11:58:00Z; nothing is "+
		"pending." {
		t.Errorf("%s: %s", e.State, e.Summary)
	}
	for _, want := range []string{"the agent of the cluster reports, and reaches the API server of its cluster",
		"the ClusterServiceVersion and its Deployments are those of the admitted bundle, as configured",
		"the installed version is not blocked", "probe echo",
		"Deployment echo-operator", "the error budget of available on cluster prod-1"} {
		if !slices.Contains(e.Checked, want) {
			t.Errorf("%q is not among what was checked: %q", want, e.Checked)
		}
	}
	golden(t, "install-healthy", e)
}

func TestBudgetsThatCannotBeReadAreStale(t *testing.T) {
	in := healthyInstall()
	in.Budgets, in.BudgetsErr = nil, errors.New("connection refused")
	e := Install(in)
	want := Stale{What: "the error budgets", Why: "the error budgets could not be read: connection refused"}
	if e.State != Healthy || !slices.Contains(e.Stale, want) {
		t.Errorf("%s, stale %+v; want Healthy, and %+v", e.State, e.Stale, want)
	}
}

func TestInstall(t *testing.T) {
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			in := healthyInstall()
			f.change(&in)
			e := Install(in)
			if f.cause == "" {
				f.cause = f.reason
			}
			if e.State != f.state || e.Reason != f.reason || e.Cause == nil || e.Cause.Reason != f.cause {
				t.Errorf("%s %s, cause %v; want %s %s, cause "+
					"%s", e.State, e.Reason, e.Cause, f.state, f.reason, f.cause)
			}
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatalf("marshal explanation: %v", err)
			}
			if !strings.Contains(string(text), f.contains) {
				t.Errorf("the explanation lacks %q: %s", f.contains, text)
			}
			golden(t, "install-"+strings.ReplaceAll(name, " ", "-"), e)
			checkInvariants(t, e)
		})
	}
}

// checkInvariants holds for every explanation.
func checkInvariants(t *testing.T, e Explanation) {
	t.Helper()
	if e.Summary == "" {
		t.Errorf("%s has no summary", e.State)
	}
	if e.State == Healthy {
		if len(e.Stale) > 0 || len(e.Checked) == 0 {
			t.Errorf("healthy with %d stale parts and %d checks", len(e.Stale), len(e.Checked))
		}
		walk(e.Chain, func(l Link) {
			if l.State != Healthy && l.State != "" {
				t.Errorf("healthy with a link that is %s: %s", l.State, l.Text)
			}
		})
		return
	}
	if e.Cause == nil || e.Cause.Text == "" || e.Reason == "" || e.Means == "" {
		t.Errorf("%s (%s) has no cause or meaning: %v %q", e.State, e.Reason, e.Cause, e.Means)
	}
	if len(e.Remedies)+len(e.Next) == 0 {
		t.Errorf("%s (%s) has neither a remedy nor what happens next", e.State, e.Reason)
	}
}

// FuzzInstall combines faults: none of them may be hidden by the others.
func FuzzInstall(f *testing.F) {
	names := slices.Sorted(maps.Keys(faults()))
	f.Add([]byte{})
	for i := range names {
		f.Add([]byte{byte(i)})
		f.Add([]byte{byte(i), byte(i * 7), byte(i * 13)})
	}
	f.Fuzz(func(t *testing.T, picks []byte) {
		in := healthyInstall()
		all, applied := faults(), 0
		for _, pick := range picks[:min(len(picks), 6)] {
			change := all[names[int(pick)%len(names)]].change
			if in.Install == nil || in.Downstream == nil || in.Downstream.Err != nil {
				break // the objects that a fault would change are gone
			}
			if in.Install.Spec.Admission == nil {
				break
			}
			change(&in)
			applied++
		}
		e := Install(in)
		if (e.State == Healthy) != (applied == 0) {
			t.Errorf("%d faults: %s %s", applied, e.State, e.Summary)
		}
		checkInvariants(t, e)
	})
}

// FuzzConditions gives every object any condition: Healthy needs all of them as
// they should be.
func FuzzConditions(f *testing.F) {
	for i := range 12 {
		for status := range 3 {
			f.Add(byte(i), byte(status), "CSVFailed")
		}
	}
	f.Fuzz(func(t *testing.T, pick, status byte, reason string) {
		in := healthyInstall()
		lists := []*[]metav1.Condition{&in.Cluster.Status.Conditions, &in.Operator.Status.Conditions,
			&in.Rollout.Status.Conditions, &in.Install.Status.Conditions, &in.Catalog.Status.Conditions,
			&in.Downstream.Probes[0].Status.Conditions}
		list := *lists[int(pick)%len(lists)]
		c := &list[int(pick)/len(lists)%len(list)]
		was := c.Status
		c.Status = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse,
			metav1.ConditionUnknown}[int(status)%3]
		c.Reason = reason
		e := Install(in)
		if c.Status != was && e.State == Healthy {
			t.Errorf("healthy although %s is %s", c.Type, c.Status)
		}
		checkInvariants(t, e)
	})
}
